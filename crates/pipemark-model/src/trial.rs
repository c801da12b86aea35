//! Trials before they run, and the records of trials.

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

/// One trial, with all parameters set.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// A stable key made from the parameters.
    pub id: String,
    /// The name of the suite's experiment that the trial belongs to.
    pub experiment: String,
    /// The job to run.
    pub job: Job,
    /// The id of the trial's baseline, which is in the same experiment; `None` without a baseline.
    pub baseline: Option<String>,
    /// The published figure; `None` if there is none.
    pub published: Option<Published>,
}

impl Trial {
    /// Whether both are the same trial in two experiments. Such a trial is measured only once.
    pub fn is_same_as(&self, other: &Trial) -> bool {
        self.job == other.job && self.id == other.id
    }
}

/// A figure from a document, measured on other hardware.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Published {
    /// Bytes per second; 0 if the figure isn't a throughput but, for example, a number of calls.
    pub throughput: f64,
    /// The figure as it was published, with its unit: `405.044 s`. Empty in documents of earlier versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub as_published: String,
    /// The number of bytes that were moved to measure it, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Where it was published.
    pub source: String,
    /// How the figure was computed from the publication's runs, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statistic: Option<Statistic>,
    /// Whether the number of bytes moved in the published time is unknown. `throughput` then assumes one GiB, and can
    /// be compared only with other figures of the same source.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub relative: bool,
    /// Other published figures, by name. A figure that pipemark also measures has the name and the unit of its CSV
    /// column; the suite names any other figure.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub figures: BTreeMap<String, f64>,
    /// Those of `figures` that were published in another unit, or with digits that pipemark doesn't show, as they were
    /// published: `4787 ms`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub figures_as_published: BTreeMap<String, String>,
}

word_enum! {
    /// How a published figure was computed from the publication's runs.
    pub enum Statistic {
        /// The least of several runs.
        Least,
        /// The mean of several runs.
        Mean,
        /// The figure of a single run.
        Single,
    }
}

impl Statistic {
    /// The statistic as headings name it.
    pub fn in_words(self) -> &'static str {
        match self {
            Statistic::Least => "least",
            Statistic::Mean => "mean",
            Statistic::Single => "one run",
        }
    }
}

impl Published {
    /// The figure as it was published, with its unit. For documents of earlier versions, which lack this text, it is
    /// shown in pipemark's unit.
    pub fn shown(&self) -> String {
        match self.as_published.as_str() {
            "" if self.relative => format!("{} s", three_digits(GIB / self.throughput)),
            "" => Throughput(self.throughput).to_string(),
            own => own.to_owned(),
        }
    }

    /// The volume in bytes that the figure was published for; `None` if unknown or equal to `volume`.
    pub fn other_volume(&self, volume: Volume) -> Option<ByteSize> {
        self.total.map(ByteSize).filter(|total| !volume.is_equivalent(Volume::Total(*total)))
    }

    /// Like [`shown`](Published::shown), for display beside a run that moved `volume`. If the published volume differs,
    /// the published volume is added. For a time, the rate is added too: `405.044 s for 1.05 GB (2.47 MiB/s)`.
    pub fn shown_next_to(&self, volume: Volume) -> String {
        let Some(ByteSize(total)) = self.other_volume(volume) else { return self.shown() };
        format!("{} for {}{}", self.shown(), bytes_in_words(total), self.rate())
    }

    /// Like [`shown_next_to`](Published::shown_next_to), but without the published volume, which the heading already
    /// names.
    pub fn shown_with_rate(&self, volume: Volume) -> String {
        let rate = self.other_volume(volume).map_or_else(String::new, |_| self.rate());
        format!("{}{rate}", self.shown())
    }

    /// For a published time, the rate in brackets; otherwise empty.
    fn rate(&self) -> String {
        let is_time = self.throughput > 0.0 && !self.as_published.ends_with("/s");
        if is_time { format!(" ({})", Throughput(self.throughput)) } else { String::new() }
    }
}

word_enum! {
    /// How a trial ended.
    pub enum Status {
        /// The trial was measured.
        Ok,
        /// The trial cannot run here, or the measurement ended before it; `reason` says which.
        Skipped,
        /// The trial was started and failed.
        Failed,
    }
}

