//! `pipemark ab`: a pipeline of the person's own timed, or two run in turns and compared. What they write is hashed once and
//! counted each time, and has to be the same.

use std::time::{Duration, Instant};

use clap::Args;

use pipemark_console::verdict::{criterion, threshold, verdict_code};
use pipemark_console::{Ending, ExportOptions, Progress, Stop, catch_interrupts, count, exit};
use pipemark_host::child::RunError;
use pipemark_model::{Better, Capacity, Estimate, Nanos, Unit, neutral, parse_duration};
use pipemark_stats::compare::{CompareError, Comparison, MOST_RUNS, Pairing, compare, resolves};
use pipemark_stats::estimate;
use pipemark_stats::sessions::{FEWEST_FREEDOM, Together, compare_in_turns};
use pipemark_stats::verdict::{Criterion, Verdict};

use crate::pipeline::{PipelineRun, TimedCommand};
use crate::sheet::in_turns;
use crate::stages::stages;
use crate::turns::{AbResult, TimedPipeline};

/// What the long help ends with.
pub const EXAMPLES: &str = include_str!("ab.txt").trim_ascii_end();

/// What `ab` takes.
#[derive(Debug, Clone, Args)]
pub struct AbOptions {
    /// One or two pipelines for sh, each in quotes
    #[arg(value_name = "'A' -- 'B'", num_args = 1..=3, required = true)]
    pipelines: Vec<String>,
    /// Capacity of the pipes between the stages, or one for A and one for B: default, or a size
    ///
    /// The pipeline is then taken apart at its bars, and each stage is a shell of its own.
    #[arg(long, value_name = "SIZE[,SIZE]", value_delimiter = ',')]
    capacity: Vec<Capacity>,
    /// Run each pipeline N times in each session
    ///
    /// Without it 10 times, and in a single session up to 40 times while that takes less than half a minute, until a change
    /// of 3 %, or one as large as --threshold, could be told from none.
    #[arg(long, value_name = "N", value_parser = count::<u32>(1, MOST_RUNS as u64))]
    runs: Option<u32>,
    /// Do it in N sessions, each a fresh start, and compare by session; five or more can tell
    #[arg(long, value_name = "N", value_parser = count::<u32>(1, 1000), default_value_t = 1)]
    sessions: u32,
    /// A change counts when its whole 95 % interval is past this, such as 5%
    ///
    /// Without it, better or worse is a change of over 0.5 % for certain, and the same is one of under 3 % for certain.
    #[arg(long, value_name = "PERCENT", value_parser = threshold)]
    threshold: Option<f64>,
    /// End with a code of its own when this is the verdict (see below)
    #[arg(long, value_name = "VERDICT,…", value_delimiter = ',', value_parser = verdict)]
    fail_on: Vec<Verdict>,
    /// Ignore exit codes other than 0
    #[arg(long, short)]
    ignore_failure: bool,
    /// Compare two pipelines although their outputs differ
    #[arg(long)]
    ignore_output: bool,
    /// End a run that takes longer than this
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "10min")]
    limit: Duration,
    #[command(flatten)]
    output: ExportOptions,
}

fn verdict(text: &str) -> Result<Verdict, String> {
    text.parse().map_err(|()| format!("'{}' is not a verdict; use worse, cant-tell, better or same", neutral(text)))
}

/// Runs one or both, and compares.
pub fn run(options: &AbOptions) -> Ending {
    options.output.targets().check()?;
    let sides = sides(options)?;
    let results = measure(options, &sides)?;
    options.output.write(&in_turns(&results), &serde_json::to_string(&results)?)?;
    match results.comparison.map(|comparison| comparison.verdict) {
        Some(verdict) if options.fail_on.contains(&verdict) => Err(Stop::code(verdict_code(verdict))),
        _ => Ok(()),
    }
}

