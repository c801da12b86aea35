//! The charts of an experiment, from the trials of one or several documents.

mod bars;
mod curves;
mod heat;
mod section;
mod time;

use pipemark_model::{Document, Estimate, Key, Unit, group_by_key, neutral};
use pipemark_show::{Chart, Point, extent};

pub(super) use crate::sheet::charts::section::Section;
pub use crate::sheet::charts::section::labels;
use crate::sheet::charts::section::{Trial, number, truncate_with_note};
pub(super) use crate::sheet::charts::time::over_time;

/// The largest number of items in a chart. More would be hard to read and slow to draw. The table has all items.
const MAX_CURVES: usize = 24;
const MAX_POINTS: usize = 80;
const MAX_ROWS: usize = 60;

/// The charts of an experiment, the most important first.
pub(super) fn charts(section: &Section, documents: &[Document], labels: &[String]) -> Vec<Chart> {
    let context = Context { section, documents, labels };
    let ranked = section.trials.iter().filter(|trial| trial.job().link().transfers()).count();
    if ranked < 2 {
        return Vec::new();
    }
    let distributions = || section.latency.then(|| curves::distributions(&context)).flatten();
    let has = |key: Key| section.keys.contains(&key);
    let gains = heat::gains(&context);
    if !gains.is_empty() {
        return gains;
    }
    if has(Key::Length) {
        return vec![curves::chains(&context)];
    }
    let costs = has(Key::Feed).then(|| curves::lines(&context)).flatten();
    if let Some(costs) = costs {
        return vec![costs, bars::trials(&context)];
    }
    let numeric = context.numeric();
    if has(Key::Language) && numeric.is_none() {
        return bars::languages(&context);
    }
    if section.across == Some(Key::Place) {
        return heat::cpu_maps(&context);
    }
    if let Some(across) = section.across.filter(|key| has(*key)) {
        let curves = has(Key::Filter).then(|| curves::sweep(&context, across));
        return curves.into_iter().chain(heat::charts(&context, across)).collect();
    }
    match numeric {
        Some(key) if context.curves_by(key) > MAX_CURVES / 2 => heat::charts(&context, key),
        Some(key) => [curves::sweep(&context, key)].into_iter().chain(distributions()).collect(),
        None => [bars::trials(&context)].into_iter().chain(distributions()).collect(),
    }
}

/// The data of the charts.
#[derive(Clone, Copy)]
struct Context<'a> {
    section: &'a Section<'a>,
    documents: &'a [Document],
    labels: &'a [String],
}

impl<'a> Context<'a> {
    /// The trials that move bytes between processes. Other trials aren't ranked with them.
    fn ranked(&self) -> impl Iterator<Item = &'a Trial<'a>> {
        let has_times = |trial: &&Trial| !self.section.latency || trial.estimates.round_trip().is_some();
        self.section.trials.iter().filter(|trial| trial.job().link().transfers()).filter(has_times)
    }

    fn has_several_runs(&self) -> bool {
        self.section.runs.len() > 1
    }

