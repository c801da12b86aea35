//! One run of a relay: its state, and the calls that move bytes once.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use std::{io, mem};

use rustix::fs::{Mode, OFlags, SeekFrom, fcntl_getfl, seek};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use rustix::param::page_size;
use rustix::pipe::splice;
use rustix::termios::isatty;

use super::handle::{RelayHandle, Throttle};
use super::limits::{BLOCK, BUFFER, ISOLATED, LARGE_PIECE, MAX_BYTES, MAX_OBSERVED_WRITE, RAISED};
use super::methods::{Kind, Method};
use super::naps::Naps;
use crate::memory::{Pages, Region};
use crate::pipe::{self, Pipe};
use crate::wait::{Direction, poll_for_input, retry, until_ready};

/// Which side ended the relay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The input ended. All of its bytes were passed on.
    Input,
    /// The output's reader is gone (EPIPE). Bytes that it had not read are lost.
    Output,
}

/// Whether the error may mean that the kernel refuses only the method, because of append mode, a file system without
/// support, or a system-call filter. If a descriptor itself is invalid, read and write fail too.
pub(super) fn is_refusal(errno: Errno) -> bool {
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

/// A non-blocking descriptor of the output; `None` if the output isn't a pipe, or is another user's pipe, which can't be
/// opened. A blocking write returns only once all bytes are in the pipe, and until then none of the bytes would be
/// counted.
pub(super) fn output_without_waiting(output: BorrowedFd<'_>, kind: Kind) -> Option<OwnedFd> {
    if kind != Kind::Pipe {
        return None;
    }
    let path = format!("/proc/self/fd/{}", output.as_raw_fd());
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    rustix::fs::open(path, flags, Mode::empty()).ok()
}

/// The maximum number of bytes in one write(2) while the written bytes are counted. Writes to a device other than a
/// terminal stay whole: a tape, for example, makes a block of each write.
pub(super) fn longest_write(output: BorrowedFd<'_>, kind: Kind, nonblocking: bool) -> usize {
    let waits = match kind {
        Kind::Pipe => !nonblocking,
        Kind::Device | Kind::TerminalMaster => isatty(output),
        _ => false,
    };
    if waits { MAX_OBSERVED_WRITE } else { usize::MAX }
}

/// Fails with ECANCELED if the relay was [stopped](RelayHandle::stop).
pub(super) fn check_stopped(stopped: Option<&AtomicBool>) -> rustix::io::Result<()> {
    match stopped {
        Some(stopped) if stopped.load(Ordering::SeqCst) => Err(Errno::CANCELED),
        _ => Ok(()),
    }
}

/// Advances the position in an open file by `bytes`, and returns the previous position. write(2) and lseek(2) update
/// the position atomically, but splice(2) reads the position when it starts and sets it when it ends. If another
/// process writes in between, either its bytes or ours are overwritten.
pub(super) fn reserve(file: BorrowedFd<'_>, bytes: usize) -> io::Result<u64> {
    let end = seek(file, SeekFrom::Current(bytes as i64))?;
    Ok(end - bytes as u64)
}

/// Moves the position of `file` back to `place` if the `left` bytes after `place` could not be written and no other
/// process has written since.
pub(super) fn restore_position(file: BorrowedFd<'_>, place: u64, left: usize) {
    if seek(file, SeekFrom::Current(0)) == Ok(place + left as u64) {
        let _ = seek(file, SeekFrom::Start(place));
    }
}

/// A pipe that only the relay uses.
pub(super) fn private_pipe() -> io::Result<Pipe> {
    let pipe = Pipe::new()?;
    let _ = pipe::set_capacity(&pipe.writer, RAISED);
    Ok(pipe)
}

/// Why a method ended before its input did.
pub(super) enum Stop {
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
pub(super) struct RelayRun<'a> {
    pub(super) input: BorrowedFd<'a>,
    pub(super) output: BorrowedFd<'a>,
    /// The descriptor of the output for write(2). While a handle reports progress, it is non-blocking if the output is a
    /// pipe.
    pub(super) written_to: BorrowedFd<'a>,
    pub(super) kinds: [Kind; 2],
    pub(super) capacities: [Option<usize>; 2],
    pub(super) one_cpu: bool,
    pub(super) bytes: u64,
    /// Bytes that were read and not yet written, without a buffer.
    pub(super) held: u64,
    pub(super) undelivered: u64,
    pub(super) calls: u64,
    /// The maximum number of bytes requested in one call.
    pub(super) most: usize,
    /// The maximum number of bytes in one write(2).
    pub(super) longest_write: usize,
    /// When [`wait_for_more`](RelayRun::wait_for_more) was last called.
    pub(super) last: Instant,
    /// `None` if the output is no pipe or there is only one CPU.
    pub(super) naps: Option<Naps>,
    /// `None` if nothing observes the relay.
    pub(super) handle: Option<&'a RelayHandle>,
    /// Whether the relay was [stopped](RelayHandle::stop); `None` if nothing can stop it.
    pub(super) stopped: Option<&'a AtomicBool>,
    /// `None` if the rate is not limited.
    pub(super) throttle: Option<Throttle>,
}

impl<'a> RelayRun<'a> {
    pub(super) fn new(
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
            held: 0,
            undelivered: 0,
            calls: 0,
            most: MAX_BYTES,
            longest_write: usize::MAX,
            last: Instant::now(),
            // On one CPU naps gain nothing, because a reader that wakes this process keeps running.
            naps: capacities[1].filter(|_| !one_cpu).map(Naps::new),
            handle: None,
            stopped: None,
            throttle: None,
        }
    }
}

