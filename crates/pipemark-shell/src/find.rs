//! Finds the commands in a text that running processes come from, and makes a text from processes.

use std::ops::Range;

use crate::dialect::Dialect;
use crate::error::ShellError;
use crate::quote::{quote_argument, quote_bytes};
use crate::syntax::{
    CommandList, Compound, CompoundKind, Connector, Pipeline, Redirection, RedirectionKind, Script, ShellStage,
    SimpleCommand, StageCommand,
};
use crate::wrappers::{base, program_after_wrappers};

/// What is known of a stage that runs.
#[derive(Debug, Clone, Copy)]
pub struct RunningStage<'a, W> {
    /// Whether it reads a pipe that another stage writes, and whether it writes a pipe that another one reads.
    pub reads_pipe: bool,
    pub writes_pipe: bool,
    /// Its name: of the program, or as it was probably typed, such as `zcat` for a gzip.
    pub name: &'a str,
    /// The arguments of its process, the program's name first.
    pub words: &'a [W],
}

/// A command in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundCommand<'s> {
    /// The pipeline in which it is a stage, and its place there.
    pub pipeline: &'s Pipeline,
    pub place: usize,
    pub simple: &'s SimpleCommand,
    /// The index of the program in its words, after wrappers such as timeout.
    pub program: usize,
}

impl FoundCommand<'_> {
    pub fn stage(&self) -> &ShellStage {
        &self.pipeline.stages[self.place]
    }

    /// Whether it may run more than once: in a loop, or in a function.
    pub fn is_repeated(&self, script: &Script) -> bool {
        let own = &self.stage().span;
        script.stages().into_iter().any(|(pipeline, at)| {
            let stage = &pipeline.stages[at];
            let repeats = |compound: &Compound| {
                matches!(
                    compound.kind,
                    CompoundKind::While | CompoundKind::Until | CompoundKind::For | CompoundKind::Function
                )
            };
            let is_around = stage.span.start <= own.start && own.end <= stage.span.end;
            is_around && matches!(&stage.command, StageCommand::Compound(compound) if repeats(compound))
        })
    }

    /// Whether no other command reads its input, and none writes its output at the same time.
    pub fn is_alone(&self, script: &Script) -> bool {
        // Copies of descriptors and process substitutions share an end; so do the processes that a stage starts.
        let copies = |one: &Redirection| {
            matches!(
                one.kind,
                RedirectionKind::DuplicateInput
                    | RedirectionKind::DuplicateOutput
                    | RedirectionKind::BothOutputs
                    | RedirectionKind::AppendBothOutputs
            )
        };
        let own = &self.stage().span;
        let is_around = |(pipeline, at): &(&Pipeline, usize)| {
            let span = &pipeline.stages[*at].span;
            std::ptr::eq(*pipeline, self.pipeline) || span.start <= own.start && own.end <= span.end
        };
        let shares = script.stages().into_iter().filter(is_around).any(|(pipeline, at)| {
            pipeline.bars.iter().any(|bar| bar.with_errors) || pipeline.stages[at].redirections.iter().any(copies)
        });
        let substitutes = script.text().windows(2).any(|bytes| bytes == b"<(" || bytes == b">(");
        let name = self.simple.words[self.program].as_str();
        let starts_several = name.is_none_or(|name| ["xargs", "parallel", "find"].contains(&base(name)));
        if shares || substitutes || starts_several {
            return false;
        }
        // Later stages may pass pieces on as they come, so that lines of several writers are torn there too.
        let is_whole = |pipeline: &Pipeline| script.pipeline().is_some_and(|whole| std::ptr::eq(whole, pipeline));
        let is_in_turn = |pipeline: &Pipeline| pipeline.connector != Connector::Background || is_whole(pipeline);
        (self.place > 0 || is_whole(self.pipeline)) && script.stages().iter().all(|(pipeline, _)| is_in_turn(pipeline))
    }

    /// The indices of the program's arguments.
    pub fn arguments(&self) -> Range<usize> {
        self.program + 1..self.simple.words.len()
    }
}

