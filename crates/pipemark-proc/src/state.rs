//! Determines what a thread is doing, from its system call or from the kernel function it waits in.

use crate::process::{Direction, PipeId};

/// The state of a thread at one moment. A stage has the state of that one of its threads whose state comes first in
/// this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ThreadState {
    /// The thread runs or waits for a CPU. Only counters, not samples, can separate the two.
    Running,
    /// The thread waits for a disk.
    Disk,
    /// The thread waits for room in a pipe that it writes.
    Blocked,
    /// The thread waits for input from a pipe that it reads.
    Starved,
    Network,
    Terminal,
    /// A signal has stopped the thread.
    Stopped,
    Sleep,
    /// The thread waits for anything else, such as a signal or a file change.
    Other,
    /// The thread waits for child processes.
    Children,
    Lock,
    /// The thread's state is unreadable.
    Unknown,
}

impl ThreadState {
    pub const COUNT: usize = ThreadState::Unknown as usize + 1;
}

/// The wait of one thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ThreadWait {
    Is(ThreadState),
    /// The thread waits for input from this pipe; `None`: from any pipe that its stage reads.
    In(Option<PipeId>),
    /// The thread waits for room in this pipe; `None`: in any pipe that its stage writes.
    Out(Option<PipeId>),
    /// The thread waits for input, for room or for something else, whichever of these the fields allow. The states of
    /// its stage's neighbours show which.
    Unsure {
        ins: bool,
        outs: bool,
        otherwise: ThreadState,
    },
}

/// The kind of a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitTarget {
    In(PipeId),
    Out(PipeId),
    File,
    Socket,
    /// A socket to a program on this machine.
    Local,
    Terminal,
    /// A descriptor that only wakes the process itself: an eventfd, or a pipe to itself.
    Own,
    Timer,
    Other,
}

/// A system call and its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SystemCall {
    pub number: i64,
    pub arguments: [u64; 6],
}

/// The content of /proc/PID/task/T/syscall.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SyscallLine {
    Running,
    Waiting(SystemCall),
    /// The thread waits outside a system call, for a page.
    Outside,
    /// The thread has exited and was not reaped yet.
    Gone,
}

impl SyscallLine {
    /// Parses the line; `None` if it has another form.
    pub fn parse(line: &str) -> Option<SyscallLine> {
        let mut words = line.split_ascii_whitespace();
        let number = match words.next()? {
            "running" => return Some(SyscallLine::Running),
            word => word.parse().ok()?,
        };
        if number < 0 {
            return Some(if words.next()? == "0x0" { SyscallLine::Gone } else { SyscallLine::Outside });
        }
        let mut arguments = [0; 6];
        for argument in &mut arguments {
            *argument = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
        }
        Some(SyscallLine::Waiting(SystemCall { number, arguments }))
    }
}

/// Details of a waiting thread.
pub(crate) trait ThreadView {
    fn target(&self, fd: u64) -> WaitTarget;
    /// `length` bytes of the thread's memory at `address`; `None` if unreadable.
    fn memory(&self, address: u64, length: usize) -> Option<Vec<u8>>;
    /// The descriptors that the epoll descriptor `epoll` watches, with their events.
    fn watched(&self, epoll: u64) -> Vec<(u64, u32)>;
    /// The kernel function that the thread waits in; `None` if unreadable.
    fn function(&self) -> Option<String>;
}

/// The system calls for file locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockKind {
    /// flock(2). The lock belongs to an open file, which children inherit.
    Flock,
    /// fcntl(2) with F_SETLKW. The lock belongs to a process.
    Process,
    /// fcntl(2) with F_OFD_SETLKW. The lock belongs to an open file.
    OpenFile,
}

/// The descriptors that a call waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Descriptors {
    /// The call waits until any of these descriptors has input or room, depending on its direction.
    Files(Vec<(u64, Direction)>),
    Children,
    /// The call opens a file, such as a FIFO whose other end isn't open. Holds the address of the file's name, and the
    /// flags.
    Open(u64, u64),
    /// A lock, probably held by another thread.
    Lock,
    /// The thread runs, or waits for something else.
    Else,
}

