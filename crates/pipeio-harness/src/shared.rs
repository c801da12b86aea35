//! Counters and gates that several processes share: cache lines of atomics in a memfd that has no name.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::fs::{
    FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create,
};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// One cache line: a word to wait on with futex(2) and seven counters. Lines never share a cache line, so a process that
/// counts in its own line slows nobody.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct CacheLine {
    /// The word to wait on.
    pub gate: AtomicU32,
    reserved: u32,
    /// The counters.
    pub words: [AtomicU64; 7],
}

/// Memory in a memfd without a name, mapped by every process that holds the descriptor. Its size is sealed, so that no
/// holder can make another one fault.
#[derive(Debug)]
pub(crate) struct SharedMapping {
    pub(crate) start: NonNull<u8>,
    pub(crate) len: usize,
}

// SAFETY: a mapping is owned, and nothing in it is tied to the thread that made it.
unsafe impl Send for SharedMapping {}
// SAFETY: references are made to lines only, which consist of atomics, so several threads may use one at a time.
unsafe impl Sync for SharedMapping {}

impl SharedMapping {
    /// Makes a memfd of `len` zeroed bytes, which are all taken now if it is to be populated.
    pub(crate) fn create(len: usize, flags: MapFlags) -> io::Result<(OwnedFd, SharedMapping)> {
        let fd = memfd_create("pipemark", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&fd, len as u64)?;
        if flags.contains(MapFlags::POPULATE) {
            // Now, and as an error: a page that could not be had later would kill whoever touches it.
            fallocate(&fd, FallocateFlags::empty(), 0, len as u64)?;
        }
        fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let mapping = SharedMapping::open(&fd, flags, "what was made")?;
        Ok((fd, mapping))
    }

    /// Maps the memfd that another process made as `what`.
    pub(crate) fn open(fd: impl AsFd, flags: MapFlags, what: &str) -> io::Result<SharedMapping> {
        if !fcntl_get_seals(&fd).is_ok_and(|seals| seals.contains(SealFlags::SHRINK | SealFlags::GROW)) {
            return Err(refused(what, "its size is not sealed"));
        }
        let len = usize::try_from(fstat(&fd)?.st_size).ok().filter(|&len| len > 0);
        let len = len.ok_or_else(|| refused(what, "it has no size"))?;
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | flags);
        // SAFETY: a new shared mapping at an address of the kernel's choice overlaps nothing.
        let start = unsafe { mmap(ptr::null_mut(), len, access, flags, fd, 0)? };
        Ok(SharedMapping { start: NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?, len })
    }

    /// The lines that it begins with.
    ///
    /// # Safety
    /// This number fits, and nothing but lines is ever made of their memory.
    #[inline]
    pub(crate) unsafe fn lines(&self, count: usize) -> &[CacheLine] {
        // SAFETY: they fit into the mapping, as the caller says, which lives as long as `self`; its size is sealed, so it
        // cannot be taken away under us; mmap returns page-aligned memory, which suits a line; any content is a valid value
        // of atomics, and other processes' writes are allowed to them.
        unsafe { slice::from_raw_parts(self.start.as_ptr().cast(), count) }
    }
}

impl Drop for SharedMapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no borrow of it outlives `self`.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// That a descriptor is not of what it should be.
pub(crate) fn refused(what: &str, why: &str) -> io::Error {
    crate::invalid(format!("not {what}: {why}"))
}

/// Lines mapped by every process that holds the descriptor.
#[derive(Debug)]
pub struct Shared(SharedMapping);

/// The most lines one mapping may have: 1 MiB.
pub const MAX_LINES: usize = 16 << 10;

impl Shared {
    /// Makes `lines` zeroed lines in an unnamed memfd, sealed against any change of size, so that no holder can make
    /// another one fault.
    ///
    /// # Errors
    /// When the memory or the descriptor cannot be had, or for 0 or more than [`MAX_LINES`] lines.
    pub fn create(lines: usize) -> io::Result<(OwnedFd, Shared)> {
        if !(1..=MAX_LINES).contains(&lines) {
            return Err(crate::invalid(format!("{lines} shared lines; use 1 to {MAX_LINES}")));
        }
        let (fd, mapping) = SharedMapping::create(lines * size_of::<CacheLine>(), MapFlags::empty())?;
        Ok((fd, Shared(mapping)))
    }

    /// Maps the lines that another process made.
    ///
    /// # Errors
    /// When `fd` is not a descriptor that [`Shared::create`] made.
    pub fn open(fd: impl AsFd) -> io::Result<Shared> {
        let mapping = SharedMapping::open(fd, MapFlags::empty(), "shared lines")?;
        // Other memory than lines never has such a length, and no length can change: so of this memory there are lines and
        // nothing else, whoever opens it as what.
        if !mapping.len.is_multiple_of(size_of::<CacheLine>()) || mapping.len > MAX_LINES * size_of::<CacheLine>() {
            return Err(refused("shared lines", "it is not a whole number of lines"));
        }
        Ok(Shared(mapping))
    }
}

impl std::ops::Deref for Shared {
    type Target = [CacheLine];

    fn deref(&self) -> &[CacheLine] {
        // SAFETY: as many lines as fit, and of nothing else is the memory.
        unsafe { self.0.lines(self.0.len / size_of::<CacheLine>()) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    #[test]
    fn both_mappings_see_the_same_words() {
        let (fd, ours) = Shared::create(3).unwrap();
        let theirs = Shared::open(&fd).unwrap();
        ours[2].words[6].store(42, Relaxed);
        assert_eq!(theirs[2].words[6].load(Relaxed), 42);
        assert_eq!(theirs.len(), 3);
    }

    #[test]
    fn the_memory_of_a_ring_is_refused() {
        for bytes in [1, 64, 128, 4096 - 64, 4096, 65536, MAX_LINES * 64] {
            let ring = crate::ring::create(bytes, 1).unwrap();
            assert_eq!(Shared::open(&ring).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{bytes}");
            let (lines, _) = Shared::create(MAX_LINES.min(bytes)).unwrap();
            assert_eq!(crate::ring::capacity(&lines).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{bytes}");
        }
    }

    #[test]
    fn what_could_shrink_is_refused() {
        let fd = memfd_create("t", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&fd, 64).unwrap();
        assert!(Shared::open(&fd).is_err());
    }
}
