//! Interleaved rounds that end as soon as the verdict is decided. They are judged after a few fixed numbers of rounds,
//! and the error rate is divided among these looks and all candidates (Bonferroni). So it holds whenever the rounds end.

use crate::compare::{CompareError, Comparison};
use crate::ranking::by_round;
use crate::verdict::{Criterion, Verdict};

/// The numbers of rounds after which candidates are judged. Rounds that end between two of them, for another reason, are
/// judged once at their end instead.
pub const LOOKS: [usize; 4] = [5, 8, 13, 20];

/// A change is known well enough if the ends of its interval are within this factor.
const NARROW: f64 = 2.0;

/// Compares a candidate with a reference that ran in the same rounds. The interval holds for all candidates at all
/// looks together.
///
/// # Errors
/// Those of [`by_round`].
pub fn compare_at_look(
    reference: &[f64],
    candidate: &[f64],
    candidates: usize,
    criterion: Criterion,
) -> Result<Comparison, CompareError> {
    by_round(reference, candidate, candidates.max(1) * LOOKS.len(), criterion)
}

/// Whether a candidate needs no more rounds: its verdict is decided, and its change is known within a factor of two; or
/// it isn't faster by `least`, a fraction.
pub fn is_decided(comparison: &Comparison, least: f64) -> bool {
    let Some((low, high)) = comparison.judged() else { return false };
    let is_narrow = (1.0 + high) <= (1.0 + low) * NARROW;
    let is_excluded = low > -1.0 && 1.0 / (1.0 + low) < 1.0 + least;
    is_excluded || comparison.verdict != Verdict::Inconclusive && is_narrow
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{ALL, Dice};
    use pipemark_model::Better;

    /// The verdict on a candidate that takes `change` of the time of the reference, and the rounds that it needed.
    fn judged(dice: &mut Dice, noise: crate::noise::Noise, change: f64) -> (Verdict, usize) {
        let criterion = Criterion::new(Better::Lower);
        let [mut base, mut new] = [Vec::new(), Vec::new()];
        for rounds in LOOKS {
            base.extend(dice.runs(noise, rounds - base.len()));
            new.extend(dice.runs(noise, rounds - new.len()).into_iter().map(|time| time * change));
            let found = compare_at_look(&base, &new, 3, criterion).unwrap();
            if is_decided(&found, 0.05) || rounds == LOOKS[3] {
                return (found.verdict, rounds);
            }
        }
        unreachable!()
    }

    #[test]
    fn equal_commands_are_seldom_called_faster_however_often_they_are_judged() {
        let mut dice = Dice::new(62);
        for noise in ALL {
            let wrong = (0..1000).filter(|_| judged(&mut dice, noise, 1.0).0 == Verdict::Better).count();
            // Of three candidates together, at most 1 in 50 may be called faster or slower.
            assert!(wrong <= 7, "{noise:?}: {wrong} of 1000");
        }
    }

    #[test]
    fn large_changes_are_decided_after_few_rounds() {
        let mut dice = Dice::new(62);
        let mut rounds = |noise, change| {
            let all: Vec<(Verdict, usize)> = (0..200).map(|_| judged(&mut dice, noise, change)).collect();
            assert!(all.iter().filter(|one| one.0 == Verdict::Better).count() >= 190, "{noise:?} {change}: {all:?}");
            all.iter().map(|one| one.1).sum::<usize>() as f64 / all.len() as f64
        };
        assert!(rounds(crate::noise::Noise::Quiet, 0.9) <= 8.0);
        assert!(rounds(crate::noise::Noise::Loud, 0.4) <= 18.0);
    }

    #[test]
    fn what_cannot_gain_needs_no_more_rounds() {
        let mut dice = Dice::new(62);
        let all: Vec<usize> = (0..200).map(|_| judged(&mut dice, crate::noise::Noise::Quiet, 1.1).1).collect();
        assert!(all.iter().sum::<usize>() <= 200 * 6, "{all:?}");
    }
}
