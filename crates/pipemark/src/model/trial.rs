//! A trial before it is run, and the record that is kept of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::document::Warning;
use super::methods::Verify;
use super::params::Params;
use super::sample::Sample;

/// One fully specified pipeline, as the plan orders it.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// Stable key made of the parameters.
    pub id: String,
    /// The experiment of the suite that it belongs to.
    pub experiment: String,
    /// What to run.
    pub params: Params,
    /// The id of the trial of the same experiment that its ratio is taken against.
    pub baseline: Option<String>,
    /// What others measured elsewhere.
    pub published: Option<Published>,
}

/// A figure from a document, measured on other hardware.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Published {
    /// Bytes per second.
    pub throughput: f64,
    /// Where it was published.
    pub source: String,
    /// Whether it is not known how many bytes took the published time. `throughput` is then as if they had been one GiB,
    /// and means something only beside others of the same source.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub relative: bool,
}

/// How a trial ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// It was measured.
    Ok,
    /// It cannot run here, or was not reached; `reason` says which.
    Skipped,
    /// It was started and went wrong.
    Failed,
}

/// Why no more runs of a trial were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stopped {
    /// The interval is as narrow as asked.
    Narrow,
    /// The asked number of runs was made.
    Runs,
    /// The time budget is spent.
    Budget,
    /// The person at the terminal ended it.
    Interrupted,
}

/// A trial and what came of running it, before anything is computed from the samples.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// What was to be run.
    pub trial: Trial,
    /// How it ended.
    pub status: Status,
    /// Why it was skipped or failed.
    pub reason: Option<String>,
    /// Whether the proof held in every run; `None` when nothing was run or nothing was to be proven.
    pub verified: Option<bool>,
    /// Each run, in order.
    pub samples: Vec<Sample>,
    /// Why no more runs were made.
    pub stopped: Option<Stopped>,
    /// What was noticed while it ran and cannot be seen in the samples, such as huge pages that were not given.
    pub notes: Vec<Warning>,
}

/// What the samples of a trial say about one quantity: never a single number.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// The middle sample, or the mean of the two in the middle.
    pub median: f64,
    /// Lower end of the 95 % bootstrap interval of the median; `None` for fewer samples than can support one.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
    /// The smallest sample.
    pub min: f64,
    /// The largest sample.
    pub max: f64,
    /// How many samples there are.
    pub runs: u32,
}

/// The quantities estimated for each trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimates {
    /// Bytes per second that reached the sinks.
    pub throughput: Estimate,
    /// CPU seconds of all ends per GiB.
    pub cpu_seconds_per_gib: Estimate,
    /// How many times as fast as the baseline in the same round, where there is a baseline: throughput over the
    /// baseline's, or in latency mode the baseline's median round trip over this one's. Above 1 is faster in both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Estimate>,
    /// Nanoseconds from before the first process was started until the last was gone: what time(1) calls real.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub real_ns: Option<Estimate>,
    /// Context switches of all processes per MiB moved, voluntary and not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switches_per_mib: Option<Estimate>,
    /// Of an entrant, the time outside of its clock in nanoseconds: starting, getting ready and ending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_up_ns: Option<Estimate>,
    /// Of an entrant, the most memory that its largest process had resident, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_rss: Option<Estimate>,
    /// Of a pipeline of lines, what its processes used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counters: Option<CounterEstimates>,
    /// Round trips, in latency mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<LatencyEstimates>,
}

impl Estimates {
    /// The figure that the trial is told by: the median round trip in latency mode, throughput otherwise.
    pub fn headline(&self) -> &Estimate {
        self.latency.as_ref().map_or(&self.throughput, |latency| &latency.p50)
    }
}

/// What perf stat counts, over all processes of a pipeline and a whole run; `None` where it isn't counted here.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CounterEstimates {
    /// CPU time in nanoseconds.
    pub task_clock_ns: Estimate,
    /// CPU time over elapsed time: how many CPUs were used.
    pub cpus: Estimate,
    /// Context switches.
    pub context_switches: Estimate,
    /// Moves to another CPU.
    pub migrations: Option<Estimate>,
    /// Page faults.
    pub page_faults: Estimate,
    /// CPU cycles.
    pub cycles: Option<Estimate>,
    /// Instructions.
    pub instructions: Option<Estimate>,
    /// Branches predicted wrongly.
    pub branch_misses: Option<Estimate>,
    /// CPU seconds per GiB of the filter alone, without what feeds it.
    pub filter_cpu_seconds_per_gib: Estimate,
}

/// Round trips over all runs. Each run has its own percentiles, and these are estimated: runs are not pooled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyEstimates {
    /// The median round trip of a run, in nanoseconds.
    pub p50: Estimate,
    /// The 90th percentile in nanoseconds; `None` here and below where a run had too few round trips to tell.
    pub p90: Option<Estimate>,
    /// The 99th percentile.
    pub p99: Option<Estimate>,
    /// The 99.9th percentile.
    pub p999: Option<Estimate>,
    /// The slowest of a run.
    pub max: Estimate,
    /// Round trips per second.
    pub round_trips_per_second: Estimate,
    /// CPU seconds of both ends per million messages; a round trip is two messages.
    pub cpu_seconds_per_million: Estimate,
}

/// A trial, how it ended and everything measured: what is stored and exported.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// Stable key made of the parameters.
    pub id: String,
    /// The id in words, without what all trials of the experiment share.
    pub name: String,
    /// The experiment of the suite that it belongs to.
    pub experiment: String,
    /// What was asked for.
    pub params: Params,
    /// How it ended.
    pub status: Status,
    /// Why it was skipped or failed.
    pub reason: Option<String>,
    /// The level of proof asked for.
    pub verify: Verify,
    /// Whether the proof held in every run; `None` when nothing was run or nothing was to be proven.
    pub verified: Option<bool>,
    /// Whether the sink looked at the bytes.
    pub touched: bool,
    /// Each run, in order.
    pub samples: Vec<Sample>,
    /// What the samples say.
    pub estimate: Option<Estimates>,
    /// Why no more runs were made.
    pub stopped: Option<Stopped>,
    /// What to keep in mind when reading the figures.
    pub warnings: Vec<Warning>,
    /// The trial that `ratio` is taken against.
    pub baseline: Option<String>,
    /// What others measured elsewhere.
    pub published: Option<Published>,
}
