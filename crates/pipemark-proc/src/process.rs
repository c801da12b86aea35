//! Reads processes from /proc: their identity, their pipes and their counters. Opens only files in /proc, so the
//! watched processes aren't affected.

use std::collections::HashSet;
use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, StatxFlags, openat, statx};
use rustix::path::Arg;
use serde::{Deserialize, Serialize};

/// A pipe or FIFO, identified by device and inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PipeId(pub u64, pub u64);

impl PipeId {
    /// The number used in place of the device for a socket pair.
    const SOCKETS: u64 = u64::MAX;

    /// One direction of a connected socket pair that joins two processes like a pipe, identified by the inode of the
    /// receiving end.
    pub(crate) fn of_socket(received_at: u64) -> PipeId {
        PipeId(PipeId::SOCKETS, received_at)
    }

    pub fn is_socket(self) -> bool {
        self.0 == PipeId::SOCKETS
    }

    /// Whether this program itself holds an end of the pipe.
    pub fn is_own(self) -> bool {
        let own = Process::read(std::process::id()).and_then(|own| own.ends);
        own.is_none_or(|ends| ends.iter().any(|end| end.pipe == self))
    }

    /// Whether the pipe has no name, unlike a FIFO. All such pipes have the same device.
    pub fn is_nameless(self) -> bool {
        let new = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).ok();
        let path = |(reader, _writer): &(OwnedFd, OwnedFd)| format!("/proc/self/fd/{}", reader.as_raw_fd());
        new.is_some_and(|ends| pipe_of(&path(&ends)).is_some_and(|own| own.0 == self.0))
    }
}

/// The directions in which a process may use a pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Direction {
    /// The process reads.
    In,
    /// The process writes.
    Out,
    /// The process reads and writes, as with a FIFO opened for both.
    Both,
}

/// A descriptor that is an end of a pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PipeEnd {
    pub fd: u32,
    pub pipe: PipeId,
    pub direction: Direction,
}

/// A process at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Process {
    pub pid: u32,
    pub parent: u32,
    pub group: u32,
    /// Start time in clock ticks since boot. Together with the pid it identifies the process.
    pub start: u64,
    /// The kernel's state letter: `S`, `R`, `T` and others.
    pub state: char,
    pub threads: u32,
    /// Whether the process is a kernel thread.
    pub of_kernel: bool,
    /// CPU time including reaped children, in clock ticks.
    pub ticks: u64,
    /// The part of `ticks` spent in the kernel.
    pub kernel_ticks: u64,
    /// The part of `ticks` spent by reaped children.
    pub children_ticks: u64,
    /// Page faults of reaped children. The number changes when the process reaps a child.
    pub reaped: u64,
    /// The name that the kernel has for the process, at most 15 bytes.
    pub comm: String,
    /// The thread whose files in /proc are those of the process. It is another thread than the first one if that one
    /// has exited, as after pthread_exit(3) in `main`.
    pub files_of: u32,
    /// The ends of pipes that the process holds, by descriptor; `None` if they are unreadable.
    pub ends: Option<Vec<PipeEnd>>,
    /// The process's other open files.
    pub others: OtherFiles,
}

/// Open files other than pipes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OtherFiles {
    /// Sockets: descriptor and inode.
    pub sockets: Vec<(u32, u64)>,
    /// Descriptors of regular files and character devices.
    pub files: Vec<u32>,
    /// Whether the process has an eventfd, by which its threads wake each other.
    pub eventfd: bool,
}

/// Files beyond this number aren't examined one by one.
const MAX_FILES: usize = 256;

impl Process {
    /// Whether the process has a file or device open for reading, and whether it has one open for writing.
    pub fn file_directions(&self) -> (bool, bool) {
        let paths = self.others.files.iter().map(|fd| format!("/proc/{}/fd/{fd}", self.files_of)).take(MAX_FILES);
        let mut found = (false, false);
        for direction in paths.filter(|path| !is_idle_device(path)).filter_map(|path| direction_of(&path)) {
            found = (found.0 || direction != Direction::Out, found.1 || direction != Direction::In);
            if found == (true, true) {
                break;
            }
        }
        found
    }

