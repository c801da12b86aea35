//! The results document: the format of `--json` and of the history, and the input of the report page.

use serde::{Deserialize, Serialize};

use crate::claim::Claim;
use crate::estimate::Estimate;
use crate::figure::Figure;
use crate::gains::Gains;
use crate::host::Host;
use crate::parameter::Key;
use crate::saved_command::SavedCommand;
use crate::trial::Record;
use crate::warning::Warning;

/// The version of the document's format. It is increased when a field changes its meaning.
pub const SCHEMA: &str = "pipemark/1";

/// The version of the work that source and sink do. It is increased when pipemark does different work for the same
/// parameters (warm-up, calls or content). Figures of different workload versions are not compared.
pub const WORKLOAD: u32 = 1;

/// The version of the measuring method, which defines when the clock starts, what is counted, and what source and sink
/// do with the bytes. In version 2, the clock starts once data flows, the in-place methods write and read each byte,
/// and the C library's rseq setting is kept.
pub const METHOD: u32 = 2;

/// The version assumed for documents that lack the field.
fn first_version() -> u32 {
    1
}

/// Everything one invocation measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Document {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// [`WORKLOAD`] of the program that made the measurement. Documents with different values are not compared.
    #[serde(default = "first_version")]
    pub workload: u32,
    /// [`METHOD`] of the program that made the measurement. A comparison of documents with different values gives no
    /// verdict.
    #[serde(default = "first_version")]
    pub method: u32,
    /// The version of pipemark that made the measurement.
    pub version: String,
    /// The names of the suites that were run, or the subcommand if no suite was run.
    pub suite: String,
    /// The suite's description, one line.
    pub title: String,
    /// The user's label for the measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The command line.
    pub command: Vec<String>,
    /// When the measurement began, RFC 3339.
    pub started: String,
    /// Duration of the measurement in nanoseconds.
    pub elapsed_ns: u64,
    /// The seed of all random numbers: order of runs, content, delays and bootstrap.
    pub seed: u64,
    /// Whether the measurement ended before all planned runs were done. Completed runs are kept.
    pub partial: bool,
    /// The machine.
    pub host: Host,
    /// Speed of a memory copy within one process on this machine, in bytes per second: the limit that throughput is
    /// compared with.
    pub memory_copy: Option<Estimate>,
    /// The experiments that the trials belong to, in order.
    pub experiments: Vec<Experiment>,
    /// One record per trial, in the order of the plan.
    pub trials: Vec<Record>,
    /// Claims of the publications that the suites are based on, each with its answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
    /// Sentences computed from the estimates.
    pub findings: Vec<Finding>,
    /// Warnings about the measurement as a whole, such as a busy machine.
    pub warnings: Vec<Warning>,
    /// The report of a watched pipeline. A document with this field has no trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watched: Option<Watched>,
    /// The experiments of `tune` on a pipeline. A document with this field has no trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuned: Option<Tuned>,
    /// The commands that `ab --save` measured. A document with commands has no trials.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<SavedCommand>,
}

impl Document {
    /// Whether it is about a pipeline or commands of the user's own, and has no trials.
    pub fn is_of_pipeline(&self) -> bool {
        self.watched.is_some() || self.tuned.is_some() || !self.commands.is_empty()
    }

    /// Whether another tool measured the trials.
    pub fn is_imported(&self) -> bool {
        !self.experiments.is_empty() && self.experiments.iter().all(|experiment| !experiment.known.is_empty())
    }

    /// The trials that the user requested, without the memory copies added as references.
    pub fn requested(&self) -> impl Iterator<Item = &Record> + Clone {
        self.trials.iter().filter(|record| !record.job.is_memory_copy())
    }
}

/// The report of a watched pipeline as JSON text, written and read by `pipemark-watch`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Watched(pub Box<serde_json::value::RawValue>);

impl PartialEq for Watched {
    fn eq(&self, other: &Watched) -> bool {
        self.0.get() == other.0.get()
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Watched {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Watched".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"$ref": "why.schema.json"})
    }
}

/// The experiments on a pipeline as JSON text, written and read by `pipemark-tune`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tuned(pub Box<serde_json::value::RawValue>);

impl PartialEq for Tuned {
    fn eq(&self, other: &Tuned) -> bool {
        self.0.get() == other.0.get()
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Tuned {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Tuned".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"$ref": "tune.schema.json"})
    }
}

/// The name of the experiment that holds measurements by other tools.
pub const IMPORTED: &str = "import";

/// Trials shown in one table and compared with each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Experiment {
    /// The name that a trial's `experiment` refers to; unique in the document.
    pub name: String,
    /// The heading of its table.
    pub title: String,
    /// A description; may be empty.
    pub about: String,
    /// The parameters in which its trials differ, the most important first; empty for a single trial.
    pub varies: Vec<Key>,
    /// The parameter whose values are the table's columns. Each row is a combination of values of the other parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub across: Option<Key>,
    /// Whether its table is the main result of the suite. Such tables are shown in full; others are shortened.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub headline: bool,
    /// The published table of gains that the experiment reproduces. It is shown instead of a table with one row per
    /// trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gains: Option<Gains>,
    /// For measurements by other tools, the parameters that are known; empty if all are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub known: Vec<Key>,
}

impl Experiment {
    /// Whether the value of a parameter is known. A measurement by another tool has only the parameters that its file or
    /// the user gave.
    pub fn is_known(&self, key: Key) -> bool {
        self.known.is_empty() || self.known.contains(&key)
    }

    /// Whether a figure may have been measured: by other tools, only the time and the rate, and CPU times if
    /// `counts_cpu`.
    pub fn may_have(&self, figure: Figure, counts_cpu: impl Fn() -> bool) -> bool {
        match figure {
            _ if self.known.is_empty() => true,
            Figure::Throughput | Figure::Ratio | Figure::Real | Figure::RealPerGib | Figure::PerHop => true,
            Figure::UserTime | Figure::SystemTime | Figure::SystemShare | Figure::Cpus | Figure::CpuSecondsPerGib => {
                counts_cpu()
            }
            _ => false,
        }
    }
}

/// A sentence computed from estimates, with the figures that support it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// The name of the rule that produced the finding, such as `best-block`. Names of rules are stable.
    pub rule: String,
    /// The help topic that explains the finding.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub topic: String,
    /// The sentence.
    pub text: String,
    /// The figures that support the sentence, by name.
    pub evidence: serde_json::Map<String, serde_json::Value>,
}
