//! The input of rules: measured records of one experiment and one volume, in groups whose trials differ only in certain
//! parameters.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use pipemark_model::{ByteSize, Ends, Estimate, Estimates, Figure, Job, Key, Record, Value, group_by_key, total_order};
use pipemark_stats::family::Family;
use pipemark_stats::records::checks_alike;

/// A measured record with its estimates.
#[derive(Debug, Clone, Copy)]
pub(super) struct MeasuredTrial<'a> {
    pub record: &'a Record,
    pub job: &'a Job,
    pub estimates: &'a Estimates,
    /// The family of comparisons that the intervals are adjusted for.
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

    /// Whether a table compares both trials: they have the same experiment, volume and verification, and programs in
    /// two languages check in the same way.
    pub fn is_comparable_with(self, other: MeasuredTrial) -> bool {
        let language = |one: MeasuredTrial| one.job.value(Key::Language);
        self.record.experiment == other.record.experiment
            && (language(self) == language(other) || checks_alike(&self.record.samples, &other.record.samples))
            && self.job.volume().is_equivalent(other.job.volume())
            && self.job.verify() == other.job.verify()
    }

    /// Mean bytes per run.
    pub fn bytes(self) -> f64 {
        let samples = &self.record.samples;
        samples.iter().map(|sample| sample.bytes as f64).sum::<f64>() / samples.len().max(1) as f64
    }

    /// pipemark's own source and sink. Panics for entrants and filters, which have none; rules about source and sink
    /// never get such jobs.
    pub fn ends(self) -> &'a Ends {
        self.job.ends().expect("rules about ends get only jobs with ends")
    }

    /// Median throughput in bytes per second.
    pub fn throughput(self) -> f64 {
        self.estimates.throughput().median
    }

    /// Median speed: bytes per second, or the inverse of the median round trip, per second. Higher is faster.
    pub fn speed(self) -> f64 {
        self.estimates.round_trip().map_or(self.throughput(), |trip| 1e9 / trip.median)
    }

    /// The main figure as text: throughput `3.05 GiB/s`, or the median round trip `4.56 µs`.
    pub fn headline(self) -> String {
        self.estimates.headline_figure().unit().show(self.estimates.headline().median)
    }

    /// The figure that shows the trial's CPU time.
    pub fn cost(self) -> Figure {
        if self.job.is_latency() { Figure::CpuSecondsPerMillion } else { Figure::CpuSecondsPerGib }
    }

    pub fn evidence(self) -> Json {
        let mut evidence = json!({ "trial": self.record.id, "experiment": self.record.experiment });
        for figure in [self.estimates.headline_figure(), self.cost()] {
            evidence[figure.path()[figure.path().len() - 1]] = json!(self.estimates.get(figure));
        }
        evidence
    }
}

/// The usable records.
pub(super) fn measured_trials<'a>(records: impl IntoIterator<Item = &'a Record>) -> Vec<MeasuredTrial<'a>> {
    records.into_iter().filter_map(MeasuredTrial::of).collect()
}

/// Groups comparable records. Each part has one experiment and one volume per run. The part with the largest volume
/// comes first.
pub(super) fn parts<'a>(all: &[MeasuredTrial<'a>]) -> Vec<Vec<MeasuredTrial<'a>>> {
    let mut parts: Vec<Vec<MeasuredTrial>> = Vec::new();
    for (_, mut own) in group_by_key(all.iter().map(|one| (&one.record.experiment, *one))) {
        let mut order: Vec<usize> = (0..own.len()).collect();
        order.sort_by_key(|at| own[*at].job.volume());
        // A volume belongs to a part if it is equivalent to the smallest volume of the part.
        let mut of = vec![0; own.len()];
        for pair in order.windows(2) {
            let first = order.iter().find(|at| of[**at] == of[pair[0]]).expect("the pair's own");
            let next = !own[*first].job.volume().is_equivalent(own[pair[1]].job.volume());
            of[pair[1]] = of[pair[0]] + usize::from(next);
        }
        let parted = group_by_key(of.into_iter().zip(own.drain(..)));
        parts.extend(parted.into_iter().map(|(_, part)| part));
    }
    let most = |part: &Vec<MeasuredTrial>| part.iter().map(|one| one.bytes()).fold(0.0, f64::max);
    parts.sort_by_cached_key(|one| total_order(-most(one)));
    parts
}

/// The settings that the trials of a group have in common: all parameters except `varies` and the volume.
pub(super) fn common_settings(one: &MeasuredTrial, varies: &[Key]) -> Vec<Option<Value>> {
    settings_except(one.job, varies)
}

/// The settings of a trial, except `varies` and the volume.
pub(super) fn settings_except(job: &Job, varies: &[Key]) -> Vec<Option<Value>> {
    let settings = job.settings();
    Key::iter().filter(|key| !key.is_volume() && !varies.contains(key)).map(|key| settings.get(key)).collect()
}

/// Groups the trials of one part that differ only in the parameters of `varies`, ordered by their first records.
pub(super) fn groups<'a>(part: &[MeasuredTrial<'a>], varies: &[Key]) -> Vec<Vec<MeasuredTrial<'a>>> {
    group_by_key(part.iter().map(|one| (common_settings(one, varies), *one)))
        .into_iter()
        .map(|(_, group)| group)
        .collect()
}

/// Applies `rule` to each group. Groups of different experiments or volumes may have the same key; only the first of
/// them with a finding is used.
pub(super) fn first_findings<G, K: PartialEq, T: IntoIterator>(
    groups: impl IntoIterator<Item = G>,
    key: impl Fn(&G) -> K,
    rule: impl Fn(&G) -> T,
) -> Vec<T::Item> {
    let (mut seen, mut found) = (Vec::new(), Vec::new());
    for group in groups {
        let key = key(&group);
        if seen.contains(&key) {
            continue;
        }
        let before = found.len();
        found.extend(rule(&group));
        if found.len() > before {
            seen.push(key);
        }
    }
    found
}

/// The block sizes, ascending.
pub(super) fn sizes(all: &[MeasuredTrial]) -> Vec<ByteSize> {
    BTreeSet::from_iter(all.iter().map(|one| one.ends().block)).into_iter().collect()
}

/// The trial with the fastest median; `None` if `all` is empty.
pub(super) fn fastest<'a>(all: impl IntoIterator<Item = MeasuredTrial<'a>>) -> Option<MeasuredTrial<'a>> {
    all.into_iter().max_by(|one, other| one.speed().total_cmp(&other.speed()))
}
