//! One row per trial with the estimates, in plain bytes, nanoseconds and bytes per second. Samples are in the JSON.

use std::io;

use strum::IntoEnumIterator;

use ::csv::{ErrorKind, WriterBuilder};

use crate::model::{Document, Figure, Key, Record, Sample, Unit};

use super::Format;
use super::text::neutral;

/// Comma-separated values, a heading and a row per trial.
#[derive(Debug, Clone, Copy)]
pub struct Csv;

/// The columns: what a record is, its parameters, its samples and its figures. README: docs/outputs.md.
pub fn columns() -> Vec<String> {
    let facts = FACTS.iter().map(|(name, _)| (*name).to_owned());
    let parameters = Key::iter().map(|key| match key.unit() {
        Unit::Nanoseconds => format!("{}_ns", key.field()),
        _ => key.field().to_owned(),
    });
    let figures = Figure::iter()
        .flat_map(|figure| ["", "_low", "_high", "_min", "_max"].map(|end| format!("{}{end}", figure.column())));
    facts.chain(parameters).chain(figures).collect()
}

type Fact = fn(&Document, &Record) -> String;

/// What is neither a parameter nor a figure. Empty where there is nothing. `memory_copy` and `published` are bytes per second;
/// `bytes`, `ns`, `wall_ns` and `round_trips` are sums over `runs`; what the kernel granted is that of the first run, in
/// bytes.
const FACTS: [(&str, Fact); 28] = [
    ("suite", |document, _| words(&document.suite)),
    ("started", |document, _| words(&document.started)),
    ("host", |document, _| words(&document.host.name)),
    ("experiment", |_, record| words(&record.experiment)),
    ("id", |_, record| words(&record.id)),
    ("name", |_, record| words(&record.name)),
    ("status", |_, record| word(&record.status)),
    ("reason", |_, record| words(record.reason.as_deref().unwrap_or_default())),
    ("verified", |_, record| optional(record.verified)),
    ("touched", |_, record| record.touched.to_string()),
    ("stopped", |_, record| record.stopped.as_ref().map(word).unwrap_or_default()),
    ("runs", |_, record| record.samples.len().to_string()),
    ("bytes", |_, record| sum(record, |sample| sample.bytes)),
    ("ns", |_, record| sum(record, |sample| sample.ns)),
    ("wall_ns", |_, record| sum(record, |sample| sample.wall_ns)),
    ("user_ns", |_, record| sum(record, |sample| sample.user_ns)),
    ("sys_ns", |_, record| sum(record, |sample| sample.sys_ns)),
    ("round_trips", |_, record| match record.job.is_round_trip() {
        true => sum(record, |sample| sample.latency.as_ref().map_or(0, |latency| latency.round_trips)),
        false => String::new(),
    }),
    ("capacity_granted", |_, record| first(record, |sample| sample.capacity_granted)),
    ("send_buffer", |_, record| first(record, |sample| sample.send_buffer)),
    ("recv_buffer", |_, record| first(record, |sample| sample.recv_buffer)),
    ("message_limit", |_, record| first(record, |sample| sample.message_limit)),
    ("runtime", |_, record| {
        let entrant = record.samples.first().and_then(|sample| sample.entrant.as_ref());
        words(entrant.map_or("", |entrant| &entrant.runtime))
    }),
    ("baseline", |_, record| words(record.baseline.as_deref().unwrap_or_default())),
    ("memory_copy", |document, _| optional(document.memory_copy.map(|copy| copy.median))),
    ("published", |_, record| optional(record.published.as_ref().map(|published| published.throughput))),
    ("published_source", |_, record| words(record.published.as_ref().map_or("", |published| &published.source))),
    ("warnings", |_, record| {
        let warnings: Vec<String> = record.warnings.iter().map(ToString::to_string).collect();
        words(&warnings.join(" | "))
    }),
];

fn sum(record: &Record, figure: fn(&Sample) -> u64) -> String {
    let total: u128 = record.samples.iter().map(|sample| u128::from(figure(sample))).sum();
    if record.samples.is_empty() { String::new() } else { total.to_string() }
}

fn first(record: &Record, figure: fn(&Sample) -> Option<u64>) -> String {
    optional(record.samples.first().and_then(figure))
}

impl Format for Csv {
    fn name(&self) -> &'static str {
        "CSV"
    }

    fn write(&self, document: &Document, out: &mut dyn io::Write) -> io::Result<()> {
        let mut writer = WriterBuilder::new().from_writer(out);
        writer.write_record(columns()).map_err(plain)?;
        for record in &document.trials {
            writer.write_record(row(document, record)).map_err(plain)?;
        }
        writer.flush()
    }
}