word_enum! {
    /// Why a trial stopped.
    pub enum Stopped {
        /// The interval is as narrow as requested.
        Narrow,
        /// The requested number of runs is complete.
        Runs,
        /// The time budget is spent.
        Budget,
        /// The user interrupted the measurement.
        Interrupted,
    }
}

/// A trial that was run or skipped, before its samples are evaluated.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The trial.
    pub trial: Trial,
    /// How it ended.
    pub status: Status,
    /// Why the trial was skipped or failed; `None` if it was measured.
    pub reason: Option<String>,
    /// Whether the bytes were verified in every run; `None` if there was no run or verification was off.
    pub verified: Option<bool>,
    /// Each run, in order.
    pub samples: Vec<Sample>,
    /// Why the trial stopped; `None` before that.
    pub stopped: Option<Stopped>,
    /// Warnings from the runs that can't be derived from the samples, such as refused huge pages.
    pub notes: Vec<Warning>,
}

impl Outcome {
    /// The outcome of a trial before its first run.
    pub fn of(trial: Trial) -> Outcome {
        let (reason, verified, stopped) = (None, None, None);
        Outcome { trial, status: Status::Ok, reason, verified, samples: Vec::new(), stopped, notes: Vec::new() }
    }

    /// Marks the trial as skipped because the measurement ended before its first run.
    pub fn not_started(self, stopped: Stopped) -> Outcome {
        let reason = Some("the measurement ended before the first run of this trial".to_owned());
        Outcome { status: Status::Skipped, reason, stopped: Some(stopped), ..self }
    }
}

/// A trial, how it ended, and everything it measured, as stored and exported.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Record {
    /// Stable key made of the parameters.
    pub id: String,
    /// A name in words, without the parameters that all trials of the experiment share.
    pub name: String,
    /// The suite's experiment that the trial belongs to.
    pub experiment: String,
    /// Whether the trial wasn't requested but added as a reference for the others. References come last.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reference: bool,
    /// The requested parameters.
    #[serde(rename = "params")]
    pub job: Job,
    /// How it ended.
    pub status: Status,
    /// Why it was skipped or failed.
    pub reason: Option<String>,
    /// The requested level of verification.
    pub verify: Verify,
    /// Whether the bytes were verified in every run; `None` if there was no run or verification was off.
    pub verified: Option<bool>,
    /// Whether the sink read the bytes.
    pub touched: bool,
    /// The number of copies of each byte on its way, if the ends are pipemark's own: see [`Work`](super::job::Work).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copies: Option<u8>,
    /// Whether each byte was newly written before it was sent, if the ends are pipemark's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<bool>,
    /// Each run, in order.
    pub samples: Vec<Sample>,
    /// Estimates from the samples.
    pub estimate: Option<Estimates>,
    /// Why the trial stopped.
    pub stopped: Option<Stopped>,
    /// Warnings about the figures.
    pub warnings: Vec<Warning>,
    /// The id of the trial that `ratio` is relative to.
    pub baseline: Option<String>,
    /// The published figure.
    pub published: Option<Published>,
}

impl Record {
    /// The estimates; `None` if the trial didn't run, its data was wrong, or a warning makes the figures unusable.
    pub fn measured(&self) -> Option<&Estimates> {
        let sound = self.verified != Some(false) && !self.warnings.iter().any(Warning::invalidates_figures);
        self.estimate.as_ref().filter(|_| self.status == Status::Ok && sound)
    }

    /// The effective value of a parameter as text; empty if the parameter doesn't apply.
    pub fn shown(&self, key: Key) -> String {
        self.job.value(key).map_or_else(String::new, |value| value.to_string())
    }

    /// The mechanism in words: see [`Ends::mechanism`](super::job::Ends::mechanism).
    pub fn mechanism(&self) -> String {
        match (&self.job, self.job.ends()) {
            (_, Some(ends)) => ends.mechanism(),
            (Job::Lines(lines), _) => lines.filter.to_string(),
            _ => self.job.link().to_string(),
        }
    }
}
