//! Compares two measurements: matches their trials, judges the changes, and lists other differences.
//!
//! This module does no I/O. Other modules handle files, exit codes and layout.

mod change;
mod circumstances;
mod matching;
mod series;
mod trial_figures;
mod verdicts;

#[cfg(test)]
mod tests;

use pipemark_model::{Document, Value};

pub use change::{Change, ChangeGroup, Diff, Missing, Origin, Side};
pub use circumstances::disturbances;
pub use trial_figures::check;

/// One side of a comparison: one document for each session, and the settings that select trials in them.
#[derive(Debug, Clone, Copy)]
pub struct SideInput<'a> {
    /// The file's name, for messages.
    pub name: &'a str,
    /// One document for each session; at least one.
    pub documents: &'a [Document],
    /// Only trials with these parameters are compared. Matching trials may differ only in these parameters.
    pub settings: &'a [Value],
}

impl<'a> SideInput<'a> {
    /// The first document. The other documents are further sessions of the same measurement.
    fn first(&self) -> &'a Document {
        &self.documents[0]
    }
}

/// Why the measurements can't be compared, as a message for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DiffRefusal(pub(crate) String);
