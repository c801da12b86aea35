//! pipemark's own memory, which the kernel counts in the peak of a command: that which pipemark had at its own peak
//! before it started the command. The peak is reset before each run, so that it doesn't include what judging the
//! previous runs took.

use std::fs::{File, OpenOptions};
use std::io::Write;

use pipemark_sys::usage::Usage;

/// Memory in bytes that starting a command may add to what [`OwnMemory::reset_peak`] has read.
const ADDED_BY_START: u64 = 128 << 10;

/// The peak memory of this process.
#[derive(Debug)]
pub struct OwnMemory {
    /// /proc/self/clear_refs; `None` if the kernel lacks it or refuses it.
    reset: Option<File>,
}

impl OwnMemory {
    pub fn new() -> OwnMemory {
        OwnMemory { reset: OpenOptions::new().write(true).open("/proc/self/clear_refs").ok() }
    }

    /// Makes the present memory the peak. Returns the memory in bytes that the kernel may count in the peak of a command
    /// started now.
    pub fn reset_peak(&mut self) -> u64 {
        let peak = || Usage::now().peak_bytes;
        // proc(5): writing 5 resets the peak.
        let is_reset = self.reset.as_mut().is_some_and(|file| file.write_all(b"5").is_ok());
        let present = resident().filter(|_| is_reset);
        present.map_or_else(peak, |bytes| bytes + ADDED_BY_START)
    }
}

/// The present memory of this process in bytes.
fn resident() -> Option<u64> {
    let pages: u64 = std::fs::read_to_string("/proc/self/statm").ok()?.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::{Duration, Instant};

    use pipemark_host::child::{Child, ProcessGroup};

    use super::*;

    #[test]
    fn memory_that_was_freed_before_is_not_counted_in_a_commands_peak() {
        let mut own = OwnMemory::new();
        drop(std::hint::black_box(vec![1u8; 256 << 20]));
        let bound = own.reset_peak();
        let mut child = Child::start("true", &mut Command::new("true"), ProcessGroup::Own).unwrap();
        assert!(child.wait(Instant::now() + Duration::from_secs(60), None).unwrap());
        let (_, usage) = child.end().unwrap();
        assert!(own.reset.is_none() || bound.max(usage.peak_bytes) < 128 << 20, "{} {bound}", usage.peak_bytes);
    }
}
