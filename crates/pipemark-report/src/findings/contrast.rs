//! Compares two trials: computes the ratio of their figures and its interval.

use std::fmt;

use serde_json::{Value, json};

use pipemark_model::{ByteSize, Figure, spans_too_much, three_digits};
use pipemark_stats::estimate;
use pipemark_stats::records::{ratio_agrees, ratios};

use crate::findings::MeasuredTrial;
use crate::findings::words::size_ranges;

/// The largest distance of a ratio from 1 that isn't reported, as a fraction. An interval of ±3 % counts as narrow.
const TOLERANCE: f64 = 0.03;

/// The ratio of `new` to `base` over the rounds in which both were measured, with its 95 % interval, which tables show
/// too. The ratio is significant if the interval adjusted for all comparisons says so. As text: `1.52× (1.48–1.55)`, or
/// `1.52× (1.48–1.55, within rounds)` if the ratio of the two medians is another one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Contrast<'a> {
    /// The compared figure, as the name of its CSV column, or `speed`.
    pub figure: &'static str,
    pub base: MeasuredTrial<'a>,
    pub new: MeasuredTrial<'a>,
    pub ratio: f64,
    pub low: f64,
    pub high: f64,
    /// The ratio of the two medians, which tables show beside each other.
    pub of_medians: f64,
    /// The interval adjusted for all comparisons of the document.
    pub adjusted: (f64, f64),
}

impl<'a> Contrast<'a> {
    /// Throughput of `new` divided by that of `base`; `None` if there are too few runs for an interval.
    pub fn throughput(base: MeasuredTrial<'a>, new: MeasuredTrial<'a>) -> Option<Contrast<'a>> {
        Contrast::of(Figure::Throughput, base, new)
    }

    /// Speed of `new` divided by that of `base`. The speed is throughput for streams, and the inverse of the median
    /// round trip for round trips. Both trials must be of the same kind.
    pub fn speed(base: MeasuredTrial<'a>, new: MeasuredTrial<'a>) -> Option<Contrast<'a>> {
        match base.estimates.headline_figure() {
            Figure::P50 => Some(Contrast { figure: "speed", base, new, ..Contrast::of(Figure::P50, new, base)? }),
            figure => Contrast::of(figure, base, new),
        }
    }

    /// `figure` of `new` divided by that of `base`; `None` if no table shows both trials, or if the interval is too wide
    /// to be printed.
    pub fn of(figure: Figure, base: MeasuredTrial<'a>, new: MeasuredTrial<'a>) -> Option<Contrast<'a>> {
        if !base.is_comparable_with(new) {
            return None;
        }
        let ratios = ratios(&new.record.samples, &base.record.samples, |sample| figure.of_sample(sample));
        let estimate = estimate::from_runs(&ratios)?;
        let (ratio, low, high) = (estimate.median, estimate.low?, estimate.high?);
        if spans_too_much(low, high) {
            return None;
        }
        let of_medians = new.estimates.get(figure)?.median / base.estimates.get(figure)?.median;
        let (figure, adjusted) = (figure.column(), base.family.interval(&estimate)?);
        Some(Contrast { figure, base, new, ratio, low, high, of_medians, adjusted })
    }

    /// Whether `new` is significantly higher: the whole adjusted interval is more than 3 % above 1.
    pub fn is_higher(&self) -> bool {
        self.adjusted.0 > 1.0 + TOLERANCE
    }

    /// Whether `new` is significantly lower: the whole adjusted interval is more than 3 % below 1.
    pub fn is_lower(&self) -> bool {
        self.adjusted.1 < 1.0 - TOLERANCE
    }

    /// Whether the two are equal: the whole adjusted interval is within 3 % of 1.
    pub fn is_equal(&self) -> bool {
        self.adjusted.0 >= 1.0 - TOLERANCE && self.adjusted.1 <= 1.0 + TOLERANCE
    }

    /// The ratio of `base` to `new`.
    pub fn inverse(&self) -> Contrast<'a> {
        let Contrast { figure, base, new, ratio, low, high, of_medians, adjusted } = *self;
        Contrast {
            figure,
            base: new,
            new: base,
            ratio: 1.0 / ratio,
            low: 1.0 / high,
            high: 1.0 / low,
            of_medians: 1.0 / of_medians,
            adjusted: (1.0 / adjusted.1, 1.0 / adjusted.0),
        }
    }

    /// The distance of the ratio from 1. Double and half have the same distance.
    pub fn effect(&self) -> f64 {
        self.ratio.ln().abs()
    }

    /// `1.52× (1.48–1.55) as fast`, or `as fast` if equal within 3 %; `None` if inconclusive.
    pub fn as_fast(&self) -> Option<String> {
        match (self.is_higher(), self.is_lower(), self.is_equal()) {
            (true, ..) => Some(format!("{self} as fast")),
            (_, true, _) => Some(format!("only {self} as fast")),
            (.., true) => Some("as fast".to_owned()),
            _ => None,
        }
    }

    /// What the ratio is of, if it isn't the ratio of the medians.
    pub fn qualifier(&self) -> &'static str {
        if ratio_agrees(self.ratio, self.of_medians) { "" } else { ", within rounds" }
    }

    /// The ratio as a percentage, `25.0 % (24.8–25.2)`. Small shares get more decimals.
    pub fn percent(&self) -> String {
        let [share, low, high] = [self.ratio, self.low, self.high].map(|share| match share * 100.0 {
            small if small < 0.0005 => "<0.001".to_owned(),
            small if small < 0.0995 => format!("{small:.3}"),
            more => three_digits(more),
        });
        format!("{share} % ({low}–{high}{})", self.qualifier())
    }

    pub fn evidence(&self) -> Value {
        let (of, to) = (self.new.evidence(), self.base.evidence());
        let (figure, ratio, adjusted) = (self.figure, self.ratio, [self.adjusted.0, self.adjusted.1]);
        json!({
            "figure": figure, "ratio": ratio, "low": self.low, "high": self.high, "with_all_others": adjusted, "of": of, "to": to,
        })
    }

    /// The evidence of the contrast, with `value` added under `name`.
    pub fn evidence_with(&self, name: &str, value: Value) -> Value {
        let mut evidence = self.evidence();
        evidence[name] = value;
        evidence
    }
}

