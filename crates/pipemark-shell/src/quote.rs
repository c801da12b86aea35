//! Quotes words, so that a shell reads them back and a terminal shows and copies them exactly.

use std::borrow::Cow;
use std::fmt::Write;

use unicode_width::UnicodeWidthChar;

use crate::dialect::Dialect;
use crate::error::ShellError;

/// Whether a terminal shows this character as itself, and copies it as it is: not a control character, another blank
/// than the space, or one that is invisible or reorders the text.
pub fn is_shown_exactly(c: char) -> bool {
    // Combining marks, as in decomposed umlauts, have width 0 but are visible.
    let combining = matches!(c, '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{20d0}'..='\u{20ff}');
    // Fillers, the empty Braille pattern, and characters that only control how others are shown, have a width.
    let invisible = matches!(
        c,
        '\u{34f}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    );
    let blank = c.is_whitespace() && c != ' ' || invisible;
    !blank
        && !c.is_control()
        && !matches!(c, '\u{ad}' | '\u{feff}')
        && (combining || c.width().is_some_and(|width| width > 0))
}

/// A word that the shell reads as these bytes, wherever it stands.
///
/// # Errors
/// For sh, when a terminal can't show the bytes exactly.
pub fn quote_bytes(bytes: &[u8], dialect: Dialect) -> Result<String, ShellError> {
    let text = std::str::from_utf8(bytes).ok().filter(|text| text.chars().all(is_shown_exactly));
    match text {
        Some(text) if !text.is_empty() && bytes.iter().all(is_plain) && !is_reserved(bytes) => Ok(text.to_owned()),
        Some(text) => Ok(format!("'{}'", text.replace('\'', r"'\''"))),
        None if dialect == Dialect::Bash => Ok(ansi_c(bytes)),
        None => Err(ShellError::Unprintable("a control character, a tab or a byte that isn't UTF-8")),
    }
}

/// [`quote_bytes`] for an argument after a program, where `=` needs no quotes.
///
/// # Errors
/// As there.
pub fn quote_argument(bytes: &[u8], dialect: Dialect) -> Result<String, ShellError> {
    match bytes.split(|&byte| byte == b'=').collect::<Vec<_>>()[..] {
        // A ~ after = needs quotes, and gets them as it isn't plain.
        [name, value] if !name.is_empty() && !value.is_empty() && [name, value].concat().iter().all(is_plain) => {
            Ok(String::from_utf8_lossy(bytes).into_owned())
        }
        _ => quote_bytes(bytes, dialect),
    }
}

/// Whether a shell reads the byte as itself.
fn is_plain(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_./:,@%+".contains(byte)
}

/// Whether the word means something else to a shell, where a command begins.
fn is_reserved(word: &[u8]) -> bool {
    const WORDS: [&[u8]; 17] = [
        b"if",
        b"then",
        b"elif",
        b"else",
        b"fi",
        b"for",
        b"in",
        b"do",
        b"done",
        b"while",
        b"until",
        b"case",
        b"esac",
        b"function",
        b"select",
        b"time",
        b"coproc",
    ];
    WORDS.contains(&word)
}

/// `$'…'` of bash. History expansion and the ends of quotes can't occur in it.
pub(crate) fn ansi_c(bytes: &[u8]) -> String {
    let mut quoted = "$'".to_owned();
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\t' => quoted.push_str("\\t"),
                '\n' => quoted.push_str("\\n"),
                '\r' => quoted.push_str("\\r"),
                '\\' => quoted.push_str("\\\\"),
                '\'' | '!' => escape(&mut quoted, c.to_string().as_bytes()),
                c if is_shown_exactly(c) => quoted.push(c),
                c => escape(&mut quoted, c.to_string().as_bytes()),
            }
        }
        escape(&mut quoted, chunk.invalid());
    }
    quoted.push('\'');
    quoted
}

fn escape(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing to a string can't fail.
        let _ = write!(text, "\\x{byte:02x}");
    }
}

/// Bytes as text for a reader: those that aren't UTF-8 as `\xNN`.
pub fn readable(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        escape(&mut text, chunk.invalid());
    }
    text
}

/// A command as text to show: itself or, if it isn't UTF-8, quoted, so that it can be pasted into bash as an argument.
pub fn shown_command(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| Cow::Owned(ansi_c(bytes)), Cow::Borrowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_or_a_terminal_would_change_them() {
        let bash = |word: &str| quote_bytes(word.as_bytes(), Dialect::Bash).unwrap();
        assert_eq!(bash("a.gz"), "a.gz");
        assert_eq!(bash("a  b"), "'a  b'");
        assert_eq!(bash("it's!"), r"'it'\''s!'");
        assert_eq!(bash("tr;touch PWNED;#"), "'tr;touch PWNED;#'");
        assert_eq!(
            (bash(""), bash("if"), bash("a=b"), bash("~")),
            ("''".into(), "'if'".into(), "'a=b'".into(), "'~'".into())
        );
        assert_eq!(bash("a\tb'!\\"), r"$'a\tb\x27\x21\\'");
        assert_eq!(bash("x\u{202e}y"), r"$'x\xe2\x80\xaey'");
        assert_eq!(quote_bytes(b"caf\xe9", Dialect::Bash).unwrap(), r"$'caf\xe9'");
        for word in [&b"a\tb"[..], b"caf\xe9", "\u{202e}".as_bytes(), "\u{a0}".as_bytes()] {
            assert!(quote_bytes(word, Dialect::Posix).is_err());
        }
        let argument = |word: &str| quote_argument(word.as_bytes(), Dialect::Posix).unwrap();
        assert_eq!((argument("--threads=4"), argument("if=f")), ("--threads=4".into(), "if=f".into()));
        assert_eq!(
            (argument("--x=~"), argument("=x"), argument("a=b=c")),
            ("'--x=~'".into(), "'=x'".into(), "'a=b=c'".into())
        );
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_readable() {
        assert_eq!(readable(b"caf\xe9 \xc3\xa9"), "caf\\xe9 é");
        assert_eq!(shown_command(b"cat 'caf\xe9'"), r"$'cat \x27caf\xe9\x27'");
        assert_eq!(shown_command("cat  é\t".as_bytes()), "cat  é\t");
    }
}
