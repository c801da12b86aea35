//! `--pipeline-memory`: samples the memory of all processes of a command together. The kernel records a peak for each
//! process, but none for several processes together.

use std::fs;
use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::param::page_size;
use rustix::process::Pid;

use pipemark_proc::process::family;

/// The sampling interval. A sample takes some 20 µs per process.
const INTERVAL: Duration = Duration::from_millis(5);

/// A thread that samples until the peak is requested.
pub struct MemorySampler {
    stop: Sender<()>,
    thread: JoinHandle<Option<u64>>,
}

impl MemorySampler {
    /// Samples these processes and all of their descendants. They must not be reaped before the peak is requested,
    /// because their pids might be reused.
    ///
    /// # Errors
    /// When no thread is available.
    pub fn start(roots: Vec<Pid>) -> io::Result<MemorySampler> {
        let (stop, stopped) = channel();
        let thread = thread::Builder::new().spawn(move || {
            let mut peak = None;
            loop {
                peak = peak.max(sample(&roots));
                if stopped.recv_timeout(INTERVAL) != Err(RecvTimeoutError::Timeout) {
                    return peak;
                }
            }
        })?;
        Ok(MemorySampler { stop, thread })
    }

    /// The peak memory of all processes together, in bytes; `None` where the kernel doesn't report it.
    pub fn peak(self) -> Option<u64> {
        drop(self.stop);
        self.thread.join().ok().flatten()
    }
}

/// Bytes of memory that the processes and their descendants hold now, without files, which they may share. `None` where
/// the kernel doesn't report it.
fn sample(roots: &[Pid]) -> Option<u64> {
    let mut sum = None;
    for pid in roots.iter().flat_map(|root| family(root.as_raw_nonzero().get().cast_unsigned())) {
        // A process that has just exited has no memory.
        if let Some(bytes) = own_bytes(pid) {
            sum = Some(sum.unwrap_or(0) + bytes);
        }
    }
    sum
}

/// Bytes of a process's resident pages, less those of files and shared memory: proc(5), `statm`. `None` if it has
/// exited.
fn own_bytes(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let mut pages = text.split_whitespace().skip(1).map_while(|word| word.parse::<u64>().ok());
    let (resident, shared) = (pages.next()?, pages.next()?);
    Some(resident.saturating_sub(shared) * page_size() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory_and_a_missing_process_has_none() {
        let memory = vec![1u8; 8 << 20];
        assert!(sample(&[rustix::process::getpid()]).unwrap() >= memory.len() as u64);
        assert_eq!(sample(&[Pid::from_raw(i32::MAX).unwrap()]), None);
        let sampler = MemorySampler::start(vec![rustix::process::getpid()]).unwrap();
        assert!(sampler.peak().unwrap() >= memory.len() as u64);
    }
}
