//! Reads results: what `--json` wrote, from a file that may hold anything, or what the history has.

use std::fs::File;
use std::io::{self, Read};

use serde::Deserialize;

use super::keep::DbOption;
use crate::model::{Document, SCHEMA};
use crate::sheet::neutral;
use crate::store::{History, Id};

/// The largest file that is read: 10,000 trials of 30 runs each have less.
const MOST_BYTES: u64 = 512 << 20;

/// What has to be right before the rest is looked at.
#[derive(Deserialize)]
struct Form {
    schema: Option<String>,
}

/// The results that `name` says: a run of the history by its number, such as 12 or #12, or otherwise a file.
///
/// # Errors
/// As [`document`], and when the history has no such run.
pub fn results(name: &str, db: &DbOption) -> Result<Document, String> {
    match name.parse() {
        Ok(id) => kept(Some(id), db),
        Err(_) => document(name),
    }
}

/// The run of the history with this number, or its newest.
///
/// # Errors
/// When there is none, or the history can't be read: a sentence.
pub fn kept(id: Option<Id>, db: &DbOption) -> Result<Document, String> {
    let history = History::open(db.db.as_deref()).map_err(|error| error.to_string())?;
    let history =
        history.ok_or("nothing was kept yet; measure with 'pipemark run', or name a file that --json wrote")?;
    let newest = || history.newest().map_err(|error| error.to_string());
    let id = id.map_or_else(newest, |id| Ok(Some(id)))?.ok_or("the history is empty; measure with 'pipemark run'")?;
    let document = history.document(id).map_err(|error| error.to_string())?;
    document.ok_or_else(|| format!("the history has no run {}; 'pipemark history' lists them", id.number()))
}

/// The document in the file called `name`, or on standard input for `-`.
///
/// # Errors
/// A sentence that names the file and what is wrong with it.
pub fn document(name: &str) -> Result<Document, String> {
    let shown = if name == "-" { "standard input".to_owned() } else { neutral(name) };
    let failed = |error: io::Error| format!("cannot read {shown}: {error}; use a file that --json wrote");
    let too_large = || format!("{shown} is larger than {} MiB, the limit for results of pipemark", MOST_BYTES >> 20);
    let mut bytes = Vec::new();
    match name {
        "-" => io::stdin().lock().take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?,
        _ => {
            let file = File::open(name).map_err(failed)?;
            // Nothing is read of what is known to be too much.
            match file.metadata().map_err(failed)?.len() {
                length if length > MOST_BYTES => return Err(too_large()),
                _ => file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?,
            }
        }
    };
    if bytes.len() as u64 > MOST_BYTES {
        return Err(too_large());
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
