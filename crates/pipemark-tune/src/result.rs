//! The result of the experiments: the source of `--json` and of the sheet.

use serde::{Deserialize, Serialize};

use pipemark_model::{Estimate, Tuned, counted, digits};
use pipemark_stats::verdict::Verdict;

/// The version of the format of [`ExperimentResult`]. It is increased when a field changes its meaning.
pub const SCHEMA: &str = "pipemark-experiments/1";

/// A change that isn't confirmed is worth a longer budget from this gain on.
const PROMISING: f64 = 1.05;
/// A budget of this many times the pipeline's time has room for changes and their confirmation.
const RUNS_OF_A_BUDGET: f64 = 30.0;

/// What `tune --json` writes for a pipeline that it ran in variants.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExperimentResult {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The version of pipemark that made the experiments.
    pub version: String,
    /// The pipeline as typed.
    pub pipeline: String,
    /// The duration of all experiments, in seconds.
    pub seconds: f64,
    /// The budget, in seconds.
    pub budget: f64,
    /// The number of runs.
    pub runs: u32,
    /// Whether the user interrupted the experiments.
    pub interrupted: bool,
    /// The time of the pipeline as it is, in seconds.
    pub time: Estimate,
    /// What `why` concluded from the first run; null if it couldn't.
    pub prediction: Option<Prediction>,
    /// The size of its output, in bytes.
    pub output: u64,
    /// The stages as typed.
    pub stages: Vec<StageResult>,
    /// The experiments, in the order in which they were made.
    pub experiments: Vec<TuneExperiment>,
    /// The fastest pipeline that is proved faster and has the same output; null if there is none.
    pub fastest: Option<Fastest>,
    /// Guesses that are proved faster. Their output was the same on this input only.
    #[serde(default)]
    pub guesses: Vec<GuessResult>,
    /// What limits the results.
    pub notes: Vec<String>,
    /// Experiments that were not made, because the budget was spent or the user interrupted.
    pub untried: Vec<String>,
    /// A budget with which they would probably have been made, in seconds; null if all were made, or the user interrupted.
    pub sufficient_budget: Option<f64>,
}

impl ExperimentResult {
    /// Converts the result to the form in which documents store it.
    ///
    /// # Errors
    /// When a figure is not a number.
    pub fn record(&self) -> serde_json::Result<Tuned> {
        serde_json::value::to_raw_value(self).map(Tuned)
    }

    /// Reads the result from the form in which documents store it.
    ///
    /// # Errors
    /// When the document has another form.
    pub fn from_record(tuned: &Tuned) -> serde_json::Result<ExperimentResult> {
        serde_json::from_str(tuned.0.get())
    }

    /// The verdict on the fastest pipeline to paste; `None` if no such pipeline was confirmed.
    pub fn verdict(&self) -> Option<Verdict> {
        if self.fastest.is_some() {
            return Some(Verdict::Better);
        }
        let confirmed = self.experiments.iter().filter(|one| one.command.is_some()).filter_map(|one| one.verdict);
        // None of them is proved faster with the same output.
        confirmed
            .map(|verdict| if verdict == Verdict::Worse { Verdict::Same } else { verdict })
            .reduce(|one, other| if one == other { one } else { Verdict::Inconclusive })
    }

    /// The conclusion, as a sentence.
    pub fn conclusion(&self) -> String {
        if let Some(fastest) = &self.fastest {
            let output = match &fastest.difference {
                None => "the output is the same".to_owned(),
                Some(difference) => format!("the output differs: {difference}"),
            };
            let by = match fastest.changes.as_slice() {
                [change] => format!(": {change}"),
                changes => format!(", by {} changes", changes.len()),
            };
            return format!(
                "fastest: {}× as fast ({} to {}), {output}{by}",
                digits(fastest.gain),
                digits(fastest.low),
                digits(fastest.high),
            );
        }
        // On a noisy machine, a budget for that many runs may have been too short already.
        let enough = (self.time.median * RUNS_OF_A_BUDGET).max(60.0).max(self.budget * 2.0);
        let enough = self.sufficient_budget.map_or(enough, |budget| budget.max(self.budget * 1.2));
        let longer = || format!("use --budget {:.0}s", enough.ceil());
        if self.experiments.iter().all(|one| one.runs == 0) {
            return format!("no change was tried: the budget is too short; {}", longer());
        }
        match self.verdict() {
            None => {}
            Some(Verdict::Same | Verdict::Worse) => return "no change that was confirmed is faster".to_owned(),
            Some(_) => return "no change was proved faster: inconclusive".to_owned(),
        }
        let promising = |one: &&TuneExperiment| {
            one.command.is_some() && one.failed.is_none() && one.gain.is_some_and(|gain| gain > PROMISING)
        };
        let promising = self.experiments.iter().filter(promising);
        if let Some((one, gain)) =
            promising.filter_map(|one| Some((one, one.gain?))).max_by(|(_, gain), (_, other)| gain.total_cmp(other))
        {
            let runs = counted(one.runs as usize, "run");
            return format!("not proved: {}× as fast in {runs} by {}; {}", digits(gain), one.text, longer());
        }
        if self.interrupted && !self.experiments.iter().any(|one| one.command.is_some() && one.runs > 0) {
            return "interrupted before a change was tried".to_owned();
        }
        let gain = |one: &&TuneExperiment| one.gain.unwrap_or(0.0);
        let is_setting = |one: &&TuneExperiment| {
            use ExperimentKind::{Capacity, Cpus, Locale};
            matches!(one.kind, Capacity | Cpus | Locale) && one.verdict == Some(Verdict::Better)
        };
        let settings = self.experiments.iter().filter(is_setting);
        if let Some(one) = settings.max_by(|one, other| gain(one).total_cmp(&gain(other))) {
            let gain = digits(one.gain.unwrap_or(1.0));
            return format!("no pipeline to paste is proved faster; {gain}× as fast: {}", one.text);
        }
        let without = self.experiments.iter().filter(|one| one.kind == ExperimentKind::Without);
        let without = without.filter(|one| one.verdict == Some(Verdict::Better));
        match without.max_by(|one, other| gain(one).total_cmp(&gain(other))) {
            Some(one) => {
                format!("no change with the same output was found that helps; the most would be gained {}", one.text)
            }
            None => "no change with the same output was found that helps".to_owned(),
        }
    }
}