    /// The number of descriptors.
    pub fn descriptors(&self) -> usize {
        self.ends.as_ref().map_or(0, Vec::len) + self.others.sockets.len() + self.others.files.len()
    }
}

/// The flag of a kernel thread. A parent with pid 2 doesn't identify one, because in a container pid 2 is an ordinary
/// process.
const PF_KTHREAD: u64 = 0x0020_0000;

/// A file of /proc that is read repeatedly.
#[derive(Debug)]
pub(crate) struct ProcReader {
    path: String,
    open: Option<File>,
    keep: bool,
}

impl ProcReader {
    /// The file at `path`. With `keep` it stays open between reads.
    pub fn new(path: String, keep: bool) -> ProcReader {
        ProcReader { path, open: None, keep }
    }

    pub fn path(&self) -> &str {
        &self.path
    }

    /// The file's current content, as far as it fits into `buffer`.
    pub fn read<'b>(&mut self, buffer: &'b mut [u8]) -> io::Result<&'b str> {
        let length = match &self.open {
            Some(file) => file.read_at(buffer, 0)?,
            None => {
                let file = File::open(&self.path)?;
                let length = file.read_at(buffer, 0)?;
                self.open = self.keep.then_some(file);
                length
            }
        };
        std::str::from_utf8(&buffer[..length]).map_err(|_| io::ErrorKind::InvalidData.into())
    }
}

/// The first 4 KiB of a file of /proc, in one read; the files read here are shorter.
pub(crate) fn text(path: impl AsRef<Path>) -> io::Result<String> {
    let mut buffer = [0; 4096];
    let length = File::open(path)?.read(&mut buffer)?;
    Ok(String::from_utf8_lossy(&buffer[..length]).into_owned())
}

/// The entries of a directory of /proc that are numbers.
pub(crate) fn numbers(directory: &str) -> Vec<u32> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

impl Process {
    /// Reads a process; `None` when it has exited.
    pub fn read(pid: u32) -> Option<Process> {
        Process::read_stat(pid).map(Process::with_ends)
    }

    /// Reads a process with only those ends of pipes that are its standard input and output; `None` when it has exited.
    pub fn read_standard(pid: u32) -> Option<Process> {
        let mut process = Process::read_stat(pid)?;
        if process.of_kernel {
            return Some(process);
        }
        let end = |fd: u32| {
            let (pipe, direction) = end_of(&format!("/proc/{}/fd/{fd}", process.files_of))?;
            Some(PipeEnd { fd, pipe, direction })
        };
        process.ends = Some([0, 1].into_iter().filter_map(end).collect());
        Some(process)
    }

