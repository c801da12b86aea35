//! An experiment before it is expanded: its fixed parameters, its axes and its baseline.

use std::collections::BTreeMap;
use std::ops::Range;

use pipemark_entrants::AgainstProgram;
use pipemark_model::{Key, Value};

use crate::plan::gains::GainsDesign;

/// A value of a parameter, and its place in the suite's text, for errors.
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

/// A parameter and the values it varies over.
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

/// One experiment. Its trials are all combinations of the axes' values, for each of the cases.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Design {
    /// See [`super::Experiment`].
    pub name: String,
    /// The heading of its table.
    pub title: String,
    /// Its description.
    pub about: String,
    /// See [`pipemark_model::Experiment::across`].
    pub across: Option<Key>,
    /// The settings that all its trials have.
    pub params: Vec<Setting>,
    /// The parameters that vary. The first axis changes slowest.
    pub axes: Vec<DesignAxis>,
    /// Sets of settings, each combined with all values of the axes. A case may override `params`.
    pub cases: Vec<Vec<Setting>>,
    /// Each trial is compared with the trial that differs from it only in these settings. That
    /// trial is added if the experiment doesn't order it.
    pub baseline: Vec<Setting>,
    /// Figures that others published.
    pub published: Vec<PublishedFigures>,
    /// The published table of gains, in per cent over a base, that the experiment repeats.
    pub gains: Option<GainsDesign>,
    /// Whether the total of each chain is chosen by measuring; see [`crate::with_volumes`].
    pub measures_volume: bool,
    /// The user's own programs. Each has a row for every total and block of the other trials.
    pub against: Vec<AgainstProgram>,
    /// The place of its name in the suite's text.
    pub(super) at: Option<Range<usize>>,
}

impl Design {
    /// An experiment with nothing fixed and nothing varied: a single trial.
    pub fn new(name: &str, title: &str) -> Design {
        Design { name: name.to_owned(), title: title.to_owned(), ..Design::default() }
    }

    /// The number of trials ordered, without added baselines.
    pub fn count(&self) -> u128 {
        let cases = self.cases.len().max(1) as u128;
        self.axes.iter().fold(cases, |count, axis| count.saturating_mul(axis.values.len() as u128))
    }
}

/// A column of published figures.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedFigures {
    /// Where they were published, and the hardware they were measured on.
    pub source: String,
    /// The figures apply only to trials with these settings.
    pub when: Vec<Setting>,
    /// Bytes moved for each figure. If `None`, the total of the trial at full volume.
    pub total: Option<u64>,
    /// Whether the published times are for an unknown number of bytes.
    pub relative: bool,
    /// The figures. Their settings all have the same key.
    pub figures: Vec<PublishedFigure>,
}

/// One published figure.
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
