//! Errors of runs, and advice for errors of the kernel.

use std::fmt;
use std::io;

use rustix::io::Errno;

/// Why a run gave no sample.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The run failed. The text is the error message.
    #[error("{0}")]
    Failed(String),
    /// The bytes that arrived differ from the bytes sent. The text is the error message.
    #[error("{0}")]
    Unverified(String),
    /// This machine doesn't support the run or lacks something that the run needs. The text is the error message.
    #[error("{0}")]
    NotHere(String),
    /// The user interrupted the run.
    #[error("interrupted")]
    Interrupted,
}

impl RunError {
    /// Returns a function that turns an error into [`RunError::Failed`] with the message `WHAT: ERROR`.
    pub fn failed<E: fmt::Display>(what: impl fmt::Display) -> impl FnOnce(E) -> RunError {
        move |error| RunError::Failed(format!("{what}: {error}"))
    }
}

/// The error's text, followed by advice if pipemark has any for this error.
pub fn explained(error: &io::Error) -> String {
    let advice = match Errno::from_io_error(error) {
        Some(Errno::NOMEM) => "lower --block or --pairs, or raise the memory limit (ulimit -v, docker run --memory)",
        Some(Errno::MFILE) => "lower --pairs, or raise the limit on open files (ulimit -n)",
        Some(Errno::NFILE) => "lower --pairs, or raise the system's limit on open files (/proc/sys/fs/file-max)",
        Some(Errno::AGAIN) => "lower --pairs, or raise the limit on processes (ulimit -u, docker run --pids-limit)",
        None if error.kind() == io::ErrorKind::OutOfMemory => "lower --block or --pairs",
        _ => return error.to_string(),
    };
    format!("{error}; {advice}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scarce_resource_is_named_with_its_limit() {
        for (errno, words) in [(Errno::NOMEM, "ulimit -v"), (Errno::MFILE, "ulimit -n"), (Errno::AGAIN, "ulimit -u")] {
            let text = explained(&errno.into());
            assert!(text.contains(words) && text.contains("os error"), "{text}");
        }
        assert_eq!(explained(&Errno::PIPE.into()), "Broken pipe (os error 32)");
    }
}
