//! Makes the commands that advice prints: the whole pipeline with an edit of one stage, ready to paste. Where the edit
//! can't be proved to change nothing else, there is no command. Pure: no clock and no I/O.

use pipemark_shell::{
    Dialect, Edits, FoundCommand, RunningStage, Script, ShellError, find_stages, from_arguments, quote_bytes,
};

use crate::figures::PipelineFigures;
use crate::programs::base;
use crate::proof::{pieces_count_after, uses_exit_codes};
use crate::stage_figures::StageFigures;

/// Said of commands that weren't typed.
const REBUILT: &str =
    "(the command is rebuilt from the processes' arguments: redirections, variables and quoting are not known)";

/// A command to paste.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastedCommand {
    pub text: String,
    /// A remark on the command; empty if there is none.
    pub remark: &'static str,
}

fn dialect(figures: &PipelineFigures) -> Result<Dialect, ShellError> {
    match figures.shell.as_str() {
        "" => Ok(Dialect::Posix),
        shell => Dialect::of_shell(shell),
    }
}

/// The pipeline as typed, parsed; `None` unless the user typed it for this call.
fn typed_script(figures: &PipelineFigures) -> Option<Script> {
    let typed = figures.typed.as_deref().filter(|_| !figures.typed_elsewhere)?;
    Script::parse(typed, dialect(figures).ok()?).ok()
}

/// A stage's arguments, byte for byte.
fn arguments(stage: &StageFigures) -> Vec<&[u8]> {
    match &stage.arguments {
        Some(exact) => exact.iter().map(|word| &word[..]).collect(),
        None => stage.words.iter().map(String::as_bytes).collect(),
    }
}

/// The pipeline as typed or, if nobody typed it here, from the arguments of its processes.
fn script(figures: &PipelineFigures) -> Option<(Script, &'static str)> {
    if figures.typed.is_some() && !figures.typed_elsewhere {
        return Some((typed_script(figures)?, ""));
    }
    // Only a chain of single processes is a pipeline that arguments describe. A process that was forked has its parent's
    // arguments, as the subshells of a shell do.
    const SHELLS: [&str; 7] = ["sh", "bash", "dash", "ash", "zsh", "ksh", "busybox"];
    let forked = |(at, stage): (usize, &StageFigures)| {
        figures.stages[..at].iter().any(|other| arguments(other) == arguments(stage))
            || stage.words.first().is_none_or(|word| SHELLS.contains(&base(word)))
    };
    let is_chain = !figures.stages.iter().enumerate().any(forked)
        && figures.pipes.len() + 1 == figures.stages.len()
        && figures.pipes.iter().all(|pipe| pipe.to == pipe.from + 1 && !pipe.is_socket)
        && figures.stages.iter().all(|stage| stage.processes <= 1);
    let all: Vec<Vec<&[u8]>> = figures.stages.iter().map(arguments).collect();
    let all: Vec<&[&[u8]]> = all.iter().map(Vec::as_slice).collect();
    let is_function = figures.stages.iter().any(|stage| figures.functions.contains(&stage.name));
    let script = from_arguments(&all, dialect(figures).ok()?).ok().filter(|_| is_chain && !is_function)?;
    Some((script, REBUILT))
}

/// The command of each stage.
fn find<'s>(figures: &PipelineFigures, script: &'s Script) -> Vec<Option<FoundCommand<'s>>> {
    let all: Vec<Vec<&[u8]>> = figures.stages.iter().map(arguments).collect();
    let stages = figures.stages.iter().zip(&all);
    let is_stage = |number: usize| figures.stages.iter().any(|stage| stage.number == number);
    let between = figures.pipes.iter().filter(|pipe| !pipe.is_socket && is_stage(pipe.from) && is_stage(pipe.to));
    let ends: Vec<(usize, usize)> = between.map(|pipe| (pipe.from, pipe.to)).collect();
    let stages = stages.map(|(stage, words)| RunningStage {
        name: &stage.name,
        words: &words[..],
        reads_pipe: ends.iter().any(|(_, to)| *to == stage.number),
        writes_pipe: ends.iter().any(|(from, _)| *from == stage.number),
    });
    find_stages(script, &stages.collect::<Vec<_>>())
}

