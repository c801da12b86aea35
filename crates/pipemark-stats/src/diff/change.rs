//! The result of a comparison, as written by `pipemark compare --json` and shown in tables.

use std::fmt;

use serde::{Deserialize, Serialize};

use pipemark_model::{Better, Mode};

use crate::compare::Comparison;
use crate::diff::SideInput;
use crate::verdict::Verdict;

/// The version of the format of [`Diff`]. It is increased when a field changes its meaning.
pub const COMPARISON_SCHEMA: &str = "pipemark-compare/1";

/// NEW against BASE, trial by trial and experiment by experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Diff {
    /// Always `COMPARISON_SCHEMA`.
    pub schema: String,
    /// The origin of BASE's figures.
    pub base: Origin,
    /// The origin of NEW's figures.
    pub new: Origin,
    /// Other differences between the two measurements, and disturbances of either measurement.
    pub warnings: Vec<String>,
    /// Number of other sessions in the history from which the variation between sessions was estimated.
    #[serde(default)]
    pub known_sessions: usize,
    /// The verdict is `better` or `worse` if the whole interval is beyond this change, a fraction.
    pub threshold: f64,
    /// Otherwise, the verdict is `same` if the whole interval is within this change, a fraction.
    pub same_within: f64,
    /// The experiments, in the order of BASE. An experiment with trials of both throughput and latency gives two
    /// groups.
    pub groups: Vec<ChangeGroup>,
    /// Trials that exist on only one side, and trials that one or both sides couldn't measure.
    pub missing: Vec<Missing>,
}

/// The origin of figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Origin {
    /// The file.
    pub file: String,
    /// The parameters that selected its trials, as KEY=VALUE.
    pub chosen: Vec<String>,
    /// Its --label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The suite or verb that made the measurement.
    pub suite: String,
    /// The start of the first session, RFC 3339.
    pub started: String,
    /// Number of sessions.
    #[serde(default)]
    pub sessions: usize,
    /// The version of pipemark that made the measurement.
    pub version: String,
    /// The kernel's release and version.
    pub kernel: String,
}

/// The trials of an experiment that were measured on both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChangeGroup {
    /// The experiment's name.
    pub experiment: String,
    /// Its heading.
    pub title: String,
    /// The figure compared: bytes per second for throughput, the median round trip in nanoseconds for latency.
    pub mode: Mode,
    /// Whether higher or lower is better.
    pub better: Better,
    /// Each trial.
    pub changes: Vec<Change>,
    /// The comparison of the trials' geometric mean; absent with fewer than two trials, or if the trials share no
    /// rounds.
    pub mean: Option<Comparison>,
}

/// One trial of NEW compared with its counterpart in BASE.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change {
    /// The trial's name, without the parameters that all trials of the experiment share and without those by which
    /// trials were selected.
    pub name: String,
    /// Id of the trial of BASE.
    pub base_id: String,
    /// Id of the trial of NEW. It differs from `base_id` only if trials were selected by parameters.
    pub new_id: String,
    /// Median of the runs of BASE.
    pub base: f64,
    /// Median of the runs of NEW.
    pub new: f64,
    /// Whether the trial is a memory copy within one process. Such a trial shows the machine's limit, and its verdict
    /// doesn't count.
    pub reference: bool,
    /// The figures of one run of BASE and one run of NEW, chosen so that their ratio is nearest to the change. Present
    /// if the ratio of the medians differs from the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typical: Option<(f64, f64)>,
    /// The change.
    pub comparison: Comparison,
    /// Why there is no verdict, and what would help; absent if there is a verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A side of the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// The reference.
    Base,
    /// The side that is judged.
    New,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::Base => "BASE",
            Side::New => "NEW",
        })
    }
}

/// A trial that was not compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Missing {
    /// The side on which the trial is missing.
    pub side: Side,
    /// Its experiment.
    pub experiment: String,
    /// Its id, on the side that has it.
    pub id: String,
    /// Why it was not compared.
    pub reason: String,
}

impl Diff {
    /// The trials whose verdicts count: all except references.
    pub fn counted(&self) -> impl Iterator<Item = &Change> {
        self.groups.iter().flat_map(|group| &group.changes).filter(|change| !change.reference)
    }

    /// Number of counted trials without a verdict.
    pub fn without_verdict(&self) -> usize {
        self.counted().filter(|change| change.comparison.judged().is_none()).count()
    }

    /// The verdicts of counted trials.
    pub fn verdicts(&self) -> impl Iterator<Item = Verdict> {
        self.counted().map(|change| change.comparison.verdict)
    }

    /// Number of counted trials with this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.verdicts().filter(|other| *other == verdict).count()
    }
}

impl Origin {
    pub(super) fn of(side_input: SideInput) -> Origin {
        let document = side_input.first();
        Origin {
            file: side_input.name.to_owned(),
            chosen: side_input.settings.iter().map(|setting| format!("{}={}", setting.key(), setting)).collect(),
            label: document.label.clone(),
            suite: document.suite.clone(),
            started: document.started.clone(),
            sessions: side_input.documents.len(),
            version: document.version.clone(),
            kernel: document.host.kernel.clone(),
        }
    }
}
