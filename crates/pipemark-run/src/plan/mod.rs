//! From suites and flags to an ordered list of trials.
//!
//! Pure: no files, no clock, no randomness. Reading a suite's file is `cli`'s part, running the trials is `run`'s.

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

/// The experiment that [`Plan::precede_with_memory_copy`] adds.
pub const MEMORY_COPY: &str = "memory-copy";

/// Everything that is going to be measured, in the order in which it is shown. Runs are made in another order: see
/// [`Schedule::seed`].
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The suite's name, or the verb for trials made of flags.
    pub suite: String,
    /// What it is about, in a line.
    pub title: String,
    /// What a scale made of it, as its title has it in brackets; empty at full volume.
    pub scaled: String,
    /// The same at length; may be empty.
    pub about: String,
    /// The groups that the trials belong to, in order; each has at least one trial.
    pub experiments: Vec<Experiment>,
    /// The trials, those of one experiment next to each other.
    pub trials: Vec<Trial>,
    /// What the document behind it concludes, without answers.
    pub claims: Vec<Claim>,
    /// Programs of someone's own that take part.
    pub against: Vec<AgainstProgram>,
    /// How often and how long.
    pub schedule: Schedule,
    /// The experiments of which the total of each chain is still to be chosen by measuring, and what it is then multiplied by.
    pub to_measure: Vec<String>,
    /// See `to_measure`.
    pub scale: VolumeScale,
}

impl Plan {
    /// Puts a copy within one process in front, unless the plan measures that already: the limit that figures are held
    /// against has to come from the same minutes as the figures.
    pub fn precede_with_memory_copy(&mut self) {
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
