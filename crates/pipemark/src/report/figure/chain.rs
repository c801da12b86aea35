//! The real time of chains against their length, with a line through it, and the published chains beside ours.

use super::{Curve, Curves, Figure, MOST_CURVES, Point, Role, Scene, Shape, at_most, number};
use crate::model::{Key, Volume};
use crate::show::axis::{Axis, Scale, Unit};
use crate::show::neutral;
use crate::stats::fit::{Line, Weighting};

pub(super) fn figures(scene: &Scene) -> Vec<Figure> {
    let (groups, left_out) = at_most(scene.grouped(&[Key::Length]), MOST_CURVES, "curves");
    let mut curves = Vec::new();
    for (label, trials) in &groups {
        let mut points = Vec::new();
        let mut elsewhere: Vec<Curve> = Vec::new();
        for trial in trials {
            let (Some(real), Some(x)) = (trial.estimates.get(crate::model::Figure::Real), number(trial, Key::Length))
            else {
                continue;
            };
            let x = x as f64;
            points.push(scene.point_of(trial, x, real, Unit::Time));
            if let (Some(published), Volume::Total(total)) = (&trial.record.published, trial.job().volume()) {
                let label = format!("published: {}", neutral(&published.source));
                let ns = total.0 as f64 / published.throughput * 1e9;
                let figure = Unit::Time.show(ns);
                let interval = "on other hardware, by others, for as many bytes".to_owned();
                let point = Point { x, y: ns, name: label.clone(), figure, interval, ..Point::default() };
                match elsewhere.iter_mut().find(|curve| curve.label == label) {
                    Some(curve) => curve.points.push(point),
                    None => elsewhere.push(Curve { label, role: Role::Published, points: vec![point] }),
                }
            }
        }
        points.sort_by(|one, other| one.x.total_cmp(&other.x));
        let line = fit(label, &points);
        curves.push(Curve { label: label.clone(), role: Role::Measured, points });
        curves.extend(line);
        for mut curve in elsewhere {
            curve.points.sort_by(|one, other| one.x.total_cmp(&other.x));
            if !curves.iter().any(|known| known.label == curve.label) {
                curves.push(curve);
            }
        }
    }
    let all = || curves.iter().flat_map(|curve| &curve.points);
    // The points of a fit are no lengths that were measured.
    let measured = curves.iter().filter(|curve| curve.role != Role::Fit);
    let lengths = measured.flat_map(|curve| &curve.points).map(|point| point.x);
    let x = Axis::at("stages in the chain", Unit::Count, Scale::LogWithZero(1.0), lengths);
    let ys = all().flat_map(|point| [Some(point.y), point.low, point.high]).flatten();
    let y = Axis::log("real time", Unit::Time, ys);
    let title = "Real time by length of the chain; the thin lines are fits".to_owned();
    vec![Figure { title, left_out, shape: Shape::Curves(Curves { x, y, curves }) }]
}

/// The line through the points, which is a curve on these axes.
fn fit(label: &str, points: &[Point]) -> Option<Curve> {
    let column = |of: fn(&Point) -> f64| points.iter().map(of).collect::<Vec<f64>>();
    let (lengths, times) = (column(|point| point.x), column(|point| point.y));
    let line = Line::fit(&lengths, &times, Weighting::Relative).filter(|line| line.points > 2)?;
    let longest = lengths.last().copied()?;
    let name = format!(
        "fit: {} and {} for each stage",
        Unit::Time.show(line.intercept.value.max(0.0)),
        Unit::Time.show(line.slope.value.max(0.0))
    );
    let steps = 32;
    let at = (0..=steps).map(|step| (f64::from(step) / f64::from(steps) * longest.ln_1p()).exp_m1());
    let points = at.map(|x| (x, line.at(x))).filter(|(_, y)| *y > 0.0).map(|(x, y)| Point {
        x,
        y,
        name: name.clone(),
        figure: Unit::Time.show(y),
        ..Point::default()
    });
    Some(Curve { label: label.to_owned(), role: Role::Fit, points: points.collect() })
}
