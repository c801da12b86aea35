//! `--save NAME` and `--baseline NAME`: measurements of commands that the history keeps, and comparisons with them.
//!
//! Sessions are compared, as in `compare`, because a saved session and a new one have no rounds in common. Only sessions
//! of the same machine and of one version of the command are compared with each other.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use pipemark_console::ExitError;
use pipemark_model::{Document, Host, SavedCommand, counted, neutral};
use pipemark_shell::shown_command;
use pipemark_stats::estimate;
use pipemark_stats::ranking::{BySession, is_constant};
use pipemark_stats::sessions::{JointComparisons, MIN_DEGREES_OF_FREEDOM, Session, Sessions};
use pipemark_stats::verdict::{Criterion, Verdict};
use sha2::{Digest, Sha256};

use crate::commands::CommandEntry;
use crate::result::{CommandResult, FigureResult};
use crate::run_figures::{FigureKind, TIME};

/// The largest program whose content is read for its version.
const MAX_PROGRAM: u64 = 256 << 20;

/// The history of measurements, which another crate keeps.
pub trait SavedMeasurements {
    /// Saves commands under a name. Returns the number of the run, or `None` after a message if that fails.
    fn save(&self, db: Option<&Path>, document: Document) -> Option<String>;
    /// All documents with this name, oldest first.
    ///
    /// # Errors
    /// If the history can't be read.
    fn load(&self, db: Option<&Path>, name: &str) -> Result<Vec<Document>, ExitError>;
}

/// The saved sessions that commands are compared with.
#[derive(Debug, Default)]
pub struct Baseline {
    name: String,
    /// The commands of each document of this machine, oldest first.
    documents: Vec<Vec<SavedCommand>>,
    /// What the user should know.
    notes: Vec<String>,
}

impl Baseline {
    /// The sessions that were saved as `name` on this machine.
    ///
    /// # Errors
    /// If there are none.
    pub fn of(name: &str, documents: Vec<Document>, host: &Host) -> Result<Baseline, ExitError> {
        let (own, others): (Vec<Document>, Vec<Document>) =
            documents.into_iter().filter(|document| !document.commands.is_empty()).partition(|document| {
                let theirs = &document.host;
                (&theirs.name, &theirs.cpu, theirs.cpus) == (&host.name, &host.cpu, host.cpus)
            });
        let shown = neutral(name);
        let machine = |document: &Document| {
            format!("{} ({}, {} CPUs)", document.host.name, document.host.cpu, document.host.cpus)
        };
        let elsewhere: BTreeSet<String> = others.iter().map(machine).collect();
        let elsewhere = neutral(&elsewhere.into_iter().collect::<Vec<_>>().join(", "));
        if own.is_empty() {
            return Err(ExitError::usage(match others.as_slice() {
                [] => format!("nothing was saved as '{shown}'; use ab --save '{shown}' --sessions 5 first"),
                _ => format!(
                    "'{shown}' was measured on another machine, {elsewhere}, and times of two machines are not compared; \
                     use ab --save '{shown}' --sessions 5 here"
                ),
            }));
        }
        let mut notes = Vec::new();
        if !others.is_empty() {
            notes.push(format!(
                "not compared with {} of '{shown}' on {elsewhere}",
                counted(others.len(), "measurement")
            ));
        }
        if let Some(kernel) = own.iter().map(|document| &document.host.kernel).find(|kernel| **kernel != host.kernel) {
            notes.push(format!(
                "the kernel was {} when '{shown}' was saved, and is {} now",
                neutral(kernel),
                neutral(&host.kernel)
            ));
        }
        let documents = own.into_iter().map(|document| document.commands).collect();
        Ok(Baseline { name: name.to_owned(), documents, notes })
    }

    /// The saved sessions of a command, of its latest version, and a note if there are other versions. `None` if the
    /// command wasn't saved.
    fn command(&self, entry: &CommandEntry) -> Option<(SavedCommand, Option<String>)> {
        let name = saved_name(entry);
        let all: Vec<&SavedCommand> = self.documents.iter().flatten().filter(|saved| saved.name == name).collect();
        let latest = *all.last()?;
        let (same, others): (Vec<&&SavedCommand>, _) = all.iter().partition(|saved| saved.version == latest.version);
        let sessions = |all: &[&&SavedCommand]| all.iter().map(|saved| saved.sessions.len()).sum::<usize>();
        let others: Vec<&&SavedCommand> = others;
        let note = (!others.is_empty()).then(|| {
            format!(
                "{}: compared with the latest version in '{}', not with {} of others",
                entry.label,
                neutral(&self.name),
                counted(sessions(&others), "session")
            )
        });
        let without_shell = same.iter().all(|saved| saved.shell_start_ns.is_some());
        let mut together = SavedCommand { sessions: Vec::new(), ..latest.clone() };
        for saved in same {
            together.sessions.extend(saved.sessions.iter().cloned());
        }
        // Sessions with a different shell start can't be subtracted together.
        together.shell_start_ns = latest.shell_start_ns.filter(|_| without_shell);
        Some((together, note))
    }

