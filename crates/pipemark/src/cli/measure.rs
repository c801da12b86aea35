//! Code shared by all measuring verbs: runs the plans, draws conclusions and writes the results.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use signal_hook::consts::SIGXFSZ;

use pipemark_console::{ExitError, Format, JsonLines, VerbResult, catch_interrupts, exit, say, say_error};
use pipemark_entrants::Entrants;
use pipemark_host::child::Interrupt;
use pipemark_model::{Claim, Document, Experiment, Key, Nanos, Outcome, Record, Status, Stopped, Trial, Value};
use pipemark_report::findings;
use pipemark_run::plan::{Design, MEMORY_COPY, Plan, Suite, VolumeScale};
use pipemark_stats::estimate::MIN_RUNS;

use crate::cli::history::lists::sessions as sessions_sheet;
use crate::cli::links::{LinkOptions, prepare_links};
use crate::cli::output::{OutputOptions, document_as, empty_document, render_document, save_document};
use crate::cli::parameters::{KeySet, ParameterFlags};
use crate::cli::reporter::Reporter;
use crate::cli::schedule_flags::ScheduleOptions;
use crate::store::Id;

/// The time per run if no flag gives one.
const DEFAULT_TIME: Duration = Duration::from_millis(250);
/// The time to start and end the processes of a run, about.
const START_OF_RUN: Duration = Duration::from_millis(20);

/// The options of a verb whose experiment is defined by flags.
#[derive(Debug, Clone, Args)]
pub struct FlagOptions<K: KeySet> {
    #[command(flatten)]
    pub parameters: ParameterFlags<K>,
    #[command(flatten)]
    links: LinkOptions,
    #[command(flatten)]
    schedule: ScheduleOptions,
    #[command(flatten)]
    pub output: OutputOptions,
}

impl<K: KeySet> FlagOptions<K> {
    /// A plan with a single experiment, which is named after the verb.
    pub fn plan(&self, design: Design) -> Result<Plan, ExitError> {
        self.output.targets().check()?;
        let verb = design.name.clone();
        Suite::of_flags(&verb, self.schedule.choices(), design).expand(VolumeScale::ONE).map_err(ExitError::usage)
    }

    /// The number of trials of which `--budget` allows the minimum number of runs; `None` without a budget.
    pub fn most_trials(&self) -> Option<usize> {
        let nanos = |value: &Value| value.number().map_or(DEFAULT_TIME, Duration::from_nanos);
        let run = self.parameters.values(Key::Time).iter().map(nanos).max().unwrap_or(DEFAULT_TIME) + START_OF_RUN;
        let runs = self.schedule.budget?.as_secs_f64() / run.as_secs_f64();
        Some((runs / MIN_RUNS as f64) as usize)
    }

    /// Measures a plan without entrants.
    pub fn measure(&self, plan: Plan) -> VerbResult {
        let interrupt = catch_interrupts()?;
        let plans = [plan];
        let links = prepare_links(&plans, &self.links, self.output.export.quiet).map_err(ExitError::usage)?;
        let entrants = Entrants::of_links(links);
        measure(&plans, &entrants, &self.output, self.schedule.sessions, interrupt)
    }
}

/// Measures the plans in order, into one document or one for each session. The caller must have prepared `entrants` for
/// the plans, and must catch interrupts before any slow step.
pub fn measure(
    plans: &[Plan],
    entrants: &Entrants,
    output: &OutputOptions,
    sessions: Option<u32>,
    interrupt: Interrupt,
) -> VerbResult {
    let sessions = sessions.unwrap_or(1);
    if sessions > 1 {
        output.targets().check_sessions()?;
    }
    // With a handler for this signal, a write beyond a file size limit (ulimit -f) fails instead of ending the program.
    signal_hook::flag::register(SIGXFSZ, Arc::default())?;
    output.targets().check_files()?;
    let mut lines = output.json_lines()?;
    let mut plans = plans.to_vec();
    if plans.iter().any(|plan| !plan.to_measure.is_empty()) {
        let machine = pipemark_host::survey_before_measuring();
        let mut progress = Reporter::new(false, output.export.quiet);
        for plan in &mut plans {
            *plan = pipemark_run::with_volumes(plan, &machine, entrants, &interrupt, &mut progress);
        }
    }
    let mut documents: Vec<Document> = Vec::new();
    for session in 1..=sessions {
        if sessions > 1 && !output.export.quiet && io::stderr().is_terminal() {
            say(format_args!("session {session} of {sessions}"));
        }
        documents.push(document(&plans, entrants, output, &interrupt, lines.as_mut(), session)?);
        if documents[documents.len() - 1].partial {
            break;
        }
        // The next session runs the trials in another order.
        plans.iter_mut().for_each(|plan| plan.schedule.seed = plan.schedule.seed.wrapping_add(1));
    }
    if let Err(error) = interrupt.end_the_program_with(exit::INTERRUPTED) {
        say_error(format_args!("Ctrl-C has no effect from here on: {error}"));
    }

    let keep = |document: Document| {
        let kept = save_document(&document, &output.keep);
        (document, kept)
    };
    let measured: Vec<(Document, Option<Id>)> = documents.into_iter().map(keep).collect();
    let written = output.targets().write(|format| match measured.as_slice() {
        [(document, kept)] if sessions == 1 => render_document(format, output.detail, document, *kept),
        all if format == Format::Json => all.iter().map(|(document, _)| document_as(format, document)).collect(),
        all => format.of_sheet(&sessions_sheet(&all.iter().map(|(document, _)| document).collect::<Vec<_>>()), None),
    });
    measured.iter().try_for_each(|(document, _)| exit_result(document, written.is_ok()))
}

