//! The JSON that github-action-benchmark reads as `customBiggerIsBetter`: one figure per trial.

use std::io;

use serde::Serialize;

use pipemark_model::{Document, Estimate, Figure, Record, counted, neutral};

use pipemark_show::json_line;

/// A benchmark. The names of the fields are given by the format.
#[derive(Debug, Serialize)]
struct Benchmark {
    name: String,
    unit: &'static str,
    value: f64,
    range: String,
    extra: String,
}

/// A list of benchmarks in which more is better. Latency is exported as round trips per second.
///
/// # Errors
/// `InvalidData` if a figure isn't a number, which JSON can't represent.
pub fn benchmark_json(document: &Document) -> io::Result<String> {
    let benchmarks: Vec<Benchmark> = document.trials.iter().filter_map(|record| benchmark(document, record)).collect();
    if benchmarks.iter().any(|benchmark| !benchmark.value.is_finite()) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a figure of the document is not a number"));
    }
    Ok(json_line(&serde_json::to_string(&benchmarks)?))
}

fn benchmark(document: &Document, record: &Record) -> Option<Benchmark> {
    let estimates = record.estimate.as_ref()?;
    // Throughput is in MiB per second, because charts of bytes per second have unreadable axes.
    let (estimate, unit, scale) = match estimates.get(Figure::RoundTripsPerSecond) {
        Some(trips) => (trips, "round trips/s", 1.0),
        None => (estimates.throughput(), "MiB/s", f64::from(1 << 20)),
    };
    Some(Benchmark {
        // The name must be the same in every run, because the charts identify benchmarks by name.
        name: neutral(&format!("{}: {}", record.experiment, record.id)),
        unit,
        value: estimate.median / scale,
        range: range(estimate, scale),
        extra: neutral(&format!(
            "{}\n{}, pipemark {}, {}, {}",
            record.name,
            counted(estimate.runs as usize, "run"),
            document.version,
            document.host.cpu,
            document.host.kernel
        )),
    })
}

/// The distance from the median to the farther end of the interval, multiplied by `scale`. Without an interval, the
/// distance to the smallest or the largest run, whichever is farther.
fn range(estimate: &Estimate, scale: f64) -> String {
    let (low, high) = (estimate.low.unwrap_or(estimate.min), estimate.high.unwrap_or(estimate.max));
    let reach = (high - estimate.median).max(estimate.median - low) / scale;
    format!("± {reach:.1}")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use serde_json::Value;

    use super::*;
    use crate::sheet::fixture;

    #[test]
    fn every_measured_trial_is_a_benchmark_of_its_own() {
        for (name, document) in fixture::all() {
            let benchmarks: Vec<Value> = serde_json::from_str(&benchmark_json(&document).unwrap()).unwrap();
            let measured = document.trials.iter().filter(|record| record.estimate.is_some()).count();
            assert_eq!(benchmarks.len(), measured, "{name}");
            let names: HashSet<&str> = benchmarks.iter().map(|one| one["name"].as_str().unwrap()).collect();
            assert_eq!(names.len(), measured, "{name}: names are unique");
            for benchmark in &benchmarks {
                assert!(benchmark["value"].as_f64().unwrap() > 0.0, "{name}: {benchmark}");
                assert!(benchmark["range"].as_str().unwrap().starts_with("± "), "{name}: {benchmark}");
            }
        }
    }
}
