//! Compares commands that ran in the same rounds with a reference command, and ranks them. The intervals hold for all
//! pairs together.
//!
//! All pairs are judged together, so that ranks and verdicts never contradict each other. If there is one session, its
//! rounds are compared, with wider intervals if successive rounds are correlated ([`crate::family`]). If there are
//! several sessions, each session gives one ratio ([`crate::sessions`]). In both cases the confidence is 98 % for all
//! pairs together, because a verdict may fail a build.

use std::collections::BTreeMap;

use pipemark_model::Estimate;

use crate::compare::{CompareError, Comparison, Pairing, compare};
use crate::estimate::CONFIDENCE;
use crate::family::Family;
use crate::sessions::{JOINT_CONFIDENCE, JointComparisons, compare_interleaved};
use crate::verdict::{Criterion, Verdict};

/// The figures of a command: a list for each session, with one figure per round.
pub type BySession = Vec<Vec<f64>>;

/// The comparisons and ranks of several commands.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranking {
    /// Each command against the reference; `None` for the reference.
    pub comparisons: Vec<Option<Comparison>>,
    /// The rank of each command, as [`ranks_of`] defines it.
    pub ranks: Vec<usize>,
    /// `better[a][b]` is whether command `a` is significantly better than command `b`.
    pub better: Vec<Vec<bool>>,
}

/// The rank of each command: one more than the number of commands that are significantly better. Tied commands share a
/// rank. `better[a][b]` is whether command `a` is better than command `b`.
pub fn ranks_of(better: &[Vec<bool>]) -> Vec<usize> {
    (0..better.len()).map(|command| 1 + better.iter().filter(|than| than[command]).count()).collect()
}

impl Ranking {
    /// Ranks commands. All commands must have figures above zero in the same rounds.
    ///
    /// # Errors
    /// If a command has no figures, different rounds from the reference, or a figure that isn't a number above zero.
    pub fn of(commands: &[BySession], reference: usize, criterion: Criterion) -> Result<Ranking, CompareError> {
        Ranking::of_several(commands, reference, criterion, 1)
    }

    /// As [`Ranking::of`], but the confidence holds for `times` such rankings together.
    ///
    /// # Errors
    /// See [`Ranking::of`].
    pub fn of_several(
        commands: &[BySession],
        reference: usize,
        criterion: Criterion,
        times: usize,
    ) -> Result<Ranking, CompareError> {
        let comparisons = against_of_several(commands, reference, criterion, times)?;
        let pairs = Pairs::of(commands, criterion).times(times);
        let pair = |base: usize, new: usize| pairs.compare(&commands[base], &commands[new]);
        let mut better = vec![vec![false; commands.len()]; commands.len()];
        let pairs_of_all = (0..commands.len()).flat_map(|base| (base + 1..commands.len()).map(move |new| (base, new)));
        for (base, new) in pairs_of_all {
            let known = comparisons[new].filter(|_| base == reference);
            match known.map_or_else(|| pair(base, new), Ok)?.verdict {
                Verdict::Better => better[new][base] = true,
                Verdict::Worse => better[base][new] = true,
                Verdict::Same | Verdict::Inconclusive => {}
            }
        }
        Ok(Ranking { comparisons, ranks: ranks_of(&better), better })
    }
}

/// A session counts as at least this many independent rounds, however strong the correlation is.
const MIN_INDEPENDENT: f64 = 4.0;

/// Compares each command with the reference, at the same confidence as [`Ranking::of`] but without ranks.
///
/// # Errors
/// See [`Ranking::of`].
pub fn against(
    commands: &[BySession],
    reference: usize,
    criterion: Criterion,
) -> Result<Vec<Option<Comparison>>, CompareError> {
    against_of_several(commands, reference, criterion, 1)
}

/// As [`against`], but the confidence holds for `times` such comparisons together, such as those of several figures or
/// at several moments.
///
/// # Errors
/// See [`Ranking::of`].
pub fn against_of_several(
    commands: &[BySession],
    reference: usize,
    criterion: Criterion,
    times: usize,
) -> Result<Vec<Option<Comparison>>, CompareError> {
    let pairs = Pairs::of(commands, criterion).times(times);
    let of = |new: usize| (new != reference).then(|| pairs.compare(&commands[reference], &commands[new])).transpose();
    (0..commands.len()).map(of).collect()
}

/// Properties that all pairs have in common.
struct Pairs {
    family: Family,
    joint: JointComparisons,
    criterion: Criterion,
}

