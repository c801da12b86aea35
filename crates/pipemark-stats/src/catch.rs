//! Decides whether a command has become slower by a limit or more: `ab --catch`.
//!
//! A single threshold can't decide about a change that is exactly as large as the threshold, however long one measures.
//! So there are two: a change is caught if the whole interval is beyond two thirds of the limit, and passed if the
//! whole interval is below five sixths of it. An interval that is narrower than the distance between the two always
//! decides. A program whose work grows by the limit is slower by a little less, because its start is part of the time.
//!
//! The sessions are judged at most [`LOOKS`] times, and the error rate of the verdicts is divided among these looks
//! (Bonferroni), so it holds however the moments are chosen.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use pipemark_model::{Better, named};
use serde::{Deserialize, Serialize};

use crate::compare::{Comparison, POWER};
use crate::estimate::CONFIDENCE;
use crate::sessions::{MIN_DEGREES_OF_FREEDOM, level};
use crate::verdict::Criterion;

/// The largest number of times that a measurement is judged.
pub const LOOKS: usize = 4;

/// The minimum number of sessions at the first look.
pub const MIN_SESSIONS: usize = MIN_DEGREES_OF_FREEDOM + 2;

/// A change is caught if its whole interval is beyond this share of the limit.
const SHARE: f64 = 2.0 / 3.0;

/// A change passes if its whole interval is below this share of the limit.
const PASSING_SHARE: f64 = 5.0 / 6.0;

/// The answer of `ab --catch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CatchAnswer {
    /// The command is slower by more than two thirds of the limit.
    Caught,
    /// The command isn't slower by the limit or more.
    Passed,
    /// Neither is certain.
    Undecided,
}

named!(CatchAnswer: Caught Passed Undecided);

/// A limit for changes for the worse.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CatchLimit {
    /// The change for the worse that must be caught, as a fraction.
    pub limit: f64,
    /// Whether higher or lower figures are better.
    pub better: Better,
}

impl CatchLimit {
    /// The criterion for verdicts: worse if caught, and same if the change is small enough to pass, and not an
    /// improvement of the same size either.
    pub fn criterion(self) -> Criterion {
        Criterion { better: self.better, threshold: self.limit * SHARE, same_within: self.limit * PASSING_SHARE }
    }

    /// The answer for the interval of a change, whose ends are fractions. Without an interval, it is undecided.
    pub fn answer(self, interval: Option<(f64, f64)>) -> CatchAnswer {
        let Some((low, high)) = interval else { return CatchAnswer::Undecided };
        let (least, most) = match self.better {
            Better::Lower | Better::Neither => (low, high),
            Better::Higher => (-high, -low),
        };
        match least > self.limit * SHARE {
            true => CatchAnswer::Caught,
            false if most < self.limit * PASSING_SHARE => CatchAnswer::Passed,
            false => CatchAnswer::Undecided,
        }
    }

    /// Half the width, as a logarithm, that an interval must have to decide in 9 of 10 cases about a change of exactly
    /// the limit.
    fn room(self) -> f64 {
        self.limit.ln_1p() - (self.limit * SHARE).ln_1p()
    }

    /// The number of sessions after which this comparison is decided in 9 of 10 cases; `most` if that isn't enough.
    pub fn sessions_needed(self, comparison: &Comparison, times: usize, most: usize) -> usize {
        let enough = |sessions: &usize| reach(comparison, times, *sessions).is_none_or(|reach| reach <= self.room());
        (MIN_SESSIONS..most).find(enough).unwrap_or(most)
    }
}

/// The smallest limit that N sessions decide about in 9 of 10 cases, as a fraction, if they vary like those
/// compared. `times` is the number of comparisons that share the error rate. `None` if even a limit of 100 % is too
/// small.
pub fn smallest_limit(comparison: &Comparison, times: usize, sessions: usize) -> Option<f64> {
    let factor = reach(comparison, times, sessions)?.exp();
    let limit = (factor - 1.0) / (1.0 - SHARE * factor);
    (0.0..1.0).contains(&limit).then_some(limit)
}

/// The factor by which N sessions must grow to decide about `limit` in 9 of 10 cases; `None` if the comparison
/// doesn't show how much sessions vary.
pub fn more_needed(comparison: &Comparison, times: usize, sessions: usize, limit: CatchLimit) -> Option<f64> {
    Some((reach(comparison, times, sessions)? / limit.room()).powi(2))
}

/// The distance between a change and a threshold, as logarithms, at which N sessions detect it in 9 of 10 cases.
/// `None` if the comparison doesn't show how much sessions vary.
fn reach(comparison: &Comparison, times: usize, sessions: usize) -> Option<f64> {
    let df = comparison.base_sessions.checked_sub(1).filter(|df| *df > 0)?;
    let half = (comparison.high?.ln_1p() - comparison.low?.ln_1p()) / 2.0;
    let error = half / quantile((1.0 + CONFIDENCE) / 2.0, df)?;
    let expected = error * (comparison.base_sessions as f64 / sessions.max(1) as f64).sqrt();
    let detected = Normal::standard().inverse_cdf(POWER);
    Some(expected * (quantile(1.0 - level(times) / 2.0, sessions.saturating_sub(1))? + detected))
}

fn quantile(share: f64, df: usize) -> Option<f64> {
    Some(StudentsT::new(0.0, 1.0, df as f64).ok()?.inverse_cdf(share))
}

