//! The noise floor: what comparing a thing with itself says here, and the smallest change that could be seen.

use super::compare::{CompareError, POWER, Pairing, Test, check};
use super::verdict::{Criterion, Verdict};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

/// What comparisons of a thing with itself say.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NoiseFloor {
    /// Runs of each side in a comparison.
    pub runs: usize,
    /// How many comparisons were drawn.
    pub comparisons: usize,
    /// The share of them that said better or worse, though there is no difference; by design at most 0.05.
    pub false_verdicts: f64,
    /// The smallest change, as a fraction, that such a comparison sees 9 times of 10 in either direction; absent when
    /// `runs` are too few to see any.
    pub smallest_change: Option<f64>,
}

/// Draws `comparisons` comparisons of `runs` against `runs` out of A/A runs: `base` and `new` measured alike.
///
/// Whole runs are drawn, with replacement; for [`Pairing::Rounds`] whole rounds, each with its sides swapped or not.
/// Twenty rounds or more make a fair picture; what fewer have not met, the floor can't know. The same arguments give the
/// same result on every machine and in every version (xoshiro256++ seeded by SplitMix64).
///
/// # Errors
///
/// As [`compare`](super::compare::compare), and when `runs` or `comparisons` is 0.
pub fn noise_floor(
    base: &[f64],
    new: &[f64],
    pairing: Pairing,
    criterion: Criterion,
    runs: usize,
    comparisons: usize,
    seed: u64,
) -> Result<NoiseFloor, CompareError> {
    check(base, new, pairing)?;
    check(&vec![1.0; runs], &vec![1.0; comparisons.min(1)], Pairing::None)?;
    let pool: Vec<f64> = base.iter().chain(new).copied().collect();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let test = Test::new(runs, runs, pairing);
    let mut false_verdicts = 0;
    let mut visible = Vec::with_capacity(2 * comparisons);
    for _ in 0..comparisons {
        let (mut one, mut other) = (Vec::with_capacity(runs), Vec::with_capacity(runs));
        for _ in 0..runs {
            let (a, b) = match pairing {
                Pairing::None => (pool[below(&mut random, pool.len())], pool[below(&mut random, pool.len())]),
                Pairing::Rounds => {
                    let side = below(&mut random, pool.len());
                    let round = side % base.len();
                    if side < base.len() { (base[round], new[round]) } else { (new[round], base[round]) }
                }
            };
            one.push(a);
            other.push(b);
        }
        let Some((low, high)) = test.interval(&test.ratios(&one, &other)) else {
            continue;
        };
        let verdict = criterion.verdict(Some((low - 1.0, high - 1.0)));
        false_verdicts += usize::from(matches!(verdict, Verdict::Better | Verdict::Worse));
        // A change moves the interval as a whole, so it is seen as soon as it lifts the near end past the threshold.
        visible.push((1.0 + criterion.threshold) / low);
        visible.push(high / (1.0 - criterion.threshold));
    }
    visible.sort_by(f64::total_cmp);
    let enough = (POWER * visible.len() as f64).ceil() as usize;
    Ok(NoiseFloor {
        runs,
        comparisons,
        false_verdicts: false_verdicts as f64 / comparisons as f64,
        smallest_change: enough.checked_sub(1).map(|position| visible[position].max(1.0) - 1.0),
    })
}

/// A number from 0 up to, not including, `bound`, by Lemire's multiplication; its bias is below bound / 2^64.
pub(super) fn below(random: &mut Xoshiro256PlusPlus, bound: usize) -> usize {
    ((u128::from(random.next_u64()) * bound as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Better;
    use crate::stats::compare::compare;

    const BASE: [f64; 12] = [100.0, 101.5, 99.0, 98.5, 100.5, 102.0, 99.5, 100.2, 97.9, 101.1, 100.8, 99.2];
    const NEW: [f64; 12] = [100.4, 99.1, 100.9, 98.8, 101.9, 100.1, 99.7, 98.2, 100.6, 101.3, 99.4, 100.0];

    fn floor(runs: usize, pairing: Pairing) -> NoiseFloor {
        noise_floor(&BASE, &NEW, pairing, Criterion::new(Better::Higher), runs, 400, 7).unwrap()
    }

    /// The stored result has to be the same for ever: these figures, checked against a second
    /// implementation of the generator, must not move with a dependency.
    #[test]
    fn is_reproducible() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(2002);
        let drawn: Vec<usize> = (0..8).map(|_| below(&mut random, 1000)).collect();
        assert_eq!(drawn, [686, 76, 569, 713, 937, 36, 88, 916]);
        assert_eq!(floor(8, Pairing::Rounds), floor(8, Pairing::Rounds));
    }

    #[test]
    fn more_runs_see_smaller_changes() {
        for pairing in [Pairing::None, Pairing::Rounds] {
            let (few, many) = (floor(6, pairing), floor(40, pairing));
            assert!(few.false_verdicts <= 0.05 && many.false_verdicts <= 0.05, "{few:?} {many:?}");
            assert!(many.smallest_change.unwrap() < 0.6 * few.smallest_change.unwrap(), "{few:?} {many:?}");
        }
    }

    #[test]
    fn the_smallest_change_is_seen_and_half_of_it_is_not() {
        let criterion = Criterion::new(Better::Higher);
        let change = floor(10, Pairing::None).smallest_change.unwrap();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut seen = |change: f64| {
            (0..300)
                .filter(|_| {
                    let mut draw = || (0..10).map(|_| BASE[below(&mut random, BASE.len())]).collect::<Vec<f64>>();
                    let (base, new) = (draw(), draw());
                    let new: Vec<f64> = new.iter().map(|figure| figure * (1.0 + change)).collect();
                    compare(&base, &new, Pairing::None, criterion).unwrap().verdict == Verdict::Better
                })
                .count()
        };
        assert!(seen(change) >= 240, "{change}");
        assert!(seen(change / 2.0) <= 210, "{change}");
    }

    /// A lasting difference between the sides is noise in an A/A measurement: rounds are drawn with sides swapped.
    #[test]
    fn sides_are_swapped() {
        let lopsided = BASE.map(|figure| figure * 1.1);
        let floor = noise_floor(&BASE, &lopsided, Pairing::Rounds, Criterion::new(Better::Higher), 6, 400, 3).unwrap();
        assert!(floor.false_verdicts <= 0.05, "{floor:?}");
        assert!((floor.smallest_change.unwrap() - (1.1 * 1.005 - 1.0)).abs() < 1e-4, "{floor:?}");
    }

    #[test]
    fn three_runs_see_nothing() {
        assert_eq!(floor(3, Pairing::None).smallest_change, None);
        assert!(noise_floor(&BASE, &NEW[1..], Pairing::Rounds, Criterion::new(Better::Higher), 5, 9, 1).is_err());
        assert!(noise_floor(&BASE, &NEW, Pairing::None, Criterion::new(Better::Higher), 0, 9, 1).is_err());
    }
}
