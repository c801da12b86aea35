//! One thread of a watched process. Its files in /proc are kept open if the limit on descriptors allows it.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::call;
use crate::process::{self, Direction, PipeEnd, PipeId, ProcReader};
use crate::state::{self, Descriptors, SyscallLine, SystemCall, ThreadState, ThreadWait, WaitTarget};

/// The number of consecutive samples without a kernel function after which the thread counts as unreadable.
const MAX_MISSES: u32 = 10;
/// The maximum number of times that a thread is reported as strange because it waits for a Unix socket, which may lead
/// to a stage.
const MAX_REPORTS: u32 = 200;

/// The files of /proc that show what a thread does, the most detailed first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ProcFile {
    /// The system call that a thread waits in, with the descriptor.
    Syscall,
    /// The kernel function that a thread waits in.
    Wchan,
    /// Only whether a thread runs or sleeps.
    Stat,
}

/// A thread, with its files in /proc.
#[derive(Debug)]
pub struct Thread {
    pub id: u32,
    access: ProcFile,
    /// The number of consecutive samples without a kernel function.
    misses: u32,
    syscall: ProcReader,
    wchan: ProcReader,
    stat: ProcReader,
    schedstat: ProcReader,
    /// The last result of [`Thread::read_times`]; `None` before the first.
    pub times: Option<[u64; 3]>,
    /// Whether the thread has run since its ticks were last read, as far as known.
    pub ran: bool,
    /// The last result of [`Thread::read_ticks`]; `None` before the first.
    pub ticks: Option<[u64; 2]>,
    /// Whether the thread waits for an unknown descriptor, which may be a pipe opened since the last scan.
    pub strange: bool,
    /// How often the thread was observed waiting for a Unix socket.
    local: u32,
    /// The call in which the thread was last observed waiting for something other than a pipe, possibly a socket;
    /// `None` if it never was.
    outside: Option<SystemCall>,
    /// The wait that was last observed; `None` before the first.
    pub last: Option<ThreadWait>,
}

impl Thread {
    /// The thread `id` of the process `pid`. With `keep` its files stay open.
    pub fn new(pid: u32, id: u32, best: ProcFile, keep: bool) -> Thread {
        let file = |name: &str| ProcReader::new(format!("/proc/{pid}/task/{id}/{name}"), keep);
        let [syscall, wchan, stat, schedstat] = ["syscall", "wchan", "stat", "schedstat"].map(file);
        // The ticks at the beginning are known only if they are read now. For threads whose files don't stay open, that
        // would take too long.
        let ran = keep;
        let (misses, times, ticks, strange, local, outside, last) = (0, None, None, false, 0, None, None);
        let access = best;
        Thread { id, access, misses, syscall, wchan, stat, schedstat, times, ran, ticks, strange, local, outside, last }
    }

    /// The file that is read for this thread, possibly less detailed than requested.
    pub fn access(&self) -> ProcFile {
        self.access
    }

