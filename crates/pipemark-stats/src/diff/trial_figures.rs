//! Reads one figure per run of a trial. Each figure is checked, because a stored file may contain anything.

use std::collections::{BTreeMap, HashSet};

use pipemark_model::{Document, Mode, Record, Sample, Status};

use crate::compare::MAX_RUNS;
use crate::diff::DiffRefusal;

/// The largest plausible throughput, 2^53 bytes (8 PiB) per second.
const MAX_THROUGHPUT: f64 = 9_007_199_254_740_992.0;
/// The largest plausible round trip, one day in nanoseconds.
const MAX_ROUND_TRIP: u64 = 86_400_000_000_000;

/// The figure of each round, by the round's number: bytes per second, or in latency mode the median round trip in
/// nanoseconds.
pub(super) type FiguresByRound = BTreeMap<u32, f64>;

/// Why a trial has no figures; `None` if it was measured and has runs.
pub(super) fn reason_unmeasured(record: &Record) -> Option<String> {
    let because = |what: &str| match &record.reason {
        Some(reason) => format!("{what}: {reason}"),
        None => what.to_owned(),
    };
    match record.status {
        Status::Skipped => Some(because("skipped")),
        Status::Failed => Some(because("failed")),
        Status::Ok if record.verified == Some(false) => Some("its data did not verify".to_owned()),
        Status::Ok if record.samples.is_empty() => Some("it has no runs".to_owned()),
        Status::Ok => None,
    }
}

/// The figures of a trial that was measured. `whose` names the trial in error messages.
pub(super) fn figures(record: &Record, whose: &str) -> Result<FiguresByRound, DiffRefusal> {
    if record.samples.len() > MAX_RUNS {
        return Err(DiffRefusal(format!(
            "{whose}: {} runs are too many to compare; measure with at most --runs {MAX_RUNS}",
            record.samples.len()
        )));
    }
    checked_figures(record, whose)
}

/// As [`figures`], for any number of runs.
fn checked_figures(record: &Record, whose: &str) -> Result<FiguresByRound, DiffRefusal> {
    let damaged = |what: String| DiffRefusal(format!("{whose}: {what}; the file is damaged"));
    let mut figures = FiguresByRound::new();
    for sample in &record.samples {
        let figure = match record.job.mode() {
            Mode::Throughput => throughput(sample),
            Mode::Latency => round_trip(sample),
        };
        let figure = figure.map_err(|what| damaged(format!("the run of round {} {what}", sample.round)))?;
        if figures.insert(sample.round, figure).is_some() {
            return Err(damaged(format!("it has two runs of round {}", sample.round)));
        }
    }
    Ok(figures)
}

/// Checks that the figures of a document are possible, and that no trial and no round occurs twice. A document from a
/// file may contain anything.
///
/// # Errors
/// The first fault, as a message for the user.
pub fn check(document: &Document) -> Result<(), DiffRefusal> {
    let mut seen = HashSet::new();
    for record in &document.trials {
        let id = record.job.id();
        if reason_unmeasured(record).is_none() {
            checked_figures(record, &format!("trial '{id}'"))?;
        }
        if let Some((experiment, id)) = seen.replace((record.experiment.as_str(), id)) {
            return Err(DiffRefusal(format!(
                "it has several trials for '{id}' of the experiment '{experiment}'; the file is damaged"
            )));
        }
    }
    Ok(())
}

fn throughput(sample: &Sample) -> Result<f64, String> {
    let figure = sample.throughput();
    match figure.is_finite() && figure > 0.0 && figure <= MAX_THROUGHPUT {
        true => Ok(figure),
        false => Err(format!("moved {} bytes in {} ns, which is impossible", sample.bytes, sample.ns)),
    }
}

fn round_trip(sample: &Sample) -> Result<f64, String> {
    match sample.latency.as_ref().map(|latency| latency.p50) {
        Some(ns @ 1..=MAX_ROUND_TRIP) => Ok(ns as f64),
        Some(ns) => Err(format!("has a median round trip of {ns} ns, which is impossible")),
        None => Err("has no round trips, although it is a latency trial".to_owned()),
    }
}
