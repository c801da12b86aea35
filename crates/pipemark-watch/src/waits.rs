//! Reads what samples don't show: why stages wait, and for which processes outside the pipeline.

mod cycles;
mod lock_holders;
mod pipe_peers;
pub mod socket_peers;
mod stops;

use pipemark_causes::evidence::WaitCycle;
use pipemark_causes::interval::Interval;

use crate::budget::Budget;
use crate::pipeline::WatchedPipeline;

/// Searches that take several intervals.
#[derive(Debug, Default)]
pub struct Waits {
    cycles: cycles::CycleSearch,
    locks: lock_holders::LockSearch,
}

impl Waits {
    /// Reads cycles of waits, tracers, frozen stages, holders of locks, and the other ends of sockets and pipes. Called
    /// at the end of an interval. Searches for locks begin with stage `first`. Returns whether a process was found that
    /// belongs to the pipeline, so that a scan is needed.
    pub fn read(
        &mut self,
        pipeline: &mut WatchedPipeline,
        interval: &Interval,
        budget: &mut Budget,
        first: usize,
    ) -> bool {
        if interval.samples == 0 || !pipeline.is_alive() {
            return false;
        }
        self.cycles.find(pipeline, interval, budget);
        stops::find_tracers(&mut pipeline.stages, interval);
        stops::find_frozen(&mut pipeline.stages, interval, budget);
        self.locks.find(pipeline, interval, budget, first);
        socket_peers::find(pipeline, interval, budget);
        pipe_peers::find(pipeline, interval, budget)
    }

    /// The cycle of waits found at the ends of both of the last two intervals.
    pub fn cycle(&self) -> Option<&WaitCycle> {
        self.cycles.confirmed.as_ref()
    }
}
