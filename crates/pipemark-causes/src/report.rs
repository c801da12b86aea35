//! The form of the report on a pipeline, as `why --json` writes it and records store it.

use serde::{Deserialize, Serialize};

use pipemark_proc::thread::ProcFile;

use crate::pipe_figures::PipeRecord;
use crate::stage_figures::StageRecord;

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
    pub stages: Vec<StageRecord>,
    pub pipes: Vec<PipeRecord>,
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
    /// What the verdict would say if this were the bottleneck.
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
