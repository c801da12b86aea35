//! Compares NEW with BASE: better, worse, same, or inconclusive.
//!
//! Each run gives one figure. The logarithms of these figures are compared. So a change is a ratio, and the verdict is
//! the same for seconds as for bytes per second.
//!
//! - Not paired (two files): the Mann-Whitney test, and the Hodges-Lehmann estimate with the interval of that test.
//!   Both use the ordered differences between each run of NEW and each run of BASE.
//! - Paired by round (both sides measured in one session): Wilcoxon's signed-rank test, and the Hodges-Lehmann estimate
//!   with the interval of that test. Both use the ordered means of all pairs of log ratios, one ratio per round. An
//!   effect that a round has on both sides cancels. The paired test needs six rounds. With four or five rounds, the
//!   runs are compared as if not paired. If rounds differ, that is only more cautious.
//!
//! Why rank tests: if both sides are the same program, their runs (or rounds) are exchangeable, so these tests are
//! exact for any distribution. At most 5 % of such comparisons report a false difference, with 5 runs as with 500,
//! without resampling or a seed. Alternatives were simulated with 20 000 comparisons each, of 5 to 15 runs, for four
//! kinds of noise: normal (1.5 %), skewed, with 10 % outliers, and bimodal as with pipes. The percentile bootstrap of
//! the median reports a false difference in 8 to 12 % of comparisons. Student's t on log ratios keeps its 5 % for
//! normal noise, reaches 6 % for bimodal noise, and loses power with outliers: with 7 runs it detects 59 % of changes
//! by 5 %, the Mann-Whitney test 86 %. With normal noise, where t is best, the rank tests detect 98 % of such changes
//! with 5 runs, 94 % with 6 rounds, and over 99 % with 7 runs or rounds.
//!
//! Limitation: a difference between two whole sessions, such as memory layout or a neighbour on the host, affects every
//! run of one file and none of the other. A comparison of two sessions of the same program shows the size of such
//! differences; choose a threshold above it.

use pipemark_model::digits;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal};

use crate::estimate::{CONFIDENCE, geometric, median_of_sorted, pair_means};
use crate::ranks::NullDistribution;
use crate::verdict::{Criterion, Verdict};

/// The maximum number of runs per side. All pairs of runs are compared: a million pairs, which take 8 MB.
pub const MAX_RUNS: usize = 1000;

/// The power at which a change counts as detectable.
pub(crate) const POWER: f64 = 0.9;

/// How the runs of BASE and NEW are paired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Pairing {
    /// Runs at the same position were made in the same round.
    Rounds,
    /// Runs were made at different times, and each run counts once.
    None,
    /// Runs were made in different sessions, and each session counts once.
    Sessions,
}

/// NEW against BASE. Changes are fractions of BASE: 0.05 is 5 % more.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// The Hodges-Lehmann estimate of the change. It is close to the ratio of the medians but rarely equal to it.
    pub change: f64,
    /// Lower end of the 95 % interval of the change; absent with too few runs for an interval.
    pub low: Option<f64>,
    /// Upper end of the 95 % interval.
    pub high: Option<f64>,
    /// Lower end of the interval that decides the verdict and is shown in tables. It accounts for all comparisons made
    /// together. Absent if there is no verdict.
    #[serde(default)]
    pub judged_low: Option<f64>,
    /// Upper end of the interval that decides the verdict.
    #[serde(default)]
    pub judged_high: Option<f64>,
    /// The smallest detectable change, a fraction: a comparison of this kind detects it in 8 to 9 of 10 cases.
    #[serde(default)]
    pub smallest_change: Option<f64>,
    /// Two-sided p-value of the hypothesis that there is no difference; at most 0.05 if the interval excludes 0.
    pub p: f64,
    /// The verdict.
    pub verdict: Verdict,
    /// Runs of BASE.
    pub base_runs: usize,
    /// Runs of NEW.
    pub new_runs: usize,
    /// Sessions of BASE; 0 if runs were compared.
    #[serde(default)]
    pub base_sessions: usize,
    /// Sessions of NEW.
    #[serde(default)]
    pub new_sessions: usize,
    /// Whether rounds, runs or sessions were compared.
    pub pairing: Pairing,
}

/// The reason why two sides can't be compared, as a message.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct CompareError(String);

impl CompareError {
    pub(super) fn no_runs() -> CompareError {
        CompareError("one side has no runs; measure both sides at least 5 times".to_owned())
    }
}

