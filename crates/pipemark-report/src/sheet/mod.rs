//! Lays out documents and comparisons as sheets, one module per subject. The modules decide what is shown of trials,
//! but not widths and colours.

mod brief;
mod charts;
mod comparison;
mod cpu_map;
mod document;
mod experiment;
mod gains;
mod marks;
mod matrix;
mod report;
mod summary;
mod words;

pub use brief::brief;
pub use charts::labels;
pub use comparison::comparison;
pub use document::document;
pub use report::{main_charts, report};

use pipemark_model::Document;
use pipemark_watch::PipelineReport;

/// The report of a watched pipeline; `None` if the document has none.
fn watched(document: &Document) -> Option<PipelineReport> {
    document.watched.as_ref().and_then(|watched| PipelineReport::from_record(watched).ok())
}

#[cfg(test)]
pub mod fixture;
#[cfg(test)]
mod tests;
