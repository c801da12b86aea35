//! Waiting until a descriptor is ready for reading or writing.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, ioctl_fionread};

/// The direction in which bytes pass through a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Out of this process.
    Out,
    /// Into this process.
    In,
}

/// Waits until `fd` is ready for writing or reading, until it has an error or end of file to report, or until a signal
/// arrives. There is no time limit. Afterwards, repeat the call that would have blocked. The repeated call may block
/// again.
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

/// How many times an input is checked before the process sleeps. All checks together take about ten microseconds.
pub(crate) const MAX_POLLS: u32 = 16;

/// Waits for input without sleeping, for about as long as a sleep and a wake-up take. Meanwhile a writer on the same
/// CPU fills the pipe instead of waking this process after every write. A writer on another CPU needn't wake this
/// process at all.
pub(crate) fn poll_for_input(fd: BorrowedFd<'_>) {
    for _ in 0..MAX_POLLS {
        // poll(2) isn't used, because a pipe that was polled once wakes its reader at every later write. These wake-ups
        // slow a program that writes single lines by a sixth.
        if ioctl_fionread(fd).is_ok_and(|bytes| bytes > 0) {
            return;
        }
        thread::yield_now();
    }
}

/// Repeats `call` while it would block or is interrupted. Counts every attempt and every wait in `calls`.
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