/// The pipeline with an edit of a stage's command; `None` where that can't be proved to be right. An edit that changes how
/// the stage reads or writes needs a stage that shares neither end with another command: read at once, `sed 5q` takes
/// lines from the next reader, and written in large pieces, lines of two writers are torn.
pub fn edited(
    figures: &PipelineFigures,
    stage: &StageFigures,
    needs_alone: bool,
    edit: impl FnOnce(&mut Edits<'_>, &FoundCommand<'_>) -> Result<(), ShellError>,
) -> Option<PastedCommand> {
    let (script, remark) = script(figures)?;
    let place = figures.stages.iter().position(|one| one.number == stage.number && one.words == stage.words)?;
    let found = find(figures, &script)[place]?;
    let name = found.simple.words[found.program].value.as_deref()?;
    let is_function = figures.functions.iter().any(|function| function.as_bytes() == name);
    if is_function || script.may_redefine(name) || needs_alone && !found.is_alone(&script) {
        return None;
    }
    let mut edits = Edits::new(&script);
    edit(&mut edits, &found).ok()?;
    if edits.is_empty() {
        return None;
    }
    Some(PastedCommand { text: edits.apply().ok()?.to_paste().ok()?, remark })
}

/// The pipeline with a stage of pipemark between two. `None` if the exit codes of all stages count.
pub fn with_stage_between(figures: &PipelineFigures, from: usize, to: usize, stage: &str) -> Option<PastedCommand> {
    let (script, remark) = script(figures)?;
    let may_be_another = figures.functions.iter().any(|name| name == "pipemark") || script.may_redefine(b"pipemark");
    if may_be_another || uses_exit_codes(&script) {
        return None;
    }
    let found = find(figures, &script);
    let [from, to] = [found.get(from.checked_sub(1)?)?.as_ref()?, found.get(to.checked_sub(1)?)?.as_ref()?];
    let is_next =
        std::ptr::eq(from.pipeline, to.pipeline) && to.place == from.place + 1 && !pieces_count_after(&script, from);
    let mut edits = Edits::new(&script);
    edits.insert_stage(from.pipeline, from.place, stage).ok().filter(|()| is_next)?;
    Some(PastedCommand { text: edits.apply().ok()?.to_paste().ok()?, remark })
}

/// The call of `pipemark tune` that runs the pipeline in variants; `None` if nobody typed it here, or if it can't be split
/// into stages. What a loop or a group changes isn't known, so `tune` runs one again only as the first stage, which it
/// records.
pub fn experiments(figures: &PipelineFigures) -> Option<String> {
    let script = typed_script(figures)?;
    script.separate_stages().ok().filter(|stages| stages.len() > 1)?;
    if !script.pipeline()?.stages[1..].iter().all(|stage| stage.simple().is_some()) {
        return None;
    }
    let dialect = script.dialect();
    let shell = if dialect == Dialect::Bash { " --shell bash" } else { "" };
    Some(format!("pipemark tune{shell} {}", quote_bytes(script.text(), dialect).ok()?))
}

/// The names of wrappers, such as stdbuf, that run a stage's program.
pub fn wrappers(figures: &PipelineFigures, stage: &StageFigures) -> Vec<String> {
    let Some((script, _)) = script(figures) else { return Vec::new() };
    let place = figures.stages.iter().position(|one| one.number == stage.number);
    let found = place.and_then(|place| find(figures, &script)[place]);
    let wrappers = found.and_then(|found| pipemark_shell::program_after_wrappers(&found.simple.words));
    wrappers.map(|(_, wrappers)| wrappers.into_iter().map(|wrapper| wrapper.name).collect()).unwrap_or_default()
}
