//! Stores a pipeline's counts by interval, in bounded memory.

use crate::interval::Interval;
use crate::recorded::recorded;

/// The maximum number of intervals kept. Beyond it, neighbouring intervals are merged in pairs.
pub const MAX_INTERVALS: usize = 720;
/// The largest number of stage counts in these intervals. Beyond it, intervals are merged too.
pub const MAX_COUNTS: usize = 72_000;

recorded! {
    /// Counts by interval, in bounded memory.
    #[derive(Debug, Clone, Default, PartialEq)]
    pub struct Timeline
    in JSON TimelineTrace {
        pub intervals: Vec<Interval>,
        /// The number of added intervals that make up one kept interval.
        merged: usize,
        open: usize,
    }
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

    /// All intervals merged into one.
    pub fn total(&self) -> Interval {
        Interval::total(&self.intervals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::StageCounts;

    #[test]
    fn a_day_takes_no_more_memory_than_minutes() {
        const HALF_SECONDS_OF_A_DAY: u32 = 172_800;
        let mut timeline = Timeline::default();
        let mut most = 0;
        for _ in 0..HALF_SECONDS_OF_A_DAY {
            let stages = vec![StageCounts { threads: 3, ..StageCounts::default() }; 5];
            timeline.add(Interval { samples: 50, seconds: 0.5, stages, ..Interval::default() });
            most = most.max(timeline.intervals.capacity());
        }
        assert!(timeline.intervals.len() <= MAX_INTERVALS && most <= 2 * MAX_INTERVALS, "{most}");
        let total = timeline.total();
        assert_eq!(total.samples, 50 * HALF_SECONDS_OF_A_DAY);
        assert!(total.stages.iter().all(|stage| stage.threads == 3 * u64::from(HALF_SECONDS_OF_A_DAY)));
    }
}
