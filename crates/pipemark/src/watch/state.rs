//! What a thread is doing, from the system call that it waits in, or from the name of the kernel's function.

use super::process::PipeId;

/// What a stage is doing at one moment. Of its threads the first in this order counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// It computes or waits for a CPU: the two look alike, and counters tell them apart.
    Running,
    /// It waits for a disk.
    Disk,
    /// It waits for room in a pipe that it writes.
    Blocked,
    /// It waits for input from a pipe that it reads.
    Starved,
    Network,
    Terminal,
    Sleep,
    /// For anything else, such as a signal or a file to change.
    Other,
    /// For processes that it started.
    Children,
    Lock,
    Stopped,
    /// It can't be seen.
    Unknown,
}

impl State {
    pub const COUNT: usize = State::Unknown as usize + 1;
}

/// What one thread waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wait {
    Is(State),
    /// Input from this pipe, or from any that it reads.
    In(Option<PipeId>),
    /// Room in this pipe, or in any that it writes.
    Out(Option<PipeId>),
    /// One of these: the neighbours tell.
    Unsure {
        ins: bool,
        outs: bool,
        otherwise: State,
    },
}

/// What a descriptor is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    In(PipeId),
    Out(PipeId),
    File,
    Socket,
    /// A socket to a program of the same machine.
    Local,
    Terminal,
    /// What only wakes it: an eventfd, or a pipe to itself.
    Own,
    Timer,
    Other,
}

/// A system call and its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    pub number: i64,
    pub arguments: [u64; 6],
}

/// What /proc/PID/task/T/syscall says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    Running,
    Waiting(Call),
    /// It waits, but not in a system call: for a page.
    Outside,
    /// It has ended and was not waited for yet.
    Gone,
}

impl Seen {
    /// Reads the line.
    pub fn parse(line: &str) -> Option<Seen> {
        let mut words = line.split_ascii_whitespace();
        let number = match words.next()? {
            "running" => return Some(Seen::Running),
            word => word.parse().ok()?,
        };
        if number < 0 {
            return Some(if words.next()? == "0x0" { Seen::Gone } else { Seen::Outside });
        }
        let mut arguments = [0; 6];
        for argument in &mut arguments {
            *argument = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
        }
        Some(Seen::Waiting(Call { number, arguments }))
    }
}

/// What can be asked about a thread that waits.
pub trait Thread {
    fn target(&self, fd: u64) -> Target;
    /// Bytes of its memory.
    fn memory(&self, address: u64, length: usize) -> Option<Vec<u8>>;
    /// The descriptors that an epoll descriptor watches, with their events.
    fn watched(&self, epoll: u64) -> Vec<(u64, u32)>;
    /// The kernel's function that it waits in.
    fn function(&self) -> Option<String>;
}

/// What system calls do that can make a thread wait. The numbers are those of this architecture.
enum Kind {
    Read,
    Write,
    /// From the descriptor of one argument to that of another.
    Move(usize, usize),
    Poll,
    Select,
    Epoll,
    Ring,
    Futex,
    Children,
    Sleep,
    Network,
    LockFile,
    Signal,
    Files,
    Other,
}