impl Pairs {
    fn of(commands: &[BySession], criterion: Criterion) -> Pairs {
        let rounds = |command: &BySession| -> BTreeMap<u32, f64> { (0..).zip(command.concat()).collect() };
        let comparisons = (commands.len() * commands.len().saturating_sub(1) / 2).max(1);
        let family = Family::of(&commands.iter().map(rounds).collect::<Vec<_>>());
        Pairs {
            // A family's confidence is 95 %. This larger number of comparisons gives the confidence used for sessions,
            // 98 %.
            family: family.with(comparisons as f64 * (1.0 - CONFIDENCE) / (1.0 - JOINT_CONFIDENCE)),
            joint: JointComparisons { comparisons, prior: None },
            criterion,
        }
    }

    /// The same pairs, whose comparisons are made `times` times.
    fn times(self, times: usize) -> Pairs {
        Pairs {
            family: self.family.with(self.family.comparisons() * times.max(1) as f64),
            joint: JointComparisons { comparisons: self.joint.comparisons * times.max(1), ..self.joint },
            ..self
        }
    }

    fn compare(&self, base: &BySession, new: &BySession) -> Result<Comparison, CompareError> {
        if base.len() > 1 {
            let ratios =
                |(base, new): (&Vec<f64>, &Vec<f64>)| new.iter().zip(base).map(|(new, base)| new / base).collect();
            let ratios: Vec<Vec<f64>> = base.iter().zip(new).map(ratios).collect();
            return compare_interleaved(&ratios, self.joint, self.criterion);
        }
        let comparison = compare(&base.concat(), &new.concat(), Pairing::Rounds, self.criterion)?;
        let ratio = |change: f64, low: f64, high: f64| Estimate {
            median: 1.0 + change,
            low: Some(1.0 + low),
            high: Some(1.0 + high),
            min: 1.0 + low,
            max: 1.0 + high,
            runs: comparison.base_runs as u32,
        };
        let judged = comparison.low.zip(comparison.high).and_then(|(low, high)| {
            let family = self.family.with_min_independent_runs(MIN_INDEPENDENT, comparison.base_runs as f64);
            let (low, high) = family.interval(&ratio(comparison.change, low, high))?;
            Some((low - 1.0, high - 1.0))
        });
        Ok(comparison.with_judged_interval(judged, self.criterion))
    }
}

/// Compares a command with a reference that ran in the same rounds. Each round gives one ratio, as a session does. The
/// interval holds for all of `comparisons` together.
///
/// # Errors
/// If there are fewer than two rounds, or a figure isn't a number above zero.
pub fn by_round(
    reference: &[f64],
    new: &[f64],
    comparisons: usize,
    criterion: Criterion,
) -> Result<Comparison, CompareError> {
    let ratios: Vec<Vec<f64>> = new.iter().zip(reference).map(|(new, base)| vec![new / base]).collect();
    compare_interleaved(&ratios, JointComparisons { comparisons: comparisons.max(1), prior: None }, criterion)
}

/// Whether there are enough rounds. The interval of each command against the reference must either be so narrow that
/// equal commands would get the verdict `same` in 19 of 20 cases, or be far beyond the threshold.
pub fn is_resolved(commands: &[BySession], reference: usize, criterion: Criterion) -> bool {
    let pairs = Pairs::of(commands, criterion);
    let resolved = |new: usize| {
        let Ok(comparison) = pairs.compare(&commands[reference], &commands[new]) else { return false };
        is_settled(&comparison, criterion)
    };
    (0..commands.len()).filter(|new| *new != reference).all(resolved)
}

/// Whether more rounds would not change the verdict on a command: see [`is_resolved`].
pub fn is_settled(comparison: &Comparison, criterion: Criterion) -> bool {
    let Some(half) = comparison.half_width() else { return false };
    let change = comparison.change.ln_1p().abs();
    half <= criterion.same_within.ln_1p() / 2.0 || change - criterion.threshold.ln_1p() >= CLEARLY_BEYOND * half
}

/// The distance beyond the threshold, in half widths of the interval, from which a change isn't due to chance, however
/// often the rounds are checked.
const CLEARLY_BEYOND: f64 = 3.0;

/// Whether all runs of both commands have the same figure. Such commands get the verdict `same` without a test. The
/// figure may be zero, for which no ratio exists.
pub fn is_constant(commands: [&BySession; 2]) -> bool {
    let first = commands[0].iter().flatten().next();
    commands.iter().all(|side| side.iter().flatten().all(|figure| Some(figure) == first))
}

