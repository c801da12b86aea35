//! Lists of the history: its measurements, its trials, and one trial over time.

use std::collections::BTreeSet;

use jiff::tz::TimeZone;

use pipemark_console::verdict::style;
use pipemark_model::{Document, Estimate, Record, Unit, digits, neutral, signed_percent};
use pipemark_show::{Cell, Column, Fit, Note, Sheet, Style, Table};
use pipemark_stats::changes::MIN_SESSIONS;
use pipemark_stats::compare::Comparison;
use pipemark_stats::sessions::Spread;
use pipemark_stats::verdict::Verdict;

use crate::store::{Entry, EntryOutcome, Id, KnownTrial};

/// A row for each measurement. `all` is the number of measurements in the history.
pub fn measurements(entries: &[Entry], all: usize) -> Sheet {
    let counted = |entry: &Entry| match (entry.measured, entry.trials) {
        (measured, trials) if measured == trials => trials.to_string(),
        (measured, trials) => format!("{measured}/{trials}"),
    };
    let outcome = |entry: &Entry| match (entry.outcome, Cell::text(entry.outcome.to_string())) {
        // The text format doesn't show a successful outcome.
        (EntryOutcome::Ok, _) => Cell::data(Some("ok")),
        (EntryOutcome::Partial, outcome) => outcome.style(Style::Caution),
        (EntryOutcome::Failed | EntryOutcome::NotVerified, outcome) => outcome.style(Style::Failure),
    };
    let wrapped = |key, heading| Column::words(key, heading).fit(Fit::Wrapped);
    let table = Table::of(entries)
        .column(Column::figures("id", "id"), id)
        .column(wrapped("started", "when"), started)
        .column(wrapped("suite", "suite"), |entry| Cell::text(&entry.suite))
        .column(Column::words("label", "label").fit(Fit::Elastic), label)
        .column(Column::words("host", "host").fit(Fit::Optional), |entry| Cell::text(&entry.host))
        .column(Column::figures("measured", "trials"), |entry| Cell::of(counted(entry), entry.measured))
        .column(Column::words("outcome", "outcome"), outcome)
        .column(wrapped("headline", "figures"), |entry| {
            // Only the first clause of the headline, which is a sentence, fits the list.
            let clause = entry.headline.split([':', ';']).next().unwrap_or_default();
            Cell::of(clause, entry.headline.as_str())
        })
        .data("trials", |entry| Some(entry.trials))
        .data("title", |entry| Some(entry.title.as_str()))
        .data("kernel", |entry| Some(entry.kernel.as_str()))
        .data("cpu", |entry| Some(entry.cpu.as_str()))
        .data("version", |entry| Some(entry.version.as_str()));
    let mut sheet = Sheet::default();
    sheet.blocks.push(pipemark_show::Block::Grid(table.grid()));
    let rest = (entries.len() < all)
        .then(|| format!("{} of {all} runs; 'pipemark history --limit 0' lists all runs", entries.len()));
    sheet.notes(rest.map(Note::plain));
    sheet
}

fn id(entry: &Entry) -> Cell {
    Cell::of(entry.id.to_string(), entry.id.number())
}

