//! The options of a run, and runs on one thread.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{FileType, OFlags, SeekFrom, fcntl_getfl, fstat, seek};
use rustix::io::Errno;

use super::batch::Batch;
use super::chunks::line_start;
use super::error::Error;
use super::fate::Flow;
use super::fault;
use super::output::Output;
use super::reader::{Extent, Next, ReadPlan, Reader, WhenIdle, reopen};
use super::region::Region;
use super::report::{Ended, LinesReport};
use super::transform::Transform;
use super::writer::{OutputMethod, Readers, Writer};
use crate::pipe;

/// Passes lines through a transform.
///
/// Each read of up to [`batch`](Self::batch) bytes makes one batch. Its whole lines are transformed, and an unfinished
/// line at its end is kept for the next batch. The output of a batch is written at once, or together with the next
/// output if the input is a pipe that already holds more lines. So output isn't delayed when input is slow. Memory is
/// bounded by a few batches per thread, the output of one batch, and the longest line.
#[derive(Debug, Clone)]
pub struct Engine {
    /// Maximum size of a batch in bytes; `None` for the default of the input's type.
    batch: Option<NonZeroUsize>,
    terminator: u8,
    max_line: usize,
    send: OutputMethod,
    range: Option<Range<u64>>,
    first_line: u64,
}

impl Default for Engine {
    fn default() -> Self {
        Self::new()
    }
}

impl Engine {
    /// Creates an engine with default options. Lines end with `\n` and have at most 1 GiB. Output is written, not given
    /// away. A batch has at most 512 KiB from a file and 64 KiB from any other input. If the calling thread may run on
    /// one CPU only, an input pipe is enlarged to 256 KiB, and its batches have at most that size.
    pub fn new() -> Self {
        Self {
            batch: None,
            terminator: b'\n',
            max_line: 1 << 30,
            send: OutputMethod::Write,
            range: None,
            first_line: 1,
        }
    }

    /// Sets the number of bytes requested in one read. Any number works, but small numbers are slow. From a pipe, at
    /// least a page is requested, because the pipe may hold packets: a read discards the bytes of a packet that don't
    /// fit.
    pub fn batch(mut self, bytes: NonZeroUsize) -> Self {
        self.batch = Some(bytes);
        self
    }

    /// The fastest number of threads for a transform that does little work. For a file that is the number of CPUs that
    /// this process may use, up to four. For any other input it is one.
    ///
    /// Each thread reads its own chunks of a file, until memory bandwidth is used up. Any other input is read by one
    /// thread at a time, and a pipe's writer needs a second CPU. More threads than suggested are faster if transforming
    /// a batch takes longer than reading it.
    ///
    /// # Errors
    /// When `input` can't be inspected (fstat).
    pub fn suggested_threads(input: impl AsFd) -> Result<NonZeroUsize, Error> {
        let cpus = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let most = NonZeroUsize::MIN.saturating_add(3);
        Ok(if is_file(input.as_fd())? { cpus.min(most) } else { NonZeroUsize::MIN })
    }

    /// Sets the byte that ends a line.
    pub fn terminator(mut self, byte: u8) -> Self {
        self.terminator = byte;
        self
    }

    /// Sets the maximum length of a line in bytes, without its terminator. A longer line is [an
    /// error](Error::LineTooLong).
    pub fn max_line(mut self, bytes: usize) -> Self {
        self.max_line = bytes;
        self
    }

    /// Sets how output reaches a pipe.
    pub fn send(mut self, send: OutputMethod) -> Self {
        self.send = send;
        self
    }

    /// Reads only the lines of a file that start in this range of bytes, whatever the descriptor's position. If ranges
    /// are adjacent, each line belongs to exactly one of them, even if it crosses a border. For any other input a range
    /// is [an error](Error::RangeOfNoFile).
    pub fn range(mut self, bytes: Range<u64>) -> Self {
        self.range = Some(bytes);
        self
    }

    /// Sets the number of the first line, for transforms that are [numbered](Transform::numbered). `u64::MAX` is
    /// followed by 0.
    pub fn first_line(mut self, number: u64) -> Self {
        self.first_line = number;
        self
    }

    /// Transforms all lines of `input` to `output` on the calling thread.
    ///
    /// # Errors
    ///
    /// See [`Error`]. It is not an error if the reader of `output` leaves (see [`Ended`]). For that the process must
    /// ignore SIGPIPE, as Rust programs do by default.
    pub fn run<T: Transform>(
        &self,
        input: impl AsFd,
        output: impl AsFd,
        transform: &mut T,
    ) -> Result<LinesReport, Error> {
        let output = output.as_fd();
        through_cache(input.as_fd(), |input| {
            let span = self.span(input)?;
            refuse_same_file(input, output)?;
            let mut reader = self.reader(input, None, transform.numbered(), span)?;
            let mut writer = self.writer(output)?;
            let ended = self.drain(&mut reader, &mut writer, transform)?;
            Ok(LinesReport::of(ended, 1, &reader, &writer))
        })
    }

