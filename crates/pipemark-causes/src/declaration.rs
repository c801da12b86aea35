//! A cause that one file declares as a whole.

use crate::cause::CauseFacts;
use crate::figures::PipelineFigures;
use crate::hypothesis::{Hypothesis, Scene};
use crate::report::Remedy;

/// What a cause is, what speaks for it, its sentence and its remedies.
pub struct Declaration {
    pub facts: CauseFacts,
    /// What speaks for the cause, at each place where anything does.
    pub assess: fn(&Scene) -> Vec<Hypothesis>,
    /// The sentence that says that it limits the pipeline.
    pub sentence: fn(&Scene, &Hypothesis) -> String,
    /// Remedies besides the rows of remedies.toml that name the cause.
    pub remedies: fn(&PipelineFigures, &Hypothesis) -> Vec<Remedy>,
}
