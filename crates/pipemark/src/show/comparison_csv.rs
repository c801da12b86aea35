//! A comparison as CSV: one row per trial and one per group's mean, in plain figures.

use std::io;

use ::csv::WriterBuilder;

use super::csv::{optional, plain, word, words};
use crate::compare::{Group, Report};
use crate::stats::compare::Comparison;

/// The columns, in order. New ones are added at the end.
///
/// `kind` is trial, reference (a copy within one process, which has no verdict) or mean (of the experiment's trials,
/// geometric; it has no `base` and `new`) or missing (its `name` is the reason, its verdict the side that lacks it).
/// `base` and `new` are bytes per second, or in latency mode nanoseconds. `change`, `low` and `high` are fractions; `low`
/// and `high` are empty where too few runs allow no interval. `p` is of the test for no difference.
const COLUMNS: [&str; 15] = [
    "experiment",
    "mode",
    "kind",
    "name",
    "base_id",
    "new_id",
    "base",
    "new",
    "change",
    "low",
    "high",
    "p",
    "verdict",
    "base_runs",
    "new_runs",
];

/// The report as CSV.
///
/// # Errors
/// When `out` refuses the bytes.
pub fn csv(report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
    let mut writer = WriterBuilder::new().from_writer(out);
    writer.write_record(COLUMNS).map_err(plain)?;
    for group in &report.groups {
        for change in &group.changes {
            let kind = if change.reference { "reference" } else { "trial" };
            let told = [
                words(&change.name),
                words(&change.base_id),
                words(&change.new_id),
                change.base.to_string(),
                change.new.to_string(),
            ];
            writer.write_record(row(group, kind, told, &change.comparison)).map_err(plain)?;
        }
        if let Some(mean) = &group.mean {
            writer.write_record(row(group, "mean", Default::default(), mean)).map_err(plain)?;
        }
    }
    for missing in &report.missing {
        let mut row = vec![String::new(); COLUMNS.len()];
        row[0] = words(&missing.experiment);
        row[2] = "missing".to_owned();
        row[3] = words(&missing.reason);
        row[4] = words(&missing.id);
        row[12] = format!("not in {}", missing.side);
        writer.write_record(row).map_err(plain)?;
    }
    writer.flush()
}

fn row(group: &Group, kind: &str, told: [String; 5], comparison: &Comparison) -> Vec<String> {
    let mut row = vec![words(&group.experiment), group.mode.to_string(), kind.to_owned()];
    row.extend(told);
    row.extend([
        comparison.change.to_string(),
        optional(comparison.low),
        optional(comparison.high),
        comparison.p.to_string(),
        word(&comparison.verdict),
        comparison.base_runs.to_string(),
        comparison.new_runs.to_string(),
    ]);
    row
}
