//! Buffers on base or huge pages.

use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};
use std::{io, slice};

use rustix::mm::{self, Advice, MapFlags, ProtFlags};

/// The kind of pages of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Pages {
    /// Base pages only (4 KiB on x86-64), whatever the system's policy for huge pages.
    Base,
    /// Transparent huge pages, where available.
    Huge,
}

/// Size of a transparent huge page in bytes, on x86-64 and on aarch64 with base pages of 4 KiB. On other systems a
/// mapping aligned to this size works, but may get no huge pages.
pub const HUGE_PAGE: usize = 2 << 20;

/// Bytes in a base page.
pub fn page_size() -> usize {
    rustix::param::page_size()
}

/// A private anonymous mapping, zero until written.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping has one owner, and isn't tied to the thread that created it.
unsafe impl Send for Mapping {}
// SAFETY: a shared reference allows only reading. Code that writes through `at` must ensure that nobody else uses the
// written bytes.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `len` bytes with `flags` in addition to MAP_PRIVATE.
    pub(crate) fn of(len: usize, flags: MapFlags) -> io::Result<Self> {
        // Miri knows no other flags.
        let flags = if cfg!(miri) { MapFlags::empty() } else { flags };
        // SAFETY: a new private anonymous mapping at an address of the kernel's choice overlaps nothing.
        let start = unsafe {
            mm::mmap_anonymous(ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | flags)
        }?;
        Ok(Self { start: NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?, len })
    }

    #[cfg(feature = "lines")]
    /// Resizes the mapping to `len` bytes, possibly at another address. The content is kept.
    pub(crate) fn resize(&mut self, len: usize) -> io::Result<()> {
        // SAFETY: the mapping is ours and of this length, and `&mut self` guarantees that nothing borrows from it.
        let start = unsafe { mm::mremap(self.start.as_ptr().cast(), self.len, len, mm::MremapFlags::MAYMOVE) }?;
        self.start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        self.len = len;
        Ok(())
    }

    /// Requests huge pages, or base pages only. A kernel without huge pages ignores the request, which costs speed but
    /// not correctness.
    pub(crate) fn prefer_huge_pages(&self, huge: bool) {
        if cfg!(miri) {
            return;
        }
        let advice = if huge { Advice::LinuxHugepage } else { Advice::LinuxNoHugepage };
        // SAFETY: advice about a mapping of ours; it changes no content.
        let _ = unsafe { mm::madvise(self.start.as_ptr().cast(), self.len, advice) };
    }

    /// The address of the byte at offset `place`. A caller that writes to the address must ensure that no slice of the
    /// mapping includes the written bytes.
    pub(crate) fn at(&self, place: usize) -> *mut u8 {
        self.start.as_ptr().wrapping_add(place)
    }

    /// Drops the pages of `len` bytes from `start` on; both must be multiples of the page size. The bytes then read as
    /// zero, unless the pages are locked.
    ///
    /// # Safety
    /// No reference to these bytes exists.
    ///
    /// # Panics
    /// If the range exceeds the mapping.
    pub(crate) unsafe fn drop_part(&self, start: usize, len: usize) {
        assert!(start.checked_add(len).is_some_and(|end| end <= self.len), "a part of the mapping");
        let part = self.at(start);
        if cfg!(miri) {
            // SAFETY: the range is ours, and the caller guarantees that no reference to it exists.
            return unsafe { ptr::write_bytes(part, 0, len) };
        }
        // SAFETY: the range is ours. Its content is lost, but the caller guarantees that no reference to it exists.
        let _ = unsafe { mm::madvise(part.cast(), len, Advice::LinuxDontNeed) };
    }

    /// See [`Region::drop_pages`].
    pub(crate) fn drop_pages(&mut self) -> io::Result<()> {
        // Miri has no madvise(2). Zeroing has the same effect on what is read.
        if cfg!(miri) {
            self.fill(0);
            return Ok(());
        }
        // SAFETY: the range is ours and borrowed exclusively. Its content is lost, but no other reference to it exists.
        // The zeros that replace the content are valid bytes.
        unsafe { mm::madvise(self.start.as_ptr().cast(), self.len, Advice::LinuxDontNeed) }?;
        Ok(())
    }
}

impl Deref for Mapping {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the range is mapped, readable and initialised (anonymous memory reads as zero) while `self` lives.
        // The bytes change only through `&mut self`, or through `at`, whose callers ensure that no slice includes the
        // bytes they write.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for Mapping {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: the range is mapped, writable and initialised while `self` lives, and the borrow is exclusive.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and of this length, and no borrow of it outlives `self`.
        let _ = unsafe { mm::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// Private anonymous memory, zero until written.
#[derive(Debug)]
pub struct Region {
    /// Up to one huge page longer than requested, if the start had to be aligned to a huge page.
    mapping: Mapping,
    start: usize,
    len: usize,
}

impl Region {
    /// Maps `len` bytes, rounded up to whole pages (huge pages for [`Pages::Huge`]), starting on a page boundary.
    ///
    /// # Errors
    /// When the memory can't be allocated.
    pub fn new(len: usize, pages: Pages) -> io::Result<Region> {
        let (grain, slack) = match pages {
            Pages::Base => (page_size(), 0),
            Pages::Huge => (HUGE_PAGE, HUGE_PAGE),
        };
        let len = len.max(1).checked_next_multiple_of(grain).ok_or(io::ErrorKind::OutOfMemory)?;
        let mapped = len.checked_add(slack).ok_or(io::ErrorKind::OutOfMemory)?;
        let mapping = Mapping::of(mapped, MapFlags::empty())?;
        mapping.prefer_huge_pages(pages == Pages::Huge);
        Ok(Region { start: mapping.as_ptr().align_offset(grain), mapping, len })
    }

    /// Bytes in the region.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Always false: a region has at least one page.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The region's bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.mapping[self.start..self.start + self.len]
    }

    /// The region's bytes, for writing.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.mapping[self.start..self.start + self.len]
    }

    /// Drops all pages: the region then has new pages and reads as zero. Pages that a pipe still refers to stay
    /// unchanged until their last reader is done with them, even if they were passed on with splice(2) or tee(2). So a
    /// region that was given away can be reused safely: its unread bytes are never overwritten.
    ///
    /// # Errors
    /// When the memory is locked (see mlock(2)).
    pub fn drop_pages(&mut self) -> io::Result<()> {
        self.mapping.drop_pages()
    }
}
