//! Fits straight lines: time per call over block size (cost per call and per byte), and time over chain length. Finds
//! the first point that isn't on the line.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::estimate::CONFIDENCE;

/// The minimum number of points that can show a bend. Two points always lie on a line.
pub const MIN_POINTS: usize = 3;

/// The minimum share of the variance that a line must explain to be reported.
pub const MIN_R_SQUARED: f64 = 0.9;

/// A fitted number with its 95 % interval (Student's t on the residuals), absent for two points.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Coefficient {
    /// The fitted value.
    pub value: f64,
    /// Lower end of the 95 % interval.
    pub low: Option<f64>,
    /// Upper end of the 95 % interval.
    pub high: Option<f64>,
}

/// A least-squares line y = intercept + slope · x.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FittedLine {
    /// y where x is 0, in the unit of y: the cost of a call.
    pub intercept: Coefficient,
    /// y per x: the cost of a byte.
    pub slope: Coefficient,
    /// The (weighted) share of y's variance that the line explains, 0 to 1; 1 when all y are equal.
    ///
    /// It is near 1 for anything that grows, so it doesn't show whether a relation is linear. [`Linearity`] does.
    pub r_squared: f64,
    /// Number of points fitted.
    pub points: usize,
}

/// The weight of each point in the fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weighting {
    /// Each point's squared residual has the same weight. Use it if all y are of similar size and have equal noise.
    Equal,
    /// Each point's squared *relative* residual has the same weight (1/y²). Use it if y spans several orders of
    /// magnitude and the noise is proportional to y. With equal weights, the largest blocks alone would determine the
    /// line, and a cost per call of 1 µs would be lost in the noise of calls that take 100 µs.
    Relative,
}

impl FittedLine {
    /// Fits the least-squares line through the points. `None` if the lengths of `x` and `y` differ, there are fewer
    /// than two points, all x are equal, a number is not finite, or y isn't above zero in a relative fit.
    pub fn fit(x: &[f64], y: &[f64], weighting: Weighting) -> Option<FittedLine> {
        let n = x.len();
        if n != y.len() || n < 2 || !x.iter().chain(y).all(|number| number.is_finite()) {
            return None;
        }
        if weighting == Weighting::Relative && y.iter().any(|&y| y <= 0.0) {
            return None;
        }
        // y is scaled to its largest value, so that weights don't depend on the unit of y.
        let unit = y.iter().fold(0.0, |most: f64, y| most.max(y.abs()));
        let weight = |y: f64| match weighting {
            Weighting::Equal => 1.0,
            Weighting::Relative => (unit / y).powi(2),
        };
        let total: f64 = y.iter().map(|&y| weight(y)).sum();
        let points = || x.iter().copied().zip(y.iter().copied());
        let mean_x = points().map(|(x, y)| weight(y) * x).sum::<f64>() / total;
        let mean_y = points().map(|(_, y)| weight(y) * y).sum::<f64>() / total;
        let xx: f64 = points().map(|(x, y)| weight(y) * (x - mean_x).powi(2)).sum();
        let xy: f64 = points().map(|(x, y)| weight(y) * (x - mean_x) * (y - mean_y)).sum();
        let yy: f64 = points().map(|(_, y)| weight(y) * (y - mean_y).powi(2)).sum();
        if xx <= 0.0 {
            return None;
        }
        let slope = xy / xx;
        let intercept = mean_y - slope * mean_x;
        let left: f64 = points().map(|(x, y)| weight(y) * (y - intercept - slope * x).powi(2)).sum();

        let interval = |value: f64, variance_factor: f64| match n {
            2 => Coefficient { value, low: None, high: None },
            _ => {
                let df = (n - 2) as f64;
                let t = StudentsT::new(0.0, 1.0, df).expect("df is positive");
                let half = t.inverse_cdf((1.0 + CONFIDENCE) / 2.0) * (left / df * variance_factor).sqrt();
                Coefficient { value, low: Some(value - half), high: Some(value + half) }
            }
        };
        let line = FittedLine {
            intercept: interval(intercept, 1.0 / total + mean_x * mean_x / xx),
            slope: interval(slope, 1.0 / xx),
            r_squared: if yy > 0.0 { (1.0 - left / yy).max(0.0) } else { 1.0 },
            points: n,
        };
        // Numbers near the limits of f64 may have overflowed in the computation.
        (line.intercept.value.is_finite() && line.slope.value.is_finite() && line.r_squared.is_finite()).then_some(line)
    }

    /// The line's y at `x`.
    pub fn at(&self, x: f64) -> f64 {
        self.intercept.value + self.slope.value * x
    }

    /// How far `y` is above the line at `x`, as a fraction of the line's value.
    pub fn relative_residual(&self, x: f64, y: f64) -> f64 {
        (y - self.at(x)) / self.at(x).abs()
    }
}

