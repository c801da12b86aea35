//! Finds the processes that wait for a file lock (flock(2), fcntl(2)) and those that hold it. Both rest on what the
//! kernel shows: a thread is in the call, /proc/locks has the request, and the descriptor's fdinfo has the lock. Inode
//! numbers alone prove nothing, because each file system has its own; and on btrfs and overlayfs, the device that
//! stat(2) reports isn't that of the lock.

use std::fs;

use crate::call;
use crate::process::{self, PipeId, Process};
use crate::state::LockKind;

/// Processes with more descriptors aren't searched, because each descriptor takes a few microseconds.
const MAX_DESCRIPTORS: usize = 4096;
/// The maximum number of threads of a process that are searched for a call that waits for a lock.
const MAX_THREADS: usize = 64;

/// A line of /proc/locks or of fdinfo.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Lock {
    /// The number that a lock and the requests which wait for it have in common.
    number: u64,
    /// Whether a process waits for the lock.
    waits: bool,
    held: Held,
}

/// A lock, as both files show it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Held {
    kind: LockKind,
    /// Whether others may hold it too.
    is_shared: bool,
    /// The process that took the lock, which may have ended since. Not positive if the kernel doesn't report it.
    pid: i64,
    /// The numbers of the device.
    device: String,
    inode: u64,
    range: [String; 2],
}

/// Parses a line such as `7: -> FLOCK  ADVISORY  WRITE 5072 fd:01:2756 0 EOF`.
fn lock_of(line: &str) -> Option<Lock> {
    let mut words = line.split_ascii_whitespace().peekable();
    let number = words.next()?.strip_suffix(':')?.parse().ok()?;
    let waits = words.next_if_eq(&"->").is_some();
    // Leases aren't locks.
    let kind = match words.next()? {
        "FLOCK" => LockKind::Flock,
        "POSIX" => LockKind::Process,
        "OFDLCK" => LockKind::OpenFile,
        _ => return None,
    };
    let is_shared = words.nth(1)? == "READ";
    let pid = words.next()?.parse().ok()?;
    let (device, inode) = words.next()?.rsplit_once(':')?;
    let (device, inode) = (device.to_owned(), inode.parse().ok()?);
    let range = [words.next()?.to_owned(), words.next()?.to_owned()];
    Some(Lock { number, waits, held: Held { kind, is_shared, pid, device, inode, range } })
}

/// What fdinfo shows of a descriptor: the file's inode on its file system, and the locks held through the descriptor.
#[derive(Debug, PartialEq, Eq)]
struct DescriptorInfo {
    mount: u64,
    inode: u64,
    locks: Vec<Held>,
}

impl DescriptorInfo {
    fn parse(text: &str) -> Option<DescriptorInfo> {
        let number = |key: &str| text.lines().find_map(|line| line.strip_prefix(key))?.trim().parse().ok();
        let locks = text.lines().filter_map(|line| lock_of(line.strip_prefix("lock:")?)).map(|lock| lock.held);
        Some(DescriptorInfo { mount: number("mnt_id:")?, inode: number("ino:")?, locks: locks.collect() })
    }

    fn read(thread: u32, fd: u32) -> Option<DescriptorInfo> {
        DescriptorInfo::parse(&fs::read_to_string(format!("/proc/{thread}/fdinfo/{fd}")).ok()?)
    }
}

/// A lock that a process waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwaitedLock {
    /// The path under which the process has the file open.
    pub path: String,
    /// The process that took the lock, which may have ended since; `None` if the kernel doesn't report it.
    pub taken_by: Option<u32>,
    held: Held,
    /// The mount of the waiting process's descriptor, and the file as stat(2) identifies it.
    mount: u64,
    file: PipeId,
}

/// The locks of all processes at one moment.
#[derive(Debug)]
pub struct Locks(Vec<Lock>);

impl Locks {
    /// Reads the locks; `None` if the kernel doesn't report them.
    pub fn read() -> Option<Locks> {
        let text = fs::read_to_string("/proc/locks").ok()?;
        Some(Locks(text.lines().filter_map(lock_of).collect()))
    }

    /// Whether any process waits for a lock.
    pub fn has_waits(&self) -> bool {
        self.0.iter().any(|lock| lock.waits)
    }

    /// The lock that a process waits for: one of its threads is in flock(2) or fcntl(2), and the kernel lists the
    /// request. `None` if there is none.
    pub fn awaited_by(&self, process: &Process) -> Option<AwaitedLock> {
        let is_own = |lock: &&Lock| lock.waits && (lock.held.pid <= 0 || lock.held.pid == i64::from(process.pid));
        self.0.iter().find(is_own)?;
        let calls = process.thread_ids().into_iter().take(MAX_THREADS);
        calls.filter_map(|id| call::lock_call(process.pid, id)).find_map(|(fd, kind)| {
            let about = DescriptorInfo::read(process.files_of, fd)?;
            let requests = self.0.iter().filter(is_own).filter(|request| request.held.kind == kind);
            // Requests for locks of open files have no pid.
            let request = requests.filter(|request| request.held.inode == about.inode);
            let request = request.max_by_key(|request| request.held.pid)?;
            let blocker = self.0.iter().find(|lock| !lock.waits && lock.number == request.number)?;
            let link = format!("/proc/{}/fd/{fd}", process.files_of);
            Some(AwaitedLock {
                path: fs::read_link(&link).ok()?.to_string_lossy().into_owned(),
                taken_by: u32::try_from(blocker.held.pid).ok().filter(|&pid| pid > 0),
                held: blocker.held.clone(),
                mount: about.mount,
                file: process::id_of(&link)?,
            })
        })
    }
}

