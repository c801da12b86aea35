//! Escapes text from other sources for printing, and formats parts of sentences.

use unicode_width::UnicodeWidthChar;

/// The number of characters to which text from other sources is cut, because such text may quote a whole stderr.
const MAX_CHARS: usize = 600;

/// Makes text from a suite, the system or another process safe for terminals and tables. Tabs, line ends and repeated
/// spaces become single spaces. Control characters, and invisible characters that reorder or hide text, become visible
/// escapes.
pub fn neutral(text: &str) -> String {
    let text = text.trim();
    // Most text needs no change, and a history may have a hundred thousand cells.
    if text.len() <= MAX_CHARS && text.bytes().all(|byte| matches!(byte, b' '..=b'~')) && !text.contains("  ") {
        return text.to_owned();
    }
    let mut safe = String::with_capacity(text.len());
    for (count, c) in text.chars().enumerate() {
        if count == MAX_CHARS {
            safe.push('…');
            break;
        }
        match c {
            // Other Unicode spaces, such as the three-per-em space, have a known width, so they are kept.
            '\t' | '\n' | '\r' | '\u{2028}' | '\u{2029}' | ' ' => {
                if !safe.ends_with(' ') {
                    safe.push(' ');
                }
            }
            _ if is_control_or_invisible(c) => safe.extend(c.escape_unicode()),
            _ => safe.push(c),
        }
    }
    safe
}

/// Whether a terminal interprets this character or shows nothing in its place.
pub fn is_control_or_invisible(c: char) -> bool {
    // Combining marks, as in decomposed umlauts, have width 0 but are visible.
    let combining = matches!(c, '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{20d0}'..='\u{20ff}');
    c.is_control() || (c.width() == Some(0) && !combining) || matches!(c, '\u{ad}' | '\u{feff}')
}

/// A count with its noun: `1 run`, `3 runs`.
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// The text with its first letter in upper case.
pub fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The error's text without the trailing ` (os error N)`.
pub fn without_errno(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split_once(" (os error").map_or(text.clone(), |(words, _)| words.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn terminal_control_characters_are_removed() {
        assert_eq!(neutral("a\x1b[31mb\u{9b}2J\u{7}"), "a\\u{1b}[31mb\\u{9b}2J\\u{7}");
        assert_eq!(neutral(" two\n\tlines\r\n"), "two lines");
        assert_eq!(neutral("abc\u{202e}def\u{200b}"), "abc\\u{202e}def\\u{200b}");
        assert_eq!(neutral("Ménage 測定 µs ±"), "Ménage 測定 µs ±");
        assert_eq!(neutral(&"x".repeat(5000)).chars().count(), MAX_CHARS + 1);
    }

    proptest! {
        #[test]
        fn neutral_text_is_one_harmless_line(text in any::<String>()) {
            let safe = neutral(&text);
            prop_assert!(!safe.chars().any(|c| c.is_control() || is_control_or_invisible(c)), "{safe:?}");
        }
    }
}
