//! Renders a sheet for a terminal, using the terminal's full width.

use textwrap::{WordSeparator, WordSplitter};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::{Align, Block, Note, Sheet, Style, layout, plot};

/// Whether colours and bold text may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// Plain text.
    Never,
    /// Text in the terminal's own colours (SGR sequences).
    Always,
}

/// The characters that a terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Characters {
    /// All of Unicode. Curves are drawn in Braille dots.
    Unicode,
    /// ASCII only.
    Ascii,
}

/// The properties of the terminal that a sheet is rendered for.
#[derive(Debug, Clone, Copy)]
pub struct Terminal {
    /// The width in columns; 80 if the output isn't a terminal.
    pub width: usize,
    /// Whether to colour.
    pub colour: Colour,
    /// Which characters may be used.
    pub characters: Characters,
}

/// The minimum width in columns. On a narrower terminal, lines wrap, because narrower tables would be illegible.
const MIN_WIDTH: usize = 40;
/// The maximum width of text in columns, because longer lines are hard to read. Tables may be wider.
const MAX_TEXT_WIDTH: usize = 120;
const INDENT: usize = 2;

impl Terminal {
    /// The sheet as lines.
    pub fn render(&self, sheet: &Sheet) -> String {
        let mut lines: Vec<String> = Vec::new();
        let mut indent = 0;
        for (index, block) in sheet.blocks.iter().enumerate() {
            let before = index.checked_sub(1).map(|before| &sheet.blocks[before]);
            if needs_blank_line(before, block) {
                lines.push(String::new());
            }
            let room = self.width.max(MIN_WIDTH) - indent;
            let own = match block {
                Block::Heading(level, text) => {
                    indent = if *level > 1 { INDENT } else { 0 };
                    let lines = wrap(text, self.width.clamp(MIN_WIDTH, MAX_TEXT_WIDTH));
                    lines.into_iter().map(|line| self.colour.paint(Style::Heading, &line)).collect::<Vec<_>>()
                }
                Block::Text(style, parts) => {
                    let lines = join_wrapped(parts, room.min(MAX_TEXT_WIDTH));
                    lines.into_iter().map(|line| self.colour.paint(*style, &line)).collect()
                }
                Block::Code(text) => {
                    // Lines of code aren't wrapped, so long ones are indented less.
                    let longest = text.lines().map(width).max().unwrap_or(0);
                    let before = " ".repeat((indent + INDENT).min(self.width.saturating_sub(longest)));
                    let indented = |line: &str| if line.is_empty() { String::new() } else { format!("{before}{line}") };
                    text.lines().map(indented).collect()
                }
                Block::Grid(grid) => layout::lines(grid, room, self.colour),
                Block::Chart(chart) => plot::lines(chart, room, self.colour),
                Block::Gap => {
                    indent = 0;
                    vec![String::new()]
                }
                Block::Notes(notes) => {
                    notes.iter().flat_map(|note| self.note(note, room.min(MAX_TEXT_WIDTH))).collect()
                }
            };
            let shift = if matches!(block, Block::Heading(..) | Block::Code(_)) { 0 } else { indent };
            lines.extend(own.into_iter().map(|line| match line.is_empty() {
                true => line,
                false => format!("{}{line}", " ".repeat(shift)),
            }));
        }
        let text: String = lines.into_iter().map(|line| line + "\n").collect();
        if self.characters == Characters::Ascii { plot::ascii(&text) } else { text }
    }

    /// A sentence after a mark. Its second and later lines are indented.
    fn note(&self, note: &Note, room: usize) -> Vec<String> {
        if note.mark.is_empty() {
            return wrap(&note.text, room).iter().map(|line| self.colour.paint(note.style, line)).collect();
        }
        if note.mark.trim().is_empty() {
            // A command, which is not wrapped, so that it can be copied.
            return vec![format!("    {}", self.colour.paint(note.style, &note.text))];
        }
        let hang = width(&note.mark).min(2) + 1;
        let mut lines = wrap(&format!("{} {}", note.mark, note.text), room - hang);
        if let Some(rest) = lines[0].strip_prefix(&note.mark) {
            lines[0] = format!("{}{rest}", self.colour.paint(note.style, &note.mark));
        }
        lines[1..].iter_mut().for_each(|line| line.insert_str(0, &" ".repeat(hang)));
        lines
    }
}

/// Whether a blank line separates two blocks. It separates sections and consecutive tables.
fn needs_blank_line(before: Option<&Block>, block: &Block) -> bool {
    match (before, block) {
        (None | Some(Block::Heading(..) | Block::Gap), _) | (_, Block::Gap) => false,
        (_, Block::Heading(..)) => true,
        (Some(Block::Grid(_)), Block::Grid(_)) => true,
        // Paragraphs are separated by blank lines. Facts in other styles are kept together.
        (Some(Block::Text(Style::Plain, _) | Block::Notes(_)), Block::Text(Style::Plain, _)) => true,
        (Some(Block::Chart(_)), Block::Chart(_)) | (Some(Block::Code(_)), _) | (_, Block::Code(_)) => true,
        _ => false,
    }
}

