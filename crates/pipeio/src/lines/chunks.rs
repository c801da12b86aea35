//! A regular file that several threads read concurrently. Each thread takes the next chunk of the file. It skips a
//! line that began in an earlier chunk, and reads the last line of its chunk to the end, even beyond the chunk.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FileType, SeekFrom, fstat, seek};
use rustix::io::{Errno, pread};
use rustix::param::page_size;

use super::error::Error;
use super::fault;
use super::reader::{Extent, Next, ReadPlan};
use super::region::Region;

/// Bytes of the first read that searches for the end of a line. Each further read is twice as large.
const FIRST_SEARCH: usize = 16 << 10;

/// The part of a file that the threads share: from the descriptor's position to the current end of the file, or to the
/// start of a last line without a terminator. Bytes appended later are read like any other input.
#[derive(Debug)]
pub(super) struct Chunks<'fd> {
    input: BorrowedFd<'fd>,
    plan: ReadPlan,
    start: u64,
    end: u64,
    /// The next chunk to take.
    next: AtomicU64,
    /// The offset in the file at which the last whole line ends, as far as known.
    tail: AtomicU64,
    reads: AtomicU64,
}

impl<'fd> Chunks<'fd> {
    /// Returns `None` if `input` is not a regular file or has few bytes, if its lines must be read in order, or if a
    /// chunk would be longer than the longest allowed line.
    pub(super) fn of(input: BorrowedFd<'fd>, plan: ReadPlan) -> Option<Self> {
        let stat = fstat(input).ok()?;
        let start = seek(input, SeekFrom::Current(0)).ok()?;
        let end = u64::try_from(stat.st_size).ok()?.min(plan.end);
        let worthwhile = end.checked_sub(start)? / 2 >= plan.block as u64 && plan.max_line >= plan.block;
        (FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && worthwhile && !plan.numbered).then(|| Self {
            input,
            plan,
            start,
            end,
            next: AtomicU64::new(0),
            tail: AtomicU64::new(end),
            reads: AtomicU64::new(0),
        })
    }

