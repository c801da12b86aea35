//! `pipemark compare --aa`: compares one trial with itself in several sessions, and derives the smallest detectable
//! change.

use clap::Args;
use serde::Serialize;

use pipemark_console::verdict::interval;
use pipemark_console::{ExitError, ExportOptions, VerbResult, catch_interrupts, count, exit};
use pipemark_entrants::Entrants;
use pipemark_model::{Host, Sample, Status, Value, digits, signed_percent};
use pipemark_run::plan::{Design, Plan, Runs, ScheduleChoices, Suite, VolumeScale};
use pipemark_show::{Cell, Column, Note, Sheet, Style, Table};
use pipemark_stats::compare::{CompareError, Comparison, Pairing, compare};
use pipemark_stats::sessions::{JointComparisons, Session, Sessions, Spread, compare_interleaved, smallest_change};
use pipemark_stats::verdict::{Criterion, Verdict};

use crate::cli::reporter::Reporter;

/// Common numbers of sessions, for which the smallest detectable change is printed.
const SESSIONS: [usize; 4] = [5, 7, 10, 20];

/// The options of `--aa`.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Noise floor (with --aa)")]
pub struct NoiseFloorOptions {
    /// Parameters of the trial [default: those of 'pipemark bw']
    #[arg(long, value_name = "KEY=VALUE,…", value_delimiter = ',', value_parser = Value::parse_pair, requires = "aa")]
    with: Vec<Value>,
    /// Measure in N sessions; 8 or more are recommended
    #[arg(long, value_name = "N", value_parser = count::<u32>(5, 1000), default_value_t = 8, requires = "aa")]
    sessions: u32,
    /// Measure each side N times per session
    #[arg(long, value_name = "N", value_parser = count::<u32>(4, 1000), default_value_t = 6, requires = "aa")]
    rounds: u32,
}

/// Measures the noise floor and prints it.
pub fn run(options: &NoiseFloorOptions, criterion: Criterion, output: &ExportOptions) -> VerbResult {
    let floors = measure(plan(options)?, options, criterion, output.quiet)?;
    output.write(&sheet(&floors), &serde_json::to_string(&floors)?)
}

/// A plan with the trial in two experiments, because the trials of one experiment must differ.
fn plan(options: &NoiseFloorOptions) -> Result<Plan, ExitError> {
    let mut design = Design::new("a", "");
    design.params = options.with.iter().cloned().map(Into::into).collect();
    let suite = Suite::of_flags("compare --aa", ScheduleChoices::default(), design);
    let mut plan = suite.expand(VolumeScale::ONE).map_err(ExitError::usage)?;
    let mut again = plan.trials[0].clone();
    again.experiment = "b".to_owned();
    // The copy needs another id, because trials with the same id are measured once.
    again.id.push_str(" again");
    plan.trials.push(again);
    plan.schedule.runs = Runs::Fixed(options.rounds);
    Ok(plan)
}

/// Measures both copies of the trial in all sessions.
fn measure(
    mut plan: Plan,
    options: &NoiseFloorOptions,
    criterion: Criterion,
    quiet: bool,
) -> Result<NoiseFloor, ExitError> {
    let interrupt = catch_interrupts()?;
    let machine = pipemark_host::survey_before_measuring();
    let mut progress = Reporter::new(false, quiet);
    let mut sides: [Vec<Vec<f64>>; 2] = Default::default();
    for _ in 0..options.sessions {
        let measurement = pipemark_run::measure(&plan, &machine, &Entrants::default(), &interrupt, &mut progress);
        if measurement.partial {
            return Err(ExitError::with(
                exit::INTERRUPTED,
                "interrupted, so there is no result: a noise floor needs all of its rounds",
            ));
        }
        for (side, outcome) in sides.iter_mut().zip(&measurement.outcomes) {
            if outcome.status != Status::Ok {
                let reason = outcome.reason.as_deref().unwrap_or("it did not run");
                let code = if outcome.verified == Some(false) { exit::NOT_VERIFIED } else { exit::FAILED };
                return Err(ExitError::with(code, format_args!("{}: {reason}", outcome.trial.id)));
            }
            side.push(outcome.samples.iter().map(Sample::speed).collect());
        }
        plan.schedule.seed = plan.schedule.seed.wrapping_add(1);
    }
    drop(progress);
    floors(&plan, &machine, options, criterion, &sides).map_err(ExitError::failed)
}

