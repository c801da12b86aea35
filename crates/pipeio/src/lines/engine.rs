//! A run's options, its result, and the run itself on one thread.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{FileType, OFlags, SeekFrom, fcntl_getfl, fstat, seek};
use rustix::io::Errno;

use super::batch::Batch;
use super::error::Error;
use super::fault;
use super::output::Output;
use super::parallel;
use super::reader::{Extent, Next, Plan, Reader, WhenIdle, open_again};
use super::region::Region;
use super::stretches::line_start;
use super::transform::{Flow, Transform};
use super::writer::{Readers, SendMethod, Writer};
use crate::pipe;

/// Runs lines through a transform.
///
/// Each read of up to [`batch`](Self::batch) bytes is one batch: its whole lines are transformed, and the start of a line
/// at its end waits for the next. What became of them is written at once, or with that of the next if a pipe has more
/// lines already. So nothing is held back when input comes slowly, and memory is bounded by a few batches a thread and
/// what the transform makes of one, plus the longest line.
#[derive(Debug, Clone)]
pub struct Engine {
    /// None for what suits the input.
    batch: Option<NonZeroUsize>,
    terminator: u8,
    max_line: usize,
    send: SendMethod,
    range: Option<Range<u64>>,
    first_line: u64,
}

impl Default for Engine {
    fn default() -> Self {
        Self::new()
    }
}

impl Engine {
    /// Lines as text files have them: ended by `\n`, of up to 1 GiB; output written, not given away; batches of 512 KiB
    /// from a file and up to 64 KiB from anything else. Where the calling thread may run on one CPU only, a pipe is made to
    /// hold 256 KiB, and its batches have as much.
    pub fn new() -> Self {
        Self { batch: None, terminator: b'\n', max_line: 1 << 30, send: SendMethod::Write, range: None, first_line: 1 }
    }

    /// Bytes to ask for with one read. Any number is right; few are slow. A pipe is asked for a page at least, for it may have
    /// packets, which lose what there is no room for.
    pub fn batch(mut self, bytes: NonZeroUsize) -> Self {
        self.batch = Some(bytes);
        self
    }

    /// The number of threads which is fastest for a transform that does little, on the CPUs this process may use: up to
    /// four for a file, one for anything else.
    ///
    /// Of a file each thread reads its own parts, until memory is as fast as it can be. Anything else is read by one thread at a
    /// time, and a pipe is written to by someone who wants the second CPU. A transform that works longer on a
    /// batch than it takes to read it is faster with more.
    ///
    /// # Errors
    /// When `input` can't be inspected (fstat).
    pub fn suggested_threads(input: impl AsFd) -> Result<NonZeroUsize, Error> {
        let cpus = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let most = NonZeroUsize::MIN.saturating_add(3);
        Ok(if is_file(input.as_fd())? { cpus.min(most) } else { NonZeroUsize::MIN })
    }

    /// The byte which ends a line.
    pub fn terminator(mut self, byte: u8) -> Self {
        self.terminator = byte;
        self
    }

    /// Bytes a line may have without its terminator. A longer one is an error.
    pub fn max_line(mut self, bytes: usize) -> Self {
        self.max_line = bytes;
        self
    }

    /// How output reaches a pipe.
    pub fn send(mut self, send: SendMethod) -> Self {
        self.send = send;
        self
    }

    /// Of a file, only the lines that start in these bytes of it, wherever its descriptor stands. Ranges that meet have
    /// together the lines of the range they make up, each once, whoever cuts where.
    pub fn range(mut self, bytes: Range<u64>) -> Self {
        self.range = Some(bytes);
        self
    }

    /// The number of the first line, for transforms that are [numbered](Transform::numbered). The greatest is followed by 0.
    pub fn first_line(mut self, number: u64) -> Self {
        self.first_line = number;
        self
    }

    /// Transforms all lines of `input` to `output` on the calling thread.
    ///
    /// # Errors
    ///
    /// See [`Error`]. That the reader of `output` went away is none, see [`Ended`], if the process ignores SIGPIPE as
    /// Rust programs do.
    pub fn run<T: Transform>(&self, input: impl AsFd, output: impl AsFd, transform: &mut T) -> Result<Report, Error> {
        let output = output.as_fd();
        through_cache(input.as_fd(), |input| {
            let span = self.span(input)?;
            refuse_same_file(input, output)?;
            let mut reader = self.reader(input, None, transform.numbered(), span)?;
            let mut writer = self.writer(output)?;
            let ended = self.drain(&mut reader, &mut writer, transform)?;
            Ok(Report::of(ended, 1, &reader, &writer))
        })
    }

