//! Counters and gates that several processes share: cache lines of atomics in a memfd that has no name.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// One cache line: a word to wait on with futex(2) and seven counters. Lines never share a cache line, so a process that
/// counts in its own line slows nobody.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Line {
    /// The word to wait on.
    pub gate: AtomicU32,
    reserved: u32,
    /// The counters.
    pub words: [AtomicU64; 7],
}

/// Lines mapped by every process that holds the descriptor.
#[derive(Debug)]
pub struct Shared {
    memory: NonNull<Line>,
    lines: usize,
}

// SAFETY: all access goes through `&[Line]`, which consists of atomics.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

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
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{lines} shared lines; use 1 to {MAX_LINES}"),
            ));
        }
        let fd = memfd_create("pipemark", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&fd, (lines * size_of::<Line>()) as u64)?;
        fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let shared = Shared::open(&fd)?;
        Ok((fd, shared))
    }

    /// Maps the lines that another process made.
    ///
    /// # Errors
    /// When `fd` is not a descriptor that [`Shared::create`] made.
    pub fn open(fd: impl AsFd) -> io::Result<Shared> {
        let refused = |why: &str| io::Error::new(io::ErrorKind::InvalidInput, format!("not shared lines: {why}"));
        if !fcntl_get_seals(&fd).is_ok_and(|seals| seals.contains(SealFlags::SHRINK | SealFlags::GROW)) {
            return Err(refused("its size is not sealed"));
        }
        let bytes = usize::try_from(fstat(&fd)?.st_size).map_err(|_| refused("its size is negative"))?;
        let lines = bytes / size_of::<Line>();
        if bytes % size_of::<Line>() != 0 || !(1..=MAX_LINES).contains(&lines) {
            return Err(refused("it is not a whole number of lines"));
        }
        // SAFETY: a new shared mapping at an address of the kernel's choice overlaps nothing.
        let address =
            unsafe { mmap(ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, fd, 0)? };
        let memory = NonNull::new(address.cast::<Line>()).ok_or_else(|| refused("no address"))?;
        Ok(Shared { memory, lines })
    }
}

impl std::ops::Deref for Shared {
    type Target = [Line];

    fn deref(&self) -> &[Line] {
        // SAFETY: the mapping has this many lines and lives as long as `self`; its size is sealed, so it cannot be taken
        // away under us; mmap returns page-aligned memory, which suits a line; any content is a valid value of atomics,
        // and other processes' writes are allowed to them.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr(), self.lines) }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no borrow of it outlives `self`.
        let _ = unsafe { munmap(self.memory.as_ptr().cast(), self.lines * size_of::<Line>()) };
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
    fn what_could_shrink_is_refused() {
        let fd = memfd_create("t", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&fd, 64).unwrap();
        assert!(Shared::open(&fd).is_err());
    }
}
