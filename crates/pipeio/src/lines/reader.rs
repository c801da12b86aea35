//! Reads batches of whole lines from a descriptor.

use std::io::Write;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::thread;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FileType, Mode, OFlags, fcntl_getfl};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SocketType, recv, sockopt};
use rustix::param::page_size;
use rustix::time::Timespec;

use super::error::Error;
use super::fault;
use super::output::Store;
use super::region::Region;
use crate::wait::{Direction, MAX_POLLS, until_ready};

/// Bytes of address space that a thread first reserves for output. Only the part that has been written uses memory.
const STORE: usize = 2 << 20;

/// If the start of an unfinished line is longer than this, the buffers are swapped and the line isn't copied.
const WORTH_SWAPPING: usize = 64 << 10;

/// The maximum number of consecutive waits that skip polling. So at least every 64th wait polls.
const MAX_SKIPPED_POLLS: u32 = 63;

/// Which bytes to read, in which block size and with which line limit.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadPlan {
    /// Bytes requested in one read; if `fixed` is false, the maximum.
    pub(super) block: usize,
    pub(super) fixed: bool,
    pub(super) terminator: u8,
    /// The maximum length of a line without its terminator, in bytes.
    pub(super) max_line: usize,
    pub(super) numbered: bool,
    /// The number of the first line.
    pub(super) first_line: u64,
    /// Where the first line starts, in bytes from the start of the input.
    pub(super) origin: u64,
    /// Where reading ends, in bytes from the start of the input.
    pub(super) end: u64,
}

impl ReadPlan {
    /// Allocates the memory of one thread, for a batch and for its output.
    pub(super) fn memory(self) -> Result<(Region, Store), Error> {
        Ok((Region::new(self.block).map_err(Error::Memory)?, Store::new(self.block.max(STORE))?))
    }
}

/// Reads batches. One read makes one batch, so no batch waits for more input.
#[derive(Debug)]
pub(super) struct Reader<'fd> {
    input: BorrowedFd<'fd>,
    /// Becomes readable when reading should end; `None` if the input can't be polled.
    cancel: Option<BorrowedFd<'fd>>,
    /// Whether reads may wait. If so, `cancel` is polled before each read. Otherwise `cancel` is polled only if there
    /// is nothing to read, because poll(2) would wait for a FIFO that was never opened for writing, although a read
    /// reports its end.
    waits: bool,
    kind: FileType,
    /// Whether the input is a socket that carries messages. A read discards the bytes of a message that don't fit.
    messages: bool,
    plan: ReadPlan,
    /// Contains the start of an unfinished line.
    pending: Region,
    /// Where the unfinished line starts in `pending`.
    start: usize,
    /// The number of bytes of the unfinished line.
    filled: usize,
    /// The offset of the unfinished line in the input, in bytes.
    offset: u64,
    /// The number of the unfinished line.
    line: u64,
    state: ReaderState,
    read_size: ReadSize,
    /// A private non-blocking descriptor of the same pipe; `None` if `cancel` is set, if the input is no pipe, or if
    /// the pipe can't be opened again.
    nonblocking: Option<OwnedFd>,
    /// The number of waits that skip polling from now on.
    polls_to_skip: u32,
    /// The value that the last attempt to poll gave to `polls_to_skip`. It grows with each attempt that finds nothing;
    /// an attempt that finds something resets it to 0.
    skipped_polls: u32,
    pub(super) reads: u64,
}

#[derive(Debug)]
enum ReaderState {
    Open,
    /// The input ended, or an error was returned.
    Ended,
    /// The error to return next. It occurred after the last batch.
    Failed(Error),
}

/// The result of a read.
#[derive(Debug)]
pub(super) enum Next {
    Batch(Extent),
    /// There is no whole line yet, or reading a line would have to wait.
    Idle,
    End,
}

/// What to do if there is no whole line to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WhenIdle {
    Wait,
    Return,
}

/// Where a batch is in the buffer and in the input.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    pub(super) start: usize,
    pub(super) len: usize,
    pub(super) offset: u64,
    pub(super) first_line: u64,
}

