//! A table with one parameter across the top: a row for each combination of the others, the best of each column marked.

use std::collections::BTreeMap;

use crate::model::{Document, Estimate, Experiment, Key, Record};

use super::experiment::missing;
use super::text::{Side, abridge, digits, neutral, pad, width as columns_of};

/// What stands in the place of a figure that could not be measured; the reasons follow below.
const NONE: &str = "–";

/// Rows that may be ranked together.
pub(super) struct Block {
    /// What they have in common, in words.
    pub(super) heading: String,
    /// The heading of the columns and one line for each row.
    pub(super) lines: Vec<String>,
}

/// An experiment as a matrix.
pub(super) struct Matrix {
    pub(super) blocks: Vec<Block>,
    /// What the marks mean, and why cells are empty.
    pub(super) notes: Vec<String>,
}

/// What a row is told by; the rest of what varies makes blocks.
const ROW: [Key; 3] = [Key::Link, Key::Send, Key::Recv];

impl Matrix {
    /// Lays out the records of an experiment; `None` if it does not ask for it.
    pub(super) fn of(document: &Document, experiment: &Experiment) -> Option<Matrix> {
        let across = experiment.across?;
        let records: Vec<&Record> =
            document.trials.iter().filter(|record| record.experiment == experiment.name).collect();
        let apart: Vec<Key> = experiment
            .varies
            .iter()
            .copied()
            .filter(|key| *key != across && !ROW.contains(key) && !matches!(key, Key::Total | Key::Time))
            .collect();
        let mut columns: Vec<String> = Vec::new();
        let mut groups: Vec<(String, Vec<&Record>)> = Vec::new();
        for &record in &records {
            let column = record.params.get(across);
            if !columns.contains(&column) {
                columns.push(column);
            }
            let words: Vec<String> = apart.iter().map(|key| format!("{key} {}", record.params.get(*key))).collect();
            let heading = neutral(&words.join(" · "));
            match groups.iter_mut().find(|(known, _)| *known == heading) {
                Some((_, group)) => group.push(record),
                None => groups.push((heading, vec![record])),
            }
        }
        let blocks = groups.into_iter().map(|(heading, group)| block(heading, &group, across, &columns)).collect();
        Some(Matrix { blocks, notes: notes(&records) })
    }
}

fn block(heading: String, records: &[&Record], across: Key, columns: &[String]) -> Block {
    let mut rows: Vec<(String, BTreeMap<usize, &Record>)> = Vec::new();
    for &record in records {
        let label = label(record);
        let Some(column) = columns.iter().position(|column| *column == record.params.get(across)) else { continue };
        match rows.iter_mut().find(|(known, _)| *known == label) {
            Some((_, cells)) => drop(cells.insert(column, record)),
            None => rows.push((label, BTreeMap::from([(column, record)]))),
        }
    }
    let best: Vec<Option<&Record>> = (0..columns.len())
        .map(|column| {
            let measured = rows.iter().filter_map(|(_, cells)| cells.get(&column).copied()).filter(ranked);
            measured.reduce(|best, other| if better(other, best) { other } else { best })
        })
        .collect();
    let cell = |record: &Record, column: usize| {
        let Some(estimate) = headline(record) else { return NONE.to_owned() };
        let best = best[column].is_some_and(|best| ranked(&record) && as_good(headline(best), headline(record)));
        format!("{}{}", figure(record, estimate.median), if best { "*" } else { " " })
    };
    let table: Vec<(String, Vec<String>)> = rows
        .iter()
        .map(|(label, cells)| {
            let line = (0..columns.len())
                .map(|column| cells.get(&column).map_or_else(String::new, |record| cell(record, column)))
                .collect();
            (label.clone(), line)
        })
        .collect();
    let first = table.iter().map(|(label, _)| columns_of(label)).max().unwrap_or(0).min(24);
    let widths: Vec<usize> = (0..columns.len())
        .map(|column| {
            let cells = table.iter().map(|(_, cells)| columns_of(&cells[column]));
            cells.max().unwrap_or(0).max(columns_of(&short(&columns[column])) + 1)
        })
        .collect();
    let line = |label: &str, cells: &mut dyn Iterator<Item = String>| {
        let mut line = pad(&abridge(label, first), first, Side::Left);
        for (width, text) in widths.iter().zip(cells) {
            line.push(' ');
            line.push_str(&pad(&text, *width, Side::Right));
        }
        line.trim_end().to_owned()
    };
    let mut lines = vec![line("", &mut columns.iter().map(|column| format!("{} ", short(column))))];
    lines.extend(table.into_iter().map(|(label, cells)| line(&label, &mut cells.into_iter())));
    Block { heading, lines }
}

