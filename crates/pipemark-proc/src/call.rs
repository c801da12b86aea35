//! Reads the system call that a thread waits in, and what the call's arguments refer to.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::process::{self, Direction};
use crate::state::{Descriptors, LockKind, SyscallLine, SystemCall, ThreadView, WaitTarget, descriptors, lock_in};

/// A view of a thread that reads only its memory and its epoll descriptors.
struct MemoryView(u32);

impl ThreadView for MemoryView {
    fn target(&self, _: u64) -> WaitTarget {
        WaitTarget::Other
    }

    fn memory(&self, address: u64, length: usize) -> Option<Vec<u8>> {
        memory(self.0, address, length)
    }

    fn watched(&self, epoll: u64) -> Vec<(u64, u32)> {
        watched(self.0, epoll)
    }

    fn function(&self) -> Option<String> {
        None
    }
}

/// The descriptors that a thread waits for now; `None` if the thread has exited. A call with a timeout doesn't count as
/// a wait.
pub fn descriptors_of(pid: u32, id: u32) -> Option<Descriptors> {
    match read_syscall(pid, id)? {
        SyscallLine::Waiting(call) => Some(descriptors(&call, &MemoryView(id), false)),
        SyscallLine::Running | SyscallLine::Outside => Some(Descriptors::Else),
        SyscallLine::Gone => None,
    }
}

/// The descriptors that a thread of a process waits for in this call, with or without a timeout.
pub(crate) fn descriptors_in(pid: u32, call: &SystemCall) -> Descriptors {
    descriptors(call, &MemoryView(pid), true)
}

/// The descriptor that a thread reads or writes now and the direction; `None` unless the thread waits for that
/// descriptor alone.
pub fn transfer_of(pid: u32, id: u32) -> Option<(u64, Direction)> {
    let SyscallLine::Waiting(call) = read_syscall(pid, id)? else { return None };
    let polls = matches!(call.number, libc::SYS_ppoll | libc::SYS_pselect6 | libc::SYS_epoll_pwait);
    #[cfg(target_arch = "x86_64")]
    let polls = polls || matches!(call.number, libc::SYS_poll | libc::SYS_select | libc::SYS_epoll_wait);
    match descriptors(&call, &MemoryView(id), false) {
        Descriptors::Files(files) if !polls => files.first().copied(),
        _ => None,
    }
}

/// Whether a process's first thread waits for a file lock (flock, lockf), or runs; `None` if it does neither.
pub fn lock_or_run(pid: u32) -> Option<bool> {
    match read_syscall(pid, pid)? {
        SyscallLine::Running => Some(false),
        SyscallLine::Waiting(call) => lock_in(&call).map(|_| true),
        _ => None,
    }
}

/// The descriptor of the file whose lock a thread waits for in flock(2) or fcntl(2), and the kind of lock; `None` if it
/// is in another call.
pub(crate) fn lock_call(pid: u32, id: u32) -> Option<(u32, LockKind)> {
    let SyscallLine::Waiting(call) = read_syscall(pid, id)? else { return None };
    Some((u32::try_from(call.arguments[0] & 0xffff_ffff).ok()?, lock_in(&call)?))
}

fn read_syscall(pid: u32, id: u32) -> Option<SyscallLine> {
    SyscallLine::parse(&fs::read_to_string(format!("/proc/{pid}/task/{id}/syscall")).ok()?)
}

/// `length` bytes of a process's memory at `address`; `None` if unreadable.
pub(crate) fn memory(pid: u32, address: u64, length: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; length];
    File::open(format!("/proc/{pid}/mem")).ok()?.read_exact_at(&mut bytes, address).ok()?;
    Some(bytes)
}

/// The FIFO whose name is at `address` in a process, and the direction in which it is opened.
pub fn opened_fifo(pid: u32, address: u64, flags: u64) -> Option<(String, Direction)> {
    const MAX_NAME: usize = 256;
    // Reads no further than the end of the page.
    let length = MAX_NAME.min(4096 - (address % 4096) as usize);
    let bytes = memory(pid, address, length)?;
    let name = String::from_utf8_lossy(bytes.split(|&byte| byte == 0).next()?).into_owned();
    let path = Path::new(&format!("/proc/{pid}/cwd")).join(&name);
    process::pipe_of(path.to_str()?)?;
    let direction = match flags & 3 {
        0 => Direction::In,
        1 => Direction::Out,
        _ => return None,
    };
    Some((name, direction))
}

/// The descriptors that an epoll descriptor watches, with their events.
pub(crate) fn watched(pid: u32, epoll: u64) -> Vec<(u64, u32)> {
    let text = fs::read_to_string(format!("/proc/{pid}/fdinfo/{epoll}")).unwrap_or_default();
    let watched = text.lines().filter_map(|line| {
        let mut words = line.strip_prefix("tfd:")?.split_ascii_whitespace();
        let fd = words.next()?.parse().ok()?;
        let events = u32::from_str_radix(words.nth(1)?, 16).ok()?;
        Some((fd, events))
    });
    watched.collect()
}