impl<'fd> Reader<'fd> {
    pub(super) fn new(input: BorrowedFd<'fd>, cancel: Option<BorrowedFd<'fd>>, plan: ReadPlan) -> Result<Self, Error> {
        let cannot_read = |errno: Errno| Error::Read(errno.into());
        let kind = FileType::from_raw_mode(rustix::fs::fstat(input).map_err(cannot_read)?.st_mode);
        let flags = fcntl_getfl(input).map_err(cannot_read)?;
        if flags.contains(OFlags::WRONLY) {
            // `input` is the write end of a pipe. It could be opened again for reading, and that read would then wait
            // forever.
            return Err(cannot_read(Errno::BADF));
        }
        // A descriptor without a file type, such as an eventfd or epoll descriptor, may poll as readable and yet refuse
        // a read, or poll as unreadable and accept one. Only a read shows whether there is input. Files never make a
        // reader wait.
        let cancel = cancel.filter(|_| !matches!(kind, FileType::RegularFile | FileType::Unknown));
        if kind == FileType::Socket && cancel.is_some() {
            // Polling an unconnected socket would wait forever; a read reports the error.
            match recv(input, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
                Ok(_) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(cannot_read(error)),
            }
        }
        let messages =
            kind == FileType::Socket && sockopt::socket_type(input).map_err(cannot_read)? != SocketType::STREAM;
        let pending = Region::new(plan.block).map_err(Error::Memory)?;
        let is_pipe = kind == FileType::Fifo;
        // A pipe may hold packets (O_DIRECT) of up to a page, and a read discards the bytes of a packet that don't fit.
        let block = if is_pipe { plan.block.max(page_size()) } else { plan.block };
        Ok(Self {
            input,
            cancel,
            waits: !flags.contains(OFlags::NONBLOCK),
            kind,
            messages,
            plan,
            pending,
            start: 0,
            filled: 0,
            offset: plan.origin,
            line: plan.first_line,
            state: ReaderState::Open,
            read_size: ReadSize::new(block, is_pipe && !plan.fixed),
            nonblocking: (is_pipe && cancel.is_none()).then(|| reopen(input, OFlags::NONBLOCK)).flatten(),
            polls_to_skip: 0,
            skipped_polls: 0,
            reads: 0,
        })
    }

    /// The plan that this reader follows.
    pub(super) fn plan(&self) -> ReadPlan {
        self.plan
    }

    /// Whether a read never waits for another process.
    pub(super) fn never_waits(&self) -> bool {
        self.kind == FileType::RegularFile
    }

    /// Continues after `bytes` bytes of whole lines that other threads have read with `reads` calls.
    pub(super) fn continue_after(&mut self, bytes: u64, reads: u64) {
        self.offset += bytes;
        self.reads += reads;
    }

    /// The number of bytes in all batches so far.
    pub(super) fn taken(&self) -> u64 {
        self.offset - self.plan.origin
    }

    /// Puts the next lines into `buffer`, replacing its content. After an error there are none.
    pub(super) fn next(&mut self, buffer: &mut Region, when_idle: WhenIdle) -> Result<Next, Error> {
        let next = self.next_lines(buffer, when_idle);
        if next.is_err() {
            (self.state, self.filled) = (ReaderState::Ended, 0);
        }
        next
    }