fn kind(number: i64) -> Kind {
    #[cfg(target_arch = "x86_64")]
    match number {
        libc::SYS_poll => return Kind::Poll,
        libc::SYS_select => return Kind::Select,
        libc::SYS_epoll_wait => return Kind::Epoll,
        libc::SYS_pause => return Kind::Signal,
        libc::SYS_open | libc::SYS_stat | libc::SYS_lstat | libc::SYS_getdents => return Kind::Files,
        _ => {}
    }
    match number {
        libc::SYS_read | libc::SYS_readv | libc::SYS_pread64 | libc::SYS_preadv | libc::SYS_preadv2 => Kind::Read,
        libc::SYS_write | libc::SYS_writev | libc::SYS_pwrite64 | libc::SYS_pwritev | libc::SYS_pwritev2 => Kind::Write,
        libc::SYS_vmsplice => Kind::Write,
        libc::SYS_splice => Kind::Move(0, 2),
        libc::SYS_tee => Kind::Move(0, 1),
        libc::SYS_sendfile => Kind::Move(1, 0),
        libc::SYS_copy_file_range => Kind::Files,
        libc::SYS_ppoll => Kind::Poll,
        libc::SYS_pselect6 => Kind::Select,
        libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => Kind::Epoll,
        libc::SYS_io_uring_enter | libc::SYS_io_getevents => Kind::Ring,
        libc::SYS_futex | libc::SYS_futex_waitv => Kind::Futex,
        libc::SYS_wait4 | libc::SYS_waitid => Kind::Children,
        libc::SYS_nanosleep | libc::SYS_clock_nanosleep => Kind::Sleep,
        libc::SYS_recvfrom | libc::SYS_recvmsg | libc::SYS_recvmmsg | libc::SYS_sendto | libc::SYS_sendmsg => {
            Kind::Network
        }
        libc::SYS_sendmmsg | libc::SYS_accept | libc::SYS_accept4 | libc::SYS_connect => Kind::Network,
        libc::SYS_flock | libc::SYS_fcntl => Kind::LockFile,
        libc::SYS_rt_sigsuspend | libc::SYS_rt_sigtimedwait => Kind::Signal,
        libc::SYS_fsync | libc::SYS_fdatasync | libc::SYS_sync_file_range | libc::SYS_syncfs => Kind::Files,
        libc::SYS_openat | libc::SYS_newfstatat | libc::SYS_statx | libc::SYS_getdents64 | libc::SYS_unlinkat => {
            Kind::Files
        }
        libc::SYS_ftruncate | libc::SYS_fallocate | libc::SYS_renameat2 | libc::SYS_close => Kind::Files,
        libc::SYS_madvise | libc::SYS_mmap | libc::SYS_munmap | libc::SYS_msync => Kind::Files,
        _ => Kind::Other,
    }
}

const IN: u32 = 0x1;
const OUT: u32 = 0x4;
const EDGE: u32 = 1 << 31;

/// Whether a thread in this call would move bytes past the counters of reads and writes.
pub fn is_uncounted(call: &Call) -> bool {
    matches!(call.number, libc::SYS_splice | libc::SYS_tee | libc::SYS_vmsplice | libc::SYS_io_uring_enter)
}

/// What a thread that waits in a system call waits for.
pub fn of_call(call: &Call, thread: &dyn Thread) -> Wait {
    let fd = |nth: usize| thread.target(call.arguments[nth] & 0xffff_ffff);
    match kind(call.number) {
        Kind::Read => reading(fd(0)),
        Kind::Write => writing(fd(0)),
        Kind::Move(from, to) => match (fd(from), fd(to)) {
            (Target::In(input), Target::Out(output)) => match thread.function().as_deref().and_then(of_function) {
                Some(Wait::In(_)) => Wait::In(Some(input)),
                Some(Wait::Out(_)) => Wait::Out(Some(output)),
                _ => Wait::Unsure { ins: true, outs: true, otherwise: State::Other },
            },
            (input @ Target::In(_), other) => match thread.function().as_deref().and_then(of_function) {
                Some(Wait::In(_)) | None => reading(input),
                _ => writing(other),
            },
            (other, output @ Target::Out(_)) => match thread.function().as_deref().and_then(of_function) {
                Some(Wait::Out(_)) | None => writing(output),
                _ => reading(other),
            },
            (from, _) => reading(from),
        },
        Kind::Poll => polled(&pollfds(call, thread), thread, false, is_limited(call)),
        Kind::Select => polled(&selected(call, thread), thread, false, is_limited(call)),
        Kind::Epoll => {
            let watched = thread.watched(call.arguments[0]);
            let edge = watched.iter().any(|&(_, events)| events & EDGE != 0);
            polled(&watched, thread, edge, is_limited(call))
        }
        Kind::Ring => Wait::Unsure { ins: true, outs: true, otherwise: State::Disk },
        Kind::Futex => Wait::Is(State::Lock),
        Kind::LockFile => Wait::Is(State::Lock),
        Kind::Children => Wait::Is(State::Children),
        Kind::Sleep => Wait::Is(State::Sleep),
        Kind::Network if fd(0) == Target::Local => Wait::Is(State::Other),
        Kind::Network => Wait::Is(State::Network),
        Kind::Signal if is_limited(call) => Wait::Is(State::Sleep),
        Kind::Signal => Wait::Is(State::Other),
        Kind::Files => Wait::Is(State::Disk),
        Kind::Other => match thread.function().as_deref().and_then(of_function) {
            Some(wait) => wait,
            None => Wait::Is(State::Other),
        },
    }
}