/// Compares NEW with BASE, given one figure per run. With [`Pairing::Rounds`], the figures must be in the order of the
/// rounds.
///
/// # Errors
///
/// If a side is empty or too long, a figure isn't a number above zero, or paired sides differ in length.
pub fn compare(base: &[f64], new: &[f64], pairing: Pairing, criterion: Criterion) -> Result<Comparison, CompareError> {
    check(base, new, pairing)?;
    let test = Test::new(base.len(), new.len(), pairing);
    let ratios = test.ratios(base, new);
    let ends = test.interval(&ratios);
    let interval = ends.map(|(low, high)| (low - 1.0, high - 1.0));
    Ok(Comparison {
        change: median_of_sorted(&ratios, geometric) - 1.0,
        low: interval.map(|(low, _)| low),
        high: interval.map(|(_, high)| high),
        judged_low: interval.map(|(low, _)| low),
        judged_high: interval.map(|(_, high)| high),
        smallest_change: ends.map(|ends| smallest_change(ends, criterion)),
        p: test.p_value(&ratios),
        verdict: criterion.verdict(interval),
        base_runs: base.len(),
        new_runs: new.len(),
        base_sessions: 0,
        new_sessions: 0,
        pairing: test.pairing,
    })
}

impl Comparison {
    /// The interval that decides the verdict, as fractions; `None` if there is no verdict.
    pub fn judged(&self) -> Option<(f64, f64)> {
        self.judged_low.zip(self.judged_high)
    }

    /// Sets the interval that decides the verdict, and updates the verdict.
    pub fn with_judged_interval(self, interval: Option<(f64, f64)>, criterion: Criterion) -> Comparison {
        Comparison {
            judged_low: interval.map(|(low, _)| low),
            judged_high: interval.map(|(_, high)| high),
            smallest_change: interval.map(|(low, high)| smallest_change((1.0 + low, 1.0 + high), criterion)),
            verdict: criterion.verdict(interval),
            ..self
        }
    }

    /// Half the width of the deciding interval, as a logarithm; `None` if there is no verdict.
    pub(crate) fn half_width(&self) -> Option<f64> {
        self.judged().map(|(low, high)| (high.ln_1p() - low.ln_1p()) / 2.0)
    }

    /// The factor by which the number of rounds or sessions must grow to decide an inconclusive comparison with 90 %
    /// probability, if the change stays the same. `None` if the factor is unknown, or if the change is so near a limit
    /// that no number of rounds would decide. A factor above [`MAX_FACTOR_TO_DECIDE`] isn't useful advice.
    pub fn factor_to_decide(&self, criterion: Criterion) -> Option<f64> {
        let (half, change) = (self.half_width()?, self.change.ln_1p().abs());
        let room = (criterion.same_within.ln_1p() - change).max(change - criterion.threshold.ln_1p());
        let [interval, seen] = [(1.0 + CONFIDENCE) / 2.0, POWER].map(|share| Normal::standard().inverse_cdf(share));
        (room > MIN_ROOM).then(|| (half * (1.0 + seen / interval) / room).powi(2).max(1.0))
    }

    /// The smallest detectable change as text; `None` if it isn't known or above [`MAX_SHOWN_CHANGE`].
    pub fn smallest_change_text(&self) -> Option<String> {
        let change = self.smallest_change.filter(|change| *change <= MAX_SHOWN_CHANGE)?;
        Some(format!("smallest detectable change: {} %", digits(change * 100.0)))
    }

    /// Why there is no verdict, if the runs are so few that not even a large change would be detected.
    pub fn too_few_runs(&self, runs: usize) -> Option<String> {
        let few = runs < RUNS_FOR_A_VERDICT && self.smallest_change.is_some_and(|change| change > MAX_SHOWN_CHANGE);
        few.then(|| format!("{runs} runs are too few; use --runs {RUNS_FOR_A_VERDICT}"))
    }
}

/// A change whose distance from a limit is less than this, as a logarithm, counts as equal to the limit.
const MIN_ROOM: f64 = 1e-9;

/// The largest smallest detectable change that is shown, a fraction. Above a doubling, the figure says nothing but that
/// the interval is wide.
const MAX_SHOWN_CHANGE: f64 = 1.0;
/// The number of runs that is advised if there are too few.
const RUNS_FOR_A_VERDICT: usize = 10;

/// The largest factor of [`Comparison::factor_to_decide`] that is useful advice.
pub const MAX_FACTOR_TO_DECIDE: f64 = 1000.0;

