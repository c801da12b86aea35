//! Recordings of what passed through the pipes: private memory that vanishes with this process.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::process;

use rustix::fs::{MemfdFlags, memfd_create};

/// The bytes that passed one pipe.
#[derive(Debug)]
pub struct Recording {
    file: File,
}

impl Recording {
    /// An empty recording.
    ///
    /// # Errors
    /// If no descriptor is available.
    pub fn new(name: &str) -> io::Result<Recording> {
        let memory: OwnedFd = memfd_create(name, MemfdFlags::CLOEXEC)?;
        Ok(Recording { file: memory.into() })
    }

    /// A path by which a process of the same user can open the recording.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", process::id(), self.file.as_raw_fd())
    }

    /// The number that a part counted; `None` if it didn't end as planned.
    pub fn counted(&self) -> Option<u64> {
        let mut bytes = [0; 8];
        self.file.read_exact_at(&mut bytes, 0).ok()?;
        Some(u64::from_le_bytes(bytes))
    }

    /// The number of bytes recorded.
    pub fn length(&self) -> u64 {
        self.file.metadata().map_or(0, |metadata| metadata.len())
    }
}

/// The memory that recordings may take together by default: 256 MiB, or a tenth of the machine's memory if that is
/// less.
pub fn default_limit() -> u64 {
    const MOST: u64 = 256 << 20;
    let system = rustix::system::sysinfo();
    (system.totalram.saturating_mul(system.mem_unit.into()) / 10).min(MOST)
}
