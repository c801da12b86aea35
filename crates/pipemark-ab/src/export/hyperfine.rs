//! JSON as written by hyperfine 1 and 2, for scripts that read it. Times are in seconds, without the shell's start.

use std::collections::BTreeMap;

use clap::ValueEnum;
use serde::Serialize;
use serde_json::{Map, Value, json};

use pipemark_stats::estimate::median;

use crate::result::{AbResult, CommandResult};
use crate::run_figures::{CPU, TIME};

/// The schema of hyperfine's JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum HyperfineSchema {
    /// hyperfine 1
    #[value(name = "1")]
    One,
    /// hyperfine 2
    #[default]
    #[value(name = "2")]
    Two,
}

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
pub fn hyperfine_json(result: &AbResult, schema: HyperfineSchema) -> serde_json::Result<String> {
    let start = result.shell_start.filter(|_| result.shell_start_taken_off).map_or(0.0, |start| start.median);
    let ran = result.commands.iter().filter(|command| command.failed.is_none() && !command.runs.is_empty());
    let text = match schema {
        HyperfineSchema::One => {
            serde_json::to_string_pretty(&HyperfineExport { results: ran.map(|command| of(command, start)).collect() })?
        }
        HyperfineSchema::Two => serde_json::to_string_pretty(&json!({
            "schema_version": 2,
            "metadata": {
                "pipemark_version": result.version,
                "platform": {"os": "Linux", "architecture": std::env::consts::ARCH},
            },
            "primary_metric": "time_wall_clock",
            "results": ran.map(|command| schema_two(command, start)).collect::<Vec<_>>(),
        }))?,
    };
    Ok(text + "\n")
}

/// The figures of schema 2: pipemark's key, hyperfine's key, the unit, and how many of pipemark's units are one of
/// hyperfine's.
const METRICS: [(&str, &str, Option<&str>, f64); 8] = [
    (TIME, "time_wall_clock", Some("second"), 1e9),
    (CPU, "time_cpu", Some("second"), 1e9),
    ("user", "time_user", Some("second"), 1e9),
    ("system", "time_system", Some("second"), 1e9),
    ("memory", "memory_peak_resident", Some("byte"), 1.0),
    ("cycles", "cpu_cycles", None, 1.0),
    ("instructions", "instructions", None, 1.0),
    ("cache-misses", "cache_misses", None, 1.0),
];

fn schema_two(command: &CommandResult, start: f64) -> Value {
    let value = |figures: &BTreeMap<String, f64>, key: &str, scale: f64| {
        let off = if key == TIME { start } else { 0.0 };
        Some((figures.get(key)? - off) / scale)
    };
    let with_unit = |mut object: Value, unit: Option<&str>| {
        if let Some(unit) = unit {
            object["unit"] = json!(unit);
        }
        object
    };
    let measurement = |run: &crate::result::TimedRun| {
        let metrics = METRICS.iter().filter_map(|(key, name, unit, scale)| {
            let object = with_unit(json!({"value": value(&run.figures, key, *scale)?}), *unit);
            Some(((*name).to_owned(), object))
        });
        let mut measurement: Map<String, Value> = metrics.collect();
        measurement.insert("exit_code".to_owned(), json!(run.exit_code));
        Value::Object(measurement)
    };
    let summary = METRICS.iter().filter_map(|(key, name, unit, scale)| {
        let all: Option<Vec<f64>> = command.runs.iter().map(|run| value(&run.figures, key, *scale)).collect();
        Some(((*name).to_owned(), with_unit(summary(&all?), *unit)))
    });
    let parameters: Map<String, Value> =
        command.parameters.iter().map(|(name, value)| (name.clone(), json!({"value": value}))).collect();
    let mut result = json!({
        "command": command.command,
        "measurements": command.runs.iter().map(measurement).collect::<Vec<_>>(),
        "summary": summary.collect::<Map<String, Value>>(),
    });
    if command.named {
        result["name"] = json!(command.label);
    }
    if !parameters.is_empty() {
        result["parameters"] = Value::Object(parameters);
    }
    result
}

fn summary(figures: &[f64]) -> Value {
    let (mean, stddev) = mean_and_deviation(figures);
    json!({
        "count": figures.len(),
        "mean": mean,
        "stddev": stddev,
        "median": median(figures),
        "min": figures.iter().copied().reduce(f64::min),
        "max": figures.iter().copied().reduce(f64::max),
    })
}

/// The mean, and the standard deviation of at least two figures.
fn mean_and_deviation(figures: &[f64]) -> (f64, Option<f64>) {
    let mean = figures.iter().sum::<f64>() / figures.len().max(1) as f64;
    let squares: f64 = figures.iter().map(|figure| (figure - mean).powi(2)).sum();
    (mean, (figures.len() > 1).then(|| (squares / (figures.len() - 1) as f64).sqrt()))
}

fn of(command: &CommandResult, start: f64) -> HyperfineResult {
    let all = |key: &str| -> Vec<f64> { command.runs.iter().filter_map(|run| run.figures.get(key).copied()).collect() };
    let seconds = |key: &str, off: f64| -> Vec<f64> { all(key).into_iter().map(|ns| (ns - off) / 1e9).collect() };
    let times = seconds(TIME, start);
    let (own_mean, stddev) = mean_and_deviation(&times);
    HyperfineResult {
        // As in hyperfine, a name replaces the command.
        command: if command.named { &command.label } else { &command.command }.clone(),
        mean: own_mean,
        stddev,
        median: median(&times).unwrap_or(own_mean),
        user: mean_and_deviation(&seconds("user", 0.0)).0,
        system: mean_and_deviation(&seconds("system", 0.0)).0,
        min: times.iter().copied().fold(f64::INFINITY, f64::min),
        max: times.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        memory_usage_byte: all("memory").into_iter().map(|bytes| bytes as u64).collect(),
        exit_codes: command.runs.iter().map(|run| run.exit_code).collect(),
        times,
        parameters: command.parameters.clone(),
    }
}
