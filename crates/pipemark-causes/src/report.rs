//! The form of the report on a pipeline, as `why --json` writes it and records store it.

use serde::{Deserialize, Serialize};

use pipemark_proc::thread::ProcFile;
use pipemark_profile::Profile;

use crate::evidence::PeerFigures;
use crate::exact_text::ExactText;

/// The report on a pipeline, as written by `--json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PipelineReport {
    pub schema: String,
    /// The pipeline as typed (as a word of bash, `$'…'`, if it isn't UTF-8), or the names of its stages.
    pub pipeline: String,
    /// The bytes of the pipeline in hexadecimal; absent if `pipeline` is the pipeline itself, because it is UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline_hex: Option<String>,
    pub verdict: PipelineVerdict,
    /// The call of `pipemark tune` that runs the pipeline in variants; null unless the pipeline was typed here, ended with
    /// exit code 0, and was short.
    #[serde(default)]
    pub experiments: Option<String>,
    /// Periods with different verdicts, if there is more than one.
    pub phases: Vec<Phase>,
    pub seconds: f64,
    pub samples: u32,
    pub samples_per_second: f64,
    /// The least detailed file of /proc that a thread had to be read from.
    pub access: ProcFile,
    /// CPU use of pipemark itself after the first scan, in CPUs.
    pub own_cpu: f64,
    /// CPU time of the first scan, including that of starting pipemark, in seconds.
    #[serde(default)]
    pub first_scan: f64,
    pub stages: Vec<StageFigures>,
    pub pipes: Vec<PipeFigures>,
    /// What could not be read, and how to see more.
    pub notes: Vec<String>,
    /// The index of each stage among all that the watcher has found.
    #[serde(skip)]
    pub places: Vec<usize>,
}

/// The kind of bottleneck.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum VerdictKind {
    Stage,
    Pipe,
    Cpu,
    Throttled,
    Balanced,
    /// Small reads or writes: the calls cost more than the bytes.
    Calls,
    /// A stage keeps its output in a buffer.
    Held,
    /// A stage writes or reads bursts that are larger than any pipe.
    Burst,
    /// Processes wait for each other in a cycle.
    Deadlock,
    /// A process or host at the other end of a socket or pipe.
    Peer,
    /// A stage spends its time starting processes.
    Starts,
    /// Two bottlenecks are about equally likely.
    Inconclusive,
    #[default]
    Unknown,
}

/// The bottleneck, and the gain from removing it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PipelineVerdict {
    pub kind: VerdictKind,
    /// The number of a stage, from 1 at the source.
    pub stage: Option<usize>,
    /// The number of a pipe, from 1 at the source.
    pub pipe: Option<usize>,
    /// A short reason, such as `computing`.
    pub reason: String,
    pub text: String,
    /// The largest speed-up of the pipeline if this bottleneck is removed, as a factor; `None` if unknown.
    pub bound: Option<f64>,
    /// The number of the stage that is then the bottleneck.
    pub next: Option<usize>,
    /// An identifier of the cause, which doesn't change with the wording of `text`.
    #[serde(default)]
    pub cause: String,
    /// Whether the evidence rules out other causes.
    #[serde(default)]
    pub sure: Certainty,
    /// How many times as fast the pipeline would be without the cause; null if nothing moves, or if it can't be told.
    #[serde(default)]
    pub gain: Option<GainRange>,
    /// What the cause rests on.
    #[serde(default)]
    pub quality: Option<Quality>,
    /// All causes that were considered, the chosen one first, the others by gain. Which ones there are may change.
    #[serde(default)]
    pub hypotheses: Vec<HypothesisRecord>,
    /// Remedies for the programs and causes that were found, the best first.
    #[serde(default)]
    pub remedies: Vec<Remedy>,
    pub advice: Vec<String>,
}

/// How many times as fast the pipeline would be without a cause.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GainRange {
    pub low: f64,
    /// Null if overhead, which can't be distinguished from work, makes it unknown.
    pub high: Option<f64>,
}

/// What a claim rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Quality {
    /// The kernel says so.
    Proved,
    /// Counters or samples show it.
    Measured,
    /// It follows from what is known about programs, or from what was not seen.
    Inferred,
}

/// A cause that was considered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HypothesisRecord {
    pub cause: String,
    pub stage: Option<usize>,
    pub pipe: Option<usize>,
    pub gain: Option<GainRange>,
    /// The share of its place's time that the cause explains, from 0 to 1.
    pub explains: f64,
    pub quality: Quality,
    pub text: String,
    /// Why it wasn't chosen; null for the chosen one.
    pub why_not: Option<String>,
}

/// How sure a verdict is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Certainty {
    #[default]
    Sure,
    /// Another cause is about as likely; `text` names it.
    Unsure,
}

