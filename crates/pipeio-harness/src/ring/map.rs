//! The memory of a ring: the lines of the handover, a line that says how large it is, and from the next page on the bytes.

use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::Relaxed;

use rustix::fs::{
    FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create,
};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

use crate::handover::LINES;
use crate::shared::Line;
use pipeio::memory::{Pages, page_size};

/// The line with the words "this is a ring" and "its capacity".
const ABOUT: usize = LINES;
const MAGIC: u64 = u64::from_le_bytes(*b"pipering");

const _: () = assert!((ABOUT + 1) * size_of::<Line>() <= 4096, "all lines are on one page of any size");

pub(crate) struct Map {
    memory: NonNull<u8>,
    mapped: usize,
    capacity: usize,
}

// SAFETY: a map owns its mapping; nothing in it is tied to the thread that made it.
unsafe impl Send for Map {}

impl Map {
    pub(super) fn create(bytes: usize, slot: usize) -> io::Result<OwnedFd> {
        if slot == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a block has at least one byte"));
        }
        let too_large = || io::Error::new(io::ErrorKind::OutOfMemory, format!("a ring of {bytes} bytes is too large"));
        let capacity = slot
            .checked_mul(2)
            .and_then(|two| bytes.max(two).checked_next_multiple_of(slot))
            .filter(|&capacity| isize::try_from(capacity).is_ok())
            .ok_or_else(too_large)?;
        let total = capacity.checked_add(page_size()).ok_or_else(too_large)?;
        let fd = memfd_create("pipemark", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&fd, total as u64)?;
        // Now, and as an error: a page that could not be had later would kill whoever touches it.
        fallocate(&fd, FallocateFlags::empty(), 0, total as u64)?;
        fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let map = Map::new(&fd, total, capacity)?;
        map[ABOUT].words[1].store(capacity as u64, Relaxed);
        map[ABOUT].words[0].store(MAGIC, Relaxed);
        Ok(fd)
    }

    pub(super) fn open(fd: impl AsFd) -> io::Result<Map> {
        let refused = |why: &str| io::Error::new(io::ErrorKind::InvalidInput, format!("not a ring: {why}"));
        if !fcntl_get_seals(&fd).is_ok_and(|seals| seals.contains(SealFlags::SHRINK | SealFlags::GROW)) {
            return Err(refused("its size is not sealed"));
        }
        let total = usize::try_from(fstat(&fd)?.st_size).map_err(|_| refused("its size is negative"))?;
        let room = total.checked_sub(page_size()).filter(|&room| room > 0).ok_or_else(|| refused("it is too small"))?;
        let mut map = Map::new(&fd, total, room)?;
        if map[ABOUT].words[0].load(Relaxed) != MAGIC {
            return Err(refused("it does not say so"));
        }
        // Read once: whoever else holds the ring may change the word, but not what we go by.
        map.capacity = usize::try_from(map[ABOUT].words[1].load(Relaxed))
            .ok()
            .filter(|capacity| (1..=room).contains(capacity))
            .ok_or_else(|| refused("it says that it is larger than it is"))?;
        Ok(map)
    }

    fn new(fd: impl AsFd, total: usize, capacity: usize) -> io::Result<Map> {
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: a new shared mapping at an address of the kernel's choice overlaps nothing.
        let address = unsafe { mmap(ptr::null_mut(), total, ProtFlags::READ | ProtFlags::WRITE, flags, fd, 0)? };
        let memory = NonNull::new(address.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Map { memory, mapped: total, capacity })
    }

    /// Bytes in the ring.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Asks for huge pages, which the system gives to shared memory only where an administrator allowed it.
    pub(super) fn advise(&self, pages: Pages) {
        if pages == Pages::Huge {
            // SAFETY: the range is ours, and this advice does not change its content.
            let _ = unsafe { madvise(self.memory.as_ptr().cast(), self.mapped, Advice::LinuxHugepage) };
        }
    }

    /// The first byte of the ring; as many as the capacity are mapped from there on, readable and writable while the map
    /// lives.
    pub(super) fn start(&self) -> NonNull<u8> {
        // SAFETY: the mapping is longer than a page.
        unsafe { self.memory.add(page_size()) }
    }
}

impl Deref for Map {
    type Target = [Line];

    fn deref(&self) -> &[Line] {
        // SAFETY: the first page of the mapping holds these lines and no other data, and lives as long as `self`; its size
        // is sealed, so it cannot be taken away under us; mmap returns page-aligned memory, which suits a line; any content
        // is a valid value of atomics, and other processes' writes are allowed to them.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr().cast(), ABOUT + 1) }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no borrow of it outlives `self`.
        let _ = unsafe { munmap(self.memory.as_ptr().cast(), self.mapped) };
    }
}
