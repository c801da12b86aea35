//! Guesses that change the order of stages, or leave one out.

use super::change::{Guess, edited, literal};
use crate::typed::{TypedCommand, TypedPipeline};

/// Two neighbouring filters in the other order: a stage, and the next one.
pub(super) fn swapped(pipeline: &TypedPipeline, at: usize) -> Option<Guess> {
    // The first stage has no input from the pipeline.
    let [one, other] = pipeline.stages.get(at..at + 2).filter(|_| at > 0)? else { return None };
    let is_filter = |command: &&TypedCommand| command.is_in_pipeline();
    let names = [one, other].map(|stage| literal(stage).filter(is_filter).map(|command| command.program().to_owned()));
    let [Some(first), Some(second)] = names else { return None };
    let commands = [other, one].map(|stage| stage.text.trim().to_owned());
    if commands[0] == commands[1] {
        return None;
    }
    Some(Guess {
        id: "swap".to_owned(),
        changed: at..at + 2,
        text: format!("{second} before {first}"),
        before: String::new(),
        pipeline: pipeline.replaced(at, at + 1, &commands),
    })
}

/// `cat FILES | X`: X gets the files as operands.
pub(super) fn files_as_operands(pipeline: &TypedPipeline, first: usize) -> Option<Guess> {
    let [cat, reader, ..] = &pipeline.stages[..] else { return None };
    let cat = cat.command.as_ref().filter(|cat| cat.program() == "cat" && first == 0)?;
    let files: Vec<&str> = cat.arguments().iter().map(|word| word.text.as_str()).collect();
    let is_plain = cat.redirections.is_empty() && cat.variables.is_empty() && !files.is_empty();
    let has_options = cat.arguments().iter().any(|word| word.value.starts_with('-'));
    let command =
        reader.command.as_ref().filter(|command| command.redirections.iter().all(|one| one.descriptor != 0))?;
    let text = edited(pipeline, reader, |edits, command| edits.append_arguments(command, &files))?;
    let files = if files.len() == 1 { "the file as operand" } else { "the files as operands" };
    (is_plain && !has_options).then(|| Guess {
        id: "files-as-operands".to_owned(),
        changed: 0..2,
        text: format!("{} with {files}, without cat", command.program()),
        before: String::new(),
        pipeline: pipeline.replaced(0, 1, &[text]),
    })
}
