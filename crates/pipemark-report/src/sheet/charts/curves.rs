//! Curves over a numeric axis: throughput or round-trip times by a parameter, real times of chains by length, and
//! distributions of round-trip times.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;

use pipemark_model::{
    ByteSize, Estimate, Figure, GIB, Key, Published, Sample, Unit, Volume, bytes_in_words, capitalised, total_order,
};
use pipemark_show::{Axis, Chart, ChartKind, Point, Scale, Series, SeriesRole};
use pipemark_stats::estimate::median;
use pipemark_stats::fit::{FittedLine, Weighting};

use crate::sheet::charts::{
    Context, MAX_CURVES, Trial, downsample, number, published, spread, title_of, truncate_with_note,
};

/// The largest number of distributions that can be distinguished in a chart.
const MAX_DISTRIBUTIONS: usize = 8;
/// The largest number of runs drawn for one trial, because decoding a run takes time.
const MAX_RUNS: usize = 30;
/// A percentile is drawn only if at least this many round trips are above it.
const MIN_BEYOND: f64 = 5.0;

/// Throughput or round trips over a numeric parameter, such as the block size.
pub(super) fn sweep(context: &Context, key: Key) -> Chart {
    let (groups, omitted) = truncate_with_note(context.grouped(&[key]), MAX_CURVES, "curves");
    let mut series: Vec<Series> = groups
        .into_iter()
        .map(|(label, trials)| {
            let points = trials.iter().filter_map(|trial| Some(context.point(trial, number(trial, key)? as f64)));
            Series { label, role: SeriesRole::Measured, points: downsample(sort_points(points.collect())) }
        })
        .collect();
    let unit = context.unit();
    let mut elsewhere: Vec<Series> = Vec::new();
    for trial in context.ranked() {
        let figure = trial.record.published.as_ref().filter(|figure| figure.throughput > 0.0);
        if let (Some(figure), Some(x)) = (figure, number(trial, key)) {
            let point = published(&figure.source, unit, figure.throughput, "");
            add(&mut elsewhere, Point { x: x as f64, y: figure.throughput, ..point });
        }
    }
    series.extend(elsewhere);
    let points = || series.iter().flat_map(|series| &series.points);
    let least = points().map(|point| point.x).filter(|x| *x > 0.0).fold(f64::INFINITY, f64::min).min(1e12);
    let across = if points().any(|point| point.x <= 0.0) { Scale::LogWithZero(least) } else { Scale::Log };
    let up = if spread(points().map(|point| point.y)) { Scale::Log } else { Scale::Linear };
    let title = format!("{} against {}", capitalised(context.measure()), title_of(key));
    let (x, y) = (Axis::new(&title_of(key), key.unit(), across), Axis::new(context.measure(), unit, up));
    Chart { below: omitted, ..Chart::new(&title, ChartKind::Curves, x, y, series) }
}

/// The real time of chains over their length, with fitted lines and the published chains.
pub(super) fn chains(context: &Context) -> Chart {
    let (groups, omitted) = truncate_with_note(context.grouped(&[Key::Length]), MAX_CURVES, "curves");
    let mut series = Vec::new();
    let mut elsewhere: Vec<Series> = Vec::new();
    for (label, trials) in groups {
        let mut points = Vec::new();
        for trial in trials {
            let real = trial.estimates.get(Figure::Real).zip(number(trial, Key::Length));
            let Some((real, length)) = real else { continue };
            points.push(context.point_of(trial, length as f64, real, Unit::Nanoseconds));
            let bytes = |figure: &Published| match (figure.total, trial.job().volume()) {
                (Some(total), _) | (None, Volume::Total(ByteSize(total))) => Some(total),
                _ => None,
            };
            if let Some((figure, bytes)) = trial
                .record
                .published
                .as_ref()
                .filter(|figure| figure.throughput > 0.0)
                .and_then(|figure| Some((figure, bytes(figure)?)))
            {
                let ns = bytes as f64 / figure.throughput * 1e9;
                let point =
                    published(&figure.source, Unit::Nanoseconds, ns, &format!(", for {}", bytes_in_words(bytes)));
                add(&mut elsewhere, Point { x: length as f64, y: ns, ..point });
            }
        }
        let points = sort_points(points);
        let line = fit(&label, &points);
        series.push(Series { label, role: SeriesRole::Measured, points });
        series.extend(line);
    }
    let fits: Vec<Series> = elsewhere.iter().filter_map(|curve| fit(&curve.label, &curve.points)).collect();
    series.extend(elsewhere.into_iter().chain(fits));
    let title = "Real time by length of the chain; the thin lines are fits";
    let x = Axis::new(&title_of(Key::Length), Unit::Count, Scale::LogWithZero(1.0));
    let y = Axis::new("real time", Unit::Nanoseconds, Scale::Log);
    Chart { below: omitted, ..Chart::new(title, ChartKind::Curves, x, y, series) }
}

