//! Remedies for a command as typed, whatever slows it down: for experiments, which measure what each gains. Pure.

use std::collections::BTreeSet;

use pipemark_shell::{Dialect, Edits, FoundCommand, Pipeline, Script, program_after_wrappers};

use crate::cause::CauseName;
use crate::environment;
use crate::evidence::MachineLimits;
use crate::figures::PipelineFigures;
use crate::pipe_figures::PipeFigures;
use crate::programs::base;
use crate::proof;
use crate::remedy_row::{RemedyRow, TABLE};
use crate::stage_figures::StageFigures;

/// A command in a pipeline.
#[derive(Debug, Clone, Copy)]
pub struct CommandAsTyped<'a> {
    /// As typed, without the pipes around it.
    pub text: &'a str,
    pub dialect: Dialect,
    /// Whether it reads the output of another stage.
    pub is_fed: bool,
    /// Whether it compares text by the rules of a language.
    pub collates: bool,
    /// The number of CPUs that it may use.
    pub cpus: usize,
    /// Whether a control group limits its memory.
    pub memory_limited: bool,
    /// The environment, as in /proc/PID/environ.
    pub environment: &'a [u8],
}

/// A remedy with its command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedRemedy {
    /// The row's id in the table of remedies.
    pub id: String,
    pub text: String,
    /// The command with the remedy.
    pub command: String,
    /// The programs that it runs.
    pub programs: Vec<String>,
    /// How the remedy changes the output; `None` if it doesn't.
    pub changes: Option<String>,
    /// A command that makes both outputs the same again.
    pub compare: Option<String>,
}

/// The remedies that fit a command, in the order of the table. Those that make output come earlier at the cost of
/// throughput are omitted.
pub fn typed_remedies(command: &CommandAsTyped<'_>) -> Vec<TypedRemedy> {
    fitting(command, RemedyRow::is_faster)
}

/// All remedies that fit a command, in the order of the table.
pub fn all_typed_remedies(command: &CommandAsTyped<'_>) -> Vec<TypedRemedy> {
    fitting(command, |_| true)
}

fn fitting(command: &CommandAsTyped<'_>, is_wanted: impl Fn(&RemedyRow) -> bool) -> Vec<TypedRemedy> {
    let Ok(script) = Script::parse(command.text, command.dialect) else { return Vec::new() };
    let Some(found) = single_command(&script) else { return Vec::new() };
    let words: Vec<String> = found.simple.words[found.program..]
        .iter()
        .map(|word| {
            word.as_str().map_or_else(|| String::from_utf8_lossy(script.bytes(&word.span)).into(), str::to_owned)
        })
        .collect();
    let name = base(&words[0]).to_owned();
    // A variable that is set twice has its last value, which comes first here.
    let assigned = found.simple.assignments.iter().rev().filter_map(|word| word.value.as_deref());
    let environment = assigned.chain([command.environment]).collect::<Vec<_>>().join(&0);
    let stage = StageFigures {
        number: 1,
        variables: environment::variables(&name, &environment),
        name,
        words,
        collates: command.collates,
        cpus: (0..command.cpus).collect(),
        ..StageFigures::default()
    };
    let pipes = command.is_fed.then(|| PipeFigures { from: 2, to: 1, ..PipeFigures::default() });
    let figures = PipelineFigures {
        stages: vec![stage.clone()],
        pipes: pipes.into_iter().collect(),
        typed: Some(command.text.into()),
        limits: MachineLimits { memory_limited: command.memory_limited, ..MachineLimits::default() },
        shell: if command.dialect == Dialect::Bash { "bash" } else { "sh" }.to_owned(),
        ..PipelineFigures::default()
    };
    let functions = proof::functions(std::iter::empty(), command.environment);
    let mut known = BTreeSet::new();
    // Of a word that is expanded, such as "$f", nothing is known.
    let is_known = stage
        .words
        .iter()
        .zip(&found.simple.words[found.program..])
        .all(|(text, word)| word.as_str().is_some() || !text.contains(['$', '`']));
    let takes_any = |row: &RemedyRow| row.options.iter().flatten().any(|option| option == "*");
    let fits = |row: &&RemedyRow| {
        row.fits(&stage, &figures) && row.is_proved_for(&stage, &figures) && (is_known || takes_any(row))
    };
    let rows = TABLE.iter().filter(|row| !row.command.is_empty() && is_wanted(row) && fits(row));
    let remedies = rows.filter_map(|row| {
        let mut edits = Edits::new(&script);
        row.edit(&mut edits, &found, &functions).ok().filter(|()| !edits.is_empty())?;
        let edited = edits.apply().ok()?;
        Some(TypedRemedy {
            id: row.id.clone(),
            text: row.text.clone(),
            command: String::from_utf8(edited.text().to_vec()).ok()?,
            programs: edited.program_names().into_iter().map(str::to_owned).collect(),
            changes: row.changes.clone(),
            compare: row.compare.clone(),
        })
    });
    remedies.filter(|remedy| known.insert(remedy.command.clone())).collect()
}

