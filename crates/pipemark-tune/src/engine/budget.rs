//! How long all experiments take. Pure.

use std::time::Duration;

/// The shortest and the longest default budget.
const SHORTEST: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(600);
/// Without --budget, a longer pipeline may run this many times.
const RUNS: u32 = 30;

/// The budget, as far as it is known after runs of the pipeline that took `times` seconds: what was asked for, or by
/// default [`SHORTEST`], or [`RUNS`] times the pipeline's own time if that is longer, at most [`LONGEST`]. The shortest
/// run counts as the pipeline's own time, because the first one is watched and may read files that aren't cached.
pub fn planned_budget(asked: Option<Duration>, times: &[f64]) -> Duration {
    let own = times.iter().copied().fold(f64::INFINITY, f64::min).min(LONGEST.as_secs_f64());
    asked.unwrap_or_else(|| (Duration::from_secs_f64(own) * RUNS).clamp(SHORTEST, LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(times: &[f64]) -> u64 {
        planned_budget(None, times).as_secs()
    }

    #[test]
    fn the_budget_grows_with_the_pipeline_up_to_ten_minutes() {
        assert_eq!([planned(&[0.1]), planned(&[3.0]), planned(&[100.0])], [60, 90, 600]);
    }

    #[test]
    fn a_slow_first_run_lengthens_no_budget() {
        assert_eq!((planned(&[3.07]), planned(&[3.07, 1.6, 1.57])), (92, 60));
        assert_eq!(planned(&[4.0, 3.0, 5.0]), 90);
    }

    #[test]
    fn what_was_asked_for_stays() {
        let asked = Some(Duration::from_secs(5));
        assert_eq!(planned_budget(asked, &[0.1, 40.0]), Duration::from_secs(5));
    }
}