    /// Takes what is left of the input.
    pub(super) fn drain<T: Transform>(
        &self,
        reader: &mut Reader<'_>,
        writer: &mut Writer<'_>,
        transform: &mut T,
    ) -> Result<Ended, Error> {
        let (mut buffer, mut store) = reader.plan().memory()?;
        let mut held = 0;
        Ok(loop {
            let when_idle = if store.is_empty() { WhenIdle::Wait } else { WhenIdle::Return };
            let extent = match reader.next(&mut buffer, when_idle) {
                Ok(Next::Batch(extent)) => extent,
                other => {
                    // Before waiting or returning, what was held back goes out.
                    let mut output = Output::new(store);
                    let readers = writer.write(&mut output)?;
                    match (other?, readers) {
                        (_, Readers::Gone) => break Ended::ReadersGone,
                        (Next::End, _) => break Ended::Input,
                        _ => store = output.into_store(),
                    }
                    continue;
                }
            };
            let mut output = Output::new(store);
            let flow = transform.batch(&self.whole(&buffer, extent), &mut output);
            let flow = output.settle(flow);
            let is_little = output.unlent().is_some_and(|bytes| bytes.len() < writer.hold());
            if matches!(flow, Ok(Flow::Continue)) && is_little && held < HOLD_READS {
                store = output.into_store();
                held += 1;
                continue;
            }
            held = 0;
            let readers = writer.write(&mut output)?;
            match (flow?, readers) {
                (_, Readers::Gone) => break Ended::ReadersGone,
                (Flow::Stop, _) => break Ended::Stopped,
                (Flow::Continue, _) => store = output.into_store(),
            }
        })
    }

    /// Transforms all lines of `input` to `output` on several threads, each with a clone of `transform` and all its
    /// batches in their order of input. One thread is the calling one.
    ///
    /// Of a regular file each thread reads parts of its own by pread(2), unless the transform is
    /// [numbered](Transform::numbered); anything else is read by one at a time. One writes at a time, and they transform
    /// at the same time. There are no queues: who has to wait for its turn to write isn't reading, so a slow reader slows
    /// the whole run.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run). What is written then is the same as with one thread.
    ///
    /// # Panics
    ///
    /// If the transform does.
    pub fn run_parallel<T>(
        &self,
        input: impl AsFd,
        output: impl AsFd,
        mut transform: T,
        threads: NonZeroUsize,
    ) -> Result<Report, Error>
    where
        T: Transform + Clone + Send,
    {
        if threads.get() == 1 {
            return self.run(input, output, &mut transform);
        }
        let output = output.as_fd();
        through_cache(input.as_fd(), |input| {
            let span = self.span(input)?;
            refuse_same_file(input, output)?;
            parallel::run(self, input, output, transform, threads, span)
        })
    }

    pub(super) fn reader<'fd>(
        &self,
        input: BorrowedFd<'fd>,
        cancel: Option<BorrowedFd<'fd>>,
        numbered: bool,
        span: Range<u64>,
    ) -> Result<Reader<'fd>, Error> {
        let block = match self.batch {
            Some(bytes) => bytes.get(),
            None if is_file(input)? => FILE_BATCH,
            None if pipe::has_one_cpu() => {
                pipe::raise_capacity(input, pipe::FOR_CACHE).map_or(BATCH, |_| ONE_CPU_BATCH)
            }
            None => BATCH,
        };
        let fixed = self.batch.is_some();
        let plan = Plan {
            block,
            fixed,
            terminator: self.terminator,
            max_line: self.max_line,
            numbered,
            first_line: self.first_line,
            origin: span.start,
            end: span.end,
        };
        Reader::new(input, cancel, plan)
    }

    /// Where the lines of the range start and end, with the descriptor put to their start; without a range, all there is.
    fn span(&self, input: BorrowedFd<'_>) -> Result<Range<u64>, Error> {
        let Some(Range { start: low, end: high }) = self.range.clone() else { return Ok(0..u64::MAX) };
        if !is_file(input)? {
            return Err(Error::RangeOfNoFile);
        }
        // Far enough beyond the end the system refuses to look. What says to have nothing, as in /proc, is read to know.
        let size = fstat(input).map_err(cannot_read)?.st_size.unsigned_abs();
        let is_beyond = |at| size > 0 && at > size;
        if is_beyond(low) {
            seek(input, SeekFrom::Start(size)).map_err(cannot_read)?;
            return Ok(size..size);
        }
        let start = line_start(input, self.terminator, low, high)?.unwrap_or(high);
        // The line that goes on beyond the range starts in it, if any does, and is read up to the longest line's length.
        let far = high.saturating_add(self.max_line as u64).saturating_add(2);
        let end = match start < high {
            true if is_beyond(high) => far,
            true => line_start(input, self.terminator, high, far)?.unwrap_or(far),
            false => start,
        };
        seek(input, SeekFrom::Start(start)).map_err(cannot_read)?;
        Ok(start..end)
    }

    pub(super) fn writer<'fd>(&self, output: BorrowedFd<'fd>) -> Result<Writer<'fd>, Error> {
        Writer::new(output, self.send)
    }

    /// The batch at the start of `buffer`.
    pub(super) fn whole<'b>(&self, buffer: &'b Region, extent: Extent) -> Batch<'b> {
        Batch::new(&buffer[extent.start..extent.start + extent.len], self.terminator)
            .at(extent.offset, extent.first_line)
    }
}

