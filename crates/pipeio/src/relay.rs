//! Copies the bytes of one descriptor to another as fast as the system can, each byte exactly once.
//!
//! The types of the two descriptors determine the method. Where the kernel can move page references (splice, sendfile,
//! copy_file_range), the relay moves references; otherwise it reads and writes the bytes. If a method fails midway, the
//! next method continues at the same place. All methods use the descriptors' own positions, so no byte is lost or
//! repeated.
//!
//! While splice(2) between a pipe and a descriptor of another type waits for that descriptor, it keeps the pipe locked.
//! Any other process that reads or writes the pipe then sleeps uninterruptibly. So the relay splices directly only
//! where the kernel waits without the lock. Elsewhere it splices through a private pipe. The table in
//! `relay/methods.rs` explains why each method is safe.
//!
//! Moving references has a side effect: bytes that were passed on can change until they are read. They change if a
//! process fills a pipe by vmsplice and reuses the memory once the pipe is empty, or if it overwrites a file while the
//! file is being sent. [`MethodChoice::ReadWrite`] prevents such changes, because it copies the bytes.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::fs::{FileType, OFlags, SeekFrom, copy_file_range, fcntl_getfl, fstat, seek, sendfile};

use self::handle::Throttle;
use self::limits::{MAX_OBSERVED_BYTES, MAX_OBSERVED_SOCKET_BYTES, RAISED};
use self::methods::{Kind, methods};
use self::run::{RelayRun, Stop, longest_write, output_without_waiting};
use crate::pipe;

mod buffered;
mod flow;
mod handle;
mod limits;
mod line_count;
mod messages;
mod methods;
mod naps;
mod run;

pub use buffered::MemoryBuffer;
pub use handle::{RelayHandle, unread};
pub use methods::Method;
pub use run::End;

/// How the method is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum MethodChoice {
    /// The fastest method that the kernel permits between the two descriptors.
    #[default]
    Fastest,
    /// Only read(2) and write(2). The output then doesn't depend on memory or files that other processes may change
    /// later.
    ReadWrite,
}

/// What to do with the capacity of each side that is a pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum CapacityChange {
    /// Leave it as it is.
    Keep,
    /// Raise a smaller capacity to 1 MiB, or to 256 KiB if the output is a file. If the system refuses, the capacity
    /// stays as it is.
    #[default]
    Raise,
    /// Set it to this many bytes, rounded up to a power of two of pages. If the system refuses, the run fails.
    /// Exception: a pipe that already holds more bytes than the requested capacity keeps its capacity. The process at
    /// its other end has then enlarged and filled it.
    Set(usize),
}

/// A method that was tried and abandoned, with the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fallback {
    /// The method that was tried.
    pub from: Method,
    /// The error number of the method (see errno(3)). `None` if the method reported the end of the input but read(2)
    /// found more bytes.
    pub errno: Option<i32>,
}

/// The result of a relay.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RelayReport {
    /// Bytes written to the output.
    pub bytes: u64,
    /// Bytes that were read but not delivered because the output's reader left. These were in the
    /// [buffer](Relay::buffer), in the piece being written, or in the output's pipe.
    pub undelivered: u64,
    /// System calls that moved bytes, tried to move bytes, or waited for bytes. Short sleeps that let a pipe fill or
    /// drain are not counted.
    pub calls: u64,
    /// The last method used. Small pieces are read and written even where another method is possible, unless the output
    /// is /dev/null.
    pub method: Method,
    /// The methods tried before `method`, in order.
    pub fallbacks: Vec<Fallback>,
    /// Pipe capacities of the input and the output during the relay, in bytes; `None` for a side that isn't a pipe.
    pub capacities: [Option<usize>; 2],
    /// Which side ended the relay.
    pub end: End,
}

