//! An experiment before it is expanded: its fixed parameters, its axes and its baseline.

use std::collections::BTreeMap;
use std::ops::Range;

use pipemark_entrants::AgainstProgram;
use pipemark_model::written::DesignSetting;
use pipemark_model::{Key, Statistic, Value};

use crate::plan::gains::GainsDesign;

/// A parameter, and the values over which it varies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesignAxis {
    pub key: Key,
    /// The values, at least one. All have the parameter `key`.
    pub values: Vec<DesignSetting>,
    pub(super) at: Option<Range<usize>>,
}

impl DesignAxis {
    /// An axis from a suite or from a comma-separated list on the command line.
    pub fn new(key: Key, values: impl IntoIterator<Item = Value>) -> DesignAxis {
        DesignAxis { key, values: values.into_iter().map(DesignSetting::from).collect(), at: None }
    }
}

/// One experiment before expansion. Its trials are all combinations of the axes' values, for each of the cases.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Design {
    /// See [`super::Experiment`].
    pub name: String,
    /// The heading of its table.
    pub title: String,
    pub about: String,
    /// The parameter in the table's columns, see [`pipemark_model::Experiment::across`].
    pub across: Option<Key>,
    /// The settings that all trials have.
    pub params: Vec<DesignSetting>,
    /// The parameters that vary. The first axis changes slowest.
    pub axes: Vec<DesignAxis>,
    /// Sets of settings, each combined with all values of the axes. A case may override `params`.
    pub cases: Vec<Vec<DesignSetting>>,
    /// The settings in which each trial's baseline differs from the trial. The baseline is added if it isn't one of the
    /// experiment's own trials. Empty for no baseline.
    pub baseline: Vec<DesignSetting>,
    /// Figures published by others.
    pub published: Vec<PublishedFigures>,
    /// The published table of gains that the experiment reproduces, in per cent over a base; `None` if there is none.
    pub gains: Option<GainsDesign>,
    /// Whether the total of each trial is chosen by measuring: see [`crate::with_volumes`].
    pub measures_volume: bool,
    /// The user's own programs. Each has a row for every combination of total and block of the other trials.
    pub against: Vec<AgainstProgram>,
    /// The position of the name in the suite's text in bytes, for errors. `None` for an experiment made from flags.
    pub(super) at: Option<Range<usize>>,
}

impl Design {
    /// An experiment with nothing fixed and nothing varied: a single trial.
    pub fn new(name: &str, title: &str) -> Design {
        Design { name: name.to_owned(), title: title.to_owned(), ..Design::default() }
    }

    /// The number of trials, without added baselines.
    pub fn count(&self) -> u128 {
        let cases = self.cases.len().max(1) as u128;
        self.axes.iter().fold(cases, |count, axis| count.saturating_mul(axis.values.len() as u128))
    }
}

/// Published figures from one source.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedFigures {
    /// The document in which they were published, and the hardware they were measured on.
    pub source: String,
    /// The figures apply only to trials that have these settings.
    pub when: Vec<DesignSetting>,
    /// Bytes moved for each figure. `None` means the trial's total at full volume.
    pub total: Option<u64>,
    /// Whether the published times are for an unknown number of bytes.
    pub relative: bool,
    /// How each figure was derived from the document's runs, such as their mean, if known.
    pub statistic: Option<Statistic>,
    /// The figures. The settings of all figures have the same parameter.
    pub figures: Vec<PublishedFigure>,
}

/// One published figure.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedFigure {
    /// The parameter's value that the figure belongs to.
    pub setting: DesignSetting,
    /// The figure in bytes per second.
    pub throughput: f64,
    /// The figure as text, see [`pipemark_model::Published::as_published`].
    pub as_published: String,
    /// Other figures, see [`pipemark_model::Published::figures`].
    pub figures: BTreeMap<String, f64>,
    /// Other figures as text, see [`pipemark_model::Published::figures_as_published`].
    pub figures_as_published: BTreeMap<String, String>,
}
