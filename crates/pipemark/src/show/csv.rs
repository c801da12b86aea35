//! One row per trial with the estimates, in plain bytes, nanoseconds and bytes per second. Samples are in the JSON.

use std::io;

use ::csv::{ErrorKind, WriterBuilder};

use crate::model::{Capacity, Document, Estimate, Record, Volume};

use super::Format;
use super::text::neutral;

/// Comma-separated values, a heading and a row per trial.
#[derive(Debug, Clone, Copy)]
pub struct Csv;

/// The columns, in order. New ones are added at the end.
///
/// Empty where there is nothing: `read_block` equal to `block`, figures of a trial that was not measured, an interval
/// that too few runs allow. `capacity` is what was asked for, bytes or a word; `capacity_granted` is what the first run
/// got, in bytes. `throughput*`, `memory_copy` and `published` are bytes per second, `cpu_seconds_per_gib*` is CPU time
/// of all ends, `ratio*` is how many times as fast as the baseline in the same round: by throughput, or in latency mode by
/// the median round trip. `low` and `high` are the 95 % interval.
/// `bytes`, `ns` and `wall_ns` are sums over `runs`; `start_up_ns` and `max_rss` (bytes) are medians, of entrants only.
/// `feed` to `branch_misses` are of pipelines of lines only, the counters medians over all processes of a run.
/// `status` is ok, skipped or failed; `verified` true, false or empty where nothing was proven; `warnings` are sentences
/// with ` | ` between.
///
/// `buffer` is the socket buffer asked for, `send_buffer`, `recv_buffer` and `message_limit` what the first run got, in
/// bytes. In latency mode `rate` is messages per second, empty where each follows the last; `round_trips` is the sum over
/// `runs`; percentiles are estimates of each run's own, in nanoseconds, empty where a run had too few round trips to tell;
/// `cpu_seconds_per_million` is CPU time of both ends per million messages.
pub const COLUMNS: [&str; 97] = [
    "suite",
    "started",
    "host",
    "experiment",
    "id",
    "name",
    "status",
    "reason",
    "link",
    "send",
    "recv",
    "wait",
    "pages",
    "place",
    "capacity",
    "block",
    "read_block",
    "align",
    "pairs",
    "read_delay_ns",
    "write_delay_ns",
    "verify",
    "total",
    "time_ns",
    "capacity_granted",
    "verified",
    "touched",
    "stopped",
    "runs",
    "bytes",
    "ns",
    "throughput",
    "throughput_low",
    "throughput_high",
    "throughput_min",
    "throughput_max",
    "cpu_seconds_per_gib",
    "cpu_seconds_per_gib_low",
    "cpu_seconds_per_gib_high",
    "cpu_seconds_per_gib_min",
    "cpu_seconds_per_gib_max",
    "ratio",
    "ratio_low",
    "ratio_high",
    "ratio_min",
    "ratio_max",
    "baseline",
    "memory_copy",
    "published",
    "published_source",
    "warnings",
    "mode",
    "buffer",
    "rate",
    "gap_ns",
    "send_buffer",
    "recv_buffer",
    "message_limit",
    "round_trips",
    "p50_ns",
    "p50_ns_low",
    "p50_ns_high",
    "p90_ns",
    "p90_ns_low",
    "p90_ns_high",
    "p99_ns",
    "p99_ns_low",
    "p99_ns_high",
    "p999_ns",
    "p999_ns_low",
    "p999_ns_high",
    "max_ns",
    "max_ns_low",
    "max_ns_high",
    "round_trips_per_second",
    "round_trips_per_second_low",
    "round_trips_per_second_high",
    "cpu_seconds_per_million",
    "cpu_seconds_per_million_low",
    "cpu_seconds_per_million_high",
    "language",
    "program",
    "runtime",
    "wall_ns",
    "start_up_ns",
    "max_rss",
    "feed",
    "filter",
    "filter_cpu_seconds_per_gib",
    "task_clock_ns",
    "cpus",
    "context_switches",
    "migrations",
    "page_faults",
    "cycles",
    "instructions",
    "branch_misses",
];

