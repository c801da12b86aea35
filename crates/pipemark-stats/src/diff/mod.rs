//! Two measurements against each other: which trials belong together, what changed, what else differs.
//!
//! Pure: reading files, the exit code and the looks of it are done elsewhere.

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

/// One side of a comparison: a document for each session, or the part of it that has certain parameters.
#[derive(Debug, Clone, Copy)]
pub struct Party<'a> {
    /// What the person calls it: the file.
    pub name: &'a str,
    /// What was measured, one for each session; at least one.
    pub documents: &'a [Document],
    /// Only trials with these parameters. The trial of the other side is the one that differs in these only.
    pub settings: &'a [Value],
}

impl<'a> Party<'a> {
    /// The one that says what the others are of.
    fn first(&self) -> &'a Document {
        &self.documents[0]
    }
}

/// Why there is no comparison; the text is a sentence for the person who asked for it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub(crate) String);
