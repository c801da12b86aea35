//! Why a run gave no sample; and errors of the kernel, with advice.

use std::fmt;
use std::io;

use rustix::io::Errno;

/// Why a run gave no sample.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// Something went wrong; the text is a message.
    #[error("{0}")]
    Failed(String),
    /// The bytes that arrived are not the bytes that were sent; the text is a message.
    #[error("{0}")]
    Unverified(String),
    /// This machine can't do it or lacks something that it needs; the text is a message.
    #[error("{0}")]
    NotHere(String),
    /// The user interrupted.
    #[error("interrupted")]
    Interrupted,
}

impl RunError {
    /// Turns an error into a failure of `what`.
    pub fn failed<E: fmt::Display>(what: impl fmt::Display) -> impl FnOnce(E) -> RunError {
        move |error| RunError::Failed(format!("{what}: {error}"))
    }
}

/// The error, followed by advice if there is any.
pub fn explained(error: &io::Error) -> String {
    let advice = match Errno::from_io_error(error) {
        Some(Errno::NOMEM) => "lower --block or --pairs, or raise the memory limit (ulimit -v, docker run --memory)",
        Some(Errno::MFILE) => "lower --pairs, or raise the limit of open files (ulimit -n)",
        Some(Errno::NFILE) => "lower --pairs, or raise the system's limit of open files (/proc/sys/fs/file-max)",
        Some(Errno::AGAIN) => "lower --pairs, or raise the limit of processes (ulimit -u, docker run --pids-limit)",
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