/// The descriptors that a call waits for. With `limited`, a call with a timeout counts as a wait.
pub(crate) fn descriptors(call: &SystemCall, thread: &dyn ThreadView, limited: bool) -> Descriptors {
    let fd = |nth: usize| call.arguments[nth] & 0xffff_ffff;
    let polled = |watched: Vec<(u64, u32)>| {
        let directions = |(fd, events): (u64, u32)| {
            [(IN, Direction::In), (OUT, Direction::Out)]
                .into_iter()
                .filter(move |(mask, _)| events & mask != 0)
                .map(move |(_, direction)| (fd, direction))
        };
        Descriptors::Files(watched.into_iter().flat_map(directions).collect())
    };
    match call.number {
        libc::SYS_read | libc::SYS_readv | libc::SYS_recvfrom | libc::SYS_recvmsg => {
            Descriptors::Files(vec![(fd(0), Direction::In)])
        }
        libc::SYS_write | libc::SYS_writev | libc::SYS_sendto | libc::SYS_sendmsg => {
            Descriptors::Files(vec![(fd(0), Direction::Out)])
        }
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll if limited || call.arguments[2] as i32 <= 0 => polled(pollfds(call, thread)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_select if limited || call.arguments[4] == 0 => polled(selected(call, thread)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_epoll_wait if limited || call.arguments[3] as i32 <= 0 => polled(thread.watched(call.arguments[0])),
        libc::SYS_ppoll if limited || call.arguments[2] == 0 => polled(pollfds(call, thread)),
        libc::SYS_pselect6 if limited || call.arguments[4] == 0 => polled(selected(call, thread)),
        libc::SYS_epoll_pwait if limited || call.arguments[3] as i32 <= 0 => polled(thread.watched(call.arguments[0])),
        libc::SYS_openat => Descriptors::Open(call.arguments[1], call.arguments[2]),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open => Descriptors::Open(call.arguments[0], call.arguments[1]),
        number => match of_number(number) {
            Some(ThreadState::Children) => Descriptors::Children,
            Some(ThreadState::Lock) => Descriptors::Lock,
            _ => Descriptors::Else,
        },
    }
}

/// The kind of file lock that a call waits for; `None` for other calls.
pub(crate) fn lock_in(call: &SystemCall) -> Option<LockKind> {
    const F_SETLKW: u64 = libc::F_SETLKW as u64;
    const F_OFD_SETLKW: u64 = libc::F_OFD_SETLKW as u64;
    match (call.number, call.arguments[1]) {
        (libc::SYS_flock, _) => Some(LockKind::Flock),
        (libc::SYS_fcntl, F_SETLKW) => Some(LockKind::Process),
        (libc::SYS_fcntl, F_OFD_SETLKW) => Some(LockKind::OpenFile),
        _ => None,
    }
}

/// Poll events for reading.
const IN: u32 = (libc::POLLIN | libc::POLLRDNORM | libc::POLLRDBAND) as u32;
/// Poll events for writing.
const OUT: u32 = (libc::POLLOUT | libc::POLLWRNORM | libc::POLLWRBAND) as u32;
/// An event that pipes never raise. A thread that polls for this event alone waits, with a timeout, for the pipe's
/// other end.
const RDBAND: u32 = libc::POLLRDBAND as u32;
/// EPOLLET: only changes of the descriptor are reported.
const EDGE: u32 = 1 << 31;

/// Whether a call moves bytes that the kernel's counters of reads and writes miss.
pub(crate) fn is_uncounted(call: &SystemCall) -> bool {
    matches!(call.number, libc::SYS_splice | libc::SYS_tee | libc::SYS_vmsplice | libc::SYS_io_uring_enter)
}

/// The wait of a thread in a system call. The call numbers are this architecture's.
pub(crate) fn of_call(call: &SystemCall, thread: &dyn ThreadView) -> ThreadWait {
    let fd = |nth: usize| thread.target(call.arguments[nth] & 0xffff_ffff);
    // Whether the argument `nth` of a call sets a timeout, as a pointer or in milliseconds.
    let limit = |nth: usize| call.arguments[nth] != 0;
    let milliseconds = |nth: usize| call.arguments[nth] as i32 > 0;
    let poll = |limited: bool| polled(&pollfds(call, thread), thread, false, limited);
    let select = || polled(&selected(call, thread), thread, false, limit(4));
    let epoll = |limited: bool| {
        let watched = thread.watched(call.arguments[0]);
        let edge = watched.iter().any(|&(_, events)| events & EDGE != 0);
        polled(&watched, thread, edge, limited)
    };
    match call.number {
        libc::SYS_read | libc::SYS_readv | libc::SYS_pread64 | libc::SYS_preadv | libc::SYS_preadv2 => reading(fd(0)),
        libc::SYS_write | libc::SYS_writev | libc::SYS_pwrite64 | libc::SYS_pwritev | libc::SYS_pwritev2 => {
            writing(fd(0))
        }
        libc::SYS_vmsplice => writing(fd(0)),
        libc::SYS_splice => moving(fd(0), fd(2), thread),
        libc::SYS_tee => moving(fd(0), fd(1), thread),
        libc::SYS_sendfile => moving(fd(1), fd(0), thread),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll => poll(milliseconds(2)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_select => select(),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_epoll_wait => epoll(milliseconds(3)),
        libc::SYS_ppoll => poll(limit(2)),
        libc::SYS_pselect6 => select(),
        libc::SYS_epoll_pwait => epoll(milliseconds(3)),
        libc::SYS_epoll_pwait2 => epoll(limit(3)),
        libc::SYS_io_uring_enter | libc::SYS_io_getevents => {
            ThreadWait::Unsure { ins: true, outs: true, otherwise: ThreadState::Disk }
        }
        // A socket pair may join stages.
        libc::SYS_recvfrom | libc::SYS_recvmsg | libc::SYS_recvmmsg if matches!(fd(0), WaitTarget::In(_)) => {
            reading(fd(0))
        }
        libc::SYS_sendto | libc::SYS_sendmsg if matches!(fd(0), WaitTarget::Out(_)) => writing(fd(0)),
        libc::SYS_recvfrom | libc::SYS_recvmsg | libc::SYS_recvmmsg | libc::SYS_sendto | libc::SYS_sendmsg => {
            network(fd(0))
        }
        libc::SYS_sendmmsg | libc::SYS_accept | libc::SYS_accept4 | libc::SYS_connect => network(fd(0)),
        // Opening a FIFO waits until its other end is opened.
        libc::SYS_openat => waits_in(thread).unwrap_or(ThreadWait::Is(ThreadState::Disk)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open => waits_in(thread).unwrap_or(ThreadWait::Is(ThreadState::Disk)),
        libc::SYS_rt_sigtimedwait if limit(2) => ThreadWait::Is(ThreadState::Sleep),
        number => match of_number(number) {
            Some(state) => ThreadWait::Is(state),
            None => waits_in(thread).unwrap_or(ThreadWait::Is(ThreadState::Other)),
        },
    }
}

/// The wait of a call that doesn't depend on the arguments; `None` for other calls.
fn of_number(number: i64) -> Option<ThreadState> {
    Some(match number {
        libc::SYS_futex | libc::SYS_futex_waitv | libc::SYS_flock | libc::SYS_fcntl => ThreadState::Lock,
        libc::SYS_wait4 | libc::SYS_waitid => ThreadState::Children,
        libc::SYS_nanosleep | libc::SYS_clock_nanosleep => ThreadState::Sleep,
        libc::SYS_rt_sigsuspend | libc::SYS_rt_sigtimedwait => ThreadState::Other,
        libc::SYS_fsync | libc::SYS_fdatasync | libc::SYS_sync_file_range | libc::SYS_syncfs => ThreadState::Disk,
        libc::SYS_newfstatat | libc::SYS_statx | libc::SYS_getdents64 => ThreadState::Disk,
        libc::SYS_unlinkat | libc::SYS_ftruncate | libc::SYS_fallocate | libc::SYS_renameat2 => ThreadState::Disk,
        libc::SYS_close | libc::SYS_copy_file_range | libc::SYS_madvise | libc::SYS_mmap => ThreadState::Disk,
        libc::SYS_munmap | libc::SYS_msync => ThreadState::Disk,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_stat | libc::SYS_lstat | libc::SYS_getdents => ThreadState::Disk,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_pause => ThreadState::Other,
        _ => return None,
    })
}

/// The wait according to the kernel function; `None` if unknown. This takes one more read of /proc.
fn waits_in(thread: &dyn ThreadView) -> Option<ThreadWait> {
    of_function(&thread.function()?)
}

/// The wait of a call that moves bytes from one descriptor to another. The call may wait for either descriptor.
fn moving(from: WaitTarget, to: WaitTarget, thread: &dyn ThreadView) -> ThreadWait {
    match (from, to) {
        (WaitTarget::In(_), WaitTarget::Out(_)) => match waits_in(thread) {
            Some(ThreadWait::In(_)) => reading(from),
            Some(ThreadWait::Out(_)) => writing(to),
            _ => ThreadWait::Unsure { ins: true, outs: true, otherwise: ThreadState::Other },
        },
        (WaitTarget::In(_), _) if !matches!(waits_in(thread), Some(ThreadWait::In(_)) | None) => writing(to),
        (_, WaitTarget::Out(_)) if matches!(waits_in(thread), Some(ThreadWait::Out(_)) | None) => writing(to),
        _ => reading(from),
    }
}

fn network(socket: WaitTarget) -> ThreadWait {
    ThreadWait::Is(if socket == WaitTarget::Local { ThreadState::Other } else { ThreadState::Network })
}

fn reading(target: WaitTarget) -> ThreadWait {
    match target {
        WaitTarget::In(pipe) => ThreadWait::In(Some(pipe)),
        other => ThreadWait::Is(outside(other)),
    }
}

fn writing(target: WaitTarget) -> ThreadWait {
    match target {
        WaitTarget::Out(pipe) => ThreadWait::Out(Some(pipe)),
        other => ThreadWait::Is(outside(other)),
    }
}

fn outside(target: WaitTarget) -> ThreadState {
    match target {
        WaitTarget::File => ThreadState::Disk,
        WaitTarget::Socket => ThreadState::Network,
        WaitTarget::Terminal => ThreadState::Terminal,
        WaitTarget::Timer => ThreadState::Sleep,
        WaitTarget::In(_) | WaitTarget::Out(_) | WaitTarget::Local | WaitTarget::Own | WaitTarget::Other => {
            ThreadState::Other
        }
    }
}

/// The descriptors of poll(2), with their events.
fn pollfds(call: &SystemCall, thread: &dyn ThreadView) -> Vec<(u64, u32)> {
    let count = usize::try_from(call.arguments[1]).unwrap_or(usize::MAX).min(64);
    let Some(bytes) = thread.memory(call.arguments[0], count * 8) else { return Vec::new() };
    let four = |at: &[u8]| u32::from_ne_bytes([at[0], at[1], at[2], at[3]]);
    let each = bytes.chunks_exact(8).map(|one| (four(one), four(&one[4..]) & 0xffff));
    // pipemark's relay inverts its input's descriptor while it lets the pipe fill, so that poll ignores the descriptor.
    let each = each.map(|(fd, events)| (if events == RDBAND && fd > i32::MAX as u32 { !fd } else { fd }, events));
    each.filter(|&(fd, _)| fd <= i32::MAX as u32).map(|(fd, events)| (fd.into(), events)).collect()
}

/// The descriptors of select(2), with their events.
fn selected(call: &SystemCall, thread: &dyn ThreadView) -> Vec<(u64, u32)> {
    let count = call.arguments[0].min(1024);
    let set = |address: u64, event: u32| {
        let length = usize::try_from(count.div_ceil(64) * 8).unwrap_or(0);
        let bytes = if address == 0 { None } else { thread.memory(address, length) }.unwrap_or_default();
        let has = move |fd: u64| bytes.get((fd / 8) as usize).is_some_and(|byte| byte >> (fd % 8) & 1 == 1);
        (0..count).filter(move |&fd| has(fd)).map(move |fd| (fd, event))
    };
    set(call.arguments[1], IN).chain(set(call.arguments[2], OUT)).collect()
}

fn polled(watched: &[(u64, u32)], thread: &dyn ThreadView, edge: bool, limited: bool) -> ThreadWait {
    let (mut ins, mut outs, mut otherwise) = (Vec::new(), Vec::new(), None);
    let mut own = true;
    for &(fd, events) in watched {
        let target = thread.target(fd);
        own &= matches!(target, WaitTarget::Own | WaitTarget::Timer);
        match target {
            WaitTarget::In(pipe) if events & IN != 0 => ins.push(pipe),
            WaitTarget::Out(pipe) if events & OUT != 0 => outs.push(pipe),
            WaitTarget::In(_) | WaitTarget::Out(_) => {}
            other if events & (IN | OUT) != 0 => {
                let state = outside(other);
                otherwise = Some(otherwise.map_or(state, |known: ThreadState| known.min(state)));
            }
            _ => {}
        }
    }
    let single = |pipes: &[PipeId]| if let [pipe] = pipes { Some(*pipe) } else { None };
    match (ins.is_empty(), outs.is_empty()) {
        (true, true) => ThreadWait::Is(match otherwise {
            None | Some(ThreadState::Other) if watched.is_empty() || own && limited => ThreadState::Sleep,
            None => ThreadState::Other,
            Some(state) => state,
        }),
        (false, true) if !edge && otherwise != Some(ThreadState::Network) => ThreadWait::In(single(&ins)),
        (true, false) if !edge && otherwise != Some(ThreadState::Network) => ThreadWait::Out(single(&outs)),
        (no_ins, no_outs) => {
            ThreadWait::Unsure { ins: !no_ins, outs: !no_outs, otherwise: otherwise.unwrap_or(ThreadState::Other) }
        }
    }
}

/// Whether a name begins with one of the alternatives in `like`.
fn begins_with_any(name: &str, like: &str) -> bool {
    like.split(' ').any(|begin| name.starts_with(begin))
}

/// Kernel functions, by the beginnings of their names, and what a thread in them waits for. The first match counts.
const FUNCTIONS: [(&str, ThreadWait); 12] = [
    ("anon_pipe_read pipe_read fifo_pipe_read pipe_wait_readable", ThreadWait::In(None)),
    ("anon_pipe_write pipe_write fifo_pipe_write pipe_wait_writable", ThreadWait::Out(None)),
    (
        "do_poll do_sys_poll poll_schedule do_select ep_poll do_epoll io_cqring schedule_hrtimeout",
        ThreadWait::Unsure { ins: true, outs: true, otherwise: ThreadState::Other },
    ),
    ("wait_for_partner fifo_open", ThreadWait::Is(ThreadState::Other)),
    ("do_wait kernel_wait", ThreadWait::Is(ThreadState::Children)),
    ("hrtimer_nanosleep do_nanosleep", ThreadWait::Is(ThreadState::Sleep)),
    ("io_wq_worker futex __futex flock locks_lock posix_lock fcntl_setlk", ThreadWait::Is(ThreadState::Lock)),
    ("n_tty tty_", ThreadWait::Is(ThreadState::Terminal)),
    ("sk_ tcp_ inet_ skb_ __skb sock_ udp_ vsock_", ThreadWait::Is(ThreadState::Network)),
    (
        "folio_ wait_on_page io_schedule blk_ jbd2 ext4 xfs btrfs nfs rpc_ filemap balance_dirty submit_bio __lock_page \
         wait_on_bit bit_wait rq_qos",
        ThreadWait::Is(ThreadState::Disk),
    ),
    ("do_signal_stop ptrace_stop", ThreadWait::Is(ThreadState::Stopped)),
    ("do_sigtimedwait sigsuspend __do_sys_pause inotify unix_ wait_woken", ThreadWait::Is(ThreadState::Other)),
];

/// The wait in this kernel function; `None` if unknown.
pub(crate) fn of_function(name: &str) -> Option<ThreadWait> {
    let fits = |(names, wait): &&(&str, ThreadWait)| match wait {
        // Whole names are compared, because other functions of pipes have names that begin like these.
        ThreadWait::In(_) | ThreadWait::Out(_) => names.split(' ').any(|whole| name == whole),
        _ => begins_with_any(name, names),
    };
    FUNCTIONS.iter().find(fits).map(|(_, wait)| wait.clone())
}

/// A description of the wait in this function; `None` if a state covers it.
pub fn describe_wait(function: &str) -> Option<&'static str> {
    let known = [
        ("wait_for_partner fifo_open", "another process to open the other end of a FIFO"),
        ("unix_", "another program, over a Unix socket"),
        ("ep_poll do_epoll", "an event, a timer or another program"),
        ("do_poll do_select", "an event or another program"),
        ("eventfd", "an event"),
        ("inotify", "a file to change"),
        ("do_sigtimedwait sigsuspend __do_sys_pause", "a signal"),
        ("anon_pipe pipe_", "another of its processes"),
    ];
    known.iter().find(|(names, _)| begins_with_any(function, names)).map(|(_, what)| *what)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread with these descriptors: 0 is a pipe that it reads, 1 a pipe that it writes, 2 a terminal, 3 a socket, 4
    /// a file, 5 a socket to this machine, 6 an eventfd, 7 a timer.
    struct Fake {
        memory: Vec<u8>,
        watched: Vec<(u64, u32)>,
        function: &'static str,
    }

    const INPUT: PipeId = PipeId(0, 10);
    const OUTPUT: PipeId = PipeId(0, 11);

    impl ThreadView for Fake {
        fn target(&self, fd: u64) -> WaitTarget {
            let (input, output) = (WaitTarget::In(INPUT), WaitTarget::Out(OUTPUT));
            let others = [
                WaitTarget::Terminal,
                WaitTarget::Socket,
                WaitTarget::File,
                WaitTarget::Local,
                WaitTarget::Own,
                WaitTarget::Timer,
            ];
            [&[input, output][..], &others].concat()[fd as usize]
        }

        fn memory(&self, _: u64, length: usize) -> Option<Vec<u8>> {
            self.memory.get(..length).map(<[u8]>::to_vec)
        }

        fn watched(&self, _: u64) -> Vec<(u64, u32)> {
            self.watched.clone()
        }

        fn function(&self) -> Option<String> {
            Some(self.function.to_owned())
        }
    }

    fn fake() -> Fake {
        Fake { memory: Vec::new(), watched: Vec::new(), function: "0" }
    }

    fn wait(number: i64, arguments: &[u64], thread: &Fake) -> ThreadWait {
        let mut all = [0; 6];
        all[..arguments.len()].copy_from_slice(arguments);
        of_call(&SystemCall { number, arguments: all }, thread)
    }

    #[test]
    fn lines_of_the_kernel_are_read() {
        assert_eq!(SyscallLine::parse("running\n"), Some(SyscallLine::Running));
        assert_eq!(SyscallLine::parse("-1 0x7ffd 0x7f12\n"), Some(SyscallLine::Outside));
        assert_eq!(SyscallLine::parse("-1 0x0 0x0\n"), Some(SyscallLine::Gone));
        let seen = SyscallLine::parse("0 0x3 0x7f 0x20000 0x0 0xffffffff 0x0 0x7ffd 0x7f12\n");
        let call = SystemCall { number: 0, arguments: [3, 0x7f, 0x20000, 0, 0xffff_ffff, 0] };
        assert_eq!(seen, Some(SyscallLine::Waiting(call)));
        assert_eq!(SyscallLine::parse(""), None);
    }

    #[test]
    fn reads_and_writes_are_classified_by_their_descriptor() {
        assert_eq!(wait(libc::SYS_read, &[0], &fake()), ThreadWait::In(Some(INPUT)));
        assert_eq!(wait(libc::SYS_writev, &[1], &fake()), ThreadWait::Out(Some(OUTPUT)));
        assert_eq!(wait(libc::SYS_read, &[2], &fake()), ThreadWait::Is(ThreadState::Terminal));
        assert_eq!(wait(libc::SYS_read, &[3], &fake()), ThreadWait::Is(ThreadState::Network));
        assert_eq!(wait(libc::SYS_write, &[4], &fake()), ThreadWait::Is(ThreadState::Disk));
        assert_eq!(wait(libc::SYS_clock_nanosleep, &[0], &fake()), ThreadWait::Is(ThreadState::Sleep));
        assert_eq!(wait(libc::SYS_read, &[7], &fake()), ThreadWait::Is(ThreadState::Sleep));
        assert_eq!(wait(libc::SYS_rt_sigtimedwait, &[0, 0, 1], &fake()), ThreadWait::Is(ThreadState::Sleep));
        assert_eq!(wait(libc::SYS_rt_sigtimedwait, &[0, 0, 0], &fake()), ThreadWait::Is(ThreadState::Other));
        assert_eq!(wait(libc::SYS_wait4, &[0], &fake()), ThreadWait::Is(ThreadState::Children));
        assert_eq!(wait(libc::SYS_fsync, &[4], &fake()), ThreadWait::Is(ThreadState::Disk));
        assert_eq!(wait(libc::SYS_openat, &[0], &fake()), ThreadWait::Is(ThreadState::Disk));
        let fifo = Fake { function: "wait_for_partner", ..fake() };
        assert_eq!(wait(libc::SYS_openat, &[0], &fifo), ThreadWait::Is(ThreadState::Other));
        assert_eq!(wait(libc::SYS_flock, &[4], &fake()), ThreadWait::Is(ThreadState::Lock));
        // An unknown call is classified by the kernel function.
        let asleep = Fake { function: "do_nanosleep", ..fake() };
        assert_eq!(wait(i64::MAX, &[], &asleep), ThreadWait::Is(ThreadState::Sleep));
        assert_eq!(wait(i64::MAX, &[], &fake()), ThreadWait::Is(ThreadState::Other));
    }

    #[test]
    fn splices_between_pipes_are_classified_by_the_kernel_function() {
        let at = |function| Fake { function, ..fake() };
        assert_eq!(wait(libc::SYS_splice, &[0, 0, 1], &at("pipe_wait_readable")), ThreadWait::In(Some(INPUT)));
        assert_eq!(wait(libc::SYS_splice, &[0, 0, 1], &at("pipe_wait_writable")), ThreadWait::Out(Some(OUTPUT)));
        assert_eq!(wait(libc::SYS_splice, &[4, 0, 1], &at("pipe_wait_writable")), ThreadWait::Out(Some(OUTPUT)));
        assert_eq!(wait(libc::SYS_splice, &[4, 0, 1], &at("folio_wait_bit_common")), ThreadWait::Is(ThreadState::Disk));
        assert_eq!(
            wait(libc::SYS_splice, &[0, 0, 3], &at("sk_stream_wait_memory")),
            ThreadWait::Is(ThreadState::Network)
        );
    }

    #[test]
    fn poll_is_classified_by_its_descriptors() {
        let pollfd = |fd: u32, events: u16| {
            let words = [fd.to_ne_bytes().to_vec(), events.to_ne_bytes().to_vec(), vec![0, 0]];
            words.concat()
        };
        let polls = |fds: &[Vec<u8>]| {
            let thread = Fake { memory: fds.concat(), ..fake() };
            wait(libc::SYS_ppoll, &[1, fds.len() as u64], &thread)
        };
        assert_eq!(polls(&[pollfd(0, 1)]), ThreadWait::In(Some(INPUT)));
        assert_eq!(polls(&[pollfd(1, 4)]), ThreadWait::Out(Some(OUTPUT)));
        assert_eq!(polls(&[pollfd(3, 1)]), ThreadWait::Is(ThreadState::Network));
        assert_eq!(polls(&[]), ThreadWait::Is(ThreadState::Sleep));
        assert_eq!(
            polls(&[pollfd(0, 1), pollfd(1, 4)]),
            ThreadWait::Unsure { ins: true, outs: true, otherwise: ThreadState::Other }
        );
        assert_eq!(
            polls(&[pollfd(0, 1), pollfd(3, 1)]),
            ThreadWait::Unsure { ins: true, outs: false, otherwise: ThreadState::Network }
        );
        // pipemark's relay polls like this to let a pipe fill, and to let it drain.
        assert_eq!(polls(&[pollfd(!0, 0x80)]), ThreadWait::In(Some(INPUT)));
        assert_eq!(polls(&[pollfd(1, 0x200)]), ThreadWait::Out(Some(OUTPUT)));
        // The call polls the second pipe only to learn that its other end was closed.
        assert_eq!(polls(&[pollfd(0, 1), pollfd(1, 0)]), ThreadWait::In(Some(INPUT)));
    }

    #[test]
    fn select_and_epoll_are_classified_by_their_descriptors() {
        let set = |fds: u64| fds.to_ne_bytes().to_vec();
        let thread = Fake { memory: set(0b1), ..fake() };
        assert_eq!(wait(libc::SYS_pselect6, &[1, 8, 0], &thread), ThreadWait::In(Some(INPUT)));
        let epoll = |watched: &[(u64, u32)]| {
            let thread = Fake { watched: watched.to_vec(), ..fake() };
            wait(libc::SYS_epoll_pwait, &[9], &thread)
        };
        assert_eq!(epoll(&[(0, IN)]), ThreadWait::In(Some(INPUT)));
        // An event loop that waits for a timeout, and one that waits to be woken.
        let loops = |watched: &[(u64, u32)], limit: i32| {
            let thread = Fake { watched: watched.to_vec(), ..fake() };
            wait(libc::SYS_epoll_pwait, &[9, 0, 8, u64::from(limit.cast_unsigned())], &thread)
        };
        assert_eq!(loops(&[(6, IN)], 20), ThreadWait::Is(ThreadState::Sleep));
        assert_eq!(loops(&[(6, IN)], -1), ThreadWait::Is(ThreadState::Other));
        assert_eq!(loops(&[(6, IN), (5, IN)], 20), ThreadWait::Is(ThreadState::Other));
        assert_eq!(loops(&[(6, IN), (3, IN)], 20), ThreadWait::Is(ThreadState::Network));
        assert_eq!(wait(libc::SYS_recvfrom, &[3], &fake()), ThreadWait::Is(ThreadState::Network));
        assert_eq!(wait(libc::SYS_recvfrom, &[5], &fake()), ThreadWait::Is(ThreadState::Other));
        assert_eq!(
            epoll(&[(0, IN | EDGE), (1, OUT | EDGE)]),
            ThreadWait::Unsure { ins: true, outs: true, otherwise: ThreadState::Other }
        );
    }

    #[test]
    fn a_pair_of_sockets_that_joins_stages_is_waited_for_as_a_pipe() {
        assert_eq!(wait(libc::SYS_recvfrom, &[0], &fake()), ThreadWait::In(Some(INPUT)));
        assert_eq!(wait(libc::SYS_sendto, &[1], &fake()), ThreadWait::Out(Some(OUTPUT)));
    }

    #[test]
    fn descriptors_are_those_of_the_call() {
        let of = |number: i64, arguments: &[u64]| {
            let mut all = [0; 6];
            all[..arguments.len()].copy_from_slice(arguments);
            descriptors(&SystemCall { number, arguments: all }, &fake(), false)
        };
        assert_eq!(of(libc::SYS_read, &[3]), Descriptors::Files(vec![(3, Direction::In)]));
        assert_eq!(of(libc::SYS_write, &[2]), Descriptors::Files(vec![(2, Direction::Out)]));
        assert_eq!(of(libc::SYS_wait4, &[7]), Descriptors::Children);
        assert_eq!(of(libc::SYS_futex, &[7]), Descriptors::Lock);
        // A call with a timeout ends by itself.
        assert_eq!(of(libc::SYS_ppoll, &[0, 0, 1]), Descriptors::Else);
        assert_eq!(of(libc::SYS_clock_nanosleep, &[0]), Descriptors::Else);
    }

    #[test]
    fn functions_of_several_kernels_are_known() {
        assert_eq!(of_function("pipe_read"), Some(ThreadWait::In(None)));
        assert_eq!(of_function("anon_pipe_write"), Some(ThreadWait::Out(None)));
        assert_eq!(of_function("do_wait4"), Some(ThreadWait::Is(ThreadState::Children)));
        assert_eq!(of_function("futex_do_wait"), Some(ThreadWait::Is(ThreadState::Lock)));
        assert_eq!(of_function("folio_wait_bit_common"), Some(ThreadWait::Is(ThreadState::Disk)));
        assert_eq!(of_function("rq_qos_wait"), Some(ThreadWait::Is(ThreadState::Disk)));
        // Functions of pipes are matched by their whole names. This name only begins like one of them.
        assert_eq!(of_function("pipe_readable"), None);
        assert_eq!(of_function("0"), None);
    }
}
