//! Reads measurements from JSON files, which may have any content, or from the history.

use std::io::{self, Read};
use std::path::Path;

use serde::Deserialize;
use serde_json::error::Category;

use pipemark_console::{Destination, ExitError};
use pipemark_host::open_input;
use pipemark_model::{Document, SCHEMA, neutral};

use crate::cli::output::DbOption;
use crate::store::{Filter, History, Id, parse};

/// The largest file of results that is read, in bytes: 10,000 trials of 30 runs each need less.
const MAX_BYTES: u64 = 512 << 20;

/// The part of a document that is parsed first, because a document with another schema needs another error message.
#[derive(Deserialize)]
struct SchemaOnly {
    schema: Option<String>,
}

/// The sessions that `name` refers to, oldest first: a run of the history, by its number such as 12 or #12; all
/// documents of a file, or of standard input for `-`; or all runs with a label.
///
/// # Errors
/// If there is none, or it can't be read.
pub fn sessions(name: &str, db: &DbOption) -> Result<Vec<Document>, ExitError> {
    let path = Path::new(name);
    let a_file = name == "-" || name.contains('/') || (path.exists() && !path.is_dir());
    if name.parse::<Id>().is_ok() && name != "-" {
        return Ok(vec![saved_document(Some(name), db)?]);
    }
    if !a_file && let Some(history) = db.open()? {
        let label = Filter { label: Some(name.to_owned()), limit: Some(MAX_SESSIONS), ..Filter::default() };
        let documents = documents(&history, &label)?;
        if !documents.is_empty() {
            return Ok(documents);
        }
    }
    Ok(documents_of_file(name)?.into_iter().map(|(document, _)| document).collect())
}

/// The newest of the sessions that `name` refers to.
///
/// # Errors
/// As [`sessions`].
pub fn measurement(name: &str, db: &DbOption) -> Result<Document, ExitError> {
    Ok(sessions(name, db)?.pop().expect("there is one, or an error"))
}

/// The largest number of sessions with one label that are read for one side of a comparison.
const MAX_SESSIONS: u32 = 100;
/// The largest number of runs in the history that are read to estimate how much sessions differ.
const MAX_SIMILAR: u32 = 60;

/// Sessions in the history that measured this document's first trial on the same machine; none if they can't be read.
pub fn similar_sessions(document: &Document, db: &DbOption) -> Vec<Document> {
    let first = document.trials.iter().find(|record| !record.job.is_memory_copy());
    let filter = Filter {
        host: Some(document.host.name.clone()),
        trial: first.map(|record| record.job.id()),
        limit: Some(MAX_SIMILAR),
        ..Filter::default()
    };
    let history = db.open().ok().flatten();
    history.and_then(|history| documents(&history, &filter).ok()).unwrap_or_default()
}

/// The documents that match the filter, oldest first.
fn documents(history: &History, filter: &Filter) -> Result<Vec<Document>, ExitError> {
    let entries = history.list(filter)?;
    let documents = entries.iter().rev().map(|entry| history.document(entry.id)?.ok_or_else(|| unknown_run(entry.id)));
    documents.collect()
}

/// Refuses to overwrite an input with the result.
///
/// # Errors
/// If one of the destinations is one of the files.
pub fn refuse_to_replace(files: &[String], destinations: &[&Destination]) -> Result<(), ExitError> {
    let clash = |destination: &&&Destination| files.iter().any(|file| destination.is_same_file(Path::new(file)));
    match destinations.iter().find(clash) {
        Some(file) => {
            Err(ExitError::usage(format_args!("{file} is an input, so it can't also be the output; write elsewhere")))
        }
        None => Ok(()),
    }
}

/// A run of the history by its number or label, or the newest.
///
/// # Errors
/// If there is none, or the history can't be read.
pub fn saved_document(name: Option<&str>, db: &DbOption) -> Result<Document, ExitError> {
    let history = db.open()?.ok_or_else(empty_history)?;
    let id = run_id(&history, name)?;
    history.document(id)?.ok_or_else(|| unknown_run(id))
}

/// The number of the run that `name` refers to: `name` itself as a number, or the newest run with this label. Without a
/// name, the newest run.
///
/// # Errors
/// If there is no such run.
pub fn run_id(history: &History, name: Option<&str>) -> Result<Id, ExitError> {
    match name {
        None => newest(history, None)?.ok_or_else(empty_history),
        Some(name) => match name.parse() {
            Ok(id) => Ok(id),
            Err(_) => newest(history, Some(name.to_owned()))?.ok_or_else(|| unknown_run(neutral(name))),
        },
    }
}

