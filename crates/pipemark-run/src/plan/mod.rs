//! Turns suites and flags into an ordered list of trials.
//!
//! Pure: no files, no clock, no randomness. `cli` reads a suite's file, `runner` runs the trials.

mod claims;
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

pub use design::{Design, DesignAxis, Setting};
pub use embedded::{EMBEDDED, embedded};
pub use refusal::PlanError;
pub use schedule::{Runs, Schedule, ScheduleChoices};
pub use suite::{MAX_SUITE_BYTES, Suite, VolumeScale};

/// The experiment that [`Plan::prepend_memory_copy`] adds.
pub const MEMORY_COPY: &str = "memory-copy";

/// Everything to be measured, in the order of display. Runs are made in another order: see [`Schedule::seed`].
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The suite's name, or the verb for trials made of flags.
    pub suite: String,
    /// The title, in one line.
    pub title: String,
    /// The scaling, as the title has it in brackets, such as `totals × 0.1`; empty at full volume.
    pub scaled: String,
    /// A longer description; may be empty.
    pub about: String,
    /// The groups that the trials belong to, in order; each has at least one trial.
    pub experiments: Vec<Experiment>,
    /// The trials, grouped by experiment.
    pub trials: Vec<Trial>,
    /// The claims of the document that the suite repeats, without answers.
    pub claims: Vec<Claim>,
    /// The user's own programs that take part.
    pub against: Vec<AgainstProgram>,
    /// How often and how long the trials are run.
    pub schedule: Schedule,
    /// The experiments in which the total of each chain is still to be chosen by measuring.
    pub to_measure: Vec<String>,
    /// The factor for the totals that are chosen.
    pub scale: VolumeScale,
}

impl Plan {
    /// Puts a copy within one process in front, unless the plan measures one already. It is the limit that figures are
    /// compared with, so it must be measured in the same minutes as they are.
    pub fn prepend_memory_copy(&mut self) {
        let measured = self.trials.iter().any(|trial| trial.job.is_memory_copy());
        if measured || self.experiments.iter().any(|experiment| experiment.name == MEMORY_COPY) {
            return;
        }
        let limit = Suite::parse("memory_copy.toml", include_str!("memory_copy.toml"));
        let limit = limit.and_then(|suite| suite.expand(VolumeScale::ONE)).expect("it is as all others");
        self.experiments.splice(0..0, limit.experiments);
        self.trials.splice(0..0, limit.trials);
    }
}
