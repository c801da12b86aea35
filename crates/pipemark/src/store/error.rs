//! Why the history can't be used: sentences for the person at the terminal.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use super::{Id, PATIENCE};

/// What went wrong, and with which database.
#[derive(Debug)]
pub struct HistoryError {
    /// Where there is a place at all.
    path: Option<PathBuf>,
    cause: Cause,
}

/// What went wrong.
#[derive(Debug)]
pub enum Cause {
    /// There is no place to keep it; why not.
    NoPlace(String),
    /// A folder on the way to it can't be made or found.
    Folder(PathBuf, io::Error),
    /// The file can't be made or looked at.
    File(io::Error),
    /// It is no file, or not the user's alone; what to do instead.
    NotOwn(String),
    /// It is a database, and none of pipemark's.
    Foreign,
    /// Its form has a higher number than is known here.
    Newer {
        /// The form's number.
        found: i64,
        /// The highest number known.
        known: i64,
    },
    /// A document that does not say when it was measured.
    NoTime(String),
    /// A document that can't be read again.
    Unreadable(Id, String),
    /// It could not be told as JSON in the first place.
    NoJson(io::Error),
    /// SQLite's own.
    Database(rusqlite::Error),
}

impl From<rusqlite::Error> for Cause {
    fn from(error: rusqlite::Error) -> Cause {
        Cause::Database(error)
    }
}

impl HistoryError {
    pub(super) fn new(path: &Path, cause: Cause) -> HistoryError {
        HistoryError { path: Some(path.to_owned()), cause }
    }

    /// Of a document that has no JSON to be kept.
    pub fn no_json(error: io::Error) -> HistoryError {
        HistoryError { path: None, cause: Cause::NoJson(error) }
    }

    pub(super) fn nowhere(reason: impl Into<String>) -> HistoryError {
        HistoryError { path: None, cause: Cause::NoPlace(reason.into()) }
    }
}

impl fmt::Display for HistoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Debug shows control characters of a name escaped, without the quotes that it adds.
        let shown = |path: &Path| path.to_string_lossy().escape_debug().to_string();
        let path = self.path.as_deref().map(shown).unwrap_or_default();
        match &self.cause {
            Cause::NoPlace(reason) => f.write_str(reason),
            Cause::Folder(folder, error) => {
                write!(f, "the folder {} of the history can't be used: {}; use --db FILE", shown(folder), words(error))
            }
            Cause::File(error) => write!(f, "{path} can't be opened: {}; use another --db FILE", words(error)),
            Cause::NoJson(error) => write!(f, "{error}; this is an error in pipemark, please report it"),
            Cause::NotOwn(why) => write!(f, "{path} {why}"),
            Cause::Foreign => write!(f, "{path} is a database of another program; use another --db FILE"),
            Cause::Newer { found, known } => write!(
                f,
                "{path} was written by a newer pipemark (form {found}, and this one knows {known}); it is left as it is: update \
                 pipemark, or use another --db FILE"
            ),
            Cause::NoTime(text) => {
                write!(f, "'{}' is no time of measurement, so the document has no place in {path}", text.escape_debug())
            }
            Cause::Unreadable(id, error) => write!(
                f,
                "run {id} of {path} can't be read: {error}; 'pipemark history export {id}' writes it as it is"
            ),
            Cause::Database(error) => database(f, &path, error),
        }
    }
}

impl Error for HistoryError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.cause {
            Cause::Folder(_, error) | Cause::File(error) | Cause::NoJson(error) => Some(error),
            Cause::Database(error) => Some(error),
            _ => None,
        }
    }
}

/// What the system says, without the number behind it.
fn words(error: &io::Error) -> String {
    let text = error.to_string();
    text.split_once(" (os error").map_or(text.clone(), |(words, _)| words.to_owned())
}

fn database(f: &mut fmt::Formatter<'_>, path: &str, error: &rusqlite::Error) -> fmt::Result {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => write!(
            f,
            "{path} was locked by another process for {} seconds; end it, or use another --db FILE",
            PATIENCE.as_secs()
        ),
        Some(ErrorCode::DiskFull) => write!(f, "the disk of {path} is full; free some space, or use another --db FILE"),
        Some(ErrorCode::ReadOnly) => write!(f, "{path} or its folder can't be written to; use another --db FILE"),
        Some(ErrorCode::CannotOpen) => {
            write!(f, "{path} or its journal can't be opened; see the folder's permissions, or use another --db FILE")
        }
        Some(ErrorCode::NotADatabase) => write!(f, "{path} is no SQLite database; use another --db FILE"),
        Some(ErrorCode::DatabaseCorrupt) => write!(
            f,
            "{path} is damaged ({error}); move it away, and save what can be saved with 'sqlite3 FILE .recover'"
        ),
        Some(ErrorCode::SystemIoFailure) => {
            write!(f, "{path} can't be read or written ({error}): the disk or a limit (ulimit -f) refused it")
        }
        _ => write!(f, "{path}: {error}"),
    }
}
