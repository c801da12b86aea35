//! What a chart shows, before anything is drawn; and which chart answers the question of an experiment.

mod bars;
mod chain;
mod heat;
mod languages;
mod percentiles;
mod sweep;

use crate::model::{Document, Estimate, Key, LinkKind};
use crate::show::axis::{Axis, Unit};

use super::sections::{Section, Trial, number};

/// One chart.
#[derive(Debug, Clone)]
pub(super) struct Figure {
    /// What it shows; it stands above the chart.
    pub(super) title: String,
    /// What was left out so that it can be read; empty if nothing was.
    pub(super) left_out: String,
    pub(super) shape: Shape,
}

/// The kinds of charts.
#[derive(Debug, Clone)]
pub(super) enum Shape {
    Curves(Curves),
    Bars(Bars),
    Heat(Heat),
}

/// Curves over two axes.
#[derive(Debug, Clone)]
pub(super) struct Curves {
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) curves: Vec<Curve>,
}

/// What a curve stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Measured here: points with intervals, joined.
    Measured,
    /// A line through measured points.
    Fit,
    /// Measured by others on other hardware.
    Published,
    /// So many points that they are joined and not marked.
    Distribution,
}

#[derive(Debug, Clone)]
pub(super) struct Curve {
    pub(super) label: String,
    pub(super) role: Role,
    pub(super) points: Vec<Point>,
}

/// A figure with its interval, and how it is told in words.
#[derive(Debug, Clone, Default)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) low: Option<f64>,
    pub(super) high: Option<f64>,
    /// The trial.
    pub(super) name: String,
    /// The figure.
    pub(super) figure: String,
    /// Its interval and number of runs; empty where there is none.
    pub(super) interval: String,
}

/// Bars from 0, the best first.
#[derive(Debug, Clone)]
pub(super) struct Bars {
    pub(super) x: Axis,
    /// The names of the rows, from top to bottom.
    pub(super) rows: Vec<String>,
    /// What the bars of a row stand for; one without a name where there is one bar a row.
    pub(super) series: Vec<String>,
    pub(super) bars: Vec<Bar>,
    /// What others measured, marked in the row.
    pub(super) published: Vec<Bar>,
    /// Limits that the bars are held against.
    pub(super) limits: Vec<(String, f64)>,
}

/// One bar: `point.y` is its length.
#[derive(Debug, Clone)]
pub(super) struct Bar {
    pub(super) row: usize,
    pub(super) series: usize,
    pub(super) point: Point,
}

/// A table whose cells are coloured by their figure.
#[derive(Debug, Clone)]
pub(super) struct Heat {
    pub(super) colour: Colouring,
    /// What the columns are.
    pub(super) across: String,
    pub(super) columns: Vec<String>,
    pub(super) panels: Vec<Panel>,
}

/// How figures become colours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Colouring {
    /// From `low` to `high` on a logarithmic scale; the better end is the stronger colour.
    Sequential { low: f64, high: f64, more_is_better: bool },
    /// Around 1: `most` times as fast and as slow are the two ends.
    Diverging { most: f64 },
}

/// One of several tables of the same kind, side by side.
#[derive(Debug, Clone)]
pub(super) struct Panel {
    pub(super) title: String,
    pub(super) rows: Vec<String>,
    pub(super) cells: Vec<HeatCell>,
}

#[derive(Debug, Clone)]
pub(super) struct HeatCell {
    pub(super) row: usize,
    pub(super) column: usize,
    /// What its colour says; `None` for what is not to be ranked.
    pub(super) value: Option<f64>,
    /// What it says in itself.
    pub(super) brief: String,
    pub(super) point: Point,
}

/// The most that one chart shows, so that it can be read and drawn at once; the table has all.
const MOST_CURVES: usize = 24;
const MOST_POINTS: usize = 80;
const MOST_ROWS: usize = 60;

/// The charts of an experiment, the one that answers its question first.
pub(super) fn figures(section: &Section, documents: &[Document], labels: &[String]) -> Vec<Figure> {
    let scene = Scene { section, documents, labels };
    let ranked = section.trials.iter().filter(|trial| trial.job().link().transfers()).count();
    if ranked < 2 {
        return Vec::new();
    }
    let distributions = || section.latency.then(|| percentiles::figure(&scene)).flatten();
    let has = |key: Key| section.keys.contains(&key);
    if has(Key::Length) {
        return chain::figures(&scene);
    }
    let numeric = scene.numeric();
    if has(Key::Language) && numeric.is_none() {
        return languages::figures(&scene);
    }
    if let Some(across) = section.across.filter(|key| has(*key)) {
        return heat::figures(&scene, across);
    }
    match numeric {
        Some(key) if scene.curves_by(key) > MOST_CURVES / 2 => heat::figures(&scene, key),
        Some(key) => sweep::figures(&scene, key).into_iter().chain(distributions()).collect(),
        None => bars::figures(&scene).into_iter().chain(distributions()).collect(),
    }
}

/// What figures are made of.
#[derive(Clone, Copy)]
struct Scene<'a> {
    section: &'a Section<'a>,
    documents: &'a [Document],
    labels: &'a [String],
}

impl<'a> Scene<'a> {
    /// Trials that move bytes: what does not is not ranked with what does.
    fn ranked(&self) -> impl Iterator<Item = &'a Trial<'a>> {
        self.section.trials.iter().filter(|trial| trial.job().link().transfers())
    }

    fn several_runs(&self) -> bool {
        self.section.runs.len() > 1
    }