/// Copies everything from `from` to `to` by the fastest safe method, and reports which method was used.
///
/// Like [`std::io::copy`], but for descriptors of any type, blocking or not. The same as [`Relay::run`] with default
/// options. The function reads and writes the descriptors themselves: it misses bytes that a `BufReader` or
/// [`std::io::Stdin`] has read ahead, and a `BufWriter` must be flushed before the call. Pipes on either side are
/// enlarged as [`CapacityChange::Raise`] describes; use [`Relay::capacity`] to prevent that.
///
/// # Errors
/// As [`Relay::run`], and `BrokenPipe` if the reader of `to` leaves before the end of the input.
///
/// ```
/// use std::io::{Read, Write};
/// let (reader, mut source) = std::io::pipe()?;
/// let (mut sink, writer) = std::io::pipe()?;
/// source.write_all(b"abc")?;
/// drop(source);
/// let report = pipeio::copy(&reader, &writer)?;
/// assert_eq!((report.bytes, report.method), (3, pipeio::relay::Method::ReadWrite));
/// drop(writer);
/// let mut text = String::new();
/// sink.read_to_string(&mut text)?;
/// assert_eq!(text, "abc");
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn copy(from: impl AsFd, to: impl AsFd) -> io::Result<RelayReport> {
    match Relay::new().run(from, to)? {
        RelayReport { end: End::Output, .. } => Err(io::ErrorKind::BrokenPipe.into()),
        report => Ok(report),
    }
}

/// A copy between two descriptors, with options.
///
/// ```
/// use pipeio::relay::{CapacityChange, MethodChoice, Relay};
/// # let (reader, source) = std::io::pipe()?;
/// # let (sink, writer) = std::io::pipe()?;
/// # drop(source);
/// let report = Relay::new().method(MethodChoice::ReadWrite).capacity(CapacityChange::Keep).run(&reader, &writer)?;
/// assert_eq!(report.bytes, 0);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Relay {
    method: MethodChoice,
    capacity: CapacityChange,
    buffer: Option<MemoryBuffer>,
}

impl Relay {
    /// A relay that uses the fastest method and enlarges pipes as [`CapacityChange::Raise`] describes.
    pub fn new() -> Relay {
        Relay::default()
    }

    /// Sets how the method is chosen.
    pub fn method(mut self, method: MethodChoice) -> Relay {
        self.method = method;
        self
    }

    /// Sets what to do with the capacity of a pipe on either side.
    pub fn capacity(mut self, capacity: CapacityChange) -> Relay {
        self.capacity = capacity;
        self
    }

    /// Puts a memory buffer between the two sides, with a thread for each side. A bursty writer then continues while
    /// the reader pauses, and the reader continues while the writer pauses. Every byte is copied, whatever the
    /// [method](Relay::method). Bytes are written as soon as they arrive, unless the buffer has a [start
    /// level](MemoryBuffer::start_at).
    pub fn buffer(mut self, buffer: MemoryBuffer) -> Relay {
        self.buffer = Some(buffer);
        self
    }

    /// Copies everything from `input` to `output`, until the input ends or the output's reader is gone.
    ///
    /// Works on blocking and non-blocking descriptors of any type. The calling process should ignore SIGPIPE, as Rust
    /// programs do by default. Otherwise SIGPIPE kills the process where this function would report [`End::Output`].
    ///
    /// Messages from a Unix socket are passed on whole. Each stays one message if the output is also a Unix socket that
    /// carries messages. Input from a datagram socket ends only with an empty message.
    ///
    /// If both the calling thread and the parent process may run on one CPU only, the call may set the thread's
    /// scheduling policy to SCHED_BATCH until it returns. The thread then doesn't preempt a writer that wakes it at
    /// each write.
    ///
    /// # Errors
    /// - The error of read(2) or write(2), which are tried last. By then some bytes may have been passed on.
    /// - `InvalidInput` if both descriptors are the same file and the copy would never end.
    /// - `Unsupported` if one of the descriptors is a socket that may lose messages silently, such as UDP. Also if
    ///   there is a [buffer](Relay::buffer) and the input carries messages, which the buffer would join.
    /// - `OutOfMemory` if there is no memory for the buffer.
    /// - The kernel's error if it refuses a capacity that was [set](CapacityChange::Set).
    pub fn run(&self, input: impl AsFd, output: impl AsFd) -> io::Result<RelayReport> {
        self.run_between(input.as_fd(), output.as_fd(), None)
    }

