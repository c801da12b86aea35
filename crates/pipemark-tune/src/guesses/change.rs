//! A guess, and how a stage is changed for it.

use std::ops::Range;

use pipemark_shell::{Edits, Script, ShellError, SimpleCommand};

use crate::typed::{TypedCommand, TypedPipeline, TypedStage};

/// A guess.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guess {
    /// A name that never changes, even if the text does.
    pub id: String,
    /// The stages as typed that it changes, counted from 0.
    pub changed: Range<usize>,
    /// What it does, as a clause.
    pub text: String,
    /// Commands for the shell before the pipeline.
    pub before: String,
    pub pipeline: TypedPipeline,
}

/// A guess that changes one stage.
pub(super) fn guess(pipeline: &TypedPipeline, at: usize, id: &str, text: String, stage: String) -> Guess {
    Guess {
        id: id.to_owned(),
        changed: at..at + 1,
        text,
        before: String::new(),
        pipeline: pipeline.replaced(at, at, &[stage]),
    }
}

/// A stage with its command edited; `None` if the edit isn't possible.
pub(super) fn edited(
    pipeline: &TypedPipeline,
    stage: &TypedStage,
    edit: impl FnOnce(&mut Edits<'_>, &SimpleCommand) -> Result<(), ShellError>,
) -> Option<String> {
    let script = Script::parse(stage.text.trim(), pipeline.dialect()).ok()?;
    let command = script.pipeline()?.stages.first()?.simple()?;
    let mut edits = Edits::new(&script);
    edit(&mut edits, command).ok()?;
    String::from_utf8(edits.apply().ok()?.text().to_vec()).ok()
}

/// The command of a stage, if all its words are known.
pub(super) fn literal(stage: &TypedStage) -> Option<&TypedCommand> {
    stage.command.as_ref().filter(|command| command.is_literal())
}