/// The error for an empty history.
pub fn empty_history() -> ExitError {
    ExitError::usage("the history is empty; measure with 'pipemark run', or name a JSON file")
}

/// The error for an unknown run.
pub fn unknown_run(name: impl std::fmt::Display) -> ExitError {
    ExitError::usage(format_args!("there is no run {name}; 'pipemark history --limit 0' lists all runs"))
}

fn newest(history: &History, label: Option<String>) -> Result<Option<Id>, ExitError> {
    let filter = Filter { label, limit: Some(1), ..Filter::default() };
    Ok(history.list(&filter)?.first().map(|entry| entry.id))
}

/// The text of a file of at most `most` bytes, or of standard input for `-`.
///
/// # Errors
/// A sentence that names the file and its fault.
pub fn file_text(name: &str, most: u64) -> Result<String, String> {
    let shown = if name == "-" { "standard input".to_owned() } else { neutral(name) };
    let failed = |error: io::Error| format!("cannot read {shown}: {error}");
    let mut bytes = Vec::new();
    let length = match name {
        "-" => io::stdin().lock().take(most + 1).read_to_end(&mut bytes).map_err(failed)?,
        _ => open_input(Path::new(name)).map_err(failed)?.take(most + 1).read_to_end(&mut bytes).map_err(failed)?,
    };
    if length as u64 > most {
        return Err(format!("{shown} is larger than {} MiB, the limit for imported figures", most >> 20));
    }
    String::from_utf8(bytes).map_err(|error| format!("{shown} is not text: {error}"))
}

/// The documents in the file called `name`, or on standard input for `-`, each with its text. A file of several
/// sessions has one document after the other.
///
/// # Errors
/// A sentence that names the file and its fault.
pub fn documents_of_file(name: &str) -> Result<Vec<(Document, String)>, String> {
    let shown = if name == "-" { "standard input".to_owned() } else { neutral(name) };
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => {
            format!("there is no run, label or file '{shown}'; 'pipemark history' lists runs and labels")
        }
        _ => format!("cannot read {shown}: {error}; expected a run number, a label or a JSON file"),
    };
    let mut bytes = Vec::new();
    let length = match name {
        "-" => io::stdin().lock().take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed)? as u64,
        _ => {
            let file = open_input(Path::new(name)).map_err(failed)?;
            // A file that reports too large a size isn't read.
            match file.metadata().map_err(failed)?.len() {
                length if length > MAX_BYTES => length,
                _ => file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed)? as u64,
            }
        }
    };
    if length > MAX_BYTES {
        return Err(format!("{shown} is larger than {} MiB, the limit for results", MAX_BYTES >> 20));
    }
    let wrong = |what: &str| {
        format!("{shown} holds no pipemark results: {what}; expected a run number, a label or a JSON file")
    };
    let damaged = |error: serde_json::Error| match error.classify() {
        Category::Syntax => wrong(&format!("line {}, column {} is not JSON", error.line(), error.column())),
        _ => wrong(&neutral(&error.to_string())),
    };
    let json = String::from_utf8(bytes).map_err(|error| wrong(&error.to_string()))?;
    let mut forms = serde_json::Deserializer::from_str(&json).into_iter::<SchemaOnly>();
    let (mut documents, mut start) = (Vec::new(), 0);
    while let Some(form) = forms.next() {
        let form = form.map_err(damaged)?;
        let text = &json[forms.byte_offset()..];
        let end = json.len() - text.trim_start().len();
        match form.schema.as_deref() {
            Some(SCHEMA) => {
                let text = &json[start..end];
                documents.push((parse(text).map_err(damaged)?, text.to_owned()));
            }
            Some(other) => {
                let other = neutral(other);
                // The results of other verbs: pipemark-why/1, pipemark-ab/2 and so on.
                let verb = other.strip_prefix("pipemark-").and_then(|rest| rest.split_once('/'));
                let fault = match verb {
                    Some((verb, _)) => format!(
                        "holds results of 'pipemark {verb}'; expected results of 'pipemark run', bw, latency or chain"
                    ),
                    None => format!(
                        "has the schema '{other}', but pipemark {} reads '{SCHEMA}'; use the version that wrote it",
                        env!("CARGO_PKG_VERSION")
                    ),
                };
                return Err(format!("{shown} {fault}"));
            }
            None => return Err(wrong("it names no schema")),
        }
        start = end;
    }
    if documents.is_empty() { Err(wrong("it is empty")) } else { Ok(documents) }
}
