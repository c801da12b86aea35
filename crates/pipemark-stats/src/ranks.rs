//! Exact null distributions of three rank statistics. Small values of each statistic are evidence against the null
//! hypothesis.

use statrs::distribution::{ContinuousCDF, Normal};

/// If the greatest value of a statistic is at most this, its distribution is computed exactly. For greater values, the
/// normal distribution is as accurate.
const EXACT_UP_TO: usize = 1000;

/// The distribution of a rank statistic under the null hypothesis, symmetric on 0..=`greatest`.
#[derive(Debug, Clone)]
pub(super) struct NullDistribution {
    greatest: usize,
    shape: RankShape,
}

#[derive(Debug, Clone)]
enum RankShape {
    /// P(statistic <= u) at position u.
    Counted(Vec<f64>),
    Normal {
        deviation: f64,
    },
}

impl NullDistribution {
    /// The distribution of the Mann-Whitney statistic U for `n` against `m` figures: the number of the n·m pairs in
    /// which the first figure is smaller.
    pub(super) fn mann_whitney(n: usize, m: usize) -> NullDistribution {
        let greatest = n * m;
        if greatest > EXACT_UP_TO {
            let (n, m) = (n as f64, m as f64);
            return NullDistribution::normal(greatest, (n * m * (n + m + 1.0) / 12.0).sqrt());
        }
        // Either the greatest figure is one of the n, and so greater than all m, or it is one of the m. `columns[b]`
        // holds the distribution for a against b figures.
        let mut columns = vec![vec![0.0; greatest + 1]; m + 1];
        for column in &mut columns {
            column[0] = 1.0;
        }
        for a in 1..=n {
            for b in 1..=m {
                let first = a as f64 / (a + b) as f64;
                for u in (0..=a * b).rev() {
                    let with_first = if u >= b { columns[b][u - b] * first } else { 0.0 };
                    columns[b][u] = with_first + columns[b - 1][u] * (1.0 - first);
                }
            }
        }
        NullDistribution::counted(greatest, columns.swap_remove(m))
    }

    /// The distribution of Wilcoxon's signed-rank statistic of `n` differences: the sum of the ranks of the negative
    /// differences.
    pub(super) fn signed_rank(n: usize) -> NullDistribution {
        let (greatest, k) = (n * (n + 1) / 2, n as f64);
        if greatest > EXACT_UP_TO {
            return NullDistribution::normal(greatest, (k * (k + 1.0) * (2.0 * k + 1.0) / 24.0).sqrt());
        }
        NullDistribution::sum(greatest, (1..=n).map(|rank| (rank, 2)))
    }

    /// The distribution of the Mann-Kendall test's count of inversions among `n` figures in order: the number of pairs
    /// in which the earlier figure is greater.
    pub(super) fn inversions(n: usize) -> NullDistribution {
        let (greatest, k) = (n * n.saturating_sub(1) / 2, n as f64);
        if greatest > EXACT_UP_TO {
            return NullDistribution::normal(greatest, (k * (k - 1.0) * (2.0 * k + 5.0) / 72.0).sqrt());
        }
        NullDistribution::sum(greatest, (2..=n).map(|length| (1, length)))
    }

    /// The distribution of a sum of terms. Each term is a multiple of its step, by 0 to count - 1, with equal
    /// probabilities.
    fn sum(greatest: usize, terms: impl Iterator<Item = (usize, usize)>) -> NullDistribution {
        let mut chance = vec![0.0; greatest + 1];
        chance[0] = 1.0;
        for (step, count) in terms {
            let before = chance.clone();
            // A sliding window: from one step to the next, one summand enters and one leaves.
            for sum in 0..=greatest {
                let earlier = |of: &[f64], distance: usize| sum.checked_sub(distance).map_or(0.0, |at| of[at]);
                let change = before[sum] - earlier(&before, step * count);
                chance[sum] = earlier(&chance, step) + change / count as f64;
            }
        }
        NullDistribution::counted(greatest, chance)
    }

    fn counted(greatest: usize, mut chance: Vec<f64>) -> NullDistribution {
        let mut sum = 0.0;
        for chance in &mut chance {
            sum += *chance;
            *chance = sum;
        }
        NullDistribution { greatest, shape: RankShape::Counted(chance) }
    }

