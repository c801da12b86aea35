//! A transform's output: bytes that it appends, and bytes of the batch that it lends without a copy.

use std::collections::TryReserveError;
use std::io::{self, IoSlice};
use std::marker::PhantomData;

use super::error::Error;
use super::fate::Flow;
use super::fault;
use super::region::Region;

/// Slices of the batch of at least this many bytes are lent, because lending them costs less than copying them.
const WORTH_LENDING: usize = 32 << 10;

/// Where output starts in its memory, in bytes. Batches start on a page boundary, and a copy between equal offsets
/// within a page takes up to twice as long. The reason is that processors compare the lowest twelve bits of addresses
/// to decide whether a load must wait for a store, whatever the page size.
const STAGGER: usize = 2 << 10;

/// A transform's output for a batch, in order.
///
/// The output is written when the batch is done, so all of it is in memory. A transform whose output is much larger
/// than its input needs memory accordingly.
#[derive(Debug)]
pub struct Output<'b> {
    store: Store,
    /// Where this batch's output begins, after the held-back output of earlier batches.
    begin: usize,
    lent: Vec<LentBytes<'b>>,
    /// Whether memory was lacking for part of the output.
    out_of_memory: bool,
    /// How many bytes of the slice that `spare` last returned have not been appended yet.
    spare: usize,
}

/// Lent bytes of the batch, which follow the first `after` bytes of the store.
#[derive(Debug)]
struct LentBytes<'b> {
    after: usize,
    bytes: &'b [u8],
}

/// Memory for output, kept from batch to batch. Bytes before `start` belong to the pipe and are never written again.
#[derive(Debug)]
pub(super) struct Store {
    region: Region,
    start: usize,
    end: usize,
}

/// A place in an output that the transform can return to. Valid only within its batch, because a reader may already
/// have the output of earlier batches.
///
/// A transform can't keep a mark. This doesn't compile:
///
/// ```compile_fail,E0521
/// use pipeio::lines::{Failure, Fate, Mark, Output, Transform};
///
/// struct Keeps(Option<Mark<'static>>);
///
/// impl Transform for Keeps {
///     fn line<'b>(&mut self, line: &'b [u8], output: &mut Output<'b>) -> Result<Fate, Failure> {
///         self.0.replace(output.mark());
///         Ok(Fate::Keep)
///     }
/// }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Mark<'b> {
    end: usize,
    lent: usize,
    /// Makes `'b` invariant: neither a longer nor a shorter lifetime fits, so a transform can't keep a mark after the
    /// call.
    batch: PhantomData<fn(&'b ()) -> &'b ()>,
}

impl Store {
    pub(super) fn new(len: usize) -> Result<Self, Error> {
        Ok(Self { region: Region::new(STAGGER + len).map_err(Error::Memory)?, start: STAGGER, end: STAGGER })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.end == self.start
    }

    /// Discards the content and reuses its memory.
    pub(super) fn reuse(&mut self) {
        self.end = self.start;
    }

    /// Leaves the pages of the content to the kernel. The next output uses other memory, perhaps the rest of the last
    /// page: the pipe's reference has an offset and a length and excludes that rest.
    pub(super) fn give_away(&mut self) -> Result<(), Error> {
        self.start = self.end;
        // At least half of the region is always left, so the region grows only for a larger output.
        if self.start > self.region.len() / 2 {
            fault::point().map_err(|errno| Error::Memory(errno.into()))?;
            self.region.drop_pages().map_err(Error::Memory)?;
            self.start = STAGGER;
            self.end = STAGGER;
        }
        Ok(())
    }
}

impl<'b> Output<'b> {
    pub(super) fn new(store: Store) -> Self {
        Self { begin: store.end, store, lent: Vec::new(), out_of_memory: false, spare: 0 }
    }

    /// Returns `flow`, the transform's result. If memory was lacking for part of the output, discards the output and
    /// returns an error.
    pub(super) fn check_memory(&mut self, flow: Result<Flow, Error>) -> Result<Flow, Error> {
        if !self.out_of_memory {
            return flow;
        }
        self.lent.clear();
        (self.store.end, self.spare) = (self.begin, 0);
        Err(Error::Memory(io::ErrorKind::OutOfMemory.into()))
    }

    pub(super) fn into_store(self) -> Store {
        self.store
    }

    /// Removes all output and reuses its memory.
    pub(super) fn reuse(&mut self) {
        self.lent.clear();
        self.store.reuse();
        (self.begin, self.spare) = (self.store.start, 0);
    }

