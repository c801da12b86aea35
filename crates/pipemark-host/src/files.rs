//! Reads small text files such as those in /proc and /sys. Returns `None` for a file that is missing, unreadable or
//! malformed.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use pipemark_model::Cpu;

/// The maximum number of bytes read from a file. The longest file is the mount table of a machine with hundreds of
/// containers.
const MAX_BYTES: u64 = 256 << 10;

/// The file system to read from: this machine's, or a sample of another machine's.
pub struct SystemFiles {
    root: PathBuf,
}

impl SystemFiles {
    /// This machine's files.
    pub fn live() -> SystemFiles {
        SystemFiles::below("/")
    }

    /// The files under `root`, which stands for a machine's root directory.
    pub fn below(root: impl Into<PathBuf>) -> SystemFiles {
        SystemFiles { root: root.into() }
    }

    fn locate(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// The first `bytes` bytes of a file. The kernel generates some files while they are read, so a shorter read is
    /// cheaper.
    pub fn read_prefix(&self, path: impl AsRef<Path>, bytes: u64) -> Option<String> {
        // Enough to read most files at once.
        let mut text = Vec::with_capacity(4096);
        File::open(self.locate(path)).ok()?.take(bytes).read_to_end(&mut text).ok()?;
        Some(String::from_utf8_lossy(&text).into_owned())
    }

    /// The text of a file.
    pub fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        self.read_prefix(path, MAX_BYTES)
    }

    /// The only line of a file, trimmed; `None` if the line is empty.
    pub fn line(&self, path: impl AsRef<Path>) -> Option<String> {
        let text = self.text(path)?;
        let line = text.trim();
        (!line.is_empty()).then(|| line.to_owned())
    }

    /// The only line of a file, parsed.
    pub fn value<T: FromStr>(&self, path: impl AsRef<Path>) -> Option<T> {
        self.line(path)?.parse().ok()
    }

    /// The number after `key` in a file of lines `KEY NUMBER`; `None` if no line has this key.
    pub fn entry(&self, path: impl AsRef<Path>, key: &str) -> Option<u64> {
        let text = self.text(path)?;
        text.lines().filter_map(|line| line.split_once(' ')).find(|(name, _)| *name == key)?.1.trim().parse().ok()
    }

    /// Whether the file exists.
    pub fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.locate(path).exists()
    }

    /// The sorted names in a directory; empty if the directory cannot be read.
    pub fn names(&self, path: impl AsRef<Path>) -> Vec<String> {
        let Ok(entries) = self.locate(path).read_dir() else { return Vec::new() };
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }
}

/// Parses a list of CPUs such as `0-3,8,10-11`; `None` if the text isn't such a list.
pub fn cpu_list(text: &str) -> Option<Vec<Cpu>> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u16, u16) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        cpus.extend((first..=last).take_while(|&cpu| cpu < Cpu::LIMIT).map(Cpu));
    }
    Some(cpus)
}

/// Formats CPUs as a list such as `0-3,8`.
pub fn show_cpu_list(cpus: &[Cpu]) -> String {
    let runs = cpus.chunk_by(|a, b| a.0.checked_add(1) == Some(b.0));
    let parts: Vec<String> = runs
        .map(|run| match run {
            [only] => only.to_string(),
            [first, .., last] => format!("{first}-{last}"),
            [] => unreachable!("chunk_by gives no empty chunks"),
        })
        .collect();
    parts.join(",")
}

/// The first non-empty value after `KEY:` in texts such as /proc/self/status and /proc/cpuinfo.
pub fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim()).filter(|value| !value.is_empty())
    })
}

#[cfg(test)]
pub mod sample {
    //! A temporary file system root with a few files, for tests.

    use std::fs;
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicU32, Ordering};

    use crate::files::SystemFiles;

    /// The root directory, removed when dropped.
    pub struct Tree {
        root: PathBuf,
        pub files: SystemFiles,
    }

    impl Tree {
        pub fn new(contents: &[(&str, &str)]) -> Tree {
            static COUNT: AtomicU32 = AtomicU32::new(0);
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let root = std::env::temp_dir().join(format!("pipemark-host-{}-{number}", std::process::id()));
            for (path, text) in contents {
                let path = root.join(path.trim_start_matches('/'));
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Tree { files: SystemFiles::below(&root), root }
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.root);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_are_read_and_shown_alike() {
        for list in ["0", "0-3", "0-1,4,6-7", ""] {
            assert_eq!(show_cpu_list(&cpu_list(list).unwrap()), list);
        }
        assert_eq!(cpu_list("0-65535").unwrap().len(), usize::from(Cpu::LIMIT));
        assert_eq!(cpu_list("3-1"), Some(vec![]));
        assert_eq!(cpu_list("zero"), None);
    }

    #[test]
    fn missing_files_are_none() {
        let files = SystemFiles::below("/nonexistent");
        assert_eq!(files.text("/proc/stat"), None);
        assert_eq!(files.value::<u64>("/proc/sys/fs/pipe-max-size"), None);
        assert!(files.names("/sys/devices").is_empty());
        assert!(!files.exists("/.dockerenv"));
    }

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "model\t\t: 17\nmodel name\t: AMD EPYC\nflags\t\t:\n";
        assert_eq!(field(text, "model name"), Some("AMD EPYC"));
        assert_eq!(field(text, "model"), Some("17"));
        assert_eq!(field(text, "flags"), None);
    }
}
