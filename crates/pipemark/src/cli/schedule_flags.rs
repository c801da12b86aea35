//! The options for the number of runs and their time, shared by all measuring verbs.

use std::time::Duration;

use clap::Args;

use pipemark_console::count;
use pipemark_model::parse_duration;
use pipemark_run::plan::ScheduleChoices;

/// Options for the number of runs and their time.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Runs and sessions")]
pub struct ScheduleOptions {
    /// Run each trial exactly N times
    ///
    /// By default, each trial is run at least 5 times, and more until its 95 % interval is within ±3 % or --budget is
    /// spent. A suite may set other limits.
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = count::<u32>(1, 10_000), conflicts_with = "budget")]
    pub runs: Option<u32>,
    /// Stop adding runs after TIME, such as 30s or 2min
    ///
    /// The minimum number of runs is still made, unless that would take more than twice TIME.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse_duration)]
    pub budget: Option<Duration>,
    /// Abort a run that takes longer than TIME [default: the expected time plus 60s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse_duration, hide_short_help = true)]
    pub limit: Option<Duration>,
    /// Measure in N sessions, each started afresh, for 'pipemark compare'
    ///
    /// Each session starts new processes, in a new order, at new memory addresses. JSON output has one document per
    /// session. The history has an entry for each session; 'pipemark compare' joins entries with the same --label.
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = count::<u32>(1, 1000))]
    pub sessions: Option<u32>,
    /// Seed for the order of runs, the content and the delays [default: 1]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = count::<u64>(0, u64::MAX), hide_short_help = true)]
    pub seed: Option<u64>,
}

impl ScheduleOptions {
    /// The chosen parts of the schedule.
    pub fn choices(&self) -> ScheduleChoices {
        ScheduleChoices {
            runs: self.runs,
            budget: self.budget,
            budget_is_limit: self.budget.is_some(),
            run_limit: self.limit,
            seed: self.seed,
            ..ScheduleChoices::default()
        }
    }
}
