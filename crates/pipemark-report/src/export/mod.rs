//! Documents in the formats of programs: JSON, CSV, OpenMetrics, a benchmark's JSON.

mod benchmark;
mod csv;
mod json;
mod openmetrics;

pub use benchmark::benchmark_json;
pub use csv::csv;
pub use json::json;
pub use openmetrics::openmetrics;

#[cfg(test)]
mod tests;