/// The command that each stage comes from; `None` where there is none, or where it could be one of several.
pub fn find_stages<'s, W: AsRef<[u8]>>(
    script: &'s Script,
    stages: &[RunningStage<'_, W>],
) -> Vec<Option<FoundCommand<'s>>> {
    let commands = programs(script);
    let places = places(script.list());
    let is_unknown = |place: &PipePlace<'_>| {
        let simple = place.pipeline.stages[place.place].simple().filter(|simple| !simple.words.is_empty());
        let program = |simple: &SimpleCommand| {
            program_after_wrappers(&simple.words).is_some_and(|(program, _)| simple.words[program].value.is_some())
        };
        simple.is_some_and(|simple| !program(simple))
    };
    let unknown: Vec<&PipePlace<'_>> = places.iter().filter(|place| is_unknown(place)).collect();
    // A command that has no pipe where the stage has one is another process: of `false && sort; cat x | sh -c sort | tail`,
    // the first `sort` isn't the one that runs.
    let is_there = |command: &FoundCommand<'_>, stage: &RunningStage<'_, W>| {
        let is =
            |place: &&PipePlace<'_>| std::ptr::eq(place.pipeline, command.pipeline) && place.place == command.place;
        let place = places.iter().find(is);
        place.is_some_and(|place| place.reads >= stage.reads_pipe && place.writes >= stage.writes_pipe)
    };
    let is_candidate =
        |at: &usize, stage: &RunningStage<'_, W>| runs(&commands[*at], stage) && is_there(&commands[*at], stage);
    let candidates: Vec<Vec<usize>> =
        stages.iter().map(|stage| (0..commands.len()).filter(|at| is_candidate(at, stage)).collect()).collect();
    let choose = |stage: usize| {
        let own = &candidates[stage];
        let at = match &own[..] {
            [one] => *one,
            several => {
                // Equal stages of one pipeline are in the order of the text.
                let equal = |other: &usize| candidates[*other] == *own;
                let first = commands.get(*several.first()?)?;
                let in_one = several.iter().all(|&at| std::ptr::eq(commands[at].pipeline, first.pipeline));
                let count = (0..stages.len()).filter(equal).count();
                if !in_one || count != several.len() {
                    return None;
                }
                several[(0..stage).filter(equal).count()]
            }
        };
        // A command whose program is known only to the shell may be the stage instead, if this one isn't run.
        let is_other = |place: &&PipePlace<'_>| {
            !std::ptr::eq(place.pipeline, commands[at].pipeline)
                && place.reads >= stages[stage].reads_pipe
                && place.writes >= stages[stage].writes_pipe
        };
        let may_be_another = unknown.iter().any(is_other);
        Some(commands[at]).filter(|command| !command.simple.in_backquotes && !may_be_another)
    };
    (0..stages.len()).map(choose).collect()
}

/// A stage of a text, and whether it may read a pipe and write one.
struct PipePlace<'s> {
    pipeline: &'s Pipeline,
    place: usize,
    reads: bool,
    writes: bool,
}

/// The stages of a list at any depth.
fn places(list: &CommandList) -> Vec<PipePlace<'_>> {
    fn add<'s>(list: &'s CommandList, ends: [bool; 2], all: &mut Vec<PipePlace<'s>>) {
        for pipeline in &list.pipelines {
            for (place, stage) in pipeline.stages.iter().enumerate() {
                let [reads, writes] = [ends[0] || place > 0, ends[1] || place + 1 < pipeline.stages.len()];
                all.push(PipePlace { pipeline, place, reads, writes });
                let own = match &stage.command {
                    StageCommand::Compound(compound) => &compound.lists[..],
                    StageCommand::Simple(_) => &[],
                };
                own.iter().for_each(|list| add(list, [reads, writes], all));
                // Substitutions have pipes of their own.
                stage.lists()[own.len()..].iter().for_each(|list| add(list, [true, true], all));
            }
        }
    }
    let mut all = Vec::new();
    add(list, [false, false], &mut all);
    all
}

/// The commands of a text whose programs are known.
fn programs(script: &Script) -> Vec<FoundCommand<'_>> {
    let stages = script.stages().into_iter();
    let command = |(pipeline, place): (_, usize)| {
        let pipeline: &Pipeline = pipeline;
        let simple = pipeline.stages[place].simple()?;
        let (program, _) = program_after_wrappers(&simple.words)?;
        Some(FoundCommand { pipeline, place, simple, program })
    };
    stages.filter_map(command).collect()
}

