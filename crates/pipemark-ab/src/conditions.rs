//! Conditions shared by all commands of a call: shell, environment, CPUs, standard input, time limit.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use pipemark_host::child::{Child, PreparedChild, ProcessGroup, RunError};
use pipemark_model::neutral;

use crate::shell::Shell;

/// A stage that is about to start.
pub struct StageStart {
    /// Its name in messages.
    pub name: String,
    pub command: Command,
    /// Its standard input, output and error.
    pub streams: [OwnedFd; 3],
}

/// Conditions of all runs.
#[derive(Debug, Clone)]
pub struct RunConditions {
    /// The shell of commands and hooks.
    pub shell: Shell,
    /// Variables to set, with their values.
    pub environment: Vec<(String, String)>,
    /// The CPUs that commands may run on; `None` means all CPUs that pipemark may use.
    pub cpus: Option<CpuSet>,
    /// The file on standard input; `None` means empty.
    pub input: Option<PathBuf>,
    /// Whether exit codes other than 0 are accepted.
    pub ignore_failure: bool,
    /// The time limit of a run.
    pub limit: Duration,
    /// How many copies of a command run at once.
    pub copies: usize,
}

impl RunConditions {
    /// The command that starts `text`.
    ///
    /// # Errors
    /// When `text` can't be parsed as a command.
    pub fn command(&self, text: &OsStr) -> Result<Command, RunError> {
        let words = self.shell.words(text).map_err(RunError::Failed)?;
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).envs(self.environment.iter().map(|(name, value)| (name, value)));
        Ok(command)
    }

    /// Starts a command on the CPUs that commands may run on.
    ///
    /// # Errors
    /// When it is not found or can't be started.
    pub fn start(&self, name: &str, command: &mut Command, group: ProcessGroup<'_>) -> Result<Child, RunError> {
        let started = match &self.cpus {
            None => Child::start(name, command, group),
            Some(cpus) => on_cpus(cpus, || Child::start(name, command, group)),
        };
        started.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound if self.shell != Shell::None => {
                let shell = command.get_program().to_string_lossy();
                RunError::Failed(format!("'{}' could not be started: {} was not found", neutral(name), neutral(&shell)))
            }
            io::ErrorKind::NotFound => RunError::Failed(format!("'{}': the command was not found", neutral(name))),
            _ => RunError::Failed(format!("'{}' could not be started: {error}", neutral(name))),
        })
    }

    /// Prepares the processes of stages with their streams; `None` if that isn't possible here. The first child of
    /// `started` leads their group.
    pub fn prepare(&self, stages: &mut [StageStart], started: &[Child]) -> Option<Vec<PreparedChild>> {
        let prepare_all = || -> io::Result<Option<Vec<PreparedChild>>> {
            let mut prepared: Vec<PreparedChild> = Vec::new();
            for StageStart { name, command, streams } in stages {
                let leader = started.first().or(prepared.first().map(PreparedChild::child));
                let group = leader.map_or(ProcessGroup::Own, ProcessGroup::Of);
                let streams = streams.each_ref().map(AsFd::as_fd);
                let Some(child) = PreparedChild::prepare(name.as_str(), command, streams, group)? else {
                    return Ok(None);
                };
                prepared.push(child);
            }
            Ok(Some(prepared))
        };
        let prepared = match &self.cpus {
            None => prepare_all(),
            Some(cpus) => on_cpus(cpus, prepare_all),
        };
        prepared.ok().flatten()
    }

    /// The standard input of the first stage.
    ///
    /// # Errors
    /// When the file can't be opened.
    pub fn standard_input(&self) -> Result<OwnedFd, RunError> {
        let Some(path) = &self.input else { return Ok(File::open("/dev/null").map_err(not_run)?.into()) };
        Ok(open_repeatedly("--input", path)?.into())
    }
}

/// Opens a file that each run opens. Refuses a FIFO, because opening it would block until another process writes, and
/// its bytes can be read only once.
///
/// # Errors
/// When the file can't be opened. The message names the flag.
pub(crate) fn open_repeatedly(flag: &str, path: &Path) -> Result<File, RunError> {
    let failed = |what: &str| RunError::Failed(format!("{flag} {}: {what}", neutral(&path.to_string_lossy())));
    let metadata = fs::metadata(path).map_err(|error| failed(&error.to_string()))?;
    if metadata.is_dir() {
        return Err(failed("it is a directory"));
    }
    if metadata.file_type().is_fifo() {
        return Err(failed("it is a pipe, whose bytes can be read only once; save them to a file"));
    }
    File::open(path).map_err(|error| failed(&error.to_string()))
}

/// Calls `act` with this thread restricted to these CPUs, which child processes inherit.
fn on_cpus<T>(cpus: &CpuSet, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let before = sched_getaffinity(None)?;
    sched_setaffinity(None, cpus)?;
    let done = act();
    sched_setaffinity(None, &before)?;
    done
}

/// Parses `0,2-3` as a set of CPUs, all of which pipemark may use.
///
/// # Errors
/// A message.
pub fn cpu_list(text: &str) -> Result<CpuSet, String> {
    let allowed = sched_getaffinity(None).map_err(|error| format!("the allowed CPUs are unknown: {error}"))?;
    let mut set = CpuSet::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<usize>().ok().filter(|&cpu| cpu < CpuSet::MAX_CPU);
        let (Some(first), Some(last)) = (number(first), number(last)) else {
            return Err(format!("'{}' is not a list of CPUs; use a list such as 0,2-3", neutral(text)));
        };
        if first > last {
            return Err(format!("'{}' is not a range of CPUs; write the smaller number first", neutral(part)));
        }
        for cpu in first..=last {
            if !allowed.is_set(cpu) {
                return Err(format!(
                    "CPU {cpu} does not exist or is not allowed; 'pipemark list machine' shows the allowed CPUs"
                ));
            }
            set.set(cpu);
        }
    }
    Ok(set)
}

/// The error for a failure of pipemark itself, not of the command.
pub(crate) fn not_run(error: io::Error) -> RunError {
    RunError::failed("the command could not be run")(error)
}

/// The error for a run or a hook that exceeded the time limit.
pub(crate) fn too_long(what: &str) -> RunError {
    RunError::Failed(format!("{what} took longer than --limit and was aborted; raise --limit if it needs longer"))
}

/// The error for a run in which only a background process was left at the time limit.
pub(crate) fn left_open() -> RunError {
    RunError::Failed(
        "it ended, but a background process kept its output open longer than --limit; redirect that process's \
         output, for example to /dev/null"
            .to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_list_names_existing_cpus() {
        let allowed = sched_getaffinity(None).unwrap();
        let first = (0..CpuSet::MAX_CPU).find(|&cpu| allowed.is_set(cpu)).unwrap();
        let set = cpu_list(&first.to_string()).unwrap();
        assert!(set.count() == 1 && set.is_set(first));
        for text in ["", "x", "1-", "3-1", "0,,1", "1023", "99999"] {
            assert!(cpu_list(text).is_err(), "{text}");
        }
    }

    #[test]
    fn on_cpus_restricts_the_thread_only_during_the_call() {
        let before = sched_getaffinity(None).unwrap();
        let mut one = CpuSet::new();
        one.set((0..CpuSet::MAX_CPU).find(|&cpu| before.is_set(cpu)).unwrap());
        let inside = on_cpus(&one, || Ok(sched_getaffinity(None)?.count())).unwrap();
        assert_eq!((inside, sched_getaffinity(None).unwrap().count()), (1, before.count()));
    }
}