    /// Removes all output and never writes to its memory again.
    pub(super) fn give_away(&mut self) -> Result<(), Error> {
        self.spare = 0;
        self.store.give_away()?;
        self.begin = self.store.start;
        Ok(())
    }

    /// Appends a copy of `bytes`. If there is no memory for them, the run fails with [`Error::Memory`].
    #[inline]
    pub fn extend(&mut self, bytes: &[u8]) {
        if let Ok(spare) = self.spare(bytes.len()) {
            spare[..bytes.len()].copy_from_slice(bytes);
            self.store.end += bytes.len();
            self.spare = 0;
        }
    }

    /// Appends one byte, like [`extend`](Self::extend).
    #[inline]
    pub fn push(&mut self, byte: u8) {
        self.extend(&[byte]);
    }

    /// Appends `bytes`, a part of the batch. If there are at least 32 KiB, appends them by reference, which saves
    /// copying a huge line. Otherwise appends a copy. If there is no memory for that, the run fails with
    /// [`Error::Memory`].
    #[inline]
    pub fn lend(&mut self, bytes: &'b [u8]) {
        if bytes.len() < WORTH_LENDING {
            self.extend(bytes);
        } else if self.lent.try_reserve(1).is_ok() {
            self.lent.push(LentBytes { after: self.store.end, bytes });
            self.spare = 0;
        } else {
            self.out_of_memory = true;
        }
    }

    /// Returns at least `len` bytes to write to. Their initial content is arbitrary. After writing, append the first
    /// bytes of the slice with [`advance`](Self::advance).
    ///
    /// # Errors
    ///
    /// If there is no memory for them. The run then fails with [`Error::Memory`], whatever the transform returns.
    #[inline]
    pub fn spare(&mut self, len: usize) -> io::Result<&mut [u8]> {
        if self.store.region.len() - self.store.end < len {
            self.grow(len)?;
        }
        self.spare = self.store.region.len() - self.store.end;
        Ok(&mut self.store.region[self.store.end..])
    }

    /// Appends the first `len` bytes of the slice that [`spare`](Self::spare) returned. A second call appends the bytes
    /// after these.
    ///
    /// # Panics
    ///
    /// If fewer than `len` bytes of that slice are left. No bytes are left once other bytes were appended or any bytes
    /// were removed.
    #[inline]
    pub fn advance(&mut self, len: usize) {
        assert!(len <= self.spare, "advanced beyond the slice that `spare` returned");
        self.spare -= len;
        self.store.end += len;
    }

    #[cold]
    fn grow(&mut self, len: usize) -> io::Result<()> {
        self.spare = 0;
        let grown = self.store.region.grow(self.store.end.saturating_add(len));
        self.out_of_memory |= grown.is_err();
        grown
    }

    /// The current end of the output, to pass to [`truncate`](Self::truncate).
    #[inline]
    pub fn mark(&self) -> Mark<'b> {
        Mark { end: self.store.end, lent: self.lent.len(), batch: PhantomData }
    }

    /// Removes everything that was appended since `mark` was made.
    ///
    /// # Panics
    ///
    /// If the mark is in a part of the output that was removed.
    pub fn truncate(&mut self, mark: Mark<'b>) {
        let lent_after = self.lent.get(mark.lent.wrapping_sub(1)).map_or(0, |lent| lent.after);
        let there = mark.end <= self.store.end && mark.lent <= self.lent.len() && lent_after <= mark.end;
        assert!(there, "the mark is in a part of the output that was removed");
        (self.store.end, self.spare) = (mark.end, 0);
        self.lent.truncate(mark.lent);
    }

    /// The number of bytes in this batch's output.
    pub fn len(&self) -> usize {
        self.store.end - self.begin + self.lent.iter().map(|lent| lent.bytes.len()).sum::<usize>()
    }

    /// Whether this batch has no output.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// This output and the held-back output before it; `None` if bytes were lent.
    pub(super) fn as_slice(&self) -> Option<&[u8]> {
        self.lent.is_empty().then(|| self.stored())
    }

    /// This output and the held-back output before it, as a list of non-empty pieces in order.
    pub(super) fn pieces(&self) -> Result<Vec<IoSlice<'_>>, TryReserveError> {
        let mut pieces = Vec::new();
        pieces.try_reserve_exact(2 * self.lent.len() + 1)?;
        let mut from = self.store.start;
        for lent in &self.lent {
            if from < lent.after {
                pieces.push(IoSlice::new(&self.store.region[from..lent.after]));
            }
            pieces.push(IoSlice::new(lent.bytes));
            from = lent.after;
        }
        if from < self.store.end {
            pieces.push(IoSlice::new(&self.store.region[from..self.store.end]));
        }
        Ok(pieces)
    }

    /// All bytes that aren't lent.
    fn stored(&self) -> &[u8] {
        &self.store.region[self.store.start..self.store.end]
    }
}