fn reading(target: Target) -> Wait {
    match target {
        Target::In(pipe) => Wait::In(Some(pipe)),
        other => Wait::Is(outside(other)),
    }
}

fn writing(target: Target) -> Wait {
    match target {
        Target::Out(pipe) => Wait::Out(Some(pipe)),
        other => Wait::Is(outside(other)),
    }
}

fn outside(target: Target) -> State {
    match target {
        Target::File => State::Disk,
        Target::Socket => State::Network,
        Target::Terminal => State::Terminal,
        Target::Timer => State::Sleep,
        Target::In(_) | Target::Out(_) | Target::Local | Target::Own | Target::Other => State::Other,
    }
}

/// Whether a call that waits for descriptors has a time limit.
fn is_limited(call: &Call) -> bool {
    let milliseconds = |nth: usize| call.arguments[nth] as i32 > 0;
    #[cfg(target_arch = "x86_64")]
    match call.number {
        libc::SYS_poll => return milliseconds(2),
        libc::SYS_epoll_wait => return milliseconds(3),
        libc::SYS_select => return call.arguments[4] != 0,
        _ => {}
    }
    match call.number {
        libc::SYS_ppoll | libc::SYS_rt_sigtimedwait => call.arguments[2] != 0,
        libc::SYS_pselect6 => call.arguments[4] != 0,
        libc::SYS_epoll_pwait => milliseconds(3),
        libc::SYS_epoll_pwait2 => call.arguments[3] != 0,
        _ => false,
    }
}

/// The descriptors of poll(2), with their events.
fn pollfds(call: &Call, thread: &dyn Thread) -> Vec<(u64, u32)> {
    let count = usize::try_from(call.arguments[1]).unwrap_or(usize::MAX).min(64);
    let Some(bytes) = thread.memory(call.arguments[0], count * 8) else { return Vec::new() };
    let four = |at: &[u8]| u32::from_ne_bytes([at[0], at[1], at[2], at[3]]);
    let each = bytes.chunks_exact(8).map(|one| (u64::from(four(one)), four(&one[4..]) & 0xffff));
    each.filter(|&(fd, _)| fd < 1 << 31).collect()
}

/// The descriptors of select(2), likewise.
fn selected(call: &Call, thread: &dyn Thread) -> Vec<(u64, u32)> {
    let count = call.arguments[0].min(1024);
    let set = |address: u64, event: u32| {
        let length = usize::try_from(count.div_ceil(64) * 8).unwrap_or(0);
        let bytes = if address == 0 { None } else { thread.memory(address, length) }.unwrap_or_default();
        let has = move |fd: u64| bytes.get((fd / 8) as usize).is_some_and(|byte| byte >> (fd % 8) & 1 == 1);
        (0..count).filter(move |&fd| has(fd)).map(move |fd| (fd, event))
    };
    set(call.arguments[1], IN).chain(set(call.arguments[2], OUT)).collect()
}