/// The plain command that a text consists of. Behind a pipe, `time` isn't the keyword that it is at the beginning.
fn single_command(script: &Script) -> Option<FoundCommand<'_>> {
    let is_single = |pipeline: &&Pipeline| pipeline.stages.len() == 1 && !pipeline.timed && !pipeline.negated;
    let pipeline = script.pipeline().filter(is_single)?;
    let simple = pipeline.stages[0].simple().filter(|simple| !simple.in_backquotes)?;
    let (program, _) = program_after_wrappers(&simple.words)?;
    Some(FoundCommand { pipeline, place: 0, simple, program })
}

impl RemedyRow {
    /// Whether the row may raise the throughput.
    fn is_faster(&self) -> bool {
        let is_of_throughput = |name: &CauseName| {
            name.is_of_calls()
                || matches!(
                    name,
                    CauseName::Computing
                        | CauseName::Disk
                        | CauseName::Network
                        | CauseName::Children
                        | CauseName::Starts
                        | CauseName::SmallPipe
                        | CauseName::Bursts
                        | CauseName::Peer
                )
        };
        self.cause.iter().any(is_of_throughput)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<(String, String)> {
        let command = CommandAsTyped {
            text,
            dialect: Dialect::Posix,
            is_fed: true,
            collates: false,
            cpus: 2,
            memory_limited: false,
            environment: b"",
        };
        typed_remedies(&command).into_iter().map(|remedy| (remedy.id, remedy.command)).collect()
    }

    fn command(text: &str, id: &str) -> Option<String> {
        of(text).into_iter().find(|one| one.0 == id).map(|one| one.1)
    }

    #[test]
    fn a_typed_command_gets_the_rows_for_its_program_and_options() {
        assert_eq!(command("zcat 'a b.gz'", "zcat-igzip").as_deref(), Some("igzip -dc 'a b.gz'"));
        assert_eq!(command("xz -d -T1", "xz-threads-decompress").as_deref(), Some("xz -T0 -d"));
        assert_eq!(command("sort -k2", "sort-memory").as_deref(), Some("sort -S 25% -k2"));
        assert_eq!(command("nice sort", "sort-memory").as_deref(), Some("nice sort -S 25%"));
        assert_eq!(command("grep --line-buffered 'y  z'", "grep-no-line-buffered").as_deref(), Some("grep 'y  z'"));
        assert_eq!(command("sed -un 5p", "sed-no-unbuffered"), None, "-u can't be removed alone");
        assert_eq!(command("stdbuf -oL tr a b", "stdbuf-left-out").as_deref(), Some("tr a b"));
        assert_eq!(command("dd bs=512", "dd-bs").as_deref(), Some("dd bs=32k"));
        assert_eq!(command("dd bs=1 skip=1000", "dd-bs"), None);
    }

    #[test]
    fn remedies_for_held_output_are_left_out() {
        assert_eq!(of("grep x"), []);
        assert_eq!(of("while read x; do echo $x; done"), []);
        assert_eq!(of("a | b"), []);
    }
}
