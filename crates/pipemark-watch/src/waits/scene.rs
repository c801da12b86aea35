//! What observers of waits read at the end of an interval.

use std::time::Instant;

use pipemark_causes::interval::Interval;
use pipemark_proc::state::ThreadState;
use pipemark_proc::table::ProcessTable;

use crate::budget::Budget;
use crate::counters::StageCounters;
use crate::pipeline::WatchedPipeline;
use crate::pipeline::stage::share_of;

/// A pipeline in an interval.
pub struct WaitScene<'p> {
    pub pipeline: &'p WatchedPipeline,
    pub interval: &'p Interval,
    pub counters: &'p [StageCounters],
    /// All processes of the machine.
    pub table: &'p mut ProcessTable,
    pub budget: &'p mut Budget,
}

impl WaitScene<'_> {
    /// The share of a stage's samples that found one of these states.
    pub fn share(&self, place: usize, states: &[ThreadState]) -> f64 {
        share_of(self.interval, place, states)
    }

    /// When a stage stopped writing; `None` if it writes.
    pub fn silent_since(&self, place: usize) -> Option<Instant> {
        self.counters.get(place)?.silent_since
    }
}
