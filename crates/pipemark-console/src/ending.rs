//! Errors, messages and exit codes of all verbs.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;

use pipemark_sys::start::stdout_was_closed;

use pipemark_host::child::{Interrupt, guard};
use pipemark_model::is_control_or_invisible;

use crate::destination::OutputError;

/// Exit codes, the same for every verb.
pub mod exit {
    /// A trial failed, or a result could not be written.
    pub const FAILED: u8 = 1;
    /// Bad usage: invalid flags, suites or values, or a name that doesn't exist. clap uses the same code.
    pub const USAGE: u8 = 2;
    /// Data failed verification.
    pub const NOT_VERIFIED: u8 = 3;
    /// `compare` or `ab` reached the verdict "worse", and `--fail-on` names it.
    pub const WORSE: u8 = 10;
    /// A trial exists on one side only, or was not measured on one or both sides.
    pub const MISSING: u8 = 11;
    /// Like [`WORSE`], for the verdict "inconclusive".
    pub const INCONCLUSIVE: u8 = 12;
    /// Like [`WORSE`], for the verdict "better".
    pub const BETTER: u8 = 13;
    /// Like [`WORSE`], for the verdict "same".
    pub const SAME: u8 = 14;
    /// There were too few runs or sessions to judge a trial, and `--fail-on` names no-verdict.
    pub const NO_VERDICT: u8 = 15;
    /// The user interrupted. Completed runs are kept.
    pub const INTERRUPTED: u8 = 130;
}

/// What a verb returns: nothing, or the error that ends the program.
pub type VerbResult = Result<(), ExitError>;

/// The exit code of a failed verb, and its message; `None` if the message has already been printed or there is none.
#[derive(Debug)]
pub struct ExitError {
    code: u8,
    sentence: Option<String>,
}

impl ExitError {
    /// An error with this exit code and the message `sentence`.
    pub fn with(code: u8, sentence: impl Display) -> ExitError {
        ExitError { code, sentence: Some(sentence.to_string()) }
    }

    /// A usage error with the message `sentence`.
    pub fn usage(sentence: impl Display) -> ExitError {
        ExitError::with(exit::USAGE, sentence)
    }

    /// A failure with the message `sentence`.
    pub fn failed(sentence: impl Display) -> ExitError {
        ExitError::with(exit::FAILED, sentence)
    }

    /// The same error with another exit code.
    pub fn map_code(self, new: impl FnOnce(u8) -> u8) -> ExitError {
        ExitError { code: new(self.code), ..self }
    }

    /// An exit code without a message.
    pub fn code(code: u8) -> ExitError {
        ExitError { code, sentence: None }
    }
}

impl std::fmt::Display for ExitError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.sentence.as_deref().unwrap_or_default())
    }
}

/// A plain string is the message of a usage error.
impl From<String> for ExitError {
    fn from(sentence: String) -> ExitError {
        ExitError::usage(sentence)
    }
}

impl From<OutputError> for ExitError {
    fn from(error: OutputError) -> ExitError {
        ExitError::failed(error)
    }
}

impl From<serde_json::Error> for ExitError {
    fn from(error: serde_json::Error) -> ExitError {
        ExitError::failed(error)
    }
}

/// An error while writing to standard output. If the reader has closed the pipe, the exit code is 0.
impl From<io::Error> for ExitError {
    fn from(error: io::Error) -> ExitError {
        match error.kind() {
            io::ErrorKind::BrokenPipe => ExitError::code(0),
            _ => ExitError::failed(error),
        }
    }
}

/// Prints the message, if any, and returns the exit code.
pub fn finish(result: VerbResult) -> u8 {
    match result {
        Ok(()) => 0,
        Err(ExitError { code, sentence }) => {
            if let Some(sentence) = sentence {
                say_error(sentence);
            }
            code
        }
    }
}

/// Prints an error message to standard error.
pub fn say_error(sentence: impl Display) {
    say(format_args!("pipemark: {sentence}"));
}

/// Writes a message to standard error, with one write(2), so that lines of several processes aren't joined. Removes
/// error numbers and escapes control characters. Write errors are ignored.
pub fn say(text: impl Display) {
    let lines: Vec<String> = without_error_numbers(&text.to_string()).lines().map(escape_line).collect();
    let _ = io::stderr().write_all((lines.join("\n") + "\n").as_bytes());
}

/// Removes the ` (os error N)` that std appends to messages.
fn without_error_numbers(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(" (os error ") {
        kept.push_str(before);
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    kept + rest
}

/// Escapes the characters of a line that a terminal would interpret.
fn escape_line(line: &str) -> String {
    line.chars()
        .map(|c| if is_control_or_invisible(c) { c.escape_unicode().to_string() } else { c.to_string() })
        .collect()
}

/// Checks that standard output is open. Used by code that doesn't write through a [`crate::Destination`].
///
/// # Errors
/// If standard output was closed when the program started.
pub fn check_stdout() -> Result<(), ExitError> {
    match stdout_was_closed() {
        true => Err(ExitError::failed("standard output is closed; redirect it, for example to /dev/null")),
        false => Ok(()),
    }
}

/// Starts the guards, which clean up if this process is killed, and catches interrupts. Call it before a measurement.
///
/// # Errors
/// If /proc isn't mounted, or signals cannot be caught.
pub fn catch_interrupts() -> Result<Interrupt, ExitError> {
    guard::start();
    // Writers and readers are started through /proc/self/exe.
    if !Path::new("/proc/self/exe").exists() {
        return Err(ExitError::failed("pipemark needs /proc, which is not mounted; as root: mount -t proc proc /proc"));
    }
    Interrupt::catch().map_err(|error| ExitError::failed(format_args!("cannot catch signals: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_numbers_are_omitted() {
        let text = "a: No such file or directory (os error 2); b: Broken pipe (os error 32)";
        assert_eq!(without_error_numbers(text), "a: No such file or directory; b: Broken pipe");
        assert_eq!(without_error_numbers("nothing of that kind"), "nothing of that kind");
    }
}
