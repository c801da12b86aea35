//! Claims of published documents, and their answers from measurements.

use serde::{Deserialize, Serialize};

use crate::job::{Job, Volume};
use crate::parameter::{Key, Settings};
use crate::value::word_enum;

/// A claim of a published document, to be checked by measurements.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Claim {
    /// A stable identifier, unique within its suite.
    pub id: String,
    /// The section or table of the document that makes the claim.
    #[serde(rename = "where")]
    pub place: String,
    /// The claim, paraphrased.
    pub says: String,
    /// The claim in at most [`MAX_SHORT`] characters, for a list with one line per claim.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub short: String,
    /// The figure published with the claim, verbatim.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub published: String,
    /// Why no measurement by pipemark can settle the claim. The fields below, except the answer, are then unused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<String>,
    /// The demonstration that settles the claim in place of trials. The fields below, except the answer, are then
    /// unused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown_by: Option<String>,
    /// Trials are ignored if their runs move fewer bytes than this. Whatever this is, runs that are too short for any
    /// verdict are ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least: Option<u64>,
    /// Trials are ignored if their runs move fewer blocks than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_blocks: Option<u64>,
    /// The number that the figure is multiplied by, such as the number of calls per run; 1 if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<f64>,
    /// The experiments that answer the claim.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub experiments: Vec<String>,
    /// The figure compared with the claimed range: `gain` (per cent over another trial), `ratio` (speed relative to
    /// another trial), `spread` (scatter of the runs, in per cent), `copies` (copies of each byte), or the CSV column
    /// of a figure. If `to` is set, such a column stands for the ratio of the two trials' figures.
    #[serde(default)]
    pub figure: String,
    /// The trials that the claim is about: those that match any of these settings, or all trials if no settings are
    /// given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub of: Vec<Settings>,
    /// Each trial is compared with the trial that has these settings instead of its own; if unset, with its baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Settings>,
    /// The settings for the trials of each entry of `of`, instead of `to`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to_each: Vec<Settings>,
    /// Which of several trials must be within the claimed range.
    #[serde(default)]
    pub which: Which,
    /// The lower end of the claimed range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// The upper end of the claimed range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// The result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
}

impl Claim {
    /// Whether the claim is about this job in this experiment. A program or line filter is covered only if the claim
    /// names its language or filter, so the user's own programs never answer a document's claim.
    pub fn covers(&self, experiment: &str, job: &Job) -> bool {
        let is_named = |of: &Settings| {
            (job.entrant().is_none() || of.get(Key::Language).is_some())
                && (job.lines().is_none() || of.get(Key::Filter).is_some())
        };
        let fits = |of: &Settings| is_named(of) && selects(of, job);
        let all = self.of.is_empty() && is_named(&Settings::default());
        self.experiments.iter().any(|name| name == experiment) && (all || self.of.iter().any(fits))
    }

    /// Whether each trial is compared with another one that the claim names.
    pub fn is_compared(&self) -> bool {
        self.to.is_some() || !self.to_each.is_empty()
    }

    /// The settings of the trial that `job` is compared with; `None` if the claim names none.
    pub fn to_of(&self, job: &Job) -> Option<&Settings> {
        let each = self.of.iter().zip(&self.to_each).find(|(of, _)| selects(of, job)).map(|(_, to)| to);
        each.or(self.to.as_ref())
    }

    /// Whether the figure is a rate or a time per byte. Such figures of chains are compared even if the volumes differ,
    /// because each chain's volume is chosen by its start-up time.
    pub fn is_per_byte(&self) -> bool {
        ["per_hop", "real_ns_per_gib"].contains(&self.figure.as_str())
    }

    /// Whether `job` is compared with `base`. `base` must have the settings of `to`, and the other settings of `job`.
    /// Unless `to` sets the volume, both jobs must move the same volume. The scatter of runs is also compared if both
    /// jobs move the same number of blocks.
    pub fn has_base(&self, job: &Job, base: &Job) -> bool {
        let Some(to) = self.to_of(job) else { return false };
        let (job_settings, base_settings) = (job.settings(), base.settings());
        let sets_volume = Key::iter().any(|key| key.is_volume() && to.get(key).is_some());
        job_settings != base_settings
            && (sets_volume
                || self.is_per_byte()
                || moves_same_volume(job, base)
                || self.figure == "spread" && moves_same_blocks(job, base))
            && Key::iter().filter(|key| sets_volume || !key.is_volume()).all(|key| match to.get(key) {
                Some(value) => base_settings.has(&value),
                None => job_settings.get(key) == base_settings.get(key) || sets_volume && key.is_volume(),
            })
    }
}

/// Whether a job has all of these settings.
fn selects(of: &Settings, job: &Job) -> bool {
    let settings = job.settings();
    Key::iter().filter_map(|key| of.get(key)).all(|value| settings.has(&value))
}

/// Whether two jobs move the same volume. Totals may also differ by one block.
fn moves_same_volume(one: &Job, other: &Job) -> bool {
    let block = one.block().max(other.block()).map_or(0, |block| block.0);
    match (one.volume(), other.volume()) {
        (Volume::Total(one), Volume::Total(other)) if one.0.abs_diff(other.0) <= block => true,
        (one, other) => one.is_equivalent(other),
    }
}