fn polled(watched: &[(u64, u32)], thread: &dyn Thread, edge: bool, limited: bool) -> Wait {
    let (mut ins, mut outs, mut otherwise) = (Vec::new(), Vec::new(), None);
    let mut own = true;
    for &(fd, events) in watched {
        let target = thread.target(fd);
        own &= matches!(target, Target::Own | Target::Timer);
        match target {
            Target::In(pipe) if events & IN != 0 => ins.push(pipe),
            Target::Out(pipe) if events & OUT != 0 => outs.push(pipe),
            Target::In(_) | Target::Out(_) => {}
            other if events & (IN | OUT) != 0 => {
                let state = outside(other);
                otherwise = Some(otherwise.map_or(state, |known: State| known.min(state)));
            }
            _ => {}
        }
    }
    let single = |pipes: &[PipeId]| if let [pipe] = pipes { Some(*pipe) } else { None };
    match (ins.is_empty(), outs.is_empty()) {
        (true, true) => Wait::Is(match otherwise {
            None | Some(State::Other) if watched.is_empty() || own && limited => State::Sleep,
            None => State::Other,
            Some(state) => state,
        }),
        (false, true) if !edge && otherwise != Some(State::Network) => Wait::In(single(&ins)),
        (true, false) if !edge && otherwise != Some(State::Network) => Wait::Out(single(&outs)),
        (no_ins, no_outs) => {
            Wait::Unsure { ins: !no_ins, outs: !no_outs, otherwise: otherwise.unwrap_or(State::Other) }
        }
    }
}

/// What a thread waits for in this function of the kernel; `None` where that is not known.
pub fn of_function(name: &str) -> Option<Wait> {
    let begins = |words: &[&str]| words.iter().any(|word| name.starts_with(word));
    Some(if ["anon_pipe_read", "pipe_read", "fifo_pipe_read", "pipe_wait_readable"].contains(&name) {
        Wait::In(None)
    } else if ["anon_pipe_write", "pipe_write", "fifo_pipe_write", "pipe_wait_writable"].contains(&name) {
        Wait::Out(None)
    } else if begins(&[
        "do_poll",
        "do_sys_poll",
        "poll_schedule",
        "do_select",
        "ep_poll",
        "do_epoll",
        "io_cqring",
        "schedule_hrtimeout",
    ]) {
        Wait::Unsure { ins: true, outs: true, otherwise: State::Other }
    } else if begins(&["do_wait", "kernel_wait"]) {
        Wait::Is(State::Children)
    } else if begins(&["hrtimer_nanosleep", "do_nanosleep"]) {
        Wait::Is(State::Sleep)
    } else if begins(&["io_wq_worker", "futex", "__futex", "flock", "locks_lock", "posix_lock", "fcntl_setlk"]) {
        Wait::Is(State::Lock)
    } else if begins(&["n_tty", "tty_", "n_tty_write"]) {
        Wait::Is(State::Terminal)
    } else if begins(&["sk_", "tcp_", "inet_", "skb_", "__skb", "sock_", "udp_", "vsock_"]) {
        Wait::Is(State::Network)
    } else if begins(&[
        "folio_",
        "wait_on_page",
        "io_schedule",
        "blk_",
        "jbd2",
        "ext4",
        "xfs",
        "btrfs",
        "nfs",
        "rpc_",
        "filemap",
        "balance_dirty",
        "submit_bio",
        "__lock_page",
        "wait_on_bit",
        "bit_wait",
        "rq_qos",
    ]) {
        Wait::Is(State::Disk)
    } else if begins(&["do_signal_stop", "ptrace_stop"]) {
        Wait::Is(State::Stopped)
    } else if begins(&["do_sigtimedwait", "sigsuspend", "__do_sys_pause", "inotify", "unix_", "wait_woken"]) {
        Wait::Is(State::Other)
    } else {
        return None;
    })
}

