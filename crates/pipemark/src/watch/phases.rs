//! The time of a pipeline as intervals, and what it is made of: stretches with a verdict each.

use super::figures::{Figures, Interval};
use super::sampler::Watcher;
use super::verdict::verdict;
use crate::model::Phase;

/// Intervals that are kept; when there are more, each two become one.
const MOST: usize = 720;
/// A stretch is at least so many seconds long, and this share of the whole.
const SHORTEST: f64 = 1.0;
const SHORTEST_SHARE: f64 = 0.1;
/// By so much the stages that lead two stretches change.
const CHANGE: f64 = 0.3;

/// What was counted, interval by interval, in bounded memory.
#[derive(Debug, Default)]
pub struct Timeline {
    pub intervals: Vec<Interval>,
    /// How many of what is added make one.
    merged: usize,
    open: usize,
}

impl Timeline {
    /// Adds what was counted since the last.
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
        if self.intervals.len() > MOST {
            self.intervals = self.intervals.chunks(2).map(Interval::total).collect();
            self.merged *= 2;
        }
    }

    /// The last intervals.
    pub fn recent(&self, count: usize) -> Timeline {
        let from = self.intervals.len().saturating_sub(count);
        Timeline { intervals: self.intervals[from..].to_vec(), ..Timeline::default() }
    }

    /// All of it as one.
    pub fn total(&self) -> Interval {
        Interval::total(&self.intervals)
    }

    /// The stretches, at most eight, whose leading stages differ.
    pub fn phases(&self, watcher: &Watcher) -> Vec<Phase> {
        let whole = self.total();
        let shortest = SHORTEST.max(whole.seconds * SHORTEST_SHARE);
        let mut stretches: Vec<Interval> = Vec::new();
        for interval in self.intervals.iter().filter(|interval| interval.samples > 0) {
            match stretches.last_mut() {
                Some(last) if leader(last) == leader(interval) || last.seconds < shortest => last.add(interval),
                _ => stretches.push(interval.clone()),
            }
        }
        // A last one that is too short, and neighbours that hardly differ, belong together.
        let mut place = 1;
        while place < stretches.len() {
            let next = &stretches[place];
            if next.seconds < shortest || !differ(&stretches[place - 1], next) {
                let next = stretches.remove(place);
                stretches[place - 1].add(&next);
                place = place.saturating_sub(1).max(1);
            } else {
                place += 1;
            }
        }
        let phase = |interval: &Interval| {
            let verdict = verdict(&Figures::of(watcher, interval));
            Phase { begin: interval.begin, end: interval.begin + interval.seconds, verdict }
        };
        stretches.iter().map(phase).collect()
    }
}

/// The stage that is busy for longest.
fn leader(interval: &Interval) -> Option<usize> {
    (0..interval.stages.len()).max_by(|&a, &b| interval.busy(a).total_cmp(&interval.busy(b)))
}

fn differ(a: &Interval, b: &Interval) -> bool {
    let (Some(first), Some(second)) = (leader(a), leader(b)) else { return false };
    first != second && a.busy(first) - b.busy(first) > CHANGE && b.busy(second) - a.busy(second) > CHANGE
}