impl fmt::Display for Contrast<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [ratio, low, high] = [self.ratio, self.low, self.high].map(three_digits);
        write!(f, "{ratio}× ({low}–{high}{})", self.qualifier())
    }
}

/// The contrast farthest from 1; `None` if there are no contrasts.
pub(super) fn widest<'a, 'c>(contrasts: impl IntoIterator<Item = &'c Contrast<'a>>) -> Option<&'c Contrast<'a>>
where
    'a: 'c,
{
    contrasts.into_iter().max_by(|one, other| one.effect().total_cmp(&other.effect()))
}

/// Contrasts at ascending block sizes as text: `faster with 64 B to 1 KiB, up to 4.00× (3.9–4.1) at 64 B; slower with 1
/// MiB, 0.50× (0.49–0.51)`. `all` has all measured sizes. Sizes whose contrasts are larger but inconclusive are also
/// named. `None` if no contrast is significant.
pub(super) fn by_size(contrasts: &[Contrast], all: &[ByteSize], pieces: &str) -> Option<String> {
    let size = |contrast: &Contrast| contrast.new.ends().block;
    let clause = |word: &str, farthest: &str, wanted: fn(&Contrast) -> bool| {
        let those: Vec<&Contrast> = contrasts.iter().filter(|contrast| wanted(contrast)).collect();
        let sizes: Vec<ByteSize> = those.iter().map(|contrast| size(contrast)).collect();
        let widest = widest(those.iter().copied())?;
        let figure = match sizes.len() {
            1 => widest.to_string(),
            _ => format!("{farthest} {widest} at {}", size(widest)),
        };
        Some((sizes[0], format!("{word} with {pieces} of {}, {figure}", size_ranges(&sizes, all))))
    };
    let mut clauses: Vec<_> =
        [clause("faster", "up to", |one| one.is_higher()), clause("slower", "down to", |one| one.is_lower())]
            .into_iter()
            .flatten()
            .collect();
    clauses.sort();
    if clauses.is_empty() && !contrasts.is_empty() && contrasts.iter().all(Contrast::is_equal) {
        let sizes: Vec<ByteSize> = contrasts.iter().map(size).collect();
        return Some(format!("equally fast (within 3 %) with {pieces} of {}", size_ranges(&sizes, all)));
    }
    let mut clauses: Vec<String> = clauses.into_iter().map(|(_, clause)| clause).collect();
    let (certain, doubtful): (Vec<&Contrast>, Vec<&Contrast>) =
        contrasts.iter().partition(|one| one.is_higher() || one.is_lower());
    let farthest = widest(certain).map_or(0.0, Contrast::effect);
    let farther = doubtful.into_iter().filter(|one| one.effect() > farthest);
    let farther: Vec<ByteSize> = farther.map(size).collect();
    if !clauses.is_empty() && !farther.is_empty() {
        clauses.push(format!("inconclusive with {pieces} of {}", size_ranges(&farther, all)));
    }
    (!clauses.is_empty()).then(|| clauses.join("; "))
}

