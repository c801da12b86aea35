//! Counters and gates shared by several processes: cache lines of atomics in a memfd without a name.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::fs::{
    FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create,
};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// One cache line: a word to wait on with futex(2), and seven counters. A process that counts in a separate line
/// doesn't slow down other processes.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct CacheLine {
    /// The word to wait on.
    pub gate: AtomicU32,
    reserved: u32,
    /// The counters.
    pub words: [AtomicU64; 7],
}

/// A memfd without a name, mapped by every process that holds its descriptor. Its size is sealed, so that no holder can
/// shrink it and make another process fault.
#[derive(Debug)]
pub(crate) struct SharedMapping {
    pub(crate) start: NonNull<u8>,
    pub(crate) len: usize,
}

// SAFETY: the mapping has one owner, and isn't tied to the thread that created it.
unsafe impl Send for SharedMapping {}
// SAFETY: references are made only to lines. Lines consist of atomics, so several threads may use the mapping at the
// same time.
unsafe impl Sync for SharedMapping {}

impl SharedMapping {
    /// Creates a memfd of `len` zeroed bytes. With MAP_POPULATE in `flags`, all its memory is allocated now.
    pub(crate) fn create(len: usize, flags: MapFlags) -> io::Result<(OwnedFd, SharedMapping)> {
        let fd = memfd_create("pipemark", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&fd, len as u64)?;
        if flags.contains(MapFlags::POPULATE) {
            // If memory is lacking, this returns an error. Without this call, a lack of memory would kill the process
            // that first touches a page.
            fallocate(&fd, FallocateFlags::empty(), 0, len as u64)?;
        }
        fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let mapping = SharedMapping::open(&fd, flags, "what was made")?;
        Ok((fd, mapping))
    }

    /// Maps a memfd that another process created. `what` is the name of its content for the error message.
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

    /// The first `count` lines of the mapping.
    ///
    /// # Safety
    /// The lines fit into the mapping, and their memory is used only for lines.
    #[inline]
    pub(crate) unsafe fn lines(&self, count: usize) -> &[CacheLine] {
        // SAFETY: the caller promises that the lines fit into the mapping, which lives as long as `self`. The mapping's
        // size is sealed, so nobody can shrink it. mmap returns page-aligned memory, which is also aligned for a line.
        // Any content is a valid value of atomics, and other processes may write to atomics.
        unsafe { slice::from_raw_parts(self.start.as_ptr().cast(), count) }
    }
}

impl Drop for SharedMapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and of this length, and no borrow of it outlives `self`.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// The error for a descriptor of something other than `what`.
pub(crate) fn refused(what: &str, why: &str) -> io::Error {
    crate::invalid(format!("not {what}: {why}"))
}

/// Cache lines in shared memory, mapped by every process that holds the descriptor.
#[derive(Debug)]
pub struct Shared(SharedMapping);

/// The maximum number of lines of one mapping: 1 MiB.
pub const MAX_LINES: usize = 16 << 10;

impl Shared {
    /// Creates `lines` zeroed lines in a memfd without a name. The memfd's size is sealed, so that no holder can shrink
    /// it and cause a fault in another process.
    ///
    /// # Errors
    /// If there is no memory or no descriptor for the lines. `InvalidInput` for 0 lines or for more than [`MAX_LINES`].
    pub fn create(lines: usize) -> io::Result<(OwnedFd, Shared)> {
        if !(1..=MAX_LINES).contains(&lines) {
            return Err(crate::invalid(format!("{lines} shared lines; use 1 to {MAX_LINES}")));
        }
        let (fd, mapping) = SharedMapping::create(lines * size_of::<CacheLine>(), MapFlags::empty())?;
        Ok((fd, Shared(mapping)))
    }

    /// Maps lines that another process created.
    ///
    /// # Errors
    /// If `fd` is not a descriptor of memory that [`Shared::create`] created.
    pub fn open(fd: impl AsFd) -> io::Result<Shared> {
        let mapping = SharedMapping::open(fd, MapFlags::empty(), "shared lines")?;
        // Only a mapping of lines has such a length, and the length can't change. So every process that opens this
        // memory uses it only for lines.
        if !mapping.len.is_multiple_of(size_of::<CacheLine>()) || mapping.len > MAX_LINES * size_of::<CacheLine>() {
            return Err(refused("shared lines", "its size is not that of shared lines"));
        }
        Ok(Shared(mapping))
    }
}

impl std::ops::Deref for Shared {
    type Target = [CacheLine];

    fn deref(&self) -> &[CacheLine] {
        // SAFETY: the number of lines is rounded down, so the lines fit into the mapping. `open` and `create` accept
        // only memory that is used only for lines.
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
    fn memory_that_could_shrink_is_refused() {
        let fd = memfd_create("t", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&fd, 64).unwrap();
        assert!(Shared::open(&fd).is_err());
    }
}
