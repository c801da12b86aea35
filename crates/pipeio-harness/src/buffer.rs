//! Buffers of blocks, memory that is given away block by block, and bytes that another process may write to.

use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::{self, NonNull};
use std::{io, slice};

pub use pipeio::memory::{Pages, Region, page_size};

/// Bytes to look at: a slice, or memory that someone else may change meanwhile, of which there must be no reference.
#[derive(Debug, Clone, Copy)]
pub struct Bytes<'a> {
    start: NonNull<u8>,
    len: usize,
    shared: bool,
    memory: PhantomData<&'a [u8]>,
}

impl<'a> Bytes<'a> {
    /// Memory that someone else may change.
    ///
    /// # Safety
    /// From `start` on, `len` bytes are readable for this lifetime, and this process makes no reference to them.
    pub unsafe fn shared(start: NonNull<u8>, len: usize) -> Self {
        Self { start, len, shared: true, memory: PhantomData }
    }

    /// How many.
    #[inline]
    pub fn len(self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Where they are. What is there may be something else the next time.
    #[inline]
    pub fn as_ptr(self) -> *const u8 {
        self.start.as_ptr()
    }

    /// The slice. None for memory that someone else may change: copy it.
    #[inline]
    pub fn as_slice(self) -> Option<&'a [u8]> {
        // SAFETY: it was made of such a slice.
        (!self.shared).then(|| unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) })
    }

    /// Some of them.
    ///
    /// # Panics
    /// If they aren't all of these; so below.
    #[inline]
    pub fn part(self, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.len);
        // SAFETY: within these, as asserted.
        Self { start: unsafe { self.start.add(range.start) }, len: range.len(), ..self }
    }

    /// One of them.
    #[inline]
    pub fn get(self, at: usize) -> u8 {
        assert!(at < self.len);
        // SAFETY: one of these, as asserted.
        unsafe { self.start.as_ptr().wrapping_add(at).read() }
    }

    /// Copies as many as there are in both.
    pub fn copy_to(self, to: &mut [u8]) {
        // SAFETY: as many bytes are readable here and writable there. They don't overlap, for `to` is borrowed exclusively.
        unsafe { ptr::copy_nonoverlapping(self.start.as_ptr(), to.as_mut_ptr(), self.len.min(to.len())) };
    }
}

impl<'a, T: AsRef<[u8]> + ?Sized> From<&'a T> for Bytes<'a> {
    #[inline]
    fn from(bytes: &'a T) -> Self {
        let bytes = bytes.as_ref();
        Self { start: NonNull::from(bytes).cast(), len: bytes.len(), shared: false, memory: PhantomData }
    }
}

/// Bytes to be written: a slice, or memory that someone else may look at or change meanwhile.
#[derive(Debug)]
pub struct BytesMut<'a> {
    start: NonNull<u8>,
    len: usize,
    memory: PhantomData<&'a mut [u8]>,
}

impl<'a> BytesMut<'a> {
    /// Memory that someone else may look at or change.
    ///
    /// # Safety
    /// From `start` on, `len` bytes are readable and writable for this lifetime, and this process makes no reference to
    /// them.
    pub unsafe fn shared(start: NonNull<u8>, len: usize) -> Self {
        Self { start, len, memory: PhantomData }
    }

    /// How many.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where they are.
    #[inline]
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Some of them.
    #[inline]
    pub fn part(&mut self, range: Range<usize>) -> BytesMut<'_> {
        assert!(range.start <= range.end && range.end <= self.len);
        // SAFETY: within these, as asserted.
        BytesMut { start: unsafe { self.start.add(range.start) }, len: range.len(), ..*self }
    }

    /// Sets one of them.
    #[inline]
    pub fn set(&mut self, at: usize, byte: u8) {
        assert!(at < self.len);
        // SAFETY: one of these, as asserted.
        unsafe { self.start.as_ptr().wrapping_add(at).write(byte) };
    }

    /// Copies as many as there are in both to the start of these.
    pub fn copy_from(&mut self, from: &[u8]) {
        // SAFETY: as many bytes are readable there and writable here. They don't overlap, for these are borrowed exclusively, or
        // nobody has a reference to them.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), self.start.as_ptr(), self.len.min(from.len())) };
    }

    /// Makes all of them `byte`.
    pub fn fill(self, byte: u8) {
        // SAFETY: as many bytes are writable.
        unsafe { ptr::write_bytes(self.start.as_ptr(), byte, self.len) };
    }
}