/// Whether `input` is a regular file.
fn is_file(input: BorrowedFd<'_>) -> Result<bool, Error> {
    let stat = fault::point().and_then(|()| fstat(input)).map_err(cannot_read)?;
    Ok(FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
}

fn cannot_read(errno: Errno) -> Error {
    Error::Read(errno.into())
}

/// Refuses a file as output of itself unless nothing of it is left to read: lines may become longer, so it would be
/// overwritten before it is read, or read what was written, for ever.
fn refuse_same_file(input: BorrowedFd<'_>, output: BorrowedFd<'_>) -> Result<(), Error> {
    if !is_file(input)? {
        return Ok(());
    }
    let (from, to) = (fstat(input).map_err(cannot_read)?, fstat(output).map_err(|errno| Error::Write(errno.into()))?);
    let is_same = (from.st_dev, from.st_ino) == (to.st_dev, to.st_ino);
    if is_same && seek(input, SeekFrom::Current(0)).map_err(cannot_read)? < from.st_size.cast_unsigned() {
        return Err(Error::SameFile);
    }
    Ok(())
}

/// Calls `run` with `input`, or, where that reads past the page cache (O_DIRECT), with the same file read through it: a read
/// past it starts and ends on blocks of the disk, and lines don't.
fn through_cache(
    input: BorrowedFd<'_>,
    run: impl FnOnce(BorrowedFd<'_>) -> Result<Report, Error>,
) -> Result<Report, Error> {
    if !fcntl_getfl(input).map_err(cannot_read)?.contains(OFlags::DIRECT) || !is_file(input)? {
        return run(input);
    }
    let Some(cached) = open_again(input, OFlags::empty()) else { return run(input) };
    let start = seek(input, SeekFrom::Current(0)).map_err(cannot_read)?;
    seek(&cached, SeekFrom::Start(start)).map_err(cannot_read)?;
    let report = run(cached.as_fd());
    let end = seek(&cached, SeekFrom::Current(0)).map_err(cannot_read)?;
    seek(input, SeekFrom::Start(end)).map_err(cannot_read)?;
    report
}

/// Bytes of a batch of a file. Of a file in memory, 285-byte lines to /dev/null, on a core with 1 MiB of second-level
/// cache: 64 KiB took 1.05 to 1.2 times the CPU time of 512 KiB.
const FILE_BATCH: usize = 512 << 10;

/// Bytes of a batch of anything else: what a pipe holds by default. A larger read keeps the pipe's writer waiting for
/// longer, who then fills pages that have left the caches.
const BATCH: usize = 64 << 10;

/// Bytes of a batch of a pipe where there is one CPU, and what the pipe is made to hold: its writer, which runs only while this
/// process doesn't, is then woken less often. With lines of 8 bytes that took 0.8 of the time, with 285 bytes 0.9.
const ONE_CPU_BATCH: usize = pipe::FOR_CACHE;

/// Reads in a row whose output may be held back: of lines that come one by one as fast as they are read, each is written
/// after some 0.1 ms.
const HOLD_READS: u32 = 64;

/// How a run that didn't fail ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// With its input.
    Input,
    /// The transform said [`Flow::Stop`].
    Stopped,
    /// Everyone who read the output went away, as `head` does.
    ReadersGone,
}

/// What a run did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// How it ended.
    pub ended: Ended,
    /// Threads that worked: as many as there were to have, up to what was asked for.
    pub threads: usize,
    /// Bytes of all lines taken from the input. After an early end that may be more than was transformed.
    pub bytes_in: u64,
    /// Bytes written or given away.
    pub bytes_out: u64,
    /// Of these, bytes given away without a copy.
    pub given_away: u64,
    /// Calls of read(2), without those that only looked and found nothing.
    pub reads: u64,
    /// Calls of writev(2) and vmsplice(2).
    pub writes: u64,
}

impl Report {
    pub(super) fn of(ended: Ended, threads: usize, reader: &Reader<'_>, writer: &Writer<'_>) -> Self {
        Self {
            ended,
            threads,
            bytes_in: reader.taken(),
            bytes_out: writer.bytes,
            given_away: writer.given_away,
            reads: reader.reads,
            writes: writer.writes,
        }
    }
}