    /// Like [`Relay::run`], with a handle that reports progress and limits the rate. With a rate limit, every byte is
    /// copied by read and write.
    ///
    /// # Errors
    /// As [`Relay::run`].
    pub fn run_with(&self, input: impl AsFd, output: impl AsFd, handle: &RelayHandle) -> io::Result<RelayReport> {
        self.run_between(input.as_fd(), output.as_fd(), Some(handle))
    }

    fn run_between(
        &self,
        input: BorrowedFd<'_>,
        output: BorrowedFd<'_>,
        handle: Option<&RelayHandle>,
    ) -> io::Result<RelayReport> {
        let kinds = [Kind::of(input)?, Kind::of(output)?];
        refuse_endless_copy(input, output)?;
        // If only this process is pinned to one CPU, the processes at the other ends run on other CPUs.
        let one_cpu = pipe::has_one_cpu() && pipe::parent_has_one_cpu();
        // Copying to a file from a pipe of 256 KiB takes 4 to 6 % less time than from a pipe of 1 MiB on one CPU, and
        // the same time on two CPUs.
        let raised = if kinds[1] == Kind::File { pipe::CACHE_SIZED } else { RAISED };
        let capacities =
            [capacity(input, kinds[0], self.capacity, raised)?, capacity(output, kinds[1], self.capacity, raised)?];
        if kinds.contains(&Kind::Lossy) {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "this kind of socket silently loses messages that arrive too fast; use a stream or a Unix socket",
            ));
        }
        if self.buffer.is_some() && kinds[0].has_messages() {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "the input is a socket that carries messages, which a buffer would join; omit the buffer",
            ));
        }
        let stopped = handle.map(RelayHandle::stop_flag);
        let counted = handle.filter(|handle| handle.is_counted());
        let own = match counted {
            Some(_) if self.buffer.is_none() => output_without_waiting(output, kinds[1]),
            _ => None,
        };
        let mut passage = RelayRun::new([input, output], kinds, capacities, one_cpu);
        (passage.handle, passage.stopped) = (counted, stopped);
        if let Some(own) = &own {
            passage.written_to = own.as_fd();
        }
        if let Some(handle) = counted {
            passage.most = if kinds[1] == Kind::Stream { MAX_OBSERVED_SOCKET_BYTES } else { MAX_OBSERVED_BYTES };
            passage.longest_write = longest_write(output, kinds[1], own.is_some());
            passage.throttle = handle.limit().map(|_| Throttle::new(handle, capacities[1]));
        }
        let counts_lines = counted.is_some_and(|handle| handle.line_counter().is_some());
        let copies = self.method == MethodChoice::ReadWrite || passage.throttle.is_some() || counts_lines;
        let mut fallbacks = Vec::new();
        let (method, end) = match self.buffer {
            Some(buffer) => (Method::ReadWrite, passage.run_buffered(buffer)?),
            None => {
                let methods = if copies { &[] } else { methods(kinds[0], kinds[1]) };
                let outcome = passage.run(methods, &mut fallbacks);
                if let Some(handle) = handle {
                    handle.set_written(passage.bytes);
                    handle.set_read(passage.bytes + passage.held);
                }
                let (method, end) = outcome?;
                if end == End::Output {
                    passage.undelivered = passage.held + unread(output).unwrap_or(0);
                }
                (method, end)
            }
        };
        let RelayRun { bytes, undelivered, calls, .. } = passage;
        Ok(RelayReport { bytes, undelivered, calls, method, fallbacks, capacities, end })
    }
}

