//! Lays out documents and comparisons as sheets, one module per subject. The modules decide what is shown of trials,
//! but not widths and colours.

mod brief;
mod charts;
mod commands;
mod comparison;
mod cpu_map;
mod document;
mod experiment;
mod gains;
mod marks;
mod matrix;
mod message_cpu;
mod report;
mod summary;
mod words;

pub use brief::brief;
pub use charts::labels;
pub use comparison::comparison;
pub use document::{claims, document};
pub use report::{main_charts, report};

use pipemark_model::Document;
use pipemark_show::Sheet;
use pipemark_tune::result::ExperimentResult;
use pipemark_tune::sheet::experiments;
use pipemark_watch::PipelineReport;
use pipemark_watch::sheet::timeline;

use commands::add_commands;

/// The report of a watched pipeline; `None` if the document has none.
fn watched(document: &Document) -> Option<PipelineReport> {
    document.watched.as_ref().and_then(|watched| PipelineReport::from_record(watched).ok())
}

/// The experiments on a pipeline; `None` if the document has none.
fn tuned(document: &Document) -> Option<ExperimentResult> {
    document.tuned.as_ref().and_then(|tuned| ExperimentResult::from_record(tuned).ok())
}

/// Adds the charts and tables of a pipeline of the user's own, if the document is about one.
fn add_pipeline(sheet: &mut Sheet, document: &Document) {
    watched(document).iter().for_each(|watched| timeline(sheet, watched));
    tuned(document).iter().for_each(|tuned| experiments(sheet, tuned));
    add_commands(sheet, document);
}

#[cfg(test)]
pub mod fixture;
#[cfg(test)]
mod tests;
