//! Two records against each other: a ratio with its interval, or nothing.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Subject;
use crate::model::{Estimate, Figure, Sample};
use crate::stats::compare::{MOST_RUNS, Pairing, compare};
use crate::stats::estimate::FEWEST_RUNS;
use crate::stats::verdict::{Better, Criterion, Verdict};

/// A ratio this near to 1 is not worth a sentence: the ±3 % at which an interval counts as narrow.
const TOLERANCE: f64 = 0.03;

/// How many times as much one has as the other, with the 95 % interval of that.
#[derive(Debug, Clone, Copy)]
pub(super) struct Contrast {
    pub ratio: f64,
    pub low: f64,
    pub high: f64,
    verdict: Verdict,
}

impl Contrast {
    /// Throughput of `new` over that of `base`; `None` when there are too few runs for an interval.
    pub fn throughput(base: Subject, new: Subject) -> Option<Contrast> {
        Contrast::of(base, new, Sample::throughput)
            .or_else(|| Contrast::of_intervals(base.estimates.throughput(), new.estimates.throughput()))
    }

    /// Speed of `new` over that of `base`, both of one mode: throughput, or the inverse of the median round trip.
    pub fn speed(base: Subject, new: Subject) -> Option<Contrast> {
        Contrast::of(base, new, Sample::speed).or_else(|| match (base.round_trip(), new.round_trip()) {
            (None, None) => Contrast::of_intervals(base.estimates.throughput(), new.estimates.throughput()),
            (Some(base), Some(new)) => Contrast::of_intervals(new, base),
            _ => None,
        })
    }

    /// CPU time of both ends per message of `new` over that of `base`.
    pub fn cpu_time_of_messages(base: Subject, new: Subject) -> Option<Contrast> {
        let per_trip = |sample: &Sample| {
            let trips = sample.latency.as_ref().map_or(0, |latency| latency.round_trips);
            (sample.user_ns + sample.sys_ns) as f64 / trips as f64
        };
        Contrast::of(base, new, per_trip).or_else(|| {
            let cpu = |subject: Subject| subject.estimates.get(Figure::CpuSecondsPerMillion).copied();
            Contrast::of_intervals(&cpu(base)?, &cpu(new)?)
        })
    }

    /// CPU time per byte of `new` over that of `base`.
    pub fn cpu_time(base: Subject, new: Subject) -> Option<Contrast> {
        Contrast::of(base, new, Sample::cpu_seconds_per_gib).or_else(|| {
            Contrast::of_intervals(base.estimates.cpu_seconds_per_gib(), new.estimates.cpu_seconds_per_gib())
        })
    }

    /// From the rounds in which both were measured, if they are enough.
    fn of(base: Subject, new: Subject, figure: fn(&Sample) -> f64) -> Option<Contrast> {
        let by_round: BTreeMap<u32, f64> = base.record.samples.iter().map(|s| (s.round, figure(s))).collect();
        let (base, new): (Vec<f64>, Vec<f64>) = new
            .record
            .samples
            .iter()
            .filter_map(|sample| Some((*by_round.get(&sample.round)?, figure(sample))))
            .take(MOST_RUNS)
            .unzip();
        if base.len() < FEWEST_RUNS {
            return None;
        }
        let comparison = compare(&base, &new, Pairing::Rounds, criterion()).ok()?;
        let of_ratio = |change: f64| 1.0 + change;
        Contrast {
            ratio: of_ratio(comparison.change),
            low: of_ratio(comparison.low?),
            high: of_ratio(comparison.high?),
            verdict: comparison.verdict,
        }
        .sound()
    }

    /// From two estimates of which rounds are not known: the interval reaches from the one's low end over the other's
    /// high end to the reverse, so a difference is one of intervals that do not overlap.
    pub fn of_intervals(base: &Estimate, new: &Estimate) -> Option<Contrast> {
        let (low, high) = (new.low? / base.high?, new.high? / base.low?);
        let verdict = criterion().verdict(Some((low - 1.0, high - 1.0)));
        Contrast { ratio: new.median / base.median, low, high, verdict }.sound()
    }