/// Each filter's CPU time per line, over the length of the lines.
pub(super) fn lines(context: &Context) -> Option<Chart> {
    let point = |trial: &Trial| {
        let cost = trial.estimates.get(Figure::FilterCpu)?;
        let length = f64::from(trial.job().lines()?.feed.line_bytes()?);
        let ns = |seconds: f64| seconds * length * 1e9 / GIB;
        let per_line = Estimate { median: ns(cost.median), low: cost.low.map(ns), high: cost.high.map(ns), ..*cost };
        Some(context.point_of(trial, length, &per_line, Unit::Nanoseconds))
    };
    let (groups, omitted) = truncate_with_note(context.grouped(&[Key::Feed]), MAX_CURVES, "curves");
    let curve = |(label, trials): (String, Vec<&Trial>)| {
        let points: Vec<Point> = trials.into_iter().filter_map(point).collect();
        (points.len() > 1).then(|| Series { label, role: SeriesRole::Measured, points: sort_points(points) })
    };
    let series: Vec<Series> = groups.into_iter().filter_map(curve).collect();
    let x = Axis::new("length of a line", Unit::Bytes, Scale::Log);
    let y = Axis::new("the filter's CPU time per line", Unit::Nanoseconds, Scale::Log);
    let drawn = !series.is_empty();
    let chart = Chart::new("Cost of a line by its length", ChartKind::Curves, x, y, series);
    drawn.then_some(Chart { below: omitted, ..chart })
}

/// The line fitted to the points, which is curved on these axes; `None` if there is no fit.
fn fit(label: &str, points: &[Point]) -> Option<Series> {
    let column = |of: fn(&Point) -> f64| points.iter().map(of).collect::<Vec<f64>>();
    let (lengths, times) = (column(|point| point.x), column(|point| point.y));
    let line = FittedLine::fit(&lengths, &times, Weighting::Relative).filter(|line| line.points > 2)?;
    let longest = lengths.last().copied()?;
    let time = |ns: f64| Unit::Nanoseconds.show(ns.max(0.0));
    let name = format!("fit: {} and {} for each stage", time(line.intercept.value), time(line.slope.value));
    let steps = 32;
    let at = (0..=steps).map(|step| (f64::from(step) / f64::from(steps) * longest.ln_1p()).exp_m1());
    let points = at.map(|x| (x, line.at(x))).filter(|(_, y)| *y > 0.0);
    let point = |(x, y)| Point { x, y, name: name.clone(), figure: time(y), ..Point::default() };
    Some(Series { label: label.to_owned(), role: SeriesRole::Fit, points: points.map(point).collect() })
}

/// The distribution of round trips. Percentiles are computed for each run, and the median of each percentile is drawn.
/// Runs aren't pooled.
pub(super) fn distributions(context: &Context) -> Option<Chart> {
    let trials: Vec<_> = context.ranked().collect();
    let (trials, omitted) = truncate_with_note(trials, MAX_DISTRIBUTIONS, "distributions");
    let series: Vec<Series> = trials
        .into_iter()
        .map(|trial| {
            let runs = trial.record.samples.iter().take(MAX_RUNS).filter_map(decode_histogram).collect::<Vec<_>>();
            let label = context.label(trial, &[]);
            Series { points: quantiles(&label, &runs), label, role: SeriesRole::Distribution }
        })
        .filter(|series| series.points.len() > 2)
        .collect();
    let x = Axis::new("share of round trips that were at most this long", Unit::Count, Scale::Nines);
    let y = Axis::new("round trip", Unit::Nanoseconds, Scale::Log);
    let drawn = !series.is_empty();
    let chart = Chart::new("How round trips are distributed", ChartKind::Curves, x, y, series);
    drawn.then_some(Chart { below: omitted, ..chart })
}

/// Decodes a stored histogram. `None` if it is missing or invalid. An imported file may contain anything.
fn decode_histogram(sample: &Sample) -> Option<Histogram<u64>> {
    let packed = BASE64_STANDARD.decode(&sample.latency.as_ref()?.histogram).ok()?;
    let histogram = Deserializer::new().deserialize(&mut packed.as_slice()).ok()?;
    (!histogram.is_empty()).then_some(histogram)
}

fn quantiles(label: &str, runs: &[Histogram<u64>]) -> Vec<Point> {
    let Some(fewest) = runs.iter().map(Histogram::len).min() else { return Vec::new() };
    let most_nines = (fewest as f64 / MIN_BEYOND).log10().clamp(0.0, 6.0);
    let steps = (most_nines * 10.0).floor() as u32;
    let axis = Axis::new("", Unit::Count, Scale::Nines);
    let point = |nines: f64| {
        let share = 1.0 - 10f64.powf(-nines);
        let values: Vec<f64> = runs.iter().map(|run| run.value_at_quantile(share) as f64).collect();
        let y = median(&values).filter(|value| *value > 0.0)?;
        Some(Point {
            x: nines,
            y,
            name: label.to_owned(),
            figure: format!("{}: {}", axis.label(nines), Unit::Nanoseconds.show(y)),
            about: format!("median of {} runs", runs.len()),
            ..Point::default()
        })
    };
    (0..=steps).map(|step| f64::from(step) / 10.0).filter_map(point).collect()
}

/// Adds a published point to the curve of its source.
fn add(curves: &mut Vec<Series>, point: Point) {
    match curves.iter_mut().find(|curve| curve.label == point.name) {
        Some(curve) if curve.points.iter().any(|known| known.x == point.x) => {}
        Some(curve) => {
            curve.points.push(point);
            curve.points.sort_by_cached_key(|one| total_order(one.x));
        }
        None => curves.push(Series { label: point.name.clone(), role: SeriesRole::Published, points: vec![point] }),
    }
}

fn sort_points(mut points: Vec<Point>) -> Vec<Point> {
    points.sort_by_cached_key(|one| total_order(one.x));
    points
}
