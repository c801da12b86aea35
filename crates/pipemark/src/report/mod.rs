//! The report: documents laid over one another, as one page that needs no network, or as charts in the terminal.
//!
//! documents -> sections (an experiment, of all documents) -> figures (what a chart shows) -> Vega-Lite or text

mod figure;
mod page;
mod sections;
mod terminal;
mod vega;

pub use page::page;
pub use terminal::terminal;