/// The smallest detectable change, a fraction, for a given interval of the ratio.
pub(super) fn smallest_change((low, high): (f64, f64), criterion: Criterion) -> f64 {
    let half = (high / low).ln() / 2.0;
    let [interval, seen] = [(1.0 + CONFIDENCE) / 2.0, POWER].map(|share| Normal::standard().inverse_cdf(share));
    (criterion.threshold.ln_1p() + half * (1.0 + seen / interval)).exp_m1()
}

/// Returns the geometric mean of a group's trials in each round. `trials` has one slice of runs per trial. To compare
/// the groups of BASE and NEW, pass the means of both to [`compare`]. Its interval is computed from whole rounds, so a
/// disturbance of all trials in a round counts once.
///
/// # Errors
///
/// If there are no trials, the numbers of rounds differ, or a figure isn't a number above zero.
pub(crate) fn geometric_means<S: AsRef<[f64]>>(trials: &[S]) -> Result<Vec<f64>, CompareError> {
    let rounds = trials.first().ok_or_else(CompareError::no_runs)?.as_ref();
    for trial in trials {
        check(rounds, trial.as_ref(), Pairing::Rounds)?;
    }
    let of_round =
        |round: usize| (trials.iter().map(|trial| trial.as_ref()[round].ln()).sum::<f64>() / trials.len() as f64).exp();
    Ok((0..rounds.len()).map(of_round).collect())
}

pub(super) fn check(base: &[f64], new: &[f64], pairing: Pairing) -> Result<(), CompareError> {
    let runs = base.len().max(new.len());
    let odd = base.iter().chain(new).find(|figure| !(figure.is_finite() && **figure > 0.0));
    match odd {
        _ if base.is_empty() || new.is_empty() => Err(CompareError::no_runs()),
        _ if runs > MAX_RUNS => {
            Err(CompareError(format!("{runs} runs are too many to compare; use at most {MAX_RUNS}")))
        }
        Some(figure) => Err(CompareError(format!(
            "a run has the figure {figure}, but figures must be above 0; the file is damaged or the run failed"
        ))),
        None if pairing == Pairing::Rounds && base.len() != new.len() => {
            let (one, other) = (base.len(), new.len());
            Err(CompareError(format!(
                "{one} rounds can't be paired with {other}; keep only rounds in which both sides were measured"
            )))
        }
        None => Ok(()),
    }
}

/// A rank test for given numbers of runs, prepared once for many comparisons.
pub(super) struct Test {
    pairing: Pairing,
    null: NullDistribution,
    rank: Option<usize>,
}

impl Test {
    pub(super) fn new(base_runs: usize, new_runs: usize, pairing: Pairing) -> Test {
        let level = 1.0 - CONFIDENCE;
        if pairing == Pairing::Rounds {
            let null = NullDistribution::signed_rank(base_runs);
            if let Some(rank) = null.critical_rank(level) {
                return Test { pairing, null, rank: Some(rank) };
            }
        }
        let null = NullDistribution::mann_whitney(base_runs, new_runs);
        let rank = null.critical_rank(level);
        Test { pairing: Pairing::None, null, rank }
    }

    /// All pairwise ratios of NEW to BASE, ascending. The more ratios are above 1, the stronger the evidence for an
    /// increase; the more are below 1, the stronger the evidence for a decrease.
    pub(super) fn ratios(&self, base: &[f64], new: &[f64]) -> Vec<f64> {
        if self.pairing == Pairing::Rounds {
            let ratios: Vec<f64> = new.iter().zip(base).map(|(new, base)| new / base).collect();
            return pair_means(&ratios, geometric);
        }
        let mut ratios: Vec<f64> = new.iter().flat_map(|new| base.iter().map(move |base| new / base)).collect();
        ratios.sort_unstable_by(f64::total_cmp);
        ratios
    }

    pub(super) fn interval(&self, ratios: &[f64]) -> Option<(f64, f64)> {
        self.rank.map(|rank| (ratios[rank - 1], ratios[ratios.len() - rank]))
    }

