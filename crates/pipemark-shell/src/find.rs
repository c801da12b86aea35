//! Finds the commands in a text that running processes come from, and makes a text from processes.

use std::ops::Range;

use crate::dialect::Dialect;
use crate::error::ShellError;
use crate::quote::{quote_argument, quote_bytes};
use crate::syntax::{Pipeline, Script, ShellStage, SimpleCommand};
use crate::wrappers::{base, program_after_wrappers};

/// What is known of a stage that runs.
#[derive(Debug, Clone, Copy)]
pub struct RunningStage<'a, W> {
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
    let candidates: Vec<Vec<usize>> =
        stages.iter().map(|stage| (0..commands.len()).filter(|&at| runs(&commands[at], stage)).collect()).collect();
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
        Some(commands[at]).filter(|command| !command.simple.in_backquotes)
    };
    (0..stages.len()).map(choose).collect()
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
const BUILTINS: [&[u8]; 40] = [
    b".",
    b":",
    b"alias",
    b"bg",
    b"bind",
    b"break",
    b"builtin",
    b"caller",
    b"cd",
    b"command",
    b"compgen",
    b"continue",
    b"declare",
    b"disown",
    b"enable",
    b"eval",
    b"exec",
    b"exit",
    b"export",
    b"fc",
    b"fg",
    b"hash",
    b"help",
    b"history",
    b"jobs",
    b"let",
    b"local",
    b"logout",
    b"mapfile",
    b"read",
    b"readonly",
    b"return",
    b"set",
    b"shift",
    b"source",
    b"trap",
    b"typeset",
    b"ulimit",
    b"unset",
    b"wait",
];

/// The text of a pipeline of processes, from their arguments. Redirections and environments aren't in it.
///
/// # Errors
/// When a process has no arguments, or replaced them by a title.
pub fn from_arguments<W: AsRef<[u8]>>(stages: &[&[W]], dialect: Dialect) -> Result<Script, ShellError> {
    let mut text = String::new();
    for words in stages {
        let program = words.first().ok_or(ShellError::Empty)?.as_ref();
        let is_title = program.iter().any(|&byte| byte <= b' ' || byte == 0x7f) || program.starts_with(b"-");
        if program.is_empty() || is_title || BUILTINS.contains(&program) {
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
