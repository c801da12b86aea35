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

use std::fmt;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Instant;
use std::{io, mem};

use rustix::fs::{FileType, Mode, OFlags, SeekFrom, copy_file_range, fcntl_getfl, fstat, seek, sendfile};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use rustix::param::page_size;
use rustix::pipe::{SpliceFlags, splice};
use rustix::termios::isatty;

use self::flow::{ISOLATED, LARGE_PIECE, Naps};
use self::handle::Throttle;
use self::methods::{Kind, methods};
use crate::memory::{Pages, Region};
use crate::pipe::{self, Pipe};
use crate::wait::{Direction, poll_for_input, retry, until_ready};

mod buffered;
mod flow;
mod handle;
mod messages;
mod methods;

pub use buffered::MemoryBuffer;
pub use handle::{RelayHandle, unread};

/// The maximum number of bytes requested in one call, below the kernel's limit of 2 GiB less a page.
const MAX_BYTES: usize = 1 << 30;

/// The maximum number of bytes requested in one call while a handle reports progress.
const MAX_OBSERVED_BYTES: usize = 16 << 20;

/// The maximum number of bytes requested in one call to a stream socket while a handle reports progress. Such a call
/// returns only when the socket has accepted all bytes.
const MAX_OBSERVED_SOCKET_BYTES: usize = 64 << 10;

/// The maximum number of bytes in one write that may wait for the reader while a handle reports progress. Such a write
/// returns only when all bytes are written.
const MAX_OBSERVED_WRITE: usize = 4 << 10;

/// No SPLICE_F_NONBLOCK: on blocking descriptors the call sleeps.
const BLOCK: SpliceFlags = SpliceFlags::empty();

/// Size in bytes of the buffer for read and write. A larger buffer doesn't fit in the second-level cache of current
/// processors.
const BUFFER: usize = 256 << 10;

/// The capacity in bytes that [`CapacityChange::Raise`] requests: the default limit for unprivileged users (pipe-max-size).
const RAISED: usize = 1 << 20;

/// A way to move bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Method {
    /// splice(2): page references move from one pipe to the other.
    Splice,
    /// splice(2) into a private pipe and out again: while the relay waits for one side, it holds no lock that other
    /// processes need.
    SpliceThroughPipe,
    /// copy_file_range(2): the file system copies extents, or shares them.
    CopyFileRange,
    /// sendfile(2): a file's pages move.
    Sendfile,
    /// read(2) and write(2): every byte is copied twice. Works everywhere.
    ReadWrite,
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Method::Splice => "splice",
            Method::SpliceThroughPipe => "splice through a pipe",
            Method::CopyFileRange => "copy_file_range",
            Method::Sendfile => "sendfile",
            Method::ReadWrite => "read and write",
        })
    }
}

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

/// Which side ended the relay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The input ended. All of its bytes were passed on.
    Input,
    /// The output's reader is gone (EPIPE). Bytes that it had not read are lost.
    Output,
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
    /// [buffer](Relay::buffer) or in the output's pipe. Always 0 without a buffer.
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
        let own = match handle {
            Some(_) if self.buffer.is_none() => output_without_waiting(output, kinds[1]),
            _ => None,
        };
        let mut passage = RelayRun::new([input, output], kinds, capacities, one_cpu);
        passage.handle = handle;
        if let Some(own) = &own {
            passage.written_to = own.as_fd();
        }
        if let Some(handle) = handle {
            passage.most = if kinds[1] == Kind::Stream { MAX_OBSERVED_SOCKET_BYTES } else { MAX_OBSERVED_BYTES };
            passage.longest_write = longest_write(output, kinds[1], own.is_some());
            passage.throttle = handle.limit().map(|_| Throttle::new(handle, capacities[1]));
        }
        let copies = self.method == MethodChoice::ReadWrite || passage.throttle.is_some();
        let mut fallbacks = Vec::new();
        let (method, end) = match self.buffer {
            Some(buffer) => (Method::ReadWrite, passage.run_buffered(buffer)?),
            None => passage.run(if copies { &[] } else { methods(kinds[0], kinds[1]) }, &mut fallbacks)?,
        };
        let RelayRun { bytes, undelivered, calls, .. } = passage;
        Ok(RelayReport { bytes, undelivered, calls, method, fallbacks, capacities, end })
    }
}

/// Whether the error may mean that the kernel refuses only the method, because of append mode, a file system without
/// support, or a system-call filter. If a descriptor itself is invalid, read and write fail too.
fn is_refusal(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::INVAL
            | Errno::NOSYS
            | Errno::OPNOTSUPP
            | Errno::PERM
            | Errno::ACCESS
            | Errno::XDEV
            | Errno::BADF
            | Errno::TXTBSY
            | Errno::SPIPE
            | Errno::ISDIR
            | Errno::MFILE
            | Errno::NFILE
            | Errno::NOMEM
    )
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

