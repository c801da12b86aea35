//! An experiment before it is expanded: what is fixed, what varies, what it is held against.

use std::collections::BTreeMap;
use std::ops::Range;

use pipemark_entrants::AgainstProgram;
use pipemark_model::{Key, Value};

use crate::plan::gains::GainsDesign;

/// A value of a parameter, and where it stands in the suite's text, for errors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The value.
    pub value: Value,
    pub(super) at: Option<Range<usize>>,
}

impl Setting {
    /// The parameter.
    pub fn key(&self) -> Key {
        self.value.key()
    }
}

impl From<Value> for Setting {
    fn from(value: Value) -> Setting {
        Setting { value, at: None }
    }
}

/// A parameter that takes each of several values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesignAxis {
    /// The parameter.
    pub key: Key,
    /// Its values, at least one; each has `key`.
    pub values: Vec<Setting>,
    pub(super) at: Option<Range<usize>>,
}

impl DesignAxis {
    /// An axis of a suite or of a comma list on the command line.
    pub fn new(key: Key, values: impl IntoIterator<Item = Value>) -> DesignAxis {
        DesignAxis { key, values: values.into_iter().map(Setting::from).collect(), at: None }
    }
}

/// One experiment: the trials are all combinations of the values of the axes, for each of the cases.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Design {
    /// See [`super::Experiment`].
    pub name: String,
    /// The heading of its table.
    pub title: String,
    /// What it shows.
    pub about: String,
    /// See [`pipemark_model::Experiment::across`].
    pub across: Option<Key>,
    /// What all its trials have.
    pub params: Vec<Setting>,
    /// What takes each of several values. The first axis changes slowest.
    pub axes: Vec<DesignAxis>,
    /// Combinations that are no product: each goes with all values of the axes. A case may replace what `params` say.
    pub cases: Vec<Vec<Setting>>,
    /// Each trial is held against the one that differs from it in these only; it is added where it is not ordered.
    pub baseline: Vec<Setting>,
    /// What others measured.
    pub published: Vec<PublishedFigures>,
    /// The published table of per cent over a base that it repeats.
    pub gains: Option<GainsDesign>,
    /// Whether the total of each chain is chosen by measuring, see [`crate::with_volumes`].
    pub measures_volume: bool,
    /// Programs of someone's own: each has a row for each number of bytes and block of the others.
    pub against: Vec<AgainstProgram>,
    /// Where its name stands in the suite's text.
    pub(super) at: Option<Range<usize>>,
}

impl Design {
    /// An experiment with nothing fixed and nothing varied: a single trial.
    pub fn new(name: &str, title: &str) -> Design {
        Design { name: name.to_owned(), title: title.to_owned(), ..Design::default() }
    }

    /// How many trials are ordered, without baselines that are added.
    pub fn count(&self) -> u128 {
        let cases = self.cases.len().max(1) as u128;
        self.axes.iter().fold(cases, |count, axis| count.saturating_mul(axis.values.len() as u128))
    }
}

/// A column of figures from a document.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedFigures {
    /// Where they were published, and on what hardware they were measured.
    pub source: String,
    /// They belong to the trials with these settings only.
    pub when: Vec<Setting>,
    /// How many bytes were moved for each figure; as many as the trial moves at full volume where it isn't given.
    pub total: Option<u64>,
    /// Whether it is not known how many bytes took the published times.
    pub relative: bool,
    /// Each figure; all settings have the same key.
    pub figures: Vec<PublishedFigure>,
}

/// One figure from a document.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedFigure {
    /// The value of the parameter that the figure belongs to.
    pub setting: Setting,
    /// Bytes per second.
    pub throughput: f64,
    /// See [`pipemark_model::Published::as_published`].
    pub as_published: String,
    /// See [`pipemark_model::Published::figures`].
    pub figures: BTreeMap<String, f64>,
}
