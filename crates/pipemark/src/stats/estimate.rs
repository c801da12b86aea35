//! What the runs of one trial say about it: the median and how far it can be trusted.

use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, Normal, StudentsT};

use crate::model::Estimate;

/// The fewest runs for which there is an interval at all.
///
/// All of 2, 3 or 4 runs lie on one side of the true median with a probability of 50, 25 or 12.5 %: not even the whole
/// range from the least to the greatest is then an interval of 95 %.
pub const FEWEST_RUNS: usize = 5;

/// The level of every interval in this program.
pub const CONFIDENCE: f64 = 0.95;

impl Estimate {
    /// The estimate from one figure per run; `None` without runs or if a figure is not finite.
    ///
    /// The interval is a bootstrap's, in the form that needs no dice. A resampled median is at most the k-th smallest
    /// of n figures when at least half of n draws are among these k, so its distribution is a sum of binomial
    /// probabilities (Maritz and Jarrett, JASA 1978), here computed instead of drawn: no seed, no error of
    /// resampling, microseconds. The plain percentile bootstrap is too narrow for few runs (its interval from 7 runs,
    /// the 2nd to the 6th figure, covers the median 87.5 % of the time), so the percentiles are widened as Hesterberg
    /// proposes ("What Teachers Should Know about the Bootstrap", 2015, section 5.3). Both ends are measured figures,
    /// and for an even n the outer one of two is taken.
    ///
    /// Coverage, exact for independent runs of any continuous distribution: 93.75 % at n = 5 (least to greatest: there
    /// is nothing wider), at least 93.4 % up to n = 1000 (by a test), 95 % or more for most n. What it can't see is an
    /// error that all runs share.
    pub fn of(figures: &[f64]) -> Option<Estimate> {
        if figures.is_empty() || figures.iter().any(|figure| !figure.is_finite()) {
            return None;
        }
        let mut sorted = figures.to_vec();
        sorted.sort_by(f64::total_cmp);
        let runs = sorted.len();
        let rank = interval_rank(runs);
        Some(Estimate {
            median: median_of_sorted(&sorted),
            low: rank.map(|rank| sorted[rank - 1]),
            high: rank.map(|rank| sorted[runs - rank]),
            min: sorted[0],
            max: sorted[runs - 1],
            runs: u32::try_from(runs).unwrap_or(u32::MAX),
        })
    }

    /// Whether the whole interval lies within `fraction` of the median (0.03: ±3 %). Never so without an interval.
    pub fn narrow_enough(&self, fraction: f64) -> bool {
        let margin = self.median.abs() * fraction;
        match (self.low, self.high) {
            (Some(low), Some(high)) => self.median - low <= margin && high - self.median <= margin,
            _ => false,
        }
    }
}

/// The median; `None` of nothing.
pub fn median(figures: &[f64]) -> Option<f64> {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    (!sorted.is_empty()).then(|| median_of_sorted(&sorted))
}

/// The median of ascending figures, of which there must be one at least.
pub(super) fn median_of_sorted(sorted: &[f64]) -> f64 {
    let n = sorted.len();
    f64::midpoint(sorted[(n - 1) / 2], sorted[n / 2])
}

/// The 95 % interval of the median goes from the k-th smallest of `n` figures to the k-th greatest; this is k.
fn interval_rank(n: usize) -> Option<usize> {
    if n < FEWEST_RUNS {
        return None;
    }
    let tail = expanded_tail(n);
    let middle = n.div_ceil(2) as u64;
    // P(resampled lower median <= k-th smallest) grows with k, from below `tail` or so at 1 to about a half at the middle.
    let (mut least, mut most) = (1, n.div_ceil(2));
    while least < most {
        let k = usize::midpoint(least, most);
        let among = Binomial::new(k as f64 / n as f64, n as u64).expect("k/n is a probability");
        if among.sf(middle - 1) >= tail {
            most = k;
        } else {
            least = k + 1;
        }
    }
    Some(least)
}