/// One pipeline or two, with what they are called by.
fn sides(options: &AbOptions) -> Result<Vec<(String, TimedCommand)>, String> {
    let mut texts: Vec<&String> = options.pipelines.iter().filter(|text| *text != "--").collect();
    let capacities = match options.capacity.as_slice() {
        [] => [None, None],
        [both] => [Some(*both), Some(*both)],
        [a, b] => [Some(*a), Some(*b)],
        more => return Err(format!("--capacity has {} values; use one, or one for A and one for B", more.len())),
    };
    match texts.as_slice() {
        [one] if capacities[0] != capacities[1] => texts.push(one),
        [_] if !options.fail_on.is_empty() || options.threshold.is_some() => {
            return Err("--fail-on and --threshold are for two pipelines: -- 'A' -- 'B'".to_owned());
        }
        [_] | [_, _] => {}
        _ => return Err("one pipeline is timed or two are compared, each in quotes: -- 'A' -- 'B'".to_owned()),
    }
    let side = |(text, capacity): (&String, Option<Capacity>)| {
        let stages = match capacity {
            None => vec![text.clone()],
            Some(Capacity::QUOTA) => return Err("--capacity quota is for 'pipemark bw'; use a size".to_owned()),
            Some(_) => {
                let stages = stages(text).map_err(|error| format!("'{text}': {error}"))?;
                if stages.len() < 2 {
                    return Err(format!("'{text}' has no pipe that --capacity could apply to"));
                }
                stages
            }
        };
        Ok((text.clone(), TimedCommand { stages, capacity, ignore_failure: options.ignore_failure, padding: 0 }))
    };
    texts.into_iter().zip(capacities).map(side).collect()
}

fn measure(options: &AbOptions, sides: &[(String, TimedCommand)]) -> Result<AbResult, Stop> {
    let interrupt = catch_interrupts()?;
    let (criterion, begun) = (criterion(options.threshold, Better::Lower), Instant::now());
    let most = options.runs.unwrap_or(if options.sessions == 1 { MOST } else { RUNS });
    let total = sides.len() as u64 * (u64::from(most) + 1) * u64::from(options.sessions);
    let mut progress = Progress::new(options.output.quiet);
    let mut sides = sides.to_vec();
    // What each wrote first, by which all others are judged; and of each the runs that count, one session after the other.
    let mut first: Vec<PipelineRun> = Vec::new();
    let mut runs: Vec<Vec<PipelineRun>> = vec![Vec::new(); sides.len()];
    let mut done = 0;
    for session in 0..options.sessions {
        // A stack that begins elsewhere is as good as another layout of memory: both sides get the same.
        sides.iter_mut().for_each(|(_, pipeline)| pipeline.padding = session as usize * PADDING % MOST_PADDING);
        for round in 0..=most {
            let more = options.runs.is_some() || round <= RUNS || begun.elapsed() < ENOUGH && !narrow(&runs, criterion);
            if !more {
                break;
            }
            let mut order: Vec<usize> = (0..sides.len()).collect();
            // Whoever is first in a round is second in the next: what one leaves behind for the other hits both alike.
            order.rotate_left((session + round) as usize % sides.len());
            for side in order {
                let shown = match runs[side].as_slice() {
                    [] => sides[side].0.clone(),
                    own => {
                        format!("{} ≈ {} so far", NAMES[side], Unit::Nanoseconds.show(estimate(own, elapsed).median))
                    }
                };
                progress.update(done, total, &shown);
                done += 1;
                let ran = sides[side].1.run(options.limit, round == 0, &interrupt).map_err(|error| match error {
                    RunError::Interrupted => Stop::with(exit::INTERRUPTED, "interrupted; no result"),
                    what => Stop::failed(format_args!("{}: {what}", NAMES[side])),
                })?;
                match round {
                    // The first round of a session warms up; only there the output is hashed.
                    0 => first.push(ran),
                    _ => runs[side].push(ran),
                }
                if !options.ignore_output {
                    check_output(NAMES[side], &ran, &first[0])?;
                }
            }
        }
    }
    progress.finish();
    let same = first.iter().all(|run| run.hash == first[0].hash)
        && runs.iter().flatten().all(|run| run.output == first[0].output);
    let same_output = (sides.len() == 2 || !same).then_some(same);
    let output = first[0].output;
    let mut all = sides.iter().zip(&runs).map(|((text, pipeline), runs)| TimedPipeline {
        pipeline: text.clone(),
        capacity: pipeline.capacity,
        capacity_granted: runs[0].capacity,
        nanoseconds: runs.iter().map(elapsed).collect(),
        time: estimate(runs, elapsed),
        user: estimate(runs, |run| run.user.0 as f64),
        system: estimate(runs, |run| run.system.0 as f64),
    });
    let (a, b) = (all.next().expect("there is a pipeline"), all.next());
    let compared = b.as_ref().map(|b| compared(options, &a.nanoseconds, &b.nanoseconds, criterion));
    let comparison = compared.transpose().map_err(Stop::failed)?;
    let resolution = comparison.as_ref().and_then(|comparison| comparison.smallest_change);
    let why =
        comparison.as_ref().filter(|comparison| comparison.verdict == Verdict::CantTell).map(|comparison| {
            match (options.sessions, comparison.low) {
                (1, None) => "there are too few rounds; use --runs 6 or more".to_owned(),
                (1, _) => "the rounds differ too much, or the change is too near the limit; use more --runs".to_owned(),
                (..FEWEST_SESSIONS, _) => {
                    format!("there are too few sessions; use --sessions {FEWEST_SESSIONS} or more")
                }
                _ => {
                    "the sessions differ too much, or the change is too near the limit; use more --sessions".to_owned()
                }
            }
        });
    let sessions = options.sessions;
    Ok(AbResult {
        schema: "pipemark-ab/1",
        a,
        b,
        comparison,
        resolution,
        why,
        sessions,
        criterion,
        output,
        same_output,
    })
}

