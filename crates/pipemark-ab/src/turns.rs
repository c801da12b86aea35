//! What is measured in turns: pipelines of the person's own, and a trial against itself.

use serde::Serialize;

use pipemark_model::{Capacity, Estimate};
use pipemark_stats::compare::Comparison;
use pipemark_stats::verdict::Criterion;

/// What `ab --json` writes; with one pipeline there is no `b` and no comparison.
#[derive(Debug, Serialize)]
pub struct AbResult {
    pub schema: &'static str,
    pub a: TimedPipeline,
    pub b: Option<TimedPipeline>,
    /// The time of B against that of A, round by round.
    pub comparison: Option<Comparison>,
    /// The smallest change that would have had a verdict, a fraction.
    pub resolution: Option<f64>,
    /// Where it can't be told: why, and what would help.
    pub why: Option<String>,
    pub sessions: u32,
    pub criterion: Criterion,
    /// What A wrote, in bytes; where not each run wrote as much, in the first.
    pub output: u64,
    /// Whether both wrote the same bytes; of one pipeline only told where not each run wrote as many.
    pub same_output: Option<bool>,
}

/// One of the two.
#[derive(Debug, Serialize)]
pub struct TimedPipeline {
    /// What was typed.
    pub pipeline: String,
    /// What was asked for.
    pub capacity: Option<Capacity>,
    /// What the kernel granted to the pipes between the stages, in bytes.
    pub capacity_granted: Option<u64>,
    /// Each run, in order.
    pub nanoseconds: Vec<f64>,
    pub time: Estimate,
    /// CPU time of all processes, in nanoseconds.
    pub user: Estimate,
    pub system: Estimate,
}
