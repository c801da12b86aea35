//! How often and for how long each trial is run: defaults, and the precedence of choices.

use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error as _};

use pipemark_model::parse_duration;

/// Minimum number of runs of an adaptive trial. Fewer samples give no meaningful 95 % interval of the median.
const MIN_RUNS: u32 = 5;
/// Maximum number of runs of an adaptive trial, unless the minimum is larger.
const MAX_RUNS: u32 = 30;
/// Target precision of an adaptive trial: half the width of the interval as a fraction of the median.
const PRECISION: f64 = 0.03;
/// Approximate total time of an adaptive measurement.
const BUDGET: Duration = Duration::from_secs(30);
/// Time by which a run may exceed the time per run. Then the watchdog ends the run.
const RUN_LIMIT: Duration = Duration::from_secs(60);
/// The default seed. It is fixed, so that the same plan is run in the same order each time and two measurements differ
/// less.
const SEED: u64 = 1;

/// The default sampling interval. It is short enough to show when an end sleeps and wakes up, and long enough that
/// sampling takes no noticeable share of the time.
const INTERVAL: Duration = Duration::from_millis(10);

/// How often, how long and in which order trials are run.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// The number of runs of each trial.
    pub runs: Runs,
    /// The target precision: half the width of the 95 % interval as a fraction of the median (0.03 is ±3 %). A trial
    /// that reaches it needs no more runs. Ignored for [`Runs::Fixed`].
    pub precision: f64,
    /// The time budget of the whole measurement. After this time, only the minimum number of runs is completed. Ignored
    /// for [`Runs::Fixed`].
    pub budget: Duration,
    /// Whether the user chose the budget for this measurement. Then trials get fewer runs than the minimum if the minimum
    /// would take far longer than the budget.
    pub budget_is_limit: bool,
    /// The time after which the watchdog ends a run. Always longer than the longest time per run.
    pub run_limit: Duration,
    /// The seed for content, delays, the bootstrap and the order of the runs.
    pub seed: u64,
    /// The time between two samples of a run.
    pub interval: Duration,
    /// Whether the progress of each interval is shown during a run.
    pub by_interval: bool,
}

/// The number of runs of each trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runs {
    /// Exactly this number of runs.
    Fixed(u32),
    /// At least `min` runs, then more until the interval is narrow enough, the budget is spent or there are `max` runs.
    Adaptive { min: u32, max: u32 },
}

/// The parts of a schedule that one source, such as the flags, chooses. `None` leaves a part to the next source of
/// choices, and finally to the defaults.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct ScheduleChoices {
    /// Exact number of runs. It excludes `min_runs`, `max_runs`, `precision` and `budget`.
    #[serde(deserialize_with = "runs")]
    pub runs: Option<u32>,
    /// Minimum number of runs.
    #[serde(deserialize_with = "runs")]
    pub min_runs: Option<u32>,
    /// Maximum number of runs.
    #[serde(deserialize_with = "runs")]
    pub max_runs: Option<u32>,
    /// See [`Schedule::precision`].
    #[serde(deserialize_with = "precision")]
    pub precision: Option<f64>,
    /// See [`Schedule::budget`].
    #[serde(deserialize_with = "duration")]
    pub budget: Option<Duration>,
    /// See [`Schedule::budget_is_limit`].
    #[serde(skip)]
    pub budget_is_limit: bool,
    /// See [`Schedule::run_limit`].
    #[serde(deserialize_with = "duration")]
    pub run_limit: Option<Duration>,
    /// See [`Schedule::seed`].
    pub seed: Option<u64>,
    /// See [`Schedule::interval`].
    #[serde(deserialize_with = "duration")]
    pub interval: Option<Duration>,
}

impl ScheduleChoices {
    /// These choices, completed from `others`. If `self` fixes the number of runs, the adaptive choices of `others` are
    /// ignored. If `self` has an adaptive choice, a fixed number of runs in `others` becomes the minimum.
    pub fn or(self, others: ScheduleChoices) -> ScheduleChoices {
        let fixed = self.runs.is_some();
        let adapts =
            self.min_runs.is_some() || self.max_runs.is_some() || self.precision.is_some() || self.budget.is_some();
        let adaptive = |mine: Option<_>, theirs| if fixed { mine } else { mine.or(theirs) };
        ScheduleChoices {
            runs: self.runs.or(others.runs.filter(|_| !adapts)),
            min_runs: adaptive(self.min_runs, others.min_runs.or(others.runs)).filter(|_| !fixed),
            max_runs: adaptive(self.max_runs, others.max_runs),
            precision: if fixed { self.precision } else { self.precision.or(others.precision) },
            budget: if fixed { self.budget } else { self.budget.or(others.budget) },
            budget_is_limit: self.budget_is_limit || others.budget_is_limit,
            run_limit: self.run_limit.or(others.run_limit),
            seed: self.seed.or(others.seed),
            interval: self.interval.or(others.interval),
        }
    }