/// Makes `write!` work.
impl io::Write for Output<'_> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.spare(bytes.len())?[..bytes.len()].copy_from_slice(bytes);
        self.advance(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(output: &Output<'_>) -> Vec<u8> {
        output.pieces().unwrap().iter().flat_map(|piece| piece.iter().copied()).collect()
    }

    #[test]
    fn lent_and_own_bytes_keep_their_order() {
        let long = vec![b'x'; WORTH_LENDING];
        let mut output = Output::new(Store::new(1).unwrap());
        output.lend(&long);
        output.extend(b"ab");
        output.lend(b"short");
        output.lend(&long);
        output.push(b'c');
        assert_eq!(content(&output), [&long[..], b"abshort", &long, b"c"].concat());
        assert_eq!(output.len(), 2 * WORTH_LENDING + 8);
    }

    #[test]
    fn returning_to_a_mark_discards_later_output() {
        let long = vec![b'x'; WORTH_LENDING];
        let mut output = Output::new(Store::new(1).unwrap());
        output.extend(b"keep");
        let mark = output.mark();
        output.extend(b"drop");
        output.lend(&long);
        output.truncate(mark);
        assert_eq!(content(&output), b"keep");
    }

    #[test]
    #[should_panic = "the mark is in a part of the output that was removed"]
    fn a_mark_in_removed_output_is_rejected() {
        let long = vec![b'x'; WORTH_LENDING];
        let mut output = Output::new(Store::new(1).unwrap());
        let begin = output.mark();
        output.extend(b"first");
        output.lend(&long);
        let late = output.mark();
        output.truncate(begin);
        output.extend(b"longer than first");
        output.lend(&long);
        output.truncate(late);
    }

    #[test]
    fn spare_room_is_appended_in_parts() {
        let mut output = Output::new(Store::new(100).unwrap());
        output.spare(4).unwrap()[..4].copy_from_slice(b"abcd");
        output.advance(1);
        output.advance(3);
        assert_eq!(content(&output), b"abcd");
    }

    /// Calls `before`, then `advance`. `advance` must panic, because otherwise it would append arbitrary memory.
    fn advance_panics(before: impl FnOnce(&mut Output<'_>)) {
        let mut output = Output::new(Store::new(100).unwrap());
        before(&mut output);
        output.advance(1);
    }

    #[test]
    #[should_panic = "advanced beyond the slice that `spare` returned"]
    fn advancing_without_a_spare_slice_panics() {
        advance_panics(|_| ());
    }

    #[test]
    #[should_panic = "advanced beyond the slice that `spare` returned"]
    fn advancing_after_another_append_panics() {
        advance_panics(|output| {
            let _ = output.spare(10);
            output.extend(b"x");
        });
    }

    #[test]
    #[should_panic = "advanced beyond the slice that `spare` returned"]
    fn advancing_after_returning_to_a_mark_panics() {
        advance_panics(|output| {
            output.extend(b"x");
            let mark = output.mark();
            output.extend(b"y");
            let _ = output.spare(10);
            output.truncate(mark);
        });
    }

    #[test]
    #[should_panic = "advanced beyond the slice that `spare` returned"]
    fn advancing_beyond_the_spare_slice_panics() {
        advance_panics(|output| {
            let len = output.spare(10).unwrap().len();
            output.advance(len);
        });
    }

    #[test]
    fn memory_given_away_is_not_written_again() {
        let mut store = Store::new(1).unwrap();
        // Miri takes seconds for each.
        let rounds = if cfg!(miri) { 3 } else { 100 };
        for round in 0..rounds {
            let mut output = Output::new(store);
            output.extend(&[round; 1000]);
            let start = output.stored().as_ptr();
            store = output.into_store();
            store.give_away().unwrap();
            let next = store.region[store.start..].as_ptr();
            // The next output starts further on in the same region. If the region's pages were dropped, it starts at
            // the region's beginning.
            assert!(next > start || (store.start == STAGGER && store.region.iter().all(|&byte| byte == 0)));
        }
    }
}