    /// The thread's current wait; `None` if it has exited. Sets `uncounted` if the thread is in a call whose bytes the
    /// kernel doesn't count.
    pub fn wait(&mut self, ends: &BTreeMap<u32, WaitTarget>, uncounted: &mut bool) -> Option<ThreadWait> {
        let mut buffer = [0; 256];
        if self.access == ProcFile::Syscall {
            match self.syscall.read(&mut buffer).map(SyscallLine::parse) {
                Ok(Some(SyscallLine::Running)) => return Some(ThreadWait::Is(ThreadState::Running)),
                Ok(Some(SyscallLine::Gone)) => return None,
                Ok(Some(SyscallLine::Outside)) => {
                    let wait = self.function().as_deref().and_then(state::of_function);
                    return Some(wait.unwrap_or(ThreadWait::Is(ThreadState::Disk)));
                }
                Ok(Some(SyscallLine::Waiting(call))) => {
                    *uncounted |= state::is_uncounted(&call);
                    // The first thread of a process may have exited. This one lives, and has the same files.
                    let wait = state::of_call(&call, &CallView { pid: self.id, ends, thread: RefCell::new(self) });
                    if matches!(wait, ThreadWait::Is(ThreadState::Network | ThreadState::Other)) {
                        self.outside = Some(call);
                    }
                    return Some(wait);
                }
                // Access to the file is denied, or this kernel doesn't have it.
                Err(error) if is_refused(&error) && !self.is_gone() => self.access = ProcFile::Wchan,
                Ok(None) | Err(_) => return None,
            }
        }
        let state = self.stat.read(&mut buffer).ok()?.rsplit_once(") ")?.1.chars().next()?;
        match state {
            'R' => return Some(ThreadWait::Is(ThreadState::Running)),
            'T' | 't' => return Some(ThreadWait::Is(ThreadState::Stopped)),
            'Z' | 'X' => return None,
            _ => {}
        }
        let asleep = if state == 'D' { ThreadState::Disk } else { ThreadState::Other };
        if self.access == ProcFile::Wchan {
            match self.function().as_deref() {
                // The thread has just started to run, or the kernel hides the function, so that the file always has
                // this content.
                None | Some("0" | "") => {
                    self.misses += 1;
                    if self.misses == 1 {
                        return Some(ThreadWait::Is(ThreadState::Running));
                    } else if self.misses == MAX_MISSES {
                        self.access = ProcFile::Stat;
                    }
                }
                Some(name) => {
                    self.misses = 0;
                    return Some(state::of_function(name).unwrap_or(ThreadWait::Is(asleep)));
                }
            }
        }
        Some(match asleep {
            ThreadState::Disk => ThreadWait::Is(ThreadState::Disk),
            // The thread may sleep for any reason. Its state is unknown unless the states of the stage's neighbours
            // show it.
            _ => ThreadWait::Unsure { ins: true, outs: true, otherwise: ThreadState::Unknown },
        })
    }

    fn is_gone(&self) -> bool {
        !fs::exists(self.stat.path().trim_end_matches("/stat")).unwrap_or(true)
    }

    /// The descriptors of the call in which the thread was last observed waiting for something other than a pipe. The
    /// list passed to poll(2) is read now, not at the time of the wait. Programs keep this list at one address.
    pub fn waited_outside_for(&self) -> Vec<(u64, Direction)> {
        match self.outside.map(|call| call::descriptors_in(self.id, &call)) {
            Some(Descriptors::Files(files)) => files,
            _ => Vec::new(),
        }
    }

    /// The kernel function that the thread waits in; `None` if unreadable.
    pub fn function(&mut self) -> Option<String> {
        self.wchan.read(&mut [0; 128]).ok().map(str::to_owned)
    }

    /// Nanoseconds on a CPU, nanoseconds waiting for a CPU, and the number of time slices; `None` if unreadable.
    pub fn read_times(&mut self) -> Option<[u64; 3]> {
        let mut buffer = [0; 128];
        let mut words = self.schedstat.read(&mut buffer).ok()?.split_ascii_whitespace();
        let mut next = || words.next()?.parse().ok();
        Some([next()?, next()?, next()?])
    }

    /// Clock ticks on a CPU in user mode and in the kernel; `None` if unreadable.
    pub fn read_ticks(&mut self) -> Option<[u64; 2]> {
        let mut buffer = [0; 512];
        let (_, after) = self.stat.read(&mut buffer).ok()?.rsplit_once(')')?;
        let mut words = after.split_ascii_whitespace().skip(11);
        let mut next = || words.next()?.parse().ok();
        Some([next()?, next()?])
    }
}

fn is_refused(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::PERM | Errno::ACCESS | Errno::NOENT | Errno::NOSYS))
}

/// A thread that waits in a system call. Details are read on demand.
struct CallView<'t> {
    /// The thread's id.
    pid: u32,
    ends: &'t BTreeMap<u32, WaitTarget>,
    thread: RefCell<&'t mut Thread>,
}

