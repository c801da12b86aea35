//! The directory of a run, and everything else that a link named after it. Nothing of it outlives the run.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use pipemark_host::child::guard;

/// The first word of such a directory in the list of names for the guards.
pub const LEFTOVERS: &str = "outside";

/// Where shared memory and message queues have names.
const NAMESPACES: [&str; 2] = ["/dev/shm", "/dev/mqueue"];

/// The directory of one run. Dropping it removes it.
pub(crate) struct RunDirectory(pub PathBuf);

impl RunDirectory {
    /// # Errors
    /// If the directory can't be created.
    pub(crate) fn create() -> io::Result<RunDirectory> {
        let mut random = [0u8; 8];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
        let path = std::env::temp_dir().join(format!("pipemark-{:016x}", u64::from_le_bytes(random)));
        guard::remember(&format!("{LEFTOVERS} {}", path.display()));
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(RunDirectory(path))
    }

    /// A name for what a link names elsewhere: unique, without a slash.
    pub(crate) fn name(&self) -> String {
        self.0.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The text with the directory in place of `{run}`, and its name in place of `{name}`.
    pub(crate) fn fill_in(&self, text: &str) -> String {
        text.replace("{run}", &self.0.to_string_lossy()).replace("{name}", &self.name())
    }

    /// Creates a named pipe in the directory.
    ///
    /// # Errors
    /// If the file system has none.
    pub(crate) fn pipe(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.0.join(name);
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
        Ok(path)
    }
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        remove(&self.0.to_string_lossy());
    }
}

/// Removes the directory of a run, and the shared memory, directories in it and message queues whose names contain the
/// directory's name.
pub fn remove(directory: &str) {
    let directory = Path::new(directory);
    let Some(name) = directory.file_name().and_then(|name| name.to_str()).filter(|name| name.starts_with("pipemark-"))
    else {
        return;
    };
    let _ = fs::remove_dir_all(directory);
    for namespace in NAMESPACES {
        for entry in fs::read_dir(namespace).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().contains(name) {
                let _ = match entry.file_type() {
                    Ok(kind) if kind.is_dir() => fs::remove_dir_all(entry.path()),
                    _ => fs::remove_file(entry.path()),
                };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_with_the_name_of_a_run_outlives_it() {
        let directory = RunDirectory::create().unwrap();
        let path = directory.0.clone();
        let name = directory.name();
        assert_eq!(directory.fill_in("{run}/x {name}-y"), format!("{}/x {name}-y", path.display()));
        directory.pipe("x").unwrap();
        let shared = Path::new("/dev/shm").join(format!("prefix-{name}-suffix"));
        let other = Path::new("/dev/shm").join(format!("pipemark-test-{}", std::process::id()));
        fs::write(&other, "").unwrap();
        let has_shared = fs::create_dir(&shared).and_then(|()| fs::write(shared.join("x"), "")).is_ok();
        drop(directory);
        assert!(!path.exists() && (!has_shared || !shared.exists()));
        assert!(other.exists());
        fs::remove_file(&other).unwrap();
        // A name that isn't of a run is left alone.
        let kept = tempfile::tempdir().unwrap();
        remove(&kept.path().to_string_lossy());
        assert!(kept.path().exists());
    }
}
