//! Which trials get fewer runs than planned if the budget is too short. The cheapest trials get all their runs, so that
//! a short budget gives some figures with intervals instead of none.

use std::time::Duration;

use pipemark_model::{Job, Nanos, Volume, Warning};

/// The minimum number of runs is made in any case if it takes at most this much longer than the budget.
const GRACE: Duration = Duration::from_secs(5);

/// A number that grows with the expected time of a run, to run the cheapest trials first.
pub fn expected_cost(job: &Job) -> (u32, u64) {
    let length = job.chain().map_or(0, |chain| chain.length);
    let volume = match job.volume() {
        Volume::Total(total) => total.0,
        Volume::Time(time) => time.0,
    };
    (length, volume)
}

/// What a budget is too short for.
#[derive(Debug, PartialEq)]
pub struct Shortage {
    /// The trials that get no more runs.
    pub dropped: Vec<usize>,
    /// The time that all planned runs would take.
    pub needed: Duration,
}

impl Shortage {
    /// Decides after the first round. `first_runs` has the trials that need more runs, each with the time of its first
    /// run, and `more` is the number of further runs of each trial. `None` if the budget is sufficient, or nearly so.
    pub fn of(first_runs: &[(usize, Duration)], more: u32, elapsed: Duration, budget: Duration) -> Option<Shortage> {
        let needed = elapsed + first_runs.iter().map(|(_, time)| *time).sum::<Duration>() * more;
        if needed <= (budget * 2).max(budget + GRACE) {
            return None;
        }
        let mut cheapest = first_runs.to_vec();
        cheapest.sort_by_key(|(_, time)| *time);
        let mut spent = elapsed;
        let fits = |(_, time): &&(usize, Duration)| {
            spent += *time * more;
            spent <= budget
        };
        // At least one trial gets all its runs.
        let kept = cheapest.iter().take_while(fits).count().max(1);
        Some(Shortage { dropped: cheapest.into_iter().skip(kept).map(|(trial, _)| trial).collect(), needed })
    }

    /// The warning for a measurement.
    pub fn warning(&self, budget: Duration, min_runs: u32) -> Warning {
        Warning::BudgetTooShort {
            budget_ns: Nanos::from(budget).0,
            needed_ns: Some(Nanos::from(self.needed).0),
            min_runs,
            trials: self.dropped.len() as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_most_expensive_trials_get_fewer_runs() {
        let first = [(0, SECOND / 10), (1, 8 * SECOND), (2, SECOND / 5), (3, SECOND / 10)];
        let of = |budget| Shortage::of(&first, 4, SECOND, budget);
        assert_eq!(of(40 * SECOND), None);
        assert_eq!(of(20 * SECOND), None, "the minimum takes less than twice the budget");
        let short = of(10 * SECOND).unwrap();
        assert_eq!((short.dropped, short.needed.as_millis()), (vec![1], 34_600));
        assert_eq!(of(SECOND / 2).unwrap().dropped, [3, 2, 1], "one trial is measured whatever the budget");
    }

    #[test]
    fn a_little_more_time_is_taken_for_the_minimum() {
        let first = [(0, SECOND / 10), (1, SECOND / 10)];
        assert_eq!(Shortage::of(&first, 4, SECOND / 5, Duration::from_millis(1)), None);
    }
}
