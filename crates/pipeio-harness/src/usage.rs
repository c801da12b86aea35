//! What this process has used: CPU time, context switches, page faults; and how often it moved to another CPU.

use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::Pid;

use crate::result_of;

/// Resources used since the process began. Subtract two readings for what lies between.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time in user mode, nanoseconds (the kernel's accounting is per microsecond or coarser).
    pub user_ns: u64,
    /// CPU time in the kernel, nanoseconds.
    pub sys_ns: u64,
    /// Times the CPU was given up to wait.
    pub voluntary_switches: u64,
    /// Times the CPU was taken away.
    pub involuntary_switches: u64,
    /// Page faults served without I/O.
    pub minor_faults: u64,
    /// Page faults that needed I/O.
    pub major_faults: u64,
    /// The most memory that it had at once, bytes; of a reaped child the most that one process of it had, and never less than
    /// this process had when it started it, which the kernel counts in.
    pub peak_bytes: u64,
}

impl Usage {
    /// What this process has used until now, by getrusage(2).
    pub fn now() -> Usage {
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the pointer is to a writable rusage. The call cannot fail for RUSAGE_SELF, and all-zero is valid anyway.
        unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) };
        // SAFETY: every field is an integer, for which all-zero and what the kernel wrote are both valid.
        let usage = unsafe { usage.assume_init() };
        Usage::of(&usage)
    }

    pub(crate) fn of(usage: &libc::rusage) -> Usage {
        let count = |value: libc::c_long| u64::try_from(value).unwrap_or(0);
        let nanos = |time: libc::timeval| count(time.tv_sec) * 1_000_000_000 + count(time.tv_usec) * 1_000;
        Usage {
            user_ns: nanos(usage.ru_utime),
            sys_ns: nanos(usage.ru_stime),
            voluntary_switches: count(usage.ru_nvcsw),
            involuntary_switches: count(usage.ru_nivcsw),
            minor_faults: count(usage.ru_minflt),
            major_faults: count(usage.ru_majflt),
            peak_bytes: count(usage.ru_maxrss) << 10,
        }
    }

    /// What was used between `earlier` and this reading.
    #[must_use]
    pub fn since(&self, earlier: &Usage) -> Usage {
        Usage {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            sys_ns: self.sys_ns.saturating_sub(earlier.sys_ns),
            voluntary_switches: self.voluntary_switches.saturating_sub(earlier.voluntary_switches),
            involuntary_switches: self.involuntary_switches.saturating_sub(earlier.involuntary_switches),
            minor_faults: self.minor_faults.saturating_sub(earlier.minor_faults),
            major_faults: self.major_faults.saturating_sub(earlier.major_faults),
            // A peak has no difference.
            peak_bytes: self.peak_bytes,
        }
    }
}

/// Whether to wait for a child that is still running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// Until it ends.
    Wait,
    /// Not at all.
    Look,
}

/// Reaps a child by wait4(2): how it ended, and what it used from start to end, with the children that it waited for
/// itself. `None` if it is still running. Its number may belong to another process from now on.
///
/// # Errors
/// When it is no child of this process, or was reaped before.
pub fn reap(child: Pid, patience: Patience) -> io::Result<Option<(ExitStatus, Usage)>> {
    let options = if patience == Patience::Look { libc::WNOHANG } else { 0 };
    let reaped = wait4(child.as_raw_nonzero().get(), options)?;
    Ok(reaped.map(|(_, status, usage)| (status, Usage::of(&usage))))
}

/// wait4(2), again after a signal; `None` if there are only children that are still running.
pub(crate) fn wait4(child: libc::pid_t, options: i32) -> io::Result<Option<(u32, ExitStatus, libc::rusage)>> {
    loop {
        let mut status = 0;
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: both pointers are to writable memory of the types that the call fills, and live as long as it.
        match result_of(unsafe { libc::wait4(child, &raw mut status, options, usage.as_mut_ptr()) }) {
            Ok(0) => return Ok(None),
            Ok(pid) => {
                // SAFETY: every field is an integer, for which all-zero and what the kernel wrote are both valid.
                let usage = unsafe { usage.assume_init() };
                return Ok(Some((pid.unsigned_abs(), ExitStatus::from_raw(status), usage)));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// How often this process moved to another CPU; `None` where the kernel does not tell. It takes some 10 µs.
pub fn migrations() -> Option<u64> {
    let sched = std::fs::read_to_string("/proc/self/sched").ok()?;
    sched
        .lines()
        .find_map(|line| line.strip_prefix("se.nr_migrations")?.trim_start().strip_prefix(':')?.trim().parse().ok())
}

/// Time on the monotonic clock, comparable between processes, in nanoseconds.
pub fn monotonic_ns() -> u64 {
    nanos(rustix::time::ClockId::Monotonic)
}

/// CPU time of the calling thread in nanoseconds: a clock that stands still while others run.
pub fn thread_cpu_ns() -> u64 {
    nanos(rustix::time::ClockId::ThreadCPUTime)
}

fn nanos(clock: rustix::time::ClockId) -> u64 {
    let time = rustix::time::clock_gettime(clock);
    u64::try_from(Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32).as_nanos())
        .unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_child_s_end_comes_with_what_it_used() {
        // Reaped below, not by the library.
        #[expect(clippy::zombie_processes)]
        let mut child = Command::new("sh")
            .args(["-c", "read x; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; exit 3"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = Pid::from_child(&child);
        assert!(reap(pid, Patience::Look).unwrap().is_none());
        drop(child.stdin.take());
        let (status, usage) = reap(pid, Patience::Wait).unwrap().unwrap();
        assert_eq!(status.code(), Some(3));
        assert!(usage.user_ns + usage.sys_ns > 0, "{usage:?}");
        assert!(reap(pid, Patience::Wait).is_err(), "it is reaped only once");
    }
}