impl Format for Csv {
    fn name(&self) -> &'static str {
        "CSV"
    }

    fn write(&self, document: &Document, out: &mut dyn io::Write) -> io::Result<()> {
        let mut writer = WriterBuilder::new().from_writer(out);
        writer.write_record(COLUMNS).map_err(plain)?;
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
    let params = &record.params;
    let (total, time) = match params.volume {
        Volume::Total(size) => (size.0.to_string(), String::new()),
        Volume::Time(time) => (String::new(), time.0.to_string()),
    };
    let capacity = match params.capacity {
        Capacity::Bytes(size) => size.0.to_string(),
        named => named.to_string(),
    };
    let first = record.samples.first();
    let granted = first.and_then(|sample| sample.capacity_granted);
    let warnings: Vec<String> = record.warnings.iter().map(ToString::to_string).collect();
    let sum = |figure: fn(&crate::model::Sample) -> u64| {
        let total: u128 = record.samples.iter().map(|sample| u128::from(figure(sample))).sum();
        if record.samples.is_empty() { String::new() } else { total.to_string() }
    };
    let mut row = vec![
        words(&document.suite),
        words(&document.started),
        words(&document.host.name),
        words(&record.experiment),
        words(&record.id),
        words(&record.name),
        word(&record.status),
        words(record.reason.as_deref().unwrap_or_default()),
        params.link.to_string(),
        params.send.to_string(),
        params.recv.to_string(),
        params.wait.to_string(),
        params.pages.to_string(),
        params.place.to_string(),
        capacity,
        params.block.0.to_string(),
        optional(params.read_block.map(|size| size.0)),
        params.align.to_string(),
        params.pairs.to_string(),
        params.read_delay.0.0.to_string(),
        params.write_delay.0.0.to_string(),
        params.verify.to_string(),
        total,
        time,
        optional(granted),
        optional(record.verified),
        record.touched.to_string(),
        record.stopped.as_ref().map(word).unwrap_or_default(),
        record.samples.len().to_string(),
        sum(|sample| sample.bytes),
        sum(|sample| sample.ns),
    ];
    row.extend(estimate(record.estimate.as_ref().map(|e| &e.throughput)));
    row.extend(estimate(record.estimate.as_ref().map(|e| &e.cpu_seconds_per_gib)));
    row.extend(estimate(record.estimate.as_ref().and_then(|e| e.ratio.as_ref())));
    row.extend([
        words(record.baseline.as_deref().unwrap_or_default()),
        optional(document.memory_copy.map(|copy| copy.median)),
        optional(record.published.as_ref().map(|published| published.throughput)),
        words(record.published.as_ref().map_or("", |published| &published.source)),
        words(&warnings.join(" | ")),
        params.mode.to_string(),
        optional(params.buffer.map(|size| size.0)),
        optional(params.rate),
        params.gap.0.to_string(),
        optional(first.and_then(|sample| sample.send_buffer)),
        optional(first.and_then(|sample| sample.recv_buffer)),
        optional(first.and_then(|sample| sample.message_limit)),
    ]);
    row.extend(round_trips(record));
    row.extend([
        params.language.as_ref().map_or_else(String::new, ToString::to_string),
        optional(params.program),
        words(record.samples.iter().find_map(|sample| sample.entrant.as_ref()).map_or("", |stats| &stats.runtime)),
        sum(|sample| sample.wall_ns),
        optional(record.estimate.as_ref().and_then(|e| e.start_up_ns).map(|e| e.median)),
        optional(record.estimate.as_ref().and_then(|e| e.max_rss).map(|e| e.median)),
        optional(params.feed),
        optional(params.filter.as_ref()),
    ]);
    row.extend(counters(record));
    row
}

/// Medians of what the processes of a pipeline of lines used.
fn counters(record: &Record) -> [String; 9] {
    let counters = record.estimate.as_ref().and_then(|estimate| estimate.counters.as_ref());
    [
        counters.map(|counters| counters.filter_cpu_seconds_per_gib),
        counters.map(|counters| counters.task_clock_ns),
        counters.map(|counters| counters.cpus),
        counters.map(|counters| counters.context_switches),
        counters.and_then(|counters| counters.migrations),
        counters.map(|counters| counters.page_faults),
        counters.and_then(|counters| counters.cycles),
        counters.and_then(|counters| counters.instructions),
        counters.and_then(|counters| counters.branch_misses),
    ]
    .map(|estimate| optional(estimate.map(|estimate| estimate.median)))
}

/// How many round trips there were, and for each quantity of them the median, low and high.
fn round_trips(record: &Record) -> Vec<String> {
    let trips: Option<u64> =
        record.samples.iter().map(|sample| sample.latency.as_ref().map(|latency| latency.round_trips)).sum();
    let latency = record.estimate.as_ref().and_then(|estimate| estimate.latency.as_ref());
    let mut row = vec![optional(trips.filter(|_| !record.samples.is_empty()))];
    for figure in [
        latency.map(|latency| latency.p50),
        latency.and_then(|latency| latency.p90),
        latency.and_then(|latency| latency.p99),
        latency.and_then(|latency| latency.p999),
        latency.map(|latency| latency.max),
        latency.map(|latency| latency.round_trips_per_second),
        latency.map(|latency| latency.cpu_seconds_per_million),
    ] {
        let [median, low, high, ..] = estimate(figure.as_ref());
        row.extend([median, low, high]);
    }
    row
}

/// Median, low, high, min and max.
fn estimate(estimate: Option<&Estimate>) -> [String; 5] {
    estimate.map_or_else(Default::default, |e| {
        [e.median.to_string(), optional(e.low), optional(e.high), e.min.to_string(), e.max.to_string()]
    })
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
            assert_eq!(at(row, "block"), record.params.block.0.to_string());
            assert_eq!(at(row, "warnings").is_empty(), record.warnings.is_empty());
            let Some(estimate) = &record.estimate else { continue };
            assert_eq!(at(row, "throughput").parse::<f64>().unwrap(), estimate.throughput.median);
            assert_eq!(at(row, "cpu_seconds_per_gib_max").parse::<f64>().unwrap(), estimate.cpu_seconds_per_gib.max);
            assert_eq!(at(row, "memory_copy").parse::<f64>().unwrap(), document.memory_copy.unwrap().median);
            assert_eq!(at(row, "ratio").parse().ok(), estimate.ratio.map(|ratio| ratio.median));
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
            assert_eq!(at(row, "mode"), record.params.mode.to_string());
            assert_eq!(at(row, "gap_ns"), record.params.gap.0.to_string());
            let limit = record.samples.first().and_then(|sample| sample.message_limit);
            assert_eq!(at(row, "message_limit").parse().ok(), limit);
            let latency = record.estimate.as_ref().and_then(|estimate| estimate.latency.as_ref());
            assert_eq!(at(row, "p50_ns").parse().ok(), latency.map(|latency| latency.p50.median));
            assert_eq!(at(row, "p99_ns_high").parse().ok(), latency.and_then(|latency| latency.p99?.high));
            let cpu = latency.map(|latency| latency.cpu_seconds_per_million.median);
            assert_eq!(at(row, "cpu_seconds_per_million").parse().ok(), cpu);
            assert_eq!(at(row, "round_trips").is_empty(), latency.is_none());
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
