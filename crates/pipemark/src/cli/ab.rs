//! `pipemark ab`: two pipelines of the person's own, run in turns; whether the second is faster. What they write is
//! counted, and has to be as much each time.

use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::compare::{criterion, threshold, verdict_code};
use super::console::catch_interrupts;
use super::output::ExportOptions;
use super::parameters::count;
use super::{Ending, Stop, exit};
use crate::child::RunError;
use crate::model::{Better, Capacity, Estimate, Nanos};
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
    /// Take no notice of commands that end with a code other than 0
    #[arg(long, short)]
    ignore_failure: bool,
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

/// What `--json` writes.
#[derive(Debug, Serialize)]
struct Outcome {
    schema: &'static str,
    a: Side,
    b: Side,
    /// The time of B against that of A, round by round.
    comparison: Comparison,
    criterion: Criterion,
    /// What each run wrote, in bytes.
    output: u64,
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
}

/// Runs both and compares.
pub fn run(options: &AbOptions) -> Ending {
    options.output.targets().check()?;
    let sides = sides(options).map_err(|sentence| Stop::usage(neutral(&sentence)))?;
    let outcome = measure(options, &sides)?;
    options.output.write(&sheet(&outcome), &serde_json::to_string(&outcome)?)?;
    let verdict = outcome.comparison.verdict;
    if options.fail_on.contains(&verdict) { Err(Stop::code(verdict_code(verdict))) } else { Ok(()) }
}

/// The two pipelines, with what they are called by.
fn sides(options: &AbOptions) -> Result<[(String, Pipeline); 2], String> {
    let texts: Vec<&String> = options.pipelines.iter().filter(|text| *text != "--").collect();
    let capacities = match options.capacity.as_slice() {
        [] => [None, None],
        [both] => [Some(*both), Some(*both)],
        [a, b] => [Some(*a), Some(*b)],
        more => return Err(format!("--capacity has {} values; use one, or one for A and one for B", more.len())),
    };
    let (a, b) = match texts.as_slice() {
        [one] if capacities[0] == capacities[1] => {
            return Err("there is nothing to compare it with; give a second pipeline, or two capacities such as \
                        --capacity default,1m"
                .to_owned());
        }
        [one] => (*one, *one),
        [a, b] => (*a, *b),
        _ => return Err("two pipelines are compared, each in quotes: -- 'A' -- 'B'".to_owned()),
    };
    let side = |text: &String, capacity: Option<Capacity>| {
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
    Ok([side(a, capacities[0])?, side(b, capacities[1])?])
}

fn measure(options: &AbOptions, sides: &[(String, Pipeline); 2]) -> Result<Outcome, Stop> {
    let interrupt = catch_interrupts()?;
    let mut progress = Progress::new(options.output.quiet, 2 * (u64::from(options.runs) + 1));
    let mut runs: [Vec<PipelineRun>; 2] = [Vec::new(), Vec::new()];
    let mut done = 0;
    for round in 0..=options.runs {
        // Whoever is first in a round is second in the next: what one leaves behind for the other hits both alike.
        let order = if round % 2 == 0 { [0, 1] } else { [1, 0] };
        for side in order {
            let (name, pipeline) = (["A", "B"][side], &sides[side].1);
            progress.update(done, 2 * (u64::from(options.runs) + 1), None, &sides[side].0);
            let ran = pipeline.run(options.limit, &interrupt).map_err(|error| match error {
                RunError::Interrupted => Stop::with(exit::INTERRUPTED, "interrupted; nothing was compared"),
                what => Stop::failed(neutral(&format!("{name}: {what}"))),
            })?;
            runs[side].push(ran);
            done += 1;
        }
        let expected = runs[0][0].output;
        for (name, side) in ["A", "B"].into_iter().zip(&runs) {
            let output = side.last().expect("it ran in this round").output;
            if output != expected {
                let sentence = format_args!(
                    "{name} wrote {output} bytes and A at first {expected}: they don't do the same work, so their times \
                     are not compared"
                );
                return Err(Stop::with(exit::NOT_VERIFIED, sentence));
            }
        }
    }
    progress.finish();
    let criterion = criterion(options.threshold, Better::Lower);
    let output = runs[0][0].output;
    let [a, b] = runs.map(|side| {
        // The first run of each was the warm-up.
        let times: Vec<f64> = side[1..].iter().map(|ran| Nanos::from(ran.elapsed).0 as f64).collect();
        (side[0].capacity, times)
    });
    let comparison = compare(&a.1, &b.1, Pairing::Rounds, criterion).map_err(Stop::failed)?;
    let side = |(text, pipeline): &(String, Pipeline), (capacity_granted, nanoseconds): (Option<u64>, Vec<f64>)| Side {
        pipeline: text.clone(),
        capacity: pipeline.capacity,
        capacity_granted,
        time: Estimate::of(&nanoseconds).expect("times of at least one run"),
        nanoseconds,
    };
    Ok(Outcome { schema: "pipemark-ab/1", a: side(&sides[0], a), b: side(&sides[1], b), comparison, criterion, output })
}

fn sheet(outcome: &Outcome) -> Sheet {
    fn side(side: &Side) -> sheet::Pipeline<'_> {
        let Side { pipeline, capacity_granted, time, .. } = side;
        sheet::Pipeline { text: pipeline, capacity: *capacity_granted, time }
    }
    sheet::pipelines([side(&outcome.a), side(&outcome.b)], &outcome.comparison, outcome.output)
}
