//! Errors in a suite or in flags, with their position in the suite's file.

use std::ops::Range;

use unicode_width::UnicodeWidthStr;

use pipemark_model::written::Refusal;

/// The length at which sentences are truncated, because they may quote a hostile file.
const MAX_SENTENCE_CHARS: usize = 600;
/// The longest line of a suite that is shown in an error.
const MAX_EXCERPT_CHARS: usize = 100;

/// Why a suite or flags give no plan, as a sentence for their author. A sentence about a suite begins with file, line
/// and column.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PlanError(String);

impl PlanError {
    pub(super) fn of_flags(refusal: Refusal) -> Self {
        PlanError(printable(&refusal.sentence))
    }

    pub(super) fn of_suite(refusal: Refusal, file: &str, text: &str) -> Self {
        let (file, sentence) = (printable(file), printable(&refusal.sentence));
        PlanError(match refusal.at {
            None => format!("{file}: {sentence}"),
            Some(at) => {
                let (line, column, excerpt) = excerpt_at(text, at);
                format!("{file}:{line}:{column}: {sentence}{excerpt}")
            }
        })
    }
}

/// The line number, the column, and an excerpt that follows the error message: the line with carets under the range.
/// The excerpt is empty if the line is too long.
fn excerpt_at(text: &str, at: Range<usize>) -> (usize, usize, String) {
    // A range at the end of the file begins one past the last byte. A position within a character is moved to the
    // character's first byte.
    let boundary = |at: usize| (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    let (start, end) = (boundary(at.start), boundary(at.end));
    let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
    let line_end = text[line_start..].find('\n').map_or(text.len(), |length| line_start + length);
    let line = text[..start].matches('\n').count() + 1;
    let column = text[line_start..start].chars().count() + 1;
    // Control characters are replaced by dots, so that they can't control the terminal and each is one column wide.
    let shown = text[line_start..line_end].trim_end_matches('\r');
    if shown.chars().take(MAX_EXCERPT_CHARS + 1).count() > MAX_EXCERPT_CHARS {
        return (line, column, String::new());
    }
    let dotted: String = shown.chars().map(|c| if c.is_control() { '·' } else { c }).collect();
    let byte = |column: usize| dotted.char_indices().nth(column).map_or(dotted.len(), |(byte, _)| byte);
    let last = column - 1 + text[start..end.clamp(start, line_end.max(start))].chars().count();
    let (before, marked) = (&dotted[..byte(column - 1)], &dotted[byte(column - 1)..byte(last)]);
    let margin = " ".repeat(line.to_string().len());
    let shown = format!("{line} | {dotted}");
    let carets = format!("{}{}", " ".repeat(before.width()), "^".repeat(marked.width().max(1)));
    (line, column, format!("\n{margin} |\n{}\n{margin} | {carets}", shown.trim_end()))
}

/// The text with control characters escaped, truncated to [`MAX_SENTENCE_CHARS`].
fn printable(text: &str) -> String {
    let mut shown = String::new();
    for (count, c) in text.chars().enumerate() {
        if count == MAX_SENTENCE_CHARS {
            shown.push('…');
            break;
        }
        match c.is_control() {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excerpt(text: &str, at: Range<usize>) -> String {
        PlanError::of_suite(Refusal::new("no", Some(at)), "x.toml", text).to_string()
    }

    #[test]
    fn the_wrong_word_is_underlined() {
        assert_eq!(excerpt("a = 1\nµ = \"no\"\n", 11..15), "x.toml:2:5: no\n  |\n2 | µ = \"no\"\n  |     ^^^^");
    }

    #[test]
    fn an_error_at_the_end_of_the_file_has_a_position() {
        assert_eq!(excerpt("a =", 3..3), "x.toml:1:4: no\n  |\n1 | a =\n  |    ^");
        assert_eq!(excerpt("", 0..0), "x.toml:1:1: no\n  |\n1 |\n  | ^");
    }

    #[test]
    fn a_range_over_lines_marks_the_first() {
        assert_eq!(excerpt("[[a]]\nb = 1\n", 0..11), "x.toml:1:1: no\n  |\n1 | [[a]]\n  | ^^^^^");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let error = PlanError::of_suite(Refusal::new("\x1b[31m'x'", Some(0..1)), "x\x07.toml", "\x1b[31m");
        assert!(!error.to_string().contains(['\x1b', '\x07']), "{error}");
    }

    #[test]
    fn long_texts_are_cut() {
        let long = "x".repeat(1 << 20);
        let error = PlanError::of_suite(Refusal::new(long.clone(), Some(10..1 << 19)), "x.toml", &long).to_string();
        assert!(error.len() < 1000, "{}", error.len());
        assert!(error.starts_with("x.toml:1:11: xxx"));
    }
}