    pub(crate) fn with_ends(mut self) -> Process {
        let mut others = OtherFiles::default();
        self.ends = match ends(self.files_of, &mut others) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && !matches!(self.state, 'Z' | 'X') => None,
            // The process may have exited meanwhile, and closed its files.
            ends => Some(ends.unwrap_or_default()),
        };
        self.others = others;
        self
    }

    /// Parses /proc/PID/stat. The name is in parentheses and may itself contain parentheses.
    pub fn parse(pid: u32, stat: &str) -> Option<Process> {
        let (before, after) = stat.rsplit_once(')')?;
        let comm = before.split_once('(')?.1.to_owned();
        let words: Vec<&str> = after.split_ascii_whitespace().collect();
        let number = |nth: usize| words.get(nth)?.parse::<u64>().ok();
        let small = |nth: usize| number(nth).and_then(|n| u32::try_from(n).ok());
        let ticks = (11..15).map(number).sum::<Option<u64>>()?;
        let (kernel_ticks, children_ticks) = (number(12)? + number(14)?, number(13)? + number(14)?);
        let state = words.first()?.chars().next()?;
        let (parent, group, reaped, threads, start) = (small(1)?, small(2)?, number(8)?, small(17)?, number(19)?);
        let of_kernel = number(6)? & PF_KTHREAD != 0;
        Some(Process {
            pid,
            parent,
            group,
            start,
            state,
            threads,
            of_kernel,
            ticks,
            kernel_ticks,
            children_ticks,
            reaped,
            comm,
            files_of: pid,
            ends: None,
            others: OtherFiles::default(),
        })
    }

    /// Reads only /proc/PID/stat, without the ends of pipes; `None` if the process has exited.
    pub fn read_stat(pid: u32) -> Option<Process> {
        Some(Process::parse(pid, &text(format!("/proc/{pid}/stat")).ok()?)?.at_live_thread())
    }

    /// If the first thread has exited and another one lives, gives the process that thread's state and files. The first
    /// thread has none any more.
    pub(crate) fn at_live_thread(mut self) -> Process {
        if self.state == 'Z' && self.threads > 1 {
            let state = |id: u32| {
                let text = text(format!("/proc/{}/task/{id}/stat", self.pid)).ok()?;
                let state = text.rsplit_once(") ")?.1.chars().next()?;
                (!matches!(state, 'Z' | 'X')).then_some((id, state))
            };
            let other = threads(self.pid).into_iter().filter(|&id| id != self.pid).find_map(state);
            if let Some((id, state)) = other {
                (self.files_of, self.state) = (id, state);
            }
        }
        self
    }

    /// The ids of the process's threads.
    pub fn thread_ids(&self) -> Vec<u32> {
        if self.threads == 1 { vec![self.pid] } else { threads(self.pid) }
    }

    /// The process's command line as started; empty if unreadable.
    pub fn words(&self) -> Vec<String> {
        let line = text(format!("/proc/{}/cmdline", self.files_of)).unwrap_or_default();
        let words = line.trim_end_matches('\0');
        if words.trim().is_empty() { Vec::new() } else { words.split('\0').map(str::to_owned).collect() }
    }

    /// The process's arguments, byte for byte; empty if unreadable or longer than 128 KiB.
    pub fn arguments(&self) -> Vec<Vec<u8>> {
        const MAX_BYTES: u64 = 128 << 10;
        let mut line = Vec::new();
        let read = File::open(format!("/proc/{}/cmdline", self.files_of))
            .and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut line));
        if read.is_err() || line.len() as u64 > MAX_BYTES {
            return Vec::new();
        }
        let words = line.strip_suffix(b"\0").unwrap_or(&line);
        if words.is_empty() { Vec::new() } else { words.split(|&byte| byte == 0).map(<[u8]>::to_vec).collect() }
    }

    /// A command line of these [words](Self::words), as one line of at most 200 characters.
    pub fn command(&self, words: &[String]) -> String {
        if words.is_empty() { self.comm.clone() } else { words.join(" ").chars().take(200).collect() }
    }
}

/// The thread ids of a process, given by its pid or `"self"`.
pub fn threads(pid: impl Display) -> Vec<u32> {
    numbers(&format!("/proc/{pid}/task"))
}

/// The number of threads, which is cheaper to read than a list of them.
pub fn thread_count(pid: u32) -> Option<usize> {
    let links = statx(CWD, format!("/proc/{pid}/task"), AtFlags::empty(), StatxFlags::NLINK).ok()?.stx_nlink;
    (links as usize).checked_sub(2)
}

