//! POSIX and System V message queues as links. Blocks larger than a message are split, and an empty message ends the
//! stream (see [`crate::message`]).
//!
//! The kernel doesn't tell either end that the other is gone. A receiver on an empty queue, or a sender to a full
//! queue, then waits until another process ends it. With System V, it also stops waiting when the queue is removed.

pub mod posix;
pub mod sysv;

use std::io;

/// Reads a number from a file under /proc/sys.
fn setting(path: &str) -> io::Result<usize> {
    let text =
        std::fs::read_to_string(path).map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}")))?;
    let number = text.trim().parse();
    number.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, format!("{path} has no number")))
}
