//! A stage of a watched pipeline, as scans find it.

use std::collections::BTreeSet;
use std::time::Instant;

use pipemark_causes::exact_text::ExactText;
use pipemark_causes::interval::Interval;
use pipemark_proc::process::PipeId;
use pipemark_proc::state::{ThreadState, ThreadWait};

/// A stage. Each scan updates it.
#[derive(Debug, Clone, Default)]
pub struct WatchedStage {
    pub name: String,
    pub command: String,
    pub pids: Vec<u32>,
    pub ins: Vec<PipeId>,
    pub outs: Vec<PipeId>,
    /// Pipes that the stage both reads and writes, such as the queues of a worker pool.
    pub inner: BTreeSet<PipeId>,
    /// All other pipes that the stage holds.
    pub outer: BTreeSet<PipeId>,
    /// The maximum number of processes that the stage had at once.
    pub processes: usize,
    /// The maximum number of threads that the stage had at once.
    pub threads: usize,
    /// The number of threads at the last scan.
    pub threads_now: usize,
    /// Whether the files of the stage's processes are unreadable.
    pub hidden: bool,
    pub alive: bool,
    /// How often this was updated.
    pub updates: u32,
    /// How often new processes have continued the stage, whose counters begin at 0.
    pub restarts: u32,
    /// How often threads or children have ended, so that some of their time is missing.
    pub losses: u32,
    /// How often the stage has executed another program, and the process that executes the last one.
    pub programs: u32,
    pub naming_pid: u32,
    /// When the stage appeared.
    pub since: Option<Instant>,
    /// The CPUs that the stage may use.
    pub cpus: Vec<usize>,
    /// The parent of the stage's first process, and the parent's parent.
    pub parents: [Option<u32>; 2],
    /// Whether the stage was stopped in the last sample.
    pub stopped: bool,
    /// The stage's command line.
    pub words: Vec<String>,
    /// Its arguments byte for byte; `None` if they are `words`.
    pub arguments: Option<Vec<ExactText>>,
    /// Whether the program has many names, such as busybox: its options are not those of the program of that name.
    pub has_many_names: bool,
    /// Whether the stage compares text by locale rules, if the locale is installed.
    pub collates: bool,
    /// The variables of its environment that change how its program works.
    pub variables: Vec<String>,
    /// The low priority at which the stage runs; `None` if it runs at the default priority or above.
    pub low_priority: Option<String>,
    /// Whether the stage has files or sockets besides its pipes open for reading.
    pub reads_others: bool,
    /// Whether the stage has files or sockets besides its pipes open for writing.
    pub writes_others: bool,
    /// Whether the stage's threads have an eventfd to wake each other.
    pub has_eventfd: bool,
    /// The index of the stage's control group in `WatchedPipeline::groups`.
    pub group: Option<usize>,
}

impl WatchedStage {
    /// A thread's wait as seen from other stages. A pipe within the stage leads to no other stage.
    pub fn as_seen_by_others(&self, wait: ThreadWait) -> ThreadWait {
        match wait {
            ThreadWait::In(Some(pipe)) | ThreadWait::Out(Some(pipe)) if self.inner.contains(&pipe) => {
                ThreadWait::Is(ThreadState::Other)
            }
            // The pipe was opened since the last full scan, probably to a process that has just started.
            ThreadWait::In(Some(pipe)) | ThreadWait::Out(Some(pipe)) if !self.outer.contains(&pipe) => {
                ThreadWait::Is(ThreadState::Children)
            }
            // The pipe is unknown, so the stage's neighbours decide.
            ThreadWait::In(None) if !self.inner.is_empty() => {
                ThreadWait::Unsure { ins: true, outs: false, otherwise: ThreadState::Other }
            }
            ThreadWait::Out(None) if !self.inner.is_empty() => {
                ThreadWait::Unsure { ins: false, outs: true, otherwise: ThreadState::Other }
            }
            wait => wait,
        }
    }
}

/// The share of a stage's samples in an interval that found one of these states.
pub fn share_of(interval: &Interval, place: usize, states: &[ThreadState]) -> f64 {
    let counted = interval.stages.get(place).map_or([0; ThreadState::COUNT], |counts| counts.states);
    let found: u32 = states.iter().map(|&state| counted[state as usize]).sum();
    f64::from(found) / f64::from(counted.iter().sum::<u32>().max(1))
}
