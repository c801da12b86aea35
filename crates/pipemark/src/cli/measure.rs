//! What all measuring verbs share: run the plans, draw the conclusions, write them where they were asked for.

use std::process::ExitCode;
use std::sync::Arc;

use signal_hook::consts::SIGXFSZ;

use super::output::OutputOptions;
use super::{exit, failure, keep};
use crate::child::Interrupt;
use crate::entrant::Entrants;
use crate::export::Destination;
use crate::host;
use crate::model::{Document, Experiment, Nanos, Outcome, Record, SCHEMA, Status, Stopped, WORKLOAD};
use crate::plan::Plan;
use crate::run::{self, Progress};
use crate::stats;

/// Measures plans without entrants.
pub fn measure(plans: &[Plan], output: &OutputOptions) -> ExitCode {
    measure_with(plans, &Entrants::default(), output)
}

/// Measures the plans one after the other into one document. `entrants` are those that the plans want, prepared.
pub fn measure_with(plans: &[Plan], entrants: &Entrants, output: &OutputOptions) -> ExitCode {
    let interrupt = match Interrupt::catch() {
        Ok(interrupt) => interrupt,
        Err(error) => return failure(format_args!("signals cannot be caught: {error}")),
    };
    // Where files may not grow (ulimit -f), that is then a refusal, and not the end of the program.
    if let Err(error) = signal_hook::flag::register(SIGXFSZ, Arc::default()) {
        return failure(format_args!("signals cannot be caught: {error}"));
    }
    for (destination, (what, _)) in output.exports() {
        if let Err(error) = destination.check(what) {
            return failure(error);
        }
    }
    let document = document(plans, entrants, output, &interrupt);
    if let Err(error) = interrupt.end_the_program_with(exit::INTERRUPTED) {
        failure(format_args!("Ctrl-C has no effect from here on: {error}"));
    }

    let mut written = true;
    let shown = output.printed().map(|writer| (&Destination::Stdout, writer));
    for (destination, (what, write)) in output.exports().into_iter().chain(shown) {
        if let Err(error) = destination.write(what, write(&document)) {
            failure(error);
            written = false;
        }
    }
    keep::keep(&document, &output.keep, output.quiet());
    verdict(&document, written)
}

fn document(plans: &[Plan], entrants: &Entrants, output: &OutputOptions, interrupt: &Interrupt) -> Document {
    let started = jiff::Zoned::now().timestamp().to_string();
    let machine = host::survey();
    let before = host::Reading::now();
    let mut outcomes: Vec<Outcome> = Vec::new();
    let (mut partial, mut elapsed_ns) = (false, 0);
    for plan in plans {
        let mut progress = Progress::new(output.quiet(), plan.trials.len() as u64);
        if partial {
            outcomes.extend(plan.trials.iter().map(|trial| not_reached(trial.clone())));
            continue;
        }
        let measurement = run::measure(plan, &machine, entrants, interrupt, &mut progress);
        progress.finish();
        partial = measurement.partial;
        elapsed_ns += Nanos::from(measurement.elapsed).0;
        outcomes.extend(measurement.outcomes);
    }
    let after = host::Reading::now();
    let trials = stats::records::records(outcomes);
    let memory_copy = stats::records::memory_copy(&trials);
    let experiments: Vec<Experiment> = plans.iter().flat_map(|plan| plan.experiments.clone()).collect();
    let mut findings = stats::findings::answers(&experiments, &trials);
    findings.extend(stats::findings::findings(&trials, memory_copy.as_ref()));
    Document {
        schema: SCHEMA.to_owned(),
        workload: WORKLOAD,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        suite: join(plans, |plan| &plan.suite),
        title: join(plans, |plan| &plan.title),
        label: output.keep.label.clone(),
        command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        started,
        elapsed_ns,
        seed: plans.first().map_or(0, |plan| plan.schedule.seed),
        partial,
        memory_copy,
        findings,
        experiments,
        trials,
        warnings: host::warnings(&machine, &before, &after),
        host: machine,
    }
}

fn not_reached(trial: crate::model::Trial) -> Outcome {
    Outcome {
        trial,
        status: Status::Skipped,
        reason: Some("the measurement was ended before its first run".to_owned()),
        verified: None,
        samples: Vec::new(),
        stopped: Some(Stopped::Interrupted),
        notes: Vec::new(),
    }
}

fn join<'a>(plans: &'a [Plan], part: impl Fn(&'a Plan) -> &'a String) -> String {
    plans.iter().map(|plan| part(plan).as_str()).collect::<Vec<_>>().join(", ")
}

/// The exit code: data that is wrong outweighs trials that failed, which outweigh an interruption.
fn verdict(document: &Document, written: bool) -> ExitCode {
    let failed = |record: &&Record| record.status == Status::Failed;
    for record in document.trials.iter().filter(failed) {
        eprintln!("pipemark: {}: {}", record.id, record.reason.as_deref().unwrap_or("failed"));
    }
    // The memory-copy limit runs beside what was asked for, unless it is all that was.
    let measured = document.trials.iter().any(|record| record.status == Status::Ok && !is_limit(record))
        || document.trials.iter().all(is_limit);
    if document.trials.iter().any(|record| record.verified == Some(false)) {
        ExitCode::from(exit::NOT_VERIFIED)
    } else if document.trials.iter().any(|record| record.status == Status::Failed) || !written {
        ExitCode::from(exit::FAILED)
    } else if document.partial {
        ExitCode::from(exit::INTERRUPTED)
    } else if !measured {
        failure("nothing of what was asked for can be measured here; the reasons are beside each trial")
    } else {
        ExitCode::SUCCESS
    }
}

fn is_limit(record: &Record) -> bool {
    record.job.is_memory_copy()
}
