//! Finds the processes that wait for a file lock (flock(2), fcntl(2)) and those that hold it, from /proc.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;

/// A locked file, identified as in /proc/locks: by the device's numbers and the inode.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LockedFile {
    device: String,
    inode: u64,
    /// Whether the lock belongs to a process, like a lock of fcntl(2). Other locks belong to a descriptor, which
    /// children inherit.
    pub of_process: bool,
}

/// A line of /proc/locks.
struct Lock {
    /// Whether the process waits for the lock.
    waits: bool,
    /// 0 or negative if the kernel doesn't report it.
    pid: i64,
    file: LockedFile,
}

/// Parses a line such as `7: -> FLOCK  ADVISORY  WRITE 5072 fd:01:2756 0 EOF`.
fn lock_of(line: &str) -> Option<Lock> {
    let mut words = line.split_ascii_whitespace().skip(1).peekable();
    let waits = words.next_if_eq(&"->").is_some();
    // Leases aren't locks.
    let kind = words.next().filter(|kind| ["FLOCK", "POSIX", "OFDLCK"].contains(kind))?;
    let pid = words.nth(2)?.parse().ok()?;
    let (device, inode) = words.next()?.rsplit_once(':')?;
    let (device, inode) = (device.to_owned(), inode.parse().ok()?);
    Some(Lock { waits, pid, file: LockedFile { device, inode, of_process: kind == "POSIX" } })
}

/// The file whose lock a process waits for; `None` if it waits for none, or if the kernel doesn't report it.
pub fn waited_for(pid: u32) -> Option<LockedFile> {
    let text = fs::read_to_string("/proc/locks").ok()?;
    let found = text.lines().filter_map(lock_of).find(|lock| lock.waits && lock.pid == i64::from(pid));
    found.map(|lock| lock.file)
}

/// The files that a process has locked, or that were locked through a descriptor that the process has inherited.
pub fn held_by(pid: u32) -> BTreeSet<LockedFile> {
    let entries = fs::read_dir(format!("/proc/{pid}/fdinfo")).into_iter().flatten().flatten();
    let texts = entries.filter_map(|entry| fs::read_to_string(entry.path()).ok());
    let locks =
        |text: String| text.lines().filter(|line| line.starts_with("lock:")).filter_map(of_descriptor).collect();
    texts.flat_map(|text| -> Vec<LockedFile> { locks(text) }).collect()
}

/// Parses a line of fdinfo, which is `lock:` followed by a line of /proc/locks.
fn of_descriptor(line: &str) -> Option<LockedFile> {
    lock_of(line.strip_prefix("lock:")?).map(|lock| lock.file)
}

/// The path under which a process has a file open; `None` if it doesn't have it open.
pub fn path_of(pid: u32, file: &LockedFile) -> Option<String> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten();
    let mut paths = entries.map(|entry| entry.path());
    let found =
        paths.find(|path| fs::metadata(path).is_ok_and(|about| about.is_file() && about.ino() == file.inode))?;
    Some(fs::read_link(found).ok()?.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_proc_locks_are_read() {
        let waits = lock_of("7: -> FLOCK  ADVISORY  WRITE 5072 fd:01:2756 0 EOF").unwrap();
        assert!(waits.waits && waits.pid == 5072 && waits.file.inode == 2756 && waits.file.device == "fd:01");
        let holds = lock_of("7: POSIX  ADVISORY  READ -1 00:2d:99 1073741826 1073742335").unwrap();
        assert!(!holds.waits && holds.pid == -1);
        assert_eq!(of_descriptor("lock:\t1: FLOCK  ADVISORY  WRITE 5072 fd:01:2756 0 EOF"), Some(waits.file));
        for other in ["8: LEASE  ACTIVE    READ  5 fd:01:2756 0 EOF", "", "9: FLOCK", "pos:\t0"] {
            assert!(lock_of(other).is_none(), "{other}");
        }
    }

    #[test]
    fn a_lock_of_this_process_is_found() {
        let path = std::env::temp_dir().join(format!("pipemark-lock-{}", std::process::id()));
        let file = fs::File::create(&path).unwrap();
        file.lock().unwrap();
        let own = std::process::id();
        // The test itself may run under flock(1).
        let found = held_by(own).into_iter().any(|file| path_of(own, &file).as_deref() == path.to_str());
        fs::remove_file(&path).unwrap();
        assert!(found);
        assert_eq!(waited_for(own), None);
    }
}
