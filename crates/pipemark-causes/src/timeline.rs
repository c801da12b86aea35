//! Stores a pipeline's counts by interval, in bounded memory.

use serde::{Deserialize, Serialize};

use crate::interval::Interval;

/// The maximum number of intervals kept. Beyond it, neighbouring intervals are merged in pairs.
pub const MAX_INTERVALS: usize = 720;
/// The largest number of stage counts in these intervals. Beyond it, intervals are merged too.
pub const MAX_COUNTS: usize = 72_000;

/// Counts by interval, in bounded memory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    pub intervals: Vec<Interval>,
    /// The number of added intervals that make up one kept interval.
    merged: usize,
    open: usize,
}

impl Timeline {
    /// Adds the counts of one interval.
    pub fn add(&mut self, interval: Interval) {
        self.merged = self.merged.max(1);
        match self.intervals.last_mut() {
            Some(last) if self.open > 0 && self.open < self.merged => last.add(&interval),
            _ => {
                self.open = 0;
                self.intervals.push(interval);
            }
        }
        self.open += 1;
        let stages = self.intervals.last().map_or(0, |last| last.stages.len()).max(1);
        if self.intervals.len() > MAX_INTERVALS.min(MAX_COUNTS / stages) {
            self.intervals = self.intervals.chunks(2).map(Interval::total).collect();
            self.merged *= 2;
        }
    }

    /// The last intervals.
    pub fn recent(&self, count: usize) -> Timeline {
        let from = self.intervals.len().saturating_sub(count);
        Timeline { intervals: self.intervals[from..].to_vec(), ..Timeline::default() }
    }

    /// All intervals merged into one.
    pub fn total(&self) -> Interval {
        Interval::total(&self.intervals)
    }
}
