//! The same job in each language, idiomatic and tuned beside each other, and what it costs to start.

use super::bars::arranged;
use super::{Figure, Scene, Shape, Trial};
use crate::model::Key;
use crate::show::axis::{Axis, Unit};

pub(super) fn figures(scene: &Scene) -> Vec<Figure> {
    let others = scene.keys_but(&[Key::Language, Key::Program]);
    let row_of = |trial: &Trial| {
        let rest = scene.section.name_of(trial, &others);
        let language = trial.word(Key::Language);
        if rest.is_empty() { language } else { format!("{language}, {rest}") }
    };
    let series_of = |trial: &Trial| match scene.several_runs() {
        true => format!("{} · {}", trial.word(Key::Program), scene.run(trial)),
        false => trial.word(Key::Program),
    };
    let flow = |trial: &Trial| scene.point(trial, 0.0);
    let (bars, left_out) = arranged(scene, &row_of, &series_of, &flow, true);
    let title = "Throughput by language, while the bytes flow".to_owned();
    let mut figures = vec![Figure { title, left_out, shape: Shape::Bars(bars) }];
    if scene.ranked().all(|trial| trial.estimates.get(crate::model::Figure::StartUp).is_some()) {
        let start = |trial: &Trial| {
            let estimate = trial.estimates.get(crate::model::Figure::StartUp).unwrap_or(trial.estimates.throughput());
            scene.point_of(trial, 0.0, estimate, Unit::Time)
        };
        let (mut bars, left_out) = arranged(scene, &row_of, &series_of, &start, false);
        let lengths = bars.bars.iter().flat_map(|bar| [Some(bar.point.y), bar.point.high]).flatten();
        bars.x = Axis::from_zero("start-up: time outside of the program's own clock", Unit::Time, lengths);
        let title = "Start-up, apart from the figures above".to_owned();
        figures.push(Figure { title, left_out, shape: Shape::Bars(bars) });
    }
    figures
}
