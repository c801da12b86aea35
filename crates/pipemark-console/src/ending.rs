//! What all verbs do alike: how they end, what they then say, and their exit codes.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;

use pipeio_harness::start::stdout_was_closed;

use pipemark_host::child::{Interrupt, guard};
use pipemark_model::hides;

use crate::destination::OutputError;

/// Exit codes, the same for every verb.
pub mod exit {
    /// A trial failed, or a result could not be written.
    pub const FAILED: u8 = 1;
    /// Bad usage: flags, suites or values that make no sense, or a named thing that doesn't exist. clap's own.
    pub const USAGE: u8 = 2;
    /// Data did not verify.
    pub const NOT_VERIFIED: u8 = 3;
    /// A verdict of `compare` or `ab` that `--fail-on` asked for, and likewise below.
    pub const WORSE: u8 = 10;
    /// A trial that is on one side only, or was not measured on both.
    pub const MISSING: u8 = 11;
    /// See [`WORSE`].
    pub const INCONCLUSIVE: u8 = 12;
    /// See [`WORSE`].
    pub const BETTER: u8 = 13;
    /// See [`WORSE`].
    pub const SAME: u8 = 14;
    /// `compare` had too few sessions to judge a trial at all, and `--fail-on no-verdict` asked for it.
    pub const NO_VERDICT: u8 = 15;
    /// Interrupted; what was measured until then is kept.
    pub const INTERRUPTED: u8 = 130;
}

/// How a verb ends.
pub type VerbResult = Result<(), ExitError>;

/// Why a verb ends with a code other than 0, and what is to be said about it, if it hasn't been said.
#[derive(Debug)]
pub struct ExitError {
    code: u8,
    sentence: Option<String>,
}

impl ExitError {
    /// With a sentence.
    pub fn with(code: u8, sentence: impl Display) -> ExitError {
        ExitError { code, sentence: Some(sentence.to_string()) }
    }

    /// What was typed makes no sense.
    pub fn usage(sentence: impl Display) -> ExitError {
        ExitError::with(exit::USAGE, sentence)
    }

    /// Something went wrong.
    pub fn failed(sentence: impl Display) -> ExitError {
        ExitError::with(exit::FAILED, sentence)
    }

    /// With nothing more to say.
    pub fn code(code: u8) -> ExitError {
        ExitError { code, sentence: None }
    }
}

impl std::fmt::Display for ExitError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.sentence.as_deref().unwrap_or_default())
    }
}

/// What was typed is wrong: all that says so is a sentence.
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

/// Of standard output: a reader that left early is no error.
impl From<io::Error> for ExitError {
    fn from(error: io::Error) -> ExitError {
        match error.kind() {
            io::ErrorKind::BrokenPipe => ExitError::code(0),
            _ => ExitError::failed(error),
        }
    }
}

/// Says what there is to say, and gives the exit code.
pub fn end(ending: VerbResult) -> u8 {
    match ending {
        Ok(()) => 0,
        Err(ExitError { code, sentence }) => {
            if let Some(sentence) = sentence {
                say_error(sentence);
            }
            code
        }
    }
}

/// Says what went wrong.
pub fn say_error(sentence: impl Display) {
    say(format_args!("pipemark: {sentence}"));
}

/// Writes a message to standard error, without control characters and error numbers. That nobody listens is no error.
pub fn say(text: impl Display) {
    let lines: Vec<String> = without_error_numbers(&text.to_string()).lines().map(harmless).collect();
    let _ = writeln!(io::stderr(), "{}", lines.join("\n"));
}

/// `No such file or directory` where std writes `No such file or directory (os error 2)`.
fn without_error_numbers(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(" (os error ") {
        kept.push_str(before);
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    kept + rest
}

/// A line as it is, but for what a terminal would act on.
fn harmless(line: &str) -> String {
    line.chars().map(|c| if hides(c) { c.escape_unicode().to_string() } else { c.to_string() }).collect()
}

/// For who writes to standard output in other ways than by a [`crate::Destination`].
///
/// # Errors
/// When it was closed at the start.
pub fn check_stdout() -> Result<(), ExitError> {
    match stdout_was_closed() {
        true => Err(ExitError::failed("standard output is closed; redirect it, such as to /dev/null")),
        false => Ok(()),
    }
}

/// Takes over Ctrl-C for as long as something is measured, where it can be.
pub fn catch_interrupts() -> Result<Interrupt, ExitError> {
    guard::start();
    // Each end is this program again.
    if !Path::new("/proc/self/exe").exists() {
        return Err(ExitError::failed("/proc is not mounted, and pipemark needs it: mount -t proc proc /proc"));
    }
    Interrupt::catch().map_err(|error| ExitError::failed(format_args!("signals cannot be caught: {error}")))
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