/// The ends of pipes that a process holds; its other files go into `others`. `thread` is a thread that lives.
fn ends(thread: u32, others: &mut OtherFiles) -> io::Result<Vec<PipeEnd>> {
    let directory = format!("/proc/{thread}/fd");
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let open = openat(CWD, &directory, flags, Mode::empty())?;
    let mut found = Vec::new();
    for entry in Dir::read_from(&open)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(fd) = name.to_str().ok().and_then(|name| name.parse().ok()) else { continue };
        match file_at(&open, name) {
            Some((FileType::Fifo, pipe)) => {
                found.extend(direction_at(&open, name).map(|direction| PipeEnd { fd, pipe, direction }))
            }
            Some((FileType::Socket, PipeId(_, inode))) => others.sockets.push((fd, inode)),
            Some((FileType::RegularFile | FileType::CharacterDevice, _)) => others.files.push(fd),
            // An eventfd has no file type.
            Some(_) => others.eventfd |= is_eventfd(&format!("{directory}/{fd}")),
            None => {}
        }
    }
    others.sockets.sort_unstable();
    others.files.sort_unstable();
    found.sort_by_key(|end| end.fd);
    Ok(found)
}

fn is_eventfd(path: &str) -> bool {
    fs::read_link(path).is_ok_and(|name| name == Path::new("anon_inode:[eventfd]"))
}

/// Whether a file is a terminal or /dev/null. Most processes have such files open, and few processes read or write much
/// there.
fn is_idle_device(path: &str) -> bool {
    let name = fs::read_link(path).unwrap_or_default();
    is_terminal(&name) || name == Path::new("/dev/null")
}

/// The pipe and the direction of a descriptor, given by its path in /proc; `None` if it isn't an end of a pipe.
pub(crate) fn end_of(path: &str) -> Option<(PipeId, Direction)> {
    Some((pipe_of(path)?, direction_of(path)?))
}

/// The pipe or FIFO at a path; `None` if it is another file. The query sends no request to a network file server,
/// because such a request may hang.
pub(crate) fn pipe_of(path: &str) -> Option<PipeId> {
    file_of(path).filter(|(kind, _)| *kind == FileType::Fifo).map(|(_, id)| id)
}

/// The type, device and inode of a file.
fn file_of(path: &str) -> Option<(FileType, PipeId)> {
    file_at(CWD, path)
}

/// The device and inode of a file; `None` if it can't be read.
pub(crate) fn id_of(path: &str) -> Option<PipeId> {
    file_of(path).map(|(_, id)| id)
}

fn file_at(directory: impl AsFd, name: impl Arg) -> Option<(FileType, PipeId)> {
    let about = statx(directory, name, AtFlags::STATX_DONT_SYNC, StatxFlags::TYPE | StatxFlags::INO).ok()?;
    let device = u64::from(about.stx_dev_major) << 32 | u64::from(about.stx_dev_minor);
    Some((FileType::from_raw_mode(about.stx_mode.into()), PipeId(device, about.stx_ino)))
}

/// The direction of a descriptor, from the permissions of its link in /proc.
fn direction_of(path: &str) -> Option<Direction> {
    direction_at(CWD, path)
}

fn direction_at(directory: impl AsFd, name: impl Arg) -> Option<Direction> {
    let about = statx(directory, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::MODE).ok()?;
    match about.stx_mode & 0o600 {
        0o400 => Some(Direction::In),
        0o200 => Some(Direction::Out),
        0o600 => Some(Direction::Both),
        _ => None,
    }
}

/// The inode of a descriptor that is a socket; `None` for other descriptors.
pub fn socket_of(pid: u32, fd: u32) -> Option<u64> {
    file_of(&format!("/proc/{pid}/fd/{fd}")).filter(|(kind, _)| *kind == FileType::Socket).map(|(_, id)| id.1)
}

/// All visible processes except kernel threads and this process.
pub fn all() -> Vec<Process> {
    let own = std::process::id();
    let others = pids().into_iter().filter(|&pid| pid != own).filter_map(Process::read_stat);
    others.filter(|process| !process.of_kernel).map(Process::with_ends).collect()
}

/// As [`all`], with only those ends of pipes that are standard input and output.
pub fn all_standard() -> Vec<Process> {
    let own = std::process::id();
    let others = pids().into_iter().filter(|&pid| pid != own).filter_map(Process::read_standard);
    others.filter(|process| !process.of_kernel).collect()
}

/// All visible processes.
pub fn pids() -> Vec<u32> {
    numbers("/proc")
}