    /// Compares each command with its saved sessions, and returns what the user should know.
    pub fn judge(
        &self,
        entries: &[CommandEntry],
        kinds: &[FigureKind],
        commands: &mut [CommandResult],
        shell_start: Option<f64>,
        criterion: &dyn Fn(usize, &FigureKind) -> Criterion,
    ) -> Vec<String> {
        let mut notes = self.notes.clone();
        let joint = JointComparisons { comparisons: commands.len(), prior: None };
        for (at, (entry, command)) in entries.iter().zip(commands).enumerate() {
            let Some((saved, note)) = self.command(entry) else {
                for figure in command.figures.values_mut() {
                    figure.without_comparison();
                    figure.verdict = Some(Verdict::Inconclusive);
                    figure.why = Some(format!("this command was not saved as '{}'", neutral(&self.name)));
                }
                continue;
            };
            notes.extend(note);
            // Only if both sides have it, the shell's start is subtracted from both.
            let off = shell_start.filter(|_| saved.shell_start_ns.is_some());
            let new = saved_command(entry, command, off);
            for kind in kinds {
                let Some(figure) = command.figures.get_mut(&kind.key) else { continue };
                let figures = [&saved, &new].map(|side| side.figures(&kind.key, off.is_some()));
                judge_figure(figure, figures, joint, criterion(at, kind));
                if kind.key == TIME && off.is_none() {
                    // The median that is shown must be that of the compared figures.
                    let values = new.figures(TIME, false).unwrap_or_default().concat();
                    figure.estimate = estimate::from_runs(&values).unwrap_or(figure.estimate);
                }
            }
        }
        notes
    }

    /// The fewest saved sessions of any of the commands.
    pub fn sessions(&self, entries: &[CommandEntry]) -> usize {
        let of = |entry: &CommandEntry| self.command(entry).map_or(0, |(saved, _)| saved.sessions.len());
        entries.iter().map(of).min().unwrap_or(0)
    }
}

/// The smallest number of sessions, saved and new together, for which there is a verdict.
pub const MIN_SESSIONS_TOGETHER: usize = MIN_DEGREES_OF_FREEDOM + 2;

fn judge_figure(
    figure: &mut FigureResult,
    [base, new]: [Option<BySession>; 2],
    joint: JointComparisons,
    criterion: Criterion,
) {
    figure.without_comparison();
    let (Some(base), Some(new)) = (base, new) else { return };
    figure.saved = estimate::from_runs(&base.concat());
    if is_constant([&base, &new]) {
        figure.verdict = Some(Verdict::Same);
        return;
    }
    figure.verdict = Some(Verdict::Inconclusive);
    let sessions = Session::all(&base).zip(Session::all(&new));
    let Some((base, new)) = sessions else {
        figure.why = Some("the figure is zero in some runs, so there is no ratio".to_owned());
        return;
    };
    let counts = (base.len(), new.len());
    let compared = Sessions { base, new, others: Vec::new() }.compare(joint, criterion);
    if let Some(comparison) = compared {
        figure.verdict = Some(comparison.verdict);
        figure.comparison = Some(comparison);
    }
    if compared.is_none_or(|comparison| comparison.judged().is_none()) {
        figure.why =
            Some(format!("too few sessions (saved: {}, new: {}); use --sessions 5 for both", counts.0, counts.1));
    } else if figure.verdict == Some(Verdict::Inconclusive) {
        figure.why = compared.and_then(|comparison| comparison.smallest_change_text());
    }
}

/// The name by which a command is found again.
fn saved_name(entry: &CommandEntry) -> String {
    match entry.named {
        true => entry.label.clone(),
        false => shown_command(entry.text.as_bytes()).into_owned(),
    }
}

/// A measured command in the form that is saved.
pub fn saved_command(entry: &CommandEntry, command: &CommandResult, shell_start_ns: Option<f64>) -> SavedCommand {
    let mut sessions: Vec<Vec<_>> = Vec::new();
    let mut last = 0;
    for run in &command.runs {
        if run.session != last {
            sessions.push(Vec::new());
            last = run.session;
        }
        if let Some(session) = sessions.last_mut() {
            session.push(run.figures.clone());
        }
    }
    SavedCommand {
        name: saved_name(entry),
        command: command.command.clone(),
        version: version(&entry.text),
        shell_start_ns,
        sessions,
    }
}

/// The version of the programs that a command names by a path, or else of its first word: the start of the SHA-256 of
/// their content. `None` if no word is a program.
fn version(text: &OsStr) -> Option<String> {
    let text = text.to_string_lossy();
    let with_path: Vec<PathBuf> = text
        .split_whitespace()
        .filter(|word| word.contains('/'))
        .map(PathBuf::from)
        .filter(|path| is_program(path))
        .collect();
    let programs = if with_path.is_empty() { vec![in_path(text.split_whitespace().next()?)?] } else { with_path };
    let mut hash = Sha256::new();
    for program in programs {
        let mut content = Vec::new();
        std::fs::File::open(program).ok()?.take(MAX_PROGRAM).read_to_end(&mut content).ok()?;
        hash.update(&content);
    }
    Some(hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect())
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|path| is_program(path))
}
