//! What is watched, and how.

use std::time::Duration;

use pipemark_proc::thread::ProcFile;

/// What to watch.
#[derive(Debug, Clone)]
pub enum Subject {
    /// A command that this program started: its process and all descendants.
    Child(u32),
    /// The pipelines that these processes are in, with all processes that pipes join to them.
    Processes(Vec<u32>),
}

/// Options of sampling.
#[derive(Debug, Clone, Copy)]
pub struct SamplingOptions {
    /// Whether to open each pipe once to read its capacity.
    pub touch: bool,
    /// The most detailed file of /proc to read.
    pub access: ProcFile,
    /// Whether to sample what the busiest stages execute.
    pub profile: bool,
    /// Whether to keep the stacks of these samples, for flame graphs.
    pub keeps_stacks: bool,
    /// The default time between two samples.
    pub period: Duration,
}
