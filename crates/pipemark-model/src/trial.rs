//! A trial before it is run, and the record that is kept of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::digits::three_digits;
use crate::estimate::Estimates;
use crate::job::{Job, Volume};
use crate::methods::Verify;
use crate::parameter::Key;
use crate::sample::Sample;
use crate::units::{ByteSize, GIB, Throughput, bytes_in_words};
use crate::value::word_enum;
use crate::warning::Warning;

/// One fully specified pipeline, as the plan orders it.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// Stable key made of the parameters.
    pub id: String,
    /// The experiment of the suite that it belongs to.
    pub experiment: String,
    /// What to run.
    pub job: Job,
    /// The id of the trial of the same experiment that its ratio is taken against.
    pub baseline: Option<String>,
    /// What others measured elsewhere.
    pub published: Option<Published>,
}

impl Trial {
    /// Whether it is one with another, of another experiment: measured once.
    pub fn is_same_as(&self, other: &Trial) -> bool {
        self.job == other.job && self.id == other.id
    }
}

/// A figure from a document, measured on other hardware.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Published {
    /// Bytes per second; 0 of what is no throughput, such as a number of calls.
    pub throughput: f64,
    /// The figure as it was published, with its unit: `405.044 s`. Empty in documents of before.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub as_published: String,
    /// How many bytes were moved for it, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Where it was published.
    pub source: String,
    /// Whether it is not known how many bytes took the published time. `throughput` is then as if they had been one GiB,
    /// and means something only beside others of the same source.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub relative: bool,
    /// What else was published: by the figure's column in the CSV and in its unit, or by a word of the document's own where
    /// we have no such figure.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub figures: BTreeMap<String, f64>,
}

impl Published {
    /// As it was published, with its unit; in documents of before, in ours.
    pub fn shown(&self) -> String {
        match self.as_published.as_str() {
            "" if self.relative => format!("{} s", three_digits(GIB / self.throughput)),
            "" => Throughput(self.throughput).to_string(),
            own => own.to_owned(),
        }
    }

    /// The volume that it was published for, where a run that moved `volume` moved another.
    pub fn other_volume(&self, volume: Volume) -> Option<ByteSize> {
        self.total.map(ByteSize).filter(|total| !volume.is_like(Volume::Total(*total)))
    }

    /// As [`shown`](Published::shown) beside a run that moved `volume`: where that is another, with the volume that was published
    /// and, of a time, the rate, as in `405.044 s for 1.05 GB (2.47 MiB/s)`.
    pub fn shown_beside(&self, volume: Volume) -> String {
        let Some(ByteSize(total)) = self.other_volume(volume) else { return self.shown() };
        let is_time = self.throughput > 0.0 && !self.as_published.ends_with("/s");
        let rate = if is_time { format!(" ({})", Throughput(self.throughput)) } else { String::new() };
        format!("{} for {}{rate}", self.shown(), bytes_in_words(total))
    }
}

word_enum! {
    /// How a trial ended.
    pub enum Status {
        /// It was measured.
        Ok,
        /// It cannot run here, or was not reached; `reason` says which.
        Skipped,
        /// It was started and went wrong.
        Failed,
    }
}

word_enum! {
    /// Why no more runs of a trial were made.
    pub enum Stopped {
        /// The interval is as narrow as asked.
        Narrow,
        /// The asked number of runs was made.
        Runs,
        /// The time budget is spent.
        Budget,
        /// The person at the terminal ended it.
        Interrupted,
    }
}

/// A trial and what came of running it, before anything is computed from the samples.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// What was to be run.
    pub trial: Trial,
    /// How it ended.
    pub status: Status,
    /// Why it was skipped or failed.
    pub reason: Option<String>,
    /// Whether the proof held in every run; `None` when nothing was run or nothing was to be proven.
    pub verified: Option<bool>,
    /// Each run, in order.
    pub samples: Vec<Sample>,
    /// Why no more runs were made.
    pub stopped: Option<Stopped>,
    /// What was noticed while it ran and cannot be seen in the samples, such as huge pages that were not given.
    pub notes: Vec<Warning>,
}

impl Outcome {
    /// Of a trial that has not been run.
    pub fn of(trial: Trial) -> Outcome {
        let (reason, verified, stopped) = (None, None, None);
        Outcome { trial, status: Status::Ok, reason, verified, samples: Vec::new(), stopped, notes: Vec::new() }
    }

    /// Ends it before its first run.
    pub fn left_out(self, stopped: Stopped) -> Outcome {
        let reason = Some("the measurement was ended before its first run".to_owned());
        Outcome { status: Status::Skipped, reason, stopped: Some(stopped), ..self }
    }
}

/// A trial, how it ended and everything measured: what is stored and exported.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Record {
    /// Stable key made of the parameters.
    pub id: String,
    /// The id in words, without what all trials of the experiment share.
    pub name: String,
    /// The experiment of the suite that it belongs to.
    pub experiment: String,
    /// Whether nobody asked for it: it is measured to compare the others with, and comes after them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reference: bool,
    /// What was asked for.
    #[serde(rename = "params")]
    pub job: Job,
    /// How it ended.
    pub status: Status,
    /// Why it was skipped or failed.
    pub reason: Option<String>,
    /// The level of proof asked for.
    pub verify: Verify,
    /// Whether the proof held in every run; `None` when nothing was run or nothing was to be proven.
    pub verified: Option<bool>,
    /// Whether the sink read the bytes.
    pub touched: bool,
    /// How often each byte was copied on its way, where the link is ours: see [`Work`](super::job::Work).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copies: Option<u8>,
    /// Whether each byte was newly written before it was sent, where the link is ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<bool>,
    /// Each run, in order.
    pub samples: Vec<Sample>,
    /// What the samples say.
    pub estimate: Option<Estimates>,
    /// Why no more runs were made.
    pub stopped: Option<Stopped>,
    /// What to keep in mind when reading the figures.
    pub warnings: Vec<Warning>,
    /// The trial that `ratio` is taken against.
    pub baseline: Option<String>,
    /// What others measured elsewhere.
    pub published: Option<Published>,
}

impl Record {
    /// What it gave, if it ran, its data was right and its figures can be.
    pub fn measured(&self) -> Option<&Estimates> {
        let sound = self.verified != Some(false) && !self.warnings.iter().any(Warning::spoils);
        self.estimate.as_ref().filter(|_| self.status == Status::Ok && sound)
    }

    /// A parameter as it takes effect, in words; empty where it does not apply.
    pub fn shown(&self, key: Key) -> String {
        self.job.value(key).map_or_else(String::new, |value| value.to_string())
    }

    /// The mechanism in words, see [`Ends::mechanism`](super::job::Ends::mechanism).
    pub fn mechanism(&self) -> String {
        match (&self.job, self.job.ends()) {
            (_, Some(ends)) => ends.mechanism(),
            (Job::Lines(lines), _) => lines.filter.to_string(),
            _ => self.job.link().to_string(),
        }
    }
}
