//! Results for programs: documents through the tables of parameters and figures, other sheets through their grids.

mod benchmark;
mod csv;
mod destination;
mod json;
mod openmetrics;

pub use benchmark::benchmark_json;
pub use csv::{csv, of_sheet as sheet_as_csv};
pub use destination::{Destination, OutputError};
pub use json::{json, line as json_line, of_sheet as sheet_as_json};
pub use openmetrics::openmetrics;

#[cfg(test)]
mod tests;
