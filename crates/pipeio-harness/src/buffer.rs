//! Buffers for blocks, memory that is given away block by block, and bytes that another process may change.

use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::{self, NonNull};
use std::{io, slice};

pub use pipeio::memory::{Pages, Region, page_size};

/// Bytes to read: a slice, or memory that other processes may change meanwhile. No reference to memory of the second
/// kind may exist.
#[derive(Debug, Clone, Copy)]
pub struct Bytes<'a> {
    start: NonNull<u8>,
    len: usize,
    shared: bool,
    memory: PhantomData<&'a [u8]>,
}

impl<'a> Bytes<'a> {
    /// Bytes in memory that other processes may change.
    ///
    /// # Safety
    /// For this lifetime, `len` bytes from `start` on are readable and this process has no reference to them.
    pub unsafe fn shared(start: NonNull<u8>, len: usize) -> Self {
        Self { start, len, shared: true, memory: PhantomData }
    }

    /// The number of bytes.
    #[inline]
    pub fn len(self) -> usize {
        self.len
    }

    /// Whether there are no bytes.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// The address of the first byte. Reading a byte twice may return two values.
    #[inline]
    pub fn as_ptr(self) -> *const u8 {
        self.start.as_ptr()
    }

    /// The bytes as a slice. `None` for memory that other processes may change, which must be copied instead.
    #[inline]
    pub fn as_slice(self) -> Option<&'a [u8]> {
        // SAFETY: the bytes aren't shared, so `self` was made from a slice of this length and lifetime.
        (!self.shared).then(|| unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) })
    }

    /// The bytes in `range`.
    ///
    /// # Panics
    /// If `range` is not within these bytes.
    #[inline]
    pub fn part(self, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.len);
        // SAFETY: `range` is within these bytes, as asserted.
        Self { start: unsafe { self.start.add(range.start) }, len: range.len(), ..self }
    }

    /// The byte at `at`.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    pub fn get(self, at: usize) -> u8 {
        assert!(at < self.len);
        // SAFETY: `at` is within these bytes, as asserted, and they are readable for this lifetime.
        unsafe { self.start.as_ptr().wrapping_add(at).read() }
    }

    /// Copies the first bytes to `to`, as many as fit.
    pub(crate) fn copy_to(self, to: &mut [u8]) {
        // SAFETY: that many bytes are readable in `self` and writable in `to`. The two don't overlap, since `to` is
        // borrowed exclusively.
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

/// Bytes to write: a slice, or memory that other processes may read or change meanwhile.
#[derive(Debug)]
pub struct BytesMut<'a> {
    start: NonNull<u8>,
    len: usize,
    memory: PhantomData<&'a mut [u8]>,
}

impl<'a> BytesMut<'a> {
    /// Bytes in memory that other processes may read or change.
    ///
    /// # Safety
    /// For this lifetime, `len` bytes from `start` on are readable and writable, and this process has no reference to
    /// them.
    pub unsafe fn shared(start: NonNull<u8>, len: usize) -> Self {
        Self { start, len, memory: PhantomData }
    }

