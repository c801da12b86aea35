//! Private anonymous memory which grows without copying and whose pages can be given away.

use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::{io, slice};

use rustix::mm::{self, Advice, MapFlags, MremapFlags, ProtFlags};

/// What the kernel maps is a multiple of this. Larger pages of some machines only round further.
pub(super) const PAGE: usize = 4096;

/// Sizes from which and up to which huge pages are asked for: one fault instead of 512. The kernel makes room for them
/// by moving other pages about. For a line of 256 MiB that took from nothing to 0.5 s, where small pages take 0.1 s.
const HUGE: std::ops::RangeInclusive<usize> = 2 << 20..=16 << 20;

/// Zeroed memory of its own mapping. It is a `[u8]`, always initialised, as the kernel hands out zeroed pages.
#[derive(Debug)]
pub(super) struct Region {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a region owns its mapping, to which nothing else points; which thread uses it doesn't matter.
unsafe impl Send for Region {}

impl Region {
    /// Maps at least `len` bytes.
    pub(super) fn new(len: usize) -> io::Result<Self> {
        let len = round_up(len)?;
        // SAFETY: a new mapping at a place of the kernel's choice touches no memory in use.
        let start = unsafe {
            mm::mmap_anonymous(
                std::ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        }?;
        let start =
            NonNull::new(start.cast()).ok_or_else(|| io::Error::other("the kernel mapped memory at address 0"))?;
        let region = Self { start, len };
        region.prefer_huge_pages();
        Ok(region)
    }

    /// Grows to at least `len` bytes, at least doubling so that repeated growth stays cheap. What was written stays.
    pub(super) fn grow(&mut self, len: usize) -> io::Result<()> {
        if len <= self.len {
            return Ok(());
        }
        let len = round_up(len.max(self.len.saturating_mul(2)))?;
        // SAFETY: the mapping is ours and of this length, and `&mut self` says that nothing borrows from it.
        let start = unsafe { mm::mremap(self.start.as_ptr().cast(), self.len, len, MremapFlags::MAYMOVE) }?;
        self.start =
            NonNull::new(start.cast()).ok_or_else(|| io::Error::other("the kernel mapped memory at address 0"))?;
        self.len = len;
        self.prefer_huge_pages();
        Ok(())
    }

    /// Lets go of every page. The next touch finds fresh, zeroed ones, and what the kernel still holds of the old ones
    /// (in a pipe, or wherever the pipe's reader sent them) stays as it is.
    pub(super) fn discard(&mut self) -> io::Result<()> {
        // SAFETY: the mapping is ours and of this length, `&mut self` says that nothing borrows from it, and zeroed
        // bytes are as good as any.
        unsafe { mm::madvise(self.start.as_ptr().cast(), self.len, Advice::LinuxDontNeed) }?;
        Ok(())
    }

    /// Asks for huge pages where they can help, and for small ones beyond: a mapping that grows keeps what was asked for
    /// when it was smaller. A kernel without huge pages serves small ones, which is slower and just as right, so a
    /// refusal is no error.
    fn prefer_huge_pages(&self) {
        let advice = if self.len > *HUGE.end() {
            Advice::LinuxNoHugepage
        } else if HUGE.contains(&self.len) {
            Advice::LinuxHugepage
        } else {
            return;
        };
        // SAFETY: advice about a mapping of ours; it changes no content.
        let _ = unsafe { mm::madvise(self.start.as_ptr().cast(), self.len, advice) };
    }
}

impl Deref for Region {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the mapping is ours, of this length, readable, zeroed when mapped, and lives as long as `self`.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for Region {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, writable, and `&mut self` says that nothing else borrows from it.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, of this length, and nothing borrows from it any more.
        let _ = unsafe { mm::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

fn round_up(len: usize) -> io::Result<usize> {
    len.max(1)
        .checked_next_multiple_of(PAGE)
        .filter(|&len| len <= isize::MAX as usize)
        .ok_or_else(|| io::Error::new(io::ErrorKind::OutOfMemory, "a buffer would be larger than the address space"))
}

#[cfg(test)]
mod tests {
    use super::Region;

    #[test]
    fn growing_keeps_and_discarding_zeroes() {
        let mut region = Region::new(1).unwrap();
        assert_eq!(region.len(), 4096);
        region[4095] = 7;
        region.grow(3 << 20).unwrap();
        assert!(region.len() >= 3 << 20);
        assert_eq!(region[4095], 7);
        assert_eq!(region[4096], 0);
        region.discard().unwrap();
        assert_eq!(region[4095], 0);
    }

    #[test]
    fn refuses_what_cannot_be_mapped() {
        assert!(Region::new(usize::MAX).is_err());
    }
}