/// The error of `out` itself: the crate's own conversion hides its kind, and a reader that left is told by its kind.
pub(super) fn plain(error: ::csv::Error) -> io::Error {
    match error.into_kind() {
        ErrorKind::Io(error) => error,
        other => io::Error::new(io::ErrorKind::InvalidData, format!("{other:?}")),
    }
}

fn row(document: &Document, record: &Record) -> Vec<String> {
    let mut row: Vec<String> = FACTS.iter().map(|(_, fact)| fact(document, record)).collect();
    let settings = record.job.settings();
    row.extend(Key::iter().map(|key| settings.get(key).map_or_else(String::new, |value| words(&value.plain()))));
    for figure in Figure::iter() {
        let estimate = record.estimate.as_ref().and_then(|estimates| estimates.get(figure));
        row.extend(match estimate {
            Some(e) => [Some(e.median), e.low, e.high, Some(e.min), Some(e.max)].map(optional),
            None => Default::default(),
        });
    }
    row
}

pub(super) fn optional<T: ToString>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// The word that JSON has for an enum's value.
pub(super) fn word<T: serde::Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        other => unreachable!("a plain enum is a word in JSON, not {other:?}"),
    }
}

/// Text from elsewhere: on one line, and with an apostrophe where a spreadsheet would take it for a formula.
pub(super) fn words(text: &str) -> String {
    let text = neutral(text);
    if text.starts_with(['=', '+', '-', '@', '|', '%', '\'']) { format!("'{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;

    fn written(document: &Document) -> String {
        let mut out = Vec::new();
        Csv.write(document, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn rows_are_as_kept() {
        for (name, document) in fixture::all() {
            fixture::assert_file(&format!("src/show/snapshots/{name}.csv"), &written(&document));
        }
    }

    #[test]
    fn a_row_has_what_its_heading_says() {
        let document = fixture::quick();
        let text = written(&document);
        let mut reader = ::csv::Reader::from_reader(text.as_bytes());
        let headings = reader.headers().unwrap().clone();
        let at = |row: &::csv::StringRecord, name: &str| {
            row[headings.iter().position(|heading| heading == name).unwrap()].to_owned()
        };
        let rows: Vec<_> = reader.records().map(Result::unwrap).collect();
        assert_eq!(rows.len(), document.trials.len());
        for (row, record) in rows.iter().zip(&document.trials) {
            assert_eq!(at(row, "block"), record.job.block().unwrap().0.to_string());
            assert_eq!(at(row, "warnings").is_empty(), record.warnings.is_empty());
            let Some(estimate) = &record.estimate else { continue };
            assert_eq!(at(row, "throughput").parse::<f64>().unwrap(), estimate.throughput().median);
            assert_eq!(at(row, "cpu_seconds_per_gib_max").parse::<f64>().unwrap(), estimate.cpu_seconds_per_gib().max);
            assert_eq!(at(row, "memory_copy").parse::<f64>().unwrap(), document.memory_copy.unwrap().median);
            assert_eq!(at(row, "ratio").parse().ok(), estimate.ratio().map(|ratio| ratio.median));
        }
    }

    #[test]
    fn round_trips_have_their_columns() {
        let document = fixture::ipc();
        let text = written(&document);
        let mut reader = ::csv::Reader::from_reader(text.as_bytes());
        let headings = reader.headers().unwrap().clone();
        let at = |row: &::csv::StringRecord, name: &str| {
            row[headings.iter().position(|heading| heading == name).unwrap()].to_owned()
        };
        let rows: Vec<_> = reader.records().map(Result::unwrap).collect();
        for (row, record) in rows.iter().zip(&document.trials) {
            assert_eq!(at(row, "mode"), record.job.mode().to_string());
            assert_eq!(at(row, "gap_ns").parse().ok(), record.job.settings().gap.map(|gap| gap.0));
            let limit = record.samples.first().and_then(|sample| sample.message_limit);
            assert_eq!(at(row, "message_limit").parse().ok(), limit);
            let figure = |figure| record.estimate.as_ref().and_then(|estimate| estimate.get(figure));
            assert_eq!(at(row, "p50_ns").parse().ok(), figure(Figure::P50).map(|trip| trip.median));
            assert_eq!(at(row, "p99_ns_high").parse().ok(), figure(Figure::P99).and_then(|trip| trip.high));
            assert_eq!(at(row, "round_trips").is_empty(), !record.job.is_round_trip() || record.samples.is_empty());
        }
    }

    #[test]
    fn no_cell_is_a_formula() {
        let text = written(&fixture::hostile());
        for row in ::csv::Reader::from_reader(text.as_bytes()).records() {
            for cell in &row.unwrap() {
                assert!(!cell.starts_with(['=', '+', '-', '@']), "{cell:?}");
                assert!(!cell.contains(char::is_control), "{cell:?}");
            }
        }
    }
}