impl AwaitedLock {
    /// Whether a process holds the lock: it has a descriptor of the same file, through which the kernel shows this lock
    /// as held.
    pub fn is_held_by(&self, process: &Process) -> bool {
        if process.others.files.len() > MAX_DESCRIPTORS {
            return false;
        }
        process.others.files.iter().any(|&fd| {
            // The same file has the same mount, or at least the same device and inode in another mount.
            let is_same_file = || process::id_of(&format!("/proc/{}/fd/{fd}", process.files_of)) == Some(self.file);
            DescriptorInfo::read(process.files_of, fd).is_some_and(|about| {
                let is_same = about.inode == self.held.inode && (about.mount == self.mount || is_same_file());
                is_same && about.locks.contains(&self.held)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt as _;
    use std::path::PathBuf;
    use std::process::{Child, Command};

    const HELD: &str = "7: FLOCK  ADVISORY  WRITE 5072 fd:01:2756 0 EOF";

    #[test]
    fn lines_of_proc_locks_are_read() {
        let waits = lock_of("7: -> FLOCK  ADVISORY  WRITE 5072 fd:01:2756 0 EOF").unwrap();
        assert!(waits.waits && waits.number == 7 && waits.held.pid == 5072 && waits.held.inode == 2756);
        assert_eq!((waits.held.kind, waits.held.is_shared), (LockKind::Flock, false));
        let holds = lock_of("7: POSIX  ADVISORY  READ -1 00:2d:99 1073741826 1073742335").unwrap();
        assert!(!holds.waits && holds.held.pid == -1 && holds.held.is_shared && holds.held.device == "00:2d");
        assert_eq!(holds.held.range, ["1073741826", "1073742335"]);
        for other in ["8: LEASE  ACTIVE    READ  5 fd:01:2756 0 EOF", "", "9: FLOCK", "pos:\t0"] {
            assert!(lock_of(other).is_none(), "{other}");
        }
    }

    #[test]
    fn fdinfo_shows_the_file_and_its_locks() {
        let text = format!("pos:\t0\nflags:\t0100002\nmnt_id:\t29\nino:\t2756\nlock:\t1{}\n", &HELD[1..]);
        let about = DescriptorInfo::parse(&text).unwrap();
        assert_eq!((about.mount, about.inode, about.locks.len()), (29, 2756, 1));
        assert_eq!(about.locks[0], lock_of(HELD).unwrap().held);
        assert_eq!(DescriptorInfo::parse("pos:\t0\n"), None);
    }

    /// A process that is killed and reaped when dropped.
    struct Started(Child);

    impl Started {
        fn of(program: &str, words: &[&str]) -> Started {
            Started(Command::new(program).args(words).spawn().unwrap())
        }

        fn read(&self) -> Process {
            Process::read(self.0.id()).unwrap()
        }
    }

    impl Drop for Started {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn wait_until<T>(mut ready: impl FnMut() -> Option<T>) -> T {
        let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
        loop {
            if let Some(found) = ready() {
                return found;
            }
            assert!(std::time::Instant::now() < end, "it never came");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    fn file(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("pipemark-{name}-{}", std::process::id()))
    }

    fn awaited(process: &Started) -> Option<AwaitedLock> {
        Locks::read()?.awaited_by(&process.read())
    }

    #[test]
    fn the_lock_that_a_process_waits_for_is_held_by_who_has_the_descriptor() {
        let path = file("lock");
        let name = path.to_str().unwrap();
        // The flock that took the lock ends at once.
        let shell = format!("exec 9>>{name}; flock 9; exec sleep 60");
        let holder = Started::of("sh", &["-c", &shell]);
        wait_until(|| (holder.read().comm == "sleep").then_some(()));
        let waiting = Started::of("flock", &[name, "true"]);
        let lock = wait_until(|| awaited(&waiting));
        assert_eq!(lock.path, name);
        assert_ne!(lock.taken_by, Some(holder.0.id()));
        assert!(lock.is_held_by(&holder.read()) && !lock.is_held_by(&waiting.read()));
        // A process that has the file open and doesn't wait for the lock.
        let other = Started::of("sh", &["-c", &format!("exec 9>>{name}; exec sleep 60")]);
        wait_until(|| (other.read().comm == "sleep").then_some(()));
        assert_eq!(awaited(&other), None);
        assert!(!lock.is_held_by(&other.read()));
        drop(holder);
        wait_until(|| awaited(&waiting).is_none().then_some(()));
        let _ = fs::remove_file(path);
    }

    #[test]
    fn locks_of_other_kinds_are_found_too() {
        let path = file("fcntl");
        fs::write(&path, "x").unwrap();
        let name = path.to_str().unwrap();
        for command in ["fcntl.F_SETLKW", "fcntl.F_OFD_SETLKW"] {
            let code = format!(
                "import fcntl, struct, time\nf = open('{name}', 'r+')\n\
                 fcntl.fcntl(f, {command}, struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 0, 0, 0))\n\
                 time.sleep(60)"
            );
            if Command::new("python3")
                .args(["-c", &format!("import fcntl; {command}")])
                .status()
                .is_ok_and(|it| !it.success())
            {
                continue;
            }
            let holder = Started::of("python3", &["-c", &code]);
            let inode = fs::metadata(&path).unwrap().ino();
            wait_until(|| Locks::read()?.0.iter().any(|lock| lock.held.inode == inode).then_some(()));
            let waiting = Started::of("python3", &["-c", &code]);
            let lock = wait_until(|| awaited(&waiting));
            assert!(lock.is_held_by(&holder.read()), "{command}");
            drop(holder);
        }
        let _ = fs::remove_file(path);
    }
}