/// The children that these threads of a process started; `None` if the kernel doesn't list them. The process is given
/// by its pid or `"self"`.
pub fn children(pid: impl Display, threads: &[u32]) -> Option<Vec<u32>> {
    let mut found = Vec::new();
    for &thread in threads {
        // One read returns at most a page, about 500 children.
        match fs::read_to_string(format!("/proc/{pid}/task/{thread}/children")) {
            Ok(list) => found.extend(list.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok())),
            Err(error)
                if error.kind() == io::ErrorKind::NotFound
                    && Path::new(&format!("/proc/{pid}/task/{thread}")).exists() =>
            {
                return None;
            }
            Err(_) => {}
        }
    }
    Some(found)
}

/// A process and all of its descendants, the process first. Processes that have exited meanwhile are skipped.
pub fn family(root: u32) -> Vec<u32> {
    let (mut found, mut seen) = (vec![root], HashSet::from([root]));
    let mut next = 0;
    while let Some(&pid) = found.get(next) {
        let more = children(pid, &threads(pid)).unwrap_or_default();
        found.extend(more.into_iter().filter(|&pid| seen.insert(pid)));
        next += 1;
    }
    found
}

fn field(text: &str, key: &str) -> Option<u64> {
    pipemark_host::field(text, key)?.parse().ok()
}

/// Whether a process has a terminal open at any descriptor other than standard input and error.
pub fn uses_terminal(pid: u32) -> bool {
    let others = numbers(&format!("/proc/{pid}/fd")).into_iter().filter(|fd| ![0, 2].contains(fd)).take(MAX_FILES);
    others.filter_map(|fd| fs::read_link(format!("/proc/{pid}/fd/{fd}")).ok()).any(|path| is_terminal(&path))
}

/// Whether a path names a terminal.
pub(crate) fn is_terminal(path: &Path) -> bool {
    ["/dev/pts/", "/dev/tty", "/dev/console"].iter().any(|begin| path.to_string_lossy().starts_with(begin))
}

/// The bytes that a process and its reaped children have read and written, and the numbers of their read and write
/// calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IoCounts {
    pub read: u64,
    pub wrote: u64,
    pub reads: u64,
    pub writes: u64,
}

impl IoCounts {
    /// Parses /proc/PID/io.
    pub fn parse(text: &str) -> Option<IoCounts> {
        let number = |key| field(text, key);
        Some(IoCounts {
            read: number("rchar")?,
            wrote: number("wchar")?,
            reads: number("syscr")?,
            writes: number("syscw")?,
        })
    }

    pub fn plus(self, other: IoCounts) -> IoCounts {
        IoCounts {
            read: self.read + other.read,
            wrote: self.wrote + other.wrote,
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
        }
    }

    /// The increase since an earlier reading.
    pub fn since(self, before: IoCounts) -> IoCounts {
        IoCounts {
            read: self.read.saturating_sub(before.read),
            wrote: self.wrote.saturating_sub(before.wrote),
            reads: self.reads.saturating_sub(before.reads),
            writes: self.writes.saturating_sub(before.writes),
        }
    }

    /// Whether all writes may be to an eventfd, which takes 8 bytes each.
    pub fn are_wakeups(self) -> bool {
        self.writes > 0 && self.wrote == self.writes * 8
    }

    /// Without the writes, and without as many reads of 8 bytes.
    pub fn without_wakeups(self) -> IoCounts {
        IoCounts {
            read: self.read.saturating_sub(self.wrote),
            reads: self.reads.saturating_sub(self.writes),
            wrote: 0,
            writes: 0,
        }
    }
}

/// Counters of the machine since boot: processes and threads started, and clock ticks of idle CPUs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MachineCounts {
    pub starts: u64,
    pub idle: u64,
}

