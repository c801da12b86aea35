//! Waiting until a descriptor can be read from or written to.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

/// Which way bytes go through a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Out of this process.
    Out,
    /// Into this process.
    In,
}

/// Waits until `fd` can be written to or read from, has an error or an end to report, or a signal comes. So try again what
/// would have blocked, and expect that it may still.
///
/// # Errors
/// When poll(2) fails.
///
/// ```
/// use pipeio::wait::{Direction, until_ready};
/// let pipe = pipeio::Pipe::new()?;
/// until_ready(&pipe.writer, Direction::Out)?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn until_ready(fd: impl AsFd, direction: Direction) -> io::Result<()> {
    let events = match direction {
        Direction::Out => PollFlags::OUT,
        Direction::In => PollFlags::IN,
    };
    match poll(&mut [PollFd::new(&fd, events)], None) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Makes `call` until it neither would block nor was interrupted, counting every attempt in `calls`.
pub(crate) fn retry<T>(
    fd: BorrowedFd<'_>,
    direction: Direction,
    calls: &mut u64,
    mut call: impl FnMut() -> rustix::io::Result<T>,
) -> io::Result<T> {
    loop {
        *calls += 1;
        match call() {
            Ok(value) => return Ok(value),
            Err(Errno::INTR) => {}
            // A blocking caller polls too: the descriptor may have been made non-blocking by someone it is shared with.
            Err(Errno::AGAIN) => {
                *calls += 1;
                until_ready(fd, direction)?;
            }
            Err(error) => return Err(error.into()),
        }
    }
}