impl<'a, T: AsMut<[u8]> + ?Sized> From<&'a mut T> for BytesMut<'a> {
    #[inline]
    fn from(bytes: &'a mut T) -> Self {
        let bytes = bytes.as_mut();
        Self { len: bytes.len(), start: NonNull::from(bytes).cast(), memory: PhantomData }
    }
}

/// An error unless a block has bytes.
///
/// # Errors
/// `InvalidInput` for a block of 0 bytes.
pub fn check_block(block: usize) -> io::Result<()> {
    if block > 0 { Ok(()) } else { Err(crate::invalid("a block has at least one byte")) }
}

/// A buffer for one block, used over and over, starting a given number of bytes past a page boundary.
#[derive(Debug)]
pub struct Buffer {
    region: Region,
    align: usize,
    len: usize,
}

impl Buffer {
    /// `len` bytes, `align` bytes past the start of a page. All pages are touched, so that no fault is left for later.
    ///
    /// # Errors
    /// When the memory cannot be had.
    pub fn new(len: usize, align: usize, pages: Pages) -> io::Result<Buffer> {
        let total = len.checked_add(align).ok_or(io::ErrorKind::OutOfMemory)?;
        let mut region = Region::new(total, pages)?;
        for page in region.bytes_mut().chunks_mut(page_size()) {
            page[0] = 0;
        }
        Ok(Buffer { region, align, len })
    }

    /// The buffer's bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.region.bytes()[self.align..self.align + self.len]
    }

    /// The buffer's bytes, to be written.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.region.bytes_mut()[self.align..self.align + self.len]
    }
}

/// Memory for blocks that are given away: each block gets bytes that no earlier block had since they were last dropped.
#[derive(Debug)]
pub struct GiveAway {
    region: Region,
    align: usize,
    /// Where the next block may start.
    next: usize,
    /// Where the last block is.
    last: std::ops::Range<usize>,
}

impl GiveAway {
    /// Memory for blocks of up to `block` bytes, each `align` bytes past the start of a page, in a region of at least
    /// `region` bytes that is dropped each time it is used up.
    ///
    /// # Errors
    /// When the memory cannot be had.
    pub fn new(block: usize, align: usize, region: usize, pages: Pages) -> io::Result<GiveAway> {
        let room = block.checked_add(align).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(GiveAway { region: Region::new(room.max(region), pages)?, align, next: 0, last: 0..0 })
    }

    /// The next `len` bytes, to be written and then given away. Bytes handed out before stay as they were.
    ///
    /// # Errors
    /// When the used-up region cannot be dropped.
    pub fn next(&mut self, len: usize) -> io::Result<&mut [u8]> {
        let mut start = self.next + self.align;
        if start + len > self.region.len() {
            self.region.drop_pages()?;
            start = self.align;
        }
        let end = start + len;
        // Blocks without an offset are packed. With one, each begins on a page of its own.
        self.next = if self.align == 0 { end } else { end.next_multiple_of(page_size()) };
        self.last = start..end;
        Ok(&mut self.region.bytes_mut()[start..end])
    }

    /// What [`GiveAway::next`] handed out last.
    pub fn last(&self) -> &[u8] {
        &self.region.bytes()[self.last.clone()]
    }
}

/// How many bytes of this process are on transparent huge pages, from /proc/self/smaps_rollup; 0 where it does not tell.
pub fn huge_bytes() -> u64 {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap_or_default();
    rollup
        .lines()
        .find_map(|line| line.strip_prefix("AnonHugePages:")?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok())
        .map_or(0, |kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_start_where_asked() {
        for pages in [Pages::Base, Pages::Huge] {
            let buffer = Buffer::new(10_000, 24, pages).unwrap();
            assert_eq!(buffer.bytes().as_ptr() as usize % page_size(), 24);
            assert_eq!(buffer.bytes().len(), 10_000);
        }
    }

    #[test]
    fn memory_given_away_is_not_handed_out_again_before_it_was_dropped() {
        let mut memory = GiveAway::new(1000, 0, 4096, Pages::Base).unwrap();
        let mut starts = Vec::new();
        for round in 1..=4u8 {
            let block = memory.next(1000).unwrap();
            assert!(block.iter().all(|&byte| byte == 0), "block {round} was used before");
            block.fill(round);
            starts.push(block.as_ptr());
        }
        let block = memory.next(1000).unwrap();
        assert_eq!(block.as_ptr(), starts[0]);
        assert!(block.iter().all(|&byte| byte == 0), "the pages were not dropped");
    }

    #[test]
    fn an_impossible_size_is_an_error() {
        assert!(Buffer::new(usize::MAX, 1, Pages::Base).is_err());
        assert!(Region::new(usize::MAX - 5000, Pages::Huge).is_err());
    }
}