impl MachineCounts {
    /// Reads the counters; `None` if unreadable.
    pub fn read() -> Option<MachineCounts> {
        MachineCounts::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    fn parse(text: &str) -> Option<MachineCounts> {
        let line = |key: &str| text.lines().find_map(|line| line.strip_prefix(key));
        let ticks: Vec<u64> = line("cpu ")?.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect();
        // Waiting for a disk counts as idle.
        Some(MachineCounts { starts: line("processes ")?.trim().parse().ok()?, idle: ticks.get(3)? + ticks.get(4)? })
    }
}

/// The text of /proc/PID/cgroup, which lists the control groups of a process.
pub fn control_groups(pid: u32) -> String {
    text(format!("/proc/{pid}/cgroup")).unwrap_or_default()
}

/// The name of the process that traces the process `pid` with ptrace(2); `None` if none does.
pub fn tracer(pid: u32) -> Option<String> {
    let status = text(format!("/proc/{pid}/status")).ok()?;
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:"))?.trim().parse().ok()?;
    if tracer == 0 { None } else { Process::read_stat(tracer).map(|process| process.comm) }
}

/// The low priority at which a process runs, such as `nice 19`; `None` if it runs at the default priority or above.
pub fn low_priority(pid: u32) -> Option<String> {
    low_priority_in(&text(format!("/proc/{pid}/stat")).ok()?)
}

fn low_priority_in(stat: &str) -> Option<String> {
    const SCHED_IDLE: i64 = 5;
    let words: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let number = |nth: usize| words.get(nth)?.parse::<i64>().ok();
    let nice = number(16).filter(|&nice| nice > 0).map(|nice| format!("nice {nice}"));
    if number(38) == Some(SCHED_IDLE) { Some("idle priority (SCHED_IDLE)".to_owned()) } else { nice }
}

/// Whether a signal or a timer may interrupt a process's wait: it handles a signal that timers or other programs send,
/// or has a timer. Signals of other programs don't count for a runtime that handles SIGSEGV too, as Java's does, nor any
/// signal for one that handles nearly all of them, as Go's does.
pub fn may_be_interrupted(process: &Process) -> bool {
    let status = text(format!("/proc/{}/status", process.files_of)).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|caught| u64::from_str_radix(caught.trim(), 16).ok()).unwrap_or(0);
    handlers_may_interrupt(caught) || has_timer(process.pid) || parent_has_timer(process)
}

/// Whether a process has a timer of timer_create(2), armed or not.
fn has_timer(pid: u32) -> bool {
    text(format!("/proc/{pid}/timers")).is_ok_and(|timers| !timers.is_empty())
}

/// Whether a parent of a process has a timer, as `timeout` does, and may end the process. Only the nearest parents count, up
/// to this process.
fn parent_has_timer(process: &Process) -> bool {
    const MAX_PARENTS: usize = 4;
    let mut pid = process.parent;
    for _ in 0..MAX_PARENTS {
        if pid <= 1 || pid == std::process::id() {
            return false;
        }
        if has_timer(pid) {
            return true;
        }
        let Some(parent) = Process::read(pid) else { return false };
        pid = parent.parent;
    }
    false
}

/// Whether an alarm of alarm(2) or setitimer(2) is set in any process, as far as the kernel shows it: it lists the timers of
/// the whole machine, to root only, and doesn't say whose they are.
pub fn alarms_may_be_set() -> bool {
    fs::read_to_string("/proc/timer_list").map_or(true, |list| !list.contains("now at") || list.contains("it_real_fn"))
}

/// Whether a process that handles these signals may be interrupted in a wait. `caught` has a bit for each signal.
fn handlers_may_interrupt(caught: u64) -> bool {
    const BY_TIMER: [i32; 4] = [libc::SIGALRM, libc::SIGVTALRM, libc::SIGPROF, libc::SIGIO];
    const BY_OTHERS: [i32; 2] = [libc::SIGUSR1, libc::SIGUSR2];
    /// The first real-time signal that the C library leaves to programs.
    const FIRST_REAL_TIME: i32 = 34;
    const NEARLY_ALL: u32 = 24;
    let catches = |signal: i32| caught >> (signal - 1) & 1 == 1;
    let by_timer = BY_TIMER.into_iter().any(catches) && caught.count_ones() < NEARLY_ALL;
    let by_others = BY_OTHERS.into_iter().any(catches) || (FIRST_REAL_TIME..=64).any(catches);
    by_timer || by_others && !catches(libc::SIGSEGV)
}

