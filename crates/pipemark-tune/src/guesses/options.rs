//! Guesses that leave out one typed option, or one variable before a command.

use std::ops::Range;

use pipemark_shell::Script;

use super::change::{Guess, edited, guess, literal};
use crate::purity::option_syntax;
use crate::typed::{TypedCommand, TypedPipeline};

/// An option as typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TypedOption {
    /// Its words, counted from the program: the option, and its value if that is a word of its own.
    pub words: Range<usize>,
    /// The other letters of its word, such as `-n` of `-rn`.
    pub rest: Option<String>,
    /// Its name, such as `-k` or `--key`.
    pub name: String,
    /// Its value.
    pub value: Option<String>,
}

/// The options of a command, without those of a command that it starts.
pub(super) fn typed_options(command: &TypedCommand) -> Vec<TypedOption> {
    let Some(syntax) = option_syntax(command.program()) else { return Vec::new() };
    let mut found = Vec::new();
    let mut at = 1;
    while let Some(word) = command.words.get(at) {
        let value = word.value.as_str();
        let is_option = value.len() > 1 && value.starts_with('-');
        if value == "--" || !is_option && syntax.stops {
            break;
        }
        let (begin, letters) = (at, value.strip_prefix('-').unwrap_or_default());
        at += 1;
        if !is_option {
            continue;
        }
        let is_number = letters.bytes().all(|byte| byte.is_ascii_digit());
        if letters.starts_with('-') || is_number || syntax.values.is_empty() && letters.len() > 1 {
            let (name, value) = value.split_once('=').map_or((value, None), |(name, value)| (name, Some(value)));
            let (name, value) = (name.to_owned(), value.map(str::to_owned));
            found.push(TypedOption { words: begin..at, rest: None, name, value });
            continue;
        }
        for (nth, letter) in letters.char_indices() {
            let after = &letters[nth + letter.len_utf8()..];
            let takes_value = syntax.values.contains(letter);
            let kept = if takes_value { letters[..nth].to_owned() } else { format!("{}{after}", &letters[..nth]) };
            let is_separate = takes_value && after.is_empty() && at < command.words.len();
            at += usize::from(is_separate);
            let value = match (takes_value, is_separate) {
                (false, _) => None,
                (true, false) => Some(after.to_owned()),
                (true, true) => Some(command.words[at - 1].value.clone()),
            };
            let rest = Some(format!("-{kept}")).filter(|_| !kept.is_empty());
            found.push(TypedOption { words: begin..at, rest, name: format!("-{letter}"), value });
            if takes_value {
                break;
            }
        }
    }
    found
}

/// A stage without one of its options or variables, each.
pub(super) fn left_out(pipeline: &TypedPipeline, at: usize) -> Vec<Guess> {
    let stage = &pipeline.stages[at];
    let Some(command) = literal(stage) else { return Vec::new() };
    let name = command.program();
    let without = |option: TypedOption| {
        let text = edited(pipeline, stage, |edits, command| match &option.rest {
            Some(rest) => edits.replace_words(command, option.words.clone(), &[rest.as_str()]),
            None => edits.remove_words(command, option.words.clone()),
        })?;
        let clause = format!(
            "{name} without {}{}",
            option.name,
            option.value.map_or_else(String::new, |value| format!(" {value}"))
        );
        Some(guess(pipeline, at, "without-option", clause, text))
    };
    let options = typed_options(command).into_iter().filter_map(without);
    options.chain(variables(pipeline, at, command)).collect()
}

/// A stage without one of the variables before its command, each.
fn variables(pipeline: &TypedPipeline, at: usize, command: &TypedCommand) -> Vec<Guess> {
    let text = pipeline.stages[at].text.trim();
    let Ok(script) = Script::parse(text, pipeline.dialect()) else { return Vec::new() };
    let typed = script.pipeline().and_then(|found| found.stages.first()?.simple());
    let assignments = typed.into_iter().flat_map(|simple| &simple.assignments);
    let without = |(assignment, (variable, _)): (&pipemark_shell::Word, &(String, String))| {
        let rest = format!("{}{}", &text[..assignment.span.start], text[assignment.span.end..].trim_start());
        let clause = format!("{} without {variable}", command.program());
        guess(pipeline, at, "without-variable", clause, rest)
    };
    assignments.zip(&command.variables).map(without).collect()
}
