//! Comma-separated values: a heading and a line for each row.

use std::{io, iter};

use pipemark_model::{Document, Figure, Key, Record, Sample, Unit};
use pipemark_show::{csv_field, csv_text};

/// A document as CSV: a row for each trial, with its parameters and estimates in plain bytes, nanoseconds and bytes per
/// second. Single runs are only in the JSON.
///
/// # Errors
/// If the number of fields in a row differs from the number of columns, which is a bug.
pub fn csv(document: &Document) -> io::Result<String> {
    csv_text(iter::once(columns()).chain(document.trials.iter().map(|record| row(document, record))))
}

/// The columns: facts, parameters and figures, as described in docs/outputs.md.
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

/// Fields that are neither parameters nor figures. A field without a value is empty. `memory_copy` and `published` are
/// in bytes per second; `bytes`, `ns`, `wall_ns` and `round_trips` are sums over all runs; granted sizes are those of
/// the first run, in bytes.
const FACTS: [(&str, Fact); 32] = [
    ("suite", |document, _| csv_field(&document.suite)),
    ("started", |document, _| csv_field(&document.started)),
    ("host", |document, _| csv_field(&document.host.name)),
    ("experiment", |_, record| csv_field(&record.experiment)),
    ("reference", |_, record| record.reference.to_string()),
    ("id", |_, record| csv_field(&record.id)),
    ("name", |_, record| csv_field(&record.name)),
    ("status", |_, record| record.status.to_string()),
    ("reason", |_, record| csv_field(record.reason.as_deref().unwrap_or_default())),
    ("verified", |_, record| optional(record.verified)),
    ("touched", |_, record| record.touched.to_string()),
    ("copies", |_, record| optional(record.copies)),
    ("written", |_, record| optional(record.written)),
    ("stopped", |_, record| optional(record.stopped)),
    ("runs", |_, record| record.samples.len().to_string()),
    ("bytes", |_, record| sum(record, |sample| sample.bytes)),
    ("ns", |_, record| sum(record, |sample| sample.ns)),
    ("wall_ns", |_, record| sum(record, |sample| sample.wall_ns)),
    ("user_ns", |_, record| sum(record, |sample| sample.user_ns)),
    ("sys_ns", |_, record| sum(record, |sample| sample.sys_ns)),
    ("round_trips", |_, record| match record.job.is_latency() {
        true => sum(record, |sample| sample.latency.as_ref().map_or(0, |latency| latency.round_trips)),
        false => String::new(),
    }),
    ("capacity_granted", |_, record| first(record, |sample| sample.capacity_granted)),
    ("send_buffer", |_, record| first(record, |sample| sample.send_buffer)),
    ("recv_buffer", |_, record| first(record, |sample| sample.recv_buffer)),
    ("message_limit", |_, record| first(record, |sample| sample.message_limit)),
    ("runtime", |_, record| {
        let entrant = record.samples.first().and_then(|sample| sample.entrant.as_ref());
        csv_field(entrant.map_or("", |entrant| &entrant.runtime))
    }),
    ("baseline", |_, record| csv_field(record.baseline.as_deref().unwrap_or_default())),
    ("memory_copy", |document, _| optional(document.memory_copy.map(|copy| copy.median))),
    ("published", |_, record| {
        let known = record.published.as_ref().filter(|published| !published.relative && published.throughput > 0.0);
        optional(known.map(|published| published.throughput))
    }),
    ("published_ns", |_, record| {
        optional(record.published.as_ref().and_then(|published| published.figures.get("elapsed_ns").copied()))
    }),
    ("published_source", |_, record| csv_field(record.published.as_ref().map_or("", |published| &published.source))),
    ("warnings", |_, record| {
        let warnings: Vec<String> = record.warnings.iter().map(ToString::to_string).collect();
        csv_field(&warnings.join(" | "))
    }),
];

fn sum(record: &Record, figure: fn(&Sample) -> u64) -> String {
    let total: u128 = record.samples.iter().map(|sample| u128::from(figure(sample))).sum();
    if record.samples.is_empty() { String::new() } else { total.to_string() }
}

fn first(record: &Record, figure: fn(&Sample) -> Option<u64>) -> String {
    optional(record.samples.first().and_then(figure))
}

fn row(document: &Document, record: &Record) -> Vec<String> {
    let mut row: Vec<String> = FACTS.iter().map(|(_, fact)| fact(document, record)).collect();
    let settings = record.job.settings();
    let about = document.experiments.iter().find(|experiment| experiment.name == record.experiment);
    let is_known = |key: &Key| about.is_none_or(|about| about.is_known(*key));
    let value = |key: Key| settings.get(key).filter(|_| is_known(&key));
    row.extend(Key::iter().map(|key| value(key).map_or_else(String::new, |value| csv_field(&value.plain()))));
    let counts_cpu = || record.samples.iter().any(|sample| sample.user_ns + sample.sys_ns > 0);
    for figure in Figure::iter() {
        let estimate = record.estimate.as_ref().and_then(|estimates| estimates.get(figure));
        let estimate = estimate.filter(|_| about.is_none_or(|about| about.may_have(figure, counts_cpu)));
        row.extend(match estimate {
            Some(e) => [Some(e.median), e.low, e.high, Some(e.min), Some(e.max)].map(optional),
            None => Default::default(),
        });
    }
    row
}

fn optional<T: ToString>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sheet::fixture;

    fn export(document: &Document) -> String {
        csv(document).unwrap()
    }

    #[test]
    fn rows_match_the_stored_file() {
        for (name, document) in fixture::all() {
            fixture::assert_file(&format!("src/sheet/snapshots/{name}.csv"), &export(&document));
        }
    }

    /// The fields of a row by the name of their column.
    type CsvRow = std::collections::HashMap<String, String>;

    fn rows(document: &Document) -> Vec<CsvRow> {
        ::csv::Reader::from_reader(export(document).as_bytes()).deserialize().map(Result::unwrap).collect()
    }

    #[test]
    fn rows_match_their_headings() {
        let document = fixture::quick();
        let rows = rows(&document);
        let at = |row: &CsvRow, name: &str| row[name].clone();
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
        let rows = rows(&document);
        let at = |row: &CsvRow, name: &str| row[name].clone();
        for (row, record) in rows.iter().zip(&document.trials) {
            assert_eq!(at(row, "mode"), record.job.mode().to_string());
            assert_eq!(at(row, "gap_ns").parse().ok(), record.job.settings().gap.map(|gap| gap.0));
            let limit = record.samples.first().and_then(|sample| sample.message_limit);
            assert_eq!(at(row, "message_limit").parse().ok(), limit);
            let figure = |figure| record.estimate.as_ref().and_then(|estimate| estimate.get(figure));
            assert_eq!(at(row, "p50_ns").parse().ok(), figure(Figure::P50).map(|trip| trip.median));
            assert_eq!(at(row, "p99_ns_high").parse().ok(), figure(Figure::P99).and_then(|trip| trip.high));
            assert_eq!(at(row, "round_trips").is_empty(), !record.job.is_latency() || record.samples.is_empty());
        }
    }

    #[test]
    fn no_cell_is_a_formula() {
        let text = export(&fixture::hostile());
        for row in ::csv::Reader::from_reader(text.as_bytes()).records() {
            for cell in &row.unwrap() {
                assert!(!cell.starts_with(['=', '+', '-', '@']), "{cell:?}");
                assert!(!cell.contains(char::is_control), "{cell:?}");
            }
        }
    }
}
