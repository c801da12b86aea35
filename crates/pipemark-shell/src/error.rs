//! Why a command isn't parsed, edited or printed.

use std::fmt;

/// Why a text isn't parsed, or an edit or a command can't be proved to be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShellError {
    /// The shell with this name has another language.
    Shell(String),
    /// There is no command.
    Empty,
    /// A word, quote or bracket isn't closed: what is missing.
    Unclosed(&'static str),
    /// Shells disagree about this construct, or it isn't part of the grammar here.
    Construct(&'static str),
    /// Something stands where the grammar doesn't allow it.
    Unexpected(String),
    /// It can't be shown on a terminal and copied exactly.
    Unprintable(&'static str),
    /// The edit can't be proved to change nothing else.
    Edit(&'static str),
}

impl fmt::Display for ShellError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ShellError::Shell(name) => write!(f, "commands for {name} can't be made, only for sh and bash"),
            ShellError::Empty => f.write_str("there is no command"),
            ShellError::Unclosed(what) => write!(f, "{what} is missing"),
            ShellError::Construct(what) => write!(f, "{what} can't be parsed reliably"),
            ShellError::Unexpected(what) => write!(f, "{what} is unexpected there"),
            ShellError::Unprintable(what) => write!(f, "{what} can't be copied from a terminal exactly"),
            ShellError::Edit(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for ShellError {}