impl state::ThreadView for CallView<'_> {
    fn target(&self, fd: u64) -> WaitTarget {
        let known = u32::try_from(fd).ok().and_then(|fd| self.ends.get(&fd)).copied();
        // In a shell loop, the same descriptor refers to a different pipe in each iteration.
        let same = |target: &WaitTarget| match target {
            WaitTarget::In(pipe) | WaitTarget::Out(pipe) if fd > 2 && !pipe.is_socket() => {
                process::pipe_of(&format!("/proc/{}/fd/{fd}", self.pid)) == Some(*pipe)
            }
            _ => true,
        };
        known.filter(same).unwrap_or_else(|| {
            let target = target_of(self.pid, fd);
            let mut thread = self.thread.borrow_mut();
            thread.strange |=
                matches!(target, WaitTarget::File | WaitTarget::Other | WaitTarget::In(_) | WaitTarget::Out(_));
            if target == WaitTarget::Local && fd > 2 && thread.local < MAX_REPORTS {
                thread.local += 1;
                thread.strange = true;
            }
            target
        })
    }

    fn memory(&self, address: u64, length: usize) -> Option<Vec<u8>> {
        call::memory(self.pid, address, length)
    }

    fn watched(&self, epoll: u64) -> Vec<(u64, u32)> {
        call::watched(self.pid, epoll)
    }

    fn function(&self) -> Option<String> {
        self.thread.borrow_mut().function()
    }
}

/// The kind of a descriptor that isn't a known end of a pipe.
fn target_of(pid: u32, fd: u64) -> WaitTarget {
    let path = format!("/proc/{pid}/fd/{fd}");
    let link = fs::read_link(&path).unwrap_or_default();
    let name = link.to_string_lossy();
    let starts = |words: &[&str]| words.iter().any(|word| name.starts_with(word));
    if starts(&["socket:"]) {
        // An extended attribute holds the name of the socket's protocol. Reading the attribute opens no file.
        let mut protocol = [0; 32];
        let length = rustix::fs::getxattr(path, "system.sockprotoname", &mut protocol).unwrap_or(0);
        if protocol[..length].starts_with(b"UNIX") { WaitTarget::Local } else { WaitTarget::Socket }
    } else if let Some((pipe, direction)) = process::end_of(&path) {
        // The pipe was opened since the last full scan.
        match direction {
            Direction::In => WaitTarget::In(pipe),
            Direction::Out => WaitTarget::Out(pipe),
            Direction::Both => WaitTarget::Own,
        }
    } else if starts(&["anon_inode:[timerfd]"]) {
        WaitTarget::Timer
    } else if starts(&["anon_inode:[eventfd]"]) {
        WaitTarget::Own
    } else if process::is_terminal(&link) {
        WaitTarget::Terminal
    } else if starts(&["/"]) && !starts(&["/dev/", "/proc/"]) {
        WaitTarget::File
    } else {
        WaitTarget::Other
    }
}

/// The kinds of the pipe ends that a process holds, by descriptor. A process that holds both ends of a pipe may wait
/// for itself, as event loops do.
pub(crate) fn targets(ends: &[PipeEnd]) -> BTreeMap<u32, WaitTarget> {
    let held = |not: Direction| {
        ends.iter().filter(move |end| end.direction != not).map(|end| end.pipe).collect::<HashSet<PipeId>>()
    };
    let (reads, writes) = (held(Direction::Out), held(Direction::In));
    let target = |end: &PipeEnd| match (reads.contains(&end.pipe), writes.contains(&end.pipe)) {
        (true, true) => (end.fd, WaitTarget::Own),
        (true, false) => (end.fd, WaitTarget::In(end.pipe)),
        (false, _) => (end.fd, WaitTarget::Out(end.pipe)),
    };
    BTreeMap::from_iter(ends.iter().map(target))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_to_itself_is_no_input() {
        let end = |fd, pipe, direction| PipeEnd { fd, pipe: PipeId(0, pipe), direction };
        let of = targets(&[
            end(0, 1, Direction::In),
            end(1, 2, Direction::Out),
            end(3, 3, Direction::In),
            end(4, 3, Direction::Out),
            end(5, 4, Direction::Both),
        ]);
        let all: Vec<WaitTarget> = of.into_values().collect();
        let (input, output) = (WaitTarget::In(PipeId(0, 1)), WaitTarget::Out(PipeId(0, 2)));
        assert_eq!(all, [input, output, WaitTarget::Own, WaitTarget::Own, WaitTarget::Own]);
    }
}
