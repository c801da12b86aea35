//! Private anonymous memory that grows without copying. Its pages can be given away.

use std::io;

use rustix::mm::MapFlags;
use rustix::param::page_size;

use super::fault;
pub(super) use crate::memory::Mapping as Region;

/// Sizes in bytes at which huge pages are requested. A huge page takes one page fault instead of 512. To make room for
/// huge pages, the kernel may move other pages. For a line of 256 MiB, that took up to 0.5 s; with small pages it took
/// 0.1 s.
const HUGE: std::ops::RangeInclusive<usize> = 2 << 20..=16 << 20;

impl Region {
    /// Maps at least `len` bytes.
    pub(super) fn new(len: usize) -> io::Result<Self> {
        fault::point()?;
        let region = Self::of(round_up(len)?, MapFlags::NORESERVE)?;
        region.choose_pages();
        Ok(region)
    }

    /// Grows to at least `len` bytes and at least twice its size, so that repeated growth stays cheap. The content is
    /// kept.
    pub(super) fn grow(&mut self, len: usize) -> io::Result<()> {
        if len <= self.len() {
            return Ok(());
        }
        fault::point()?;
        let least = round_up(len)?;
        let twice = self.len().saturating_mul(2);
        if twice <= least || self.resize(twice).is_err() {
            self.resize(least)?;
        }
        self.choose_pages();
        Ok(())
    }

    /// Requests huge pages up to the size at which they help, and small pages above it. The request is repeated when a
    /// mapping grows, because the mapping would otherwise keep the advice for its smaller size.
    fn choose_pages(&self) {
        if self.len() >= *HUGE.start() {
            self.prefer_huge_pages(HUGE.contains(&self.len()));
        }
    }
}

fn round_up(len: usize) -> io::Result<usize> {
    len.max(1)
        .checked_next_multiple_of(page_size())
        .filter(|&len| len <= isize::MAX as usize)
        .ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}

#[cfg(test)]
mod tests {
    use super::{Region, page_size};

    #[test]
    fn growing_keeps_the_content_and_dropping_pages_zeroes_it() {
        let mut region = Region::new(1).unwrap();
        let last = page_size() - 1;
        assert_eq!(region.len(), last + 1);
        region[last] = 7;
        region.grow(3 << 20).unwrap();
        assert!(region.len() >= 3 << 20);
        assert_eq!(region[last], 7);
        assert_eq!(region[last + 1], 0);
        region.drop_pages().unwrap();
        assert_eq!(region[last], 0);
    }

    #[test]
    fn a_region_too_large_to_map_is_refused() {
        assert!(Region::new(usize::MAX).is_err());
    }
}