/// A way to remove a bottleneck, with a command if there is one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Remedy {
    /// The remedy's id in the table of remedies, such as `gzip-pigz`.
    pub id: String,
    pub text: String,
    /// A command for the shell; empty if there is none.
    pub command: String,
}

impl Remedy {
    pub fn new(id: &str, text: impl Into<String>, command: impl Into<String>) -> Remedy {
        Remedy { id: id.to_owned(), text: text.into(), command: command.into() }
    }
}

/// A period with its verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Phase {
    /// Seconds since the beginning.
    pub begin: f64,
    pub end: f64,
    pub verdict: PipelineVerdict,
}

/// Figures of a stage. Shares are of the time in which the stage existed, from 0 to 1.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StageFigures {
    /// The stage's number, from 1 at the source.
    pub number: usize,
    pub name: String,
    pub command: String,
    /// The process id of the stage's first process, which may have exited.
    pub pid: u32,
    pub processes: usize,
    pub threads: usize,
    /// The share of the whole time in which the stage existed.
    pub present: f64,
    /// The share of time in which the stage was neither starved nor blocked nor unknown.
    pub busy: f64,
    pub starved: f64,
    pub blocked: f64,
    pub computing: f64,
    pub waiting_for_cpu: f64,
    pub disk: f64,
    pub network: f64,
    pub terminal: f64,
    pub sleep: f64,
    pub children: f64,
    pub lock: f64,
    pub stopped: f64,
    pub other: f64,
    pub unknown: f64,
    /// Whether the stage's descriptors are unreadable. The stage's position is then inferred from other stages.
    pub hidden: bool,
    /// The mean number of CPUs that the stage used.
    pub cpu: Option<f64>,
    /// The mean number of CPUs that the stage waited for.
    pub cpu_wait: Option<f64>,
    pub bytes_in_per_second: Option<f64>,
    pub bytes_out_per_second: Option<f64>,
    /// Calls such as read and write on any file, and the mean bytes per call.
    #[serde(default)]
    pub reads_per_second: Option<f64>,
    #[serde(default)]
    pub writes_per_second: Option<f64>,
    #[serde(default)]
    pub bytes_per_read: Option<f64>,
    #[serde(default)]
    pub bytes_per_write: Option<f64>,
    /// The part of `cpu` that the stage used in the kernel, measured in steps of 10 ms.
    #[serde(default)]
    pub kernel: Option<f64>,
    /// The CPU time in user mode and in the kernel, in CPUs, of the thread that spent the most time in the kernel, while
    /// the stage wrote; `None` if no process of the stage has several threads.
    #[serde(skip)]
    pub caller: Option<[f64; 2]>,
    /// Processes that the stage started, estimated from the machine's count of new processes and from the processes
    /// that the stage reaped.
    #[serde(default)]
    pub starts_per_second: Option<f64>,
    /// The mean number of CPUs used by processes that the stage started and reaped.
    #[serde(default)]
    pub cpu_of_children: Option<f64>,
    /// Bytes that the stage has read since its last write, including those of the TCP socket that it waits for.
    #[serde(default)]
    pub held_bytes: Option<u64>,
    /// How often more bytes were found to have come from that socket since the stage's last write.
    #[serde(skip)]
    pub arrivals: u32,
    /// Seconds since the stage's last write.
    #[serde(default)]
    pub seconds_silent: Option<f64>,
    /// The other end of a socket or pipe that the stage waits for.
    #[serde(default)]
    pub peer: Option<PeerFigures>,
    pub switches_per_second: Option<f64>,
    pub throttled: Option<f64>,
    /// The position in the file that the stage reads, from 0 to 1.
    pub progress: Option<f64>,
    /// Seconds until the end of that file, at the current rate.
    pub seconds_left: Option<f64>,
    /// The difference between the stage's running share in samples and in the kernel's counters. The shares above are
    /// corrected by this difference. Null if the counters are missing.
    #[serde(default)]
    pub sampling_error: Option<f64>,
    /// The share of the whole time in which this stage alone was busy; `None` if not counted.
    #[serde(skip)]
    pub alone: Option<f64>,
    /// The stage's name, with its number if other stages of the whole pipeline have the same name; empty if not set.
    #[serde(skip)]
    pub label: String,
    /// The number of stages of the whole pipeline with the same name before this one.
    #[serde(skip)]
    pub same_before: usize,
    /// The CPUs that the stage may use.
    #[serde(skip)]
    pub cpus: Vec<usize>,
    /// The stage's processes at the end.
    #[serde(skip)]
    pub pids: Vec<u32>,
    /// What the stage waits for in the time of `other`; `None` if unknown.
    #[serde(skip)]
    pub waits_for: Option<String>,
    /// The share of time in which one of the stage's threads waits for input while others run.
    #[serde(skip)]
    pub hungry: f64,
    /// Whether the stage reads in a loop and mostly gets no data, instead of waiting for input. That time counts as
    /// `starved`.
    #[serde(skip)]
    pub polls: bool,
    /// The share of time in which at least two of the stage's processes wait for file locks, and more wait than run.
    #[serde(skip)]
    pub queued: f64,
    /// How often samples found the stage newly stopped by a signal.
    #[serde(skip)]
    pub stops: u32,
    #[serde(skip)]
    pub stops_per_second: f64,
    /// The program that traces the stage, such as strace; null if no tracer was found to stop the stage.
    #[serde(default)]
    pub tracer: Option<String>,
    /// Whether the stage's control group is frozen.
    #[serde(default)]
    pub frozen: bool,
    /// Page faults of processes that the stage started and reaped.
    #[serde(skip)]
    pub faults_per_second: f64,
    /// Mean bytes that each process started by the stage has read and written, including what it reads while starting.
    #[serde(skip)]
    pub bytes_per_start: Option<f64>,
    /// The stage's command line, as text.
    #[serde(skip)]
    pub words: Vec<String>,
    /// Its arguments byte for byte; `None` if they are `words`.
    #[serde(skip)]
    pub arguments: Option<Vec<ExactText>>,
    /// Whether the stage may read files or sockets besides its pipes.
    #[serde(skip)]
    pub reads_others: bool,
    /// Whether the stage may write files or sockets besides its pipes.
    #[serde(skip)]
    pub writes_others: bool,
    /// Whether the stage compares text by locale rules.
    #[serde(skip)]
    pub collates: bool,
    /// The variables of its environment that change how its program works, each as `NAME=value`.
    #[serde(skip)]
    pub variables: Vec<String>,
    /// The language in which the stage's program is written; `None` if unknown, or if the stage makes no small writes.
    #[serde(skip)]
    pub language: Option<String>,
    /// The low priority at which the stage runs, such as `nice 19`; `None` if it runs at the default priority or above.
    #[serde(skip)]
    pub low_priority: Option<String>,
    /// Another program that holds a lock on a file which the stage has open, while the stage waits: the file's path, and
    /// the pid and name of that program.
    #[serde(skip)]
    pub locked_by: Option<(String, u32, String)>,
    /// Mean bytes per write before the stage stopped writing.
    #[serde(skip)]
    pub wrote_before: Option<f64>,
    /// The functions that the stage executed, and the kinds of work; only for the busiest stages, and where permitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// The stage's activity over time; only with `--record`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moments: Vec<StageMoment>,
}