/// A stage.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StageResult {
    /// The stage's number, counted from 1.
    pub number: usize,
    /// The stage's program.
    pub name: String,
    /// The stage as typed.
    pub command: String,
    /// The bytes that it wrote; null if they weren't counted.
    pub wrote: Option<u64>,
    /// How many times as fast the pipeline would be without the stage's costs, as `why` predicts from the first run; null
    /// if it predicts nothing.
    pub predicted: Option<PredictedGain>,
    /// The largest gain without the stage's work, by the times of all stages alone; null unless it is too small to be
    /// worth an experiment.
    pub bound: Option<f64>,
}

/// A gain as `why` predicts it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PredictedGain {
    pub low: f64,
    /// Null if it isn't known.
    pub high: Option<f64>,
}

/// What `why` concluded, and whether the experiments confirm it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Prediction {
    /// The verdict.
    pub text: String,
    /// The identifier of its cause.
    pub cause: String,
    /// The stage that it names, counted from 1.
    pub stage: Option<usize>,
    /// The predicted gain of removing the cause.
    pub predicted: Option<PredictedGain>,
    /// The measured gain of removing the stage's work or, if the verdict names a pipe, of larger pipes.
    pub measured: Option<f64>,
    /// Whether the measured gain is the largest, or nearly; null if it wasn't measured.
    pub confirmed: Option<bool>,
}

/// What an experiment changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ExperimentKind {
    /// A stage's recorded output is replayed instead of running the stage.
    Without,
    /// A stage runs alone, with its recorded input.
    Alone,
    /// The pipes have another capacity.
    Capacity,
    /// The pipeline runs with LC_ALL=C.
    Locale,
    /// The pipeline runs on one CPU.
    Cpus,
    /// A change that keeps the output.
    Remedy,
    /// Several remedies together.
    Combination,
}

/// An experiment.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TuneExperiment {
    /// What it changes.
    pub kind: ExperimentKind,
    /// A name that never changes, even if the text does.
    pub id: String,
    /// The stage that it is about, counted from 1; null if it is about all.
    pub stage: Option<usize>,
    /// What it does.
    pub text: String,
    /// The changes of the pipeline to paste, each as a clause.
    #[serde(default)]
    pub changes: Vec<String>,
    /// The pipeline to paste; null if there is none.
    pub command: Option<String>,
    /// The time in seconds, the median of its runs; null if no run ended in time.
    pub seconds: Option<f64>,
    /// How many times as fast as the pipeline as it is, in runs at about the same time; null without a time.
    pub gain: Option<f64>,
    /// Lower end of the interval of the gain; null unless it was confirmed.
    pub low: Option<f64>,
    /// Upper end of the interval of the gain.
    pub high: Option<f64>,
    /// The verdict on its time against that of the pipeline as it is; null unless it was confirmed.
    pub verdict: Option<Verdict>,
    /// The number of runs.
    pub runs: u32,
    /// Whether its output is that of the pipeline; null if it isn't compared.
    pub same_output: Option<bool>,
    /// How the output differs; null unless it is known to be the same in another form, such as in another order of lines.
    pub difference: Option<String>,
    /// Why the experiment has no result; null if it has one.
    pub failed: Option<String>,
}

/// A change that needs no knowledge of the programs, such as leaving out an option. It was faster, and its output was the
/// same on this input, which proves little: `sort -u` and `sort` write the same if no line is repeated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GuessResult {
    /// A name that never changes, even if the text does.
    pub id: String,
    /// The stage that it is about, counted from 1; null if it is about several.
    pub stage: Option<usize>,
    /// What it does.
    pub text: String,
    /// How many times as fast as the pipeline as it is, both in a sandbox.
    pub gain: f64,
    /// Lower end of the interval of the gain.
    pub low: f64,
    /// Upper end of the interval of the gain.
    pub high: f64,
    /// The number of interleaved rounds.
    pub rounds: u32,
}

/// The fastest pipeline found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fastest {
    /// The pipeline, ready to paste into sh or bash; empty if $SHELL is another shell, and `--shell` wasn't given.
    pub command: String,
    /// How many times as fast as the pipeline as typed.
    pub gain: f64,
    /// Lower end of the interval of the gain.
    pub low: f64,
    /// Upper end of the interval of the gain.
    pub high: f64,
    /// Whether its output was the same in all compared runs.
    pub same_output: bool,
    /// How the output differs; null if it is the same.
    pub difference: Option<String>,
    /// What was changed.
    pub changes: Vec<String>,
}