    /// Processes the rest of the input.
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
                    // Write held-back output before waiting or returning.
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
            let flow = transform.batch(&self.batch_at(&buffer, extent), &mut output);
            let flow = output.check_memory(flow);
            let is_little = output.as_slice().is_some_and(|bytes| bytes.len() < writer.hold_limit());
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
                pipe::raise_capacity(input, pipe::CACHE_SIZED).map_or(BATCH, |_| ONE_CPU_BATCH)
            }
            None => BATCH,
        };
        let fixed = self.batch.is_some();
        let plan = ReadPlan {
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

    /// Positions the descriptor at the first line of the range, and returns where the range's lines start and end.
    /// Without a range, returns the whole input.
    pub(super) fn span(&self, input: BorrowedFd<'_>) -> Result<Range<u64>, Error> {
        let Some(Range { start: low, end: high }) = self.range.clone() else { return Ok(0..u64::MAX) };
        if !is_file(input)? {
            return Err(Error::RangeOfNoFile);
        }
        // Seeks and reads far beyond the end of a file fail. The end of a file that reports size 0, such as a /proc
        // file, is found only by reading.
        let size = fstat(input).map_err(cannot_read)?.st_size.unsigned_abs();
        let is_beyond = |at| size > 0 && at > size;
        if is_beyond(low) {
            seek(input, SeekFrom::Start(size)).map_err(cannot_read)?;
            return Ok(size..size);
        }
        let start = line_start(input, self.terminator, low, high)?.unwrap_or(high);
        // The last line of the range may end beyond the range, so reading continues for up to the longest line's
        // length.
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

    /// The batch at `extent` in `buffer`.
    pub(super) fn batch_at<'b>(&self, buffer: &'b Region, extent: Extent) -> Batch<'b> {
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

/// Refuses a file that is both input and output if some of it is left to read. If lines became longer, the output would
/// overwrite unread lines, or the run would read its own output forever.
pub(super) fn refuse_same_file(input: BorrowedFd<'_>, output: BorrowedFd<'_>) -> Result<(), Error> {
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

/// Calls `run` with `input`. If `input` bypasses the page cache (O_DIRECT), calls `run` with the same file opened
/// without that flag: direct reads must start and end at the borders of disk blocks, and lines don't.
pub(super) fn through_cache(
    input: BorrowedFd<'_>,
    run: impl FnOnce(BorrowedFd<'_>) -> Result<LinesReport, Error>,
) -> Result<LinesReport, Error> {
    if !fcntl_getfl(input).map_err(cannot_read)?.contains(OFlags::DIRECT) || !is_file(input)? {
        return run(input);
    }
    let Some(cached) = reopen(input, OFlags::empty()) else { return run(input) };
    let start = seek(input, SeekFrom::Current(0)).map_err(cannot_read)?;
    seek(&cached, SeekFrom::Start(start)).map_err(cannot_read)?;
    let report = run(cached.as_fd());
    let end = seek(&cached, SeekFrom::Current(0)).map_err(cannot_read)?;
    seek(input, SeekFrom::Start(end)).map_err(cannot_read)?;
    report
}

/// Bytes of a batch from a file. Copying lines of 285 bytes from a cached file to /dev/null took 1.05 to 1.2 times as
/// much CPU time with 64 KiB as with 512 KiB, on a core with 1 MiB of second-level cache.
const FILE_BATCH: usize = 512 << 10;

/// Bytes of a batch from any other input: a pipe's default capacity. With larger reads the pipe's writer waits longer
/// and fills pages that are no longer in the caches.
const BATCH: usize = 64 << 10;

/// Bytes of a batch from a pipe on one CPU, and the pipe's capacity. On one CPU the pipe's writer runs only while this
/// process sleeps, and a larger pipe means fewer sleeps. Compared with 64 KiB, runs take 0.8 times as long with lines
/// of 8 bytes, and 0.9 times as long with 285 bytes.
const ONE_CPU_BATCH: usize = pipe::CACHE_SIZED;

/// The maximum number of consecutive reads whose output is held back. If single lines arrive as fast as they are read,
/// this delays each line by about 0.1 ms.
const HOLD_READS: u32 = 64;
