//! A stage at which rules are tried, and the change that a rule makes there. Pure.

use crate::typed::{TypedCommand, TypedPipeline, TypedStage};

/// What decides which changes are possible and useful here.
pub struct RewriteSetting<'a> {
    /// The number of CPUs that the pipeline may use.
    pub cpus: usize,
    /// Whether a control group limits the memory.
    pub memory_limited: bool,
    /// The environment, as in /proc/PID/environ.
    pub environment: Vec<u8>,
    /// The locale of the pipeline.
    pub locale: Locale,
    /// Whether a program is installed.
    pub is_installed: &'a dyn Fn(&str) -> bool,
    /// Whether the program awk is GNU awk.
    pub awk_is_gawk: bool,
}

/// How text is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locale {
    /// Bytes.
    Bytes,
    /// Characters of several bytes, sorted by their numbers: C.UTF-8.
    CodePoints,
    /// By the rules of a language.
    Language,
}

impl Locale {
    /// The locale that these variables select, the first that is set: LC_ALL, the category's, LANG.
    pub fn of(variables: impl IntoIterator<Item = Option<String>>) -> Locale {
        let name = variables.into_iter().flatten().find(|value| !value.is_empty()).unwrap_or_default();
        let name = name.to_ascii_lowercase();
        match name.as_str() {
            "" | "c" | "posix" => Locale::Bytes,
            _ if name.starts_with("c.") || name.starts_with("posix.") => Locale::CodePoints,
            _ => Locale::Language,
        }
    }
}

/// A change of some neighbouring stages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewrite {
    /// A name that never changes, even if the text does.
    pub id: String,
    /// The first and the last stage that it replaces, counted from 0.
    pub first: usize,
    pub last: usize,
    /// The commands that replace them.
    pub with: Vec<String>,
    /// What it does, as a clause.
    pub text: String,
    /// Programs that must be installed.
    pub needs: Vec<String>,
    /// How the output changes; `None` if it doesn't.
    pub changes: Option<String>,
    /// A command after which the outputs with and without the change are the same.
    pub compare: Option<String>,
}

impl Rewrite {
    /// The changed pipeline.
    pub fn apply(&self, pipeline: &TypedPipeline) -> TypedPipeline {
        pipeline.replaced(self.first, self.last, &self.with)
    }

    /// Whether both change a stage.
    pub fn overlaps(&self, other: &Rewrite) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// A stage for which rules are tried.
pub(super) struct Site<'a> {
    pub pipeline: &'a TypedPipeline,
    pub at: usize,
    pub setting: &'a RewriteSetting<'a>,
}

impl<'a> Site<'a> {
    /// The plain command `ahead` stages later.
    pub fn command(&self, ahead: usize) -> Option<&'a TypedCommand> {
        self.pipeline.stages.get(self.at + ahead)?.command.as_ref()
    }

    /// A plain command whose words are all known and whose output isn't redirected.
    pub fn literal(&self, ahead: usize) -> Option<&'a TypedCommand> {
        self.command(ahead).filter(|command| command.is_literal() && command.writes_to_pipeline())
    }

    pub fn following(&self, stages: usize) -> &'a [TypedStage] {
        &self.pipeline.stages[(self.at + stages).min(self.pipeline.stages.len())..]
    }

    pub fn rewrite(&self, id: &str, stages: usize, with: Vec<String>, text: impl Into<String>) -> Rewrite {
        Rewrite {
            id: id.to_owned(),
            first: self.at,
            last: self.at + stages - 1,
            with,
            text: text.into(),
            needs: Vec::new(),
            changes: None,
            compare: None,
        }
    }

    /// The stage's text with another beginning instead of its first word.
    pub fn with_program(&self, command: &TypedCommand, program: &str) -> String {
        let typed = self.pipeline.stages[self.at].text.trim();
        let first = &command.words[0].text;
        match typed.find(first.as_str()) {
            Some(at) => format!("{}{program}{}", &typed[..at], &typed[at + first.len()..]),
            None => typed.to_owned(),
        }
    }
}

pub(super) fn one<T>(value: Option<T>) -> Vec<T> {
    value.into_iter().collect()
}