/// Refuses to append a file to itself, which would fill the disk.
fn refuse_endless_copy(input: BorrowedFd<'_>, output: BorrowedFd<'_>) -> io::Result<()> {
    let (from, to) = (fstat(input)?, fstat(output)?);
    let regular = FileType::from_raw_mode(from.st_mode) == FileType::RegularFile;
    if !regular || (from.st_dev, from.st_ino) != (to.st_dev, to.st_ino) {
        return Ok(());
    }
    if share_position(input, output) && seek(input, SeekFrom::Current(0))? < from.st_size.unsigned_abs() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "input and output share one position in the same file, so the copy would overwrite bytes that were not yet read; write to another file",
        ));
    }
    let append = fcntl_getfl(output)?.contains(OFlags::APPEND);
    let end = if append { to.st_size.unsigned_abs() } else { seek(output, SeekFrom::Current(0))? };
    if seek(input, SeekFrom::Current(0))? < end {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "input and output are the same file, and the copy would never end; write to another file",
        ));
    }
    Ok(())
}

/// Whether both descriptors refer to one open file, as after dup(2): reading then moves the position for writing. False
/// if the system doesn't tell (kcmp(2)).
fn share_position(input: BorrowedFd<'_>, output: BorrowedFd<'_>) -> bool {
    const KCMP_FILE: libc::c_int = 0;
    let (process, [input, output]) = (rustix::process::getpid().as_raw_pid(), [input.as_raw_fd(), output.as_raw_fd()]);
    // SAFETY: the call compares two descriptors of this process and accesses no memory of ours.
    unsafe { libc::syscall(libc::SYS_kcmp, process, process, KCMP_FILE, input, output) == 0 }
}

/// Sets the capacity as `wanted` if `fd` is a pipe. Returns the pipe's capacity in bytes.
fn capacity(fd: BorrowedFd<'_>, kind: Kind, wanted: CapacityChange, raised: usize) -> io::Result<Option<usize>> {
    if !matches!(kind, Kind::Pipe | Kind::PacketPipe) {
        return Ok(None);
    }
    match wanted {
        CapacityChange::Keep => {}
        CapacityChange::Set(bytes) => match pipe::set_capacity(fd, bytes) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {}
            outcome => return outcome.map(Some),
        },
        CapacityChange::Raise => return pipe::raise_capacity(fd, raised).map(Some),
    }
    pipe::capacity(fd).map(Some)
}

impl RelayRun<'_> {
    /// Tries `methods` in order, then read(2) and write(2), until one reaches the end of the input.
    fn run(&mut self, methods: &[Method], fallbacks: &mut Vec<Fallback>) -> io::Result<(Method, End)> {
        let (mut complete, most) = (None, self.most);
        for &method in methods {
            let moved = match method {
                Method::Splice | Method::SpliceThroughPipe if self.kinds[0] == Kind::Pipe => self.pass_pipe(method),
                Method::Splice | Method::SpliceThroughPipe => self.splice_through_pipe(),
                Method::CopyFileRange => self.repeat(method, |from, to| copy_file_range(from, None, to, None, most)),
                Method::Sendfile => self.repeat(method, |from, to| sendfile(to, from, None, most)),
                Method::ReadWrite => self.read_write().map(|()| method).map_err(Stop::Failed),
            };
            match moved {
                // A file that seems to be at its end may be a /proc file: these have size 0 and show their content only
                // to read(2). A stream may be at its urgent byte, which splice(2) doesn't pass. So read(2) decides
                // whether the input has ended.
                Ok(used) if matches!(self.kinds[0], Kind::File | Kind::Stream) => {
                    complete = Some(used);
                    break;
                }
                Ok(used) => return Ok((used, End::Input)),
                Err(Stop::Failed(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                    return Ok((method, End::Output));
                }
                Err(Stop::Refused(errno)) => {
                    fallbacks.push(Fallback { from: method, errno: Some(errno.raw_os_error()) })
                }
                Err(Stop::Failed(error)) => return Err(error),
            }
        }
        let before = self.bytes;
        let end = match self.read_write() {
            Ok(()) => End::Input,
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => End::Output,
            Err(error) => return Err(error),
        };
        if let Some(from) = complete {
            if self.bytes == before && end == End::Input {
                return Ok((from, end));
            }
            fallbacks.push(Fallback { from, errno: None });
        }
        Ok((Method::ReadWrite, end))
    }
}
