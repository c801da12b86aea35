//! Kinds of work, and the table that names them by functions: `kinds.toml`.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

/// What a program spends its time on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum WorkKind {
    LocaleComparison,
    VersionComparison,
    RegularExpressions,
    Searching,
    Compression,
    Hashing,
    Encryption,
    Allocation,
    Copying,
    Numbers,
    CharacterSets,
    Sorting,
    Interpreting,
    GarbageCollection,
    CompilingCode,
    GeneratedCode,
    StructuredData,
    LinearAlgebra,
    Spinning,
    Locking,
    PageFaults,
    SystemCalls,
    FileMetadata,
    StartingProcesses,
    OutputFormatting,
}

impl WorkKind {
    /// The kind as a phrase after "computing:" or a share.
    pub fn phrase(self) -> &'static str {
        match self {
            WorkKind::LocaleComparison => "comparing text by locale",
            WorkKind::VersionComparison => "comparing version numbers",
            WorkKind::RegularExpressions => "matching regular expressions",
            WorkKind::Searching => "searching for bytes",
            WorkKind::Compression => "compressing or decompressing",
            WorkKind::Hashing => "hashing",
            WorkKind::Encryption => "encrypting or decrypting",
            WorkKind::Allocation => "allocating memory",
            WorkKind::Copying => "copying memory",
            WorkKind::Numbers => "parsing or printing numbers",
            WorkKind::CharacterSets => "converting character sets",
            WorkKind::Sorting => "sorting",
            WorkKind::Interpreting => "interpreting its program",
            WorkKind::GarbageCollection => "collecting garbage",
            WorkKind::CompilingCode => "compiling code at run time",
            WorkKind::GeneratedCode => "running code compiled at run time",
            WorkKind::StructuredData => "parsing or printing structured data",
            WorkKind::LinearAlgebra => "linear algebra",
            WorkKind::Spinning => "spinning",
            WorkKind::Locking => "locking",
            WorkKind::PageFaults => "page faults",
            WorkKind::SystemCalls => "system calls",
            WorkKind::FileMetadata => "opening files and reading their metadata",
            WorkKind::StartingProcesses => "starting processes",
            WorkKind::OutputFormatting => "formatting output",
        }
    }
}

/// A row of the table: functions that do one kind of work.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkRule {
    pub kind: WorkKind,
    /// The beginnings of the names of libraries and executables that have the functions; empty for all.
    #[serde(default)]
    pub images: Vec<String>,
    /// Names of functions; `*` at the beginning or the end stands for any text.
    #[serde(default)]
    pub functions: Vec<String>,
    /// Whether all functions of the images do this work, also those without a name.
    #[serde(default)]
    pub whole: bool,
    /// System calls.
    #[serde(default)]
    pub calls: Vec<String>,
}

#[derive(Deserialize)]
struct WorkTable {
    rule: Vec<WorkRule>,
}

/// The rows of `kinds.toml`, in order: the first that matches decides.
pub fn rules() -> &'static [WorkRule] {
    static RULES: LazyLock<Vec<WorkRule>> = LazyLock::new(|| {
        let table: WorkTable = toml::from_str(include_str!("kinds.toml")).expect("a test parses kinds.toml");
        table.rule
    });
    &RULES
}

/// What is known of a frame when its kind is looked up.
#[derive(Debug, Clone, Copy)]
pub struct Named<'a> {
    /// The name of the library or executable, without directories.
    pub image: &'a str,
    /// The function; `None` if it has no name.
    pub function: Option<&'a str>,
}

/// The kind of work that a frame does by itself; `None` if the table doesn't say.
pub fn kind_of(frame: Named<'_>) -> Option<WorkKind> {
    let fits = |rule: &&WorkRule| {
        let is_image = rule.images.is_empty() || rule.images.iter().any(|image| is_named(frame.image, image));
        is_image
            && (rule.whole
                || frame.function.is_some_and(|name| rule.functions.iter().any(|pattern| matches(pattern, name))))
    };
    rules().iter().find(fits).map(|rule| rule.kind)
}

/// The kind of work of a system call.
pub fn kind_of_call(call: &str) -> WorkKind {
    let named = rules().iter().find(|rule| rule.calls.iter().any(|pattern| matches(pattern, call)));
    named.map_or(WorkKind::SystemCalls, |rule| rule.kind)
}

/// Whether a file's name is this one, but for its version: `libz.so.1.2` is `libz`, and `python3.11` is `python`.
fn is_named(file: &str, name: &str) -> bool {
    let rest = file.strip_prefix(name);
    rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '+'))
}

fn matches(pattern: &str, name: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(_), Some(_)) => name.contains(pattern.trim_matches('*')),
        (Some(end), None) => name.ends_with(end),
        (None, Some(start)) => name.starts_with(start),
        (None, None) => name == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_can_be_read_and_every_row_matches_something() {
        for rule in rules() {
            let matches_some = rule.whole || !rule.functions.is_empty() || !rule.calls.is_empty();
            assert!(matches_some, "{rule:?} matches nothing");
            assert!(!rule.whole || !rule.images.is_empty(), "{rule:?} would match everything");
            for pattern in &rule.functions {
                assert!(pattern.trim_matches('*').len() > 2, "{pattern} is too short");
            }
        }
    }

    #[test]
    fn functions_have_kinds() {
        let kind = |image, function| kind_of(Named { image, function });
        assert_eq!(kind("libc.so.6", Some("strcoll")), Some(WorkKind::LocaleComparison));
        assert_eq!(kind("libc.so.6", Some("strcoll_l")), Some(WorkKind::LocaleComparison));
        assert_eq!(kind("libz.so.1.2.13", None), Some(WorkKind::Compression));
        assert_eq!(kind("libzip.so.4", None), None, "another library whose name begins alike");
        assert_eq!(kind("libc.so.6", None), None);
        assert_eq!(kind("gzip", None), Some(WorkKind::Compression));
        assert_eq!(kind("my-program", None), None);
        assert_eq!(kind_of_call("fsync"), WorkKind::SystemCalls);
        assert_eq!(kind_of_call("newfstatat"), WorkKind::FileMetadata);
    }
}
