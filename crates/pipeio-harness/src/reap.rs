//! Waiting for children together with what each had used: what getrusage(2) of all children adds up and blurs.

use std::io;
use std::process::ExitStatus;

use crate::usage::{Usage, wait4};

/// A child that has ended and was reaped.
#[derive(Debug, Clone, Copy)]
pub struct Reaped {
    /// Its process id, which may now be given to another.
    pub pid: u32,
    /// How it ended.
    pub status: ExitStatus,
    /// What it used, with the children that it reaped.
    pub usage: Usage,
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
    let (pid, status, usage) = match wait4(-1, libc::WNOHANG) {
        Ok(Some(ended)) => ended,
        Ok(None) => return Ok(Reap::Running),
        Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return Ok(Reap::NoChildren),
        Err(error) => return Err(error),
    };
    // Linux counts in KiB.
    let max_rss = u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024;
    Ok(Reap::Ended(Reaped { pid, status, usage: Usage::of(&usage), max_rss }))
}
