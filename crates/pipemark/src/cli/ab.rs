//! `pipemark ab`: a pipeline of the person's own timed, or two run in turns and compared. What they write is hashed once and
//! counted each time, and has to be the same.

use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::compare::{criterion, threshold, verdict_code};
use super::console::catch_interrupts;
use super::output::ExportOptions;
use super::parameters::count;
use super::{Ending, Stop, exit};
use crate::child::RunError;
use crate::model::{Better, Capacity, Estimate, Nanos, Unit};
use crate::plan::{parse_duration, stages};
use crate::run::{Pipeline, PipelineRun, Progress};
use crate::sheet::{self, Sheet, neutral};
use crate::stats::compare::{Comparison, MOST_RUNS, Pairing, compare};
use crate::stats::verdict::{Criterion, Verdict};

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
    /// Run each so many times
    #[arg(long, value_name = "N", value_parser = count::<u32>(1, MOST_RUNS as u64), default_value_t = 10)]
    runs: u32,
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
    match text {
        "worse" => Ok(Verdict::Worse),
        "cant-tell" => Ok(Verdict::CantTell),
        "better" => Ok(Verdict::Better),
        "same" => Ok(Verdict::Same),
        _ => Err(format!("'{}' is not a verdict; use worse, cant-tell, better or same", neutral(text))),
    }
}

/// What `--json` writes; with one pipeline there is no `b` and no comparison.
#[derive(Debug, Serialize)]
struct Results {
    schema: &'static str,
    a: Side,
    b: Option<Side>,
    /// The time of B against that of A, round by round.
    comparison: Option<Comparison>,
    /// The smallest change that would have had a verdict, a fraction.
    resolution: Option<f64>,
    criterion: Criterion,
    /// What each run of A wrote, in bytes.
    output: u64,
    /// Whether both wrote the same bytes.
    same_output: Option<bool>,
}

/// One of the two.
#[derive(Debug, Serialize)]
struct Side {
    pipeline: String,
    /// What was asked for.
    capacity: Option<Capacity>,
    /// What the kernel granted to the pipes between the stages, in bytes.
    capacity_granted: Option<u64>,
    /// Each run, in order.
    nanoseconds: Vec<f64>,
    time: Estimate,
    /// CPU time of all processes, in nanoseconds.
    user: Estimate,
    system: Estimate,
}

/// Runs one or both, and compares.
pub fn run(options: &AbOptions) -> Ending {
    options.output.targets().check()?;
    let sides = sides(options)?;
    let results = measure(options, &sides)?;
    options.output.write(&sheet(&results), &serde_json::to_string(&results)?)?;
    match results.comparison.map(|comparison| comparison.verdict) {
        Some(verdict) if options.fail_on.contains(&verdict) => Err(Stop::code(verdict_code(verdict))),
        _ => Ok(()),
    }
}

/// One pipeline or two, with what they are called by.
fn sides(options: &AbOptions) -> Result<Vec<(String, Pipeline)>, String> {
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
                    return Err(format!("'{text}' has no pipe that --capacity could be of"));
                }
                stages
            }
        };
        Ok((text.clone(), Pipeline { stages, capacity, ignore_failure: options.ignore_failure }))
    };
    texts.into_iter().zip(capacities).map(side).collect()
}

