//! The figure of each trial that answers a claim, with its interval, and the verdicts of intervals on the claimed range.

use pipemark_model::{Answer, Claim, ClaimVerdict, Evidence, Figure, Record, Sample, Which};
use pipemark_stats::estimate::{self, MIN_RUNS};
use pipemark_stats::family::Family;
use pipemark_stats::records::ratios;
use pipemark_stats::spread;

/// The evidence of one trial; `None` if it lacks the figure.
pub fn evidence(claim: &Claim, record: &Record, base: Option<&Record>, family: Family) -> Option<Evidence> {
    let (estimate, together) = match claim.figure.as_str() {
        "spread" => {
            let base = base.map(|base| &base.samples);
            let spread =
                |confidence: f64| spread::estimate_spread(&record.samples, base.map(Vec::as_slice), confidence);
            let (alone, all) = (spread(0.95)?, spread(1.0 - 0.05 / family.comparisons())?);
            (alone, all.low.zip(all.high))
        }
        "copies" => {
            let copies = f64::from(record.copies?);
            (estimate::from_runs(&vec![copies; record.samples.len()])?, Some((copies, copies)))
        }
        word => {
            let times = claim.times.unwrap_or(1.0);
            let figure = Figure::iter().find(|figure| figure.column() == word);
            let of = |sample: &Sample| match figure {
                Some(figure) if word != "ratio" => figure.of_sample(sample),
                _ => Some(sample.speed()),
            };
            let figures: Vec<f64> = match base {
                Some(base) => ratios(&record.samples, &base.samples, of),
                None => record.samples.iter().filter_map(of).map(|figure| figure * times).collect(),
            };
            let ratio = estimate::from_runs(&figures)?;
            // A ratio that is equal in every run is exact.
            let counted = ratio.min == ratio.max;
            let together = if counted { Some((ratio.min, ratio.max)) } else { family.interval(&ratio) };
            (ratio, together)
        }
    };
    let runs = base.map_or(record.samples.len(), |base| base.samples.len().min(record.samples.len()));
    let together = together.filter(|_| runs >= MIN_RUNS);
    let shown = |figure: f64| if claim.figure == "gain" { (figure - 1.0) * 100.0 } else { figure };
    let ends = |(low, high): (f64, f64)| (shown(low), shown(high));
    let together = together.map(ends);
    Some(Evidence {
        experiment: record.experiment.clone(),
        trial: record.id.clone(),
        to: base.map(|base| base.id.clone()),
        figure: shown(estimate.median),
        interval: estimate.low.zip(estimate.high).map(ends),
        with_all_others: together,
        verdict: together.map_or(ClaimVerdict::CantTell, |ends| verdict(claim, ends)),
    })
}

/// The verdict of an interval on the claimed range.
pub fn verdict(claim: &Claim, (low, high): (f64, f64)) -> ClaimVerdict {
    let (from, to) = (claim.low.unwrap_or(f64::NEG_INFINITY), claim.high.unwrap_or(f64::INFINITY));
    let neutral = match claim.figure.as_str() {
        "gain" => Some(0.0),
        "ratio" => Some(1.0),
        _ => claim.is_compared().then_some(1.0),
    };
    let reversed = neutral.is_some_and(|none| from >= none && high < none || to <= none && low > none);
    match () {
        () if low >= from && high <= to => ClaimVerdict::Holds,
        () if reversed => ClaimVerdict::Reversed,
        () if high < from || low > to => ClaimVerdict::DoesntHold,
        () => ClaimVerdict::CantTell,
    }
}

/// The verdict if the claim must hold for all trials. One contradicting trial refutes the claim. If all decided trials
/// have the opposite direction, the claim is reversed.
pub fn verdict_of_all(evidence: &[Evidence]) -> ClaimVerdict {
    let count = |verdict: ClaimVerdict| evidence.iter().filter(|one| one.verdict == verdict).count();
    match (count(ClaimVerdict::Holds), count(ClaimVerdict::DoesntHold), count(ClaimVerdict::Reversed)) {
        (holds, 0, 0) if holds == evidence.len() => ClaimVerdict::Holds,
        (_, 0, 0) => ClaimVerdict::CantTell,
        (0, 0, _) => ClaimVerdict::Reversed,
        _ => ClaimVerdict::DoesntHold,
    }
}

/// The interval of the largest (or smallest) figure of all `covered` trials. The largest figure is at least the largest
/// lower end of the intervals, and at most the largest upper end. If a trial is missing or has no interval, one end is
/// infinite.
pub fn extreme_ends(which: Which, evidence: &[Evidence], covered: usize) -> (f64, f64) {
    let take = if which == Which::Most { f64::max } else { f64::min };
    let ends = evidence.iter().filter_map(|one| one.with_all_others);
    let (low, high) = ends
        .reduce(|one, other| (take(one.0, other.0), take(one.1, other.1)))
        .unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
    match (without_interval(evidence, covered), which) {
        (true, Which::Most) => (low, f64::INFINITY),
        (true, _) => (f64::NEG_INFINITY, high),
        (false, _) => (low, high),
    }
}

/// Whether one of the `covered` trials is missing or has no interval.
pub fn without_interval(evidence: &[Evidence], covered: usize) -> bool {
    evidence.iter().filter(|one| one.with_all_others.is_some()).count() < covered
}

/// The evidence that decides an answer: a trial with the answer's verdict, the highest or the lowest figure.
pub fn decisive<'a>(claim: &Claim, answer: &'a Answer) -> Option<&'a Evidence> {
    let figure = |one: &&Evidence, other: &&Evidence| one.figure.total_cmp(&other.figure);
    match claim.which {
        Which::Most => answer.evidence.iter().max_by(figure),
        Which::Least => answer.evidence.iter().min_by(figure),
        Which::Each => {
            let as_answered = answer.evidence.iter().find(|one| one.verdict == answer.verdict);
            let contradicts = answer
                .evidence
                .iter()
                .find(|one| matches!(one.verdict, ClaimVerdict::DoesntHold | ClaimVerdict::Reversed))
                .filter(|_| answer.verdict == ClaimVerdict::DoesntHold);
            as_answered.or(contradicts).or(answer.evidence.first())
        }
    }
}
