//! The experiments: screens variants of a pipeline with a run each, combines the remedies that help, and confirms the
//! best variants in interleaved rounds. Every kind of experiment is screened before anything is confirmed.

mod bounds;
mod budget;
mod confirmation;
mod forecast;
mod guess_trials;
mod guessing;
mod prediction;
mod recordings;
mod screening;
mod variants;

use std::time::{Duration, Instant};

use pipemark_causes::{PipelineEvidence, PipelineReport};
use pipemark_console::{Progress, say};
use pipemark_model::{Better, Estimate, digits};
use pipemark_stats::estimate;
use pipemark_stats::verdict::Criterion;

use crate::lab::{Lab, NoRun, RunOutput, Variant, VariantRun, hashed};
use crate::recording::Recording;
use crate::result::{ExperimentKind, Fastest, GuessResult, Prediction, StageResult, TuneExperiment};
use crate::rewrites::{Locale, RewriteSetting, rewrites};
use crate::typed::{TypedPipeline, quote};

use budget::planned_budget;
use forecast::{BASELINE_EVERY, MIN_ROUNDS, Workload};

/// The number of variants that are confirmed.
const CONFIRMED: usize = 3;
/// A screened remedy is worth a further look from this gain on.
const MIN_GAIN: f64 = 1.05;
/// A remedy with at least this gain is tried together with others.
const HARMLESS: f64 = 0.95;
/// If the pipeline is this much faster without the work of a stage, only changes of stages that cost time are tried first.
const CLEAR_GAIN: f64 = 1.2;
/// The same as `MIN_GAIN` for larger pipes, which cost memory, or another process.
const MIN_GAIN_OF_PIPES: f64 = 1.05;
/// A screening run is aborted after this many times the pipeline's time.
const PATIENCE: f64 = 1.5;
/// The fewest runs that prove a gain: four of the pipeline as it is, one of a change, and the rounds of both.
const FEWEST: f64 = (4 + 1 + 2 * MIN_ROUNDS) as f64;
/// If the budget has room for this many runs, experiments that can't gain anything are made too.
const PLENTY: f64 = 100.0;
/// While other experiments are made, the budget keeps room for this many changes and for this many runs of guesses.
const KEPT_FOR_CHANGES: usize = 3;
const KEPT_FOR_GUESSES: usize = 2;
/// Without --budget, the longest time of the pipeline itself: ten runs of a longer one don't fit into ten minutes.
const MAX_TIME: Duration = Duration::from_secs(60);

/// How the pipeline's source runs.
pub enum PipelineSource {
    /// As typed.
    Typed,
    /// A recording is replayed by this command.
    Recorded(String),
}

/// What the experiments need to know.
pub struct TunePlan<'a> {
    pub pipeline: TypedPipeline,
    pub source: PipelineSource,
    /// The path of this program.
    pub program: String,
    pub setting: RewriteSetting<'a>,
    /// The budget; `None` for the default.
    pub budget: Option<Duration>,
    /// The memory for recordings of pipes, in bytes.
    pub sample: u64,
    pub threshold: Criterion,
}

/// The end of the experiments before there is a result.
pub enum NoResult {
    Interrupted,
    Failed(String),
    /// The outputs of two runs differ.
    Unsteady(String),
}

/// What was measured.
pub struct Measured {
    pub time: Estimate,
    pub prediction: Option<Prediction>,
    pub output: u64,
    pub stages: Vec<StageResult>,
    pub experiments: Vec<TuneExperiment>,
    pub fastest: Option<Fastest>,
    pub guesses: Vec<GuessResult>,
    pub notes: Vec<String>,
    pub untried: Vec<String>,
    pub sufficient_budget: Option<f64>,
    pub interrupted: bool,
    pub budget: Duration,
    pub seconds: f64,
    pub runs: u32,
}

/// A variant with its runs.
struct ScreenedVariant {
    experiment: TuneExperiment,
    variant: Variant,
    /// The changes that it consists of.
    changes: Vec<String>,
}

