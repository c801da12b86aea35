//! Errors of the history, as sentences for the user.

use std::io;
use std::path::Path;

use rusqlite::ErrorCode;

use pipemark_model::without_errno;

use crate::store::LOCK_TIMEOUT;

/// An error of the history file, as a sentence that says what to do.
#[derive(Debug, thiserror::Error)]
#[error("{path}{what}")]
pub struct HistoryError {
    /// The path as shown to the user; empty if `what` is the whole sentence.
    path: String,
    what: String,
}

impl HistoryError {
    /// An error with a complete sentence.
    pub(super) fn new(sentence: impl Into<String>) -> HistoryError {
        HistoryError { path: String::new(), what: sentence.into() }
    }

    /// An error of the file at `path`. `what` is the rest of a sentence that begins with the file's name.
    pub(super) fn of(path: &Path, what: impl Into<String>) -> HistoryError {
        HistoryError::new(what).at(path)
    }

    /// Adds the file's name if the error doesn't name one yet.
    pub(super) fn at(mut self, path: &Path) -> HistoryError {
        if self.path.is_empty() {
            self.path = escaped_path(path) + " ";
        }
        self
    }

    /// Adds advice for a file system without locks. On such a file system, the lock directory of a killed process
    /// remains.
    pub(super) fn without_locks(mut self, locks: bool, path: &Path) -> HistoryError {
        if !locks && self.what.contains("locked by another process") {
            self.what.push_str(&format!(
                "; its file system has no locks: if no pipemark process is running, remove the directory {}.lock",
                escaped_path(path)
            ));
        }
        self
    }

    pub(super) fn directory(directory: &Path, error: &io::Error) -> HistoryError {
        let what = format!("can't be used as the history's directory: {}; use --db FILE", without_errno(error));
        HistoryError::of(directory, what)
    }

    pub(super) fn file(path: &Path, error: &io::Error) -> HistoryError {
        HistoryError::of(path, format!("can't be opened: {}; use another --db FILE", without_errno(error)))
    }
}

/// A path in which characters that a terminal would act on are escaped.
pub(super) fn escaped_path(path: &Path) -> String {
    path.to_string_lossy().escape_debug().to_string()
}

impl From<rusqlite::Error> for HistoryError {
    fn from(error: rusqlite::Error) -> HistoryError {
        HistoryError::new(match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                let seconds = LOCK_TIMEOUT.as_secs();
                format!(
                    "was locked by another process for {seconds} seconds; end that process, or use another --db FILE"
                )
            }
            Some(ErrorCode::DiskFull) => "is on a full disk; free some space, or use another --db FILE".into(),
            Some(ErrorCode::ReadOnly) => "or its directory can't be written to; use another --db FILE".into(),
            Some(ErrorCode::CannotOpen) => {
                "or its journal can't be opened; see the directory's permissions, or use another --db FILE".into()
            }
            Some(ErrorCode::NotADatabase) => "is not an SQLite database; use another --db FILE".into(),
            Some(ErrorCode::DatabaseCorrupt) => {
                format!("is damaged ({error}); move it away, and recover its data with 'sqlite3 FILE .recover'")
            }
            Some(ErrorCode::SystemIoFailure) => {
                format!("can't be read or written ({error}): the disk or a limit (ulimit -f) refused it")
            }
            _ => format!("can't be used: {error}"),
        })
    }
}

impl From<HistoryError> for pipemark_console::ExitError {
    fn from(error: HistoryError) -> Self {
        pipemark_console::ExitError::failed(error)
    }
}
