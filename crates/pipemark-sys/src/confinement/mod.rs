//! Confines a process that may run any program, so that it changes nothing outside: it can write only to its open
//! descriptors, to /dev/null and to one directory, and can reach no other process.
//!
//! Two parts of the kernel do that together. `landlock` keeps it from changing the file system, from signalling
//! processes outside, and from tracing them. The `filter` of system calls refuses the rest: sockets, changes of
//! metadata, and whatever isn't in its list. Both hold for all programs that the process starts, and can't be undone.

mod calls;
mod filter;
mod landlock;

use std::io;
use std::path::Path;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::set_no_new_privs;

/// Why [`confine`] can't work on this machine, as a clause; `None` if it can.
pub fn obstacle() -> Option<&'static str> {
    landlock::obstacle().or_else(filter::obstacle)
}

/// Confines the calling thread and whatever it starts. Only files in `directory` and /dev/null can be opened for writing
/// afterwards. Programs that are set-user-ID get no privileges, and no program dumps its memory.
///
/// # Errors
/// If the kernel can't do that. The thread may be confined in part, so it must not go on to what was to be confined.
pub fn confine(directory: &Path) -> io::Result<()> {
    // A limit of 1 also keeps the kernel from starting a program that receives the dump: core(5).
    let limit = getrlimit(Resource::Core).maximum.map_or(1, |most| most.min(1));
    setrlimit(Resource::Core, Rlimit { current: Some(limit), maximum: Some(limit) })?;
    set_no_new_privs(true)?;
    landlock::restrict(directory)?;
    filter::install()
}

/// Keeps all descriptors but standard input, output and error from the programs that this process executes.
///
/// # Errors
/// If the kernel is older than Linux 5.11.
pub fn keep_other_descriptors() -> io::Result<()> {
    const FIRST: libc::c_uint = 3;
    let (last, flags) = (libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
    // SAFETY: the call passes no memory, and closes nothing before a program is executed.
    crate::result_of(unsafe { libc::syscall(libc::SYS_close_range, FIRST, last, flags) }).map(drop)
}

#[cfg(test)]
mod tests;
