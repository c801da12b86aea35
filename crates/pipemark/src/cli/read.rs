//! Reads what `--json` wrote, from a file that may hold anything.

use std::fs::File;
use std::io::{self, Read};

use serde::Deserialize;

use crate::model::{Document, SCHEMA};
use crate::show::neutral;

/// The largest file that is read: 10,000 trials of 30 runs each have less.
const MOST_BYTES: u64 = 512 << 20;

/// What has to be right before the rest is looked at.
#[derive(Deserialize)]
struct Form {
    schema: Option<String>,
}

/// The document in the file called `name`, or on standard input for `-`.
///
/// # Errors
/// A sentence that names the file and what is wrong with it.
pub fn document(name: &str) -> Result<Document, String> {
    let shown = if name == "-" { "standard input".to_owned() } else { neutral(name) };
    let failed = |error: io::Error| format!("cannot read {shown}: {error}; use a file that --json wrote");
    let mut bytes = Vec::new();
    match name {
        "-" => io::stdin().lock().take(MOST_BYTES + 1).read_to_end(&mut bytes),
        _ => File::open(name).and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes)),
    }
    .map_err(failed)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(format!("{shown} is larger than {} MiB, the limit for results of pipemark", MOST_BYTES >> 20));
    }
    let damaged = |error: serde_json::Error| {
        format!(
            "{shown} does not hold results of pipemark: {}; use a file that --json wrote",
            neutral(&error.to_string())
        )
    };
    let form: Form = serde_json::from_slice(&bytes).map_err(damaged)?;
    match form.schema.as_deref() {
        Some(SCHEMA) => serde_json::from_slice(&bytes).map_err(damaged),
        Some(other) => Err(format!(
            "{shown} has the schema '{}' and pipemark {} reads '{SCHEMA}'; use the version that wrote it",
            neutral(other),
            env!("CARGO_PKG_VERSION")
        )),
        None => {
            Err(format!("{shown} does not hold results of pipemark: it names no schema; use a file that --json wrote"))
        }
    }
}