impl Script {
    /// The names of the programs that the text runs, in its order, without directories.
    pub fn program_names(&self) -> Vec<&str> {
        let commands = programs(self).into_iter();
        commands.filter_map(|command| command.simple.words[command.program].as_str().map(base)).collect()
    }
}

/// Whether a stage may come from a command.
fn runs<W: AsRef<[u8]>>(command: &FoundCommand<'_>, stage: &RunningStage<'_, W>) -> bool {
    let words = &command.simple.words;
    let Some(program) = words[command.program].as_str().map(base) else { return false };
    let typed: Vec<Option<&[u8]>> = words[command.arguments()].iter().map(|word| word.value.as_deref()).collect();
    let name = |word: &W| std::str::from_utf8(word.as_ref()).is_ok_and(|word| base(word) == program);
    // A script's name follows that of its interpreter.
    let own = (0..stage.words.len().min(3)).filter(|&at| name(&stage.words[at]));
    let exact = own.into_iter().any(|at| matches(&typed, &stage.words[at + 1..]));
    // A script such as zcat executes another program with options of its own before those that were typed.
    let other = || {
        let any = [None].into_iter().chain(typed.iter().copied()).collect::<Vec<_>>();
        program == stage.name && !stage.words.is_empty() && !name(&stage.words[0]) && matches(&any, &stage.words[1..])
    };
    exact || other() || stage.words.is_empty() && program == stage.name
}

/// Whether typed words can become these arguments: each known word is one of them, and each other word any number.
fn matches<W: AsRef<[u8]>>(typed: &[Option<&[u8]>], words: &[W]) -> bool {
    let (mut at, mut word, mut retry) = (0, 0, None);
    while word < words.len() {
        match typed.get(at) {
            Some(Some(known)) if *known == words[word].as_ref() => (at, word) = (at + 1, word + 1),
            Some(None) => {
                retry = Some((at, word));
                at += 1;
            }
            _ => match retry {
                Some((any, from)) => {
                    retry = Some((any, from + 1));
                    (at, word) = (any + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    typed[at..].iter().all(Option::is_none)
}

/// What a shell runs by itself instead of a program. A process called so is none of these, and its arguments may be
/// code.
const BUILTINS: &str = "\
    . : [ alias bg bind break builtin caller cd chdir command compgen complete compopt continue coproc declare dirs disown echo enable eval exec exit export false fc fg getopts hash help history jobs kill let local logout mapfile newgrp popd printf pushd pwd read readarray readonly return set shift shopt source suspend test times trap true type typeset ulimit umask unalias unset wait";

/// The text of a pipeline of processes, from their arguments. Redirections and environments aren't in it.
///
/// # Errors
/// When a process has no arguments, or replaced them by a title.
pub fn from_arguments<W: AsRef<[u8]>>(stages: &[&[W]], dialect: Dialect) -> Result<Script, ShellError> {
    let mut text = String::new();
    for words in stages {
        let program = words.first().ok_or(ShellError::Empty)?.as_ref();
        let is_title = program.iter().any(|&byte| byte <= b' ' || byte == 0x7f) || program.starts_with(b"-");
        // `%1` is a job.
        let is_builtin = BUILTINS.split(' ').any(|name| name.as_bytes() == program) || program.starts_with(b"%");
        if program.is_empty() || is_title || is_builtin {
            return Err(ShellError::Edit("a process has a title instead of a command"));
        }
        let arguments = words[1..].iter().map(|word| quote_argument(word.as_ref(), dialect));
        let quoted: Result<Vec<String>, ShellError> =
            [quote_bytes(program, dialect)].into_iter().chain(arguments).collect();
        if !text.is_empty() {
            text.push_str(" | ");
        }
        text.push_str(&quoted?.join(" "));
    }
    let script = Script::parse(text, dialect)?;
    // Evidence that the text is exactly these words.
    let same = |(stage, words): (&ShellStage, &&[W])| {
        let values =
            stage.simple().map(|simple| simple.words.iter().map(|word| word.value.as_deref()).collect::<Vec<_>>());
        stage.redirections.is_empty() && values == Some(words.iter().map(|word| Some(word.as_ref())).collect())
    };
    let pipeline = script.pipeline().ok_or(ShellError::Empty)?;
    if pipeline.stages.len() == stages.len() && pipeline.stages.iter().zip(stages).all(same) {
        Ok(script)
    } else {
        Err(ShellError::Edit("the processes' arguments can't be quoted"))
    }
}
