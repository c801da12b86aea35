//! The memory of a ring. The first page has the cache lines of the handover and one line with the ring's size. The
//! ring's bytes start at the next page.

use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::Ordering::Relaxed;

use crate::buffer::{Pages, check_block, page_size};
use rustix::mm::{Advice, MapFlags, madvise};

use crate::handover::LINES;
use crate::shared::{CacheLine, SharedMapping, refused};

/// The line that describes the ring. Its first word is [`MAGIC`], its second word the capacity in bytes.
const HEADER_LINE: usize = LINES;
/// The size of a cache line in bytes.
const LINE: usize = size_of::<CacheLine>();
/// Identifies a memfd as a ring.
const MAGIC: u64 = u64::from_le_bytes(*b"pipering");

const _: () = assert!((HEADER_LINE + 1) * size_of::<CacheLine>() <= 4096, "all lines are on one page of any size");

pub(crate) struct Map {
    /// The shared mapping, longer than a page.
    mapping: SharedMapping,
    capacity: usize,
}

impl Map {
    pub(super) fn create(bytes: usize, slot: usize) -> io::Result<OwnedFd> {
        check_block(slot)?;
        let too_large = || io::Error::new(io::ErrorKind::OutOfMemory, format!("a ring of {bytes} bytes is too large"));
        let capacity = slot
            .checked_mul(2)
            .and_then(|two| bytes.max(two).checked_next_multiple_of(slot))
            .filter(|&capacity| isize::try_from(capacity).is_ok())
            .ok_or_else(too_large)?;
        // The length is one byte more than a whole number of lines, so that a ring can't be opened as shared lines, nor
        // shared lines as a ring.
        let total = capacity.checked_add(page_size()).and_then(|total| total.checked_next_multiple_of(LINE));
        let total = total.and_then(|total| total.checked_add(1)).ok_or_else(too_large)?;
        let (fd, mapping) = SharedMapping::create(total, MapFlags::POPULATE)?;
        let map = Map { mapping, capacity };
        map[HEADER_LINE].words[1].store(capacity as u64, Relaxed);
        map[HEADER_LINE].words[0].store(MAGIC, Relaxed);
        Ok(fd)
    }

    pub(super) fn open(fd: impl AsFd) -> io::Result<Map> {
        let refused = |why: &str| refused("a ring", why);
        let mapping = SharedMapping::open(fd, MapFlags::POPULATE, "a ring")?;
        let room = mapping.len.checked_sub(page_size()).filter(|&room| room > 0 && mapping.len % LINE == 1);
        let room = room.ok_or_else(|| refused("its size is not that of a ring"))?;
        let mut map = Map { mapping, capacity: room };
        if map[HEADER_LINE].words[0].load(Relaxed) != MAGIC {
            return Err(refused("its magic number is not that of a ring"));
        }
        // The capacity is read only once, because another holder of the ring may change the word later.
        map.capacity = usize::try_from(map[HEADER_LINE].words[1].load(Relaxed))
            .ok()
            .filter(|capacity| (1..=room).contains(capacity))
            .ok_or_else(|| refused("its stated size is larger than its memory"))?;
        Ok(map)
    }

    /// The size of the ring in bytes.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Requests huge pages. The system provides them for shared memory only if an administrator has allowed it.
    pub(super) fn advise(&self, pages: Pages) {
        if pages == Pages::Huge {
            // SAFETY: the range is ours, and this advice doesn't change its content.
            let _ = unsafe { madvise(self.mapping.start.as_ptr().cast(), self.mapping.len, Advice::LinuxHugepage) };
        }
    }

    /// The address of the ring's first byte. From there on, as many bytes as the capacity are mapped, readable and
    /// writable while the map lives.
    pub(super) fn start(&self) -> NonNull<u8> {
        // SAFETY: the mapping is longer than a page, so the address is within it.
        unsafe { self.mapping.start.add(page_size()) }
    }
}

impl Deref for Map {
    type Target = [CacheLine];

    #[inline]
    fn deref(&self) -> &[CacheLine] {
        // SAFETY: the mapping is longer than a page, and its first page is used only for these lines.
        unsafe { self.mapping.lines(HEADER_LINE + 1) }
    }
}