/// Runs all experiments. All of them end within the budget, which begins at `begun`.
///
/// # Errors
/// If the pipeline itself fails, has another output in each run, or the user interrupts before anything is known.
pub fn run(
    plan: &TunePlan<'_>,
    begun: Instant,
    lab: &mut Lab<'_>,
    progress: &mut Progress,
) -> Result<Measured, NoResult> {
    let variant = Variant::whole(plan.runnable(&plan.pipeline).text());
    progress.show("first run of the pipeline");
    let most = plan.budget.unwrap_or(MAX_TIME);
    lab.deadline = plan.budget.map(|budget| begun + budget);
    let (first, evidence) = lab.watch(&variant, most, hashed(true)).map_err(|error| first_failed(error, most))?;
    let mut evidence = evidence.map(|seen| PipelineEvidence {
        pipeline: Some(plan.pipeline.text().into()),
        exit_code: first.output.exit_code,
        ..seen
    });
    if let (PipelineSource::Recorded(_), Some(seen)) = (&plan.source, &mut evidence)
        && let Some(replay) = seen.stages.first_mut()
    {
        replay.name = format!("{} (replayed)", plan.pipeline.names()[0]);
    }
    let stages = plan.pipeline.stages.len();
    let time = first.elapsed;
    let budget = planned_budget(plan.budget, &[time.as_secs_f64()]);
    lab.deadline = Some(begun + budget);
    progress.clear();
    let workload = workload(plan);
    let times = [time.as_secs_f64(), lab.overhead_of_run(), begun.elapsed().as_secs_f64()];
    announce(workload, times, budget.as_secs_f64());
    let mut engine = Experimenter {
        plan,
        lab,
        progress,
        begun,
        budget,
        reference: first.output.clone(),
        errors: first.errors.clone(),
        baseline: variant,
        report: evidence.and_then(|evidence| prediction::report_on(&evidence, stages)),
        base_times: vec![time.as_secs_f64()],
        own_times: vec![time.as_secs_f64()],
        trials: Vec::new(),
        counts: vec![None; stages],
        recordings: (0..stages).map(|_| None).collect(),
        notes: Vec::new(),
        untried: Vec::new(),
        missing: 0.0,
        kept_back: 0.0,
        since_baseline: 0,
        workload,
        bounds: vec![None; stages],
        interrupted: false,
        guesses: Vec::new(),
        best: Best { pipeline: plan.pipeline.clone(), gain: 1.0, changes: Vec::new() },
    };
    engine.warn_about_errors(&first);
    match engine.check_steadiness(&first) {
        Err(EarlyEnd::Stop(stop)) => return Err(stop),
        Err(EarlyEnd::Interrupted) => engine.interrupted = true,
        Ok(()) => engine.experiment(),
    }
    Ok(engine.finish())
}

fn first_failed(error: NoRun, most: Duration) -> NoResult {
    match error {
        NoRun::Interrupted => NoResult::Interrupted,
        NoRun::TooSlow | NoRun::OutOfTime => NoResult::Failed(format!(
            "the pipeline took longer than {} s and was ended; tune a part of its input, or use a longer --budget",
            digits(most.as_secs_f64())
        )),
        NoRun::Failed(sentence) => NoResult::Failed(format!("the pipeline failed: {sentence}")),
    }
}

/// What there is to try.
fn workload(plan: &TunePlan<'_>) -> Workload {
    let has_locale = plan.setting.locale != Locale::Bytes;
    Workload {
        stages: plan.pipeline.stages.len(),
        changes: rewrites(&plan.pipeline, &plan.setting).len(),
        guesses: guessing::number_of_guesses(plan),
        settings: usize::from(plan.pipeline.stages.len() > 1)
            + usize::from(has_locale)
            + usize::from(plan.setting.cpus > 1),
    }
}

/// Says how many runs there will be, and how long they take. `overhead` is the time around the first run.
fn announce(workload: Workload, [time, overhead, elapsed]: [f64; 3], budget: f64) {
    let forecast = workload.forecast(time, overhead, elapsed, budget);
    let too_few = if forecast.runs[1] + 1.0 < FEWEST { ", too few to prove a gain" } else { "" };
    let expected = forecast.time_text(budget).map_or_else(String::new, |text| format!(", {text}"));
    say(format_args!(
        "tune: the pipeline takes {} s; {} in at most {budget:.0} s (--budget){expected}{too_few}; Ctrl-C ends with what is known then",
        digits(time),
        forecast.text(),
    ));
}

/// Why a step of the engine ended early.
enum EarlyEnd {
    Interrupted,
    Stop(NoResult),
}

