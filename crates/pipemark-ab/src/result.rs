//! The result of `ab`: the source of `--json`, the table and the exports.

use std::collections::BTreeMap;

use serde::Serialize;

use pipemark_model::{Better, Capacity, Estimate};
use pipemark_stats::compare::Comparison;
use pipemark_stats::verdict::{Criterion, Verdict};

use crate::cold::ColdPages;
use crate::shell::Shell;

/// The version of the form of [`AbResult`]; bumped when a field changes its meaning.
pub const AB_SCHEMA: &str = "pipemark-ab/2";

/// What `ab --json` writes; docs/ab.schema.json is made of it.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AbResult {
    /// Always [`AB_SCHEMA`].
    pub schema: String,
    /// The version of pipemark that measured.
    pub version: String,
    /// When it began, seconds since 1970.
    pub started: u64,
    /// How many sessions.
    pub sessions: u32,
    /// What started the commands.
    pub shell: Shell,
    /// What the shell takes by itself, in nanoseconds; absent where it was not measured.
    pub shell_start: Option<Estimate>,
    /// Whether that was taken off the times: of estimates and comparisons, not of `runs`.
    pub shell_start_taken_off: bool,
    /// Copies of each command that ran at once.
    pub concurrent: usize,
    /// How far the files of `--cold` were.
    pub cold: Option<ColdPages>,
    /// The key of the figure that ranks and verdicts of commands go by.
    pub by: String,
    /// What a change of it must be to count.
    pub criterion: Criterion,
    /// The label of the command that the others are compared with.
    pub reference: String,
    /// What was measured of each run.
    pub figures: Vec<FigureInfo>,
    /// In the order in which they were typed.
    pub commands: Vec<CommandResult>,
    /// Whether the person ended it early, with what had been measured until then.
    pub interrupted: bool,
    /// What disturbed the measurement.
    pub warnings: Vec<String>,
}

/// A figure.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FigureInfo {
    /// Its key in `runs` and `figures` of commands.
    pub key: String,
    /// What it is counted in: ns, bytes, count, or what the person said.
    pub unit: String,
    /// Which way is better.
    pub better: Better,
}

/// A command.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CommandResult {
    /// What it is called.
    pub label: String,
    /// Whether `--name` called it so.
    #[serde(skip)]
    pub named: bool,
    /// What was run.
    pub command: String,
    /// The values of its parameters.
    pub parameters: BTreeMap<String, String>,
    /// Why it has no figures.
    pub failed: Option<String>,
    /// One more than the number of commands with a better verdict; tied commands share a rank.
    pub rank: Option<usize>,
    /// The capacity that was asked for.
    pub capacity: Option<Capacity>,
    /// The capacity that the kernel granted to the pipes between the stages, in bytes.
    pub capacity_granted: Option<u64>,
    /// What it wrote, in bytes.
    pub output: u64,
    /// Whether each run wrote what the first of its parameters did.
    pub same_output: bool,
    /// Each run that counts, in order.
    pub runs: Vec<TimedRun>,
    /// By key; those that could not be measured are absent.
    pub figures: BTreeMap<String, FigureResult>,
}

/// A run.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimedRun {
    /// From 1.
    pub session: u32,
    /// From 1, in each session.
    pub round: u32,
    /// Of the last stage; null where a signal ended it.
    pub exit_code: Option<i32>,
    /// By key.
    #[serde(flatten)]
    pub figures: BTreeMap<String, f64>,
}

/// What the runs say of a figure.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FigureResult {
    /// The figure.
    pub estimate: Estimate,
    /// Whether it is an upper bound, as the kernel counts pipemark's own memory in.
    pub at_most: bool,
    /// Against the reference, which has none itself; absent too where there is no ratio.
    pub comparison: Option<Comparison>,
    /// Its verdict; absent for the reference.
    pub verdict: Option<Verdict>,
    /// Where it is inconclusive: why, and what would help.
    pub why: Option<String>,
}

impl AbResult {
    /// The result of the judged figure.
    pub fn judged<'a>(&self, command: &'a CommandResult) -> Option<&'a FigureResult> {
        command.figures.get(&self.by)
    }

    /// Whether a command has too few runs or sessions, or no ratio, to be judged.
    pub fn is_without_verdict(&self) -> bool {
        let figures = self.commands.iter().filter_map(|command| self.judged(command));
        let judged = |figure: &FigureResult| figure.comparison.is_some_and(|comparison| comparison.judged().is_some());
        figures.filter(|figure| figure.verdict == Some(Verdict::Inconclusive)).any(|figure| !judged(figure))
    }

    /// The verdicts of all commands.
    pub fn verdicts(&self) -> impl Iterator<Item = Verdict> {
        self.commands.iter().filter_map(|command| self.judged(command)?.verdict)
    }
}