/// The start, in local time.
fn started(entry: &Entry) -> Cell {
    let local = entry.started.to_zoned_datetime(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string();
    Cell::of(local, entry.started.to_string())
}

fn label(entry: &Entry) -> Cell {
    entry.label.as_ref().map_or_else(Cell::default, Cell::text)
}

/// The trials of several sessions. A trial has one figure per session, estimated from its runs.
pub fn sessions(documents: &[&Document]) -> Sheet {
    let figures = |record: &Record| -> Vec<f64> {
        let same = |other: &&Record| other.experiment == record.experiment && other.job == record.job;
        let of = |document: &&Document| Some(document.trials.iter().find(same)?.estimate.as_ref()?.headline().median);
        documents.iter().filter_map(of).filter(|figure| *figure > 0.0).collect()
    };
    let records = documents.iter().take(1).flat_map(|document| &document.trials);
    let trials: Vec<(&Record, Vec<f64>)> = records.map(|record| (record, figures(record))).collect();
    let logs = |figures: &[f64]| figures.iter().map(|figure| figure.ln()).collect::<Vec<_>>();
    let unit_of = |record: &Record| record.job.mode().figure().0;
    let common = |unit: Unit| {
        unit.common(trials.iter().filter(|own| unit_of(own.0) == unit).flat_map(|(_, figures)| figures.iter().copied()))
    };
    let shown = |(record, figures): &(&Record, Vec<f64>), of: &dyn Fn(&[f64]) -> f64| {
        let figure = (!figures.is_empty()).then(|| of(figures));
        figure.map_or_else(Cell::default, |figure| Cell::of(common(unit_of(record)).show(figure), figure))
    };
    let mean = |figures: &[f64]| (logs(figures).iter().sum::<f64>() / figures.len() as f64).exp();
    let least = |figures: &[f64]| figures.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = |figures: &[f64]| figures.iter().copied().fold(0.0, f64::max);
    let differ = |figures: &[f64]| {
        let spread = Spread::within([logs(figures).as_slice()]).map(|spread| spread.variance.sqrt().exp_m1());
        spread.map_or_else(Cell::default, |by| Cell::of(format!("{} %", digits(by * 100.0)), by))
    };
    let title = |record: &Record| {
        let titled = documents[0].experiments.iter().find(|experiment| experiment.name == record.experiment);
        titled.map_or(&record.experiment, |experiment| &experiment.title).clone()
    };
    let table = Table::of(&trials)
        .column(Column::words("trial", "trial").fit(Fit::Wrapped), |(record, _)| Cell::text(&record.name))
        .column(Column::figures("sessions", "sessions"), |(_, all)| Cell::of(all.len().to_string(), all.len()))
        .column(Column::figures("figure", "figure"), |own| shown(own, &mean))
        .column(Column::figures("least", "least"), |own| shown(own, &least))
        .column(Column::figures("greatest", "greatest"), |own| shown(own, &greatest))
        .column(Column::figures("differ", "sessions differ by"), |(_, figures)| differ(figures));
    let label = documents.first().and_then(|document| document.label.as_ref());
    let runs = label.map_or_else(
        || "all runs with the same --label".to_owned(),
        |label| format!("all runs labelled '{}'", neutral(label)),
    );
    let note = Note::plain(format!(
        "'sessions differ by' is one standard deviation. 'pipemark compare' treats {runs} as sessions of one measurement."
    ));
    Sheet::of(table.grouped(|(record, _)| title(record), String::clone), [note])
}

/// The known trials, with the latest change of each.
pub fn trials(trials: &[(KnownTrial, Vec<TrendPoint>)]) -> Sheet {
    let newest = |points: &[TrendPoint]| {
        let last = points.iter().rev().find(|point| point.change.is_some())?;
        last.change.map(|change| (last.entry.id, change))
    };
    let latest_change = |points: &[TrendPoint]| {
        newest(points).map_or_else(Cell::default, |(id, change)| {
            let words = change.verdict.name();
            let text = format!("{words} {} % in run {id}", signed_percent(change.change));
            Cell::of(text, change.verdict.name()).style(style(change.verdict))
        })
    };
    let table = Table::of(trials)
        .column(Column::figures("runs", "runs"), |(trial, _)| Cell::of(trial.runs.to_string(), trial.runs))
        .column(Column::words("trial", "trial").fit(Fit::Elastic), |(trial, _)| Cell::text(&trial.key))
        .column(Column::words("verdict", "latest change"), |(_, points)| latest_change(points))
        .data("change", |(_, points)| Some(newest(points)?.1.change))
        .data("since", |(_, points)| Some(newest(points)?.0.number()));
    let text = "Show one trial: pipemark history trend block=64k send=write, or its whole key in quotes.";
    Sheet::of(table.grid(), [Note::plain(text)])
}

/// The result of one run for a trial.
#[derive(Debug)]
pub struct TrendPoint {
    /// The entry of the run.
    pub entry: Entry,
    /// The trial's figure in this run.
    pub estimate: Estimate,
    /// The change of the series at this run, comparing this run and later ones with earlier ones; `None` if it didn't
    /// change.
    pub change: Option<Comparison>,
    /// The previous run on the same machine by the same method; `None` for the first.
    pub before: Option<Id>,
    /// How this run's environment differs from that of `before`.
    pub differs: Vec<String>,
    /// The number of runs in the series of this run.
    pub series: usize,
}

/// A sheet of one trial over time, in bytes per second or nanoseconds.
pub fn trend(key: &str, unit: Unit, points: &[TrendPoint]) -> Sheet {
    let machines = BTreeSet::from_iter(points.iter().map(|point| (&point.entry.host, &point.entry.cpu)));
    let ends =
        |estimate: &Estimate| (estimate.low.unwrap_or(estimate.median), estimate.high.unwrap_or(estimate.median));
    let most = points.iter().map(|point| ends(&point.estimate).1).fold(0.0, f64::max);
    let interval = |point: &TrendPoint| {
        let (low, high) = ends(&point.estimate);
        Cell::bar(low / most, high / most)
    };
    let (figure, unit_name) = if unit == Unit::Nanoseconds { ("round trip", "ns") } else { ("throughput", "bytes/s") };
    let in_common = unit.common(points.iter().map(|point| point.estimate.median));
    let median = |point: &TrendPoint| Cell::of(in_common.show(point.estimate.median), point.estimate.median);
    let host = Column::words("host", if machines.len() > 1 { "host" } else { "" }).fit(Fit::Elastic);
    let table = Table::of(points)
        .column(Column::words("started", "when"), |point| started(&point.entry))
        .column(Column::figures("id", "id"), |point| id(&point.entry))
        .column(Column::words("label", "label").fit(Fit::Elastic), |point| label(&point.entry))
        .column(Column::figures("median", figure), median)
        .column(Column::figures("runs", "runs"), |one| Cell::of(one.estimate.runs.to_string(), one.estimate.runs))
        .column(Column::bars("95\u{a0}% interval, from 0"), interval)
        .column(Column::figures("change", "change"), |one| one.change.as_ref().map_or_else(Cell::default, change))
        .data("verdict", |point| Some(point.change.as_ref()?.verdict.name()))
        .data("change_low", |point| point.change.as_ref()?.low)
        .data("change_high", |point| point.change.as_ref()?.high)
        .data("differs", |point| Some(point.differs.clone()))
        .data("low", |point| point.estimate.low)
        .data("high", |point| point.estimate.high)
        .data("unit", |_| Some(unit_name))
        .column(host, |point| Cell::text(&point.entry.host))
        .data("suite", |point| Some(point.entry.suite.as_str()))
        .data("kernel", |point| Some(point.entry.kernel.as_str()))
        .data("version", |point| Some(point.entry.version.as_str()));
    let mut sheet = Sheet::default();
    sheet.heading(2, key);
    sheet.grid(table.grid());
    let turned = points.iter().filter_map(|point| Some((point, point.change.as_ref()?, point.before?)));
    let turned = turned.map(|(point, change, before)| {
        let also = match point.differs.as_slice() {
            [] => "no other recorded property changed".to_owned(),
            differs => format!("also changed: {}", differs.join(", ")),
        };
        format!(
            "Runs from {} on are {} than runs up to {before}, by {} % ({} to {} %); {also}.",
            point.entry.id,
            change.verdict.name(),
            signed_percent(change.change),
            change.low.map_or_else(String::new, signed_percent),
            change.high.map_or_else(String::new, signed_percent)
        )
    });
    let mut notes: Vec<String> = turned.collect();
    let news = points.iter().filter(|point| !point.differs.is_empty() && point.change.is_none());
    notes
        .extend(news.map(|point| format!("Run {} is the first with {}.", point.entry.id, point.differs.join(" and "))));
    let longest = points.iter().map(|point| point.series).max().unwrap_or(0);
    if longest < MIN_SESSIONS {
        notes.push(format!(
            "Runs on one machine: {longest}, too few to find a change; at least {MIN_SESSIONS} are needed."
        ));
    } else if points.iter().all(|point| point.change.is_none()) {
        notes.push("No lasting change was found.".to_owned());
    }
    sheet.notes(notes.into_iter().map(Note::plain));
    sheet
}

fn change(Comparison { change, verdict, .. }: &Comparison) -> Cell {
    let words = match verdict {
        Verdict::Better | Verdict::Worse => format!("{} {:+.1} %", verdict.name(), change * 100.0),
        Verdict::Same | Verdict::Inconclusive => verdict.name().to_owned(),
    };
    let style = if *verdict == Verdict::Inconclusive { Style::Aside } else { style(*verdict) };
    Cell::of(words, *change).style(style)
}