#[cfg(test)]
mod tests {
    use pipemark_model::Better;

    use super::*;
    use crate::noise::{Dice, Noise};

    /// Twelve rounds around `figure` with a few per mille of noise.
    fn command(figure: f64, seed: u64) -> BySession {
        let noise = Dice::new(100 + seed).runs(Noise::Quiet, 12);
        vec![noise.into_iter().map(|noise| figure * (noise / 100.0).powf(0.2)).collect()]
    }

    fn lower() -> Criterion {
        Criterion::new(Better::Lower)
    }

    #[test]
    fn commands_that_are_tied_share_a_rank() {
        let commands = [command(100.0, 0), command(150.0, 1), command(100.1, 2), command(80.0, 3)];
        let ranking = Ranking::of(&commands, 0, lower()).unwrap();
        assert_eq!(ranking.ranks, [2, 4, 2, 1]);
        let verdicts: Vec<_> = ranking.comparisons.iter().map(|one| one.map(|one| one.verdict)).collect();
        assert_eq!(verdicts, [None, Some(Verdict::Worse), Some(Verdict::Same), Some(Verdict::Better)]);
    }

    #[test]
    fn another_reference_changes_verdicts_but_not_ranks() {
        let commands = [command(100.0, 0), command(150.0, 1), command(80.0, 2)];
        let [one, other] = [0, 1].map(|reference| Ranking::of(&commands, reference, lower()).unwrap());
        assert_eq!(one.ranks, other.ranks);
        assert_eq!(other.comparisons[0].unwrap().verdict, Verdict::Better);
        assert_eq!(other.comparisons[1], None);
    }

    #[test]
    fn more_commands_make_wider_intervals() {
        let few = [command(100.0, 0), command(103.0, 1)];
        let many: Vec<BySession> = few.iter().cloned().chain((2..12).map(|seed| command(100.0, seed))).collect();
        let half =
            |commands: &[BySession]| Ranking::of(commands, 0, lower()).unwrap().comparisons[1].unwrap().half_width();
        assert!(half(&many) > half(&few), "{:?} {:?}", half(&many), half(&few));
    }

    #[test]
    fn sessions_are_compared_where_there_are_several() {
        let of = |figure: f64, seed: u64| -> BySession {
            (0..6).map(|session| command(figure, seed + session)[0].clone()).collect()
        };
        let ranking = Ranking::of(&[of(100.0, 0), of(110.0, 10)], 0, lower()).unwrap();
        let comparison = ranking.comparisons[1].unwrap();
        assert_eq!((comparison.base_sessions, comparison.verdict), (6, Verdict::Worse));
        assert_eq!(ranking.ranks, [1, 2]);
    }

    /// Eight rounds with a drift are strongly correlated, but a change by half is still detected.
    #[test]
    fn a_large_change_is_detected_in_few_rounds() {
        let drifting =
            |figure: f64, by: f64| vec![(0..8).map(|round| figure * (1.0 + by * f64::from(round))).collect()];
        let commands = [drifting(100.0, 0.001), drifting(50.0, -0.001), drifting(50.0, 0.0005)];
        let ranking = Ranking::of(&commands, 0, lower()).unwrap();
        assert_eq!(ranking.ranks[0], 3, "{ranking:?}");
    }

    #[test]
    fn a_comparison_is_resolved_if_narrow_or_clear() {
        let wide = |figure: f64, seed: u64| -> BySession {
            vec![command(1.0, seed)[0].iter().map(|noise| figure * noise.powf(40.0)).collect()]
        };
        assert!(is_resolved(&[command(100.0, 0), command(100.0, 1)], 0, lower()), "narrow");
        assert!(!is_resolved(&[wide(100.0, 0), wide(101.0, 1)], 0, lower()), "neither");
        assert!(is_resolved(&[wide(100.0, 0), wide(500.0, 1)], 0, lower()), "far");
        assert!(is_resolved(&[command(100.0, 0)], 0, lower()), "nothing to compare");
    }

    #[test]
    fn constant_figures_are_equal() {
        let constant = |figure: f64| vec![vec![figure; 6]];
        assert!(is_constant([&constant(0.0), &constant(0.0)]));
        assert!(!is_constant([&constant(1.0), &constant(2.0)]));
        assert!(Ranking::of(&[constant(0.0), constant(0.0)], 0, lower()).is_err(), "zero has no ratio");
    }
}
