//! The scatter of a trial's runs, alone or relative to the scatter of another trial's runs.

use statrs::distribution::{ChiSquared, ContinuousCDF, FisherSnedecor};

use pipemark_model::{Estimate, Sample};

use crate::sessions::Spread;

/// Returns the standard deviation of the runs' speeds in per cent or, with `base`, its ratio to the standard deviation
/// of the base. It is computed from logarithms, so that throughput and latency are treated in the same way. The
/// interval is from the chi-square distribution or, with `base`, the F distribution. `None` with fewer than three runs,
/// or if all runs are equal.
pub fn estimate_spread(samples: &[Sample], base: Option<&[Sample]>, confidence: f64) -> Option<Estimate> {
    let (log_deviation, run_count) = deviation(samples)?;
    let outside = (1.0 - confidence) / 2.0;
    let free = run_count - 1.0;
    let (figure, low, high) = match base.map(deviation) {
        None => {
            let chi = ChiSquared::new(free).ok()?;
            let at = |share: f64| percent(log_deviation * (free / chi.inverse_cdf(share)).sqrt());
            (percent(log_deviation), at(1.0 - outside), at(outside))
        }
        Some(base) => {
            let (base, base_runs) = base?;
            let ratio = log_deviation / base;
            let fisher = FisherSnedecor::new(free, base_runs - 1.0).ok()?;
            let at = |share: f64| ratio / fisher.inverse_cdf(share).sqrt();
            (ratio, at(1.0 - outside), at(outside))
        }
    };
    let sound = figure.is_finite() && low.is_finite() && high.is_finite();
    let runs = u32::try_from(samples.len()).unwrap_or(u32::MAX);
    sound.then_some(Estimate { median: figure, low: Some(low), high: Some(high), min: figure, max: figure, runs })
}

fn percent(deviation: f64) -> f64 {
    deviation.exp_m1() * 100.0
}

/// The standard deviation of the logarithms of the speeds, and the number of speeds. `None` if the deviation is
/// undefined.
fn deviation(samples: &[Sample]) -> Option<(f64, f64)> {
    let speeds: Vec<f64> = samples.iter().map(Sample::speed).filter(|speed| speed.is_normal()).map(f64::ln).collect();
    let deviation = Spread::within([speeds.as_slice()])?.variance.sqrt();
    (speeds.len() > 2 && deviation > 0.0).then_some((deviation, speeds.len() as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::outcome;

    #[test]
    fn the_intervals_are_those_of_chi_square_and_f() {
        let runs = |far: f64| outcome("e", &[], 1.0, &[1.0, far, 1.0 / far, 1.0, far, 1.0 / far]).samples;
        // The six runs have a deviation of ln 1.1 · sqrt(4/5) = 0.0852. For 5 degrees of freedom, the 2.5 % quantiles
        // of chi-square are 0.831 and 12.83.
        let one = estimate_spread(&runs(1.1), None, 0.95).unwrap();
        assert!((one.median - 8.90).abs() < 0.02, "{one:?}");
        assert!((one.low.unwrap() - 5.47).abs() < 0.05 && (one.high.unwrap() - 23.3).abs() < 0.2, "{one:?}");
        // The 97.5 % quantile of F with 5 and 5 degrees of freedom is 7.15.
        let two = estimate_spread(&runs(1.21), Some(&runs(1.1)), 0.95).unwrap();
        assert!((two.median - 2.0).abs() < 0.01, "{two:?}");
        assert!((two.low.unwrap() - 2.0 / 7.15f64.sqrt()).abs() < 0.01, "{two:?}");
        assert!(
            estimate_spread(&runs(1.1)[..2], None, 0.95).is_none() && estimate_spread(&runs(1.0), None, 0.95).is_none()
        );
    }
}
