//! Resources used by this process or by a child: CPU time, context switches, page faults and migrations to another CPU.

use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::Pid;

use crate::result_of;

/// Resources used since the process began. [`Usage::since`] returns the resources used between two readings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time in user mode, in nanoseconds (the kernel counts microseconds or coarser).
    pub user_ns: u64,
    /// CPU time in the kernel, in nanoseconds.
    pub sys_ns: u64,
    /// Number of times that the process gave up the CPU to wait.
    pub voluntary_switches: u64,
    /// Number of times that the kernel took the CPU away.
    pub involuntary_switches: u64,
    /// Page faults served without I/O.
    pub minor_faults: u64,
    /// Page faults that needed I/O.
    pub major_faults: u64,
    /// Peak resident memory of the process, in bytes. For a reaped child, the highest peak of any one of its processes.
    /// The kernel includes the memory that this process had resident when it started the child.
    pub peak_bytes: u64,
}

impl Usage {
    /// The resources used by this process so far, from getrusage(2).
    pub fn now() -> Usage {
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the pointer points to a writable rusage. The call can't fail for RUSAGE_SELF, and an all-zero rusage
        // is valid anyway.
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

    /// The resources used between `earlier` and this reading.
    #[must_use]
    pub fn since(&self, earlier: &Usage) -> Usage {
        Usage {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            sys_ns: self.sys_ns.saturating_sub(earlier.sys_ns),
            voluntary_switches: self.voluntary_switches.saturating_sub(earlier.voluntary_switches),
            involuntary_switches: self.involuntary_switches.saturating_sub(earlier.involuntary_switches),
            minor_faults: self.minor_faults.saturating_sub(earlier.minor_faults),
            major_faults: self.major_faults.saturating_sub(earlier.major_faults),
            // Peaks can't be subtracted.
            peak_bytes: self.peak_bytes,
        }
    }
}

/// Whether to wait for a child that is still running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitMode {
    /// Wait until the child ends.
    Block,
    /// Don't wait: WNOHANG.
    NoHang,
}

/// Reaps a child with wait4(2). Returns the child's exit status, and the resources used by the child and by the
/// children that it waited for. Returns `None` if the child is still running. Once the child is reaped, its process id
/// may belong to another process.
///
/// # Errors
/// If `child` isn't a child of this process, or was reaped before.
pub fn reap(child: Pid, mode: WaitMode) -> io::Result<Option<(ExitStatus, Usage)>> {
    let options = if mode == WaitMode::NoHang { libc::WNOHANG } else { 0 };
    let reaped = wait4(child.as_raw_nonzero().get(), options)?;
    Ok(reaped.map(|(_, status, usage)| (status, Usage::of(&usage))))
}

/// Calls wait4(2), and repeats the call if a signal interrupts it. Returns `None` if all children selected by `child`
/// are still running.
pub(crate) fn wait4(child: libc::pid_t, options: i32) -> io::Result<Option<(u32, ExitStatus, libc::rusage)>> {
    loop {
        let mut status = 0;
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: both pointers point to writable memory of the types that the call fills. The memory lives during the
        // call.
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

/// How many times this process has migrated to another CPU; `None` if the kernel doesn't report it. The call takes
/// about 10 µs.
pub fn migrations() -> Option<u64> {
    let sched = std::fs::read_to_string("/proc/self/sched").ok()?;
    sched
        .lines()
        .find_map(|line| line.strip_prefix("se.nr_migrations")?.trim_start().strip_prefix(':')?.trim().parse().ok())
}

/// A counter of perf_event_open(2), scaled from the time that it ran to the time that it was enabled. The kernel
/// multiplexes counters if the CPU has too few of them. `None` if the counter never ran.
pub fn scaled_count(count: u64, time_enabled: u64, time_running: u64) -> Option<f64> {
    (time_running > 0).then(|| count as f64 * (time_enabled as f64 / time_running as f64))
}

/// The monotonic clock in nanoseconds, comparable between processes.
pub fn monotonic_ns() -> u64 {
    nanos(rustix::time::ClockId::Monotonic)
}

/// CPU time of the calling thread in nanoseconds. It doesn't advance while other threads run.
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
    fn a_counter_that_ran_half_of_the_time_is_doubled() {
        assert_eq!(scaled_count(50, 200, 100), Some(100.0));
        assert_eq!(scaled_count(50, 200, 0), None);
    }

    #[test]
    fn reaping_a_child_returns_its_resource_usage() {
        // Reaped by `reap` below, not by std.
        #[expect(clippy::zombie_processes)]
        let mut child = Command::new("sh")
            .args(["-c", "read x; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; exit 3"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = Pid::from_child(&child);
        assert!(reap(pid, WaitMode::NoHang).unwrap().is_none());
        drop(child.stdin.take());
        let (status, usage) = reap(pid, WaitMode::Block).unwrap().unwrap();
        assert_eq!(status.code(), Some(3));
        assert!(usage.user_ns + usage.sys_ns > 0, "{usage:?}");
        assert!(reap(pid, WaitMode::Block).is_err(), "it is reaped only once");
    }
}
