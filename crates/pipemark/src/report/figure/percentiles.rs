//! How round trips are distributed. Each run has its own percentiles, and what is drawn is the median of the runs: they are
//! not pooled.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;

use super::{Curve, Curves, Figure, Point, Role, Scene, Shape, at_most};
use crate::model::Sample;
use crate::show::axis::{Axis, Unit};
use crate::stats::estimate::median;

/// The most distributions that can be told apart in one chart.
const MOST: usize = 8;
/// The most runs of one trial that are looked at: each takes some time to unpack.
const MOST_RUNS: usize = 30;
/// Fewer round trips than this beyond a percentile are chance.
const FEWEST_BEYOND: f64 = 5.0;

pub(super) fn figure(scene: &Scene) -> Option<Figure> {
    let trials: Vec<_> = scene.ranked().collect();
    let (trials, left_out) = at_most(trials, MOST, "distributions");
    let curves: Vec<Curve> = trials
        .into_iter()
        .map(|trial| {
            let runs = trial.record.samples.iter().take(MOST_RUNS).filter_map(unpacked).collect::<Vec<_>>();
            let label = scene.label(trial, &[]);
            Curve { points: points(&label, &runs), label, role: Role::Distribution }
        })
        .filter(|curve| curve.points.len() > 2)
        .collect();
    if curves.is_empty() {
        return None;
    }
    let all = || curves.iter().flat_map(|curve| &curve.points);
    let most = all().map(|point| point.x).fold(1.0, f64::max).ceil();
    let ticks = (0..=most as u32).map(f64::from).chain([0.5f64.log10().abs()]);
    let mut x = Axis::at(
        "share of round trips that were at most this long",
        Unit::Nines,
        crate::show::axis::Scale::Linear,
        ticks,
    );
    x.high = all().map(|point| point.x).fold(0.0, f64::max);
    x.ticks.retain(|(tick, _)| *tick <= x.high);
    let y = Axis::log("round trip", Unit::Time, all().map(|point| point.y));
    let title = "How round trips are distributed".to_owned();
    Some(Figure { title, left_out, shape: Shape::Curves(Curves { x, y, curves }) })
}

/// What is stored is checked: a file may hold anything.
fn unpacked(sample: &Sample) -> Option<Histogram<u64>> {
    let packed = BASE64_STANDARD.decode(&sample.latency.as_ref()?.histogram).ok()?;
    let histogram = Deserializer::new().deserialize(&mut packed.as_slice()).ok()?;
    (!histogram.is_empty()).then_some(histogram)
}

fn points(label: &str, runs: &[Histogram<u64>]) -> Vec<Point> {
    let Some(fewest) = runs.iter().map(Histogram::len).min() else { return Vec::new() };
    let most_nines = (fewest as f64 / FEWEST_BEYOND).log10().clamp(0.0, 6.0);
    let steps = (most_nines * 10.0).floor() as u32;
    let at = (0..=steps).map(|step| f64::from(step) / 10.0);
    let point = |nines: f64| {
        let share = 1.0 - 10f64.powf(-nines);
        let values: Vec<f64> = runs.iter().map(|run| run.value_at_quantile(share) as f64).collect();
        let y = median(&values).filter(|value| *value > 0.0)?;
        Some(Point {
            x: nines,
            y,
            name: label.to_owned(),
            figure: format!("{}: {}", Unit::Nines.show(nines), Unit::Time.show(y)),
            interval: format!("median of {} runs", runs.len()),
            ..Point::default()
        })
    };
    at.filter_map(point).collect()
}