    /// The two-sided p-value. Ties (ratios of exactly 1) count as evidence for no difference.
    fn p_value(&self, ratios: &[f64]) -> f64 {
        let up = ratios.iter().filter(|&&ratio| ratio > 1.0).count();
        let down = ratios.iter().filter(|&&ratio| ratio < 1.0).count();
        self.null.p_value(ratios.len() - up.max(down))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use pipemark_model::Better;

    use super::*;

    fn no_threshold() -> Criterion {
        Criterion::with_threshold(Better::Higher, 0.0)
    }

    fn exp(figures: &[f64]) -> Vec<f64> {
        figures.iter().map(|figure| figure.exp()).collect()
    }

    fn assert_near(value: f64, published: f64, by: f64) {
        assert!((value - published).abs() <= by, "{value} is not {published}");
    }

    #[test]
    fn a_change_that_says_only_that_the_interval_is_wide_is_not_shown() {
        let of = |figures: &[f64]| compare(&[1.0; 5], figures, Pairing::Rounds, no_threshold()).unwrap();
        let wide = of(&[1.0, 30.0, 0.2, 9.0, 4.0]);
        assert!(wide.smallest_change.unwrap() > 1.0, "{wide:?}");
        assert_eq!(wide.smallest_change_text(), None);
        assert_eq!(wide.too_few_runs(5).as_deref(), Some("5 runs are too few; use --runs 10"));
        assert_eq!(wide.too_few_runs(10), None);
        let narrow = of(&[1.0, 1.01, 0.99, 1.02, 0.98]);
        assert!(narrow.smallest_change_text().unwrap().starts_with("smallest detectable change: "));
        assert_eq!(narrow.too_few_runs(5), None);
    }

    /// Hollander and Wolfe 1973, pages 29–30 (depression scale before and after), as in R's wilcox.test: two-sided
    /// p = 0.03906, pseudo-median of the fall 0.46, 95 % interval 0.010 to 0.786.
    #[test]
    #[expect(clippy::approx_constant, reason = "3.14 is a patient's figure")]
    fn paired_agrees_with_the_published_example() {
        let before = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30];
        let after = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29];
        let comparison = compare(&exp(&after), &exp(&before), Pairing::Rounds, no_threshold()).unwrap();
        assert_near(comparison.p, 0.03906, 5e-6);
        assert_near(comparison.change.ln_1p(), 0.46, 5e-4);
        assert_near(comparison.low.unwrap().ln_1p(), 0.010, 5e-4);
        assert_near(comparison.high.unwrap().ln_1p(), 0.786, 5e-4);
        assert_eq!((comparison.verdict, comparison.pairing), (Verdict::Better, Pairing::Rounds));
    }

    /// Hollander and Wolfe 1973, pages 69–70 (permeability of the placenta at term and earlier), as in R's wilcox.test:
    /// W = 35, p = 0.2544, difference in location 0.305, 95 % interval -0.15 to 0.76.
    #[test]
    fn not_paired_agrees_with_the_published_example() {
        let term = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
        let earlier = [1.15, 0.88, 0.90, 0.74, 1.21];
        let comparison = compare(&exp(&earlier), &exp(&term), Pairing::None, no_threshold()).unwrap();
        assert_near(comparison.p, 0.2544, 5e-5);
        assert_near(comparison.change.ln_1p(), 0.305, 5e-4);
        assert_near(comparison.low.unwrap().ln_1p(), -0.15, 5e-4);
        assert_near(comparison.high.unwrap().ln_1p(), 0.76, 5e-4);
        assert_eq!(comparison.verdict, Verdict::Inconclusive);
    }

    #[test]
    fn too_few_runs_have_a_change_and_no_verdict() {
        let one = compare(&[100.0], &[200.0], Pairing::None, no_threshold()).unwrap();
        assert_near(one.change, 1.0, 1e-12);
        assert_eq!((one.low, one.p, one.verdict), (None, 1.0, Verdict::Inconclusive));
        let three = compare(&[1.0, 1.1, 1.2], &[2.0, 2.1, 2.2], Pairing::Rounds, no_threshold()).unwrap();
        assert_eq!(three.verdict, Verdict::Inconclusive);
    }

    #[test]
    fn five_rounds_are_compared_as_runs_and_six_as_rounds() {
        let base = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2];
        let new = base.map(|figure| figure * 1.1);
        let five = compare(&base[..5], &new[..5], Pairing::Rounds, no_threshold()).unwrap();
        assert_eq!((five.pairing, five.verdict), (Pairing::None, Verdict::Better));
        let six = compare(&base, &new, Pairing::Rounds, no_threshold()).unwrap();
        assert_eq!((six.pairing, six.verdict), (Pairing::Rounds, Verdict::Better));
    }

    #[test]
    fn pairing_cancels_drift() {
        let base = [100.0, 120.0, 140.0, 160.0, 180.0, 200.0, 220.0, 240.0];
        let wobble = [0.001, -0.002, 0.002, 0.0, -0.001, 0.001, 0.002, -0.002];
        let new: Vec<f64> = base.iter().zip(wobble).map(|(figure, by)| figure * (1.05 + by)).collect();
        assert_eq!(compare(&base, &new, Pairing::Rounds, no_threshold()).unwrap().verdict, Verdict::Better);
        assert_eq!(compare(&base, &new, Pairing::None, no_threshold()).unwrap().verdict, Verdict::Inconclusive);
    }

    #[test]
    fn incomparable_figures_are_refused() {
        let error = |base: &[f64], new: &[f64], pairing| compare(base, new, pairing, no_threshold()).unwrap_err();
        let says = |base: &[f64], new: &[f64], pairing, words: &str| {
            let sentence = error(base, new, pairing).to_string();
            assert!(sentence.contains(words), "{sentence}");
        };
        says(&[], &[1.0], Pairing::None, "measure both sides at least 5 times");
        says(&[1.0], &[0.0], Pairing::None, "the figure 0,");
        says(&[f64::NAN], &[1.0], Pairing::None, "the figure NaN");
        says(&[1.0], &[1.0, 2.0], Pairing::Rounds, "1 rounds can't be paired with 2");
        says(&[1.0; 1001], &[1.0], Pairing::None, "1001 runs are too many to compare");
    }

    #[test]
    fn the_runs_needed_grow_with_the_square_of_the_interval() {
        let criterion = Criterion::new(Better::Lower);
        let one = compare(&[100.0; 8], &[101.0; 8], Pairing::Rounds, criterion).unwrap();
        let with = |half: f64| one.with_judged_interval(Some((0.01 - half, 0.01 + half)), criterion);
        assert_eq!(with(0.04).verdict, Verdict::Inconclusive);
        let [wide, wider] = [with(0.04), with(0.08)].map(|one| one.factor_to_decide(criterion).unwrap());
        assert_near(wider / wide, 4.0, 0.1);
        assert!(wide > 8.0, "0.04 is twice the room to 3 %, and 9 of 10 take more: {wide}");
        let limit = Criterion::with_threshold(Better::Lower, 0.01);
        assert_eq!(with(0.04).factor_to_decide(limit), None, "a change at the limit is never decided");
    }

    #[test]
    fn group_is_the_geometric_mean_of_its_trials() {
        let means = geometric_means(&[[1.0, 4.0], [100.0, 9.0]]).unwrap();
        assert_near(means[0], 10.0, 1e-12);
        assert_near(means[1], 6.0, 1e-12);
        assert!(geometric_means(&[vec![1.0], vec![1.0, 2.0]]).is_err());
        assert_eq!(geometric_means::<Vec<f64>>(&[]), Err(CompareError::no_runs()));
    }

    proptest! {
        #[test]
        fn swapping_sides_inverts_the_change(
            base in prop::collection::vec(1.0..100.0f64, 4..20), new in prop::collection::vec(1.0..100.0f64, 4..20),
        ) {
            let there = compare(&base, &new, Pairing::None, no_threshold()).unwrap();
            let back = compare(&new, &base, Pairing::None, no_threshold()).unwrap();
            prop_assert!((there.change.ln_1p() + back.change.ln_1p()).abs() < 1e-9);
            prop_assert!((there.low.unwrap().ln_1p() + back.high.unwrap().ln_1p()).abs() < 1e-9);
            prop_assert!((there.p - back.p).abs() < 1e-12);
        }

        #[test]
        fn interval_and_p_agree(
            rounds in prop::collection::vec((1.0..2.0f64, 1.0..2.0f64), 6..20), pair in any::<bool>(),
        ) {
            let (base, new): (Vec<f64>, Vec<f64>) = rounds.into_iter().unzip();
            let pairing = if pair { Pairing::Rounds } else { Pairing::None };
            let comparison = compare(&base, &new, pairing, no_threshold()).unwrap();
            let (low, high) = (comparison.low.unwrap(), comparison.high.unwrap());
            prop_assert!(low <= comparison.change && comparison.change <= high);
            prop_assert_eq!(comparison.p <= 0.05, low > 0.0 || high < 0.0);
        }

        #[test]
        fn equal_sides_have_no_change(base in prop::collection::vec(1.0..100.0f64, 1..30)) {
            let comparison = compare(&base, &base, Pairing::Rounds, no_threshold()).unwrap();
            prop_assert!(matches!(comparison.verdict, Verdict::Same | Verdict::Inconclusive));
            prop_assert!(comparison.p > 0.05);
        }
    }
}
