//! Turns suites and flags into an ordered list of trials.
//!
//! This module reads no files and no clock, and uses no randomness. `cli` reads the suite's file, and `runner` runs the
//! trials.

mod against;
mod design;
mod embedded;
mod expand;
mod gains;
mod languages;
mod refusal;
mod schedule;
mod suite;
mod toml_form;

#[cfg(test)]
mod tests;

use pipemark_entrants::AgainstProgram;
use pipemark_model::{Claim, Experiment, Trial};

pub use design::{Design, DesignAxis};
pub use embedded::{EMBEDDED, embedded};
pub use pipemark_model::written::DesignSetting;
pub use refusal::PlanError;
pub use schedule::{Runs, Schedule, ScheduleChoices};
pub use suite::{MAX_SUITE_BYTES, Suite, VolumeScale};

/// The name of the experiment that [`Plan::prepend_memory_copy`] adds.
pub const MEMORY_COPY: &str = "memory-copy";

/// The trials to measure, in the order of display. The order of the runs is different: see [`Schedule::seed`].
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The suite's name, or the verb for trials made from flags.
    pub suite: String,
    /// The title, in one line.
    pub title: String,
    /// The scaling as text, such as `totals × 0.1`, which follows the title in brackets. Empty at full volume.
    pub scaled: String,
    /// A longer description; empty for none.
    pub about: String,
    /// The experiments in order. Each has at least one trial.
    pub experiments: Vec<Experiment>,
    /// The trials, grouped by experiment.
    pub trials: Vec<Trial>,
    /// The claims of the document that the suite reproduces, without answers.
    pub claims: Vec<Claim>,
    /// The user's own programs that the plan measures.
    pub against: Vec<AgainstProgram>,
    /// How often and for how long the trials are run.
    pub schedule: Schedule,
    /// The experiments in which each trial's total is to be chosen by measuring.
    pub to_measure: Vec<String>,
    /// Those of them in which the total isn't below that of the trial.
    pub with_least: Vec<String>,
    /// The factor by which chosen totals are multiplied.
    pub scale: VolumeScale,
}

impl Plan {
    /// Inserts a memory copy within one process as the first trial, unless the plan already has one. The memory copy is
    /// the limit that figures are compared with, so it must be measured at the same time as they are.
    pub fn prepend_memory_copy(&mut self) {
        let measured = self.trials.iter().any(|trial| trial.job.is_memory_copy());
        if measured || self.experiments.iter().any(|experiment| experiment.name == MEMORY_COPY) {
            return;
        }
        let text = include_str!("memory_copy.toml");
        // Debug builds are for tests, which repeat hundreds of short measurements.
        let text = if cfg!(debug_assertions) { text.replace("100ms", "5ms") } else { text.to_owned() };
        let limit = Suite::parse("memory_copy.toml", &text);
        let limit = limit.and_then(|suite| suite.expand(VolumeScale::ONE)).expect("the embedded suite is valid");
        self.experiments.splice(0..0, limit.experiments);
        self.trials.splice(0..0, limit.trials);
    }
}
