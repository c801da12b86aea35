//! One line of JSON per run, written as soon as the run ends.

use std::os::unix::ffi::OsStrExt;

use pipemark_shell::shown_command;
use serde_json::{Map, Value, json};

use crate::commands::CommandEntry;
use crate::interleaving::RunRecord;
use crate::run_figures::FigureKind;

/// The line of a run; round 0 is warm-up. Times include the shell's start.
pub fn run_line(entry: &CommandEntry, kinds: &[FigureKind], run: &RunRecord) -> Value {
    let mut line = Map::new();
    line.insert("label".to_owned(), json!(entry.label));
    line.insert("command".to_owned(), json!(shown_command(entry.text.as_bytes())));
    if let Some(hex) = entry.hex() {
        line.insert("command_hex".to_owned(), json!(hex));
    }
    for (name, value) in &entry.parameters {
        line.insert(format!("parameter_{name}"), json!(value));
    }
    line.insert("session".to_owned(), json!(run.session));
    line.insert("round".to_owned(), json!(run.round));
    line.insert("warmup".to_owned(), json!(run.round == 0));
    line.insert("exit_code".to_owned(), json!(run.exit_code));
    for (kind, figure) in kinds.iter().zip(&run.figures) {
        line.insert(kind.key.clone(), json!(figure));
    }
    Value::Object(line)
}