fn measure(options: &AbOptions, sides: &[(String, Pipeline)]) -> Result<Results, Stop> {
    let interrupt = catch_interrupts()?;
    let total = sides.len() as u64 * (u64::from(options.runs) + 1);
    let mut progress = Progress::new(options.output.quiet, total);
    // The first run of each warms up, and its output is hashed.
    let mut runs: Vec<Vec<PipelineRun>> = vec![Vec::new(); sides.len()];
    for round in 0..=options.runs {
        let mut order: Vec<usize> = (0..sides.len()).collect();
        // Whoever is first in a round is second in the next: what one leaves behind for the other hits both alike.
        order.rotate_left(round as usize % sides.len());
        for side in order {
            let shown = match runs[side].get(1..).unwrap_or_default() {
                [] => sides[side].0.clone(),
                own => format!("{} ≈ {} so far", NAMES[side], Unit::Nanoseconds.show(estimate(own, elapsed).median)),
            };
            progress.update(runs.iter().map(Vec::len).sum::<usize>() as u64, total, None, &shown);
            let ran = sides[side].1.run(options.limit, round == 0, &interrupt).map_err(|error| match error {
                RunError::Interrupted => Stop::with(exit::INTERRUPTED, "interrupted; no result"),
                what => Stop::failed(format_args!("{}: {what}", NAMES[side])),
            })?;
            runs[side].push(ran);
        }
        if !options.ignore_output {
            check_outputs(&runs)?;
        }
    }
    progress.finish();
    let same_output = (runs.len() == 2).then(|| runs[0][0].hash == runs[1][0].hash);
    let criterion = criterion(options.threshold, Better::Lower);
    let output = runs[0][0].output;
    let mut all = sides.iter().zip(&runs).map(|((text, pipeline), runs)| Side {
        pipeline: text.clone(),
        capacity: pipeline.capacity,
        capacity_granted: runs[0].capacity,
        nanoseconds: runs[1..].iter().map(elapsed).collect(),
        time: estimate(&runs[1..], elapsed),
        user: estimate(&runs[1..], |run| run.user.0 as f64),
        system: estimate(&runs[1..], |run| run.system.0 as f64),
    });
    let (a, b) = (all.next().expect("there is a pipeline"), all.next());
    let compared = b.as_ref().map(|b| compare(&a.nanoseconds, &b.nanoseconds, Pairing::Rounds, criterion));
    let comparison = compared.transpose().map_err(Stop::failed)?;
    let resolution = comparison.as_ref().and_then(|comparison| resolution(comparison, criterion));
    Ok(Results { schema: "pipemark-ab/1", a, b, comparison, resolution, criterion, output, same_output })
}

const NAMES: [&str; 2] = ["A", "B"];

fn elapsed(run: &PipelineRun) -> f64 {
    Nanos::from(run.elapsed).0 as f64
}

fn estimate(runs: &[PipelineRun], figure: fn(&PipelineRun) -> f64) -> Estimate {
    Estimate::of(&runs.iter().map(figure).collect::<Vec<_>>()).expect("at least one run")
}

/// Pipelines that don't do the same work are not compared.
fn check_outputs(runs: &[Vec<PipelineRun>]) -> Result<(), Stop> {
    let expected = runs[0][0];
    let not_compared = "they don't do the same work, so their times are not compared; --ignore-output compares them";
    for (name, runs) in NAMES.iter().zip(runs) {
        let output = runs.last().expect("it ran in this round").output;
        if output != expected.output {
            let sentence =
                format_args!("{name} wrote {output} bytes and A at first {}: {not_compared}", expected.output);
            return Err(Stop::with(exit::NOT_VERIFIED, sentence));
        }
        if runs[0].hash != expected.hash {
            let sentence = format_args!("A and B each wrote {output} bytes, and not the same ones: {not_compared}");
            return Err(Stop::with(exit::NOT_VERIFIED, sentence));
        }
    }
    Ok(())
}

/// The smallest change that would have had a verdict: as far as the interval reaches, and the threshold.
fn resolution(comparison: &Comparison, criterion: Criterion) -> Option<f64> {
    let [middle, low, high] = [comparison.change, comparison.low?, comparison.high?].map(|change| 1.0 + change);
    Some((high / middle).max(middle / low) * (1.0 + criterion.threshold) - 1.0)
}

fn sheet(results: &Results) -> Sheet {
    let side = |side: &'_ Side| sheet::Pipeline {
        text: side.pipeline.clone(),
        capacity: side.capacity_granted,
        time: side.time,
        user: side.user,
        system: side.system,
    };
    let sides: Vec<_> = std::iter::once(&results.a).chain(&results.b).map(side).collect();
    sheet::pipelines(&sides, results.comparison.as_ref(), results.resolution, results.output, results.same_output)
}
