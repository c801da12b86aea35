//! Estimates a figure with its interval from the runs of one trial.

use pipemark_model::Estimate;

use crate::ranks::NullDistribution;

/// The minimum number of runs for which there is an interval.
///
/// With 2, 3 or 4 runs, the probability that all runs are on one side of the true value is 50, 25 or 12.5 %. So with so
/// few runs, not even the range from the smallest to the largest run is a 95 % interval.
pub const MIN_RUNS: usize = 5;

/// The minimum number of runs after which a trial may stop because its interval is narrow. If a trial is bimodal, fewer
/// runs may all be in the same mode.
pub(crate) const MIN_TO_STOP: u32 = 12;

/// The largest distance of a run from the estimate at which a trial may stop because its interval is narrow, as a
/// multiple of the requested precision. A run farther from the estimate may belong to another mode.
const MAX_DEVIATION_TO_STOP: f64 = 5.0;

/// The confidence level of every interval in this program, except where another is stated.
pub(crate) const CONFIDENCE: f64 = 0.95;

/// The approximate number of pairs of runs that are averaged. Up to 1024 runs, all pairs are averaged. Above that, only
/// pairs of nearby runs are averaged.
const MAX_PAIRS: usize = 1 << 20;

/// Returns the estimate from one figure per run; `None` without runs or if a figure is not finite.
///
/// It is the Hodges-Lehmann estimate: the median of the means of all pairs of runs, including each run paired with
/// itself. The means are geometric, so the estimate of the inverses is the inverse of the estimate: times and speeds
/// give the same result. If a figure isn't above zero, the means are arithmetic.
///
/// The interval is that of Wilcoxon's signed-rank test, from the k-th smallest of the means to the k-th largest. With
/// five runs it is the whole range of the means, a 93.75 % interval. docs/method.md reports the interval's coverage,
/// both simulated and measured.
pub fn from_runs(figures: &[f64]) -> Option<Estimate> {
    if figures.is_empty() || figures.iter().any(|figure| !figure.is_finite()) {
        return None;
    }
    let (min, max) = figures
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(min, max), figure| (min.min(*figure), max.max(*figure)));
    let mean = if min > 0.0 { geometric } else { f64::midpoint };
    let means = pair_means(figures, mean);
    let runs = figures.len();
    let rank = NullDistribution::signed_rank(runs).critical_rank(1.0 - CONFIDENCE);
    let rank = rank.map(|rank| (rank * means.len()).div_ceil(runs * (runs + 1) / 2));
    let rank = rank.or((runs >= MIN_RUNS).then_some(1));
    Some(Estimate {
        median: median_of_sorted(&means, mean),
        low: rank.map(|rank| means[rank - 1]),
        high: rank.map(|rank| means[means.len() - rank]),
        min,
        max,
        runs: u32::try_from(runs).unwrap_or(u32::MAX),
    })
}

/// Whether the figure is known within `fraction` (0.03 is ±3 %). The whole interval must be within `fraction` of the
/// estimate, there must be enough runs, and no run may be so far from the estimate that it could belong to another
/// mode.
pub fn is_narrow(estimate: &Estimate, fraction: f64) -> bool {
    let within = |low: f64, high: f64, fraction: f64| {
        (estimate.median - low).max(high - estimate.median) <= estimate.median.abs() * fraction
    };
    estimate.low.zip(estimate.high).is_some_and(|(low, high)| within(low, high, fraction))
        && estimate.runs >= MIN_TO_STOP
        && within(estimate.min, estimate.max, MAX_DEVIATION_TO_STOP * fraction)
}

/// The median of `figures`; `None` for an empty slice.
pub fn median(figures: &[f64]) -> Option<f64> {
    let mut sorted = figures.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    (!sorted.is_empty()).then(|| median_of_sorted(&sorted, f64::midpoint))
}

/// The median of figures sorted in ascending order. There must be at least one.
pub(super) fn median_of_sorted(sorted: &[f64], mean: fn(f64, f64) -> f64) -> f64 {
    mean(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2])
}

/// The means of all pairs of figures, ascending, computed by `mean`.
pub(super) fn pair_means(figures: &[f64], mean: fn(f64, f64) -> f64) -> Vec<f64> {
    let reach = MAX_PAIRS.div_ceil(figures.len().max(1));
    let of_one = |at: usize| figures[at..].iter().take(reach).map(move |other| mean(figures[at], *other));
    let mut means: Vec<f64> = (0..figures.len()).flat_map(of_one).collect();
    means.sort_unstable_by(f64::total_cmp);
    means
}

