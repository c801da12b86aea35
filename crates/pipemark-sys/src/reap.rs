//! Waits for children and returns the resources that each child used. getrusage(2) reports only the sum of all
//! children.

use std::io;
use std::process::ExitStatus;

use crate::usage::{Usage, wait4};

/// A child that has ended and was reaped.
#[derive(Debug, Clone, Copy)]
pub struct Reaped {
    /// The child's process id. The kernel may already have given the id to another process.
    pub pid: u32,
    /// The exit status of the child.
    pub status: ExitStatus,
    /// The resources used by the child and by the children that it reaped.
    pub usage: Usage,
    /// Peak resident memory in bytes: the largest value of the child and of any child that it reaped. The kernel counts
    /// from the fork, so this is at least the resident memory that the parent had then.
    pub max_rss: u64,
}

/// The result of [`reap`].
#[derive(Debug, Clone, Copy)]
pub enum Reap {
    /// A child has ended.
    Ended(Reaped),
    /// There are children, and all of them are running.
    Running,
    /// There are no children.
    NoChildren,
}

/// Reaps one child of this process that has ended. Doesn't wait. Afterwards, `wait` of [`std::process::Child`] fails
/// for that child.
///
/// # Errors
/// None is known: [`Reap`] covers the expected cases.
pub fn reap() -> io::Result<Reap> {
    let (pid, status, usage) = match wait4(-1, libc::WNOHANG) {
        Ok(Some(ended)) => ended,
        Ok(None) => return Ok(Reap::Running),
        Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return Ok(Reap::NoChildren),
        Err(error) => return Err(error),
    };
    // ru_maxrss is in KiB on Linux.
    let max_rss = u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024;
    Ok(Reap::Ended(Reaped { pid, status, usage: Usage::of(&usage), max_rss }))
}
