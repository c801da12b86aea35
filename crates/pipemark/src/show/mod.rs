//! What was measured, written for people and for programs: one file per output format behind one trait, and progress.
//!
//! Nothing here measures, computes statistics or asks the terminal anything: width and colour are handed in.

#![allow(dead_code)]

use std::io;

use crate::model::Document;

pub mod axis;
mod benchmark;
pub mod cells;
mod column;
mod csv;
mod experiment;
mod footnotes;
mod gains;
mod head;
mod json;
mod markdown;
mod matrix;
mod openmetrics;
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
pub use json::Json;
pub use markdown::Markdown;
pub use openmetrics::OpenMetrics;
pub use progress::Progress;
pub use table::Table;
pub use text::{Colour, neutral};

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
