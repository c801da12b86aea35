//! `pipemark compare --aa`: one trial against itself in several sessions, and from that the smallest change that could be seen.

use clap::Args;

use super::console::catch_interrupts;
use super::output::ExportOptions;
use super::parameters::count;
use super::{Ending, Stop, exit};
use crate::compare::{Floor, NoiseFloor};
use crate::entrant::Entrants;
use crate::host;
use crate::model::{Host, Sample, Status, Value};
use crate::plan::{Design, Plan, Runs, Scale, ScheduleChoices, Suite};
use crate::run::{self, Progress};
use crate::sheet;
use crate::stats::compare::{CompareError, Pairing, compare};
use crate::stats::sessions::{Session, Sessions, Spread, Together, compare_in_turns, smallest_change};
use crate::stats::verdict::{Criterion, Verdict};

/// Numbers of sessions that people choose.
const SESSIONS: [usize; 4] = [5, 7, 10, 20];

/// What `--aa` takes.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Noise floor (with --aa)")]
pub struct NoiseFloorOptions {
    /// The trial to measure [default: a plain pipe, as 'pipemark bw' measures it]
    #[arg(long, value_name = "KEY=VALUE,…", value_delimiter = ',', value_parser = Value::parse_pair, requires = "aa")]
    with: Vec<Value>,
    /// Measure it in N sessions; fewer than 8 do not tell much
    #[arg(long, value_name = "N", value_parser = count::<u32>(5, 1000), default_value_t = 8, requires = "aa")]
    sessions: u32,
    /// Measure it N times on each side in each session
    #[arg(long, value_name = "N", value_parser = count::<u32>(4, 1000), default_value_t = 6, requires = "aa")]
    rounds: u32,
}

/// Measures and says.
pub fn run(options: &NoiseFloorOptions, criterion: Criterion, output: &ExportOptions) -> Ending {
    let floors = measure(plan(options)?, options, criterion, output.quiet)?;
    output.write(&sheet::noise_floor(&floors), &serde_json::to_string(&floors)?)
}

/// The trial twice: in two experiments, because within one each trial is another.
fn plan(options: &NoiseFloorOptions) -> Result<Plan, Stop> {
    let mut design = Design::new("a", "");
    design.params = options.with.iter().cloned().map(Into::into).collect();
    let suite = Suite::of_flags("compare --aa", ScheduleChoices::default(), design);
    let mut plan = suite.expand(Scale::ONE)?;
    let mut again = plan.trials[0].clone();
    again.experiment = "b".to_owned();
    // Trials with one id are measured once.
    again.id.push_str(" again");
    plan.trials.push(again);
    plan.schedule.runs = Runs::Fixed(options.rounds);
    Ok(plan)
}

/// Both sides in all sessions.
fn measure(mut plan: Plan, options: &NoiseFloorOptions, criterion: Criterion, quiet: bool) -> Result<NoiseFloor, Stop> {
    let interrupt = catch_interrupts()?;
    let machine = host::survey();
    let mut progress = Progress::new(quiet);
    let mut sides: [Vec<Vec<f64>>; 2] = Default::default();
    for _ in 0..options.sessions {
        let measurement = run::measure(&plan, &machine, &Entrants::default(), &interrupt, &mut progress);
        if measurement.partial {
            return Err(Stop::with(exit::INTERRUPTED, "interrupted; a noise floor needs all of its rounds"));
        }
        for (side, outcome) in sides.iter_mut().zip(&measurement.outcomes) {
            if outcome.status != Status::Ok {
                let reason = outcome.reason.as_deref().unwrap_or("it did not run");
                let code = if outcome.verified == Some(false) { exit::NOT_VERIFIED } else { exit::FAILED };
                return Err(Stop::with(code, format_args!("{}: {reason}", outcome.trial.id)));
            }
            side.push(outcome.samples.iter().map(Sample::speed).collect());
        }
        plan.schedule.seed = plan.schedule.seed.wrapping_add(1);
    }
    progress.finish();
    floors(&plan, &machine, options, criterion, &sides).map_err(Stop::failed)
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
    let itself = compare_in_turns(&ratios, Together::ALONE, criterion)?;
    let spread = |sessions: &[Vec<f64>]| {
        Sessions { base: Session::all(sessions)?, ..Sessions::default() }
            .spread()
            .map(|Spread { variance, .. }| variance)
    };
    let (own, of_ratios) = spread(base).zip(spread(&ratios)).expect("compared, so there are sessions");
    let pairs: Vec<(usize, usize)> = (1..base.len()).flat_map(|new| (0..new).map(move |base| (base, new))).collect();
    let differ = |(one, other): &&(usize, usize)| {
        let compared = compare(&base[*one], &base[*other], Pairing::None, criterion);
        compared.is_ok_and(|compared| matches!(compared.verdict, Verdict::Better | Verdict::Worse))
    };
    let floor = |sessions: usize| {
        let count = sessions as f64;
        let see = |error: f64, freedom| smallest_change(error.sqrt(), freedom, 1, criterion);
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