    fn run(&self, trial: &Trial) -> &'a str {
        &self.labels[trial.run]
    }

    /// A name. If there are several runs, the name of the run follows.
    fn with_run(&self, name: String, run: usize) -> String {
        match (self.has_several_runs(), name.is_empty()) {
            (true, true) => self.labels[run].clone(),
            (true, false) => format!("{name} · {}", self.labels[run]),
            (false, _) => name,
        }
    }

    /// The parameter to draw curves over. It must have at least three numeric values. `None` if there is no such
    /// parameter.
    fn numeric(&self) -> Option<Key> {
        let count = |key: Key| self.section.numbers(key).map_or(0, |numbers| numbers.len());
        // A parameter with more values is preferred, but more than eight count as eight. Of parameters with equally
        // many values, the first in this order is preferred.
        let order =
            [Key::Block, Key::Capacity, Key::Gap, Key::Rate].into_iter().chain(self.section.keys.iter().copied());
        let candidates: Vec<Key> = order.filter(|key| self.section.keys.contains(key)).collect();
        let best = candidates.into_iter().rev().max_by_key(|key| count(*key).min(8))?;
        (count(best) >= 3).then_some(best)
    }

    fn keys_except(&self, but: &[Key]) -> Vec<Key> {
        self.section.keys.iter().copied().filter(|key| !but.contains(key)).collect()
    }

    /// The label of a trial's curve, without the parameters in `but`, such as the parameter along the axis.
    fn label(&self, trial: &Trial, but: &[Key]) -> String {
        match self.with_run(self.section.name_of(trial, &self.keys_except(but)), trial.run) {
            name if !name.is_empty() => name,
            _ if self.section.latency => "round trip".to_owned(),
            _ if self.documents[trial.run].suite == "import" => "measured elsewhere".to_owned(),
            _ => "measured here".to_owned(),
        }
    }

    fn curves_by(&self, x: Key) -> usize {
        self.grouped(&[x]).len()
    }

    /// The trials that move bytes, grouped by label, in order of first appearance.
    fn grouped(&self, but: &[Key]) -> Vec<(String, Vec<&'a Trial<'a>>)> {
        group_by_key(self.ranked().map(|trial| (self.label(trial, but), trial)))
    }

    /// The unit of the main figure.
    fn unit(&self) -> Unit {
        if self.section.latency { Unit::Nanoseconds } else { Unit::BytesPerSecond }
    }

    fn measure(&self) -> &'static str {
        match self.section.latency {
            true if self.section.keys.contains(&Key::Filter) => "time of a line, median",
            true => "round trip, median",
            false => "throughput",
        }
    }

    fn point(&self, trial: &Trial, x: f64) -> Point {
        self.point_of(trial, x, trial.estimates.headline(), self.unit())
    }

    fn point_of(&self, trial: &Trial, x: f64, estimate: &Estimate, unit: Unit) -> Point {
        let name = match self.with_run(self.section.name_of(trial, &self.section.keys), trial.run) {
            name if name.is_empty() => self.section.title.clone(),
            name => name,
        };
        let about = match (estimate.low, estimate.high) {
            (Some(low), Some(high)) => {
                format!("{} to {}, {} runs", unit.show(low), unit.show(high), estimate.runs)
            }
            _ => format!("too few runs ({}) for an interval", estimate.runs),
        };
        Point {
            x,
            y: estimate.median,
            interval: estimate.low.zip(estimate.high),
            name,
            figure: unit.show(estimate.median),
            about,
            ..Point::default()
        }
    }

    /// The speed of the memory copy in bytes per second; `None` for round trips, for several runs, or if it is far
    /// above `highest`, the highest figure shown.
    fn memory_copy(&self, highest: f64) -> Option<f64> {
        let [run] = self.section.runs[..] else { return None };
        let copy = self.documents[run].memory_copy?.median;
        (!self.section.latency && copy < 4.0 * highest).then_some(copy)
    }
}

/// The title of a parameter's axis.
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

/// The point of a figure that others measured on other hardware.
fn published(source: &str, unit: Unit, figure: f64, about: &str) -> Point {
    let name = format!("published: {}", neutral(source));
    Point {
        name,
        figure: unit.show(figure),
        about: format!("measured by others on other hardware{about}"),
        ..Point::default()
    }
}

/// Reduces `points` to the largest number that a chart shows. The first and the last point are kept.
fn downsample<T>(points: Vec<T>) -> Vec<T> {
    let count = points.len();
    if count <= MAX_POINTS {
        return points;
    }
    let every = count.div_ceil(MAX_POINTS);
    points.into_iter().enumerate().filter(|(n, _)| n % every == 0 || n + 1 == count).map(|(_, point)| point).collect()
}

/// Whether the values spread so widely that small ones would vanish on a linear axis.
fn spread(values: impl Iterator<Item = f64>) -> bool {
    extent(values.filter(|value| *value > 0.0)).is_some_and(|(low, high)| high > 20.0 * low)
}

/// Whether the trial uses the null link, which transfers nothing.
fn is_null(trial: &Trial) -> bool {
    trial.job().link().is_null()
}
