//! A stage of a watched pipeline.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use pipemark_causes::PeerFigures;
use pipemark_causes::exact_text::ExactText;
use pipemark_causes::interval::Interval;
use pipemark_proc::process::{IoCounts, PipeId};
use pipemark_proc::state::{ThreadState, ThreadWait};

use super::arrivals::SocketWait;
use super::moment::Moment;
use crate::reaped::Spent;

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
    /// The place of the next thread to be read, if not all are read in each sample.
    pub next_thread: usize,
    /// The place of the next process to be read for new children or threads.
    pub next_process: usize,
    /// The place of the next process to be sampled, if only some are.
    pub next_sampled: usize,
    /// The number of samples of some processes since the last one of all.
    pub partial_samples: usize,
    /// The processes last observed running, of a stage of which only some are sampled.
    pub running: Vec<u32>,
    /// The state of the others in the last sample of all; `None` before the first, and after a scan.
    pub others: Option<Moment>,
    /// Whether the stage was observed in calls that no byte counter counts.
    pub uncounted: bool,
    /// Whether the files of the stage's processes are unreadable.
    pub hidden: bool,
    pub alive: bool,
    /// When the stage appeared.
    pub since: Option<Instant>,
    /// A description of what the stage waits for; `None` if a state covers it.
    pub waits_for: Option<&'static str>,
    /// The CPUs that the stage may use.
    pub cpus: Vec<usize>,
    /// The position in the file that the stage reads, and the file's size, in bytes; `None` if it reads no file.
    pub progress: Option<(u64, u64)>,
    /// The parent of the stage's first process, and the parent's parent.
    pub parents: [Option<u32>; 2],
    pub changed: bool,
    /// Whether the stage was stopped in the last sample.
    pub stopped: bool,
    /// The name of the program that traces the stage.
    pub tracer: Option<String>,
    /// Whether the stage's control group was frozen when last checked.
    pub frozen: bool,
    pub totals: Totals,
    /// What reaped children that belonged to other stages had spent, since `totals` were read.
    pub reaped_of_others: Spent,
    /// The number of the interval's samples when the counters were last read.
    pub samples_counted: u32,
    /// The stage's command line.
    pub words: Vec<String>,
    /// Its arguments byte for byte; `None` if they are `words`.
    pub arguments: Option<Vec<ExactText>>,
    /// Whether the program has many names, such as busybox: its options are not those of the program of that name.
    pub has_many_names: bool,
    /// Whether the stage compares text by locale rules.
    pub collates: bool,
    /// The variables of its environment that change how its program works.
    pub variables: Vec<String>,
    /// The process whose locale is still to be checked; `None` if none is.
    pub locale_of: Option<u32>,
    /// The language in which the stage's program is written; `None` if unknown.
    pub language: Option<&'static str>,
    /// The process whose language is still to be read; `None` if none is.
    pub language_of: Option<u32>,
    /// The low priority at which the stage runs; `None` if it runs at the default priority or above.
    pub low_priority: Option<String>,
    /// Another program that holds a lock on a file which the stage has open: the file's path, and the pid and name of
    /// that program.
    pub locked_by: Option<(String, u32, String)>,
    /// Whether the stage has files or sockets besides its pipes open for reading.
    pub reads_others: bool,
    /// Whether the stage has files or sockets besides its pipes open for writing.
    pub writes_others: bool,
    /// Whether the stage's threads have an eventfd to wake each other.
    pub has_eventfd: bool,
    /// When the stage stopped writing; `None` if it writes.
    pub silent_since: Option<Instant>,
    /// The time from `silent_since` to the last reading of the counters. Later writes are unknown.
    pub silent: Option<Duration>,
    /// The bytes read since `silent_since`; `None` if unknown.
    pub held_bytes: Option<u64>,
    /// The mean size of earlier writes, in bytes; `None` if unknown.
    pub wrote_before: Option<f64>,
    /// The other end of a socket that the stage waits for; `None` if it waits for none.
    pub peer: Option<PeerFigures>,
    /// The number of searches for the process at the other end of a pipe.
    pub searches: u32,
    pub socket: SocketWait,
    /// The index of the stage's control group in `WatchedPipeline::groups`.
    pub group: Option<usize>,
}

/// Sums over the processes of a stage.
#[derive(Debug, Clone, Copy, Default)]
pub struct Totals {
    pub ticks: Option<u64>,
    pub kernel_ticks: u64,
    pub children_ticks: u64,
    pub reaped: u64,
    pub io: Option<IoCounts>,
    /// Nanoseconds in which a CPU limit throttled the control group; `None` if unknown.
    pub throttled: Option<u64>,
}

impl WatchedStage {
    /// The processes of a large stage for the next sample: those last observed running, and `count` others in turn.
    /// `None` for all of them, once in about `pids.len() / per_sample` samples.
    pub fn next_processes(&mut self, count: usize, per_sample: usize) -> Option<Vec<u32>> {
        self.partial_samples += 1;
        if self.others.is_none() || self.partial_samples * per_sample > self.pids.len() {
            self.partial_samples = 0;
            return None;
        }
        let mut chosen = self.running.clone();
        let turn = (0..count).map(|nth| self.pids[(self.next_sampled + nth) % self.pids.len()]);
        chosen.extend(turn.filter(|pid| !self.running.contains(pid)));
        self.next_sampled = (self.next_sampled + count) % self.pids.len();
        Some(chosen)
    }

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
