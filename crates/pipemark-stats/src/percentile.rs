//! Which percentiles a number of samples supports. For example, the p99 of 71 samples is just their maximum.

/// Whether this number of samples supports `percentile` (0 to 100).
///
/// The rule is Wilks's (1941). A percentile p is supported if at least one sample lies beyond it with 95 % confidence,
/// 1 - (p/100)^n >= 0.95, because only then do the samples contain an upper bound of the percentile. So p50 needs 5
/// samples, p90 29, p95 59, p99 299, p99.9 2995. By symmetry, a percentile p below 50 needs as many samples as 100 - p.
pub fn supports(samples: usize, percentile: f64) -> bool {
    let outward = percentile.max(100.0 - percentile);
    samples > 0 && outward <= 100.0 * 0.05f64.powf(1.0 / samples as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Wilks's sample sizes for one-sided 95 % bounds, from widely published tables (59 for 95/95, 299 for 99/95).
    #[test]
    fn sample_sizes_are_the_published_ones() {
        for (percentile, needed) in [(50.0, 5), (90.0, 29), (95.0, 59), (99.0, 299), (99.9, 2995)] {
            assert!(supports(needed, percentile), "p{percentile} from {needed}");
            assert!(!supports(needed - 1, percentile), "p{percentile} from {}", needed - 1);
        }
    }

    #[test]
    fn low_percentiles_need_as_many_samples_as_high_ones() {
        assert!(supports(299, 1.0) && !supports(298, 1.0));
    }

    #[test]
    fn zero_samples_support_no_percentile() {
        assert!(!supports(0, 50.0));
        assert!(!supports(1_000_000, 100.0));
    }

    #[test]
    fn no_number_of_samples_bounds_the_maximum() {
        assert!(!supports(1_000_000_000, 100.0) && supports(1_000_000_000, 99.999_999));
    }
}