fn document(
    plans: &[Plan],
    entrants: &Entrants,
    output: &OutputOptions,
    interrupt: &Interrupt,
    mut json_lines: Option<&mut JsonLines>,
    session: u32,
) -> Result<Document, ExitError> {
    let started = jiff::ZonedDateTime::now().timestamp().to_string();
    let machine = pipemark_host::survey_before_measuring();
    let before = pipemark_host::Reading::now();
    if !output.export.quiet && io::stderr().is_terminal() {
        // The user may prefer to wait until the machine is quiet.
        pipemark_host::warnings(&machine, &before, &before).iter().for_each(|warning| say(format_args!("! {warning}")));
    }
    let mut outcomes: Vec<Outcome> = Vec::new();
    let (mut partial, mut elapsed_ns) = (false, 0);
    let mut shortages = Vec::new();
    for plan in plans {
        let lines = plan.schedule.by_interval && output.targets().printed() == Some(Format::Text);
        let mut progress = Reporter::new(lines, output.export.quiet).with_lines(json_lines.as_deref_mut(), session);
        if partial {
            outcomes
                .extend(plan.trials.iter().map(|trial| Outcome::of(trial.clone()).not_started(Stopped::Interrupted)));
            continue;
        }
        // A trial that was already measured for an earlier suite isn't measured again.
        let known = |trial: &Trial, outcomes: &[Outcome]| {
            outcomes.iter().find(|outcome| trial.is_same_as(&outcome.trial)).cloned()
        };
        let mut rest = plan.clone();
        rest.trials.retain(|trial| known(trial, &outcomes).is_none());
        let measurement = pipemark_run::measure(&rest, &machine, entrants, interrupt, &mut progress);
        progress.check_written()?;
        partial = measurement.partial;
        shortages.extend(measurement.shortage);
        elapsed_ns += Nanos::from(measurement.elapsed).0;
        let all = [outcomes.as_slice(), &measurement.outcomes].concat();
        let of_trial = |trial: &Trial| Some(Outcome { trial: trial.clone(), ..known(trial, &all)? });
        outcomes.extend(plan.trials.iter().filter_map(of_trial));
    }
    let after = pipemark_host::Reading::now();
    let mut trials = pipemark_stats::records::records(outcomes, machine.page_size);
    trials.iter_mut().for_each(|record| record.reference = record.experiment == MEMORY_COPY);
    // Requested trials come before reference trials.
    trials.sort_by_key(|record| record.reference);
    let memory_copy = pipemark_stats::records::memory_copy(&trials);
    let mut claims: Vec<Claim> = plans.iter().flat_map(|plan| plan.claims.clone()).collect();
    pipemark_claims::demonstrations::demonstrate(&mut claims, &machine.caches);
    let experiments: Vec<Experiment> = plans.iter().flat_map(|plan| plan.experiments.clone()).collect();
    Ok(Document {
        suite: plans.iter().map(|plan| plan.suite.as_str()).collect::<Vec<_>>().join(", "),
        title: match plans {
            [plan] => plan.title.clone(),
            // With several suites, their titles are omitted and only the scaling is shown.
            _ => plans.iter().map(|plan| plan.scaled.as_str()).max().unwrap_or_default().to_owned(),
        },
        label: output.keep.label.clone(),
        started,
        elapsed_ns,
        seed: plans.first().map_or(0, |plan| plan.schedule.seed),
        partial,
        memory_copy,
        claims: pipemark_claims::answers::answer_claims(claims, &trials),
        findings: findings::findings(&trials, memory_copy.as_ref(), &machine.topology),
        experiments,
        trials,
        warnings: [shortages, pipemark_host::warnings(&machine, &before, &after)].concat(),
        host: machine,
        ..empty_document()
    })
}

/// The result of the verb. Wrong data takes precedence over failed trials, and failed trials over an interruption.
fn exit_result(document: &Document, written: bool) -> VerbResult {
    for record in document.trials.iter().filter(|record| record.status == Status::Failed) {
        say(format_args!("pipemark: {}: {}", record.id, record.reason.as_deref().unwrap_or("failed")));
    }
    let any = |is: fn(&Record) -> bool| document.trials.iter().any(is);
    if any(|record| record.verified == Some(false)) {
        Err(ExitError::code(exit::NOT_VERIFIED))
    } else if any(|record| record.status == Status::Failed) || !written {
        Err(ExitError::code(exit::FAILED))
    } else if document.partial {
        Err(ExitError::code(exit::INTERRUPTED))
    } else if !any(|record| record.status == Status::Ok && record.experiment != MEMORY_COPY)
        && any(|record| record.job.ends().is_some() && record.experiment != MEMORY_COPY)
    {
        // The memory-copy limit wasn't requested, so it doesn't count. A missing tool is no failure.
        Err(ExitError::failed("none of these trials can be measured here; each row gives the reason"))
    } else {
        Ok(())
    }
}
