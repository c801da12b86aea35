//! The document that results travel in: `--json`, the history and the report all hold this.

use serde::{Deserialize, Serialize};

use crate::claim::Claim;
use crate::estimate::Estimate;
use crate::gains::Gains;
use crate::host::Host;
use crate::parameter::Key;
use crate::trial::Record;
use crate::units::Throughput;

/// The version of the document's form; bumped when a field changes its meaning.
pub const SCHEMA: &str = "pipemark/1";

/// The version of what the ends do; bumped when the same parameters come to mean other work (another warm-up, other
/// calls, other content), so that figures from before and after are not compared.
pub const WORKLOAD: u32 = 1;

/// The version of how runs are measured: when the clock starts, what is counted, what becomes of the bytes. 2 since the
/// clock starts on flowing data, bytes in place are written and looked at, and the ends have rseq as the system has it.
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

/// What a reader has to keep in mind, and what to do about it.
#[derive(Debug, Clone, PartialEq, thiserror::Error, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Warning {
    /// The figure is within 10 % of what the source or the sink can do alone.
    #[error(
        "within 10 % of what the {end} can do alone: the {end}, not the link, may be what was measured; use a lighter --verify"
    )]
    NearCeiling { end: String, ceiling: f64 },
    /// Runs are above what the source or the sink can do alone; all of them, where documents do not say how many.
    #[error("{}", match self.spoils() {
        true => format!("above what the {end} can do alone: an error of pipemark, so take no figure from this row; please report it"),
        false => format!("{above} of {runs} runs {} above what the {end} can do alone, so one of the two is wrong; measure again", if *above == 1 { "is" } else { "are" }),
    })]
    AboveCeiling {
        end: String,
        ceiling: f64,
        #[serde(default)]
        above: u32,
        #[serde(default)]
        runs: u32,
    },
    /// The harness took much of the time.
    #[error("pipemark's own loop took {percent:.0} % of the time, so the link itself is faster than this")]
    Harness { percent: f64 },
    /// The trial has two speeds, bytes per second, and does not stay in one.
    #[error("two speeds: {} {slow_percent:.0} % of the time, {} {:.0} %{}", Throughput(*slow), Throughput(*fast), 100.0 - slow_percent, cause.as_ref().map_or_else(String::new, |cause| format!(": {cause}")))]
    Regimes { slow: f64, slow_percent: f64, fast: f64, cause: Option<String> },
    /// A fixed rate was not reached.
    #[error(
        "only {sent} of {due} messages or lines that were due were sent, so their times are left out; lower --rate"
    )]
    Behind { sent: u64, due: u64 },
    /// A filter kept lines until the end of its input.
    #[error(
        "{held} of {lines} lines came out only when the input ended: it holds lines back until more come, so their times are left \
         out; raise --rate or --time"
    )]
    Held { held: u64, lines: u64 },
    /// Some runs are outliers.
    #[error("{count} of {runs} runs {}; close other programs or use more --runs", if *count == 1 { "is an outlier" } else { "are outliers" })]
    Outliers { count: u32, runs: u32 },
    /// Later runs are faster or slower than earlier ones.
    #[error("the runs drifted by {:+.0} % from first to last; the machine was not in a steady state, measure again", change * 100.0)]
    Drift { change: f64 },
    /// The interval is still wider than asked when the budget was spent.
    #[error("the interval is still ±{:.0} % wide; raise --budget or --time", relative * 100.0)]
    Wide { relative: f64 },
    /// The kernel granted another capacity than was asked for.
    #[error("the kernel granted a capacity of {granted} bytes where {asked} were asked for; read the row as {granted}")]
    CapacityDiffers { asked: u64, granted: u64 },
    /// A block is larger than a message of the link may be.
    #[error("a message of this link has at most {limit} bytes; larger blocks were split")]
    Split { limit: u64 },
    /// The sender's bytes went another way than its name says.
    #[error("{text}")]
    Sender { text: String },
    /// The capacity changed while the trial ran.
    #[error(
        "the capacity went from {before} to {after} bytes during the run: a process at the pipe resized it, as pipemark relay does"
    )]
    CapacityChanged { before: u64, after: u64 },
    /// An end was seen on a CPU that it was not placed on.
    #[error("an end was seen on CPU {cpu}, which it was not placed on")]
    Misplaced { cpu: u16 },
    /// Huge pages were asked for and the system did not give them.
    #[error("no huge pages here ({reason}); base pages were used")]
    NoHugePages { reason: String },
    /// The hypervisor took CPU time away.
    #[error("the hypervisor took {percent:.1} % of the CPU time away; measure when the host is quieter")]
    Steal { percent: f64 },
    /// Other processes wanted the CPUs.
    #[error("other processes used {busy:.2} CPUs meanwhile; stop them or measure again later")]
    Load { busy: f64 },
    /// The kernel saw tasks wait for a CPU.
    #[error("the CPUs were overloaded at the start (pressure {percent:.0} %); wait for idle CPUs")]
    CpuPressure { percent: f64 },
    /// The control group's CPU limit held our processes back.
    #[error(
        "the control group's CPU limit held the processes back {percent:.1} % of the CPUs' time; raise the limit (docker run --cpus)"
    )]
    Throttled {
        percent: f64,
        /// How often: nr_throttled.
        #[serde(default)]
        times: u64,
    },
    /// Each look at the clock takes long.
    #[error(
        "the kernel tells the time by '{clock}', which takes a microsecond or more to ask: short round trips hold as much; use tsc"
    )]
    SlowClock { clock: String },
    /// The ends ran on different NUMA nodes.
    #[error(
        "the writer ran on NUMA node {writer} and the reader on node {reader}: what they share crosses between the two"
    )]
    Nodes { writer: u32, reader: u32 },
    /// The frequency governor may change the clock while measuring.
    #[error("the frequency governor is '{governor}'; 'performance' gives steadier figures")]
    Governor { governor: String },
}

impl Warning {
    /// Whether it leaves no figure of the row to be used.
    pub fn spoils(&self) -> bool {
        matches!(self, Warning::AboveCeiling { above, runs, .. } if 2 * above > *runs || *runs == 0)
    }
}
