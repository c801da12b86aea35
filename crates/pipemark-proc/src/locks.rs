//! Finds the processes that wait for a file lock (flock(2), fcntl(2)) and those that hold it, from /proc.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

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
    target(open_files(pid).get(&file.inode)?)
}

/// The regular files that a process has open: for each inode, the descriptor's link in /proc.
fn open_files(pid: u32) -> BTreeMap<u64, PathBuf> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten().map(|entry| entry.path());
    let file = |link: PathBuf| {
        let about = fs::metadata(&link).ok().filter(fs::Metadata::is_file)?;
        Some((about.ino(), link))
    };
    entries.filter_map(file).collect()
}

fn target(link: &Path) -> Option<String> {
    Some(fs::read_link(link).ok()?.to_string_lossy().into_owned())
}

/// The locks of all processes at one moment.
pub struct Locks(Vec<Lock>);

impl Locks {
    /// Reads the locks; `None` if the kernel doesn't report them.
    pub fn read() -> Option<Locks> {
        let text = fs::read_to_string("/proc/locks").ok()?;
        Some(Locks(text.lines().filter_map(lock_of).collect()))
    }

    /// Another process that holds a lock on a file which the process `pid` has open: the file's path and the pid of the
    /// holder. If `pid` waits in a call for a lock, only that lock counts. `None` if there is none.
    pub fn held_by_other(&self, pid: u32) -> Option<(String, u32)> {
        let is_other = |lock: &&Lock| !lock.waits && lock.pid > 0 && lock.pid != i64::from(pid);
        // Usually no lock concerns the process. Listing its open files is cheaper than reading what it has locked.
        self.0.iter().find(is_other)?;
        let open = open_files(pid);
        let concerns: Vec<&Lock> =
            self.0.iter().filter(is_other).filter(|lock| open.contains_key(&lock.file.inode)).collect();
        concerns.first()?;
        let wanted = self.0.iter().find(|lock| lock.waits && lock.pid == i64::from(pid)).map(|lock| &lock.file);
        // A process that inherited a lock's descriptor holds the lock too.
        let own = held_by(pid);
        let fits = |file: &LockedFile| wanted.map_or_else(|| !own.contains(file), |wanted| wanted == file);
        let held = concerns.into_iter().filter(|lock| fits(&lock.file));
        let named = |lock: &Lock| Some((target(&open[&lock.file.inode])?, u32::try_from(lock.pid).ok()?));
        held.filter_map(named).next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held_by_other(pid: u32) -> Option<(String, u32)> {
        Locks::read().unwrap().held_by_other(pid)
    }

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

    #[test]
    fn the_holder_of_a_lock_on_an_open_file_is_found() {
        let path = std::env::temp_dir().join(format!("pipemark-held-{}", std::process::id()));
        let own = std::process::id();
        let file = fs::File::create(&path).unwrap();
        assert_eq!(held_by_other(own), None);
        let mut holder =
            std::process::Command::new("flock").arg("--no-fork").arg(&path).args(["sleep", "60"]).spawn().unwrap();
        let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while held_by_other(own).is_none() && std::time::Instant::now() < end {
            std::thread::yield_now();
        }
        assert_eq!(held_by_other(own), Some((path.to_string_lossy().into_owned(), holder.id())));
        drop(file);
        assert_eq!(held_by_other(own), None);
        let inherited = fs::File::open(&path).unwrap();
        holder.kill().unwrap();
        holder.wait().unwrap();
        rustix::fs::flock(&inherited, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
        let mut child = std::process::Command::new("sleep").arg("60").stdin(inherited).spawn().unwrap();
        assert_eq!(held_by_other(child.id()), None, "it holds the lock too");
        child.kill().unwrap();
        child.wait().unwrap();
        fs::remove_file(path).unwrap();
    }
}
