//! Expands the experiments of a suite to trials.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::time::Duration;

use strum::IntoEnumIterator;

use super::design::{Axis, Design, PublishedFigure, PublishedFigures, Setting};
use super::refusal::Refusal;
use super::suite::{MAX_TRIALS, Scale, Suite};
use super::{Plan, gains};
use crate::model::Experiment;
use crate::model::{ByteSize, Key, Params, Published, Trial, Volume};

pub(super) fn expand(suite: &Suite, scale: Scale) -> Result<Plan, Refusal> {
    let count = suite.designs.iter().fold(0u128, |count, design| count.saturating_add(design.count()));
    // Asked before anything is expanded: a few lines can order more trials than fit in memory.
    if count > MAX_TRIALS as u128 {
        let largest = suite.designs.iter().max_by_key(|design| design.count()).and_then(|design| design.at.clone());
        return Err(too_many(count, largest));
    }
    let mut names = HashSet::new();
    let mut experiments = Vec::new();
    let mut trials: Vec<Trial> = Vec::new();
    for design in &suite.designs {
        if !names.insert(&design.name) {
            let sentence = format!("there are two experiments called '{}'; each needs its own name", design.name);
            return Err(Refusal::new(sentence, design.at.clone()));
        }
        let its_trials = trials_of(&suite.defaults, design, scale)?;
        experiments.push(Experiment {
            name: design.name.clone(),
            title: design.title.clone(),
            about: design.about.clone(),
            varies: varies(design, &its_trials),
            across: design.across,
            gains: design.gains.as_ref().map(|gains| gains::resolve(gains, &its_trials)).transpose()?,
        });
        trials.extend(its_trials);
        // Baselines were added.
        if trials.len() > MAX_TRIALS {
            return Err(too_many(trials.len() as u128, design.at.clone()));
        }
    }

    let mut title = suite.title.clone();
    if scale != Scale::ONE {
        let totals = trials.iter().filter(|trial| matches!(trial.params.volume, Volume::Total(_))).count();
        let what = match totals {
            0 => "times",
            all if all == trials.len() => "totals",
            _ => "totals and times",
        };
        title.push_str(&format!(" ({what} × {scale})"));
    }
    let time = |trial: &Trial| match trial.params.volume {
        Volume::Time(time) => time.into(),
        Volume::Total(_) => Duration::ZERO,
    };
    let longest = trials.iter().map(time).max().unwrap_or_default();
    let schedule = suite.schedule.complete(longest).map_err(|sentence| Refusal::new(sentence, None))?;
    Ok(Plan { suite: suite.name.clone(), title, about: suite.about.clone(), experiments, trials, schedule })
}

fn too_many(count: u128, at: Option<Range<usize>>) -> Refusal {
    let plain = count.to_string();
    let mut digits = plain.clone();
    for comma in (1..plain.len()).rev().filter(|comma| (plain.len() - comma).is_multiple_of(3)) {
        digits.insert(comma, ',');
    }
    // The counting saturates.
    let or_more = if count == u128::MAX { " or more" } else { "" };
    Refusal::new(format!("these are {digits}{or_more} trials; the limit is 10,000, so leave out some values"), at)
}

