//! What becomes of a measurement once it is written: it is kept in the history, unless that is not wanted or cannot be,
//! which is said and changes nothing else.

use std::path::PathBuf;

use clap::Args;

use super::output::{Format, writer};
use crate::model::Document;
use crate::store::{History, HistoryError, Id};

/// Which history: for every verb that has to do with it.
#[derive(Debug, Clone, Default, Args)]
pub struct DbOption {
    /// The history's file [default: $XDG_DATA_HOME/pipemark/history.db, or in ~/.local/share]
    #[arg(long, value_name = "FILE", value_parser = file)]
    pub db: Option<PathBuf>,
}

/// Whether and how a measurement is kept.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "History")]
pub struct KeepOptions {
    /// What to call this measurement, such as before-upgrade; lists and charts show it
    #[arg(long, value_name = "TEXT", value_parser = label)]
    pub label: Option<String>,
    /// Do not keep this measurement in the history
    #[arg(long)]
    no_save: bool,
    #[command(flatten)]
    db: DbOption,
}

fn file(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() { Err("an empty file name".to_owned()) } else { Ok(text.into()) }
}

/// Longer ones fit no list.
const LONGEST_LABEL: usize = 200;

fn label(text: &str) -> Result<String, String> {
    match text.chars().count() {
        0 => Err("an empty label; leave --label out".to_owned()),
        1..=LONGEST_LABEL => Ok(text.to_owned()),
        length => Err(format!("a label of {length} characters; use at most {LONGEST_LABEL}")),
    }
}

/// Keeps the document. A measurement is not lost because its history cannot be written: that is a sentence, no failure.
pub fn keep(document: &Document, options: &KeepOptions) -> Option<Id> {
    if options.no_save {
        return None;
    }
    save(document, options)
        .inspect_err(|error| eprintln!("pipemark: this measurement is not kept in the history: {error}"))
        .ok()
}

fn save(document: &Document, options: &KeepOptions) -> Result<Id, HistoryError> {
    let (_, write) = writer(Format::Json);
    let json = write(document).map_err(HistoryError::no_json)?;
    History::create(options.db.db.as_deref())?.save(document, &json)
}
