//! The history: its measurements, its trials, and one trial over time.

use std::collections::BTreeSet;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::comparison::{style, verdict_in_words, word};
use super::{Cell, Column, Fit, Grid, Note, Sheet, Style};
use crate::model::{Estimate, Unit};
use crate::stats::compare::Comparison;
use crate::stats::verdict::Verdict;
use crate::store::{Entry, KnownTrial, Outcome};

/// A line for each measurement, of `all` that there are.
pub fn measurements(entries: &[Entry], all: usize) -> Sheet {
    let columns = vec![
        Column::figures("id", "id"),
        Column::words("started", "when"),
        Column::words("suite", "suite").fit(Fit::Elastic),
        Column::words("label", "label").fit(Fit::Elastic),
        Column::words("host", "host").fit(Fit::Elastic),
        Column::figures("measured", "trials"),
        Column::words("outcome", "outcome"),
        Column::words("headline", "figures").fit(Fit::Elastic),
        Column::data("trials"),
        Column::data("title"),
        Column::data("kernel"),
        Column::data("cpu"),
        Column::data("version"),
    ];
    let row = |entry: &Entry| {
        let counted = match (entry.measured, entry.trials) {
            (measured, trials) if measured == trials => trials.to_string(),
            (measured, trials) => format!("{measured}/{trials}"),
        };
        let outcome = Cell::text(entry.outcome.to_string());
        vec![
            Cell::of(entry.id.to_string(), entry.id.number()),
            Cell::of(local_time(entry.started), entry.started.to_string()),
            Cell::text(&entry.suite),
            entry.label.as_ref().map_or_else(Cell::default, Cell::text),
            Cell::text(&entry.host),
            Cell::of(counted, entry.measured),
            match entry.outcome {
                // What is as it should be needs no word.
                Outcome::Ok => Cell::data(Some("ok")),
                Outcome::Partial => outcome.style(Style::Caution),
                Outcome::Failed | Outcome::NotVerified => outcome.style(Style::Failure),
            },
            Cell::text(&entry.headline),
            Cell::data(Some(entry.trials)),
            Cell::data(Some(entry.title.as_str())),
            Cell::data(Some(entry.kernel.as_str())),
            Cell::data(Some(entry.cpu.as_str())),
            Cell::data(Some(entry.version.as_str())),
        ]
    };
    let mut sheet = Sheet::default();
    sheet.blocks.push(super::Block::Grid(Grid::new(columns, entries.iter().map(row).collect())));
    let rest = (entries.len() < all).then(|| format!("{} of {all}; --limit 0 and no filter list all", entries.len()));
    sheet.notes(rest.map(Note::plain));
    sheet
}

/// The trials that there are.
pub fn trials(trials: &[KnownTrial]) -> Sheet {
    let columns = vec![Column::figures("runs", "runs"), Column::words("trial", "trial").fit(Fit::Elastic)];
    let row = |trial: &KnownTrial| vec![Cell::of(trial.runs.to_string(), trial.runs), Cell::text(&trial.key)];
    let mut sheet = Sheet::default();
    sheet.grid(Grid::new(columns, trials.iter().map(row).collect()));
    let text = "Choose one by parameters, such as block=64k send=write, or by its whole key in quotes.";
    sheet.notes([Note::plain(text)]);
    sheet
}

/// What one run says about a trial.
#[derive(Debug)]
pub struct TrendPoint {
    /// The run.
    pub entry: Entry,
    /// The figure.
    pub estimate: Estimate,
    /// Against the run before it on the same machine.
    pub change: Option<Comparison>,
    /// What is not as it was in that run.
    pub differs: Vec<String>,
}

/// One trial over time, in bytes per second or nanoseconds.
pub fn trend(key: &str, unit: Unit, points: &[TrendPoint]) -> Sheet {
    let machines: BTreeSet<_> = points.iter().map(|point| (&point.entry.host, &point.entry.cpu)).collect();
    let mut columns = vec![
        Column::words("started", "when"),
        Column::figures("id", "id"),
        Column::words("label", "label").fit(Fit::Elastic),
        Column::figures("median", if unit == Unit::Nanoseconds { "round trip" } else { "throughput" }),
        Column::figures("runs", "runs"),
        Column::bars("95\u{a0}% interval, from 0"),
        Column::figures("change", "change"),
    ];
    columns.extend(["verdict", "change_low", "change_high", "differs", "low", "high", "unit"].map(Column::data));
    columns.push(Column::words("host", if machines.len() > 1 { "host" } else { "" }).fit(Fit::Elastic));
    columns.extend(["suite", "kernel", "version"].map(Column::data));
    let ends =
        |estimate: &Estimate| (estimate.low.unwrap_or(estimate.median), estimate.high.unwrap_or(estimate.median));
    let most = points.iter().map(|point| ends(&point.estimate).1).fold(0.0, f64::max);
    let row = |point: &TrendPoint| {
        let TrendPoint { entry, estimate, change, differs } = point;
        let (low, high) = ends(estimate);
        let mut row = vec![
            Cell::of(local_time(entry.started), entry.started.to_string()),
            Cell::of(entry.id.to_string(), entry.id.number()),
            entry.label.as_ref().map_or_else(Cell::default, Cell::text),
            Cell::of(unit.show(estimate.median), estimate.median),
            Cell::of(estimate.runs.to_string(), estimate.runs),
            Cell::bar(low / most, high / most),
        ];
        row.extend(verdict(change.as_ref()));
        row.extend([
            Cell::data(Some(differs.clone())),
            Cell::data(estimate.low),
            Cell::data(estimate.high),
            Cell::data(Some(if unit == Unit::Nanoseconds { "ns" } else { "bytes/s" })),
            Cell::text(&entry.host),
            Cell::data(Some(entry.suite.as_str())),
            Cell::data(Some(entry.kernel.as_str())),
            Cell::data(Some(entry.version.as_str())),
        ]);
        row
    };
    let mut sheet = Sheet::default();
    sheet.heading(2, key);
    sheet.grid(Grid::new(columns, points.iter().map(row).collect()));
    let news = points.iter().filter(|point| !point.differs.is_empty());
    let news = news.map(|point| format!("Run {} is the first with {}.", point.entry.id, point.differs.join(" and ")));
    let legend = "Each run against the one before it on the same machine: better and worse are certain at 95 %, same is \
                  within 3 %.";
    sheet.notes(news.chain([legend.to_owned()]).map(Note::plain));
    sheet
}

/// The cells change, verdict, change_low and change_high.
fn verdict(change: Option<&Comparison>) -> [Cell; 4] {
    let Some(Comparison { change, low, high, verdict, .. }) = change else { return Default::default() };
    let words = match verdict {
        Verdict::Better | Verdict::Worse => format!("{} {:+.1} %", verdict_in_words(*verdict), change * 100.0),
        Verdict::Same | Verdict::CantTell => verdict_in_words(*verdict).to_owned(),
    };
    let style = if *verdict == Verdict::CantTell { Style::Aside } else { style(*verdict) };
    [Cell::of(words, *change).style(style), Cell::data(Some(word(*verdict))), Cell::data(*low), Cell::data(*high)]
}

/// A time as people here read it.
fn local_time(time: Timestamp) -> String {
    time.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string()
}