/// The geometric mean of two figures above zero.
pub(super) fn geometric(one: f64, other: f64) -> f64 {
    match one * other {
        product if product.is_normal() => product.sqrt(),
        _ => one.sqrt() * other.sqrt(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_run_has_a_median_and_no_interval() {
        let one = from_runs(&[7.0]).unwrap();
        assert_eq!((one.median, one.min, one.max, one.runs), (7.0, 7.0, 7.0, 1));
        assert_eq!((one.low, one.high), (None, None));
        assert!(!is_narrow(&one, 1.0));
    }

    #[test]
    fn four_runs_have_no_interval_and_five_have_their_range() {
        assert_eq!(from_runs(&[4.0, 1.0, 3.0, 2.0]).unwrap().low, None);
        let five = from_runs(&[5.0, 1.0, 4.0, 2.0, 3.0]).unwrap();
        assert_eq!((five.low, five.high), (Some(1.0), Some(5.0)));
        assert!((five.median - 8f64.sqrt()).abs() < 1e-12, "the middle of 2 and 4: {five:?}");
    }

    #[test]
    fn missing_or_nonfinite_figures_have_no_estimate() {
        assert_eq!(from_runs(&[]), None);
        assert_eq!(from_runs(&[1.0, f64::NAN]), None);
        assert_eq!(from_runs(&[1.0, f64::INFINITY]), None);
    }

    #[test]
    fn a_narrow_interval_is_narrow_on_both_sides() {
        let estimate = Estimate { median: 100.0, low: Some(97.0), high: Some(103.0), min: 86.0, max: 114.0, runs: 12 };
        assert!(is_narrow(&estimate, 0.03));
        assert!(!is_narrow(&Estimate { high: Some(103.1), ..estimate }, 0.03));
        assert!(!is_narrow(&Estimate { low: Some(96.9), ..estimate }, 0.03));
        assert!(!is_narrow(&Estimate { runs: 11, ..estimate }, 0.03), "too few to have met another speed");
        assert!(!is_narrow(&Estimate { max: 116.0, ..estimate }, 0.03), "another speed may have been met");
    }

    /// Wilcoxon's ranks (Siegel 1956, table G): with 10 runs, the ends of the interval are the 9th smallest and the 9th
    /// largest of the 55 pair means.
    #[test]
    fn the_interval_is_that_of_the_signed_rank_test() {
        let figures = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0];
        let estimate = from_runs(&figures).unwrap();
        // The pair means are powers of 2 with exponents 0, 0.5, 1, 1, 1.5, 1.5, 2, 2, 2, …. The 9th exponent is 2, and
        // the middle exponent is 4.5.
        let exponents = [estimate.low.unwrap(), estimate.median, estimate.high.unwrap()].map(f64::log2);
        assert!(exponents.iter().zip([2.0, 4.5, 7.0]).all(|(is, wanted)| (is - wanted).abs() < 1e-12), "{exponents:?}");
        let narrower = |runs: usize| {
            let estimate = from_runs(&(0..runs).map(|run| 100.0 + run as f64).collect::<Vec<_>>()).unwrap();
            estimate.low.unwrap() > estimate.min
        };
        assert!(!narrower(6) && narrower(7));
    }

    #[test]
    fn the_middle_of_two_figures_never_overflows_or_underflows() {
        for figures in [[1e300, 4e300], [1e-300, 4e-300], [4e-320, 4e-320]] {
            let median = from_runs(&figures).unwrap().median;
            assert!((figures[0]..=figures[1] * 1.01).contains(&(median * 1.005)), "{median}");
        }
        assert_eq!(from_runs(&[0.0, 4.0]).unwrap().median, 2.0);
    }

    #[test]
    fn pairing_is_limited_for_very_many_runs() {
        let figures: Vec<f64> = (0..10_000).map(|run| 100.0 + f64::from(run % 10)).collect();
        let estimate = from_runs(&figures).unwrap();
        assert!((estimate.median - 104.5).abs() < 0.1 && estimate.runs == 10_000, "{estimate:?}");
        assert!(estimate.high.unwrap() - estimate.low.unwrap() < 0.3, "{estimate:?}");
    }

    proptest! {
        #[test]
        fn estimates_are_ordered_and_ignore_the_order_of_runs(mut figures in prop::collection::vec(-1e9..1e9f64, 1..60)) {
            let estimate = from_runs(&figures).unwrap();
            prop_assert!(estimate.min <= estimate.median && estimate.median <= estimate.max);
            if let (Some(low), Some(high)) = (estimate.low, estimate.high) {
                prop_assert!(estimate.min <= low && low <= estimate.median);
                prop_assert!(estimate.median <= high && high <= estimate.max);
            }
            prop_assert_eq!(estimate.low.is_some(), figures.len() >= MIN_RUNS);
            figures.reverse();
            prop_assert_eq!(from_runs(&figures).unwrap(), estimate);
        }

        #[test]
        fn inverse_figures_have_the_inverse_estimate(figures in prop::collection::vec(1e-3..1e3f64, 5..40)) {
            let estimate = from_runs(&figures).unwrap();
            let over = from_runs(&figures.iter().map(|figure| 1.0 / figure).collect::<Vec<_>>()).unwrap();
            for (one, other) in [(estimate.median, over.median), (estimate.low.unwrap(), over.high.unwrap())] {
                prop_assert!((one * other - 1.0).abs() < 1e-9, "{one} {other}");
            }
        }

        #[test]
        fn an_estimate_survives_json(figures in prop::collection::vec(0.0..1e12f64, 1..9)) {
            let estimate = from_runs(&figures).unwrap();
            let text = serde_json::to_string(&estimate).unwrap();
            let back: Estimate = serde_json::from_str(&text).unwrap();
            prop_assert!((back.median - estimate.median).abs() <= estimate.median * 1e-15);
            prop_assert_eq!(back.low.is_some(), estimate.low.is_some());
        }
    }
}