/// The share of resampled medians left out on each side: 2.5 % for large n, less for few runs.
fn expanded_tail(n: usize) -> f64 {
    let n = n as f64;
    let t = StudentsT::new(0.0, 1.0, n - 1.0).expect("n is above 1").inverse_cdf((1.0 + CONFIDENCE) / 2.0);
    Normal::standard().cdf(-(n / (n - 1.0)).sqrt() * t)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_run_has_a_median_and_no_interval() {
        let one = Estimate::of(&[7.0]).unwrap();
        assert_eq!((one.median, one.min, one.max, one.runs), (7.0, 7.0, 7.0, 1));
        assert_eq!((one.low, one.high), (None, None));
        assert!(!one.narrow_enough(1.0));
    }

    #[test]
    fn four_runs_have_no_interval_and_five_have_their_range() {
        assert_eq!(Estimate::of(&[4.0, 1.0, 3.0, 2.0]).unwrap().low, None);
        let five = Estimate::of(&[5.0, 1.0, 4.0, 2.0, 3.0]).unwrap();
        assert_eq!((five.low, five.median, five.high), (Some(1.0), 3.0, Some(5.0)));
    }

    #[test]
    fn nothing_and_not_a_number_have_no_estimate() {
        assert_eq!(Estimate::of(&[]), None);
        assert_eq!(Estimate::of(&[1.0, f64::NAN]), None);
        assert_eq!(Estimate::of(&[1.0, f64::INFINITY]), None);
    }

    #[test]
    fn narrow_means_both_sides() {
        let estimate = Estimate { median: 100.0, low: Some(97.0), high: Some(103.0), min: 90.0, max: 110.0, runs: 9 };
        assert!(estimate.narrow_enough(0.03));
        assert!(!Estimate { high: Some(103.1), ..estimate }.narrow_enough(0.03));
        assert!(!Estimate { low: Some(96.9), ..estimate }.narrow_enough(0.03));
    }

    /// Hesterberg 2015, table 5: the one-sided 2.5 % becomes 0.0010, 0.0086 and 0.0159 for n = 5, 10 and 20.
    #[test]
    fn percentiles_are_expanded_as_published() {
        for (n, published) in [(5, 0.0010), (10, 0.0086), (20, 0.0159)] {
            assert!((expanded_tail(n) - published).abs() < 0.00006, "n = {n}: {}", expanded_tail(n));
        }
    }

    /// The sign test's ranks (e.g. Hollander and Wolfe, table A.2): the figures outside which 95 % can't be.
    #[test]
    fn ranks_of_the_interval() {
        for (n, rank) in [(5, 1), (6, 1), (7, 1), (8, 1), (9, 2), (10, 2), (12, 3), (15, 4), (20, 6), (100, 40)] {
            assert_eq!(interval_rank(n), Some(rank), "n = {n}");
        }
    }

    #[test]
    fn the_interval_covers_what_it_says() {
        for n in FEWEST_RUNS..=1000 {
            let below = Binomial::new(0.5, n as u64).unwrap();
            let outside = 2.0 * below.cdf(interval_rank(n).unwrap() as u64 - 1);
            assert!(outside <= 0.066, "n = {n}: outside {outside}");
            assert!(n < 20 || outside >= 0.016, "n = {n}: needlessly wide, outside {outside}");
        }
    }

    proptest! {
        #[test]
        fn is_ordered_and_blind_to_order(mut figures in prop::collection::vec(-1e9..1e9f64, 1..60)) {
            let estimate = Estimate::of(&figures).unwrap();
            prop_assert!(estimate.min <= estimate.median && estimate.median <= estimate.max);
            if let (Some(low), Some(high)) = (estimate.low, estimate.high) {
                prop_assert!(estimate.min <= low && low <= estimate.median);
                prop_assert!(estimate.median <= high && high <= estimate.max);
            }
            prop_assert_eq!(estimate.low.is_some(), figures.len() >= FEWEST_RUNS);
            figures.reverse();
            prop_assert_eq!(Estimate::of(&figures).unwrap(), estimate);
        }

        #[test]
        fn survives_its_json(figures in prop::collection::vec(0.0..1e12f64, 1..9)) {
            let estimate = Estimate::of(&figures).unwrap();
            let text = serde_json::to_string(&estimate).unwrap();
            let back: Estimate = serde_json::from_str(&text).unwrap();
            prop_assert!((back.median - estimate.median).abs() <= estimate.median * 1e-15);
            prop_assert_eq!(back.low.is_some(), estimate.low.is_some());
        }
    }
}