    /// Takes the next chunk. Returns its number and the lines that begin in it, which may be none.
    pub(super) fn take(&self, buffer: &mut Region) -> (u64, Result<Next, Error>) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let begin = self.start.saturating_add(number.saturating_mul(self.plan.block as u64));
        if begin >= self.end {
            return (number, Ok(Next::End));
        }
        (number, self.lines(begin, buffer).map(Next::Batch))
    }

    /// The lines that begin in the chunk at `begin`.
    fn lines(&self, begin: u64, buffer: &mut Region) -> Result<Extent, Error> {
        let terminator = self.plan.terminator;
        // Each byte keeps its page offset from the file. So a page is reserved before the chunk, and only the byte just
        // before the chunk is read into it. Reserving only that byte made copying 2.5 times as slow: each load seemed to
        // depend on the last store.
        let page = page_size();
        let lead = page + (begin % page as u64) as usize;
        let wanted = usize::try_from(self.end - begin).unwrap_or(usize::MAX).min(self.plan.block);
        buffer.grow(lead + wanted).map_err(Error::Memory)?;
        let mut filled = lead + self.read(begin, &mut buffer[lead..lead + wanted])?;
        let extent = |start: usize, end: usize| Extent {
            start,
            len: end - start,
            offset: begin - self.start + self.plan.origin + (start - lead) as u64,
            first_line: 1,
        };
        let first = match begin > self.start && self.read(begin - 1, &mut buffer[lead - 1..lead])? > 0 {
            false => Some(lead),
            // A line that begins after the last byte belongs to the next chunk.
            true => memchr::memchr(terminator, &buffer[lead - 1..filled - 1]).map(|end| lead + end),
        };
        let Some(first) = first.filter(|_| filled > lead) else { return Ok(extent(lead, lead)) };
        let last_start = memchr::memrchr(terminator, &buffer[first..filled]).map_or(first, |end| first + end + 1);
        // Omits a last line that is too long or has no terminator. The thread that reads the rest of the file handles
        // that line.
        let leave_the_last = || {
            self.tail.fetch_min(begin + (last_start - lead) as u64, Ordering::Relaxed);
            Ok(extent(first, last_start))
        };
        let mut more = FIRST_SEARCH;
        let mut end = last_start;
        while end == last_start && last_start < filled {
            // A line of exactly the maximum length may still be followed by its terminator.
            if filled - last_start > self.plan.max_line {
                return leave_the_last();
            }
            let at = begin + (filled - lead) as u64;
            let wanted = usize::try_from(self.end.saturating_sub(at)).unwrap_or(usize::MAX).min(more);
            buffer.grow(filled + wanted).map_err(Error::Memory)?;
            let read = self.read(at, &mut buffer[filled..filled + wanted])?;
            match memchr::memchr(terminator, &buffer[filled..filled + read]) {
                Some(found) if filled + found - last_start > self.plan.max_line => return leave_the_last(),
                Some(found) => end = filled + found + 1,
                None if read == 0 => return leave_the_last(),
                None => {}
            }
            filled += read;
            more = more.saturating_mul(2);
        }
        Ok(extent(first, end))
    }

    /// Fills `bytes` from the file at `at`, up to the end of the file. Returns the number of bytes.
    fn read(&self, at: u64, bytes: &mut [u8]) -> Result<usize, Error> {
        let (filled, reads) = read(self.input, at, bytes)?;
        self.reads.fetch_add(reads, Ordering::Relaxed);
        Ok(filled)
    }

    /// Whether chunk `number` begins after the last whole line.
    pub(super) fn is_behind(&self, number: u64) -> bool {
        self.start.saturating_add(number.saturating_mul(self.plan.block as u64)) >= self.tail.load(Ordering::Relaxed)
    }

    /// Sets the descriptor's position to the end of the last whole line. Returns the number of bytes up to there, and
    /// the number of calls made.
    pub(super) fn leave_position(&self) -> Result<(u64, u64), Error> {
        let taken = self.next.load(Ordering::Relaxed).saturating_mul(self.plan.block as u64);
        let tail = self.tail.load(Ordering::Relaxed).min(self.start.saturating_add(taken));
        fault::point()
            .and_then(|()| seek(self.input, SeekFrom::Start(tail)))
            .map_err(|error| Error::Read(error.into()))?;
        Ok((tail - self.start, self.reads.load(Ordering::Relaxed)))
    }
}

/// Fills `bytes` from the file at `at`, up to the end of the file. Returns the number of bytes, and the number of calls
/// made.
fn read(input: BorrowedFd<'_>, at: u64, bytes: &mut [u8]) -> Result<(usize, u64), Error> {
    let (mut filled, mut reads) = (0, 0);
    while filled < bytes.len() {
        reads += 1;
        match fault::point().and_then(|()| pread(input, &mut bytes[filled..], at + filled as u64)) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(Errno::INTR) => {}
            Err(error) => return Err(Error::Read(error.into())),
        }
    }
    Ok((filled, reads))
}

/// Returns the offset of the first line that starts at `from` or later, or the end of the file if no line does. Returns
/// `None` if that offset is `limit` or more.
pub(super) fn line_start(input: BorrowedFd<'_>, terminator: u8, from: u64, limit: u64) -> Result<Option<u64>, Error> {
    let mut buffer = [0; FIRST_SEARCH];
    let mut at = from;
    // A line starts at `at` if the previous byte is a terminator, or if `at` is the start of the file.
    while at < limit {
        let Some(before) = at.checked_sub(1) else { return Ok(Some(at)) };
        let wanted = buffer.len().min(usize::try_from(limit - at).unwrap_or(usize::MAX));
        let (filled, _) = read(input, before, &mut buffer[..wanted])?;
        if let Some(end) = memchr::memchr(terminator, &buffer[..filled]) {
            return Ok(Some(at + end as u64));
        }
        if filled < wanted {
            return Ok(Some(before + filled as u64));
        }
        at += filled as u64;
    }
    Ok(None)
}
