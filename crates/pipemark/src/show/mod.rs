//! What was measured, written for people and for programs: one file per output format behind one trait, and progress.
//!
//! Nothing here measures, computes statistics or asks the terminal anything: width and colour are handed in.

use std::io;

use crate::model::Document;

pub mod axis;
mod benchmark;
pub mod cells;
mod column;
pub mod comparison;
mod comparison_csv;
mod csv;
mod experiment;
mod footnotes;
mod gains;
mod grid;
mod head;
mod json;
mod manual;
mod markdown;
mod matrix;
mod openmetrics;
mod output;
pub mod plot;
mod progress;
mod table;
mod text;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod schema;

pub use benchmark::BenchmarkJson;
pub use cells::{Words, grids, words};
pub use csv::Csv;
pub use grid::{Cell, Column, Form, Grid, Room};
pub use json::Json;
pub use manual::Manual;
pub use markdown::Markdown;
pub use openmetrics::OpenMetrics;
pub use output::{Destination, OutputError};
pub use progress::Progress;
pub use table::Table;
pub use text::{Colour, Side, Style, neutral};

/// A way to write a document.
pub trait Format {
    /// What the format is called in messages, such as `JSON`.
    fn name(&self) -> &'static str;

    /// Writes the whole document.
    ///
    /// # Errors
    /// When `out` refuses the bytes, or the document cannot be expressed in this format.
    fn write(&self, document: &Document, out: &mut dyn io::Write) -> io::Result<()>;
}