/// The link, and how bytes go in and out where that is not its plain way.
fn label(record: &Record) -> String {
    let params = &record.params;
    let mut words = vec![params.link.to_string()];
    if params.send.to_string() != "write" {
        words.push(params.send.to_string());
    }
    if params.recv.to_string() != "read" && params.recv.to_string() != params.send.to_string() {
        words.push(params.recv.to_string());
    }
    neutral(&words.join(" "))
}

/// What the cell shows: the median round trip, or throughput.
fn headline(record: &Record) -> Option<&Estimate> {
    if missing(record).is_some() {
        return None;
    }
    let estimate = record.estimate.as_ref()?;
    Some(estimate.latency.as_ref().map_or(&estimate.throughput, |latency| &latency.p50))
}

/// What moves nothing wins nothing.
fn ranked(record: &&Record) -> bool {
    record.params.link.transfers() && headline(record).is_some()
}

/// Throughput is better when it is high, a round trip when it is short.
fn better(one: &Record, other: &Record) -> bool {
    let shorter = one.estimate.as_ref().is_some_and(|estimate| estimate.latency.is_some());
    match (headline(one), headline(other)) {
        (Some(one), Some(other)) if shorter => one.median < other.median,
        (Some(one), Some(other)) => one.median > other.median,
        _ => false,
    }
}

/// Whether the intervals leave open which of the two is better.
fn as_good(best: Option<&Estimate>, other: Option<&Estimate>) -> bool {
    let (Some(best), Some(other)) = (best, other) else { return false };
    best.median == other.median
        || matches!((best.low, other.high), (Some(low), Some(high)) if high >= low)
            && matches!((best.high, other.low), (Some(high), Some(low)) if low <= high)
}

/// Three digits and a unit in five columns: `12.3G` bytes per second, `4.56µ` seconds.
fn figure(record: &Record, value: f64) -> String {
    let latency = record.estimate.as_ref().is_some_and(|estimate| estimate.latency.is_some());
    let steps: &[(f64, &str)] = if latency {
        &[(1e9, "s"), (1e6, "m"), (1e3, "µ"), (1.0, "n")]
    } else {
        &[((1u64 << 30) as f64, "G"), ((1u64 << 20) as f64, "M"), (1024.0, "K"), (1.0, "")]
    };
    let (unit, name) = steps.iter().find(|(unit, _)| value >= *unit).unwrap_or(&steps[steps.len() - 1]);
    format!("{}{name}", digits(value / unit))
}

/// `64 KiB` as `64k`: a column is narrow.
fn short(value: &str) -> String {
    value.replace(" KiB", "k").replace(" MiB", "M").replace(" GiB", "G").replace(" B", "")
}

fn notes(records: &[&Record]) -> Vec<String> {
    let latency =
        records.iter().any(|record| record.estimate.as_ref().is_some_and(|estimate| estimate.latency.is_some()));
    let mut notes = vec![if latency {
        "median round trip in seconds (n, µ, m); * the shortest of the column, or not to be told from it".to_owned()
    } else {
        "bytes per second (K, M, G: KiB/s and so on); * the best of the column, or not to be told from it".to_owned()
    }];
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    for record in records {
        if let Some(reason) = missing(record) {
            let label = label(record);
            match reasons.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, labels)) if labels.contains(&label) => {}
                Some((_, labels)) => labels.push(label),
                None => reasons.push((reason, vec![label])),
            }
        }
    }
    notes.extend(reasons.into_iter().map(|(reason, labels)| format!("{NONE} {}: {reason}", labels.join(", "))));
    notes
}
