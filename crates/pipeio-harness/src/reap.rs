//! Waiting for children together with what each had used: what getrusage(2) of all children adds up and blurs.

use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// A child that has ended and was reaped.
#[derive(Debug, Clone, Copy)]
pub struct Reaped {
    /// Its process id, which may now be given to another.
    pub pid: u32,
    /// How it ended.
    pub status: ExitStatus,
    /// CPU time in user mode, of itself and of the children that it reaped, in nanoseconds.
    pub user_ns: u64,
    /// CPU time in the kernel, likewise.
    pub sys_ns: u64,
    /// Times the CPU was given up to wait, likewise.
    pub voluntary_switches: u64,
    /// Times the CPU was taken away, likewise.
    pub involuntary_switches: u64,
    /// The most memory that it, or one of the children that it reaped, had resident, in bytes. The kernel counts from
    /// the fork, so this is never less than what the process that started it had resident then.
    pub max_rss: u64,
}

/// What [`reap`] found.
#[derive(Debug, Clone, Copy)]
pub enum Reap {
    /// A child has ended.
    Ended(Reaped),
    /// There are children, and all of them run.
    Running,
    /// There are no children.
    NoChildren,
}

/// Reaps any one child of this process that has ended, without waiting for one. Where [`std::process::Child`] is used
/// beside it, its `wait` fails for a child that was reaped here.
///
/// # Errors
/// None are known besides those that [`Reap`] tells.
pub fn reap() -> io::Result<Reap> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both pointers are to writable memory of the types that wait4(2) fills, and live as long as the call.
    let pid = unsafe { libc::wait4(-1, &raw mut status, libc::WNOHANG, usage.as_mut_ptr()) };
    match pid {
        0 => return Ok(Reap::Running),
        1.. => {}
        _ => {
            let error = io::Error::last_os_error();
            return if error.raw_os_error() == Some(libc::ECHILD) { Ok(Reap::NoChildren) } else { Err(error) };
        }
    }
    // SAFETY: every field is an integer, for which all-zero and what the kernel wrote are both valid.
    let usage = unsafe { usage.assume_init() };
    let count = |value: libc::c_long| u64::try_from(value).unwrap_or(0);
    let nanos = |time: libc::timeval| count(time.tv_sec) * 1_000_000_000 + count(time.tv_usec) * 1_000;
    Ok(Reap::Ended(Reaped {
        pid: pid.unsigned_abs(),
        status: ExitStatus::from_raw(status),
        user_ns: nanos(usage.ru_utime),
        sys_ns: nanos(usage.ru_stime),
        voluntary_switches: count(usage.ru_nvcsw),
        involuntary_switches: count(usage.ru_nivcsw),
        // Linux counts in KiB.
        max_rss: count(usage.ru_maxrss) * 1024,
    }))
}
