//! Renders a sheet for a terminal, using the terminal's full width.

use crate::style::{Colour, Style};
use crate::text::{width, wrap};
use crate::{Block, Note, Sheet, layout, plot};

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
            lines.extend(own.into_iter().map(|line| match line.is_empty() || line.contains('\n') {
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
        if note.is_command() {
            // It is copied as it is, so it isn't wrapped, and in ASCII only an ASCII one can be printed.
            return match self.characters {
                Characters::Ascii if !note.text.is_ascii() => Vec::new(),
                // Blanks before its second line would become a part of it.
                _ if note.text.contains('\n') => vec![note.text.trim_end_matches('\n').to_owned()],
                _ => vec![format!("    {}", note.text)],
            };
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
