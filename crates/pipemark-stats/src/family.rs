//! Adjusts intervals for the number of comparisons in a document.

use std::collections::BTreeMap;

use statrs::distribution::{ContinuousCDF, StudentsT};

use pipemark_model::Estimate;

use crate::estimate::{self, CONFIDENCE, median};
use crate::sessions::mean;

/// The minimum noise assumed for a ratio, as a fraction of the typical noise of the document's ratios. If runs are
/// bimodal, a few rounds may all be in the same mode and seem to have no noise.
const MIN_NOISE: f64 = 0.5;

/// The minimum number of independent runs from which a spread can be estimated.
const MIN_INDEPENDENT: f64 = 2.0;

/// All comparisons between the trials of a document. Some of them are reported.
///
/// With individual 95 % intervals, one of twenty equal pairs would be reported as different. So the interval that
/// decides whether a difference is reported is widened until all intervals hold jointly (Bonferroni, with Student's t).
/// The interval is widened further if successive runs are correlated. Tables and findings still show the original
/// figure and interval.
#[derive(Debug, Clone, Copy)]
pub struct Family {
    comparisons: f64,
    /// The correlation of successive runs, 0 to 0.9.
    correlation: f64,
    /// The minimum half width of an interval, as a logarithm.
    noise: f64,
}

impl Family {
    /// Creates the family of trials that are all compared with each other. Each map has a trial's figures by round, all
    /// above zero.
    pub fn of(trials: &[BTreeMap<u32, f64>]) -> Family {
        let pairs = trials.len() * trials.len().saturating_sub(1) / 2;
        Family::from_series(&residuals(trials), pairs)
    }

    /// Creates the family of ratios that are reported individually. Each list has a ratio's figures, one per round, all
    /// above zero.
    pub fn of_ratios(ratios: &[Vec<f64>]) -> Family {
        let residuals = |ratios: &Vec<f64>| {
            let logs: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
            let middle = mean(&logs);
            logs.into_iter().map(|log| log - middle).collect()
        };
        Family::from_series(&ratios.iter().map(residuals).collect::<Vec<_>>(), ratios.len())
    }

    fn from_series(series: &[Vec<f64>], comparisons: usize) -> Family {
        let correlations: Vec<f64> = series.iter().filter_map(|series| correlation(series)).collect();
        let halves = series.iter().filter_map(|series| {
            half_width_of(&estimate::from_runs(&series.iter().map(|residual| residual.exp()).collect::<Vec<_>>())?)
        });
        Family {
            comparisons: comparisons.max(1) as f64,
            correlation: (correlations.iter().sum::<f64>() / correlations.len().max(1) as f64).clamp(0.0, 0.9),
            noise: MIN_NOISE * median(&halves.collect::<Vec<_>>()).unwrap_or(0.0),
        }
    }

    /// Sets the number of comparisons, at least 1.
    pub fn with(self, comparisons: f64) -> Family {
        Family { comparisons, ..self }
    }

    /// Limits the correlation, so that `runs` runs count as at least `independent` independent runs. A few runs allow
    /// only a rough estimate of the correlation.
    pub(crate) fn with_min_independent_runs(self, independent: f64, runs: f64) -> Family {
        let most = ((runs - independent) / (runs + independent)).clamp(0.0, 0.9);
        Family { correlation: self.correlation.min(most), ..self }
    }

    /// The number of comparisons.
    pub fn comparisons(&self) -> f64 {
        self.comparisons
    }

    /// Creates a family with this number of comparisons, for ratios whose runs are independent. Assumes no minimum
    /// noise.
    pub fn of_independent(comparisons: usize) -> Family {
        Family { comparisons: comparisons.max(1) as f64, correlation: 0.0, noise: 0.0 }
    }

    /// The interval of a ratio, adjusted for all comparisons; `None` if the ratio has no interval or too few rounds.
    pub fn interval(&self, ratio: &Estimate) -> Option<(f64, f64)> {
        let half = (half_width_of(ratio)?.max(self.noise) * self.widening(f64::from(ratio.runs))?).exp();
        Some((ratio.median / half, ratio.median * half))
    }

    /// The factor by which to widen an interval from `runs` runs; `None` if there are too few runs.
    fn widening(&self, runs: f64) -> Option<f64> {
        let correlated_runs = (1.0 + self.correlation) / (1.0 - self.correlation);
        let independent = runs / correlated_runs;
        let quantile =
            |outside: f64, runs: f64| Some(-StudentsT::new(0.0, 1.0, runs - 1.0).ok()?.inverse_cdf(outside / 2.0));
        let one = quantile(1.0 - CONFIDENCE, runs)?;
        let all = quantile((1.0 - CONFIDENCE) / self.comparisons, independent)?;
        (independent >= MIN_INDEPENDENT).then_some(correlated_runs.sqrt() * all / one)
    }
}

