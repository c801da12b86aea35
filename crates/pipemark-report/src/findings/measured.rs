//! What rules compare: records that were measured, in groups that differ in some parameters only.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use pipemark_model::{ByteSize, Ends, Estimate, Estimates, Figure, Job, Key, Record, grouped};
use pipemark_stats::family::Family;

/// A record that was measured, and its estimates.
#[derive(Debug, Clone, Copy)]
pub(super) struct MeasuredTrial<'a> {
    pub record: &'a Record,
    pub job: &'a Job,
    pub estimates: &'a Estimates,
    /// All that it is compared with.
    pub family: Family,
}

impl<'a> MeasuredTrial<'a> {
    pub fn of(record: &'a Record) -> Option<MeasuredTrial<'a>> {
        let estimates = record.measured()?;
        let sound = |estimate: &Estimate| estimate.median.is_finite() && estimate.median > 0.0;
        let sound = sound(estimates.throughput()) && sound(estimates.headline());
        let consistent = record.job.is_latency() == estimates.round_trip().is_some();
        let (job, family) = (&record.job, Family::of(&[]));
        (sound && consistent).then_some(MeasuredTrial { record, job, estimates, family })
    }

    /// The ends; every rule but those of entrants and filters gets only what has some.
    pub fn ends(self) -> &'a Ends {
        self.job.ends().expect("what this rule is about has ends")
    }

    /// Median throughput in bytes per second.
    pub fn throughput(self) -> f64 {
        self.estimates.throughput().median
    }

    /// Median speed, more being faster: bytes per second, or the round trips per second of the median round trip.
    pub fn speed(self) -> f64 {
        self.estimates.round_trip().map_or(self.throughput(), |trip| 1e9 / trip.median)
    }

    /// The figure it is told by: `3.05 GiB/s`, or the median round trip `4.56 µs`.
    pub fn headline(self) -> String {
        self.estimates.headline_figure().unit().show(self.estimates.headline().median)
    }

    /// The CPU time that it is told with.
    pub fn cost(self) -> Figure {
        if self.job.is_latency() { Figure::CpuSecondsPerMillion } else { Figure::CpuSecondsPerGib }
    }

    pub fn evidence(self) -> Json {
        let mut evidence = json!({ "trial": self.record.id });
        for figure in [self.estimates.headline_figure(), self.cost()] {
            evidence[figure.path()[figure.path().len() - 1]] = json!(self.estimates.get(figure));
        }
        evidence
    }
}

/// What was measured. Of trials that differ in nothing but how much a run moves, or that several experiments share, the one
/// with the most runs.
pub(super) fn measured<'a>(records: impl IntoIterator<Item = &'a Record>) -> Vec<MeasuredTrial<'a>> {
    let all: Vec<MeasuredTrial> = records.into_iter().filter_map(MeasuredTrial::of).collect();
    let most_runs =
        |group: Vec<MeasuredTrial<'a>>| group.into_iter().rev().max_by_key(|one| one.estimates.headline().runs);
    groups(&all, &[]).into_iter().filter_map(most_runs).collect()
}

/// Those that differ only in the parameters of `varies` and in how much a run moves, in the order of the first of each group.
pub(super) fn groups<'a>(all: &[MeasuredTrial<'a>], varies: &[Key]) -> Vec<Vec<MeasuredTrial<'a>>> {
    let fixed: Vec<Key> = Key::iter().filter(|key| !key.is_volume() && !varies.contains(key)).collect();
    let settings = |one: &MeasuredTrial| {
        let settings = one.job.settings();
        fixed.iter().map(|key| settings.get(*key)).collect::<Vec<_>>()
    };
    grouped(all.iter().map(|one| (settings(one), *one))).into_iter().map(|(_, group)| group).collect()
}

/// Their block sizes, ascending.
pub(super) fn sizes(all: &[MeasuredTrial]) -> Vec<ByteSize> {
    BTreeSet::from_iter(all.iter().map(|one| one.ends().block)).into_iter().collect()
}

/// The fastest by its median.
pub(super) fn fastest<'a>(all: impl IntoIterator<Item = MeasuredTrial<'a>>) -> Option<MeasuredTrial<'a>> {
    all.into_iter().max_by(|one, other| one.speed().total_cmp(&other.speed()))
}