/// Whether a process waits because its control group is frozen. False if the kernel hides the functions in which
/// processes wait.
pub fn is_frozen(pid: u32) -> bool {
    // The freezers of cgroup version 2 and 1.
    const FUNCTIONS: [&str; 2] = ["do_freezer_trap", "__refrigerator"];
    text(format!("/proc/{pid}/wchan")).is_ok_and(|function| FUNCTIONS.contains(&function.trim()))
}

/// The position in the largest file that a process reads, and the file's size, in bytes; `None` if it reads none. Only
/// the first descriptors count, because a process may have very many.
pub fn progress(pid: u32) -> Option<(u64, u64)> {
    let directory = format!("/proc/{pid}/fd");
    let descriptors = fs::read_dir(&directory).into_iter().flatten().flatten().take(MAX_FILES);
    let descriptors = descriptors.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let sources = descriptors.filter_map(|fd| {
        let about = text(format!("/proc/{pid}/fdinfo/{fd}")).ok()?;
        let position = field(&about, "pos").filter(|&position| position > 0)?;
        let path = format!("{directory}/{fd}");
        if direction_of(&path) != Some(Direction::In) {
            return None;
        }
        let about = statx(CWD, &path, AtFlags::STATX_DONT_SYNC, StatxFlags::TYPE | StatxFlags::SIZE).ok()?;
        let file = FileType::from_raw_mode(about.stx_mode.into()) == FileType::RegularFile;
        (file && about.stx_size >= position).then_some((position, about.stx_size))
    });
    sources.max_by_key(|&(_, size)| size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_listed_whichever_thread_started_it() {
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let stopped = std::sync::Mutex::new(stopped);
        std::thread::scope(|scope| {
            // Each of these threads, except the first, exits only when `stop` is dropped.
            for _ in 0..20 {
                scope.spawn(|| stopped.lock().unwrap().recv().is_err());
            }
            let starter = scope.spawn(|| {
                let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
                let own = std::process::id();
                let listed = children(own, &threads(own)).is_none_or(|all| all.contains(&child.id()));
                child.kill().unwrap();
                child.wait().unwrap();
                listed
            });
            assert!(starter.join().unwrap());
            drop(stop);
        });
    }

    #[test]
    fn a_name_with_parentheses_is_read() {
        let line = "7 (a) b (c)) S 5 6 7 0 -1 0 0 0 0 0 1 2 3 4 20 0 1 0 99 0 0";
        let process = Process::parse(7, line).unwrap();
        let about = (process.parent, process.group, process.start, process.ticks, process.comm.as_str());
        assert_eq!(about, (5, 6, 99, 10, "a) b (c)"));
        assert_eq!((process.kernel_ticks, process.children_ticks), (6, 7));
        assert!(!process.of_kernel);
        let line = "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 3 0 0 20 0 1 0 2 0 0";
        assert!(Process::parse(2, line).unwrap().of_kernel);
    }

    #[test]
    fn a_low_priority_is_read() {
        let stat = |nice: i64, policy: i64| {
            let middle = "0 ".repeat(21);
            format!("7 (a b) R 5 6 7 0 -1 0 0 0 0 0 1 2 3 4 20 {nice} {middle}{policy} 0")
        };
        let of = |nice, policy| low_priority_in(&stat(nice, policy));
        assert_eq!((of(0, 0), of(-5, 0), of(19, 0)), (None, None, Some("nice 19".to_owned())));
        assert_eq!(of(0, 5).as_deref(), Some("idle priority (SCHED_IDLE)"));
        let mut own = std::process::Command::new("nice").args(["-n", "7", "sleep", "60"]).spawn().unwrap();
        let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while low_priority(own.id()).as_deref() != Some("nice 7") && std::time::Instant::now() < end {
            std::thread::yield_now();
        }
        assert_eq!(low_priority(own.id()).as_deref(), Some("nice 7"));
        own.kill().unwrap();
        own.wait().unwrap();
    }

    #[test]
    fn reads_and_writes_are_counted_in_bytes_and_calls() {
        let text = "rchar: 100\nwchar: 20\nsyscr: 5\nsyscw: 2\nread_bytes: 0\n";
        let counts = IoCounts { read: 100, wrote: 20, reads: 5, writes: 2 };
        assert_eq!(IoCounts::parse(text), Some(counts));
        assert_eq!(IoCounts::parse("rchar: 100\n"), None);
    }

    #[test]
    fn writes_of_eight_bytes_may_be_wakeups() {
        let counts = IoCounts { read: 1080, wrote: 80, reads: 12, writes: 10 };
        let begin = IoCounts { read: 80, wrote: 0, reads: 2, writes: 0 };
        assert!(counts.are_wakeups() && !begin.are_wakeups());
        assert!(!IoCounts { wrote: 81, ..counts }.are_wakeups());
        let data = counts.since(begin).without_wakeups();
        assert_eq!(data, IoCounts { read: 920, wrote: 0, reads: 0, writes: 0 });
    }

    #[test]
    fn signals_that_interrupt_a_wait_are_told_from_those_of_runtimes() {
        let catches = |signals: &[i32]| {
            handlers_may_interrupt(signals.iter().fold(0, |caught, signal| caught | 1 << (signal - 1)))
        };
        use libc::{SIGALRM, SIGBUS, SIGFPE, SIGILL, SIGINT, SIGSEGV, SIGTERM, SIGUSR1, SIGUSR2};
        assert!(catches(&[SIGALRM]) && catches(&[SIGUSR1]) && catches(&[40]) && !catches(&[SIGINT, SIGTERM]));
        // Python's faulthandler handles errors too.
        assert!(catches(&[SIGALRM, SIGSEGV, SIGBUS, SIGFPE, SIGILL]));
        // Java suspends its threads by SIGUSR2, and Go handles every signal.
        assert!(!catches(&[SIGUSR2, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTERM]));
        let go: Vec<i32> = (1..=64).filter(|signal| ![9, 19, 32, 33].contains(signal)).collect();
        assert!(!catches(&go));
    }

    #[test]
    fn an_eventfd_is_found() {
        let own = || Process::read(std::process::id()).unwrap().others.eventfd;
        let file = rustix::event::eventfd(0, rustix::event::EventfdFlags::empty()).unwrap();
        assert!(own());
        drop(file);
    }

    #[test]
    fn started_processes_and_idle_ticks_are_counted() {
        let counts = MachineCounts::parse("cpu  1 2 3 40 5 6\ncpu0 1 2 3 4 5\nprocesses 77\n");
        assert_eq!(counts, Some(MachineCounts { starts: 77, idle: 45 }));
    }

    #[test]
    fn a_process_that_has_just_ended_is_not_hidden() {
        let gone = Process::parse(u32::MAX, "7 (a) S 5 6 7 0 -1 0 0 0 0 0 1 2 3 4 20 0 1 0 99 0 0").unwrap();
        assert_eq!(gone.with_ends().ends, Some(Vec::new()));
    }

    #[test]
    fn ends_of_pipes_have_their_directions() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let own = Process::read(std::process::id()).unwrap().ends.unwrap();
        let of = |fd: &rustix::fd::OwnedFd| {
            let fd = std::os::fd::AsRawFd::as_raw_fd(fd).cast_unsigned();
            *own.iter().find(|end| end.fd == fd).unwrap()
        };
        assert_eq!((of(&reader).direction, of(&writer).direction), (Direction::In, Direction::Out));
        assert_eq!(of(&reader).pipe, of(&writer).pipe);
    }
}
