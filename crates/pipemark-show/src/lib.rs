//! Lays out results. A [`Sheet`] is a list of [`Block`]s, which [`Terminal`], [`markdown()`] and [`html()`] render.
//! This crate doesn't depend on trials. Other crates build the sheets.
#![forbid(unsafe_code)]

mod block;
mod chart;
mod data;
mod grid;
mod html;
mod layout;
mod markdown;
mod metrics;
mod plot;
mod style;
mod terminal;
mod text;
mod vega;

pub use block::{Block, Note, Sheet, sparkline};
pub use chart::{Axis, Chart, ChartKind, Colouring, Point, Scale, Series, SeriesRole, extent};
pub use data::{csv_field, csv_text, json_line, sheet_as_csv, sheet_as_json};
pub use grid::{Align, Cell, Column, Fit, Grid, Row, RowGroup, Table};
pub use html::{Attachment, html};
pub use markdown::markdown;
pub use metrics::Metrics;
pub use style::{Colour, Style};
pub use terminal::{Characters, Terminal};
pub use text::width;
