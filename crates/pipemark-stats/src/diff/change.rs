//! The comparison as a whole: what `pipemark compare --json` writes and what the tables show.

use std::fmt;

use serde::{Deserialize, Serialize};

use pipemark_model::{Better, Mode};

use crate::compare::Comparison;
use crate::diff::Party;
use crate::verdict::Verdict;

/// The version of the form of [`Diff`]; bumped when a field changes its meaning.
pub const COMPARISON_SCHEMA: &str = "pipemark-compare/1";

/// NEW against BASE, trial by trial and experiment by experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Diff {
    /// Always `COMPARISON_SCHEMA`.
    pub schema: String,
    /// Where the figures of BASE are from.
    pub base: Origin,
    /// Where the figures of NEW are from.
    pub new: Origin,
    /// What else differs between the two, and what disturbed one of them.
    pub warnings: Vec<String>,
    /// How many sessions of the history were asked how much sessions differ, besides those that are compared.
    #[serde(default)]
    pub known_sessions: usize,
    /// Better or worse is a change whose whole interval is past this, a fraction.
    pub threshold: f64,
    /// The same is what is neither, with the whole interval within this, a fraction.
    pub same_within: f64,
    /// The experiments, in the order of BASE; one that has trials of throughput and of latency is two.
    pub groups: Vec<ChangeGroup>,
    /// Trials of one side only, and those that were not measured on both.
    pub missing: Vec<Missing>,
}

/// Where figures are from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Origin {
    /// The file.
    pub file: String,
    /// The parameters that its trials were chosen by, as KEY=VALUE.
    pub chosen: Vec<String>,
    /// What it was called by --label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The suite or verb that measured.
    pub suite: String,
    /// When, RFC 3339; of several sessions the first.
    pub started: String,
    /// How many sessions.
    #[serde(default)]
    pub sessions: usize,
    /// The version of pipemark that measured.
    pub version: String,
    /// The kernel.
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
    /// What was measured: bytes per second for throughput, the median round trip in nanoseconds for latency.
    pub mode: Mode,
    /// Which way is better.
    pub better: Better,
    /// Each trial.
    pub changes: Vec<Change>,
    /// The geometric mean of all of them; absent for fewer than two, and where they share no rounds.
    pub mean: Option<Comparison>,
}

/// One trial of NEW against its counterpart of BASE.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change {
    /// The trial in words, without what all of the experiment share and without what was chosen.
    pub name: String,
    /// Id of the trial of BASE.
    pub base_id: String,
    /// Id of the trial of NEW: another one only where parameters were chosen.
    pub new_id: String,
    /// Median of the runs of BASE.
    pub base: f64,
    /// Median of the runs of NEW.
    pub new: f64,
    /// Whether it is a copy within one process: what the machine can do, and no verdict on pipes.
    pub reference: bool,
    /// One run of BASE and one of NEW whose ratio is the change; given where that of the medians is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typical: Option<(f64, f64)>,
    /// The change.
    pub comparison: Comparison,
    /// Where there is no verdict: why, and what would help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// One of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// What is held against.
    Base,
    /// What is judged.
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
    /// The side that it is missing on.
    pub side: Side,
    /// Its experiment.
    pub experiment: String,
    /// Its id, on the side that it is known from.
    pub id: String,
    /// Why.
    pub reason: String,
}

impl Diff {
    /// All trials that have a verdict which counts.
    pub fn counted(&self) -> impl Iterator<Item = &Change> {
        self.groups.iter().flat_map(|group| &group.changes).filter(|change| !change.reference)
    }

    /// Those of them that nothing can be judged by.
    pub fn without_verdict(&self) -> usize {
        self.counted().filter(|change| change.comparison.judged().is_none()).count()
    }

    /// Their verdicts.
    pub fn verdicts(&self) -> impl Iterator<Item = Verdict> {
        self.counted().map(|change| change.comparison.verdict)
    }

    /// How many trials have this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.verdicts().filter(|other| *other == verdict).count()
    }
}

impl Origin {
    pub(super) fn of(party: Party) -> Origin {
        let document = party.first();
        Origin {
            file: party.name.to_owned(),
            chosen: party.settings.iter().map(|setting| format!("{}={}", setting.key(), setting)).collect(),
            label: document.label.clone(),
            suite: document.suite.clone(),
            started: document.started.clone(),
            sessions: party.documents.len(),
            version: document.version.clone(),
            kernel: document.host.kernel.clone(),
        }
    }
}
