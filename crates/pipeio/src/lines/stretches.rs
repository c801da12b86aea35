//! A regular file read by several threads at once: each takes the next stretch and what of its last line lies beyond it,
//! and leaves the line that began before it to the thread before.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FileType, SeekFrom, fstat, seek};
use rustix::io::{Errno, pread};

use super::error::Error;
use super::reader::{Extent, Plan};
use super::region::Region;

/// Bytes asked for at first to find the end of a line; then twice as many as before.
const MORE: usize = 16 << 10;

/// The part of a file that is read so: from where its descriptor stands to the size it has now, or to the start of a last
/// line without an end. What comes later is read as any input is.
#[derive(Debug)]
pub(super) struct Stretches<'fd> {
    input: BorrowedFd<'fd>,
    plan: Plan,
    start: u64,
    end: u64,
    /// The stretch that nobody has taken yet.
    next: AtomicU64,
    /// Where the last whole line ends, as far as is known.
    tail: AtomicU64,
    reads: AtomicU64,
}

impl<'fd> Stretches<'fd> {
    /// None if `input` is not a file, or too little of it, or if lines have to be looked at in their order.
    pub(super) fn of(input: BorrowedFd<'fd>, plan: Plan) -> Option<Self> {
        let stat = fstat(input).ok()?;
        let start = seek(input, SeekFrom::Current(0)).ok()?;
        let end = u64::try_from(stat.st_size).ok()?;
        let worthwhile = end.checked_sub(start)? >= 2 * plan.block as u64 && plan.max_line >= plan.block;
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

    /// Takes the next stretch: its number, and the lines that begin in it; no line may begin there. None behind the last.
    pub(super) fn take(&self, buffer: &mut Region) -> (u64, Result<Option<Extent>, Error>) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let begin = self.start.saturating_add(number.saturating_mul(self.plan.block as u64));
        if begin >= self.end {
            return (number, Ok(None));
        }
        (number, self.lines(begin, buffer).map(Some))
    }

    /// The lines that begin in the stretch at `begin`.
    fn lines(&self, begin: u64, buffer: &mut Region) -> Result<Extent, Error> {
        let terminator = self.plan.terminator;
        // With the byte before it, which tells whether a line begins with it.
        let before = usize::from(begin > self.start);
        let from = begin - before as u64;
        let wanted = usize::try_from(self.end - from).unwrap_or(usize::MAX).min(self.plan.block + before);
        buffer.grow(wanted).map_err(Error::Memory)?;
        let mut filled = self.read(from, &mut buffer[..wanted])?;
        // The last byte's end of line is the next stretch's affair, unless there is none.
        let inside = if before == 1 { filled.saturating_sub(1) } else { 0 };
        let first = match before {
            0 => Some(0),
            _ => memchr::memchr(terminator, &buffer[..inside]).map(|end| end + 1),
        };
        let extent = |start: usize, end: usize| Extent {
            start,
            len: end - start,
            offset: from + start as u64 - self.start,
            first_line: 1,
        };
        let Some(first) = first.filter(|_| filled > 0) else { return Ok(extent(0, 0)) };
        let last_start = memchr::memrchr(terminator, &buffer[first..filled]).map_or(first, |end| first + end + 1);
        if last_start == filled {
            return Ok(extent(first, filled));
        }
        let mut more = MORE;
        loop {
            // Bytes of a line that may have one more, its end.
            if filled - last_start > self.plan.max_line {
                return self.too_long(from, first, last_start, &extent);
            }
            let at = from + filled as u64;
            let wanted = usize::try_from(self.end.saturating_sub(at)).unwrap_or(usize::MAX).min(more);
            buffer.grow(filled + wanted).map_err(Error::Memory)?;
            let read = self.read(at, &mut buffer[filled..filled + wanted])?;
            if read == 0 {
                self.tail.fetch_min(from + last_start as u64, Ordering::Relaxed);
                return Ok(extent(first, last_start));
            }
            if let Some(end) = memchr::memchr(terminator, &buffer[filled..filled + read]) {
                let end = filled + end;
                if end - last_start > self.plan.max_line {
                    return self.too_long(from, first, last_start, &extent);
                }
                return Ok(extent(first, end + 1));
            }
            filled += read;
            more = more.saturating_mul(2);
        }
    }

    /// The lines before one that is too long are still good: it is found again, and refused, by who reads what is left.
    fn too_long(
        &self,
        from: u64,
        first: usize,
        last_start: usize,
        extent: &dyn Fn(usize, usize) -> Extent,
    ) -> Result<Extent, Error> {
        self.tail.fetch_min(from + last_start as u64, Ordering::Relaxed);
        Ok(extent(first, last_start))
    }

    /// Fills `bytes` from `at` as far as the file goes.
    fn read(&self, at: u64, bytes: &mut [u8]) -> Result<usize, Error> {
        let mut filled = 0;
        while filled < bytes.len() {
            self.reads.fetch_add(1, Ordering::Relaxed);
            match pread(self.input, &mut bytes[filled..], at + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(Errno::INTR) => {}
                Err(error) => return Err(Error::Read(error.into())),
            }
        }
        Ok(filled)
    }

    /// Whether the stretch `number` begins behind the last whole line.
    pub(super) fn is_behind(&self, number: u64) -> bool {
        self.start.saturating_add(number.saturating_mul(self.plan.block as u64)) >= self.tail.load(Ordering::Relaxed)
    }

    /// Puts the descriptor where the last whole line ends; returns the bytes up to there, and the calls made.
    pub(super) fn leave(&self) -> Result<(u64, u64), Error> {
        let taken = self.next.load(Ordering::Relaxed).saturating_mul(self.plan.block as u64);
        let tail = self.tail.load(Ordering::Relaxed).min(self.start.saturating_add(taken));
        seek(self.input, SeekFrom::Start(tail)).map_err(|error| Error::Read(error.into()))?;
        Ok((tail - self.start, self.reads.load(Ordering::Relaxed)))
    }
}