    fn next_lines(&mut self, buffer: &mut Region, when_idle: WhenIdle) -> Result<Next, Error> {
        let start = self.take_pending(buffer)?;
        loop {
            if !matches!(self.state, ReaderState::Open) {
                return match mem::replace(&mut self.state, ReaderState::Ended) {
                    ReaderState::Failed(error) => Err(error),
                    _ if self.filled == 0 => Ok(Next::End),
                    _ => {
                        let last = mem::take(&mut self.filled);
                        Ok(Next::Batch(self.pass_lines(start, last, 1)))
                    }
                };
            }
            let old = start + self.filled;
            let at_once = when_idle == WhenIdle::Return && !self.never_waits();
            if at_once && self.nonblocking.is_none() {
                return Ok(self.leave_pending(buffer, start));
            }
            let message = if self.messages { self.message()? } else { None };
            let left = self.plan.end.saturating_sub(self.offset + self.filled as u64);
            let wanted =
                self.read_size.bytes.max(message.unwrap_or(0)).min(usize::try_from(left).unwrap_or(usize::MAX));
            buffer.grow(old + wanted).map_err(Error::Memory)?;
            let space = &mut buffer[old..old + wanted];
            let read = match (self.messages, message) {
                (true, None) => 0,
                _ if at_once => match self.try_read(space) {
                    Some(read) => read,
                    None => return Ok(self.leave_pending(buffer, start)),
                },
                _ => match self.read_without_sleeping(space) {
                    Some(read) => read,
                    None => self.read(space)?,
                },
            };
            if read == 0 {
                self.state = ReaderState::Ended;
                continue;
            }
            self.read_size.learn(read, Instant::now);
            self.filled += read;
            let bytes = &buffer[start..old + read];
            let Some(last) = memchr::memrchr(self.plan.terminator, &buffer[old..old + read]) else {
                if self.filled > self.plan.max_line {
                    return Err(self.too_long(0));
                }
                if when_idle == WhenIdle::Return {
                    return Ok(self.leave_pending(buffer, start));
                }
                continue;
            };
            let mut whole = old + last + 1 - start;
            if let Some(line) = self.first_too_long(bytes) {
                let error = self.too_long(line);
                if line == 0 {
                    return Err(error);
                }
                self.state = ReaderState::Failed(error);
                whole = line;
            }
            let lines = if self.plan.numbered {
                memchr::memchr_iter(self.plan.terminator, &bytes[..whole]).count() as u64
            } else {
                0
            };
            let rest = &bytes[whole..];
            (self.start, self.filled) = (0, 0);
            match self.pending.grow(rest.len()) {
                Ok(()) => {
                    self.pending[..rest.len()].copy_from_slice(rest);
                    self.filled = rest.len();
                }
                Err(error) => self.state = ReaderState::Failed(Error::Memory(error)),
            }
            return Ok(Next::Batch(self.pass_lines(start, whole, lines)));
        }
    }

    /// Puts the start of an unfinished line into `buffer`, and returns where it starts. A copied start ends on a page
    /// boundary, because the next read continues there. Reading 8 KiB from a pipe took 0.5 µs if the buffer had the
    /// same offset in a page as the pipe's data, 0.6 µs at most other offsets, and 2.8 µs if the offsets differed by 1
    /// to 15 bytes. With such a difference each load seems to depend on the last store.
    fn take_pending(&mut self, buffer: &mut Region) -> Result<usize, Error> {
        if self.filled > WORTH_SWAPPING {
            mem::swap(&mut self.pending, buffer);
            return Ok(self.start);
        }
        let end = self.filled.next_multiple_of(page_size());
        let start = end - self.filled;
        buffer.grow(end).map_err(Error::Memory)?;
        buffer[start..end].copy_from_slice(&self.pending[self.start..self.start + self.filled]);
        Ok(start)
    }

    /// Keeps the start of an unfinished line, which is in `buffer`, for the next call.
    fn leave_pending(&mut self, buffer: &mut Region, start: usize) -> Next {
        mem::swap(&mut self.pending, buffer);
        self.start = start;
        Next::Idle
    }

    fn pass_lines(&mut self, start: usize, len: usize, lines: u64) -> Extent {
        let extent = Extent { start, len, offset: self.offset, first_line: self.line };
        self.offset += len as u64;
        if self.plan.numbered {
            self.line = self.line.wrapping_add(lines);
        }
        extent
    }

    fn too_long(&self, start: usize) -> Error {
        Error::LineTooLong { offset: self.offset + start as u64, limit: self.plan.max_line }
    }

