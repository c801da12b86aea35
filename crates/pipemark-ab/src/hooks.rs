//! Untimed commands around the runs: `--setup`, `--prepare`, `--conclude` and `--cleanup`.

use std::ffi::OsString;
use std::io::stderr;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;
use std::time::Instant;

use pipemark_host::child::{Interrupt, ProcessGroup, RunError, describe_status, kill_with_descendants};
use pipemark_model::neutral;
use pipemark_shell::shown_command;

use crate::conditions::{RunConditions, not_run, too_long};

/// The hooks of a command. Each is optional.
#[derive(Debug, Clone, Default)]
pub struct Hooks {
    /// Runs once, before the first run.
    pub setup: Option<OsString>,
    /// Runs before each run.
    pub prepare: Option<OsString>,
    /// Runs after each run.
    pub conclude: Option<OsString>,
    /// Runs once, after the last run.
    pub cleanup: Option<OsString>,
}

/// Runs a hook to its end, if there is one. Its output goes to standard error.
///
/// # Errors
/// When the hook fails or takes too long, or the user interrupts. The message names the hook's flag.
pub fn run_hook(
    flag: &str,
    text: Option<&OsString>,
    conditions: &RunConditions,
    interrupt: &Interrupt,
) -> Result<(), RunError> {
    let Some(text) = text else { return Ok(()) };
    let name = shown_command(text.as_bytes());
    let mut command = conditions.command(text)?;
    let output = stderr().as_fd().try_clone_to_owned().map_or_else(|_| Stdio::null(), Stdio::from);
    command.stdin(Stdio::null()).stdout(output);
    let mut child = conditions.start(&name, &mut command, ProcessGroup::Own)?;
    let ended = child.wait(Instant::now() + conditions.limit, Some(interrupt));
    if !matches!(ended, Ok(true)) {
        kill_with_descendants(std::slice::from_ref(&child));
    }
    let ended = ended?;
    child.end_now().map_err(not_run)?;
    match child.end() {
        Some((status, _)) if ended && !status.success() => {
            Err(RunError::Failed(format!("{flag} '{}' {}", neutral(&name), describe_status(status))))
        }
        Some(_) if ended => Ok(()),
        _ => Err(too_long(&format!("{flag} '{}'", neutral(&name)))),
    }
}
