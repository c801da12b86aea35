//! Throughput or round trips against a number, such as the block size.

use super::{
    Curve, Curves, Figure, MOST_CURVES, Point, Role, Scene, Shape, at_most, number, spread, thinned, title_of, unit_of,
};
use crate::model::Key;
use crate::show::axis::{Axis, Scale};

pub(super) fn figures(scene: &Scene, key: Key) -> Vec<Figure> {
    let (groups, left_out) = at_most(scene.grouped(&[key]), MOST_CURVES, "curves");
    let mut curves = Vec::new();
    for (label, trials) in &groups {
        let points = trials.iter().filter_map(|trial| Some(scene.point(trial, number(trial, key)? as f64)));
        let mut points: Vec<Point> = points.collect();
        points.sort_by(|one, other| one.x.total_cmp(&other.x));
        curves.push(Curve { label: label.clone(), role: Role::Measured, points: thinned(points) });
    }
    curves.extend(published(scene, key));
    let all = || curves.iter().flat_map(|curve| &curve.points);
    let xs: Vec<f64> = all().map(|point| point.x).collect();
    let scale = match xs.iter().any(|x| *x <= 0.0) {
        true => Scale::LogWithZero(xs.iter().copied().filter(|x| *x > 0.0).fold(f64::INFINITY, f64::min).min(1e12)),
        false => Scale::Log,
    };
    let x = Axis::at(&title_of(key), unit_of(key), scale, xs);
    let unit = scene.unit();
    let ys = || all().flat_map(|point| [Some(point.y), point.low, point.high]).flatten();
    let y = match spread(all().map(|point| point.y)) {
        true => Axis::log(scene.measure(), unit, ys()),
        false => Axis::from_zero(scene.measure(), unit, ys()),
    };
    let title = format!("{} against {}", capitalised(scene.measure()), title_of(key));
    vec![Figure { title, left_out, shape: Shape::Curves(Curves { x, y, curves }) }]
}

/// What others measured, one curve for each source.
fn published(scene: &Scene, key: Key) -> Vec<Curve> {
    let mut curves: Vec<Curve> = Vec::new();
    let unit = scene.unit();
    for trial in scene.ranked() {
        let (Some(published), Some(x)) = (&trial.record.published, number(trial, key)) else { continue };
        let label = format!("published: {}", crate::show::neutral(&published.source));
        let point = Point {
            x: x as f64,
            y: published.throughput,
            name: label.clone(),
            figure: unit.show(published.throughput),
            interval: "on other hardware, by others".to_owned(),
            ..Point::default()
        };
        match curves.iter_mut().find(|curve| curve.label == label) {
            Some(curve) if curve.points.iter().any(|known| known.x == point.x) => {}
            Some(curve) => curve.points.push(point),
            None => curves.push(Curve { label, role: Role::Published, points: vec![point] }),
        }
    }
    for curve in &mut curves {
        curve.points.sort_by(|one, other| one.x.total_cmp(&other.x));
    }
    curves
}

/// With a capital letter, as a title begins.
pub(super) fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