struct Experimenter<'e, 'p, 'l> {
    plan: &'e TunePlan<'p>,
    lab: &'e mut Lab<'l>,
    progress: &'e mut Progress,
    begun: Instant,
    budget: Duration,
    /// What `why` concludes from the first run.
    report: Option<PipelineReport>,
    reference: RunOutput,
    /// What the first run wrote to standard error.
    errors: Vec<u8>,
    baseline: Variant,
    base_times: Vec<f64>,
    /// The times of the first runs of the pipeline, which decide the default budget.
    own_times: Vec<f64>,
    trials: Vec<ScreenedVariant>,
    /// The bytes that each stage wrote.
    counts: Vec<Option<u64>>,
    /// The output of each stage.
    recordings: Vec<Option<Recording>>,
    notes: Vec<String>,
    /// Experiments that were not made, because the budget was spent or the user interrupted.
    untried: Vec<String>,
    /// The time that they would take, in seconds.
    missing: f64,
    /// The part of the budget that is kept for experiments that come later, in seconds.
    kept_back: f64,
    /// The number of screening runs since the pipeline last ran as it is.
    since_baseline: usize,
    workload: Workload,
    /// For each stage, the gain without its work if it can't be worth measuring.
    bounds: Vec<Option<f64>>,
    interrupted: bool,
    /// The guesses that are proved faster.
    guesses: Vec<GuessResult>,
    best: Best,
}

/// The best pipeline to paste, by the screening.
struct Best {
    pipeline: TypedPipeline,
    gain: f64,
    changes: Vec<String>,
}

impl TunePlan<'_> {
    /// The pipeline as it is run: the source replaced by its recording, and pipemark by this program.
    pub fn runnable(&self, pipeline: &TypedPipeline) -> TypedPipeline {
        self.runnable_by(pipeline, &self.program)
    }

    /// The same, with the path by which stages find this program.
    fn runnable_by(&self, pipeline: &TypedPipeline, program: &str) -> TypedPipeline {
        let mut pipeline = pipeline.clone();
        if let (PipelineSource::Recorded(replay), Some(first)) = (&self.source, pipeline.stages.first())
            && first.text == self.pipeline.stages[0].text
        {
            pipeline = pipeline.replaced(0, 0, std::slice::from_ref(replay));
        }
        for at in 0..pipeline.stages.len() {
            if let Some(rest) = pipeline.stages[at].text.trim().strip_prefix("pipemark ") {
                let text = format!("{} {rest}", quote(program));
                pipeline = pipeline.replaced(at, at, &[text]);
            }
        }
        pipeline
    }
}