    fn run(&self, trial: &Trial) -> &'a str {
        &self.labels[trial.run]
    }

    /// The parameter that curves are drawn against: numbers, at least three of them.
    fn numeric(&self) -> Option<Key> {
        let count = |key: Key| self.section.numbers(key).map_or(0, |numbers| numbers.len());
        // More values make a better curve, up to a point; of equals the first has the more telling axis.
        let order =
            [Key::Block, Key::Capacity, Key::Gap, Key::Rate].into_iter().chain(self.section.keys.iter().copied());
        let candidates: Vec<Key> = order.filter(|key| self.section.keys.contains(key)).collect();
        let best = candidates.into_iter().rev().max_by_key(|key| count(*key).min(8))?;
        (count(best) >= 3).then_some(best)
    }

    fn keys_but(&self, but: &[Key]) -> Vec<Key> {
        self.section.keys.iter().copied().filter(|key| !but.contains(key)).collect()
    }

    /// What tells a trial's curve from others, in words, where `x` runs along it.
    fn label(&self, trial: &Trial, but: &[Key]) -> String {
        let name = self.section.name_of(trial, &self.keys_but(but));
        match (self.several_runs(), name.is_empty()) {
            (true, true) => self.run(trial).to_owned(),
            (true, false) => format!("{name} · {}", self.run(trial)),
            (false, true) if self.section.latency => "round trip".to_owned(),
            (false, true) => "measured here".to_owned(),
            (false, false) => name,
        }
    }

    fn curves_by(&self, x: Key) -> usize {
        let labels = self.ranked().map(|trial| self.label(trial, &[x]));
        labels.collect::<std::collections::HashSet<_>>().len()
    }

    /// The trials that move bytes, grouped by their label, in the order of their first.
    fn grouped(&self, but: &[Key]) -> Vec<(String, Vec<&'a Trial<'a>>)> {
        let mut groups: Vec<(String, Vec<&Trial>)> = Vec::new();
        let mut places = std::collections::HashMap::new();
        for trial in self.ranked() {
            let label = self.label(trial, but);
            let place = *places.entry(label.clone()).or_insert(groups.len());
            match groups.get_mut(place) {
                Some((_, trials)) => trials.push(trial),
                None => groups.push((label, vec![trial])),
            }
        }
        groups
    }

    /// The unit of the figure that trials are told by.
    fn unit(&self) -> Unit {
        if self.section.latency { Unit::Time } else { Unit::Throughput }
    }

    fn measure(&self) -> &'static str {
        if self.section.latency { "round trip, median" } else { "throughput" }
    }

    fn point(&self, trial: &Trial, x: f64) -> Point {
        self.point_of(trial, x, trial.estimates.headline(), self.unit())
    }

    fn point_of(&self, trial: &Trial, x: f64, estimate: &Estimate, unit: Unit) -> Point {
        let name = self.section.name_of(trial, &self.section.keys);
        let name = match (self.several_runs(), name.is_empty()) {
            (true, _) => format!("{name} · {}", self.run(trial)),
            (false, true) => self.section.title.clone(),
            (false, false) => name,
        };
        let interval = match (estimate.low, estimate.high) {
            (Some(low), Some(high)) => {
                format!("{} to {}, {} runs", unit.show(low), unit.show(high), estimate.runs)
            }
            _ => format!("too few runs ({}) for an interval", estimate.runs),
        };
        Point {
            x,
            y: estimate.median,
            low: estimate.low,
            high: estimate.high,
            name,
            figure: unit.show(estimate.median),
            interval,
        }
    }

    /// Copying within one process, where all runs are of one machine and it is not far above what is shown.
    fn memory_copy(&self, highest: f64) -> Option<f64> {
        let [run] = self.section.runs[..] else { return None };
        let copy = self.documents[run].memory_copy?.median;
        (!self.section.latency && copy < 4.0 * highest).then_some(copy)
    }
}

/// The unit of a parameter that curves are drawn against.
fn unit_of(key: Key) -> Unit {
    match key {
        Key::Block | Key::ReadBlock | Key::Capacity | Key::Buffer | Key::Align => Unit::Bytes,
        Key::Gap | Key::ReadDelay | Key::WriteDelay => Unit::Time,
        _ => Unit::Count,
    }
}

/// What stands beside the axis of a parameter.
fn title_of(key: Key) -> String {
    match key {
        Key::Block => "block size (bytes per call)".to_owned(),
        Key::Capacity => "pipe capacity granted".to_owned(),
        Key::Length => "stages in the chain".to_owned(),
        Key::Gap => "pause before each message".to_owned(),
        Key::Rate => "messages per second".to_owned(),
        key => key.to_string().replace('-', " "),
    }
}

/// `points` thinned to what a chart shows, the ends kept.
fn thinned<T>(points: Vec<T>) -> Vec<T> {
    let count = points.len();
    if count <= MOST_POINTS {
        return points;
    }
    let every = count.div_ceil(MOST_POINTS);
    points.into_iter().enumerate().filter(|(n, _)| n % every == 0 || n + 1 == count).map(|(_, point)| point).collect()
}

/// The most of `groups` that a chart shows, those with the most important figures first; and what was left out.
fn at_most<T>(mut groups: Vec<T>, most: usize, what: &str) -> (Vec<T>, String) {
    let all = groups.len();
    if all <= most {
        return (groups, String::new());
    }
    groups.truncate(most);
    (groups, format!("The chart shows {most} of {all} {what}; the table has all."))
}

/// Whether figures are spread so far that small ones would vanish on a linear axis.
fn spread(values: impl Iterator<Item = f64>) -> bool {
    let (low, high) = values.filter(|v| *v > 0.0).fold((f64::INFINITY, 0.0f64), |(l, h), v| (l.min(v), h.max(v)));
    high > 20.0 * low
}

/// Whether what is measured is not the null link, which transfers nothing.
fn is_null(trial: &Trial) -> bool {
    trial.job().link() == LinkKind::Null
}
