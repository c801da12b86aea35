//! Finds outliers among the runs of a trial. Outliers are flagged, never dropped.

use crate::estimate::{MIN_RUNS, median};

/// The modified z-score above which a run is an outlier (Iglewicz and Hoaglin, 1993).
pub(crate) const OUTLIER_SCORE: f64 = 3.5;

/// The modified z-score of each figure: its distance from the median, divided by 1.4826 times the median absolute
/// deviation (MAD). For normal figures, the divisor is the standard deviation.
///
/// If more than half of the figures are equal, the MAD is 0. Then the mean absolute deviation (times 1.2533) replaces
/// it, as Iglewicz and Hoaglin advise. If all figures are equal, all scores are 0.
pub(crate) fn modified_z_scores(figures: &[f64]) -> Vec<f64> {
    let Some(middle) = median(figures) else {
        return Vec::new();
    };
    let deviations: Vec<f64> = figures.iter().map(|figure| (figure - middle).abs()).collect();
    let mad = median(&deviations).unwrap_or(0.0);
    let mean = deviations.iter().sum::<f64>() / deviations.len() as f64;
    let unit = if mad > 0.0 { 1.482_602 * mad } else { 1.253_314 * mean };
    if unit == 0.0 {
        return vec![0.0; figures.len()];
    }
    figures.iter().map(|figure| (figure - middle) / unit).collect()
}

/// The indices of the outliers, in the order of the runs.
///
/// With fewer than five runs there are no outliers. Of three figures, one would be an outlier whenever the other two
/// happened to be close.
pub fn outliers(figures: &[f64]) -> Vec<usize> {
    if figures.len() < MIN_RUNS {
        return Vec::new();
    }
    let scores = modified_z_scores(figures);
    (0..figures.len()).filter(|&run| scores[run].abs() > OUTLIER_SCORE).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Iglewicz and Hoaglin, "How to Detect and Handle Outliers", 1993. The ordinary z-score doesn't detect two
    /// outliers among ten figures.
    #[test]
    fn two_outliers_that_mask_each_other_are_found() {
        let figures = [2.1, 2.6, 2.4, 2.5, 2.3, 2.1, 2.3, 2.6, 8.2, 8.3];
        assert_eq!(outliers(&figures), [8, 9]);
        // Median 2.45, MAD 0.15, so 0.6745 × 5.75 / 0.15.
        assert!((modified_z_scores(&figures)[8] - 25.86).abs() < 0.01);
    }

    #[test]
    fn an_outlier_among_equal_runs_is_found() {
        assert_eq!(outliers(&[5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 9.0]), [6]);
        assert!(outliers(&[5.0; 8]).is_empty());
    }

    #[test]
    fn few_runs_have_no_outliers() {
        assert!(outliers(&[1.0, 1.0001, 2.0]).is_empty());
        assert!(outliers(&[]).is_empty());
    }

    proptest! {
        #[test]
        fn unit_and_origin_do_not_matter(figures in prop::collection::vec(1.0..100.0f64, 5..30), scale in 0.5..8.0f64) {
            let moved: Vec<f64> = figures.iter().map(|figure| figure * scale + 1000.0).collect();
            let pairs = modified_z_scores(&figures).into_iter().zip(modified_z_scores(&moved));
            for (before, after) in pairs {
                prop_assert!((before - after).abs() <= 1e-6 * (1.0 + before.abs()));
            }
        }

        #[test]
        fn fewer_than_half_are_outliers(figures in prop::collection::vec(-1e6..1e6f64, 5..40)) {
            prop_assert!(outliers(&figures).len() * 2 < figures.len());
        }
    }
}
