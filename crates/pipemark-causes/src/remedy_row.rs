//! The rows of the tables of remedies (remedies.toml, remedies_of_calls.toml).

use std::sync::LazyLock;

use pipemark_profile::WorkKind;
use serde::Deserialize;

use crate::cause::CauseName;

/// A row of the table; see the head of remedies.toml.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemedyRow {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) program: Vec<String>,
    #[serde(default)]
    pub(crate) language: Vec<String>,
    pub(crate) cause: Vec<CauseName>,
    #[serde(default)]
    pub(crate) has: Vec<String>,
    #[serde(default)]
    pub(crate) lacks: Vec<String>,
    #[serde(default)]
    pub(crate) options: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) operands: Vec<String>,
    #[serde(default)]
    pub(crate) one_file: bool,
    #[serde(default)]
    pub(crate) first: Vec<String>,
    #[serde(default)]
    pub(crate) experiment: bool,
    #[serde(default)]
    pub(crate) filter: bool,
    #[serde(default)]
    pub(crate) memory: bool,
    #[serde(default)]
    pub(crate) script: Option<ScriptKind>,
    #[serde(default)]
    pub(crate) followers: Vec<String>,
    #[serde(default)]
    pub(crate) ascii: bool,
    #[serde(default)]
    pub(crate) splits: bool,
    #[serde(default)]
    pub(crate) parallel: bool,
    #[serde(default)]
    pub(crate) locale: bool,
    #[serde(default)]
    pub(crate) set: Vec<String>,
    #[serde(default)]
    pub(crate) by: Vec<String>,
    #[serde(default)]
    pub(crate) drops: Vec<String>,
    #[serde(default)]
    pub(crate) under: Vec<String>,
    #[serde(default)]
    pub(crate) itself: bool,
    #[serde(default)]
    pub(crate) socket: bool,
    #[serde(default)]
    pub(crate) fed: bool,
    #[serde(default)]
    pub(crate) small_memory: bool,
    #[serde(default)]
    pub(crate) shrinks: Option<bool>,
    #[serde(default)]
    pub(crate) squeezes: Option<bool>,
    #[serde(default)]
    pub(crate) own: Option<bool>,
    #[serde(default)]
    pub(crate) work: Vec<WorkKind>,
    #[serde(default)]
    pub(crate) unoptimised: bool,
    pub(crate) command: String,
    pub(crate) text: String,
    #[serde(default)]
    pub(crate) changes: Option<String>,
    #[serde(default)]
    pub(crate) compare: Option<String>,
    #[cfg_attr(not(test), expect(dead_code, reason = "for readers of the table; a test requires the field"))]
    pub(crate) since: String,
    #[cfg_attr(not(test), expect(dead_code, reason = "for readers of the table; a test requires the field"))]
    pub(crate) checked: String,
}

#[derive(Debug, Deserialize)]
struct RemedyTable {
    pub(crate) remedy: Vec<RemedyRow>,
}

pub(crate) static TABLE: LazyLock<Vec<RemedyRow>> = LazyLock::new(|| {
    let of_calls = include_str!("remedies_of_calls.toml");
    let read = |text| toml::from_str::<RemedyTable>(text).expect("a test reads the tables").remedy;
    [of_calls, include_str!("remedies.toml")].into_iter().flat_map(read).collect()
});

/// The names of programs, and the options, on which remedies depend.
pub fn known_words() -> (impl Iterator<Item = &'static str>, impl Iterator<Item = &'static str>) {
    let names = TABLE.iter().flat_map(|row| row.program.iter().chain(&row.by).chain(&row.under));
    let options = TABLE.iter().flat_map(|row| row.has.iter().chain(&row.lacks).chain(&row.drops));
    (names.map(String::as_str), options.map(String::as_str))
}

/// What a program's script must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScriptKind {
    /// A script of sed that starts no program and writes no file.
    Sed,
    /// A program of awk that starts no program and writes no file.
    Awk,
    /// A program of awk that all versions do alike.
    PlainAwk,
}