    /// The number of bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The address of the first byte.
    #[inline]
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// The bytes in `range`.
    ///
    /// # Panics
    /// If `range` is not within these bytes.
    #[inline]
    pub fn part(&mut self, range: Range<usize>) -> BytesMut<'_> {
        assert!(range.start <= range.end && range.end <= self.len);
        // SAFETY: `range` is within these bytes, as asserted.
        BytesMut { start: unsafe { self.start.add(range.start) }, len: range.len(), ..*self }
    }

    /// Sets the byte at `at`.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    pub fn set(&mut self, at: usize, byte: u8) {
        assert!(at < self.len);
        // SAFETY: `at` is within these bytes, as asserted, and they are writable for this lifetime.
        unsafe { self.start.as_ptr().wrapping_add(at).write(byte) };
    }

    /// Copies the first bytes of `from` into these bytes, as many as fit.
    pub fn copy_from(&mut self, from: &[u8]) {
        // SAFETY: that many bytes are readable in `from` and writable in `self`. The two don't overlap, since the bytes
        // of `self` are borrowed exclusively or no reference to them exists.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), self.start.as_ptr(), self.len.min(from.len())) };
    }

    /// Sets all bytes to `byte`.
    pub fn fill(self, byte: u8) {
        // SAFETY: `len` bytes from `start` on are writable for this lifetime.
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

/// Returns an error unless a block has bytes.
///
/// # Errors
/// `InvalidInput` for a block of 0 bytes.
pub(crate) fn check_block(block: usize) -> io::Result<()> {
    if block > 0 { Ok(()) } else { Err(crate::invalid("a block needs at least one byte")) }
}

/// A reusable buffer for one block, starting a given number of bytes after a page boundary.
#[derive(Debug)]
pub struct Buffer {
    region: Region,
    align: usize,
    len: usize,
}

impl Buffer {
    /// Allocates `len` bytes, starting `align` bytes after a page boundary. Touches all pages, so that later use causes
    /// no page faults.
    ///
    /// # Errors
    /// When the memory can't be allocated.
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

    /// The buffer's bytes, for writing.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.region.bytes_mut()[self.align..self.align + self.len]
    }
}

/// Memory for blocks that are given away. No byte is handed out again until its page has been dropped.
#[derive(Debug)]
pub struct GiftMemory {
    region: Region,
    align: usize,
    /// Offset at which the next block may start, in bytes.
    next: usize,
    /// The range of the last block in the region, in bytes.
    last: std::ops::Range<usize>,
}

impl GiftMemory {
    /// Allocates memory for blocks of up to `block` bytes, in a region of at least `region` bytes. Each time the region
    /// is used up, its pages are dropped. Blocks start `align` bytes after a page boundary; if `align` is 0, they are
    /// packed.
    ///
    /// # Errors
    /// When the memory can't be allocated.
    pub fn new(block: usize, align: usize, region: usize, pages: Pages) -> io::Result<GiftMemory> {
        let room = block.checked_add(align).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(GiftMemory { region: Region::new(room.max(region), pages)?, align, next: 0, last: 0..0 })
    }

    /// The next `len` bytes, to be written and then given away. Bytes handed out earlier don't change.
    ///
    /// # Errors
    /// When the region is used up and its pages can't be dropped.
    ///
    /// # Panics
    /// If `len` bytes don't fit into the region.
    pub fn next(&mut self, len: usize) -> io::Result<&mut [u8]> {
        let mut start = self.next + self.align;
        if start + len > self.region.len() {
            self.region.drop_pages()?;
            start = self.align;
        }
        let end = start + len;
        // Without an offset, blocks are packed. With an offset, each block starts on a separate page.
        self.next = if self.align == 0 { end } else { end.next_multiple_of(page_size()) };
        self.last = start..end;
        Ok(&mut self.region.bytes_mut()[start..end])
    }

    /// The block that [`GiftMemory::next`] returned last.
    pub fn last(&self) -> &[u8] {
        &self.region.bytes()[self.last.clone()]
    }
}

/// The number of this process's bytes on transparent huge pages, from /proc/self/smaps_rollup; 0 if the file doesn't
/// report it.
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
    fn buffers_start_at_the_requested_offset() {
        for pages in [Pages::Base, Pages::Huge] {
            let buffer = Buffer::new(10_000, 24, pages).unwrap();
            assert_eq!(buffer.bytes().as_ptr() as usize % page_size(), 24);
            assert_eq!(buffer.bytes().len(), 10_000);
        }
    }

    #[test]
    fn memory_given_away_is_not_handed_out_again_before_it_was_dropped() {
        let mut memory = GiftMemory::new(1000, 0, 4096, Pages::Base).unwrap();
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
