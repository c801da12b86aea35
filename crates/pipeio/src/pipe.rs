//! A pipe, its capacity and its fill level.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::AsFd;

use rustix::fs::{OFlags, fcntl_getfl};
use rustix::pipe::{fcntl_getpipe_size, fcntl_setpipe_size};
use rustix::process::getppid;
use rustix::thread::sched_getaffinity;

/// Both ends of an anonymous pipe, closed on exec. The ends are std's types: they implement `Read` and `Write`, and can
/// become a child's standard input or output.
#[derive(Debug)]
pub struct Pipe {
    /// The read end.
    pub reader: PipeReader,
    /// The write end.
    pub writer: PipeWriter,
}

impl Pipe {
    /// Creates a pipe with the system's default capacity: 64 KiB with pages of 4 KiB. If the pipes of an unprivileged
    /// user exceed /proc/sys/fs/pipe-user-pages-soft, a new pipe has two pages (see pipe(7)).
    ///
    /// # Errors
    /// When no descriptors are left, or the user's pipes have reached /proc/sys/fs/pipe-user-pages-hard.
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

    /// Creates a pipe with a capacity of at least `bytes`, or with the largest capacity that the system grants.
    ///
    /// # Errors
    /// As [`Pipe::new`]. A smaller capacity is not an error: [`Pipe::capacity`] returns the granted capacity.
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
            // If pipe-max-size also exceeds the user's limit (pipe-user-pages-soft), the pipe keeps its capacity.
            let _ = most.trim().parse().map(|most| set_capacity(&pipe.writer, bytes.min(most)));
        }
        Ok(pipe)
    }

    /// The pipe's capacity in bytes. See the function [`capacity`].
    ///
    /// # Errors
    /// None is known.
    pub fn capacity(&self) -> io::Result<usize> {
        capacity(&self.writer)
    }

    /// Requests a capacity in bytes and returns the granted one. See the function [`set_capacity`].
    ///
    /// # Errors
    /// As [`set_capacity`].
    pub fn set_capacity(&self, bytes: usize) -> io::Result<usize> {
        set_capacity(&self.writer, bytes)
    }

    /// The number of bytes in the pipe. See the function [`fill`].
    ///
    /// # Errors
    /// None is known.
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

/// Requests a capacity in bytes and returns the granted one: the request, rounded up to a power of two of pages.
///
/// # Errors
/// `EPERM` if the capacity exceeds /proc/sys/fs/pipe-max-size or the user's page limit, without CAP_SYS_RESOURCE;
/// `EBUSY` if the pipe holds more bytes than the new capacity; `EBADF` if `fd` is not a pipe.
pub fn set_capacity(fd: impl AsFd, bytes: usize) -> io::Result<usize> {
    Ok(fcntl_setpipe_size(fd, bytes)?)
}

/// Capacity in bytes of a pipe that is copied to a file, or that `lines` reads on one CPU. At this size the bytes are
/// still in the second-level cache when they are copied out of the pipe.
pub(crate) const CACHE_SIZED: usize = 256 << 10;

/// Whether this thread may run on one CPU only. The process at the other end of the pipe then probably has the same
/// restriction.
pub(crate) fn has_one_cpu() -> bool {
    sched_getaffinity(None).is_ok_and(|cpus| cpus.count() == 1)
}

/// Whether the parent process may run on one CPU only. Its other children inherit that restriction by default.
pub(crate) fn parent_has_one_cpu() -> bool {
    getppid().is_some_and(|parent| sched_getaffinity(Some(parent)).is_ok_and(|cpus| cpus.count() == 1))
}

/// Raises the pipe's capacity to `bytes` if it is smaller and the system allows it. Returns the capacity.
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

/// The number of bytes in the pipe that `fd` is an end of.
///
/// # Errors
/// When `fd` is not a pipe.
pub fn fill(fd: impl AsFd) -> io::Result<u64> {
    Ok(rustix::io::ioctl_fionread(fd)?)
}