    /// Returns where the first overlong line of `bytes` starts, whether that line is finished or not; `None` if no line
    /// is too long. Makes about one search per `max_line` bytes.
    fn first_too_long(&self, bytes: &[u8]) -> Option<usize> {
        let mut start = 0;
        while bytes.len() - start > self.plan.max_line {
            // If the line that starts here has an allowed length, its terminator is in this window. Continuing after
            // the window's last terminator skips the most lines.
            let window = &bytes[start..=start + self.plan.max_line];
            match memchr::memrchr(self.plan.terminator, window) {
                Some(end) => start += end + 1,
                None => return Some(start),
            }
        }
        None
    }

    /// Reads without waiting. Returns `None` if there is nothing to read or the call fails. A later blocking read
    /// reports the error.
    fn try_read(&mut self, space: &mut [u8]) -> Option<usize> {
        let nonblocking = self.nonblocking.as_ref()?;
        let read = fault::point().and_then(|()| rustix::io::read(nonblocking, space)).ok()?;
        self.reads += 1;
        Some(read)
    }

    /// Reads bytes that are available or arrive shortly, without sleeping. Otherwise, waking the reader at each write
    /// might cost the writer more time than the reader needs for the bytes. After attempts that find nothing, the next
    /// 1, 3, 7, … up to 63 waits make no attempt.
    fn read_without_sleeping(&mut self, space: &mut [u8]) -> Option<usize> {
        let mut read = self.try_read(space);
        if read.is_some() || self.nonblocking.is_none() {
            return read;
        }
        if self.polls_to_skip > 0 {
            self.polls_to_skip -= 1;
            return None;
        }
        for _ in 0..MAX_POLLS {
            thread::yield_now();
            read = self.try_read(space);
            if read.is_some() {
                break;
            }
        }
        self.skipped_polls = if read.is_some() { 0 } else { (2 * self.skipped_polls + 1).min(MAX_SKIPPED_POLLS) };
        self.polls_to_skip = self.skipped_polls;
        read
    }

    fn read(&mut self, space: &mut [u8]) -> Result<usize, Error> {
        self.reads += 1;
        let read = self.call(|input| match self.messages {
            false => rustix::io::read(input, &mut *space),
            true => match recv(input, &mut *space, RecvFlags::TRUNC)? {
                // Another process has read the message whose length was peeked.
                (read, len) if len > read => Err(Errno::MSGSIZE),
                (read, _) => Ok(read),
            },
        })?;
        Ok(read.unwrap_or(0))
    }

    /// Waits for a message and returns its length; `None` at the end of the input.
    fn message(&self) -> Result<Option<usize>, Error> {
        loop {
            let peek = RecvFlags::PEEK | RecvFlags::TRUNC;
            let len = self.call(|input| recv(input, &mut [0; 1], peek).map(|(_, len)| len))?;
            if len != Some(0) || self.peer_is_gone().map_err(|errno| Error::Read(errno.into()))? {
                return Ok(len.filter(|&len| len > 0));
            }
            // Discard an empty message, because a read would report it like the end of the input.
            self.call(|input| recv(input, &mut [0; 1], RecvFlags::DONTWAIT))?;
        }
    }

    /// Whether a socket has no more messages to deliver.
    fn peer_is_gone(&self) -> rustix::io::Result<bool> {
        let mut polled = [PollFd::from_borrowed_fd(self.input, PollFlags::RDHUP)];
        poll(&mut polled, Some(&Timespec::default()))?;
        Ok(!polled[0].revents().is_empty() && rustix::io::ioctl_fionread(self.input)? == 0)
    }