/// Whether two jobs move the same number of blocks.
fn moves_same_blocks(one: &Job, other: &Job) -> bool {
    let blocks = |job: &Job| match (job.volume(), job.block()) {
        (Volume::Total(total), Some(block)) if block.0 > 0 => Some(total.0.div_ceil(block.0)),
        _ => None,
    };
    blocks(one).is_some() && blocks(one) == blocks(other)
}

/// The largest number of characters of [`Claim::short`]. With the number, the verdict and the figure, a claim then takes
/// one line of 80 columns.
pub const MAX_SHORT: usize = 50;

/// The largest share of a run, 0 to 1, that a chain may spend on starting processes. Chains above this limit are not
/// used for claims about figures that include the start.
pub const MAX_START: f64 = 0.05;

word_enum! {
    /// Which of several trials a claim is about.
    pub enum Which {
        /// All of them.
        Each,
        /// The one with the highest figure.
        Most,
        /// The one with the lowest figure.
        Least,
    }
}

word_enum! {
    /// The verdict of measurements on a claim.
    pub enum ClaimVerdict {
        /// All intervals lie within the claimed range.
        Holds,
        /// An interval shows a difference in the opposite direction.
        Reversed,
        /// An interval lies outside the claimed range.
        DoesntHold,
        /// Inconclusive: the answer says what would decide it.
        CantTell,
        /// No measurement can settle the claim: the answer says why.
        NotMeasured,
    }
}

impl ClaimVerdict {
    /// The verdict in words: one of four phrases. The direction of a difference is in the answer's text.
    pub fn in_words(self) -> &'static str {
        match self {
            ClaimVerdict::Holds => "holds",
            ClaimVerdict::Reversed | ClaimVerdict::DoesntHold => "doesn't hold",
            ClaimVerdict::CantTell => "inconclusive",
            ClaimVerdict::NotMeasured => "not measured",
        }
    }
}

/// A claim's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Answer {
    /// The verdict.
    pub verdict: ClaimVerdict,
    /// The measured result, in a few words.
    pub here: String,
    /// The evidence of each trial that answers it.
    pub evidence: Vec<Evidence>,
}

/// The evidence of one trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Evidence {
    /// The trial's experiment.
    pub experiment: String,
    /// The trial's id.
    pub trial: String,
    /// The id of the trial that this trial is compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The figure.
    pub figure: f64,
    /// The figure's 95 % interval; `None` if there are too few runs.
    pub interval: Option<(f64, f64)>,
    /// The figure's interval at 95 % confidence for all claims of the document together. The verdict is based on this
    /// interval.
    pub with_all_others: Option<(f64, f64)>,
    /// The verdict of this trial alone.
    pub verdict: ClaimVerdict,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameter::Value;

    #[test]
    fn a_program_of_the_user_is_covered_only_by_its_name() {
        let settings =
            |words: &str| Settings::of(words.split_whitespace().map(|word| Value::parse_pair(word).unwrap()));
        let job = |words: &str| Job::try_from(settings(words)).unwrap();
        let covers = |of: &str, words: &str| {
            let of = if of.is_empty() { Vec::new() } else { vec![settings(of)] };
            Claim { experiments: vec!["e".to_owned()], of, ..Claim::default() }.covers("e", &job(words))
        };
        let program = "language=mine program=idiomatic place=free verify=none block=64k total=1g";
        let filter = "filter=mine feed=file place=free total=1g";
        for (of, words, expected) in [
            ("", "block=64k", true),
            ("block=64k", "block=64k", true),
            ("", program, false),
            ("block=64k", program, false),
            ("language=mine", program, true),
            ("", filter, false),
            ("feed=file", filter, false),
            ("filter=mine", filter, true),
        ] {
            assert_eq!(covers(of, words), expected, "{of}: {words}");
        }
    }

    #[test]
    fn scatter_is_compared_at_equal_bytes_or_equal_blocks() {
        let settings =
            |words: &str| Settings::of(words.split_whitespace().map(|word| Value::parse_pair(word).unwrap()));
        let job = |words: &str| Job::try_from(settings(words)).unwrap();
        let compared = |figure: &str, base: &str| {
            let claim = Claim { figure: figure.to_owned(), to: Some(settings("block=64k")), ..Claim::default() };
            claim.has_base(&job("block=64 blocks=1000"), &job(base))
        };
        for (figure, base, expected) in [
            ("spread", "block=64k blocks=1000", true),
            ("spread", "block=64k blocks=1001", false),
            ("spread", "block=64k time=1s", false),
            ("spread", "block=64k blocks=1000 recv=splice", false),
            ("spread", "block=64k blocks=1", true),
            ("ratio", "block=64k blocks=1000", false),
            ("ratio", "block=64k blocks=1", true),
        ] {
            assert_eq!(compared(figure, base), expected, "{figure} {base}");
        }
    }
}
