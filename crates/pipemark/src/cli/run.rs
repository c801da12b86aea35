//! `pipemark run`: suites, measured one after the other.

use std::collections::HashSet;
use std::process::ExitCode;

use clap::Args;

use super::languages::{self, EntrantOptions};
use super::output::OutputOptions;
use super::schedule::ScheduleOptions;
use super::{measure, suite_file, usage};
use crate::plan::{Plan, Scale};

pub const EXAMPLES: &str = "\
EXAMPLES
  The quick suite, about 30 seconds:
      pipemark run

  A published experiment at a tenth of its volume, each trial three times:
      pipemark run block-size --scale 0.1 --runs 3

  A suite of your own, its results as JSON on standard output:
      pipemark run ./mine.toml --json -

  A word with a slash, or that ends with .toml, is a file; any other is one of the suites that 'pipemark list' shows.";

/// What `run` takes.
#[derive(Debug, Clone, Args)]
pub struct RunOptions {
    /// Suites by name, or files that hold one
    #[arg(value_name = "SUITE|FILE", default_value = "quick")]
    suites: Vec<String>,
    /// Multiply the totals and times of the suites by F
    ///
    /// A run then moves F times the bytes that the suite says, in whole blocks, or takes F times as long.
    #[arg(long, value_name = "F", allow_hyphen_values = true)]
    scale: Option<Scale>,
    #[command(flatten)]
    schedule: ScheduleOptions,
    #[command(flatten)]
    entrants: EntrantOptions,
    #[command(flatten)]
    output: OutputOptions,
}

/// Runs the suites.
pub fn run(options: &RunOptions) -> ExitCode {
    let plans = options.output.check().and_then(|()| plans(options));
    match plans {
        Ok(plans) => match languages::prepared(&plans, &options.entrants, options.output.quiet()) {
            Ok(entrants) => measure::measure_with(&plans, &entrants, &options.output),
            Err(sentence) => usage(sentence),
        },
        Err(sentence) => usage(sentence),
    }
}

/// One plan for each suite, in the order of the command line; the first begins with the memory-copy limit.
fn plans(options: &RunOptions) -> Result<Vec<Plan>, String> {
    let mut plans = Vec::new();
    for word in &options.suites {
        let mut suite = suite_file::find(word)?;
        suite.schedule = options.schedule.choices().or(suite.schedule);
        plans.push(suite.expand(options.scale.unwrap_or(Scale::ONE)).map_err(|error| error.to_string())?);
    }
    // Records and baselines are found by the experiment's name.
    let mut names = HashSet::new();
    for (plan, word) in plans.iter().zip(&options.suites) {
        if let Some(twice) = plan.experiments.iter().find(|experiment| !names.insert(&experiment.name)) {
            return Err(format!(
                "'{word}' and a suite before it both have an experiment called '{}'; run them one at a time",
                twice.name
            ));
        }
    }
    if let Some(first) = plans.first_mut() {
        first.precede_with_memory_copy();
    }
    Ok(plans)
}
