//! The result of the experiments: the source of `--json` and of the sheet.

use serde::Serialize;

use pipemark_model::Estimate;
use pipemark_stats::verdict::Verdict;

/// The version of the format of [`ExperimentResult`]. It is increased when a field changes its meaning.
pub const SCHEMA: &str = "pipemark-experiments/1";

/// What `tune --json` writes for a pipeline that it ran in variants.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExperimentResult {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The version of pipemark that made the experiments.
    pub version: String,
    /// The pipeline as typed.
    pub pipeline: String,
    /// The duration of all experiments, in seconds.
    pub seconds: f64,
    /// The budget, in seconds.
    pub budget: f64,
    /// The number of runs.
    pub runs: u32,
    /// Whether the user interrupted the experiments.
    pub interrupted: bool,
    /// The time of the pipeline as it is, in seconds.
    pub time: Estimate,
    /// The size of its output, in bytes.
    pub output: u64,
    /// The stages as typed.
    pub stages: Vec<StageResult>,
    /// The experiments, in the order in which they were made.
    pub experiments: Vec<TuneExperiment>,
    /// The fastest pipeline that is proved faster and has the same output; null if there is none.
    pub fastest: Option<Fastest>,
    /// What limits the results.
    pub notes: Vec<String>,
}

/// A stage.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StageResult {
    /// The stage's number, counted from 1.
    pub number: usize,
    /// The stage's program.
    pub name: String,
    /// The stage as typed.
    pub command: String,
    /// The bytes that it wrote; null if they weren't counted.
    pub wrote: Option<u64>,
}

/// What an experiment changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ExperimentKind {
    /// A stage's recorded output is replayed instead of running the stage.
    Without,
    /// A stage runs alone, with its recorded input.
    Alone,
    /// The pipes have another capacity.
    Capacity,
    /// The pipeline runs with LC_ALL=C.
    Locale,
    /// The pipeline runs on one CPU.
    Cpus,
    /// A change that keeps the output.
    Remedy,
    /// Several remedies together.
    Combination,
}

/// An experiment.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TuneExperiment {
    /// What it changes.
    pub kind: ExperimentKind,
    /// A name that never changes, even if the text does.
    pub id: String,
    /// The stage that it is about, counted from 1; null if it is about all.
    pub stage: Option<usize>,
    /// What it does.
    pub text: String,
    /// The pipeline to paste; null if there is none.
    pub command: Option<String>,
    /// The time in seconds, the median of its runs; null if no run ended in time.
    pub seconds: Option<f64>,
    /// How many times as fast as the pipeline as it is; null without a time.
    pub gain: Option<f64>,
    /// Lower end of the interval of the gain; null unless it was confirmed.
    pub low: Option<f64>,
    /// Upper end of the interval of the gain.
    pub high: Option<f64>,
    /// The verdict on its time against that of the pipeline as it is; null unless it was confirmed.
    pub verdict: Option<Verdict>,
    /// The number of runs.
    pub runs: u32,
    /// Whether its output is that of the pipeline; null if it isn't compared.
    pub same_output: Option<bool>,
    /// Why there is no time; null if there is one.
    pub failed: Option<String>,
}

/// The fastest pipeline found.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fastest {
    /// The pipeline, ready to paste.
    pub command: String,
    /// How many times as fast as the pipeline as typed.
    pub gain: f64,
    /// Lower end of the interval of the gain.
    pub low: f64,
    /// Upper end of the interval of the gain.
    pub high: f64,
    /// Whether its output was the same in all compared runs.
    pub same_output: bool,
    /// What was changed.
    pub changes: Vec<String>,
}
