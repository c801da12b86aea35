//! One bar for each trial, the best first: what differs is no number.

use super::sweep::capitalised;
use super::{Bar, Bars, Figure, MOST_ROWS, Point, Scene, Shape, Trial, at_most};
use crate::entrant::{Does, does};
use crate::model::Key;
use crate::show::axis::Axis;
use crate::show::neutral;

pub(super) fn figures(scene: &Scene) -> Vec<Figure> {
    // An end that spins costs a whole CPU: its bar has another colour.
    let waits = scene.section.keys.contains(&Key::Wait);
    let series_of = |trial: &Trial| match (scene.several_runs(), waits) {
        (true, _) => scene.run(trial).to_owned(),
        (false, true) => format!("ends that {}", trial.word(Key::Wait)),
        (false, false) => String::new(),
    };
    let row_of = |trial: &Trial| {
        let keys = scene.section.keys.clone();
        let name = scene.section.name_of(trial, &keys);
        if name.is_empty() { scene.section.title.clone() } else { name }
    };
    let point_of = |trial: &Trial| scene.point(trial, 0.0);
    let (bars, left_out) = arranged(scene, &row_of, &series_of, &point_of, !scene.section.latency);
    vec![Figure { title: capitalised(scene.measure()), left_out, shape: Shape::Bars(bars) }]
}

/// Bars of all trials, the rows in the order of their best.
pub(super) fn arranged(
    scene: &Scene,
    row_of: &dyn Fn(&Trial) -> String,
    series_of: &dyn Fn(&Trial) -> String,
    point_of: &dyn Fn(&Trial) -> Point,
    more_is_better: bool,
) -> (Bars, String) {
    let mut rows: Vec<(String, f64, Vec<&Trial>)> = Vec::new();
    for trial in scene.ranked() {
        let (name, figure) = (row_of(trial), point_of(trial).y);
        let rank = if more_is_better { -figure } else { figure };
        match rows.iter_mut().find(|row| row.0 == name) {
            Some(row) => {
                row.1 = row.1.min(rank);
                row.2.push(trial);
            }
            None => rows.push((name, rank, vec![trial])),
        }
    }
    rows.sort_by(|one, other| one.1.total_cmp(&other.1));
    let (rows, left_out) = at_most(rows, MOST_ROWS, "rows");
    // In the order of the suite, whichever is faster.
    let mut series: Vec<String> = Vec::new();
    for trial in scene.ranked() {
        let name = series_of(trial);
        if !series.contains(&name) {
            series.push(name);
        }
    }
    let (mut bars, mut published) = (Vec::new(), Vec::new());
    for (row, (_, _, trials)) in rows.iter().enumerate() {
        for trial in trials {
            let name = series_of(trial);
            let place = series.iter().position(|known| *known == name).unwrap_or_default();
            bars.push(Bar { row, series: place, point: point_of(trial) });
            if let Some(figure) =
                trial.record.published.as_ref().filter(|published| more_is_better && !published.relative)
            {
                let point = Point {
                    y: figure.throughput,
                    name: format!("published: {}", neutral(&figure.source)),
                    figure: scene.unit().show(figure.throughput),
                    interval: "on other hardware, by others".to_owned(),
                    ..Point::default()
                };
                published.push(Bar { row, series: place, point });
            }
        }
    }
    let highest = bars.iter().map(|bar| bar.point.y).fold(0.0, f64::max);
    // What the feed can carry is the limit of filters; otherwise it is what copying can reach.
    let top_line = scene
        .ranked()
        .find(|trial| trial.job().lines().is_some_and(|lines| does(&lines.filter) == Does::Count))
        .map(|trial| point_of(trial).y);
    let limit = match top_line {
        Some(top_line) => Some(("top line", top_line)),
        None if more_is_better => scene.memory_copy(highest).map(|copy| ("memory copy", copy)),
        None => None,
    };
    let limits: Vec<(String, f64)> = limit.into_iter().map(|(name, limit)| (name.to_owned(), limit)).collect();
    let lengths = bars.iter().chain(&published).flat_map(|bar| [Some(bar.point.y), bar.point.high]).flatten();
    let x = Axis::from_zero(scene.measure(), scene.unit(), lengths.chain(limits.iter().map(|(_, limit)| *limit)));
    (Bars { x, rows: rows.into_iter().map(|row| row.0).collect(), series, bars, published, limits }, left_out)
}
