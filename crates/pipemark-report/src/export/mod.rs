//! Exports of documents in formats for programs: JSON, CSV, OpenMetrics, and JSON for github-action-benchmark.

mod benchmark;
mod cpu_map;
mod csv;
mod json;
mod openmetrics;

pub use benchmark::benchmark_json;
pub use cpu_map::cpu_map;
pub use csv::csv;
pub use json::json;
pub use openmetrics::openmetrics;

#[cfg(test)]
mod tests;