/// How vmsplice(2) would treat a descriptor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Access {
    /// Opened for reading only. With such a descriptor, vmsplice(2) *writes* to the memory passed to it. With any other
    /// descriptor, vmsplice(2) reads the memory and keeps references to its pages.
    pub(crate) reads_only: bool,
    /// Calls on the descriptor return instead of waiting. The exception is vmsplice(2), which also needs
    /// SPLICE_F_NONBLOCK.
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
    use std::fs;
    use std::os::fd::OwnedFd;
    use std::sync::mpsc;
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn capacity_is_rounded_up_to_pages() {
        let pipe = Pipe::new().unwrap();
        let page = rustix::param::page_size();
        assert_eq!(pipe.set_capacity(page + 1).unwrap(), 2 * page);
        assert_eq!(capacity(&pipe.reader).unwrap(), 2 * page);
    }

    #[test]
    fn a_pipe_gets_the_largest_capacity_allowed() {
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

    /// The time limit for a call to start sleeping, and another for the call to return.
    const LIMIT: Duration = Duration::from_secs(5);

    /// Makes a call in a thread, and wakes the thread once it sleeps, or after [`LIMIT`]. Returns whether the thread
    /// slept, and the call's result.
    fn while_asleep(
        end: OwnedFd,
        call: fn(&OwnedFd) -> rustix::io::Result<usize>,
        wake: impl FnOnce() -> rustix::io::Result<usize>,
    ) -> (bool, usize) {
        let (tell, told) = mpsc::channel();
        let (done, returned) = mpsc::channel();
        thread::spawn(move || {
            tell.send(rustix::thread::gettid()).unwrap();
            let _ = done.send(call(&end));
        });
        let thread = told.recv_timeout(LIMIT).unwrap();
        let stat = format!("/proc/self/task/{}/stat", thread.as_raw_nonzero());
        // The stat file is missing once the thread has ended.
        let is_asleep = || {
            let stat = fs::read_to_string(&stat).unwrap_or_default();
            stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" S"))
        };
        // A thread may sleep briefly before or after the call, so it must be asleep in two checks, 10 ms apart.
        let begin = Instant::now();
        let (mut slept, mut early) = (false, None);
        while !slept && early.is_none() && begin.elapsed() < LIMIT {
            slept = is_asleep();
            thread::sleep(Duration::from_millis(10));
            slept = slept && is_asleep();
            early = returned.try_recv().ok();
        }
        wake().unwrap();
        let is_early = early.is_some();
        (slept && !is_early, early.unwrap_or_else(|| returned.recv_timeout(LIMIT).unwrap()).unwrap())
    }

    #[test]
    fn calls_sleep_on_full_and_empty_pipes_only() {
        let pipe = Pipe::new().unwrap();
        let read = |end: &OwnedFd| rustix::io::read(end, &mut [0; 4096][..]);
        let write = |end: &OwnedFd| rustix::io::write(end, &[0; 4096]);
        assert_eq!(while_asleep(pipe.reader.into(), read, || rustix::io::write(&pipe.writer, &[0; 100])), (true, 100));
        let pipe = Pipe::new().unwrap();
        assert_eq!(rustix::io::write(&pipe.writer, &[0; 100]), Ok(100));
        assert_eq!(while_asleep(pipe.reader.into(), read, || Ok(0)), (false, 100));
        let pipe = Pipe::new().unwrap();
        assert_eq!(while_asleep(pipe.writer.try_clone().unwrap().into(), write, || Ok(0)), (false, 4096));
        let pipe = Pipe::new().unwrap();
        let full = pipe.capacity().unwrap();
        assert_eq!(rustix::io::write(&pipe.writer, &vec![0; full]), Ok(full));
        let emptied = || rustix::io::read(&pipe.reader, &mut vec![0; full][..]);
        assert_eq!(while_asleep(pipe.writer.into(), write, emptied), (true, 4096));
    }
}
