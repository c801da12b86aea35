//! Reads and sets the capacity of another process's pipe. No other module of this crate opens pipes.

use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;

use crate::process::{self, Direction, PipeId, Process};

/// The capacity in bytes of a pipe that a process reads; `None` if it can't be opened.
pub fn read(reader: &Process, id: PipeId) -> Option<u64> {
    at_end(reader, id, |end| rustix::pipe::fcntl_getpipe_size(end).ok().map(|size| size as u64))?
}

/// Sets the capacity of a pipe that a process reads. Returns the new capacity in bytes; `None` if the pipe can't be
/// opened.
pub fn set(reader: &Process, id: PipeId, bytes: usize) -> Option<Result<u64, Errno>> {
    at_end(reader, id, |end| rustix::pipe::fcntl_setpipe_size(end, bytes).map(|size| size as u64))
}

/// Opens a pipe's read end for a few microseconds, through a process that holds it, and calls `act`. `None` if the
/// process doesn't hold it.
fn at_end<T>(process: &Process, id: PipeId, act: impl FnOnce(&OwnedFd) -> T) -> Option<T> {
    let end = process.ends.as_ref()?.iter().find(|end| end.pipe == id && end.direction == Direction::In)?;
    let path = format!("/proc/{}/fd/{}", process.files_of, end.fd);
    // A descriptor opened with O_PATH doesn't count as an end. It identifies the pipe before an end is opened.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let held = openat(CWD, &path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let through = format!("/proc/self/fd/{}", held.as_raw_fd());
    if process::pipe_of(&through) != Some(id) {
        return None;
    }
    Some(act(&openat(CWD, &through, flags, Mode::empty()).ok()?))
}
