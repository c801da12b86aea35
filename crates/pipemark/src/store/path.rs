//! The file of the history and its directory, which must belong to the user. Nothing is written through a symbolic link
//! or into a file that others could have put there, and new files and directories are private from the start.

use std::fs::{self, DirBuilder, Metadata, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::{env, io};

use rustix::io::Errno;
use rustix::process::geteuid;

use crate::store::HistoryError;
use crate::store::error::escaped_path;

/// The default path of the history, by the XDG base directory specification.
///
/// # Errors
/// If the environment names no place.
pub fn default_path() -> Result<PathBuf, HistoryError> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let directory = match (set("XDG_DATA_HOME"), set("HOME")) {
        (Some(data), _) if data.is_absolute() => data,
        (Some(data), _) => {
            return Err(HistoryError::new(format!(
                "XDG_DATA_HOME is '{}', which is not an absolute path, so there is no place for the history; correct it, or use --db FILE",
                escaped_path(&data)
            )));
        }
        (None, Some(home)) if home.is_absolute() => home.join(".local/share"),
        (None, _) => {
            return Err(HistoryError::new(
                "neither XDG_DATA_HOME nor HOME is set to an absolute path, so there is no place for the history; use --db FILE",
            ));
        }
    };
    Ok(directory.join("pipemark/history.db"))
}

/// Creates the directory of the default path, and missing ones above it, for the user alone.
pub(super) fn create_directory(path: &Path) -> Result<(), HistoryError> {
    let directory = parent_directory(path);
    // The nearest existing directory, with links followed. Under sudo, HOME may belong to another user, and a link may
    // lead to another user's directory.
    let nearest = directory.ancestors().find_map(|above| Some((above, fs::metadata(above).ok()?)));
    if let Some((above, metadata)) = nearest
        && metadata.uid() != geteuid().as_raw()
        && (above == directory || geteuid().is_root())
    {
        return Err(HistoryError::of(
            above,
            format!("belongs to user {}, so the history isn't kept there; use --db FILE, or sudo -H", metadata.uid()),
        ));
    }
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(|error| HistoryError::directory(directory, &error))
}

/// The real path of the file at `path`. Creates the file if it doesn't exist.
pub(super) fn create(path: &Path) -> Result<PathBuf, HistoryError> {
    let real = real_path(path)?;
    // SQLite doesn't create the file, because it would use mode 0644 less the umask. The file is never created through
    // a link.
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&real) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(HistoryError::file(path, &error)),
        _ => check_owned(&real).map(|_| real),
    }
}

/// The real path of the file at `path`; `None` if it doesn't exist.
pub(super) fn find(path: &Path) -> Result<Option<PathBuf>, HistoryError> {
    // If the directory is missing, there is no file either.
    if fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return Ok(None);
    }
    let real = real_path(path)?;
    Ok(check_owned(&real)?.then_some(real))
}

/// `path` with links in its directory followed. If the file itself is a link, it is not followed, because SQLite
/// refuses such links too.
fn real_path(path: &Path) -> Result<PathBuf, HistoryError> {
    let Some(name) = path.file_name() else { return Err(HistoryError::of(path, "is a directory; name a file in it")) };
    let directory = parent_directory(path);
    Ok(fs::canonicalize(directory).map_err(|error| HistoryError::directory(directory, &error))?.join(name))
}

/// Whether the file system has locks. NFS without lockd, some FUSE file systems and 9p have none, and SQLite takes
/// their error for a lock of another process. The file must not be open elsewhere in this process, because closing it
/// here releases all of the process's locks on it.
pub(super) fn has_locks(path: &Path) -> bool {
    let Ok(file) = OpenOptions::new().read(true).open(path) else { return true };
    let lock = rustix::fs::fcntl_lock(&file, rustix::fs::FlockOperation::NonBlockingLockShared);
    !lock.is_err_and(means_no_locks)
}

/// Whether the error means that the file system has no locks. Otherwise another process may hold a lock.
fn means_no_locks(errno: Errno) -> bool {
    matches!(errno, Errno::NOLCK | Errno::NOSYS | Errno::OPNOTSUPP | Errno::INVAL)
}

fn parent_directory(path: &Path) -> &Path {
    path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The files beside a database that SQLite replays into it, or whose content it trusts. SQLite reads a write-ahead log
/// that it finds even if the database was never in that mode.
const COMPANIONS: [&str; 3] = ["-journal", "-wal", "-shm"];

/// Returns whether the file exists. Checks the owner of the file and of its [`COMPANIONS`].
fn check_owned(path: &Path) -> Result<bool, HistoryError> {
    let exists = |path: &Path| match fs::symlink_metadata(path) {
        Ok(metadata) => refusal_reason(&metadata).map_or(Ok(true), |why| Err(HistoryError::of(path, why))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(HistoryError::file(path, &error)),
    };
    for suffix in COMPANIONS {
        let mut companion = path.as_os_str().to_owned();
        companion.push(suffix);
        exists(Path::new(&companion))?;
    }
    exists(path)
}

/// Why a file must not be used; `None` if it may be used.
fn refusal_reason(metadata: &Metadata) -> Option<String> {
    let kind = metadata.file_type();
    if kind.is_symlink() {
        Some("is a symbolic link, which is not followed; use --db with the file itself".to_owned())
    } else if kind.is_dir() {
        Some("is a directory; use --db with a file in it".to_owned())
    } else if !kind.is_file() {
        Some("is not a regular file; use another --db FILE".to_owned())
    } else if metadata.uid() != geteuid().as_raw() {
        Some(format!("belongs to user {} and not to you; use another --db FILE", metadata.uid()))
    } else if metadata.mode() & 0o022 != 0 {
        Some("is writable by other users; if only you use it, run 'chmod 600' on it".to_owned())
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_of_another_process_is_no_lack_of_locks() {
        for errno in [Errno::AGAIN, Errno::ACCESS, Errno::INTR, Errno::BADF] {
            assert!(!means_no_locks(errno), "{errno:?}");
        }
        for errno in [Errno::NOLCK, Errno::NOSYS, Errno::OPNOTSUPP] {
            assert!(means_no_locks(errno), "{errno:?}");
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        assert!(has_locks(&path), "SQLite reports a file that can't be opened");
        fs::write(&path, "").unwrap();
        assert!(has_locks(&path));
    }
}
