//! Compares two measurements: matches their trials, judges the changes, and lists other differences.
//!
//! Pure: files, exit codes and layout are handled elsewhere.

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

/// One side of a comparison: a document for each session, or the trials in them with certain parameters.
#[derive(Debug, Clone, Copy)]
pub struct SideInput<'a> {
    /// Its name for the user: the file.
    pub name: &'a str,
    /// One document for each session; at least one.
    pub documents: &'a [Document],
    /// Only trials with these parameters are compared. A trial's counterpart on the other side differs only in these.
    pub settings: &'a [Value],
}

impl<'a> SideInput<'a> {
    /// The first document; the others are sessions of the same measurement.
    fn first(&self) -> &'a Document {
        &self.documents[0]
    }
}

/// Why there is no comparison, as a message for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub(crate) String);