/// What it is that a thread waits for in this function, where that is none of the states.
pub fn named(function: &str) -> Option<&'static str> {
    let known = [
        ("unix_", "another program, over a Unix socket"),
        ("ep_poll", "an event, a timer or another program"),
        ("do_epoll", "an event, a timer or another program"),
        ("do_poll", "an event or another program"),
        ("do_select", "an event or another program"),
        ("eventfd", "an event"),
        ("inotify", "a file to change"),
        ("do_sigtimedwait", "a signal"),
        ("sigsuspend", "a signal"),
        ("__do_sys_pause", "a signal"),
        ("anon_pipe", "other processes of its own"),
        ("pipe_", "other processes of its own"),
    ];
    known.iter().find(|(begin, _)| function.starts_with(begin)).map(|(_, what)| *what)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Descriptor 0 is a pipe it reads, 1 one that it writes, 2 a terminal, 3 a socket, 4 a file, 5 a socket of this machine,
    /// 6 an eventfd, 7 a timer.
    struct Fake {
        memory: Vec<u8>,
        watched: Vec<(u64, u32)>,
        function: &'static str,
    }

    const INPUT: PipeId = PipeId(0, 10);
    const OUTPUT: PipeId = PipeId(0, 11);

    impl Thread for Fake {
        fn target(&self, fd: u64) -> Target {
            let (input, output) = (Target::In(INPUT), Target::Out(OUTPUT));
            let others = [Target::Terminal, Target::Socket, Target::File, Target::Local, Target::Own, Target::Timer];
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

    fn wait(number: i64, arguments: &[u64], thread: &Fake) -> Wait {
        let mut all = [0; 6];
        all[..arguments.len()].copy_from_slice(arguments);
        of_call(&Call { number, arguments: all }, thread)
    }

    #[test]
    fn lines_of_the_kernel_are_read() {
        assert_eq!(Seen::parse("running\n"), Some(Seen::Running));
        assert_eq!(Seen::parse("-1 0x7ffd 0x7f12\n"), Some(Seen::Outside));
        assert_eq!(Seen::parse("-1 0x0 0x0\n"), Some(Seen::Gone));
        let seen = Seen::parse("0 0x3 0x7f 0x20000 0x0 0xffffffff 0x0 0x7ffd 0x7f12\n");
        let call = Call { number: 0, arguments: [3, 0x7f, 0x20000, 0, 0xffff_ffff, 0] };
        assert_eq!(seen, Some(Seen::Waiting(call)));
        assert_eq!(Seen::parse(""), None);
    }

    #[test]
    fn reads_and_writes_are_told_by_their_descriptor() {
        assert_eq!(wait(libc::SYS_read, &[0], &fake()), Wait::In(Some(INPUT)));
        assert_eq!(wait(libc::SYS_writev, &[1], &fake()), Wait::Out(Some(OUTPUT)));
        assert_eq!(wait(libc::SYS_read, &[2], &fake()), Wait::Is(State::Terminal));
        assert_eq!(wait(libc::SYS_read, &[3], &fake()), Wait::Is(State::Network));
        assert_eq!(wait(libc::SYS_write, &[4], &fake()), Wait::Is(State::Disk));
        assert_eq!(wait(libc::SYS_clock_nanosleep, &[0], &fake()), Wait::Is(State::Sleep));
        assert_eq!(wait(libc::SYS_read, &[7], &fake()), Wait::Is(State::Sleep));
        assert_eq!(wait(libc::SYS_rt_sigtimedwait, &[0, 0, 1], &fake()), Wait::Is(State::Sleep));
        assert_eq!(wait(libc::SYS_rt_sigtimedwait, &[0, 0, 0], &fake()), Wait::Is(State::Other));
    }

    #[test]
    fn what_moves_bytes_from_pipe_to_pipe_is_told_by_the_function() {
        let at = |function| Fake { function, ..fake() };
        assert_eq!(wait(libc::SYS_splice, &[0, 0, 1], &at("pipe_wait_readable")), Wait::In(Some(INPUT)));
        assert_eq!(wait(libc::SYS_splice, &[0, 0, 1], &at("pipe_wait_writable")), Wait::Out(Some(OUTPUT)));
        assert_eq!(wait(libc::SYS_splice, &[4, 0, 1], &at("pipe_wait_writable")), Wait::Out(Some(OUTPUT)));
        assert_eq!(wait(libc::SYS_splice, &[4, 0, 1], &at("folio_wait_bit_common")), Wait::Is(State::Disk));
        assert_eq!(wait(libc::SYS_splice, &[0, 0, 3], &at("sk_stream_wait_memory")), Wait::Is(State::Network));
    }

    #[test]
    fn poll_is_told_by_what_it_polls() {
        let pollfd = |fd: u32, events: u16| {
            let words = [fd.to_ne_bytes().to_vec(), events.to_ne_bytes().to_vec(), vec![0, 0]];
            words.concat()
        };
        let polls = |fds: &[Vec<u8>]| {
            let thread = Fake { memory: fds.concat(), ..fake() };
            wait(libc::SYS_ppoll, &[1, fds.len() as u64], &thread)
        };
        assert_eq!(polls(&[pollfd(0, 1)]), Wait::In(Some(INPUT)));
        assert_eq!(polls(&[pollfd(1, 4)]), Wait::Out(Some(OUTPUT)));
        assert_eq!(polls(&[pollfd(3, 1)]), Wait::Is(State::Network));
        assert_eq!(polls(&[]), Wait::Is(State::Sleep));
        assert_eq!(
            polls(&[pollfd(0, 1), pollfd(1, 4)]),
            Wait::Unsure { ins: true, outs: true, otherwise: State::Other }
        );
        assert_eq!(
            polls(&[pollfd(0, 1), pollfd(3, 1)]),
            Wait::Unsure { ins: true, outs: false, otherwise: State::Network }
        );
        // Neither asked for: only whether the other end is gone.
        assert_eq!(polls(&[pollfd(0, 1), pollfd(1, 0)]), Wait::In(Some(INPUT)));
    }

    #[test]
    fn select_and_epoll_are_told_likewise() {
        let set = |fds: u64| fds.to_ne_bytes().to_vec();
        let thread = Fake { memory: set(0b1), ..fake() };
        assert_eq!(wait(libc::SYS_pselect6, &[1, 8, 0], &thread), Wait::In(Some(INPUT)));
        let epoll = |watched: &[(u64, u32)]| {
            let thread = Fake { watched: watched.to_vec(), ..fake() };
            wait(libc::SYS_epoll_pwait, &[9], &thread)
        };
        assert_eq!(epoll(&[(0, IN)]), Wait::In(Some(INPUT)));
        // An event loop that waits for a time, and one that waits to be woken.
        let loops = |watched: &[(u64, u32)], limit: i32| {
            let thread = Fake { watched: watched.to_vec(), ..fake() };
            wait(libc::SYS_epoll_pwait, &[9, 0, 8, u64::from(limit.cast_unsigned())], &thread)
        };
        assert_eq!(loops(&[(6, IN)], 20), Wait::Is(State::Sleep));
        assert_eq!(loops(&[(6, IN)], -1), Wait::Is(State::Other));
        assert_eq!(loops(&[(6, IN), (5, IN)], 20), Wait::Is(State::Other));
        assert_eq!(loops(&[(6, IN), (3, IN)], 20), Wait::Is(State::Network));
        assert_eq!(wait(libc::SYS_recvfrom, &[3], &fake()), Wait::Is(State::Network));
        assert_eq!(wait(libc::SYS_recvfrom, &[5], &fake()), Wait::Is(State::Other));
        assert_eq!(
            epoll(&[(0, IN | EDGE), (1, OUT | EDGE)]),
            Wait::Unsure { ins: true, outs: true, otherwise: State::Other }
        );
    }

    #[test]
    fn functions_of_several_kernels_are_known() {
        assert_eq!(of_function("pipe_read"), Some(Wait::In(None)));
        assert_eq!(of_function("anon_pipe_write"), Some(Wait::Out(None)));
        assert_eq!(of_function("do_wait4"), Some(Wait::Is(State::Children)));
        assert_eq!(of_function("futex_do_wait"), Some(Wait::Is(State::Lock)));
        assert_eq!(of_function("0"), None);
    }
}
