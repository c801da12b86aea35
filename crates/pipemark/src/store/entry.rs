//! The entries of a list of runs, and the filter that selects them.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;

use pipemark_model::{Document, Mode, Nanos, Record, SavedCommand, Status, Throughput};
use pipemark_stats::estimate::median;
use pipemark_tune::result::ExperimentResult;
use pipemark_watch::PipelineReport;

use crate::store::HistoryError;

/// The number of a run in the history. The numbers of deleted runs aren't reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(pub(super) i64);

impl Id {
    /// The id as a number.
    pub fn number(self) -> i64 {
        self.0
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Id {
    type Err = String;

    fn from_str(text: &str) -> Result<Id, String> {
        let number = text.trim_start_matches('#').parse().ok().filter(|&number: &i64| number > 0);
        number.map(Id).ok_or_else(|| format!("'{text}' isn't the number of a run; 'pipemark history' lists the runs"))
    }
}

/// The overall outcome of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryOutcome {
    /// Every trial that can run here was measured.
    Ok,
    /// The run was ended early.
    Partial,
    /// A trial failed, or none could run.
    Failed,
    /// Verification found wrong bytes.
    NotVerified,
}

pipemark_model::named!(EntryOutcome: Ok Partial Failed NotVerified);

/// A run, as shown in lists.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The number of the run.
    pub id: Id,
    /// When the run began.
    pub started: Timestamp,
    /// The suite or suites, or the verb.
    pub suite: String,
    /// The suite's title.
    pub title: String,
    /// The label that the user gave; `None` without one.
    pub label: Option<String>,
    /// The machine's name.
    pub host: String,
    /// The machine's kernel.
    pub kernel: String,
    /// The machine's processor.
    pub cpu: String,
    /// The version of pipemark that made the measurement.
    pub version: String,
    /// The number of trials, without the memory-copy limit.
    pub trials: u32,
    /// The number of trials with figures.
    pub measured: u32,
    /// The overall outcome of the run.
    pub outcome: EntryOutcome,
    /// The best figures of the run, as text.
    pub headline: String,
}

impl Entry {
    /// The entry of a document that isn't saved yet and so has no number.
    ///
    /// # Errors
    /// If the document does not say when it was measured.
    pub fn of(document: &Document) -> Result<Entry, HistoryError> {
        let no_time = || {
            let text = document.started.escape_debug();
            HistoryError::new(format!("can't save this document: its start time '{text}' isn't valid"))
        };
        let started: Timestamp = document.started.parse().map_err(|_| no_time())?;
        // Nanoseconds since 1970 must fit an SQLite integer, which they do until 2262.
        i64::try_from(started.as_nanosecond()).map_err(|_| no_time())?;
        let trials = || document.requested();
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Ok(Entry {
            id: Id(0),
            started,
            suite: document.suite.clone(),
            title: document.title.clone(),
            label: document.label.clone(),
            host: document.host.name.clone(),
            kernel: document.host.kernel.clone(),
            cpu: document.host.cpu.clone(),
            version: document.version.clone(),
            trials: count(trials().count()),
            measured: count(trials().filter(|record| record.estimate.is_some()).count()),
            outcome: outcome(document),
            headline: of_pipeline(document).unwrap_or_else(|| headline(trials())),
        })
    }
}

/// The result for a pipeline of the user's own; `None` for other documents.
fn of_pipeline(document: &Document) -> Option<String> {
    let watched = document.watched.as_ref().and_then(|watched| PipelineReport::from_record(watched).ok());
    let tuned = document.tuned.as_ref().and_then(|tuned| ExperimentResult::from_record(tuned).ok());
    let commands = || {
        let time = |command: &SavedCommand| {
            let median = median(&command.figures("time", true)?.concat())?;
            Some(format!("{} {}", command.name, Nanos(median.max(0.0).round() as u64)))
        };
        (!document.commands.is_empty())
            .then(|| document.commands.iter().filter_map(time).collect::<Vec<_>>().join(", "))
    };
    watched.map(|watched| watched.verdict.text).or_else(|| tuned.map(|tuned| tuned.conclusion())).or_else(commands)
}

fn outcome(document: &Document) -> EntryOutcome {
    let any = |test: fn(&Record) -> bool| document.trials.iter().any(test);
    if any(|record| record.verified == Some(false)) {
        EntryOutcome::NotVerified
    } else if any(|record| record.status == Status::Failed)
        || !any(|record| record.status == Status::Ok) && !document.is_of_pipeline()
    {
        EntryOutcome::Failed
    } else if document.partial {
        EntryOutcome::Partial
    } else {
        EntryOutcome::Ok
    }
}

/// The highest throughput and the lowest median round trip, as text, among links that transfer bytes.
fn headline<'a>(trials: impl Iterator<Item = &'a Record> + Clone) -> String {
    let of = |mode: Mode| {
        let figures = trials.clone().filter(move |record| record.job.mode() == mode);
        let figures = figures.filter(|record| !record.job.link().is_null());
        figures.filter_map(|record| Some(record.estimate.as_ref()?.headline().median)).collect::<Vec<f64>>()
    };
    let (streams, trips) = (of(Mode::Throughput), of(Mode::Latency));
    let mut parts = Vec::new();
    if let Some(&most) = streams.iter().max_by(|one, other| one.total_cmp(other)) {
        parts.push(format!("{}{}", if streams.len() > 1 { "up to " } else { "" }, Throughput(most)));
    }
    if let Some(&least) = trips.iter().min_by(|one, other| one.total_cmp(other)) {
        // A round trip in nanoseconds is never negative and far below 2^64.
        parts.push(format!("{}{}", if trips.len() > 1 { "from " } else { "" }, Nanos(least.round() as u64)));
    }
    parts.join(", ")
}

/// Selects runs. `None` selects all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// One of the run's suites, or its verb.
    pub suite: Option<String>,
    /// The label, as a pattern with `*`, `?` and `[…]` as in a shell.
    pub label: Option<String>,
    /// The machine's name, as the same kind of pattern.
    pub host: Option<String>,
    /// The earliest start.
    pub since: Option<Timestamp>,
    /// The key of a trial that the run has measured.
    pub trial: Option<String>,
    /// The maximum number of runs to select. The newest are selected.
    pub limit: Option<u32>,
}