    /// Repeats a call while it is interrupted or would block. Returns `None` if reading was cancelled.
    fn call<T>(&self, mut call: impl FnMut(BorrowedFd<'fd>) -> rustix::io::Result<T>) -> Result<Option<T>, Error> {
        let mut cancel = self.cancel.filter(|_| self.waits);
        loop {
            if let Some(cancel) = cancel {
                let mut ready = [
                    PollFd::from_borrowed_fd(self.input, PollFlags::IN),
                    PollFd::from_borrowed_fd(cancel, PollFlags::IN),
                ];
                match poll(&mut ready, None) {
                    Ok(_) if !ready[1].revents().is_empty() => return Ok(None),
                    Ok(_) => {}
                    Err(Errno::INTR) => continue,
                    Err(error) => return Err(Error::Read(error.into())),
                }
            }
            match fault::point().and_then(|()| call(self.input)) {
                Ok(value) => return Ok(Some(value)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if self.cancel.is_some() => cancel = self.cancel,
                Err(Errno::AGAIN) => until_ready(self.input, Direction::In).map_err(Error::Read)?,
                Err(error) => return Err(Error::Read(error.into())),
            }
        }
    }
}

/// The number of bytes to request from a pipe.
///
/// A pipe keeps two emptied pages for its writer to refill, and returns the others to the kernel (`tmp_page` in
/// fs/pipe.c). If each write is at most two pages and is read before the next write, the pipe reuses the same two
/// pages. `yes` was then 1.2 times as fast as with reads of 64 KiB. If writes are 16 KiB or more, it is faster to read
/// as much as possible. So both sizes are measured, and the faster one is used for a while.
#[derive(Debug)]
struct ReadSize {
    bytes: usize,
    largest: usize,
    /// The two sizes being measured; `None` if the size is fixed.
    trial: Option<ReadTrial>,
}

#[derive(Debug)]
struct ReadTrial {
    /// The number of reads until the next decision.
    left: u32,
    /// The bytes read since the last decision.
    read: usize,
    /// When the last decision was made; `None` before the first read. The first read isn't counted, because it may have
    /// waited.
    since: Option<Instant>,
    /// Whether the faster size is known.
    settled: bool,
    /// The speed with the largest size, in bytes per second.
    speed_of_largest: f64,
}

impl ReadSize {
    /// The number of reads that measure the largest size, and the number that measure two pages.
    const TRIAL: [u32; 2] = [64, 256];
    /// The number of reads that use the faster size before both sizes are measured again: if the largest size is
    /// faster, and if two pages are faster.
    const SETTLED: [u32; 2] = [2 << 10, 8 << 10];
    /// Two pages are used only if they are this many times as fast as the largest size. A writer of larger blocks may
    /// have been slow just while the largest size was measured.
    const GAIN: f64 = 1.1;

    /// Bytes of the two pages that a pipe keeps.
    fn kept() -> usize {
        2 * page_size()
    }

    fn new(largest: usize, decide: bool) -> Self {
        let trial = ReadTrial { left: Self::TRIAL[0], read: 0, since: None, settled: false, speed_of_largest: 0.0 };
        Self { bytes: largest, largest, trial: decide.then_some(trial) }
    }

    #[inline]
    fn learn(&mut self, read: usize, now: impl FnOnce() -> Instant) {
        let Some(trial) = &mut self.trial else { return };
        let Some(since) = trial.since else {
            trial.since = Some(now());
            return;
        };
        trial.read += read;
        trial.left -= 1;
        if trial.left > 0 {
            return;
        }
        let now = now();
        let speed = trial.read as f64 / (now - since).as_secs_f64();
        (trial.read, trial.since) = (0, Some(now));
        if trial.settled {
            trial.settled = false;
            (self.bytes, trial.left) = (self.largest, Self::TRIAL[0]);
        } else if self.bytes == self.largest {
            trial.speed_of_largest = speed;
            (self.bytes, trial.left) = (Self::kept(), Self::TRIAL[1]);
        } else {
            trial.settled = true;
            let two_pages = speed > Self::GAIN * trial.speed_of_largest;
            self.bytes = if two_pages { Self::kept() } else { self.largest };
            trial.left = Self::SETTLED[usize::from(two_pages)];
        }
    }
}

/// Opens `input` again for reading, with `flags`. Setting the flags on the descriptor itself would affect all processes
/// that share it. Returns `None` if this process may not open the file, or if /proc is missing.
pub(super) fn reopen(input: BorrowedFd<'_>, flags: OFlags) -> Option<OwnedFd> {
    let mut path = [0; 32];
    let mut rest = &mut path[..];
    write!(rest, "/proc/self/fd/{}", input.as_raw_fd()).ok()?;
    let unused = rest.len();
    let path = &path[..path.len() - unused];
    rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | flags, Mode::empty()).ok()
}

#[cfg(test)]
mod tests {
    use std::io::{Write, pipe};
    use std::os::fd::AsFd;
    use std::time::Duration;

