//! What a document concluded, as a question to measurements, and the answer.

use serde::{Deserialize, Serialize};

use crate::job::{Job, Volume};
use crate::parameter::{Key, Settings};
use crate::value::word_enum;

/// A conclusion of someone else's document, to be compared with what is measured here.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Claim {
    /// A stable word for it; unique within its suite.
    pub id: String,
    /// Where it stands in the document: its section or table.
    #[serde(rename = "where")]
    pub place: String,
    /// What it says, in our words.
    pub says: String,
    /// The figure that was published with it, as it was given.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub published: String,
    /// Why no measurement here can answer it; all that follows is then empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<String>,
    /// The demonstration that answers it in place of trials; all that follows is then empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown_by: Option<String>,
    /// Runs that moved fewer bytes don't answer it. Without it, those of which more than 5 % were start-up don't.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least: Option<u64>,
    /// The figure is multiplied by this number, such as the calls of a run; 1 if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<f64>,
    /// The experiments that answer it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub experiments: Vec<String>,
    /// What is asked: `gain` (per cent over another trial), `ratio` (times as fast), `spread` (how far runs scatter, per cent),
    /// `copies` (of each byte), or the CSV column of a figure; with `to` that figure's ratio.
    #[serde(default)]
    pub figure: String,
    /// The trials that are asked: those with any of these settings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub of: Vec<Settings>,
    /// Each is held against the trial that differs from it in these; if there are none, against its baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Settings>,
    /// Which of several trials has to be in the range.
    #[serde(default)]
    pub which: Which,
    /// The claim holds from here on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// The claim holds up to here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// The result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
}

impl Claim {
    /// Whether it is about a trial of an experiment.
    pub fn asks(&self, experiment: &str, job: &Job) -> bool {
        let settings = job.settings();
        let fits = |of: &Settings| Key::iter().filter_map(|key| of.get(key)).all(|value| settings.has(&value));
        self.experiments.iter().any(|own| own == experiment) && (self.of.is_empty() || self.of.iter().any(fits))
    }

    /// Whether it is about a rate or a time per byte of chains, of which each moves the volume that its start asks for.
    pub fn is_per_byte(&self) -> bool {
        ["per_hop", "real_ns_per_gib"].contains(&self.figure.as_str())
    }

    /// Whether `other` is what `job` is held against: it has `to`, and all else as `job` has it; it moves as much in a run where
    /// `to` doesn't say how much.
    pub fn compares(&self, job: &Job, compared: &Job) -> bool {
        let Some(to) = &self.to else { return false };
        let (own, other) = (job.settings(), compared.settings());
        let given = Key::iter().any(|key| key.is_volume() && to.get(key).is_some());
        own != other
            && (given || self.is_per_byte() || moves_as_much(job, compared))
            && Key::iter().filter(|key| given || !key.is_volume()).all(|key| match to.get(key) {
                Some(value) => other.has(&value),
                None => own.get(key) == other.get(key) || given && key.is_volume(),
            })
    }
}

/// Whether two runs move as much, but for whole blocks.
fn moves_as_much(one: &Job, other: &Job) -> bool {
    let block = one.block().max(other.block()).map_or(0, |block| block.0);
    match (one.volume(), other.volume()) {
        (Volume::Total(one), Volume::Total(other)) if one.0.abs_diff(other.0) <= block => true,
        (one, other) => one.is_like(other),
    }
}

/// Of a run of a chain, the most that may be the start of its processes where a figure holds it: longer ones answer nothing.
pub const MOST_START: f64 = 0.05;

word_enum! {
    /// Which of several trials a claim is about.
    pub enum Which {
        /// All of them.
        Each,
        /// The one with the most.
        Most,
        /// The one with the least.
        Least,
    }
}

word_enum! {
    /// What measurements say of a claim.
    pub enum ClaimVerdict {
        /// All intervals lie within the claimed range.
        Holds,
        /// An interval lies on the other side of no difference.
        Reversed,
        /// An interval lies outside of the claimed range.
        DoesntHold,
        /// Neither is certain: the answer says what would decide it.
        CantTell,
        /// Nothing here was measured that could answer it: the answer says why.
        NotMeasured,
    }
}

impl ClaimVerdict {
    /// As it is shown: one of four answers. Which way a difference went is in the words of the answer.
    pub fn in_words(self) -> &'static str {
        match self {
            ClaimVerdict::Holds => "holds",
            ClaimVerdict::Reversed | ClaimVerdict::DoesntHold => "doesn't hold",
            ClaimVerdict::CantTell => "inconclusive",
            ClaimVerdict::NotMeasured => "not measured here",
        }
    }
}

/// A claim's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Answer {
    /// The answer.
    pub verdict: ClaimVerdict,
    /// What was measured, in a few words.
    pub here: String,
    /// Each trial that was asked.
    pub evidence: Vec<Evidence>,
}

/// What one trial says of a claim.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Evidence {
    /// Its experiment.
    pub experiment: String,
    /// Its id.
    pub trial: String,
    /// The trial that it is held against.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The figure.
    pub figure: f64,
    /// Its 95 % interval; `None` where there are too few runs.
    pub interval: Option<(f64, f64)>,
    /// The interval that holds together with those of all claims of the document, which decides.
    pub with_all_others: Option<(f64, f64)>,
    /// What it alone says.
    pub verdict: ClaimVerdict,
}
