//! Commands without a shell: words with quotes, and nothing else that is special.

use crate::error::ShellError;

/// The words of a command that is run without a shell. Quotes, backslashes and comments are special, nothing else.
///
/// # Errors
/// When a quote isn't closed, or there is no word.
pub fn split_without_shell(text: &[u8]) -> Result<Vec<Vec<u8>>, ShellError> {
    match shlex::bytes::split(text) {
        Some(words) if words.is_empty() => Err(ShellError::Empty),
        Some(words) => Ok(words),
        None => Err(ShellError::Unclosed("a closing quote, or a character after a backslash,")),
    }
}
