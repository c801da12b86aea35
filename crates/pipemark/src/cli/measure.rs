//! What all measuring verbs share: run the plans, draw the conclusions, write them where they were asked for.

use std::io::IsTerminal;
use std::process::ExitCode;

use super::output::OutputOptions;
use super::{exit, failure};
use crate::entrant::Entrants;
use crate::host;
use crate::model::{Document, Nanos, Outcome, SCHEMA, Status, Stopped};
use crate::plan::Plan;
use crate::run::{self, Interrupt};
use crate::show::{Colour, Csv, Destination, Format, Json, Markdown, Progress, Table};
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
    let exports = exports(output);
    for (destination, format) in &exports {
        if let Err(error) = destination.check(*format) {
            return failure(error);
        }
    }
    let document = document(plans, entrants, output, &interrupt);
    if let Err(error) = interrupt.end_the_program_with(exit::INTERRUPTED) {
        failure(format_args!("Ctrl-C has no effect from here on: {error}"));
    }

    let mut written = true;
    let table = Table { width: terminal_width(), colour: colour() };
    let shown: (&Destination, &dyn Format) = (&Destination::Stdout, &table);
    let silent = output.quiet || output.takes_stdout();
    for (destination, format) in exports.into_iter().chain((!silent).then_some(shown)) {
        if let Err(error) = destination.write(format, &document) {
            failure(error);
            written = false;
        }
    }
    verdict(&document, written)
}

fn exports(output: &OutputOptions) -> Vec<(&Destination, &'static dyn Format)> {
    let wanted: [(&Option<Destination>, &'static dyn Format); 3] =
        [(&output.json, &Json), (&output.csv, &Csv), (&output.markdown, &Markdown)];
    wanted.into_iter().filter_map(|(destination, format)| Some((destination.as_ref()?, format))).collect()
}

fn document(plans: &[Plan], entrants: &Entrants, output: &OutputOptions, interrupt: &Interrupt) -> Document {
    let started = jiff::Zoned::now().timestamp().to_string();
    let machine = host::survey();
    let before = host::Reading::now();
    let mut outcomes: Vec<Outcome> = Vec::new();
    let (mut partial, mut elapsed_ns) = (false, 0);
    for plan in plans {
        let mut progress = Progress::new(output.quiet, plan.trials.len() as u64);
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
    Document {
        schema: SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        suite: join(plans, |plan| &plan.suite),
        title: join(plans, |plan| &plan.title),
        command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        started,
        elapsed_ns,
        seed: plans.first().map_or(0, |plan| plan.schedule.seed),
        partial,
        memory_copy,
        findings: stats::findings::findings(&trials, memory_copy.as_ref()),
        experiments: plans.iter().flat_map(|plan| plan.experiments.clone()).collect(),
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
    let failed = |record: &&crate::model::Record| record.status == Status::Failed;
    for record in document.trials.iter().filter(failed) {
        eprintln!("pipemark: {}: {}", record.id, record.reason.as_deref().unwrap_or("failed"));
    }
    let measured = document.trials.iter().any(|record| record.status == Status::Ok);
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

/// Columns of the terminal, or 80 where there is none.
pub fn terminal_width() -> usize {
    let columns = rustix::termios::tcgetwinsize(std::io::stdout()).map(|size| usize::from(size.ws_col));
    columns.ok().filter(|&columns| columns > 0).unwrap_or(80)
}

/// Colour on a terminal, unless NO_COLOR is set to anything (no-color.org).
pub fn colour() -> Colour {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if std::io::stdout().is_terminal() && !unwanted { Colour::Always } else { Colour::Never }
}