impl Colour {
    /// `text` in the colours of `style`.
    pub fn paint(self, style: Style, text: &str) -> String {
        let code = match style {
            Style::Plain => return text.to_owned(),
            Style::Heading => "1",
            Style::Aside => "2",
            Style::Bar => "36",
            Style::Caution => "33",
            Style::Failure => "31",
            Style::Success => "32",
            Style::Series(index) => ["36", "33", "35", "32", "34", "31"][index % 6],
        };
        match self {
            Colour::Always if !text.is_empty() => format!("\x1b[{code}m{text}\x1b[0m"),
            _ => text.to_owned(),
        }
    }
}

/// The width of `text` in terminal columns.
pub fn width(text: &str) -> usize {
    // Nearly all text is ASCII, and a history may have ten thousand rows.
    if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) { text.len() } else { text.width() }
}

/// `text` padded with blanks to `columns`.
pub(super) fn pad(text: &str, columns: usize, side: Align) -> String {
    let blanks = " ".repeat(columns.saturating_sub(width(text)));
    match side {
        Align::Left => format!("{text}{blanks}"),
        Align::Right => format!("{blanks}{text}"),
    }
}

/// `text` cut to `columns`, with an ellipsis if it was cut. The cut comes after a word, unless less than half of the
/// text would remain.
pub(super) fn abridge(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let (mut cut, mut used) = (String::new(), 0);
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used + 1 > columns {
            break;
        }
        cut.push(c);
    }
    if let Some((words, _)) = cut.rsplit_once(' ').filter(|(words, _)| 2 * width(words) >= columns) {
        cut.truncate(words.trim_end_matches([' ', ',']).len());
    }
    cut.push('…');
    cut
}

/// `text` broken at blanks into lines of at most `columns`. A longer word is broken at the end of the line.
pub(super) fn wrap(text: &str, columns: usize) -> Vec<String> {
    // Most cells of a table fit, and a history may have ten thousand rows.
    if width(text) <= columns && !text.contains('\n') {
        return vec![text.trim_end_matches(' ').to_owned()];
    }
    // A quoted pipemark command isn't wrapped if it fits on a line, so that it can be copied.
    const GLUE: char = '\u{2007}';
    let mut glued = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("'pipemark ") {
        let Some(end) = rest[at + 1..].find('\'').map(|end| at + 1 + end + 1) else { break };
        let command = &rest[at..end];
        glued.push_str(&rest[..at]);
        match width(command) < columns {
            true => glued.push_str(&command.replace(' ', &GLUE.to_string())),
            false => glued.push_str(command),
        }
        rest = &rest[end..];
    }
    glued.push_str(rest);
    // A number isn't separated from its unit.
    let mut text = String::with_capacity(glued.len());
    for (index, word) in glued.split(' ').enumerate() {
        if index > 0 {
            text.push(if text.ends_with(|c: char| c.is_ascii_digit()) && is_unit(word) { GLUE } else { ' ' });
        }
        text.push_str(word);
    }
    let options = textwrap::Options::new(columns)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .wrap_algorithm(textwrap::WrapAlgorithm::FirstFit);
    textwrap::wrap(&text, options).into_iter().map(|line| line.replace(GLUE, " ")).collect()
}

/// Whether a word is a unit of a figure, perhaps with punctuation after it.
fn is_unit(word: &str) -> bool {
    const UNITS: [&str; 11] = ["%", "B", "KiB", "MiB", "GiB", "TiB", "ns", "µs", "ms", "s", "min"];
    let word = word.trim_end_matches([',', '.', ';', ':', ')', '?', '~']);
    UNITS.contains(&word.split_once('/').map_or(word, |(unit, _)| unit))
}

/// `parts` joined by ` · ` in lines of at most `columns`. A part isn't wrapped if it fits on a line.
fn join_wrapped(parts: &[String], columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        match lines.last_mut() {
            Some(line) if width(line) + 3 + width(part) <= columns => {
                line.push_str(" · ");
                line.push_str(part);
            }
            _ => lines.extend(wrap(part, columns)),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_quoted_command_stays_on_one_line() {
        let text = "this pipeline ends too soon for 'pipemark tune', so try it with 'pipemark ab --runs 9'";
        assert_eq!(
            wrap(text, 40),
            ["this pipeline ends too soon for", "'pipemark tune', so try it with", "'pipemark ab --runs 9'"]
        );
        // Longer commands, and quotes that aren't closed, are wrapped like other text.
        assert_eq!(wrap("'pipemark ab -- a b'", 12), ["'pipemark ab", "-- a b'"]);
        assert_eq!(wrap("it's 'pipemark ab", 12), ["it's", "'pipemark ab"]);
    }

    #[test]
    fn text_is_cut_after_a_word() {
        assert_eq!(abridge("capacity 1 MiB, vmsplice", 20), "capacity 1 MiB…");
        assert_eq!(abridge("a supercalifragilistic", 12), "a supercali…");
    }

    proptest! {
        #[test]
        fn abridged_text_fits(text in "\\PC{0,40}", columns in 1usize..30) {
            prop_assert!(width(&abridge(&text, columns)) <= columns);
        }
    }
}
