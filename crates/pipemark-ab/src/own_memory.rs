//! Lowers this process's resident memory before it starts a child. The kernel counts the memory that a process had when
//! it started a child in the child's peak.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;

use crate::result_of;

/// Memory that starting a child may add to what [`OwnMemory::lower`] has read, in bytes.
const ADDED_BY_START: u64 = 128 << 10;

/// The resident memory of this process.
#[derive(Debug)]
pub struct OwnMemory {
    /// /proc/self/clear_refs; `None` if the kernel lacks it or refuses it.
    peak: Option<File>,
}

impl OwnMemory {
    /// Drops the pages of the program's code. Those that are still needed are mapped again on first use, from the page
    /// cache.
    pub fn new() -> OwnMemory {
        // Without this, only more memory is resident.
        let _ = drop_code();
        OwnMemory { peak: OpenOptions::new().write(true).open("/proc/self/clear_refs").ok() }
    }

    /// Makes the present memory the peak, and returns the memory in bytes that the kernel may count in the peak of a
    /// child started now.
    pub fn lower(&mut self) -> u64 {
        // proc(5): writing 5 resets the peak resident memory to the present value.
        let lowered = self.peak.as_mut().is_some_and(|file| file.write_all(b"5").is_ok());
        let peak = || crate::usage::Usage::now().peak_bytes;
        let resident =
            || Some(std::fs::read_to_string("/proc/self/statm").ok()?.split(' ').nth(1)?.parse::<u64>().ok()? * page());
        if lowered { resident().map_or_else(peak, |bytes| bytes + ADDED_BY_START) } else { peak() }
    }
}

impl Default for OwnMemory {
    fn default() -> Self {
        OwnMemory::new()
    }
}

fn page() -> u64 {
    rustix::param::page_size() as u64
}

/// Drops the pages of the mappings that have the program's code.
fn drop_code() -> io::Result<()> {
    let program = std::fs::metadata("/proc/self/exe")?.ino().to_string();
    for line in std::fs::read_to_string("/proc/self/maps")?.lines() {
        // 5559c0a00000-5559c0f00000 r-xp 00200000 fe:01 1234 /usr/bin/pipemark
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [range, "r-xp", _, _, inode, ..] = fields[..] else { continue };
        let ends = range.split_once('-').map(|ends| [ends.0, ends.1].map(|end| usize::from_str_radix(end, 16)));
        if let (Some([Ok(start), Ok(end)]), true) = (ends, inode == program) {
            // SAFETY: the mapping is private, of a file, and can't be written, so the kernel reads the same bytes from the
            // file when they are used again. The file of a running program can't be written either (ETXTBSY).
            result_of(unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_DONTNEED) })?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rustix::process::Pid;

    use super::*;
    use crate::usage::{WaitMode, reap};

    #[test]
    fn a_child_is_not_charged_with_memory_that_was_freed_before() {
        let mut own = OwnMemory::new();
        drop(std::hint::black_box(vec![1u8; 64 << 20]));
        let bound = own.lower();
        let child = std::process::Command::new("true").spawn().unwrap();
        let (status, usage) = reap(Pid::from_child(&child), WaitMode::Block).unwrap().unwrap();
        assert!(status.success());
        assert!(own.peak.is_none() || usage.peak_bytes <= bound.max(32 << 20), "{} {bound}", usage.peak_bytes);
    }
}