    fn normal(greatest: usize, deviation: f64) -> NullDistribution {
        NullDistribution { greatest, shape: RankShape::Normal { deviation } }
    }

    /// P(statistic <= u).
    fn at_most(&self, u: usize) -> f64 {
        match &self.shape {
            RankShape::Counted(cumulated) => cumulated[u.min(self.greatest)],
            RankShape::Normal { deviation } => {
                let from_mean = u as f64 + 0.5 - self.greatest as f64 / 2.0;
                Normal::standard().cdf(from_mean / deviation)
            }
        }
    }

    /// The two-sided p-value of a statistic. `u` is the smaller of the statistic and its mirror image.
    pub(super) fn p_value(&self, u: usize) -> f64 {
        (2.0 * self.at_most(u)).min(1.0)
    }

    /// The greatest k such that a statistic of k - 1 is significant at `level`; `None` if no value is significant.
    ///
    /// The ends of the test's confidence interval are the k-th smallest and the k-th greatest of the pair differences
    /// or Walsh averages.
    pub(super) fn critical_rank(&self, level: f64) -> Option<usize> {
        let (mut significant, mut not) = (0, self.greatest / 2 + 1);
        while significant < not {
            let k = usize::midpoint(significant, not);
            // The tolerance makes a p-value equal to the level significant despite rounding.
            if self.p_value(k) <= level + 1e-12 {
                significant = k + 1;
            } else {
                not = k;
            }
        }
        (significant > 0).then_some(significant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two-sided 5 % critical values of U (e.g. Siegel 1956, table K).
    #[test]
    fn mann_whitney_has_the_tabled_critical_values() {
        for (n, m, u) in [
            (4, 4, 0),
            (5, 5, 2),
            (6, 6, 5),
            (7, 7, 8),
            (8, 8, 13),
            (10, 10, 23),
            (5, 8, 6),
            (15, 15, 64),
            (20, 20, 127),
        ] {
            assert_eq!(NullDistribution::mann_whitney(n, m).critical_rank(0.05), Some(u + 1), "{n} against {m}");
        }
        assert_eq!(NullDistribution::mann_whitney(3, 3).critical_rank(0.05), None);
        assert_eq!(NullDistribution::mann_whitney(1, 1).critical_rank(0.05), None);
    }

    /// Two-sided 5 % critical values of the signed-rank statistic (e.g. Siegel 1956, table G).
    #[test]
    fn signed_rank_has_the_tabled_critical_values() {
        for (n, sum) in [(6, 0), (7, 2), (8, 3), (9, 5), (10, 8), (15, 25), (20, 52), (25, 89)] {
            assert_eq!(NullDistribution::signed_rank(n).critical_rank(0.05), Some(sum + 1), "n = {n}");
        }
        assert_eq!(NullDistribution::signed_rank(5).critical_rank(0.05), None);
    }

    /// Permutations of 5 elements by inversions: 1, 4, 9, 15, 20, 22, … of 120 (OEIS A008302).
    #[test]
    fn inversions_are_mahonian() {
        let null = NullDistribution::inversions(5);
        for (count, permutations) in [(0, 1.0), (1, 5.0), (2, 14.0), (3, 29.0), (4, 49.0), (10, 120.0)] {
            assert!((null.at_most(count) - permutations / 120.0).abs() < 1e-12, "{count}");
        }
    }

    #[test]
    fn the_normal_approximation_agrees_with_the_exact_distribution() {
        for (counted, normal) in [
            (
                NullDistribution::mann_whitney(31, 32),
                NullDistribution::normal(992, (31.0 * 32.0 * 64.0 / 12.0f64).sqrt()),
            ),
            (NullDistribution::signed_rank(44), NullDistribution::normal(990, (44.0 * 45.0 * 89.0 / 24.0f64).sqrt())),
            (NullDistribution::inversions(45), NullDistribution::normal(990, (45.0 * 44.0 * 95.0 / 72.0f64).sqrt())),
        ] {
            let (exact, near) = (counted.critical_rank(0.05).unwrap(), normal.critical_rank(0.05).unwrap());
            assert!(exact.abs_diff(near) <= 1, "{exact} and {near}");
        }
    }
}