/// A non-blocking descriptor of the output; `None` if the output isn't a pipe, or is another user's pipe, which can't be
/// opened. A blocking write returns only once all bytes are in the pipe, and until then none of the bytes would be
/// counted.
fn output_without_waiting(output: BorrowedFd<'_>, kind: Kind) -> Option<OwnedFd> {
    if kind != Kind::Pipe {
        return None;
    }
    let path = format!("/proc/self/fd/{}", output.as_raw_fd());
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    rustix::fs::open(path, flags, Mode::empty()).ok()
}

/// The maximum number of bytes in one write(2) while the written bytes are counted. Writes to a device other than a
/// terminal stay whole: a tape, for example, makes a block of each write.
fn longest_write(output: BorrowedFd<'_>, kind: Kind, nonblocking: bool) -> usize {
    let waits = match kind {
        Kind::Pipe => !nonblocking,
        Kind::Device | Kind::TerminalMaster => isatty(output),
        _ => false,
    };
    if waits { MAX_OBSERVED_WRITE } else { usize::MAX }
}

/// Fails with ECANCELED if the relay was [stopped](RelayHandle::stop).
fn check_stopped(handle: Option<&RelayHandle>) -> rustix::io::Result<()> {
    match handle {
        Some(handle) if handle.is_stopped() => Err(Errno::CANCELED),
        _ => Ok(()),
    }
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

/// Advances the position in an open file by `bytes`, and returns the previous position. write(2) and lseek(2) update
/// the position atomically, but splice(2) reads the position when it starts and sets it when it ends. If another
/// process writes in between, either its bytes or ours are overwritten.
fn reserve(file: BorrowedFd<'_>, bytes: usize) -> io::Result<u64> {
    let end = seek(file, SeekFrom::Current(bytes as i64))?;
    Ok(end - bytes as u64)
}

/// Moves the position of `file` back to `place` if the `left` bytes after `place` could not be written and no other
/// process has written since.
fn restore_position(file: BorrowedFd<'_>, place: u64, left: usize) {
    if seek(file, SeekFrom::Current(0)) == Ok(place + left as u64) {
        let _ = seek(file, SeekFrom::Start(place));
    }
}

/// A pipe that only the relay uses.
fn private_pipe() -> io::Result<Pipe> {
    let pipe = Pipe::new()?;
    let _ = pipe::set_capacity(&pipe.writer, RAISED);
    Ok(pipe)
}

/// Why a method ended before its input did.
enum Stop {
    /// The kernel refuses the method. All bytes read from the input have been passed on.
    Refused(Errno),
    Failed(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        match Errno::from_io_error(&error) {
            Some(errno) if is_refusal(errno) => Stop::Refused(errno),
            _ => Stop::Failed(error),
        }
    }
}

/// One run of a relay.
struct RelayRun<'a> {
    input: BorrowedFd<'a>,
    output: BorrowedFd<'a>,
    /// The descriptor of the output for write(2). While a handle reports progress, it is non-blocking if the output is a
    /// pipe.
    written_to: BorrowedFd<'a>,
    kinds: [Kind; 2],
    capacities: [Option<usize>; 2],
    one_cpu: bool,
    bytes: u64,
    undelivered: u64,
    calls: u64,
    /// The maximum number of bytes requested in one call.
    most: usize,
    /// The maximum number of bytes in one write(2).
    longest_write: usize,
    /// When [`wait_for_more`](RelayRun::wait_for_more) was last called.
    last: Instant,
    /// `None` if the output is no pipe or there is only one CPU.
    naps: Option<Naps>,
    /// `None` if nothing observes the relay.
    handle: Option<&'a RelayHandle>,
    /// `None` if the rate is not limited.
    throttle: Option<Throttle>,
}

impl<'a> RelayRun<'a> {
    fn new(
        [input, output]: [BorrowedFd<'a>; 2],
        kinds: [Kind; 2],
        capacities: [Option<usize>; 2],
        one_cpu: bool,
    ) -> RelayRun<'a> {
        RelayRun {
            input,
            output,
            written_to: output,
            kinds,
            capacities,
            one_cpu,
            bytes: 0,
            undelivered: 0,
            calls: 0,
            most: MAX_BYTES,
            longest_write: usize::MAX,
            last: Instant::now(),
            // On one CPU naps gain nothing, because a reader that wakes this process keeps running.
            naps: capacities[1].filter(|_| !one_cpu).map(Naps::new),
            handle: None,
            throttle: None,
        }
    }
}

