//! The JSON that github-action-benchmark reads as `customSmallerIsBetter`, or as `customBiggerIsBetter` if a higher
//! figure is better.

use serde::Serialize;

use pipemark_model::{counted, neutral};

use crate::result::AbResult;

/// A benchmark, with the field names of the format.
#[derive(Debug, Serialize)]
struct BenchmarkEntry {
    name: String,
    unit: String,
    value: f64,
    range: String,
    extra: String,
}

/// A list with the judged figure of each command.
///
/// # Errors
/// None are known: all figures are numbers.
pub fn benchmark_json(result: &AbResult) -> serde_json::Result<String> {
    let unit = result.figures.iter().find(|figure| figure.key == result.by).map_or("", |figure| figure.unit.as_str());
    // Times are in milliseconds, because large numbers on an axis in nanoseconds are hard to read.
    let (unit, scale) = if unit == "ns" { ("ms", 1e6) } else { (unit, 1.0) };
    let of = |command: &crate::result::CommandResult| {
        let estimate = result.judged(command)?.estimate;
        let half = (estimate.high.unwrap_or(estimate.max) - estimate.low.unwrap_or(estimate.min)) / 2.0;
        Some(BenchmarkEntry {
            name: neutral(&format!("{}: {}", command.label, result.by)),
            unit: unit.to_owned(),
            value: estimate.median / scale,
            range: format!("± {}", half / scale),
            extra: format!(
                "{}\n{}, pipemark {}",
                neutral(&command.command),
                counted(estimate.runs as usize, "run"),
                result.version
            ),
        })
    };
    let all: Vec<BenchmarkEntry> = result.commands.iter().filter_map(of).collect();
    Ok(serde_json::to_string(&all)? + "\n")
}
