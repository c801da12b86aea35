//! The document that results travel in: `--json`, the history and the report all hold this.

use serde::{Deserialize, Serialize};

use crate::claim::Claim;
use crate::estimate::Estimate;
use crate::gains::Gains;
use crate::host::Host;
use crate::parameter::Key;
use crate::trial::Record;
use crate::warning::Warning;

/// The version of the document's form; bumped when a field changes its meaning.
pub const SCHEMA: &str = "pipemark/1";

/// The version of what the ends do; bumped when the same parameters come to mean other work (another warm-up, other
/// calls, other content), so that figures from before and after are not compared.
pub const WORKLOAD: u32 = 1;

/// The version of how runs are measured: when the clock starts, what is counted, what becomes of the bytes. 2 since the
/// clock starts on flowing data, bytes in place are written and read, and the ends have the system's rseq.
pub const METHOD: u32 = 2;

/// What a document says that does not say: there was no version before the first.
fn first() -> u32 {
    1
}

/// Everything one invocation measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Document {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// [`WORKLOAD`] of the program that measured. Documents that differ here are not compared.
    #[serde(default = "first")]
    pub workload: u32,
    /// [`METHOD`] of the program that measured. Between documents that differ here there is no verdict.
    #[serde(default = "first")]
    pub method: u32,
    /// The version of pipemark that measured.
    pub version: String,
    /// The suite or suites that were run, or the verb for ad-hoc trials.
    pub suite: String,
    /// What the suite is about, in a line.
    pub title: String,
    /// What the person who measured called it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The command line.
    pub command: Vec<String>,
    /// When the measurement began, RFC 3339.
    pub started: String,
    /// How long it took, in nanoseconds.
    pub elapsed_ns: u64,
    /// The seed of everything drawn at random: the order of runs, content, delays, the bootstrap.
    pub seed: u64,
    /// Whether it was ended before all runs were made; what was measured until then is kept.
    pub partial: bool,
    /// The machine.
    pub host: Host,
    /// Copying within one process on this machine, in bytes per second: the limit that figures are held against.
    pub memory_copy: Option<Estimate>,
    /// The groups that the trials belong to, in order.
    pub experiments: Vec<Experiment>,
    /// One record per trial, in the order of the plan.
    pub trials: Vec<Record>,
    /// What the documents behind the suites conclude, each answered by what was measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
    /// Sentences computed from the estimates.
    pub findings: Vec<Finding>,
    /// What disturbed the measurement as a whole.
    pub warnings: Vec<Warning>,
    /// A pipeline that was watched, instead of trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watched: Option<Watched>,
}

/// The report of a watched pipeline as JSON text; `pipemark-watch` writes and reads it.
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

/// A group of trials that are shown in one table and compared with each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Experiment {
    /// The name that a trial's `experiment` refers to; unique in the document.
    pub name: String,
    /// The heading of its table.
    pub title: String,
    /// What it shows; may be empty.
    pub about: String,
    /// The parameters that tell its trials apart, the most important first; empty for a single trial.
    pub varies: Vec<Key>,
    /// The parameter whose values become the columns of a table with one row for each combination of the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub across: Option<Key>,
    /// Whether its table is what the suite is for, which is then shown whole wherever others are cut.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub headline: bool,
    /// The published table that it repeats, of per cent over a base; shown in place of one row per trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gains: Option<Gains>,
}

/// A sentence computed from estimates, with the figures that support it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// Which rule found it: a stable word such as `best-block`.
    pub rule: String,
    /// The help topic that explains it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub topic: String,
    /// The sentence.
    pub text: String,
    /// The figures it rests on, by name.
    pub evidence: serde_json::Map<String, serde_json::Value>,
}
