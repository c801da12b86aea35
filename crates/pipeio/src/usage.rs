//! What this process has used: CPU time, context switches, page faults, migrations.

use std::mem::MaybeUninit;
use std::time::Duration;

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
    /// Moves to another CPU; `None` where /proc/self/sched is missing.
    pub migrations: Option<u64>,
}

impl Usage {
    /// What this process has used until now, by getrusage(2) and /proc/self/sched.
    pub fn now() -> Usage {
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the pointer is to a writable rusage. The call cannot fail for RUSAGE_SELF, and all-zero is valid anyway.
        unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) };
        // SAFETY: every field is an integer, for which all-zero and what the kernel wrote are both valid.
        let usage = unsafe { usage.assume_init() };
        let count = |value: libc::c_long| u64::try_from(value).unwrap_or(0);
        let nanos = |time: libc::timeval| count(time.tv_sec) * 1_000_000_000 + count(time.tv_usec) * 1_000;
        Usage {
            user_ns: nanos(usage.ru_utime),
            sys_ns: nanos(usage.ru_stime),
            voluntary_switches: count(usage.ru_nvcsw),
            involuntary_switches: count(usage.ru_nivcsw),
            minor_faults: count(usage.ru_minflt),
            major_faults: count(usage.ru_majflt),
            migrations: migrations(),
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
            migrations: self.migrations.zip(earlier.migrations).map(|(now, then)| now.saturating_sub(then)),
        }
    }
}

fn migrations() -> Option<u64> {
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
