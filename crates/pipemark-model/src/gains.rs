//! An experiment as a published table of per cent over a base has it: which trial belongs into which cell, and the figure
//! that was published there.

use serde::{Deserialize, Serialize};

use crate::parameter::Key;

/// A table of gains: rows by a parameter, columns by what was changed, in blocks such as one for each placement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gains {
    /// What the rows differ in.
    pub by: Key,
    /// What stands above the values of the rows, in the words of the source.
    pub corner: String,
    /// The values of the rows, as they are shown.
    pub rows: Vec<String>,
    /// Where the published figures are from, and on what hardware they were measured.
    pub source: String,
    /// The parts of the table.
    pub blocks: Vec<GainsBlock>,
}

/// Columns that stand side by side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GainsBlock {
    /// What they have in common.
    pub title: String,
    /// The columns.
    pub columns: Vec<GainsColumn>,
}

/// What one change brings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GainsColumn {
    /// The change.
    pub name: String,
    /// A cell for each row; `None` where nothing is measured.
    pub cells: Vec<Option<GainsCell>>,
}

/// One figure and its counterpart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GainsCell {
    /// The id of the trial whose ratio to its baseline is shown.
    pub trial: String,
    /// What was published, in per cent over the base.
    pub published: Option<f64>,
}
