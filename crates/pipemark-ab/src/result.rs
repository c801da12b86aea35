//! The result of `ab`: the source of `--json`, the table and the exports.

use std::collections::BTreeMap;

use serde::Serialize;

use pipemark_model::{Better, Capacity, Estimate};
use pipemark_stats::catch::CatchAnswer;
use pipemark_stats::compare::Comparison;
use pipemark_stats::verdict::{Criterion, Verdict};

use crate::cold::ColdPages;
use crate::shell::Shell;

/// The version of the format of [`AbResult`]. It is increased when a field changes its meaning.
pub(crate) const AB_SCHEMA: &str = "pipemark-ab/2";

/// The output of `ab --json`; docs/ab.schema.json is generated from it.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AbResult {
    /// Always [`AB_SCHEMA`].
    pub schema: String,
    /// The version of pipemark that made the measurement.
    pub version: String,
    /// When the measurement began, in seconds since 1970.
    pub started: u64,
    /// The number of sessions.
    pub sessions: u32,
    /// The shell that started the commands.
    pub shell: Shell,
    /// The time that the shell adds to a command, in nanoseconds; absent if it was not measured.
    pub shell_start: Option<Estimate>,
    /// Whether estimates and comparisons exclude `shell_start`. The times in `runs` always include it.
    pub shell_start_taken_off: bool,
    /// The number of copies of each command that ran in parallel.
    pub concurrent: usize,
    /// How many pages of the files of `--cold` were in memory before the runs.
    pub cold: Option<ColdPages>,
    /// The key of the figure that decides ranks and verdicts of commands.
    pub by: String,
    /// The criterion for verdicts on that figure.
    pub criterion: Criterion,
    /// The answer of `--catch`; absent without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub catch: Option<CatchResult>,
    /// The name of `--baseline`: commands are then compared with the sessions saved under this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// The label of the command that the others are compared with.
    pub reference: String,
    /// Properties of the figures in `commands`.
    pub figures: Vec<FigureInfo>,
    /// The commands, in the order of the command line.
    pub commands: Vec<CommandResult>,
    /// Whether the user interrupted the measurement. Only the rounds completed before that are included.
    pub interrupted: bool,
    /// What disturbed the measurement.
    pub warnings: Vec<String>,
}

/// The answer of `--catch`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CatchResult {
    /// The limit, a fraction: a command that is slower by this or more must not pass.
    pub limit: f64,
    /// A command is caught if its whole interval is beyond this change, a fraction.
    pub threshold: f64,
    /// The answer.
    pub answer: CatchAnswer,
    /// The answer as a sentence, with the change that it rests on.
    pub sentence: String,
    /// The key of the figure that gave the answer; null if undecided.
    pub by: Option<String>,
    /// The smallest limit that these sessions would decide about in 9 of 10 cases, a fraction; null if unknown or
    /// above 1.
    pub smallest_limit: Option<f64>,
    /// If undecided: the budget in seconds that would decide in 9 of 10 cases; null if unknown or much longer.
    pub budget_needed_s: Option<u64>,
}

/// A figure's key, unit and direction.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FigureInfo {
    /// The figure's key in `runs` and `figures` of commands.
    pub key: String,
    /// The figure's unit: ns, bytes, count, or a unit that the user gave.
    pub unit: String,
    /// Whether higher or lower is better.
    pub better: Better,
}

/// The results of one command.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CommandResult {
    /// The command's label.
    pub label: String,
    /// Whether the label is from `--name`.
    #[serde(skip)]
    pub named: bool,
    /// The command as run; if it isn't UTF-8, as a word of bash, such as `$'cat caf\xe9'`.
    pub command: String,
    /// The bytes of the command in hexadecimal; absent if `command` is the command itself, because it is UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command_hex: Option<String>,
    /// The values of the command's parameters.
    pub parameters: BTreeMap<String, String>,
    /// Why the command has no figures; absent if it has some.
    pub failed: Option<String>,
    /// One more than the number of commands that are better than this one. Tied commands share a rank.
    pub rank: Option<usize>,
    /// The requested capacity.
    pub capacity: Option<Capacity>,
    /// The capacity that the kernel granted to the pipes between the stages, in bytes.
    pub capacity_granted: Option<u64>,
    /// The size of the command's output, in bytes.
    pub output: u64,
    /// Whether the content of the output was compared, and not only its size.
    #[serde(skip)]
    pub hashed: bool,
    /// Whether each run had the same output as the first run with these parameters.
    pub same_output: bool,
    /// The runs in order, without warm-up.
    pub runs: Vec<TimedRun>,
    /// The figures over all runs, by key. Figures that could not be measured are absent.
    pub figures: BTreeMap<String, FigureResult>,
}

/// A run of a command, without warm-up runs.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimedRun {
    /// The session of the run, counted from 1.
    pub session: u32,
    /// The round of the run in its session, counted from 1.
    pub round: u32,
    /// The exit code of the last stage; null if a signal ended it.
    pub exit_code: Option<i32>,
    /// The figures of the run, by key.
    #[serde(flatten)]
    pub figures: BTreeMap<String, f64>,
}

/// A figure over all runs.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FigureResult {
    /// The figure.
    pub estimate: Estimate,
    /// Whether the figure is an upper bound, because the kernel includes pipemark's own memory.
    pub at_most: bool,
    /// The comparison with the reference; absent for the reference itself and where there is no ratio.
    pub comparison: Option<Comparison>,
    /// The command's verdict on this figure; absent for the reference.
    pub verdict: Option<Verdict>,
    /// With `--baseline`, the figure over the saved runs that it is compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saved: Option<Estimate>,
    /// The threshold of `--thresholds`, a fraction. `--fail-on` then also applies to this figure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// Why there is no clear verdict, and what would help; absent if the verdict is clear.
    pub why: Option<String>,
}

impl FigureResult {
    /// Removes the comparison and its verdict.
    pub fn without_comparison(&mut self) {
        (self.comparison, self.verdict, self.why, self.saved) = (None, None, None, None);
    }
}

impl AbResult {
    /// The result of the judged figure.
    pub fn judged<'a>(&self, command: &'a CommandResult) -> Option<&'a FigureResult> {
        command.figures.get(&self.by)
    }

    /// Whether a command has too few runs or sessions, or no ratio, to be judged.
    pub(crate) fn is_without_verdict(&self) -> bool {
        let figures = self.commands.iter().filter_map(|command| self.judged(command));
        let judged = |figure: &FigureResult| figure.comparison.is_some_and(|comparison| comparison.judged().is_some());
        figures.filter(|figure| figure.verdict == Some(Verdict::Inconclusive)).any(|figure| !judged(figure))
    }

    /// The verdicts of all commands on the figure of `--by`, and on those that have a threshold of their own.
    pub fn verdicts(&self) -> impl Iterator<Item = Verdict> {
        let counting = self.commands.iter().flat_map(|command| &command.figures);
        counting
            .filter(|(key, figure)| **key == self.by || figure.threshold.is_some())
            .filter_map(|(_, figure)| figure.verdict)
    }
}