/// The numbers of sessions at which to judge, ascending, at most [`LOOKS`]: from `first` to `last`, each larger than
/// the one before by about the same factor.
pub fn looks(first: usize, last: usize) -> Vec<usize> {
    let (first, last) = (first.clamp(MIN_SESSIONS, last.max(MIN_SESSIONS)), last.max(MIN_SESSIONS));
    let factor = (last as f64 / first as f64).powf(1.0 / (LOOKS - 1) as f64);
    let mut looks: Vec<usize> =
        (0..LOOKS).map(|nth| (first as f64 * factor.powi(nth as i32)).round() as usize).collect();
    looks.dedup();
    looks
}

#[cfg(test)]
mod tests {
    use rand_xoshiro::SplitMix64;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

    use super::*;
    use crate::ranking::{BySession, against_of_several};

    const TEN: CatchLimit = CatchLimit { limit: 0.1, better: Better::Lower };

    #[test]
    fn a_narrow_interval_always_decides() {
        for (low, high, answer) in [
            (0.08, 0.12, CatchAnswer::Caught),
            (0.068, 0.095, CatchAnswer::Caught),
            (0.05, 0.08, CatchAnswer::Passed),
            (0.05, 0.09, CatchAnswer::Undecided),
            (-0.5, -0.3, CatchAnswer::Passed),
            (-0.13, 0.16, CatchAnswer::Undecided),
            (0.06, 0.11, CatchAnswer::Undecided),
        ] {
            assert_eq!(TEN.answer(Some((low, high))), answer, "{low} {high}");
            let higher = CatchLimit { better: Better::Higher, ..TEN };
            assert_eq!(higher.answer(Some((-high, -low))), answer, "{low} {high}");
        }
        for percent in 0..200 {
            let low = f64::from(percent) / 1000.0;
            assert_ne!(TEN.answer(Some((low, low + 0.0166))), CatchAnswer::Undecided, "{low}");
        }
        assert_eq!(TEN.answer(None), CatchAnswer::Undecided);
    }

    #[test]
    fn looks_are_few_and_end_with_the_last_session() {
        assert_eq!(looks(6, 48), [6, 12, 24, 48]);
        assert_eq!(looks(6, 6), [6]);
        assert_eq!(looks(6, 7), [6, 7]);
        assert_eq!(looks(40, 40), [40]);
        assert_eq!(looks(100, 30), [30]);
        assert_eq!(*looks(9, 250).last().unwrap(), 250);
    }

    /// A session's figures of both commands: ten rounds, whose noise is in part that of the session.
    fn session(change: f64, noise: f64, random: &mut SplitMix64) -> [Vec<f64>; 2] {
        let mut roll = |size: f64| {
            let uniform: f64 = (0..12).map(|_| random.next_u32() as f64 / f64::from(u32::MAX)).sum();
            (size * (uniform - 6.0)).exp()
        };
        let of_session = roll(noise / 3.0);
        let base: Vec<f64> = (0..10).map(|_| roll(noise)).collect();
        let new = (0..10).map(|_| (1.0 + change) * of_session * roll(noise)).collect();
        [base, new]
    }

    /// The answer after up to 40 sessions, and whether the forecast from five sessions was that they decide.
    fn simulate(change: f64, noise: f64, random: &mut SplitMix64) -> (CatchAnswer, bool) {
        let mut sides: [BySession; 2] = Default::default();
        let (mut planned, mut resolves) = (vec![], true);
        for made in 1..=40 {
            let [base, new] = session(change, noise, random);
            sides[0].push(base);
            sides[1].push(new);
            let compared = || against_of_several(&sides, 0, TEN.criterion(), LOOKS).unwrap()[1].unwrap();
            if made == 5 {
                planned = looks(TEN.sessions_needed(&compared(), LOOKS, 40), 40);
                resolves = smallest_limit(&compared(), LOOKS, 40).is_some_and(|limit| limit <= TEN.limit);
            }
            if planned.contains(&made) {
                let answer = TEN.answer(compared().judged());
                if answer != CatchAnswer::Undecided {
                    return (answer, resolves);
                }
            }
        }
        (CatchAnswer::Undecided, resolves)
    }

    #[test]
    fn answers_are_right_in_simulated_measurements() {
        let mut random = SplitMix64::seed_from_u64(1);
        // Noise of a round as a standard deviation, and how often 10 % must be caught and 0 % must pass, of 50.
        for (noise, [least_caught, least_passed]) in
            [(0.005, [50, 50]), (0.03, [49, 50]), (0.1, [25, 48]), (0.3, [0, 0])]
        {
            let mut count = |change: f64| {
                let answers: Vec<CatchAnswer> = (0..50).map(|_| simulate(change, noise, &mut random).0).collect();
                [CatchAnswer::Caught, CatchAnswer::Passed]
                    .map(|wanted| answers.iter().filter(|one| **one == wanted).count())
            };
            let [equal, half, limit] = [0.0, 0.05, 0.1].map(&mut count);
            assert!(limit[0] >= least_caught && equal[1] >= least_passed, "{noise}: {equal:?} {limit:?}");
            // Each error has a probability of at most 1 %.
            assert!(equal[0] + half[0] <= 1 && limit[1] <= 2, "{noise}: {equal:?} {half:?} {limit:?}");
        }
    }

    #[test]
    fn the_forecast_says_whether_the_sessions_suffice() {
        let mut random = SplitMix64::seed_from_u64(2);
        let mut promised = |noise: f64| (0..50).filter(|_| simulate(0.0, noise, &mut random).1).count();
        assert_eq!([promised(0.01), promised(1.0)], [50, 0]);
    }
}
