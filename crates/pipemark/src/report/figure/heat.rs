//! Rows by columns, coloured by the figure; or, where there is a baseline, by how many times as fast.

use super::sweep::capitalised;
use super::{
    Colouring, Figure, Heat, HeatCell, MOST_ROWS, Panel, Scene, Shape, Trial, at_most, is_null, number, title_of,
    unit_of,
};
use crate::model::Key;
use crate::show::axis::Unit;

/// The most columns that can be read.
const MOST_COLUMNS: usize = 24;

pub(super) fn figures(scene: &Scene, across: Key) -> Vec<Figure> {
    let trials = &scene.section.trials;
    let (columns, few_columns) = at_most(columns(trials, across), MOST_COLUMNS, "columns");
    let aside: Vec<Key> =
        scene.section.keys.iter().copied().filter(|key| *key == Key::Place && across != *key).collect();
    let down = scene.keys_but(&[across, Key::Place, Key::Verify]);
    let compared = trials.iter().filter(|trial| trial.estimates.ratio().is_some()).count() * 2 > trials.len();
    let mut panels: Vec<Panel> = Vec::new();
    let mut left_out = few_columns;
    for trial in trials {
        let Some(column) = columns.iter().position(|name| *name == trial.word(across)) else { continue };
        let place = scene.section.name_of(trial, &aside);
        let title = match (scene.several_runs(), place.is_empty()) {
            (true, true) => scene.run(trial).to_owned(),
            (true, false) => format!("{place} · {}", scene.run(trial)),
            (false, _) => place,
        };
        let panel = panels.iter().position(|panel| panel.title == title).unwrap_or_else(|| {
            panels.push(Panel { title, rows: Vec::new(), cells: Vec::new() });
            panels.len() - 1
        });
        let panel = &mut panels[panel];
        let label = row_label(scene, trial, &down);
        let row = match panel.rows.iter().position(|known| *known == label) {
            Some(row) => row,
            None if panel.rows.len() == MOST_ROWS => {
                left_out = format!("The chart shows {MOST_ROWS} rows; the table has all.");
                continue;
            }
            None => {
                panel.rows.push(label);
                panel.rows.len() - 1
            }
        };
        panel.cells.push(cell(scene, trial, row, column, compared));
    }
    let values = || panels.iter().flat_map(|panel| &panel.cells).filter_map(|cell| cell.value).filter(|v| *v > 0.0);
    let (low, high) = values().fold((f64::INFINITY, 0.0f64), |(low, high), value| (low.min(value), high.max(value)));
    if low > high {
        return Vec::new();
    }
    let colour = match compared {
        true => Colouring::Diverging { most: high.max(1.0 / low).max(1.1) },
        false => Colouring::Sequential { low, high, more_is_better: !scene.section.latency },
    };
    let measure = if compared { "how many times as fast as the baseline" } else { scene.measure() };
    let title = format!("{} by {}", capitalised(measure), title_of(across).split(" (").next().unwrap_or_default());
    let heat = Heat { colour, across: title_of(across), columns, panels };
    vec![Figure { title, left_out, shape: Shape::Heat(heat) }]
}

/// The values across the top: numbers in their order, words in the order of the suite.
fn columns(trials: &[Trial], across: Key) -> Vec<String> {
    let mut columns: Vec<(Option<u64>, String)> = Vec::new();
    for trial in trials {
        let column = (number(trial, across), trial.word(across));
        if !columns.contains(&column) {
            columns.push(column);
        }
    }
    if unit_of(across) != Unit::Count || columns.iter().all(|(number, _)| number.is_some()) {
        columns.sort_by_key(|(number, _)| *number);
    }
    let mut names: Vec<String> = columns.into_iter().map(|(_, name)| name).collect();
    names.dedup();
    names
}

/// A mechanism is told as in the tables: `shm in-place`.
fn row_label(scene: &Scene, trial: &Trial, down: &[Key]) -> String {
    let mechanism = [Key::Link, Key::Send, Key::Recv];
    if !down.contains(&Key::Link) {
        return scene.section.name_of(trial, down);
    }
    let rest: Vec<Key> = down.iter().copied().filter(|key| !mechanism.contains(key)).collect();
    let rest = scene.section.name_of(trial, &rest);
    let mechanism = trial.record.mechanism();
    if rest.is_empty() { mechanism } else { format!("{mechanism}, {rest}") }
}

fn cell(scene: &Scene, trial: &Trial, row: usize, column: usize, compared: bool) -> HeatCell {
    let mut point = scene.point(trial, 0.0);
    if is_null(trial) {
        point.interval.push_str("; transfers nothing, not ranked");
    }
    let ratio = trial.estimates.ratio().filter(|_| compared);
    let (value, brief) = match ratio {
        Some(ratio) => (Some(ratio.median), Unit::Times.brief(ratio.median)),
        // The baseline itself.
        None if compared => (Some(1.0), Unit::Times.brief(1.0)),
        None => (Some(point.y), scene.unit().brief(point.y)),
    };
    HeatCell { row, column, value: value.filter(|_| !is_null(trial)), brief, point }
}