/// The point from which a series no longer follows a straight line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Linearity {
    /// The first point that is off the line through the points before it; `None` if all are on the line.
    pub departure: Option<Departure>,
}

/// The first point that is off the line through the points before it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Departure {
    /// The point's x.
    pub x: f64,
    /// The point's distance above the line through the points before it, as a fraction of the line's y at `x`. Negative
    /// if the point is below the line.
    pub excess: f64,
}

impl Linearity {
    /// Finds the longest straight prefix of the series. A prefix of at least three points is straight if the points of
    /// this prefix, and of all shorter prefixes, are within `tolerance` (0.1 is 10 %) of the prefix's own relative fit.
    ///
    /// Extending the prefix point by point finds the first bend. A single fit through all points would not find it,
    /// because a bend tilts the line, and a curve may cross the line twice. A single outlier also ends the straight
    /// prefix. So y should be medians of runs, and the tolerance at least three times the noise of these medians. A
    /// bend smaller than the tolerance is not found, and a bend just above the tolerance may be found one point late.
    ///
    /// `None` if `x` isn't strictly increasing, [`FittedLine::fit`] refuses the points, or the first three points
    /// aren't straight.
    pub fn of(x: &[f64], y: &[f64], tolerance: f64) -> Option<Linearity> {
        if x.len() != y.len() || !x.is_sorted_by(|before, after| before < after) {
            return None;
        }
        let mut straight: Option<FittedLine> = None;
        for points in MIN_POINTS..=x.len() {
            let (x, y) = (&x[..points], &y[..points]);
            let line = FittedLine::fit(x, y, Weighting::Relative)?;
            if x.iter().zip(y).any(|(&x, &y)| line.relative_residual(x, y).abs() > tolerance) {
                break;
            }
            straight = Some(line);
        }
        let line = straight?;
        let departure = x.get(line.points).map(|&x| Departure { x, excess: line.relative_residual(x, y[line.points]) });
        Some(Linearity { departure })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn assert_near(value: f64, published: f64) {
        assert!((value - published).abs() <= 1e-9 * published.abs(), "{value} is not {published}");
    }

    /// NIST Statistical Reference Datasets, linear regression, "Norris" (36 observations, certified values).
    #[test]
    fn norris_has_its_certified_values() {
        #[rustfmt::skip]
        let y = [
            0.1, 338.8, 118.1, 888.0, 9.2, 228.1, 668.5, 998.5, 449.1, 778.9, 559.2, 0.3, 0.1, 778.1, 668.8, 339.3, 448.9,
            10.8, 557.7, 228.3, 998.0, 888.8, 119.6, 0.3, 0.6, 557.6, 339.3, 888.0, 998.5, 778.9, 10.2, 117.6, 228.9,
            668.4, 449.2, 0.2,
        ];
        #[rustfmt::skip]
        let x = [
            0.2, 337.4, 118.2, 884.6, 10.1, 226.5, 666.3, 996.3, 448.6, 777.0, 558.2, 0.4, 0.6, 775.5, 666.9, 338.0, 447.5,
            11.6, 556.0, 228.1, 995.8, 887.6, 120.2, 0.3, 0.3, 556.8, 339.1, 887.2, 999.0, 779.0, 11.1, 118.3, 229.2,
            669.1, 448.9, 0.5,
        ];
        let line = FittedLine::fit(&x, &y, Weighting::Equal).unwrap();
        assert_near(line.intercept.value, -0.262323073774029);
        assert_near(line.slope.value, 1.00211681802045);
        assert_near(line.r_squared, 0.999993745883712);
        let left: f64 = x.iter().zip(&y).map(|(x, y)| (y - line.at(*x)).powi(2)).sum();
        assert_near((left / 34.0).sqrt(), 0.884796396144373);
        // The half width of the interval is the certified standard deviation of the slope, times t(0.975; 34).
        let half = line.slope.high.unwrap() - line.slope.value;
        assert!((half / 2.032_244_509 - 0.429_796_848_199_937e-3).abs() < 1e-10, "{half}");
    }

    /// Anscombe 1973: four sets of points with the same fit, y = 3.00 + 0.500 x, R² 0.67. The points of the second set
    /// lie on a curve.
    #[test]
    fn anscombe_is_one_line_but_not_straight() {
        let x = [4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0];
        let scattered = [4.26, 5.68, 7.24, 4.82, 6.95, 8.81, 8.04, 8.33, 10.84, 7.58, 9.96];
        let curved = [3.10, 4.74, 6.13, 7.26, 8.14, 8.77, 9.14, 9.26, 9.13, 8.74, 8.10];
        for y in [scattered, curved] {
            let line = FittedLine::fit(&x, &y, Weighting::Equal).unwrap();
            assert!((line.intercept.value - 3.0).abs() < 0.01 && (line.slope.value - 0.5).abs() < 0.001, "{line:?}");
            assert!((line.r_squared - 0.6665).abs() < 0.001, "{line:?}");
        }
        let straight = Linearity::of(&x, &curved, 0.05).unwrap();
        let departure = straight.departure.unwrap();
        assert!(departure.x <= 10.0 && departure.excess < 0.0, "{straight:?}");
    }

    #[test]
    fn cost_per_call_survives_noise_on_large_blocks() {
        let blocks: Vec<f64> = (6..=20).map(|power| f64::from(1 << power)).collect();
        let noise = [0.02, -0.02, 0.01, -0.01, 0.02, -0.01, -0.02, 0.01];
        let times: Vec<f64> =
            blocks.iter().enumerate().map(|(i, block)| (700.0 + 0.08 * block) * (1.0 + noise[i % 8])).collect();
        let relative = FittedLine::fit(&blocks, &times, Weighting::Relative).unwrap();
        assert!((relative.intercept.value / 700.0 - 1.0).abs() < 0.02, "{relative:?}");
        assert!((relative.slope.value / 0.08 - 1.0).abs() < 0.02, "{relative:?}");
        assert!(relative.intercept.low.unwrap() < 700.0 && 700.0 < relative.intercept.high.unwrap());
        let equal = FittedLine::fit(&blocks, &times, Weighting::Equal).unwrap();
        assert!((equal.intercept.value / 700.0 - 1.0).abs() > 0.1, "equal weights should have lost it: {equal:?}");
    }

    #[test]
    fn a_bend_is_found() {
        let lengths = [0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];
        let times = lengths.map(|length| if length <= 16.0 { 1.0 + 0.5 * length } else { 9.0 + 0.8 * (length - 16.0) });
        let straight = Linearity::of(&lengths, &times, 0.1).unwrap();
        let departure = straight.departure.unwrap();
        assert_eq!(departure.x, 32.0);
        assert!((departure.excess - 4.8 / 17.0).abs() < 1e-9, "{departure:?}");
    }

    /// The last point pulls the fit towards itself, most of all if start-up takes nearly all of the time at the other
    /// points.
    #[test]
    fn a_bend_at_the_end_is_found() {
        let lengths = [0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0];
        let times = lengths.map(|length| (50.0 + 0.1 * length) * if length > 512.0 { 1.25 } else { 1.0 });
        let straight = Linearity::of(&lengths, &times, 0.1).unwrap();
        let departure = straight.departure.unwrap();
        assert_eq!(departure.x, 1024.0);
        assert!((departure.excess - 0.25).abs() < 1e-9, "{departure:?}");
    }

    #[test]
    fn a_line_is_straight_to_its_end() {
        let x = [1.0, 2.0, 4.0, 8.0, 16.0];
        let straight = Linearity::of(&x, &x.map(|x| 3.0 + 2.0 * x), 0.01).unwrap();
        assert_eq!(straight.departure, None);
    }

    #[test]
    fn data_without_a_line_gives_no_fit() {
        let fit = |x: &[f64], y: &[f64]| FittedLine::fit(x, y, Weighting::Relative);
        assert_eq!(fit(&[1.0], &[1.0]), None);
        assert_eq!(fit(&[1.0, 2.0], &[1.0]), None);
        assert_eq!(fit(&[2.0, 2.0, 2.0], &[1.0, 2.0, 3.0]), None);
        assert_eq!(fit(&[1.0, 2.0], &[0.0, 1.0]), None);
        assert_eq!(fit(&[1.0, f64::NAN], &[1.0, 1.0]), None);
        assert_eq!(Linearity::of(&[1.0, 3.0, 2.0], &[1.0, 3.0, 2.0], 0.1), None);
        assert_eq!(Linearity::of(&[1.0, 2.0, 3.0], &[1.0, 9.0, 1.0], 0.1), None);
        let two = fit(&[1.0, 2.0], &[1.0, 2.0]).unwrap();
        assert_eq!(two.slope.low, None);
    }

    proptest! {
        #[test]
        fn recovers_any_line(
            intercept in 1.0..1e6f64, slope in 0.0..1e3f64, x in prop::collection::btree_set(0u32..1_000_000, 3..30),
        ) {
            let x: Vec<f64> = x.into_iter().map(f64::from).collect();
            let y: Vec<f64> = x.iter().map(|x| intercept + slope * x).collect();
            for weighting in [Weighting::Equal, Weighting::Relative] {
                let line = FittedLine::fit(&x, &y, weighting).unwrap();
                for (x, y) in x.iter().zip(&y) {
                    prop_assert!(line.relative_residual(*x, *y).abs() < 1e-6, "{line:?}");
                }
            }
            prop_assert_eq!(Linearity::of(&x, &y, 0.001).unwrap().departure, None);
        }
    }
}