    use super::*;

    fn plan() -> ReadPlan {
        ReadPlan {
            block: 64 << 10,
            fixed: false,
            terminator: b'\n',
            max_line: 1 << 20,
            numbered: false,
            first_line: 1,
            origin: 0,
            end: u64::MAX,
        }
    }

    /// If an unfinished line didn't count as idle, held-back output would wait for the end of the line.
    #[test]
    fn an_unfinished_line_counts_as_idle() {
        let (input, mut writer) = pipe().unwrap();
        rustix::pipe::fcntl_setpipe_size(&writer, 1 << 20).unwrap();
        let long = vec![b'x'; 300_000];
        writer.write_all(b"short\n").unwrap();
        writer.write_all(&long).unwrap();
        let mut reader = Reader::new(input.as_fd(), None, plan()).unwrap();
        let mut buffer = Region::new(1).unwrap();
        let line = |next: Next, buffer: &Region| match next {
            Next::Batch(extent) => buffer[extent.start..extent.start + extent.len].to_vec(),
            other => panic!("{other:?}"),
        };
        let next = reader.next(&mut buffer, WhenIdle::Wait).unwrap();
        assert_eq!(line(next, &buffer), b"short\n");
        for _ in 0..2 {
            assert!(matches!(reader.next(&mut buffer, WhenIdle::Return).unwrap(), Next::Idle));
        }
        let unread = rustix::io::ioctl_fionread(&input).unwrap();
        assert!((1..300_000).contains(&unread), "{unread} bytes unread");
        writer.write_all(b"\nlast").unwrap();
        drop(writer);
        let next = reader.next(&mut buffer, WhenIdle::Wait).unwrap();
        assert!(line(next, &buffer) == [&long[..], b"\n"].concat());
        let next = reader.next(&mut buffer, WhenIdle::Return).unwrap();
        assert_eq!(line(next, &buffer), b"last");
        assert!(matches!(reader.next(&mut buffer, WhenIdle::Wait).unwrap(), Next::End));
    }

    #[test]
    fn the_input_ends_after_a_line_that_is_too_long() {
        let (input, mut writer) = pipe().unwrap();
        writer.write_all(&[b'x'; 20_000]).unwrap();
        let plan = ReadPlan { block: 100, fixed: true, max_line: 5000, ..plan() };
        let mut reader = Reader::new(input.as_fd(), None, plan).unwrap();
        assert!(matches!(reader.next(&mut Region::new(1).unwrap(), WhenIdle::Wait), Err(Error::LineTooLong { .. })));
        assert!(matches!(reader.next(&mut Region::new(1).unwrap(), WhenIdle::Wait), Ok(Next::End)));
    }

    #[test]
    fn reads_request_the_fastest_size() {
        let most = 64 << 10;
        for (two_pages, all, faster) in [(1, 10, ReadSize::kept()), (1, 8, most), (2, 10, most)] {
            let mut size = ReadSize::new(most, true);
            // The writer starts late.
            let mut now = Instant::now() + Duration::from_secs(1);
            size.learn(1, || now);
            let mut asked = Vec::new();
            for _ in 0..2
                * (ReadSize::TRIAL[0] + ReadSize::TRIAL[1] + ReadSize::SETTLED[usize::from(faster == ReadSize::kept())])
            {
                asked.push(size.bytes);
                now += Duration::from_micros(if size.bytes == most { all } else { two_pages });
                size.learn(size.bytes, || now);
            }
            let share = asked.iter().filter(|&&bytes| bytes == faster).count() as f64 / asked.len() as f64;
            assert!(share > 0.85, "{faster}: {share}");
            let tried = asked.chunk_by(|a, b| a == b).count();
            assert!((4..=5).contains(&tried), "{tried}");
        }
        let mut fixed = ReadSize::new(most, false);
        (0..1000).for_each(|_| fixed.learn(1, Instant::now));
        assert_eq!(fixed.bytes, most);
    }
}
