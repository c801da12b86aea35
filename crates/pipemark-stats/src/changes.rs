//! Detects lasting changes in a series of sessions, with the algorithm "E-divisive with means".
//!
//! Source: Matteson and James, A Nonparametric Approach for Multiple Change Point Analysis of Multivariate Data, JASA
//! 109, 2014. Hunter (Fleming and others, ICPE 2023), now Apache Otava, uses the algorithm for performance data. The
//! series is cut where the energy distance between the two parts is largest, if that distance is larger than in all but
//! a few shuffled series. Then each part is cut in the same way. As in Hunter, a cut is kept only if the parts on both
//! sides of it still differ once all cuts are made.
//!
//! If sessions are independent, the test by shuffling keeps its significance level for any distribution. So sessions
//! that alternate randomly between states are not reported as a change. If states last several sessions, the test
//! doesn't keep its level. Therefore a cut is also tested against the correlation of neighbouring sessions. This second
//! test helps only a little, because the cut hides most of the correlation: docs/method.md has the figures.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::compare::{Comparison, Pairing, compare};
use crate::sessions::{JointComparisons, Session, Sessions, level};
use crate::verdict::{Criterion, Verdict};

/// The minimum number of sessions on each side of a change. Fewer deviating sessions are outliers.
const MIN_SEGMENT: usize = 3;

/// The minimum number of sessions in a series. With fewer, no change can be significant.
pub const MIN_SESSIONS: usize = 9;

/// Only this many of the newest sessions are searched, because the computing time grows with the square of their
/// number.
const MAX_SESSIONS: usize = 200;

/// A detected change: the index of the first session after the change, and a comparison. The comparison is between the
/// sessions from this change to the next and the sessions from the previous change to this one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    pub first: usize,
    pub change: Comparison,
}

/// Returns the changes in one series, oldest first. The significance level is adjusted for testing `series` series
/// together.
pub fn change_points(sessions: &[Session], series: usize, criterion: Criterion) -> Vec<ChangePoint> {
    let skipped = sessions.len().saturating_sub(MAX_SESSIONS);
    let sessions = &sessions[skipped..];
    let figures: Vec<f64> = sessions.iter().map(|session| session.figure().ln()).collect();
    // The seed is fixed, so that the result is reproducible.
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut cuts = Vec::new();
    cut(&figures, 0, level(series), &mut random, &mut cuts);
    cuts.sort_unstable();
    loop {
        let ends: Vec<usize> = [0].into_iter().chain(cuts.iter().copied()).chain([sessions.len()]).collect();
        let points: Vec<ChangePoint> = ends
            .windows(3)
            .filter_map(|ends| {
                // This is a rank test, so that an outlier can't hide a change.
                let (base, new) = (&sessions[ends[0]..ends[1]], &sessions[ends[1]..ends[2]]);
                let [base_figures, new_figures] =
                    [base, new].map(|side| side.iter().map(Session::figure).collect::<Vec<_>>());
                let change = compare(&base_figures, &new_figures, Pairing::None, criterion).ok()?;
                let both = Sessions { base: base.to_vec(), new: new.to_vec(), others: Vec::new() };
                let beyond_neighbours =
                    both.compare(JointComparisons { comparisons: series, prior: None }, criterion)?;
                let verdict = match beyond_neighbours.verdict == change.verdict {
                    true => change.verdict,
                    false => Verdict::Inconclusive,
                };
                let pairing = Pairing::Sessions;
                let change =
                    Comparison { base_sessions: base.len(), new_sessions: new.len(), pairing, verdict, ..change };
                Some(ChangePoint { first: skipped + ends[1], change })
            })
            .collect();
        let doubtful = |point: &&ChangePoint| !matches!(point.change.verdict, Verdict::Better | Verdict::Worse);
        match points.iter().filter(doubtful).max_by(|one, other| one.change.p.total_cmp(&other.change.p)) {
            Some(weakest) => cuts.retain(|cut| skipped + cut != weakest.first),
            None => return points,
        }
    }
}

fn cut(figures: &[f64], start: usize, level: f64, random: &mut Xoshiro256PlusPlus, cuts: &mut Vec<usize>) {
    if figures.len() < 2 * MIN_SEGMENT {
        return;
    }
    let distances: Vec<Vec<f64>> =
        figures.iter().map(|one| figures.iter().map(|other| (one - other).abs()).collect()).collect();
    let mut order: Vec<usize> = (0..figures.len()).collect();
    let (greatest, at) = best_cut(&distances, &order);
    let shuffles = (2.0 / level).ceil().max(999.0);
    let (mut as_great, mut shuffled) = (1.0, 0.0);
    while shuffled < shuffles {
        for last in (1..order.len()).rev() {
            order.swap(last, random_below(random, last + 1));
        }
        shuffled += 1.0;
        as_great += f64::from(best_cut(&distances, &order).0 >= greatest * (1.0 - 1e-9));
        if as_great > level * (shuffles + 1.0) {
            return;
        }
    }
    cuts.push(start + at);
    cut(&figures[..at], start, level, random, cuts);
    cut(&figures[at..], start + at, level, random, cuts);
}

