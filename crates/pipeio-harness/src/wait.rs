//! How to wait while a pipe is full or empty: sleep in the call, poll, or spin.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

pub use pipeio::wait::Direction;
use pipeio::wait::until_ready;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::pipe::SpliceFlags;

/// How an end waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Calls block: the kernel puts the caller to sleep. Each wait costs a wake-up.
    Block,
    /// Calls don't block; after EAGAIN, poll(2) waits. Each wait costs two more system calls.
    Poll,
    /// Calls don't block and are repeated at once. Waiting uses a whole CPU. If both ends share one CPU, each wait
    /// costs the rest of a time slice.
    Spin,
    /// For a descriptor shared with other processes: its O_NONBLOCK flag stays as it is. The kernel puts the caller to
    /// sleep, in poll(2) if the descriptor is non-blocking.
    Shared,
}

impl Wait {
    /// Sets or clears O_NONBLOCK on `fd` as this policy requires; [`Wait::Shared`] leaves it as it is. The flag belongs
    /// to the open file description, so it also applies to every process that inherited the same end.
    ///
    /// # Errors
    /// When `fd` is not open.
    pub(crate) fn configure(self, fd: impl AsFd) -> io::Result<()> {
        let flags = fcntl_getfl(&fd)?;
        match self {
            Wait::Block => fcntl_setfl(&fd, flags - OFlags::NONBLOCK)?,
            Wait::Poll | Wait::Spin => fcntl_setfl(&fd, flags | OFlags::NONBLOCK)?,
            Wait::Shared => {}
        }
        Ok(())
    }

    /// Whether a call that must wait may sleep if the descriptor permits it.
    pub fn sleeps(self) -> bool {
        matches!(self, Wait::Block | Wait::Shared)
    }

    /// The flag that makes splice(2), vmsplice(2) and tee(2) wait according to this policy. O_NONBLOCK isn't enough:
    /// vmsplice(2) ignores it, as did splice(2) and tee(2) before Linux 5.1.
    pub(crate) fn splice_flags(self) -> SpliceFlags {
        if self.sleeps() { SpliceFlags::empty() } else { SpliceFlags::NONBLOCK }
    }

    /// Repeats `call` while it would block or is interrupted. Counts every attempt and every poll(2) in `calls`.
    ///
    /// # Errors
    /// Any other error of `call`, or the error of poll(2).
    #[inline]
    pub fn retry<T>(
        self,
        fd: BorrowedFd<'_>,
        direction: Direction,
        calls: &mut u32,
        mut call: impl FnMut() -> rustix::io::Result<T>,
    ) -> io::Result<T> {
        loop {
            *calls += 1;
            match call() {
                Ok(value) => return Ok(value),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if self == Wait::Spin => std::hint::spin_loop(),
                // Wait even if the caller's descriptor was blocking: another process that shares it may have made it
                // non-blocking.
                Err(Errno::AGAIN) => {
                    *calls += 1;
                    until_ready(fd, direction)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}