impl Experimenter<'_, '_, '_> {
    fn warn_about_errors(&mut self, first: &VariantRun) {
        match first.output.exit_code {
            Some(0) => {}
            Some(code) => self.notes.push(format!("the pipeline ends with exit code {code}, as must its variants")),
            None => self.notes.push("a signal ends the pipeline".to_owned()),
        }
        if !first.errors.is_empty() {
            let line = String::from_utf8_lossy(&first.errors).lines().next().unwrap_or_default().to_owned();
            self.notes.push(format!("the pipeline writes to standard error: {}", pipemark_model::neutral(&line)));
        }
    }

    /// The result of an experiment about the stage with this place; `None` if it wasn't made or failed.
    fn of_stage(&self, kind: ExperimentKind, at: usize) -> Option<&TuneExperiment> {
        let mut trials = self.trials.iter().map(|trial| &trial.experiment);
        trials.find(|one| one.kind == kind && one.stage == Some(at + 1)).filter(|one| one.failed.is_none())
    }

    fn base_time(&self) -> f64 {
        median(&self.base_times)
    }

    /// Plans the budget again, because the first run may have been slower than the pipeline is.
    fn shorten_budget(&mut self) {
        self.budget = planned_budget(self.plan.budget, &self.own_times).min(self.budget);
        self.lab.deadline = Some(self.begun + self.budget);
    }

    fn left(&self) -> f64 {
        (self.budget.as_secs_f64() - self.begun.elapsed().as_secs_f64()).max(0.0)
    }

    fn experiment(&mut self) {
        self.run_baseline();
        self.own_times.extend_from_slice(&self.base_times);
        self.shorten_budget();
        let fitting = self.left() / self.cost();
        let is_long = self.workload.is_too_much_for(fitting);
        if is_long {
            self.try_remedies();
        }
        let changes = if is_long { 0 } else { self.workload.changes.min(KEPT_FOR_CHANGES) };
        let guesses = if is_long { 0 } else { self.workload.guesses.min(KEPT_FOR_GUESSES) };
        self.kept_back = (changes + guesses) as f64 * self.cost();
        self.try_alone();
        self.find_bounds(fitting);
        self.try_without();
        self.try_capacities();
        self.try_locale();
        self.try_one_cpu();
        self.kept_back = guesses as f64 * self.cost();
        if !is_long {
            self.try_remedies();
        }
        self.try_buffers();
        self.kept_back = 0.0;
        let guessed = self.screen_guesses();
        self.confirm(guessed.as_ref());
        if let Some(guessed) = guessed {
            self.confirm_guesses(guessed);
        }
    }

    /// Lists an experiment that the budget has no room for, and that would take `seconds`.
    fn leave_untried(&mut self, text: String, seconds: f64) {
        self.untried.push(text);
        self.missing += seconds;
    }

    /// A budget with which everything would probably have been tried and confirmed; `None` if it was.
    fn sufficient_budget(&self) -> Option<f64> {
        const MARGIN: f64 = 1.2;
        const STEP: f64 = 10.0;
        let confirmed = self.trials.iter().any(|trial| trial.experiment.verdict.is_some());
        let rounds = if confirmed { 0.0 } else { MIN_ROUNDS as f64 * self.time_of_round(&self.choose()) };
        let seconds = (self.begun.elapsed().as_secs_f64() + self.missing + rounds) * MARGIN;
        (!self.untried.is_empty() && !self.interrupted).then(|| (seconds / STEP).ceil() * STEP)
    }

    fn finish(mut self) -> Measured {
        self.progress.clear();
        for trial in self.trials.iter_mut().filter(|trial| trial.experiment.failed.is_some()) {
            (trial.experiment.seconds, trial.experiment.gain) = (None, None);
        }
        let names = self.plan.pipeline.names();
        let stages = self.plan.pipeline.stages.iter().zip(&names).zip(&self.counts).enumerate();
        let stages = stages.map(|(at, ((stage, name), wrote))| StageResult {
            number: at + 1,
            name: name.clone(),
            command: stage.text.trim().to_owned(),
            wrote: *wrote,
            predicted: self.report.as_ref().and_then(|report| prediction::predicted(report, at + 1)),
            bound: self.bounds[at],
        });
        let fallback = || {
            let time = self.base_time();
            Estimate { median: time, low: None, high: None, min: time, max: time, runs: 1 }
        };
        let time = estimate::from_runs(&self.base_times).unwrap_or_else(fallback);
        let trials: Vec<&TuneExperiment> = self.trials.iter().map(|trial| &trial.experiment).collect();
        // A combination may have been omitted whose only change ran alone.
        let ran = |text: &String| trials.iter().any(|one| one.text == *text && one.runs > 0);
        self.untried.retain(|text| !ran(text));
        if self.report.is_none() {
            self.notes
                .push("no verdict of why: the first run was too short, or has other stages than were typed".into());
        }
        Measured {
            time,
            prediction: self.report.as_ref().map(|report| prediction::judged(report, &trials)),
            output: self.reference.bytes,
            stages: stages.collect(),
            fastest: self.fastest(),
            guesses: std::mem::take(&mut self.guesses),
            experiments: self.trials.iter().map(|trial| trial.experiment.clone()).collect(),
            notes: std::mem::take(&mut self.notes),
            sufficient_budget: self.sufficient_budget(),
            untried: std::mem::take(&mut self.untried),
            interrupted: self.interrupted,
            budget: self.budget,
            seconds: self.begun.elapsed().as_secs_f64(),
            runs: self.lab.runs,
        }
    }
}

/// An experiment without a result.
pub fn blank(kind: ExperimentKind, id: &str, text: String) -> TuneExperiment {
    TuneExperiment {
        kind,
        id: id.to_owned(),
        stage: None,
        text,
        changes: Vec::new(),
        command: None,
        seconds: None,
        gain: None,
        low: None,
        high: None,
        verdict: None,
        runs: 0,
        same_output: None,
        difference: None,
        failed: None,
    }
}

/// The criterion for times.
pub fn criterion(threshold: Option<f64>) -> Criterion {
    pipemark_console::verdict::criterion(threshold, Better::Lower)
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        length if length.is_multiple_of(2) => (sorted[middle - 1] + sorted[middle]) / 2.0,
        _ => sorted[middle],
    }
}
