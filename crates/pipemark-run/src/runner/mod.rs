//! Runs the trials of a plan, interleaved, and returns the samples.
//!
//! Only this module accesses the machine during a measurement: processes, placement, the start barrier, clocks and
//! supervision.

mod channel;
mod conditions;
mod control;
mod end;
mod end_process;
mod entrant;
mod feed;
mod filter;
mod foreign_chain;
mod hardware_counters;
mod keeper;
mod outside;
mod pair;
mod pieces;
mod proof;
mod rounds;
mod shortage;
mod stage;
mod supervisor;
mod timed;
mod volume;

pub use channel::END_VERB;
pub use end::main as end;
pub use keeper::remove as remove_left;
pub use pieces::IntervalProgress;
pub use rounds::measure;
pub use supervisor::{SUPERVISOR_VERB, main as supervisor};
pub use volume::with_volumes;

use pipemark_model::{Outcome, Sample, Trial, Warning};

/// Receives the progress of a measurement.
pub trait Observer {
    /// Called when `done` of about `total` runs are complete and `trial` is next.
    fn update(&mut self, done: u64, total: u64, trial: &str);

    /// Called at each sampling interval with the progress since the last call.
    fn passed(&mut self, passed: IntervalProgress);

    /// Called when a run of `trial` has ended with `sample`.
    fn sampled(&mut self, trial: &Trial, sample: &Sample);

    /// Called when a trial has ended. No more runs of it follow.
    fn ended(&mut self, outcome: &Outcome);

    /// Called when the planned runs take far longer than the budget, so some trials get fewer.
    fn short_of_time(&mut self, warning: &Warning);
}
