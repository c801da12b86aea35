//! The memory that the kernel counts in the peak of a command before the command has done anything. Of a prepared child
//! (`PreparedChild`), that is 12 to 76 KiB. Where children can't be prepared, it is what pipemark had at its own peak
//! before it started the command. That peak is reset before each run, so that it doesn't include what judging the previous
//! runs took.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::AsFd;
use std::process::Command;

use pipemark_host::child::{PreparedChild, ProcessGroup};
use pipemark_sys::usage::Usage;

use crate::pipeline::PipelineRun;

/// Memory in bytes that starting a command may add to what [`OwnMemory::reset_peak`] has read.
const ADDED_BY_START: u64 = 128 << 10;

/// The peak memory of this process.
#[derive(Debug)]
pub struct OwnMemory {
    /// /proc/self/clear_refs; `None` if the kernel lacks it or refuses it.
    reset: Option<File>,
    /// The peak of a prepared child that executes nothing, in bytes; `None` where there are none.
    of_prepared: Option<u64>,
}

impl OwnMemory {
    pub fn new() -> OwnMemory {
        OwnMemory {
            reset: OpenOptions::new().write(true).open("/proc/self/clear_refs").ok(),
            of_prepared: peak_of_prepared(),
        }
    }

    /// The memory in bytes that the kernel counts in the peak of a run. `present` is what [`OwnMemory::reset_peak`]
    /// returned before it.
    pub fn counted_in(&self, run: &PipelineRun, present: u64) -> u64 {
        self.of_prepared.filter(|_| run.has_own_peak).unwrap_or(present)
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

/// The peak memory in bytes of a prepared child that ends without executing its program.
fn peak_of_prepared() -> Option<u64> {
    let null = File::open("/dev/null").ok()?;
    let streams = [null.as_fd(), null.as_fd(), null.as_fd()];
    let program = &mut Command::new("/nowhere");
    let child = PreparedChild::prepare("probe", program, streams, ProcessGroup::Own).ok()??;
    let mut child = child.abandon();
    child.end_now().ok()?;
    child.end().map(|(_, usage)| usage.peak_bytes)
}

/// The present memory of this process in bytes.
fn resident() -> Option<u64> {
    let pages: u64 = std::fs::read_to_string("/proc/self/statm").ok()?.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use pipemark_host::child::Child;

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

    /// The floor of the figure is far below what the smallest programs use.
    #[test]
    fn a_prepared_child_has_little_memory() {
        let Some(peak) = OwnMemory::new().of_prepared else { return };
        assert!((1..512 << 10).contains(&peak), "{peak}");
    }
}