/// Runs of each unless told otherwise: so many, and in a single session up to so many, until they took so long.
const RUNS: u32 = 10;
const MOST: u32 = 40;
const ENOUGH: Duration = Duration::from_secs(30);

/// From so many on there is a verdict.
const FEWEST_SESSIONS: u32 = FEWEST_FREEDOM as u32 + 1;
/// Each session's environment is larger by so many bytes than the one's before, up to a page: all places of a stack within
/// one are met, at steps that are no power of two.
const PADDING: usize = 272;
const MOST_PADDING: usize = 4096;

/// By the rounds of one session, or by sessions.
fn compared(options: &AbOptions, a: &[f64], b: &[f64], criterion: Criterion) -> Result<Comparison, CompareError> {
    if options.sessions == 1 {
        return compare(a, b, Pairing::Rounds, criterion);
    }
    let ratios: Vec<f64> = a.iter().zip(b).map(|(a, b)| b / a).collect();
    let sessions: Vec<Vec<f64>> = ratios.chunks(options.runs.unwrap_or(RUNS) as usize).map(<[f64]>::to_vec).collect();
    compare_in_turns(&sessions, Together::ALONE, criterion)
}

/// Whether so many runs tell enough: of two, a change as large as one that counts; of one, its time within 3 %.
fn narrow(runs: &[Vec<PipelineRun>], criterion: Criterion) -> bool {
    let times: Vec<Vec<f64>> = runs.iter().map(|runs| runs.iter().map(elapsed).collect()).collect();
    match times.as_slice() {
        [a, b] => resolves(a, b, criterion),
        runs => {
            estimate::from_runs(&runs.concat()).is_some_and(|time| estimate::is_narrow(&time, criterion.same_within))
        }
    }
}

const NAMES: [&str; 2] = ["A", "B"];

fn elapsed(run: &PipelineRun) -> f64 {
    Nanos::from(run.elapsed).0 as f64
}

fn estimate(runs: &[PipelineRun], figure: fn(&PipelineRun) -> f64) -> Estimate {
    estimate::from_runs(&runs.iter().map(figure).collect::<Vec<_>>()).expect("at least one run")
}

/// Pipelines that don't do the same work are not compared.
fn check_output(name: &str, run: &PipelineRun, expected: &PipelineRun) -> Result<(), Stop> {
    let not_compared = "they don't do the same work, so their times are not compared; --ignore-output compares them";
    let output = run.output;
    let sentence = if output != expected.output {
        format!("{name} wrote {output} bytes and the first run of A {}: {not_compared}", expected.output)
    } else if run.hash.is_some() && run.hash != expected.hash {
        format!("A and B each wrote {output} bytes, and not the same ones: {not_compared}")
    } else {
        return Ok(());
    };
    Err(Stop::with(exit::NOT_VERIFIED, sentence))
}