/// The largest energy distance between the sessions before and after a cut, and the position of the cut. The sessions
/// after the cut may end before the end of the series, so that a reverted change is detected too.
fn best_cut(distances: &[Vec<f64>], order: &[usize]) -> (f64, usize) {
    let width = order.len() + 1;
    // sums[i][j] is the sum of the distances between the first i and the first j sessions.
    let mut sums = vec![0.0; width * width];
    for (i, one) in order.iter().enumerate() {
        let mut row = 0.0;
        for (j, other) in order.iter().enumerate() {
            row += distances[*one][*other];
            sums[(i + 1) * width + j + 1] = sums[i * width + j + 1] + row;
        }
    }
    let sum = |i: usize, j: usize| sums[i * width + j];
    let pairs = |count: f64| count * (count - 1.0) / 2.0;
    let mut best = (f64::NEG_INFINITY, 0);
    for at in MIN_SEGMENT..=order.len() - MIN_SEGMENT {
        let before = sum(at, at) / 2.0;
        for end in at + MIN_SEGMENT..=order.len() {
            let between = sum(at, end) - sum(at, at);
            let after = (sum(end, end) - 2.0 * sum(at, end) + sum(at, at)) / 2.0;
            let (n, m) = (at as f64, (end - at) as f64);
            let distance = 2.0 / (n * m) * between - before / pairs(n) - after / pairs(m);
            let scaled = n * m / (n + m) * distance;
            if scaled > best.0 {
                best = (scaled, at);
            }
        }
    }
    best
}

/// A random number below `bound`, by Lemire's multiplication method. The bias is below bound / 2^64.
pub(super) fn random_below(random: &mut Xoshiro256PlusPlus, bound: usize) -> usize {
    ((u128::from(random.next_u64()) * bound as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use pipemark_model::Better;

    use super::*;
    use crate::noise::Dice;

    fn found(figures: &[f64], series: usize) -> Vec<(usize, Verdict)> {
        let sessions: Vec<Session> = figures.iter().map(|figure| Session::of(&[*figure]).unwrap()).collect();
        let points = change_points(&sessions, series, Criterion::new(Better::Higher));
        points.iter().map(|point| (point.first, point.change.verdict)).collect()
    }

    fn series(dice: &mut Dice, levels: &[(usize, f64)]) -> Vec<f64> {
        let level =
            |(count, by): &(usize, f64)| (0..*count).map(|_| by * (0.02 * dice.normal()).exp()).collect::<Vec<_>>();
        levels.iter().flat_map(level).collect()
    }

    #[test]
    fn changes_are_found_at_their_place() {
        let mut dice = Dice::new(1);
        let figures = series(&mut dice, &[(12, 1.0), (10, 0.85), (12, 1.0)]);
        assert_eq!(found(&figures, 1), [(12, Verdict::Worse), (22, Verdict::Better)]);
        assert_eq!(found(&figures, 1), found(&figures, 1), "the same each time");
        assert_eq!(found(&series(&mut dice, &[(5, 1.0), (4, 0.5)]), 1), [(5, Verdict::Worse)]);
        assert_eq!(found(&series(&mut dice, &[(4, 1.0), (4, 0.5)]), 1), [], "eight may be chance");
        // Neither one outlier nor a change of less than half a per cent is reported.
        assert_eq!(found(&series(&mut dice, &[(12, 1.0), (1, 0.5), (12, 1.0)]), 1), []);
        let hair: Vec<f64> = (0..30).map(|at| if at < 15 { 1.0 } else { 1.004 } + 1e-5 * f64::from(at % 3)).collect();
        assert_eq!(found(&hair, 1), []);
        let long: Vec<f64> = series(&mut dice, &[(300, 1.0), (60, 0.8), (60, 1.0)]);
        // The noise causes a further cut in one of twenty such series, so only the first two cuts are checked.
        assert_eq!(found(&long, 1)[..2], [(300, Verdict::Worse), (360, Verdict::Better)]);
    }

    /// Without the test against correlation, 36 of 150 series have a false change. Even with that test, the rate is far
    /// above the 2 % of independent sessions.
    #[test]
    fn the_correlation_test_prevents_some_false_changes() {
        let mut dice = Dice::new(4);
        let wrong = (0..150).filter(|_| !found(&dice.correlated_runs(0.3, 40), 1).is_empty()).count();
        assert!(wrong <= 30, "{wrong} of 150");
    }

    /// Tests groups of eight series of 20 sessions, with normal noise and with two states. A false change is expected
    /// in 2 % of the groups, which is 3 of 150; the test allows 5. A 10 % change is detected in nine of ten series.
    #[test]
    fn noise_is_rarely_reported_as_a_change() {
        for states in [false, true] {
            let mut dice = Dice::new(2);
            let noise = |dice: &mut Dice| match states {
                true => [1.0, 4.2 / 3.3][usize::from(dice.uniform() < 0.5)] * (0.01 * dice.normal()).exp(),
                false => (0.03 * dice.normal()).exp(),
            };
            let wrong = (0..150).filter(|_| {
                (0..8).any(|_| !found(&(0..20).map(|_| noise(&mut dice)).collect::<Vec<_>>(), 8).is_empty())
            });
            let wrong = wrong.count();
            assert!(wrong <= 5, "states: {states}: {wrong} of 150");
        }
        let mut dice = Dice::new(3);
        let seen = (0..50).filter(|_| found(&series(&mut dice, &[(12, 1.0), (12, 0.9)]), 8).len() == 1).count();
        assert!(seen >= 45, "{seen} of 50");
    }
}
