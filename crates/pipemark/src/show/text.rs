//! Text that is safe and fits: neutralised, measured in columns, wrapped, padded, coloured; figures in few digits.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Whether colours and other emphasis may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// Plain text.
    Never,
    /// With the terminal's own colours (SGR sequences).
    Always,
}

/// What a piece of text is, which decides how it is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// What the reader came for.
    Plain,
    /// What stands above it.
    Heading,
    /// What may be overlooked.
    Aside,
    /// A bar of a chart.
    Bar,
    /// What to be careful about.
    Caution,
    /// What went wrong.
    Failure,
    /// What went well.
    Success,
    /// One of several curves, by its place among them.
    Series(usize),
}

impl Colour {
    /// `text` in the colours of `style`.
    pub(super) fn paint(self, style: Style, text: &str) -> String {
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

/// The longest text from elsewhere that is shown, in characters: a reason may quote a whole stderr.
const LONGEST: usize = 600;

/// Text from a suite, the system or another process, made harmless for a terminal and for tables: white space becomes
/// single blanks; control characters, and the invisible ones that reorder or hide text, become visible escapes.
pub fn neutral(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for (count, c) in text.trim().chars().enumerate() {
        if count == LONGEST {
            safe.push('…');
            break;
        }
        match c {
            // Three per em and the like are kept: they are spaces of a known width. Line ends of all kinds are not.
            '\t' | '\n' | '\r' | '\u{2028}' | '\u{2029}' | ' ' => {
                if !safe.ends_with(' ') {
                    safe.push(' ');
                }
            }
            _ if hides(c) => safe.extend(c.escape_unicode()),
            _ => safe.push(c),
        }
    }
    safe
}

/// Whether a terminal acts on this character, or shows nothing for it.
pub(super) fn hides(c: char) -> bool {
    c.is_control() || (c.width() == Some(0) && !is_combining(c)) || matches!(c, '\u{ad}' | '\u{feff}')
}

/// Marks that belong to the letter before them, as in decomposed umlauts.
fn is_combining(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{20d0}'..='\u{20ff}')
}

/// Terminal columns that `text` takes.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// Which side of its column a cell keeps to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Text.
    Left,
    /// Figures.
    Right,
}

/// `text` filled up with blanks to `columns`.
pub(super) fn pad(text: &str, columns: usize, side: Side) -> String {
    let blanks = " ".repeat(columns.saturating_sub(width(text)));
    match side {
        Side::Left => format!("{text}{blanks}"),
        Side::Right => format!("{blanks}{text}"),
    }
}

/// `text` cut to `columns`, with an ellipsis where something is missing.
pub(super) fn abridge(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut cut = String::new();
    for c in text.chars() {
        if width(&cut) + c.width().unwrap_or(0) + 1 > columns {
            break;
        }
        cut.push(c);
    }
    cut.push('…');
    cut
}

/// `text` broken at blanks into lines of at most `columns`; a longer word is broken where the line ends.
pub(super) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(8);
    let mut lines = vec![String::new()];
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let line = lines.last_mut().expect("never empty");
        if !line.is_empty() && width(line) + 1 + width(word) > columns {
            lines.push(String::new());
        } else if !line.is_empty() {
            line.push(' ');
        }
        for c in word.chars() {
            let line = lines.last_mut().expect("never empty");
            if width(line) + c.width().unwrap_or(0) > columns {
                lines.push(String::new());
            }
            lines.last_mut().expect("never empty").push(c);
        }
    }
    lines
}

/// `parts` joined by ` · ` into as few lines of at most `columns` as whole parts allow.
pub(super) fn join_wrapped(parts: &[String], columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts.iter().filter(|part| !part.is_empty()) {
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

/// Three significant digits, not more than three behind the point: 0.004, 0.125, 1.25, 12.5, 125.
pub(super) fn digits(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        v if v < 0.0005 => "<.001".to_owned(),
        v if v < 0.9995 => format!("{value:.3}"),
        v if v < 9.995 => format!("{value:.2}"),
        v if v < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// A per cent value in two or three digits: 0.4, 4.5, 45, 450.
pub(super) fn percent(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        v if v < 0.05 => "<.1".to_owned(),
        v if v < 9.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// A bar of `share` (0 to 1) of `columns`, in eighths of a column.
pub(super) fn bar(share: f64, columns: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    // At most 8 × the terminal's width, so it fits a usize.
    let eighths = (share * (columns * 8) as f64).round() as usize;
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

/// `count` and the noun for it: `1 run`, `3 runs`.
pub(super) fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nothing_a_terminal_acts_on_survives() {
        assert_eq!(neutral("a\x1b[31mb\u{9b}2J\u{7}"), "a\\u{1b}[31mb\\u{9b}2J\\u{7}");
        assert_eq!(neutral(" two\n\tlines\r\n"), "two lines");
        assert_eq!(neutral("abc\u{202e}def\u{200b}"), "abc\\u{202e}def\\u{200b}");
        assert_eq!(neutral("Ménage 測定 µs ±"), "Ménage 測定 µs ±");
        assert_eq!(neutral(&"x".repeat(5000)).chars().count(), LONGEST + 1);
    }

    #[test]
    fn bars_grow_in_eighths() {
        assert_eq!(bar(1.0, 3), "███");
        assert_eq!(bar(0.5, 3), "█▌");
        assert_eq!(bar(0.0, 3), "");
        assert_eq!(bar(f64::NAN, 3), "");
    }

    #[test]
    fn figures_have_few_digits() {
        for (value, shown) in [
            (0.0, "0"),
            (0.0001, "<.001"),
            (0.0123, "0.012"),
            (0.9996, "1.00"),
            (1.234, "1.23"),
            (12.34, "12.3"),
            (1234.0, "1234"),
        ] {
            assert_eq!(digits(value), shown);
        }
    }

    proptest! {
        #[test]
        fn lines_fit_and_no_word_is_lost(text in "[a-zµ測]{0,30}( [a-z测]{1,30}){0,9}", columns in 8usize..60) {
            let lines = wrap(&text, columns);
            for line in &lines {
                prop_assert!(width(line) <= columns, "{line:?} is wider than {columns}");
            }
            let letters = |s: &str| s.chars().filter(|c| *c != ' ').collect::<String>();
            prop_assert_eq!(letters(&lines.concat()), letters(&text));
        }

        #[test]
        fn neutral_text_is_one_harmless_line(text in any::<String>()) {
            let safe = neutral(&text);
            prop_assert!(!safe.chars().any(|c| c.is_control() || hides(c)), "{safe:?}");
        }

        #[test]
        fn abridged_text_fits(text in "\\PC{0,40}", columns in 1usize..30) {
            prop_assert!(width(&abridge(&text, columns)) <= columns);
        }
    }
}