fn floors(
    plan: &Plan,
    machine: &Host,
    options: &NoiseFloorOptions,
    criterion: Criterion,
    [base, new]: &[Vec<Vec<f64>>; 2],
) -> Result<NoiseFloor, CompareError> {
    let ratios: Vec<Vec<f64>> =
        base.iter().zip(new).map(|(base, new)| base.iter().zip(new).map(|(base, new)| new / base).collect()).collect();
    let itself = compare_interleaved(&ratios, JointComparisons::SINGLE, criterion)?;
    let spread = |sessions: &[Vec<f64>]| {
        Sessions { base: Session::all(sessions)?, ..Sessions::default() }
            .spread()
            .map(|Spread { variance, .. }| variance)
    };
    let (own, of_ratios) = spread(base).zip(spread(&ratios)).expect("the comparison succeeded, so there are sessions");
    let pairs: Vec<(usize, usize)> = (1..base.len()).flat_map(|new| (0..new).map(move |base| (base, new))).collect();
    let differ = |(one, other): &&(usize, usize)| {
        let compared = compare(&base[*one], &base[*other], Pairing::None, criterion);
        compared.is_ok_and(|compared| matches!(compared.verdict, Verdict::Better | Verdict::Worse))
    };
    let floor = |sessions: usize| {
        let count = sessions as f64;
        let see = |error: f64, df| smallest_change(error.sqrt(), df, 1, criterion);
        Floor {
            sessions,
            two_files: see(2.0 * own / count, 2 * sessions - 2),
            in_turns: see(of_ratios / count, sessions - 1),
        }
    };
    Ok(NoiseFloor {
        schema: "pipemark-noise-floor/2",
        trial: plan.trials[0].id.clone(),
        kernel: machine.kernel.clone(),
        cpu: machine.cpu.clone(),
        sessions: options.sessions,
        rounds: options.rounds,
        criterion,
        itself,
        differ_by_runs: pairs.iter().filter(differ).count(),
        pairs: pairs.len(),
        between_sessions: own.sqrt().exp_m1(),
        floors: SESSIONS.map(floor).into(),
    })
}

/// The JSON output of `compare --aa --json`.
#[derive(Debug, Serialize)]
pub struct NoiseFloor {
    pub schema: &'static str,
    /// The trial's id.
    pub trial: String,
    pub kernel: String,
    pub cpu: String,
    pub sessions: u32,
    pub rounds: u32,
    pub criterion: Criterion,
    /// The trial compared with itself, alternating within each session.
    pub itself: Comparison,
    /// The number of pairs of sessions.
    pub pairs: usize,
    /// The number of those pairs that would be judged better or worse if only their runs were compared.
    pub differ_by_runs: usize,
    /// The typical difference of a session from the mean of all sessions, as a fraction.
    pub between_sessions: f64,
    pub floors: Vec<Floor>,
}

/// The smallest change that this number of sessions detects 9 times out of 10, as a fraction.
#[derive(Debug, Serialize)]
pub struct Floor {
    pub sessions: usize,
    pub two_files: f64,
    pub in_turns: f64,
}

/// The trial compared with itself, and the smallest detectable change for each number of sessions. Each change is shown
/// for sessions in two files and for sides that alternate within a session.
fn sheet(floor: &NoiseFloor) -> Sheet {
    let mut sheet = Sheet::default();
    let (change, verdict) = (signed_percent(floor.itself.change), floor.itself.verdict.name());
    sheet
        .heading(2, &format!("{} against itself, {} sessions of {} rounds", floor.trial, floor.sessions, floor.rounds));
    let between = format!(
        "Sessions differ by {} % from their mean. Compared by their runs alone, {} of {} pairs of sessions would differ significantly.",
        digits(floor.between_sessions * 100.0),
        floor.differ_by_runs,
        floor.pairs
    );
    sheet.text(Style::Plain, [format!("Interleaved: {change} % ({}): {verdict}", interval(&floor.itself)), between]);
    sheet.heading(2, "Smallest change in speed that is detected 9 times out of 10");
    // A change above a doubling says nothing but that there are too few sessions.
    let change = |by: f64| match by {
        ..=1.0 => Cell::of(format!("{} %", signed_percent(by)), by),
        _ => Cell::of("over 100 %", by),
    };
    let table = Table::of(&floor.floors)
        .column(Column::figures("sessions", "sessions"), |one| Cell::of(one.sessions.to_string(), one.sessions))
        .column(Column::figures("two_files", "in two files"), |one| change(one.two_files))
        .column(Column::figures("in_turns", "interleaved"), |one| change(one.in_turns));
    sheet.grid(table.grid());
    sheet.notes([Note::plain(
        "In two files: N sessions of one side, then N of the other, as with --sessions. Interleaved: both sides in each \
         session, as in ab.",
    )]);
    sheet
}