/// The wider half of an interval, as a logarithm; `None` without an interval.
fn half_width_of(estimate: &Estimate) -> Option<f64> {
    let (low, high) = estimate.low.zip(estimate.high).filter(|(low, _)| *low > 0.0)?;
    Some((estimate.median / low).max(high / estimate.median).ln())
}

/// The residuals of each trial's log figures after two subtractions: the trial's mean, and the effect that all trials
/// share in a round.
fn residuals(trials: &[BTreeMap<u32, f64>]) -> Vec<Vec<f64>> {
    let mut rounds: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    let mut deviations: Vec<Vec<(u32, f64)>> = Vec::new();
    for trial in trials {
        let middle = mean(&trial.values().map(|figure| figure.ln()).collect::<Vec<_>>());
        let left: Vec<(u32, f64)> = trial.iter().map(|(round, figure)| (*round, figure.ln() - middle)).collect();
        left.iter().for_each(|(round, left)| rounds.entry(*round).or_default().push(*left));
        deviations.push(left);
    }
    let common = BTreeMap::from_iter(rounds.into_iter().map(|(round, left)| (round, mean(&left))));
    let of_trial = |left: Vec<(u32, f64)>| left.into_iter().map(|(round, left)| left - common[&round]).collect();
    deviations.into_iter().map(of_trial).collect()
}

/// The correlation of each run with the next; `None` without noise or with too few runs. It is corrected for the bias
/// that arises because the mean is estimated from the same runs.
fn correlation(series: &[f64]) -> Option<f64> {
    let runs = series.len() as f64;
    let squares: f64 = series.iter().map(|left| left * left).sum();
    let products: f64 = series.windows(2).map(|two| two[0] * two[1]).sum();
    (runs > 5.0 && squares > 1e-12).then(|| (runs * products / squares + 1.0) / (runs - 4.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trials(count: usize, runs: usize, figure: impl Fn(usize, usize) -> f64) -> Vec<BTreeMap<u32, f64>> {
        (0..count).map(|trial| (0..runs).map(|run| (run as u32, figure(trial, run))).collect()).collect()
    }

    #[test]
    fn more_comparisons_need_wider_intervals() {
        let noise = [1.0, 1.02, 0.99, 0.98, 1.01, 1.0, 0.99, 1.02];
        let ratio = estimate::from_runs(&noise).unwrap();
        let half = |count: usize| {
            // In this example, successive runs are independent.
            let family = Family::of(&trials(count, 8, |trial, run| noise[(run * 3 + trial * 5) % 8]));
            let (low, high) = family.interval(&ratio).unwrap();
            assert!((low * high / ratio.median.powi(2) - 1.0).abs() < 1e-12, "as far up as down");
            high / ratio.median - 1.0
        };
        assert!(half(2) >= ratio.high.unwrap() / ratio.median - 1.0 - 1e-12);
        assert!(half(40) > 1.5 * half(4), "{} and {}", half(40), half(4));
    }

    #[test]
    fn correlated_runs_count_less() {
        let states = [1.0, 1.0, 1.0, 1.2, 1.2, 1.2, 1.0, 1.0, 1.0, 1.2, 1.2, 1.2];
        let correlated_runs = Family::of(&trials(8, 12, |trial, run| states[(run + trial) % 12]));
        let mixed = Family::of(&trials(8, 12, |trial, run| [1.0, 1.2][(run * 7 + trial * 5 + run * run) / 3 % 2]));
        assert!(correlated_runs.correlation > 0.3 && mixed.correlation < 0.2, "{correlated_runs:?} {mixed:?}");
        let ratio = estimate::from_runs(&states).unwrap();
        assert!(correlated_runs.interval(&ratio).is_none_or(|(low, _)| low < 0.5 * mixed.interval(&ratio).unwrap().0));
    }

    #[test]
    fn a_disturbance_of_a_whole_round_is_not_noise() {
        let rounds = [1.0, 1.5, 0.7, 2.0, 0.5, 1.1, 0.9, 1.3];
        let family = Family::of(&trials(6, 8, |trial, run| rounds[run] * (trial + 1) as f64));
        assert!(family.noise < 1e-9 && family.correlation == 0.0, "{family:?}");
    }

    #[test]
    fn the_noise_of_the_family_widens_a_ratio() {
        let noise = [1.0, 1.2, 0.9, 0.8, 1.1, 1.0, 0.9, 1.2];
        let family = Family::of(&trials(8, 8, |trial, run| noise[(run * 3 + trial * 5) % 8]));
        let (low, high) = family.interval(&estimate::from_runs(&[1.5; 8]).unwrap()).unwrap();
        assert!(low < 1.4 && high > 1.6, "{low} {high}");
    }
}
