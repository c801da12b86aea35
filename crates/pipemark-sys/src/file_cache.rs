//! Drops a file's pages from memory, so that the file is read from storage again, and counts the pages in memory.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::null_mut;

use rustix::fs::{Advice, fadvise, fdatasync};

use crate::result_of;

/// Bytes of a file queried in one call. With pages of 4 KiB, the kernel's answer has 256 KiB.
const PIECE: u64 = 1 << 30;

/// The number of a file's pages, and the number of those pages that are in memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CachedPages {
    /// Pages in memory.
    pub cached: u64,
    /// The file's size in pages.
    pub all: u64,
}

/// Writes a file's changes back and asks the kernel to drop the file's pages with posix_fadvise(2), which needs no
/// privileges. The kernel keeps pages that other processes map or lock; [`count`] returns how many remain.
///
/// # Errors
/// When the file can't be written back.
pub fn drop_pages(file: &File) -> io::Result<()> {
    fdatasync(file)?;
    Ok(fadvise(file, 0, None, Advice::DontNeed)?)
}

/// Counts the file's pages with mincore(2). Since Linux 5.2, mincore reports all pages as in memory to a process that
/// neither owns the file nor may write to it.
///
/// # Errors
/// When the file can't be mapped: a pipe or a directory, for example.
pub fn count(file: &File) -> io::Result<CachedPages> {
    let (length, page) = (file.metadata()?.len(), rustix::param::page_size() as u64);
    let mut pages = CachedPages { cached: 0, all: length.div_ceil(page) };
    let mut answers = Vec::new();
    for from in (0..length).step_by(PIECE as usize) {
        let bytes = (length - from).min(PIECE) as usize;
        answers.resize(bytes.div_ceil(page as usize), 0u8);
        let offset = libc::off_t::try_from(from).map_err(io::Error::other)?;
        let flags = (libc::PROT_READ, libc::MAP_SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing; it is never read.
        let map = unsafe { libc::mmap(null_mut(), bytes, flags.0, flags.1, file.as_raw_fd(), offset) };
        if map == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the mapping has `bytes` bytes, and `answers` has a byte for each of its pages.
        let asked = result_of(unsafe { libc::mincore(map, bytes, answers.as_mut_ptr()) });
        // SAFETY: `map` and `bytes` are the start and the length of a whole mapping, which only this call of `count`
        // knows. No reference to its memory was made, and nothing uses `map` after this call.
        unsafe { libc::munmap(map, bytes) };
        asked?;
        pages.cached += answers.iter().filter(|answer| **answer & 1 == 1).count() as u64;
    }
    Ok(pages)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// Creates a file in memory, without a name.
    fn unnamed() -> File {
        File::from(rustix::fs::memfd_create("pages", rustix::fs::MemfdFlags::CLOEXEC).unwrap())
    }

    #[test]
    fn written_pages_are_cached_and_counted() {
        let mut file = unnamed();
        assert_eq!(count(&file).unwrap(), CachedPages::default());
        let page = rustix::param::page_size();
        file.write_all(&vec![1; 3 * page + 1]).unwrap();
        assert_eq!(count(&file).unwrap(), CachedPages { cached: 4, all: 4 });
        drop_pages(&file).unwrap();
        // The pages of a file in memory can't be dropped.
        assert_eq!(count(&file).unwrap().cached, 4);
    }

    #[test]
    fn a_file_without_pages_is_an_error() {
        let (reader, _writer) = std::io::pipe().unwrap();
        let reader = File::from(std::os::fd::OwnedFd::from(reader));
        assert!(drop_pages(&reader).is_err());
    }
}
