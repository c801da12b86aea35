//! JSON as written by hyperfine, for scripts that read it. Times are in seconds, without the shell's start.

use std::collections::BTreeMap;

use serde::Serialize;

use pipemark_stats::estimate::median;

use crate::result::{AbResult, CommandResult};
use crate::run_figures::TIME;

#[derive(Debug, Serialize)]
struct HyperfineExport {
    results: Vec<HyperfineResult>,
}

/// A command, with the field names of the format.
#[derive(Debug, Serialize)]
struct HyperfineResult {
    command: String,
    mean: f64,
    stddev: Option<f64>,
    median: f64,
    user: f64,
    system: f64,
    min: f64,
    max: f64,
    times: Vec<f64>,
    memory_usage_byte: Vec<u64>,
    exit_codes: Vec<Option<i32>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    parameters: BTreeMap<String, String>,
}

/// All commands that ran.
///
/// # Errors
/// None are known: all figures are numbers.
pub fn hyperfine_json(result: &AbResult) -> serde_json::Result<String> {
    let start = result.shell_start.filter(|_| result.shell_start_taken_off).map_or(0.0, |start| start.median);
    let ran = result.commands.iter().filter(|command| command.failed.is_none() && !command.runs.is_empty());
    let results = ran.map(|command| of(command, start)).collect();
    Ok(serde_json::to_string_pretty(&HyperfineExport { results })? + "\n")
}

fn of(command: &CommandResult, start: f64) -> HyperfineResult {
    let all = |key: &str| -> Vec<f64> { command.runs.iter().filter_map(|run| run.figures.get(key).copied()).collect() };
    let seconds = |key: &str, off: f64| -> Vec<f64> { all(key).into_iter().map(|ns| (ns - off) / 1e9).collect() };
    let mean = |figures: &[f64]| figures.iter().sum::<f64>() / figures.len().max(1) as f64;
    let times = seconds(TIME, start);
    let own_mean = mean(&times);
    let squares: f64 = times.iter().map(|time| (time - own_mean).powi(2)).sum();
    HyperfineResult {
        // As in hyperfine, a name replaces the command.
        command: if command.named { &command.label } else { &command.command }.clone(),
        mean: own_mean,
        stddev: (times.len() > 1).then(|| (squares / (times.len() - 1) as f64).sqrt()),
        median: median(&times).unwrap_or(own_mean),
        user: mean(&seconds("user", 0.0)),
        system: mean(&seconds("system", 0.0)),
        min: times.iter().copied().fold(f64::INFINITY, f64::min),
        max: times.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        memory_usage_byte: all("memory").into_iter().map(|bytes| bytes as u64).collect(),
        exit_codes: command.runs.iter().map(|run| run.exit_code).collect(),
        times,
        parameters: command.parameters.clone(),
    }
}
