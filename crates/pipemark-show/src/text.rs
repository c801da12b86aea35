//! Text in terminal columns: its width, and how it is padded, cut and wrapped.

use textwrap::{WordSeparator, WordSplitter};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::grid::Align;

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