/// The evidence of [`by_size`].
pub(super) fn evidence_by_block(contrasts: &[Contrast]) -> Value {
    contrasts.iter().map(|contrast| contrast.evidence_with("block", json!(contrast.new.ends().block))).collect()
}

#[cfg(test)]
mod tests {
    use pipemark_model::Record;
    use pipemark_stats::fixture::records;
    use pipemark_stats::fixture::{STEADY, outcome, record, round_trip_record};

    use super::*;

    fn contrast<'a>(base: &'a Record, new: &'a Record) -> Option<Contrast<'a>> {
        Contrast::throughput(MeasuredTrial::of(base)?, MeasuredTrial::of(new)?)
    }

    #[test]
    fn rounds_are_paired_whatever_their_order() {
        let wild = [1.0, 1.9, 0.6, 1.4, 0.8, 1.2, 1.6];
        let base = record("e", &[], 1.0, &wild);
        let mut new = record("e", &[], 1.1, &wild);
        new.samples.reverse();
        let paired = contrast(&base, &new).unwrap();
        assert!(paired.is_higher() && (paired.ratio - 1.1).abs() < 1e-6, "{paired:?}");
    }

    #[test]
    fn without_shared_rounds_there_is_no_ratio() {
        let (base, mut later) = (record("e", &[], 1.0, &STEADY), record("e", &[], 1.1, &STEADY));
        later.samples.iter_mut().for_each(|sample| sample.round += 100);
        assert!(contrast(&base, &later).is_none());
    }

    /// The ratio of two trials in a table equals their ratio in a finding.
    #[test]
    fn a_table_and_a_finding_have_one_ratio() {
        let (wild, other) = ([1.0, 1.9, 0.6, 1.4, 0.8, 1.2, 1.6], [1.1, 0.7, 1.5, 0.9, 1.3, 1.0, 1.2]);
        let (base, mut new) = (outcome("e", &[], 1.0, &wild), outcome("e", &[("wait", "spin")], 2.0, &other));
        new.trial.baseline = Some(base.trial.id.clone());
        let all = records(vec![base, new]);
        let table = all[1].estimate.as_ref().unwrap().ratio().unwrap();
        let finding = contrast(&all[0], &all[1]).unwrap();
        assert_eq!((finding.ratio, Some(finding.low), Some(finding.high)), (table.median, table.low, table.high));
    }

    #[test]
    fn a_shorter_round_trip_is_more_speed_and_more_cpu_time_is_more() {
        let (slow, fast) = (round_trip_record(&[], 8_000.0, &STEADY), round_trip_record(&[], 2_000.0, &STEADY));
        let speed = Contrast::speed(MeasuredTrial::of(&slow).unwrap(), MeasuredTrial::of(&fast).unwrap()).unwrap();
        assert!(speed.is_higher() && (speed.ratio / 4.0 - 1.0).abs() < 0.01, "{speed:?}");
        let cost = Contrast::of(Figure::CpuSecondsPerMillion, speed.base, speed.new).unwrap();
        assert!(cost.is_lower() && (cost.ratio / 0.25 - 1.0).abs() < 0.01, "{cost:?}");
    }

    /// The table shows the medians beside each other, so a ratio within rounds that isn't theirs says what it is.
    #[test]
    fn a_ratio_that_is_not_that_of_the_medians_says_so() {
        let quiet = record("e", &[], 1.0, &STEADY);
        let twice = record("e", &[], 2.0, &STEADY);
        assert_eq!(contrast(&quiet, &twice).unwrap().to_string(), "2.00× (2.00–2.00)");
        let slow = [1.0, 1.01, 0.99, 1.0, 2.0, 2.02, 1.98, 2.01, 2.0];
        // Of the new trial, there are only the first rounds, most of which were slow.
        let (base, new) = (record("e", &[], 1.0, &slow), record("e", &[], 1.5, &slow[..5]));
        let contrast = contrast(&base, &new).unwrap();
        assert!((contrast.ratio - 1.5).abs() < 1e-6 && (contrast.of_medians - 1.5).abs() > 0.1, "{contrast:?}");
        assert_eq!(contrast.to_string(), "1.50× (1.50–1.50, within rounds)");
        assert_eq!(contrast.inverse().percent(), "66.7 % (66.7–66.7, within rounds)");
    }

    #[test]
    fn too_few_runs_are_not_compared() {
        let base = record("e", &[], 1.0, &STEADY[..4]);
        assert!(contrast(&base, &record("e", &[], 9.0, &STEADY)).is_none());
        assert!(contrast(&record("e", &[], 1.0, &STEADY), &record("e", &[], 9.0, &STEADY[..1])).is_none());
    }
}