impl RelayRun<'_> {
    /// Adds `bytes` to the number of bytes written to the output.
    pub(super) fn count(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        // Direct methods hold no bytes.
        self.held = self.held.saturating_sub(bytes as u64);
        if let Some(handle) = self.handle {
            handle.set_written(self.bytes);
        }
    }

    /// Counts the lines of bytes that were written, before the bytes themselves are counted.
    pub(super) fn count_lines(&self, bytes: &[u8]) {
        if let Some(lines) = self.handle.and_then(RelayHandle::line_counter) {
            lines.count(bytes);
        }
    }

    /// Waits until the rate limit lets bytes pass, and returns how many bytes may pass.
    pub(super) fn wait_for_limit(&mut self) -> usize {
        self.throttle.as_mut().map_or(usize::MAX, Throttle::wait)
    }

    /// Counts bytes against the rate limit.
    pub(super) fn count_against_limit(&mut self, bytes: usize) {
        if let Some(throttle) = &mut self.throttle {
            throttle.passed(bytes);
        }
    }

    /// Repeats `call` until it moves no more bytes.
    pub(super) fn repeat(
        &mut self,
        method: Method,
        mut call: impl FnMut(BorrowedFd<'_>, BorrowedFd<'_>) -> rustix::io::Result<usize>,
    ) -> Result<Method, Stop> {
        while self.move_once(&mut call)? > 0 {}
        Ok(method)
    }

    /// Makes one call that moves bytes from the input to the output. Fails with ECANCELED if the relay was stopped.
    pub(super) fn move_once(
        &mut self,
        mut call: impl FnMut(BorrowedFd<'_>, BorrowedFd<'_>) -> rustix::io::Result<usize>,
    ) -> io::Result<usize> {
        loop {
            check_stopped(self.stopped)?;
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

    pub(super) fn wait_for(&mut self, fd: BorrowedFd<'_>, direction: Direction) -> io::Result<()> {
        self.calls += 1;
        until_ready(fd, direction)
    }

    /// Makes one call. Repeats it at once if it was interrupted, or once `fd` is ready if it would block. Fails with
    /// ECANCELED if the relay was stopped.
    pub(super) fn call_once(
        &mut self,
        fd: BorrowedFd<'_>,
        direction: Direction,
        mut call: impl FnMut() -> rustix::io::Result<usize>,
    ) -> io::Result<usize> {
        let stopped = self.stopped;
        retry(fd, direction, &mut self.calls, || check_stopped(stopped).and_then(|()| call()))
    }

    /// Fills a private pipe and empties it again. Small pieces from a socket are copied instead, because in a pipe each
    /// piece takes as much room as a page. Returns the last method used.
    pub(super) fn splice_through_pipe(&mut self) -> Result<Method, Stop> {
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
    pub(super) fn copy_once(&mut self, buffer: &mut Region) -> io::Result<usize> {
        let most = match self.wait_for_limit() {
            most if most < buffer.len() => most.max(self.smallest_read()).min(buffer.len()),
            _ => buffer.len(),
        };
        let got = self.read(self.input, &mut buffer.bytes_mut()[..most])?;
        self.held = got as u64;
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
    pub(super) fn smallest_read(&self) -> usize {
        match self.kinds[0] {
            Kind::Pipe | Kind::PacketPipe => page_size(),
            Kind::Device => BUFFER,
            Kind::File if fcntl_getfl(self.input).is_ok_and(|flags| flags.contains(OFlags::DIRECT)) => BUFFER,
            _ => 1,
        }
    }

    /// Moves the bytes of one call through the pipe `between`. First [polls](Self::try_splice) up to `polls` times
    /// without sleeping.
    pub(super) fn pass_through(&mut self, between: &Pipe, polls: u32) -> Result<usize, Stop> {
        let (input, output, most) = (self.input, self.output, self.most);
        let moved = match self.try_splice(between.writer.as_fd(), polls)? {
            Some(moved) => moved,
            None => {
                self.call_once(input, Direction::In, || splice(input, None, &between.writer, None, MAX_BYTES, BLOCK))?
            }
        };
        self.held = moved as u64;
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
    pub(super) fn drain(&mut self, between: BorrowedFd<'_>, mut left: usize, mut place: Option<u64>) -> io::Result<()> {
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

    pub(super) fn read_write(&mut self) -> io::Result<()> {
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
    pub(super) fn wait_for_more(&mut self) {
        let now = Instant::now();
        let alone = now - mem::replace(&mut self.last, now) > ISOLATED;
        if !alone && matches!(self.kinds[0], Kind::Stream | Kind::Pipe) {
            poll_for_input(self.input);
        }
    }

    pub(super) fn read(&mut self, from: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
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

    pub(super) fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
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
            self.count_lines(&piece[..taken]);
            self.count(taken);
            bytes = &bytes[taken..];
        }
        Ok(())
    }
}
