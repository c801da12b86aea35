//! Waiting until a descriptor can be read from or written to.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, ioctl_fionread};

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

/// How often an input is polled before the process sleeps: ten microseconds or so.
pub(crate) const LOOKS: u32 = 16;

/// Waits for input without sleeping, about as long as going to sleep and being woken takes. A writer on the same CPU goes on
/// meanwhile and fills the pipe, rather than wake this process at every piece; one on another CPU needn't wake it at all.
pub(crate) fn look_for_more(fd: BorrowedFd<'_>) {
    for _ in 0..LOOKS {
        // Not poll(2): a pipe that has been polled wakes its reader at each write from then on. For a writer of single
        // lines that takes a sixth more time.
        if ioctl_fionread(fd).is_ok_and(|bytes| bytes > 0) {
            return;
        }
        thread::yield_now();
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
