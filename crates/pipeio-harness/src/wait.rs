//! What to do when a pipe is full or empty: sleep in the call, poll, or spin.

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
    /// Calls on a blocking descriptor: the kernel puts the caller to sleep. Costs a wake-up per wait.
    Block,
    /// Calls on a non-blocking descriptor, and poll(2) after EAGAIN. Costs two more system calls per wait.
    Poll,
    /// Calls on a non-blocking descriptor, repeated at once. Costs a whole CPU, and on one CPU shared by both ends the
    /// rest of a time slice per wait.
    Spin,
    /// Calls on a descriptor that is shared with others, whose flag is left as it is: the kernel puts the caller to sleep,
    /// or where the descriptor is non-blocking poll(2) does.
    Shared,
}

impl Wait {
    /// Sets or clears O_NONBLOCK on `fd` as this policy needs it. The flag belongs to the open file description: every
    /// process that inherited the same end sees it too.
    ///
    /// # Errors
    /// When `fd` is not open.
    pub fn configure(self, fd: impl AsFd) -> io::Result<()> {
        let flags = fcntl_getfl(&fd)?;
        match self {
            Wait::Block => fcntl_setfl(&fd, flags - OFlags::NONBLOCK)?,
            Wait::Poll | Wait::Spin => fcntl_setfl(&fd, flags | OFlags::NONBLOCK)?,
            Wait::Shared => {}
        }
        Ok(())
    }

    /// Whether a call is to sleep when it has to wait, if the descriptor lets it.
    pub fn sleeps(self) -> bool {
        matches!(self, Wait::Block | Wait::Shared)
    }

    /// The flag with which splice(2), vmsplice(2) and tee(2) wait like this: that a pipe's end is non-blocking does not
    /// make them so.
    pub(crate) fn splice_flags(self) -> SpliceFlags {
        if self.sleeps() { SpliceFlags::empty() } else { SpliceFlags::NONBLOCK }
    }

    /// Makes `call` until it neither would block nor was interrupted, counting every attempt in `calls`.
    ///
    /// # Errors
    /// Whatever else `call` says, or poll(2) itself.
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
                // A blocking caller polls too: the descriptor may have been made non-blocking by someone it is shared with.
                Err(Errno::AGAIN) => {
                    *calls += 1;
                    until_ready(fd, direction)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}