    /// The schedule for trials that measure for at most `longest`.
    ///
    /// # Errors
    /// A message, if the time limit of a run isn't above `longest`, or the minimum number of runs is above the maximum.
    pub fn complete(self, longest: Duration) -> Result<Schedule, String> {
        let runs = match self.runs {
            Some(runs) => Runs::Fixed(runs),
            None => {
                let min = self.min_runs.unwrap_or(MIN_RUNS.min(self.max_runs.unwrap_or(MIN_RUNS)));
                let max = self.max_runs.unwrap_or(MAX_RUNS.max(min));
                if min > max {
                    return Err(format!(
                        "min-runs = {min} is above max-runs = {max}; raise max-runs or lower min-runs"
                    ));
                }
                Runs::Adaptive { min, max }
            }
        };
        let run_limit = match self.run_limit {
            Some(limit) if limit <= longest => {
                return Err(format!(
                    "the limit of {limit:?} per run would abort runs that take {longest:?}; raise --limit or lower --time"
                ));
            }
            Some(limit) => limit,
            None => RUN_LIMIT + longest,
        };
        Ok(Schedule {
            runs,
            precision: self.precision.unwrap_or(PRECISION),
            budget: self.budget.unwrap_or(BUDGET),
            budget_is_limit: self.budget_is_limit,
            run_limit,
            seed: self.seed.unwrap_or(SEED),
            interval: self.interval.unwrap_or(INTERVAL),
            by_interval: false,
        })
    }
}

fn runs<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    match u32::deserialize(deserializer)? {
        runs @ 1..=10_000 => Ok(Some(runs)),
        runs => Err(D::Error::custom(format_args!("{runs} runs are out of range; use 1 to 10000"))),
    }
}

fn precision<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    match f64::deserialize(deserializer)? {
        precision if (0.001..=0.5).contains(&precision) => Ok(Some(precision)),
        precision => Err(D::Error::custom(format_args!("the precision {precision} is out of range; use 0.001 to 0.5"))),
    }
}

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    parse_duration(&String::deserialize(deserializer)?).map(Some).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_default_schedule_is_the_documented_one() {
        let schedule = ScheduleChoices::default().complete(SECOND).unwrap();
        assert_eq!(schedule.runs, Runs::Adaptive { min: 5, max: 30 });
        assert_eq!(schedule.precision, 0.03);
        assert_eq!(schedule.run_limit, Duration::from_secs(61));
    }

    #[test]
    fn a_fixed_number_of_runs_replaces_adaptive_choices() {
        let suite = ScheduleChoices { min_runs: Some(7), budget: Some(SECOND), seed: Some(9), ..Default::default() };
        let flags = ScheduleChoices { runs: Some(2), ..Default::default() };
        let schedule = flags.or(suite).complete(SECOND).unwrap();
        assert_eq!(schedule.runs, Runs::Fixed(2));
        assert_eq!(schedule.seed, 9);
    }

    #[test]
    fn a_budget_makes_a_fixed_number_the_minimum() {
        let suite = ScheduleChoices { runs: Some(3), ..Default::default() };
        let flags = ScheduleChoices { budget: Some(SECOND), ..Default::default() };
        let schedule = flags.or(suite).complete(SECOND).unwrap();
        assert_eq!(schedule.runs, Runs::Adaptive { min: 3, max: 30 });
        assert_eq!(schedule.budget, SECOND);
        let schedule = ScheduleChoices { runs: Some(100), ..suite };
        assert_eq!(flags.or(schedule).complete(SECOND).unwrap().runs, Runs::Adaptive { min: 100, max: 100 });
    }

    #[test]
    fn contradictory_choices_are_refused() {
        let bounds = ScheduleChoices { min_runs: Some(7), max_runs: Some(6), ..Default::default() };
        assert!(bounds.complete(SECOND).unwrap_err().contains("is above max-runs = 6"));
        let limit = ScheduleChoices { run_limit: Some(SECOND), ..Default::default() };
        assert!(limit.complete(SECOND).unwrap_err().contains("--limit"));
        assert!(limit.complete(SECOND / 2).is_ok());
    }
}
