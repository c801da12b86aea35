//! What all measuring verbs end in: plans are run, shown and stored.

use std::process::ExitCode;

use super::output::OutputOptions;
use crate::plan::Plan;

/// Placeholder until the runner is joined: shows the plans. They are to be run one after the other, each by its own
/// schedule, into one document.
pub fn measure(plans: Vec<Plan>, output: &OutputOptions) -> ExitCode {
    if output.quiet || output.takes_stdout() {
        return ExitCode::SUCCESS;
    }
    for plan in &plans {
        println!("{}: {}\n{}\n{:?}", plan.suite, plan.title, plan.about, plan.schedule);
        for experiment in &plan.experiments {
            println!("\n{} ({}) by {:?}\n{}", experiment.title, experiment.name, experiment.varies, experiment.about);
            for trial in plan.trials_of(experiment) {
                let published = trial.published.as_ref().map(|published| published.throughput);
                println!("  {} / {:?} / {published:?}", trial.id, trial.baseline);
            }
        }
    }
    ExitCode::SUCCESS
}