    fn sound(self) -> Option<Contrast> {
        [self.ratio, self.low, self.high].iter().all(|figure| figure.is_finite() && *figure > 0.0).then_some(self)
    }

    /// Whether it is more by over 3 % for certain.
    pub fn more(&self) -> bool {
        self.verdict == Verdict::Better
    }

    /// Whether it is less by over 3 % for certain.
    pub fn less(&self) -> bool {
        self.verdict == Verdict::Worse
    }

    /// Whether it is the same, within 3 %, for certain.
    pub fn same(&self) -> bool {
        self.verdict == Verdict::Same
    }

    /// The other way round: how many times as much the other has.
    pub fn inverse(&self) -> Contrast {
        let verdict = match self.verdict {
            Verdict::Better => Verdict::Worse,
            Verdict::Worse => Verdict::Better,
            other => other,
        };
        Contrast { ratio: 1.0 / self.ratio, low: 1.0 / self.high, high: 1.0 / self.low, verdict }
    }

    /// How far from 1, in either direction: twice and half are equally far.
    pub fn effect(&self) -> f64 {
        self.ratio.ln().abs()
    }

    pub fn evidence(&self) -> Value {
        json!({ "ratio": self.ratio, "low": self.low, "high": self.high })
    }
}

fn criterion() -> Criterion {
    Criterion::with_threshold(Better::Higher, TOLERANCE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Record;
    use crate::stats::fixture::{STEADY, record, spoken};

    fn contrast(base: &Record, new: &Record) -> Option<Contrast> {
        Contrast::throughput(Subject::of(base)?, Subject::of(new)?)
    }

    #[test]
    fn rounds_are_paired_whatever_their_order() {
        let wild = [1.0, 1.9, 0.6, 1.4, 0.8, 1.2, 1.6];
        let base = record("e", &[], 1.0, &wild);
        let mut new = record("e", &[], 1.1, &wild);
        new.samples.reverse();
        let paired = contrast(&base, &new).unwrap();
        assert!(paired.more() && (paired.ratio - 1.1).abs() < 1e-6, "{paired:?}");
    }

    #[test]
    fn without_shared_rounds_intervals_decide() {
        let base = record("e", &[], 1.0, &STEADY);
        let later = |throughput: f64| {
            let mut record = record("e", &[], throughput, &STEADY);
            record.samples.iter_mut().for_each(|sample| sample.round += 100);
            record
        };
        assert!(contrast(&base, &later(1.1)).unwrap().more());
        assert!(contrast(&base, &later(0.9)).unwrap().less());
        assert!(contrast(&base, &later(1.0)).unwrap().same());
        let neither = contrast(&base, &later(1.03)).unwrap();
        assert!(!neither.more() && !neither.same());
    }

    #[test]
    fn a_shorter_round_trip_is_more_speed_and_more_cpu_time_is_more() {
        let (slow, fast) = (spoken(&[], 8_000.0, &STEADY), spoken(&[], 2_000.0, &STEADY));
        let of = |rule: fn(Subject, Subject) -> Option<Contrast>, base: &Record, new: &Record| {
            rule(Subject::of(base).unwrap(), Subject::of(new).unwrap()).unwrap()
        };
        let mut later = fast.clone();
        later.samples.iter_mut().for_each(|sample| sample.round += 100);
        for fast in [fast, later] {
            let speed = of(Contrast::speed, &slow, &fast);
            assert!(speed.more() && (speed.ratio / 4.0 - 1.0).abs() < 0.01, "{speed:?}");
            let cost = of(Contrast::cpu_time_of_messages, &slow, &fast);
            assert!(cost.less() && (cost.ratio / 0.25 - 1.0).abs() < 0.01, "{cost:?}");
        }
    }

    #[test]
    fn too_few_runs_are_not_compared() {
        let base = record("e", &[], 1.0, &STEADY[..4]);
        assert!(contrast(&base, &record("e", &[], 9.0, &STEADY)).is_none());
        assert!(contrast(&record("e", &[], 1.0, &STEADY), &record("e", &[], 9.0, &STEADY[..1])).is_none());
    }
}