fn trials_of(defaults: &[Setting], design: &Design, scale: Scale) -> Result<Vec<Trial>, Refusal> {
    check_axes(design)?;
    // Whoever typed flags knows of one experiment only, and not by its name.
    let refuse = |sentence: String| match &design.at {
        Some(at) => Refusal::new(format!("experiment '{}': {sentence}", design.name), Some(at.clone())),
        None => Refusal::new(sentence, None),
    };
    let checked = |params: Params| match params.check() {
        Ok(()) => Ok(params),
        Err(error) => Err(refuse(error.to_string())),
    };

    let mut base = Params::default();
    for setting in defaults.iter().chain(&design.params) {
        setting.apply(&mut base);
    }
    let no_case = [Vec::new()];
    let cases = if design.cases.is_empty() { &no_case[..] } else { &design.cases };
    let mut ordered = Vec::new();
    let mut ids = HashSet::new();
    for case in cases {
        for combination in Combinations::of(&design.axes) {
            let mut params = base.clone();
            for setting in case.iter().chain(combination) {
                setting.apply(&mut params);
            }
            let params = checked(params)?;
            if !ids.insert(params.id()) {
                let at = case.iter().find_map(|setting| setting.at.clone()).or(design.at.clone());
                return Err(Refusal::new(
                    format!("experiment '{}' orders the trial '{}' twice", design.name, params.id()),
                    at,
                ));
            }
            ordered.push(params);
        }
    }

    let mut published = Shelf::of(&design.published);
    let mut trials: Vec<Trial> = Vec::new();
    for params in ordered {
        let mut baseline = params.clone();
        for setting in &design.baseline {
            setting.apply(&mut baseline);
        }
        let is_its_own = baseline.id() == params.id();
        if !is_its_own && ids.insert(baseline.id()) {
            trials.push(trial(design, checked(baseline.clone())?, None, &mut published, scale));
        }
        trials.push(trial(design, params, (!is_its_own).then_some(baseline), &mut published, scale));
    }
    published.all_found_a_trial(design)?;
    let mut scaled_ids = HashSet::new();
    match trials.iter().find(|trial| !scaled_ids.insert(&trial.id)) {
        Some(trial) => Err(refuse(format!("at the scale of {scale} two trials become the same, '{}'", trial.id))),
        None => Ok(trials),
    }
}

fn trial(design: &Design, params: Params, baseline: Option<Params>, published: &mut Shelf, scale: Scale) -> Trial {
    let figure = published.take(&params);
    let params = scaled(params, scale);
    Trial {
        id: params.id(),
        experiment: design.name.clone(),
        params,
        baseline: baseline.map(|baseline| scaled(baseline, scale).id()),
        published: figure,
    }
}

fn scaled(mut params: Params, scale: Scale) -> Params {
    params.volume = match params.volume {
        Volume::Total(total) => Volume::Total(ByteSize(scale.apply(total.0, params.block.0))),
        Volume::Time(time) => Volume::Time(scale.apply_to_time(time)),
    };
    params
}

/// Total and time are two ways to say one thing.
fn subject(key: Key) -> Key {
    if key == Key::Time { Key::Total } else { key }
}

/// Refuses axes that make no sense together, where the trials would only show as contradictions or duplicates.
fn check_axes(design: &Design) -> Result<(), Refusal> {
    let mut seen = HashSet::new();
    for axis in &design.axes {
        let key = axis.key;
        if axis.values.is_empty() {
            return Err(Refusal::new(format!("the axis '{key}' has no values"), axis.at.clone()));
        }
        if !seen.insert(subject(key)) {
            let sentence = format!("'{key}' has two axes, or total and time are both given; leave one out");
            return Err(Refusal::new(sentence, axis.at.clone()));
        }
        let mut values = HashSet::new();
        for setting in &axis.values {
            if !values.insert(setting.exact()) {
                let sentence = format!("{key} {} is given twice", setting.exact());
                return Err(Refusal::new(sentence, setting.at.clone().or(axis.at.clone())));
            }
        }
    }
    for setting in design.params.iter().chain(design.cases.iter().flatten()) {
        if seen.contains(&subject(setting.key())) {
            let sentence = format!("'{}' is varied by an axis, so it cannot be fixed as well", setting.key());
            return Err(Refusal::new(sentence, setting.at.clone()));
        }
    }
    Ok(())
}

/// All combinations of the values of some axes; a single empty one for no axes.
struct Combinations<'a> {
    axes: &'a [Axis],
    next: usize,
    count: usize,
}

impl<'a> Combinations<'a> {
    /// There are at most [`MAX_TRIALS`], which was checked before.
    fn of(axes: &'a [Axis]) -> Self {
        Combinations { axes, next: 0, count: axes.iter().map(|axis| axis.values.len()).product() }
    }
}

impl<'a> Iterator for Combinations<'a> {
    type Item = Vec<&'a Setting>;

