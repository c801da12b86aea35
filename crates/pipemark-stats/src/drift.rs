//! Tests whether the figures of a trial rose or fell during the measurement, for example because the machine warmed up
//! or became busier.

use crate::estimate::{MIN_RUNS, median};
use crate::ranks::NullDistribution;

/// The largest number of runs compared pairwise, which gives about a million pairs.
const MAX_RUNS: usize = 1500;

/// A trend of the figures over the order of the runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    /// Two-sided p-value of the Mann-Kendall test: the probability that runs without a trend show a trend as strong as
    /// this one.
    pub p: f64,
    /// The change from the first run to the last, as a fraction of the first run's figure. It is the change of the
    /// Theil-Sen line through the logarithms.
    pub change: f64,
}

impl Drift {
    /// Returns the drift of `figures`, which are in the order of the runs. `None` with fewer than five or more than
    /// 1500 figures, or if a figure isn't above zero.
    ///
    /// The p-value is exact for up to 45 runs. With five runs, only a strictly rising or falling order has a p-value
    /// below 5 %: 1.7 %. Ties count against a trend: with many ties the test may miss a trend, but it doesn't report
    /// false trends.
    pub fn of(figures: &[f64]) -> Option<Drift> {
        let n = figures.len();
        let figures: Vec<f64> = figures.iter().map(|figure| figure.ln()).collect();
        if !(MIN_RUNS..=MAX_RUNS).contains(&n) || figures.iter().any(|figure| !figure.is_finite()) {
            return None;
        }
        let (mut rises, mut falls) = (0, 0);
        let mut slopes = Vec::with_capacity(n * (n - 1) / 2);
        for later in 1..n {
            for earlier in 0..later {
                let step = figures[later] - figures[earlier];
                rises += usize::from(step > 0.0);
                falls += usize::from(step < 0.0);
                slopes.push(step / (later - earlier) as f64);
            }
        }
        let against = slopes.len() - rises.max(falls);
        let slope = median(&slopes)?;
        Some(Drift { p: NullDistribution::inversions(n).p_value(against), change: (slope * (n - 1) as f64).exp_m1() })
    }

    /// Whether the drift is large enough for a warning: the trend is significant at 5 %, and the change from the first
    /// run to the last is above `fraction`.
    pub fn exceeds(&self, fraction: f64) -> bool {
        self.p <= 0.05 && self.change.abs() > fraction
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Hollander and Wolfe 1973, pages 187–188 (tuna quality, ordered by Hunter L value). R's cor.test prints T = 26,
    /// p-value = 0.1194.
    #[test]
    fn agrees_with_the_published_example() {
        let panel = [2.5, 4.0, 2.6, 3.6, 2.8, 3.1, 5.2, 5.0, 3.8];
        let drift = Drift::of(&panel).unwrap();
        assert!((drift.p - 0.1194).abs() < 5e-5, "{drift:?}");
    }

    #[test]
    fn five_falling_runs_drift() {
        let drift = Drift::of(&[104.0, 103.0, 100.0, 98.0, 96.0]).unwrap();
        assert!((drift.p - 2.0 / 120.0).abs() < 1e-12);
        assert!((drift.change + 0.08).abs() < 0.005, "{drift:?}");
        assert!(drift.exceeds(0.03));
        assert!(!drift.exceeds(0.1));
        // A large change is also relative to the first run. Here it is a loss of two thirds.
        let halving = [9.0, 7.4, 6.6, 5.4, 4.7, 4.0, 3.5, 3.0];
        assert!((Drift::of(&halving).unwrap().change + 2.0 / 3.0).abs() < 0.02);
    }

    #[test]
    fn equal_runs_do_not_drift() {
        let drift = Drift::of(&[5.0; 12]).unwrap();
        assert_eq!((drift.p, drift.change), (1.0, 0.0));
    }

    #[test]
    fn too_few_or_invalid_runs_give_no_drift() {
        assert_eq!(Drift::of(&[1.0, 2.0, 3.0, 4.0]), None);
        assert_eq!(Drift::of(&[1.0, 2.0, f64::NAN, 4.0, 5.0]), None);
    }

    proptest! {
        #[test]
        fn reversed_figures_have_the_inverse_drift(mut figures in prop::collection::vec(1.0..100.0f64, 5..25)) {
            let there = Drift::of(&figures).unwrap();
            figures.reverse();
            let back = Drift::of(&figures).unwrap();
            prop_assert!(((1.0 + there.change) * (1.0 + back.change) - 1.0).abs() < 1e-9);
            prop_assert!((there.p - back.p).abs() < 1e-12);
            prop_assert!((0.0..=1.0).contains(&there.p));
        }
    }
}
