//! Commands that `ab --save` has measured, to compare later measurements with.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A measured command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SavedCommand {
    /// The name given with `--name`, or the command as text.
    pub name: String,
    /// The command as text; if it isn't UTF-8, as a word of bash.
    pub command: String,
    /// The version of the command: the start of the SHA-256 of the programs that it names. Absent if none was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The time that the shell adds, in nanoseconds; absent if the times don't include it, or if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell_start_ns: Option<f64>,
    /// The figures of each run, by key, for each session. Times include the start of the shell.
    pub sessions: Vec<Vec<BTreeMap<String, f64>>>,
}

impl SavedCommand {
    /// One figure of all runs, by session; `None` if a run doesn't have it. With `without_shell`, times don't include
    /// the start of the shell.
    pub fn figures(&self, key: &str, without_shell: bool) -> Option<Vec<Vec<f64>>> {
        let off = if without_shell && key == "time" { self.shell_start_ns.unwrap_or(0.0) } else { 0.0 };
        let session = |runs: &Vec<BTreeMap<String, f64>>| runs.iter().map(|run| Some(run.get(key)? - off)).collect();
        self.sessions.iter().map(session).collect()
    }
}