    /// Counts with one digit for each axis, the last axis's changing fastest.
    fn next(&mut self) -> Option<Self::Item> {
        if self.next == self.count {
            return None;
        }
        let mut rest = self.next;
        self.next += 1;
        let mut combination: Vec<&Setting> = Vec::with_capacity(self.axes.len());
        for axis in self.axes.iter().rev() {
            combination.push(&axis.values[rest % axis.values.len()]);
            rest /= axis.values.len();
        }
        combination.reverse();
        Some(combination)
    }
}

/// The parameters in which the trials differ: those of the axes first, then those of the cases, then those of added
/// baselines. A volume that goes with another parameter (each block size has its own total) tells nothing apart.
fn varies(design: &Design, trials: &[Trial]) -> Vec<Key> {
    let mut keys: Vec<Key> = Vec::new();
    let axes = design.axes.iter().map(|axis| axis.key);
    let cases = design.cases.iter().flatten().map(Setting::key);
    for key in axes.chain(cases).chain(Key::iter()) {
        let differs = || trials.iter().any(|trial| trial.params.exact(key) != trials[0].params.exact(key));
        // A read block follows the block unless it is set.
        let follows = key == Key::ReadBlock && trials.iter().all(|trial| trial.params.read_block.is_none());
        if !keys.contains(&key) && !follows && differs() {
            keys.push(key);
        }
    }
    let without_volume: Vec<Key> = keys.iter().copied().filter(|key| subject(*key) != Key::Total).collect();
    let tells_apart = |keys: &[Key]| {
        let mut seen = HashSet::new();
        trials.iter().all(|trial| seen.insert(keys.iter().map(|key| trial.params.exact(*key)).collect::<Vec<_>>()))
    };
    if tells_apart(&without_volume) { without_volume } else { keys }
}

/// The published figures of an experiment, to be found by the parameters of a trial.
struct Shelf<'a> {
    tables: Vec<Table<'a>>,
}

struct Table<'a> {
    source: &'a str,
    by: Key,
    relative: bool,
    when: Vec<(Key, String)>,
    figures: HashMap<String, Figure<'a>>,
}

struct Figure<'a> {
    throughput: f64,
    setting: &'a Setting,
    found: bool,
}

impl<'a> Shelf<'a> {
    fn of(published: &'a [PublishedFigures]) -> Self {
        let table = |column: &'a PublishedFigures| {
            let by = column.figures.first()?.setting.key();
            let figure = |figure: &'a PublishedFigure| {
                let entry = Figure { throughput: figure.throughput, setting: &figure.setting, found: false };
                (figure.setting.exact(), entry)
            };
            Some(Table {
                source: &column.source,
                by,
                relative: column.relative,
                when: column.when.iter().map(|setting| (setting.key(), setting.exact())).collect(),
                figures: column.figures.iter().map(figure).collect(),
            })
        };
        Shelf { tables: published.iter().filter_map(table).collect() }
    }

    /// The figure of the first table that has one for the trial.
    fn take(&mut self, params: &Params) -> Option<Published> {
        self.tables.iter_mut().find_map(|table| {
            if table.when.iter().any(|(key, value)| params.exact(*key) != *value) {
                return None;
            }
            let figure = table.figures.get_mut(&params.exact(table.by))?;
            figure.found = true;
            Some(Published { throughput: figure.throughput, source: table.source.to_owned(), relative: table.relative })
        })
    }

    fn all_found_a_trial(&self, design: &Design) -> Result<(), Refusal> {
        let figures = self.tables.iter().flat_map(|table| table.figures.values());
        // The first in the file, whatever the order of the map.
        match figures.filter(|figure| !figure.found).min_by_key(|figure| figure.setting.at.as_ref().map(|at| at.start))
        {
            None => Ok(()),
            Some(lost) => Err(Refusal::new(
                format!(
                    "a figure is published for {} {}, but experiment '{}' has no such trial without one",
                    lost.setting.key(),
                    lost.setting.exact(),
                    design.name
                ),
                lost.setting.at.clone(),
            )),
        }
    }
}
