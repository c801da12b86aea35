//! Untimed commands around the runs: `--setup`, `--prepare`, `--conclude` and `--cleanup`.

use std::io::stderr;
use std::os::fd::AsFd;
use std::process::Stdio;
use std::time::Instant;

use pipemark_host::child::{Interrupt, ProcessGroup, RunError, describe_status};
use pipemark_model::neutral;

use crate::conditions::{RunConditions, not_run, too_long};

/// The hooks of a command. Each is optional.
#[derive(Debug, Clone, Default)]
pub struct Hooks {
    /// Runs once, before the first run.
    pub setup: Option<String>,
    /// Runs before each run.
    pub prepare: Option<String>,
    /// Runs after each run.
    pub conclude: Option<String>,
    /// Runs once, after the last run.
    pub cleanup: Option<String>,
}

/// Runs a hook to its end, if there is one. Its output goes to standard error.
///
/// # Errors
/// When the hook fails or takes too long, or the user interrupts. The message names the hook's flag.
pub fn run_hook(
    flag: &str,
    text: Option<&String>,
    conditions: &RunConditions,
    interrupt: &Interrupt,
) -> Result<(), RunError> {
    let Some(text) = text else { return Ok(()) };
    let mut command = conditions.command(text)?;
    let output = stderr().as_fd().try_clone_to_owned().map_or_else(|_| Stdio::null(), Stdio::from);
    command.stdin(Stdio::null()).stdout(output);
    let mut child = conditions.start(text, &mut command, ProcessGroup::Own)?;
    let ended = child.wait(Instant::now() + conditions.limit, Some(interrupt))?;
    child.end_now().map_err(not_run)?;
    match child.end() {
        Some((status, _)) if ended && !status.success() => {
            Err(RunError::Failed(format!("{flag} '{}' {}", neutral(text), describe_status(status))))
        }
        Some(_) if ended => Ok(()),
        _ => Err(too_long(&format!("{flag} '{}'", neutral(text)))),
    }
}
