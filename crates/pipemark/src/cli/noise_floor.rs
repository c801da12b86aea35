//! `pipemark compare --aa`: one trial against itself, here and now, and from that the smallest change that could be seen.

use clap::Args;
use serde::Serialize;

use super::console::catch_interrupts;
use super::output::ExportOptions;
use super::parameters::count;
use super::{Ending, Stop, exit};
use crate::entrant::Entrants;
use crate::host;
use crate::model::{Sample, Status, Value};
use crate::plan::{Design, Plan, Runs, Scale, ScheduleChoices, Suite};
use crate::run::{self, Progress};
use crate::sheet::{self, Sheet};
use crate::stats::compare::{Comparison, Pairing, compare};
use crate::stats::noise::{NoiseFloor, noise_floor};
use crate::stats::verdict::Criterion;

/// Numbers of runs that people choose.
const RUNS: [usize; 4] = [5, 7, 10, 20];
/// Comparisons drawn for each of them.
const COMPARISONS: usize = 1000;

/// What `--aa` takes.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Noise floor (with --aa)")]
pub struct NoiseFloorOptions {
    /// The trial to measure [default: a plain pipe, as 'pipemark bw' measures it]
    #[arg(long, value_name = "KEY=VALUE,…", value_delimiter = ',', value_parser = Value::parse_pair, requires = "aa")]
    with: Vec<Value>,
    /// Measure it so many times on each side; fewer than 20 do not tell much
    #[arg(long, value_name = "N", value_parser = count::<u32>(6, 1000), default_value_t = 20, requires = "aa")]
    rounds: u32,
}

/// What `--aa --json` writes.
#[derive(Debug, Serialize)]
struct Floors {
    schema: &'static str,
    /// The trial's id.
    trial: String,
    kernel: String,
    cpu: String,
    rounds: u32,
    criterion: Criterion,
    /// The trial against itself, round by round.
    itself: Comparison,
    /// What comparisons of two files could see, and of two trials of one measurement.
    floors: Vec<Floor>,
}

#[derive(Debug, Serialize)]
struct Floor {
    pairing: Pairing,
    #[serde(flatten)]
    floor: NoiseFloor,
}

/// Measures and says.
pub fn run(options: &NoiseFloorOptions, criterion: Criterion, output: &ExportOptions) -> Ending {
    let floors = measure(&plan(options)?, options.rounds, criterion, output.quiet)?;
    output.write(&sheet(&floors), &serde_json::to_string(&floors)?)
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

fn measure(plan: &Plan, rounds: u32, criterion: Criterion, quiet: bool) -> Result<Floors, Stop> {
    let interrupt = catch_interrupts()?;
    let machine = host::survey();
    let mut progress = Progress::new(quiet, 2 * u64::from(rounds));
    let measurement = run::measure(plan, &machine, &Entrants::default(), &interrupt, &mut progress);
    progress.finish();
    if measurement.partial {
        return Err(Stop::with(exit::INTERRUPTED, "interrupted; a noise floor needs all of its rounds"));
    }
    if let Some(outcome) = measurement.outcomes.iter().find(|outcome| outcome.status != Status::Ok) {
        let reason = outcome.reason.as_deref().unwrap_or("it did not run");
        let code = if outcome.verified == Some(false) { exit::NOT_VERIFIED } else { exit::FAILED };
        return Err(Stop::with(code, format_args!("{}: {reason}", outcome.trial.id)));
    }
    let sides: Vec<Vec<f64>> =
        measurement.outcomes.iter().map(|outcome| outcome.samples.iter().map(Sample::speed).collect()).collect();
    let floors = || -> Result<Floors, crate::stats::compare::CompareError> {
        let mut floors = Vec::new();
        for pairing in [Pairing::None, Pairing::Rounds] {
            for runs in RUNS {
                let seed = plan.schedule.seed;
                let floor = noise_floor(&sides[0], &sides[1], pairing, criterion, runs, COMPARISONS, seed)?;
                floors.push(Floor { pairing, floor });
            }
        }
        Ok(Floors {
            schema: "pipemark-noise-floor/1",
            trial: plan.trials[0].id.clone(),
            kernel: machine.kernel.clone(),
            cpu: machine.cpu.clone(),
            rounds,
            criterion,
            itself: compare(&sides[0], &sides[1], Pairing::Rounds, criterion)?,
            floors,
        })
    };
    floors().map_err(Stop::failed)
}

fn sheet(floors: &Floors) -> Sheet {
    let floor = |pairing: Pairing, runs: usize| {
        let of = |floor: &&Floor| floor.pairing == pairing && floor.floor.runs == runs;
        floors.floors.iter().find(of).expect("each was drawn").floor
    };
    let rows = RUNS.map(|runs| [floor(Pairing::None, runs), floor(Pairing::Rounds, runs)]);
    sheet::noise_floor(&floors.trial, floors.rounds, &floors.itself, &rows)
}
