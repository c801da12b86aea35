//! A pipe, its capacity and how full it is.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::pipe::{PipeFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with};

/// Both ends of an anonymous pipe, closed on exec.
#[derive(Debug)]
pub struct Pipe {
    /// Where bytes come out.
    pub reader: OwnedFd,
    /// Where bytes go in.
    pub writer: OwnedFd,
}

impl Pipe {
    /// A pipe of the system's default capacity: 64 KiB, or two pages for an unprivileged user whose pipes hold more
    /// than /proc/sys/fs/pipe-user-pages-soft (see pipe(7)).
    ///
    /// # Errors
    /// When descriptors or the user's pipe pages (pipe-user-pages-hard) are used up.
    ///
    /// ```
    /// let pipe = pipeio::pipe::Pipe::new()?;
    /// assert_eq!(pipeio::pipe::fill(&pipe.reader)?, 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new() -> io::Result<Pipe> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        Ok(Pipe { reader, writer })
    }
}

/// The capacity in bytes of the pipe that `fd` is an end of.
///
/// # Errors
/// When `fd` is not a pipe.
pub fn capacity(fd: impl AsFd) -> io::Result<usize> {
    Ok(fcntl_getpipe_size(fd)?)
}

/// Asks for a capacity in bytes and returns what the kernel granted: the next power of two of pages.
///
/// # Errors
/// `EPERM` above /proc/sys/fs/pipe-max-size or the user's page limit without CAP_SYS_RESOURCE; `EBUSY` when the pipe
/// holds more than it would then have room for.
pub fn set_capacity(fd: impl AsFd, bytes: usize) -> io::Result<usize> {
    Ok(fcntl_setpipe_size(fd, bytes)?)
}

/// How many bytes are in the pipe.
///
/// # Errors
/// When `fd` is not a pipe.
pub fn fill(fd: impl AsFd) -> io::Result<u64> {
    Ok(rustix::io::ioctl_fionread(fd)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacity_is_rounded_up_to_pages() {
        let pipe = Pipe::new().unwrap();
        assert_eq!(set_capacity(&pipe.writer, 5000).unwrap(), 8192);
        assert_eq!(capacity(&pipe.reader).unwrap(), 8192);
    }

    #[test]
    fn fill_counts_bytes() {
        let pipe = Pipe::new().unwrap();
        rustix::io::write(&pipe.writer, &[0; 1000]).unwrap();
        assert_eq!(fill(&pipe.reader).unwrap(), 1000);
    }
}
