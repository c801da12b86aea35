//! What is measured in turns: pipelines of the person's own, and a trial against itself.

use serde::Serialize;

use crate::model::{Capacity, Estimate};
use crate::stats::compare::Comparison;
use crate::stats::verdict::Criterion;

/// What `ab --json` writes; with one pipeline there is no `b` and no comparison.
#[derive(Debug, Serialize)]
pub struct Turns {
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

/// What `compare --aa --json` writes.
#[derive(Debug, Serialize)]
pub struct NoiseFloor {
    pub schema: &'static str,
    /// The trial's id.
    pub trial: String,
    pub kernel: String,
    pub cpu: String,
    pub sessions: u32,
    pub rounds: u32,
    pub criterion: Criterion,
    /// The trial against itself, in turns in each session.
    pub itself: Comparison,
    /// How many pairs of sessions there are, and of how many of them a comparison of runs says better or worse.
    pub pairs: usize,
    pub differ_by_runs: usize,
    /// By how much a session usually differs from the mean of all, a fraction.
    pub between_sessions: f64,
    pub floors: Vec<Floor>,
}

/// The smallest change that so many sessions of each side see 9 times of 10, a fraction.
#[derive(Debug, Serialize)]
pub struct Floor {
    pub sessions: usize,
    pub two_files: f64,
    pub in_turns: f64,
}
