//! A pipe, its capacity and its fill level.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::AsFd;

use rustix::fs::{OFlags, fcntl_getfl};
use rustix::pipe::{fcntl_getpipe_size, fcntl_setpipe_size};
use rustix::process::getppid;
use rustix::thread::sched_getaffinity;

/// Both ends of an anonymous pipe, closed on exec. The ends are std's: they read, write, and become a child's standard
/// input or output.
#[derive(Debug)]
pub struct Pipe {
    /// The read end.
    pub reader: PipeReader,
    /// The write end.
    pub writer: PipeWriter,
}

impl Pipe {
    /// A pipe of the system's default capacity: 64 KiB, or two pages for an unprivileged user whose pipes hold more
    /// than /proc/sys/fs/pipe-user-pages-soft (see pipe(7)).
    ///
    /// # Errors
    /// When descriptors or the user's pipe pages (pipe-user-pages-hard) are used up.
    ///
    /// ```
    /// use std::io::Write;
    /// let mut pipe = pipeio::Pipe::new()?;
    /// pipe.writer.write_all(b"abc")?;
    /// assert_eq!(pipe.fill()?, 3);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new() -> io::Result<Pipe> {
        let (reader, writer) = io::pipe()?;
        Ok(Pipe { reader, writer })
    }

    /// A pipe of at least this capacity, or of the largest that the system grants.
    ///
    /// # Errors
    /// As [`Pipe::new`]. A smaller capacity is no error: [`Pipe::capacity`] returns what was granted.
    ///
    /// ```
    /// let pipe = pipeio::Pipe::with_capacity(256 << 10)?;
    /// println!("{} bytes", pipe.capacity()?);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn with_capacity(bytes: usize) -> io::Result<Pipe> {
        let pipe = Pipe::new()?;
        if pipe.capacity()? < bytes && set_capacity(&pipe.writer, bytes).is_err() {
            let most = std::fs::read_to_string("/proc/sys/fs/pipe-max-size").unwrap_or_default();
            // Above the user's page limit the capacity stays as it is.
            let _ = most.trim().parse().map(|most| set_capacity(&pipe.writer, bytes.min(most)));
        }
        Ok(pipe)
    }

    /// See [`capacity`].
    ///
    /// # Errors
    /// None that is known.
    pub fn capacity(&self) -> io::Result<usize> {
        capacity(&self.writer)
    }

    /// See [`set_capacity`].
    ///
    /// # Errors
    /// As there.
    pub fn set_capacity(&self, bytes: usize) -> io::Result<usize> {
        set_capacity(&self.writer, bytes)
    }

    /// See [`fill`].
    ///
    /// # Errors
    /// None that is known.
    pub fn fill(&self) -> io::Result<u64> {
        fill(&self.reader)
    }
}

/// The capacity in bytes of the pipe that `fd` is an end of.
///
/// # Errors
/// When `fd` is not a pipe.
pub fn capacity(fd: impl AsFd) -> io::Result<usize> {
    Ok(fcntl_getpipe_size(fd)?)
}

/// Requests a capacity in bytes and returns the granted one: the next power of two of pages.
///
/// # Errors
/// `EPERM` above /proc/sys/fs/pipe-max-size or the user's page limit without CAP_SYS_RESOURCE; `EBUSY` when the pipe
/// holds more than it would then have room for.
pub fn set_capacity(fd: impl AsFd, bytes: usize) -> io::Result<usize> {
    Ok(fcntl_setpipe_size(fd, bytes)?)
}

/// The capacity of a pipe in front of a file, or of `lines` on one CPU: the copy out of it then hits the second-level
/// cache.
pub(crate) const FOR_CACHE: usize = 256 << 10;

/// Whether this thread, and so probably the process at the other end, may run on one CPU only.
pub(crate) fn has_one_cpu() -> bool {
    sched_getaffinity(None).is_ok_and(|cpus| cpus.count() == 1)
}

/// Whether the parent process, and so its other children by default, may run on one CPU only.
pub(crate) fn parent_has_one_cpu() -> bool {
    getppid().is_some_and(|parent| sched_getaffinity(Some(parent)).is_ok_and(|cpus| cpus.count() == 1))
}

/// Raises the capacity of the pipe to `bytes` if it is smaller and the system allows it. Returns the capacity.
///
/// # Errors
/// When `fd` is not a pipe.
pub(crate) fn raise_capacity(fd: impl AsFd, bytes: usize) -> io::Result<usize> {
    let fd = fd.as_fd();
    match capacity(fd)? {
        holds if holds >= bytes => Ok(holds),
        holds => Ok(set_capacity(fd, bytes).unwrap_or(holds)),
    }
}

/// The number of bytes in the pipe.
///
/// # Errors
/// When `fd` is not a pipe.
pub fn fill(fd: impl AsFd) -> io::Result<u64> {
    Ok(rustix::io::ioctl_fionread(fd)?)
}

/// How vmsplice(2) would treat `fd`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Access {
    /// It was opened for reading only. vmsplice(2) *writes* to the memory that it is given with such an end; with any other
    /// it reads it and keeps its pages.
    pub(crate) reads_only: bool,
    /// Calls on it return instead of waiting, except for vmsplice(2), which has to be told.
    pub(crate) nonblocking: bool,
}

impl Access {
    pub(crate) fn of(fd: impl AsFd) -> io::Result<Access> {
        let flags = fcntl_getfl(fd)?;
        let reads_only = flags & OFlags::ACCMODE == OFlags::RDONLY;
        Ok(Access { reads_only, nonblocking: flags.contains(OFlags::NONBLOCK) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacity_is_rounded_up_to_pages() {
        let pipe = Pipe::new().unwrap();
        let page = rustix::param::page_size();
        assert_eq!(pipe.set_capacity(page + 1).unwrap(), 2 * page);
        assert_eq!(capacity(&pipe.reader).unwrap(), 2 * page);
    }

    #[test]
    fn a_pipe_is_made_as_large_as_it_may_be() {
        let pipe = Pipe::with_capacity(100_000).unwrap();
        assert!((8192..=131_072).contains(&pipe.capacity().unwrap()));
        assert!(Pipe::with_capacity(usize::MAX).unwrap().capacity().unwrap() >= 8192);
    }

    #[test]
    fn fill_counts_bytes() {
        let pipe = Pipe::new().unwrap();
        rustix::io::write(&pipe.writer, &[0; 1000]).unwrap();
        assert_eq!(pipe.fill().unwrap(), 1000);
    }
}
