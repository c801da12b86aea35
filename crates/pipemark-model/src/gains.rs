//! An experiment in the form of a published table of gains over a base, in per cent. Each cell names the trial that
//! measures the gain, and has the published gain.

use serde::{Deserialize, Serialize};

use crate::parameter::Key;

/// A table of gains: a row for each value of a parameter, and a column for each change. The columns are grouped into
/// blocks, such as one for each placement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gains {
    /// The parameter in which the rows differ.
    pub by: Key,
    /// The heading of the first column, as in the source.
    pub corner: String,
    /// The values of the rows, as shown.
    pub rows: Vec<String>,
    /// The source of the published figures, and the hardware they were measured on.
    pub source: String,
    /// The blocks of columns, from left to right.
    pub blocks: Vec<GainsBlock>,
}

/// Columns side by side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GainsBlock {
    /// The title, which says what the columns have in common.
    pub title: String,
    /// The columns.
    pub columns: Vec<GainsColumn>,
}

/// The gains from one change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GainsColumn {
    /// The change.
    pub name: String,
    /// A cell for each row; `None` if nothing is measured.
    pub cells: Vec<Option<GainsCell>>,
}

/// One measured gain and the published one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GainsCell {
    /// The id of the trial whose ratio to its baseline is shown.
    pub trial: String,
    /// The published figure, in per cent over the base.
    pub published: Option<f64>,
}