impl StageFigures {
    /// The share of `busy` in which the stage waits for something else than its pipes or a CPU: a disk, the network, the
    /// terminal, a timer, a child, a lock, or what isn't known.
    pub fn waits(&self) -> f64 {
        let waits =
            [self.disk, self.network, self.terminal, self.sleep, self.children, self.lock, self.stopped, self.other];
        waits.iter().sum::<f64>().min(self.busy)
    }

    /// The share of `busy` in which the stage computes or waits for a CPU.
    pub fn works(&self) -> f64 {
        (self.busy - self.waits()).max(0.0)
    }

    /// Calls of read, write and the like per second; `None` if they aren't counted.
    pub fn calls_per_second(&self) -> Option<f64> {
        let (reads, writes) = (self.reads_per_second, self.writes_per_second);
        reads.or(writes).map(|_| reads.unwrap_or(0.0) + writes.unwrap_or(0.0))
    }
}

/// A stage's shares at one moment, or their means around it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StageMoment {
    /// Seconds since the beginning.
    pub seconds: f64,
    pub busy: f64,
    pub starved: f64,
    pub blocked: f64,
}

/// Figures of a pipe.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PipeFigures {
    pub number: usize,
    /// The number of the stage that writes the pipe.
    pub from: usize,
    /// The number of the stage that reads the pipe.
    pub to: usize,
    pub capacity: Option<u64>,
    pub writer_waits: f64,
    pub reader_waits: f64,
    pub bytes_per_second: Option<f64>,
    /// The mean length of the writer's waits in seconds, weighted by length; null if the waits are too short to sample.
    #[serde(default)]
    pub stretch: Option<f64>,
    /// The mean length of the reader's waits, as in `stretch`.
    #[serde(default)]
    pub reader_stretch: Option<f64>,
    /// Whether the pipe is a pair of sockets, whose capacity can't be changed.
    #[serde(default)]
    pub is_socket: bool,
    /// How often the waits of the pipe's two ends alternated; null if not sampled.
    #[serde(skip)]
    pub turns: Option<u32>,
    /// The part of the waits of both ends that a buffer would save, from 0 to 1; null if unknown.
    #[serde(skip)]
    pub absorbable: Option<f64>,
}