impl RelayRun<'_> {
    /// Adds `bytes` to the number of bytes written to the output.
    fn count(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        if let Some(handle) = self.handle {
            handle.set_written(self.bytes);
        }
    }

    /// Waits until the rate limit lets bytes pass, and returns how many bytes may pass.
    fn wait_for_limit(&mut self) -> usize {
        self.throttle.as_mut().map_or(usize::MAX, Throttle::wait)
    }

    /// Counts bytes against the rate limit.
    fn count_against_limit(&mut self, bytes: usize) {
        if let Some(throttle) = &mut self.throttle {
            throttle.passed(bytes);
        }
    }

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

    /// Repeats `call` until it moves no more bytes.
    fn repeat(
        &mut self,
        method: Method,
        mut call: impl FnMut(BorrowedFd<'_>, BorrowedFd<'_>) -> rustix::io::Result<usize>,
    ) -> Result<Method, Stop> {
        while self.move_once(&mut call)? > 0 {}
        Ok(method)
    }

    /// Makes one call that moves bytes from the input to the output. Fails with ECANCELED if the relay was stopped.
    fn move_once(
        &mut self,
        mut call: impl FnMut(BorrowedFd<'_>, BorrowedFd<'_>) -> rustix::io::Result<usize>,
    ) -> io::Result<usize> {
        loop {
            check_stopped(self.handle)?;
            self.calls += 1;
            match call(self.input, self.output) {
                Ok(moved) => {
                    self.count(moved);
                    return Ok(moved);
                }
                Err(Errno::INTR) => {}
                // Input or output is non-blocking and not ready. The kernel doesn't report which, so wait for both.
                Err(Errno::AGAIN) => {
                    self.wait_for(self.input, Direction::In)?;
                    self.wait_for(self.output, Direction::Out)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn wait_for(&mut self, fd: BorrowedFd<'_>, direction: Direction) -> io::Result<()> {
        self.calls += 1;
        until_ready(fd, direction)
    }

    /// Makes one call. Repeats it at once if it was interrupted, or once `fd` is ready if it would block. Fails with
    /// ECANCELED if the relay was stopped.
    fn call_once(
        &mut self,
        fd: BorrowedFd<'_>,
        direction: Direction,
        mut call: impl FnMut() -> rustix::io::Result<usize>,
    ) -> io::Result<usize> {
        let handle = self.handle;
        retry(fd, direction, &mut self.calls, || check_stopped(handle).and_then(|()| call()))
    }

    /// Fills a private pipe and empties it again. Small pieces from a socket are copied instead, because in a pipe each
    /// piece takes as much room as a page. Returns the last method used.
    fn splice_through_pipe(&mut self) -> Result<Method, Stop> {
        let between = private_pipe()?;
        let mut buffer = Region::new(BUFFER, Pages::Base)?;
        let is_file = self.kinds[0] == Kind::File;
        let (mut many, mut used) = (is_file, Method::ReadWrite);
        loop {
            let moved = if many {
                used = Method::SpliceThroughPipe;
                self.pass_through(&between, 0)?
            } else {
                self.copy_once(&mut buffer).map_err(Stop::Failed)?
            };
            if moved == 0 {
                return Ok(used);
            }
            many = is_file || moved >= LARGE_PIECE;
            self.wait_for_more();
        }
    }

    /// Reads once and writes the bytes that were read. Returns their number; 0 at the end of the input.
    fn copy_once(&mut self, buffer: &mut Region) -> io::Result<usize> {
        let most = match self.wait_for_limit() {
            most if most < buffer.len() => most.max(self.smallest_read()).min(buffer.len()),
            _ => buffer.len(),
        };
        let got = self.read(self.input, &mut buffer.bytes_mut()[..most])?;
        let mut bytes = &buffer.bytes()[..got];
        while !bytes.is_empty() {
            let (piece, rest) = bytes.split_at(bytes.len().min(self.wait_for_limit()));
            self.write_all(piece)?;
            self.count_against_limit(piece.len());
            bytes = rest;
        }
        Ok(got)
    }

    /// The smallest number of bytes to request in one read, because a smaller read may fail or lose bytes: the rest of a
    /// packet in a pipe is dropped, devices such as /dev/kmsg refuse to return a part of a record, and a file opened with
    /// O_DIRECT refuses parts of a block. The end of a pipe that is read doesn't show whether its writer sends packets.
    fn smallest_read(&self) -> usize {
        match self.kinds[0] {
            Kind::Pipe | Kind::PacketPipe => page_size(),
            Kind::Device => BUFFER,
            Kind::File if fcntl_getfl(self.input).is_ok_and(|flags| flags.contains(OFlags::DIRECT)) => BUFFER,
            _ => 1,
        }
    }

    /// Moves the bytes of one call through the pipe `between`. First [polls](Self::try_splice) up to `polls` times
    /// without sleeping.
    fn pass_through(&mut self, between: &Pipe, polls: u32) -> Result<usize, Stop> {
        let (input, output, most) = (self.input, self.output, self.most);
        let moved = match self.try_splice(between.writer.as_fd(), polls)? {
            Some(moved) => moved,
            None => {
                self.call_once(input, Direction::In, || splice(input, None, &between.writer, None, MAX_BYTES, BLOCK))?
            }
        };
        let mut left = moved;
        let is_file = self.kinds[1] == Kind::File;
        let mut place = is_file.then(|| reserve(output, moved).ok()).flatten();
        while left > 0 {
            let given = self.call_once(output, Direction::Out, || {
                splice(&between.reader, None, output, place.as_mut(), left.min(most), BLOCK)
            });
            match given.map_err(Stop::from) {
                Ok(0) => return Err(Stop::Failed(io::ErrorKind::WriteZero.into())),
                Ok(given) => {
                    self.count(given);
                    left -= given;
                    self.nap(given, between.reader.as_fd());
                }
                Err(Stop::Refused(errno)) => {
                    // The output refuses splice: write the bytes that are in the pipe.
                    self.drain(between.reader.as_fd(), left, place).map_err(Stop::Failed)?;
                    return Err(Stop::Refused(errno));
                }
                Err(failed) => {
                    if let Some(place) = place {
                        restore_position(output, place, left);
                    }
                    return Err(failed);
                }
            }
        }
        Ok(moved)
    }

    /// Writes the `left` bytes that are still in the pipe `between`. If `place` is set, the output is a file and they
    /// are written from that offset on.
    fn drain(&mut self, between: BorrowedFd<'_>, mut left: usize, mut place: Option<u64>) -> io::Result<()> {
        let mut buffer = Region::new(BUFFER, Pages::Base)?;
        while left > 0 {
            let length = left.min(BUFFER);
            let got = self.read(between, &mut buffer.bytes_mut()[..length])?;
            if got == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let mut bytes = &buffer.bytes()[..got];
            while let Some(place) = place.as_mut().filter(|_| !bytes.is_empty()) {
                let output = self.output;
                let taken = self.call_once(output, Direction::Out, || rustix::io::pwrite(output, bytes, *place));
                let taken = taken.inspect_err(|_| restore_position(output, *place, left))?;
                self.count(taken);
                *place += taken as u64;
                left -= taken;
                bytes = &bytes[taken..];
            }
            self.write_all(bytes)?;
            left -= bytes.len();
        }
        Ok(())
    }

    fn read_write(&mut self) -> io::Result<()> {
        if self.kinds[0].has_messages() {
            return self.pass_messages();
        }
        let mut buffer = Region::new(BUFFER, Pages::Base)?;
        while self.copy_once(&mut buffer)? > 0 {
            self.wait_for_more();
        }
        Ok(())
    }

    /// Waits briefly for more bytes, without sleeping, unless the last piece was [isolated](ISOLATED).
    fn wait_for_more(&mut self) {
        let now = Instant::now();
        let alone = now - mem::replace(&mut self.last, now) > ISOLATED;
        if !alone && matches!(self.kinds[0], Kind::Stream | Kind::Pipe) {
            poll_for_input(self.input);
        }
    }

    fn read(&mut self, from: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
        let closed =
            |got: &io::Result<usize>| got.as_ref().is_err_and(|error| Errno::from_io_error(error) == Some(Errno::IO));
        let mut got = self.call_once(from, Direction::In, || rustix::io::read(from, &mut *buffer));
        if self.kinds[0] == Kind::TerminalMaster && closed(&got) {
            // The last program has closed the terminal's other side. The kernel checks for input before it checks for
            // the closed side (n_tty_read), so bytes that were written between the two checks are still unread. Read
            // again.
            got = self.call_once(from, Direction::In, || rustix::io::read(from, &mut *buffer));
            if closed(&got) {
                return Ok(0);
            }
        }
        got
    }

    fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        if self.kinds[1].has_messages() {
            return self.write_messages(bytes);
        }
        let output = self.written_to;
        // A blocking write to a socket returns only once all bytes are in the socket, and until then none of the bytes
        // would be counted.
        let nonblocking_send = self.handle.is_some() && self.kinds[1] == Kind::Stream;
        while !bytes.is_empty() {
            let piece = &bytes[..bytes.len().min(self.longest_write)];
            let taken = self.call_once(output, Direction::Out, || match nonblocking_send {
                true => send(output, piece, SendFlags::DONTWAIT | SendFlags::NOSIGNAL),
                false => rustix::io::write(output, piece),
            })?;
            if taken == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.count(taken);
            bytes = &bytes[taken..];
        }
        Ok(())
    }
}
