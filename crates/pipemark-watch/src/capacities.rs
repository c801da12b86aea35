//! Reads and sets the capacities of a pipeline's pipes, and this machine's limits.

use std::time::{Duration, Instant};

use pipemark_causes::MachineLimits;
use pipemark_proc::capacity;
use pipemark_proc::process::PipeId;
use rustix::io::Errno;

use crate::pipeline::WatchedPipeline;
use crate::pipeline::pipe::WatchedPipe;

/// A younger pipe isn't opened to read its capacity, because the pipeline may be short and about to end.
const MIN_AGE_TO_OPEN: Duration = Duration::from_millis(200);

/// The maximum number of pipes that are opened at once to read their capacities.
const MAX_OPENED: usize = 16;

/// This machine's limits for pipes.
pub fn limits() -> MachineLimits {
    /// The default capacity of a pipe, on pages of 4 KiB.
    const DEFAULT: usize = 64 << 10;
    let largest = std::fs::read_to_string("/proc/sys/fs/pipe-max-size").ok().and_then(|text| text.trim().parse().ok());
    let pipe = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).ok();
    let granted = pipe.and_then(|(reader, _writer)| rustix::pipe::fcntl_getpipe_size(&reader).ok());
    MachineLimits {
        largest_pipe: largest.unwrap_or(1 << 20),
        pipes_exhausted: granted.is_some_and(|bytes| bytes < DEFAULT),
        page: rustix::param::page_size() as u64,
        cpus: std::thread::available_parallelism().map_or(0, usize::from),
        memory_limited: pipemark_host::memory_is_limited(),
        ..MachineLimits::default()
    }
}

/// Reads the capacities of pipes that have existed for a while, each once.
pub fn read_capacities(pipeline: &mut WatchedPipeline, now: Instant) {
    let due = |pipe: &&mut WatchedPipe| pipe.unread_since.is_some_and(|since| now >= since + MIN_AGE_TO_OPEN);
    let unread = pipeline.pipes.iter_mut().filter(due).filter(|pipe| pipeline.options.touch && pipe.capacity.is_none());
    for pipe in unread.take(MAX_OPENED) {
        pipe.unread_since = None;
        let holders = pipeline.stages[pipe.to].pids.iter().filter_map(|pid| pipeline.known.get(pid));
        pipe.capacity = holders.filter_map(|known| capacity::read(&known.process, pipe.id)).next();
    }
}

/// Sets the capacity of a pipe through its reader's end. Returns the new capacity in bytes; `None` if no process
/// reads the pipe any more.
pub fn resize(pipeline: &WatchedPipeline, id: PipeId, bytes: u64) -> Option<Result<u64, Errno>> {
    let bytes = usize::try_from(bytes).ok()?;
    pipeline.known.values().find_map(|known| capacity::set(&known.process, id, bytes))
}
