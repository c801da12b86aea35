//! Heat maps. The colour shows the figure, or the ratio if there is a baseline.

use std::collections::BTreeSet;

use pipemark_model::{
    Cpu, Experiment, GainsBlock, GainsCell, Key, Place, Unit, capitalised, distinct, group_by_key, neutral,
};
use pipemark_show::{Axis, Chart, ChartKind, Colouring, Point, Series, SeriesRole, extent};

use crate::sheet::charts::{Context, MAX_ROWS, Trial, is_null, number, title_of, truncate_with_note};
use crate::sheet::cpu_map;
use crate::sheet::gains::{MARKS, gain};

/// The largest number of columns that is readable.
const MAX_COLUMNS: usize = 24;

/// A heat map for each placement and document. All have the same columns.
pub(super) fn charts(context: &Context, across: Key) -> Vec<Chart> {
    let trials = &context.section.trials;
    let (columns, few_columns) = truncate_with_note(columns(trials, across), MAX_COLUMNS, "columns");
    let aside: Vec<Key> =
        context.section.keys.iter().copied().filter(|key| *key == Key::Place && across != *key).collect();
    let down = context.keys_except(&[across, Key::Place, Key::Verify]);
    let compared = trials.iter().filter(|trial| trial.estimates.ratio().is_some()).count() * 2 > trials.len();
    let panel_of = |trial: &Trial| context.with_run(context.section.name_of(trial, &aside), trial.run);
    let shown = trials.iter().filter_map(|trial| {
        let column = columns.iter().position(|name| *name == trial.word(across))?;
        Some((panel_of(trial), (column, row_label(context, trial, &down), trial)))
    });
    let mut omitted = few_columns;
    let panel = |(title, trials): (String, Vec<(usize, String, &Trial)>)| {
        let (rows, few_rows) =
            truncate_with_note(distinct(trials.iter().map(|(_, row, _)| row.clone())), MAX_ROWS, "rows");
        let cell = |(column, label, trial): &(usize, String, &Trial)| {
            Some(cell(context, trial, (*column, rows.iter().position(|row| row == label)?), compared))
        };
        let cells: Vec<Point> = trials.iter().filter_map(cell).collect();
        if !few_rows.is_empty() {
            omitted = few_rows;
        }
        (title, rows, cells)
    };
    let panels: Vec<(String, Vec<String>, Vec<Point>)> = group_by_key(shown).into_iter().map(panel).collect();
    let values = panels.iter().flat_map(|(.., cells)| cells).filter_map(|cell| cell.value);
    let Some((low, high)) = extent(values.filter(|value| *value > 0.0)) else { return Vec::new() };
    let colouring = match compared {
        true => Colouring::Diverging { most: high.max(1.0 / low).max(1.1) },
        false => Colouring::Sequential { low, high, more_is_better: !context.section.latency },
    };
    let measure = if compared { "how many times as fast as the baseline" } else { context.measure() };
    let title = format!("{} by {}", capitalised(measure), title_of(across).split(" (").next().unwrap_or_default());
    let chart = |(panel, rows, points): (String, Vec<String>, Vec<Point>)| {
        let (x, y) = (Axis::named(&title_of(across), columns.clone()), Axis::named("", rows));
        let series = vec![Series { label: String::new(), role: SeriesRole::Measured, points }];
        Chart { panel, below: omitted.clone(), ..Chart::new(&title, ChartKind::Heat(colouring), x, y, series) }
    };
    panels.into_iter().map(chart).collect()
}

/// A trial, and the CPUs of its writer and its reader.
type PlacedTrial<'a> = (&'a Trial<'a>, (Cpu, Cpu));

/// A heat map of pairs of CPUs for each document: a row for each CPU of a writer, a column for each CPU of a reader.
pub(super) fn cpu_maps(context: &Context) -> Vec<Chart> {
    let pair = |trial: &Trial| match trial.record.job.place() {
        Place::Pinned(writer, reader) => Some((writer, reader)),
        _ => None,
    };
    let others = context.keys_except(&[Key::Place]);
    let pinned = context.section.trials.iter().filter_map(|trial| Some((trial, pair(trial)?)));
    let panels =
        group_by_key(pinned.map(|one| (context.with_run(context.section.name_of(one.0, &others), one.0.run), one)));
    let map = |(panel, trials): (String, Vec<PlacedTrial<'_>>)| {
        let cpus = BTreeSet::from_iter(trials.iter().flat_map(|(_, (writer, reader))| [*writer, *reader]));
        let order = cpu_map::ordered(&cpus, &context.documents[trials.first()?.0.run].host.topology);
        let at = |cpu: Cpu| order.iter().position(|own| *own == cpu).unwrap_or(0) as f64;
        let point = |(trial, (writer, reader)): &PlacedTrial<'_>| {
            let point = context.point(trial, 0.0);
            let (value, brief) = (Some(point.y), context.unit().brief(point.y));
            Point { x: at(*reader), y: at(*writer), value, brief, ..point }
        };
        let points: Vec<Point> = trials.iter().map(point).collect();
        let (low, high) = extent(points.iter().filter_map(|point| point.value).filter(|value| *value > 0.0))?;
        let colouring = Colouring::Sequential { low, high, more_is_better: !context.section.latency };
        let names = |title: &str| Axis::named(title, order.iter().map(ToString::to_string).collect());
        let title = format!("{} by CPUs", capitalised(context.measure()));
        let series = vec![Series { label: String::new(), role: SeriesRole::Measured, points }];
        let (x, y) = (names("CPU of the reader"), names("CPU of the writer"));
        Some(Chart { panel, ..Chart::new(&title, ChartKind::Heat(colouring), x, y, series) })
    };
    panels.into_iter().filter_map(map).collect()
}

/// The blocks of a table of gains in the published form. The colour shows the gain; published figures are in brackets.
pub(super) fn gains(context: &Context) -> Vec<Chart> {
    let mut charts = Vec::new();
    for (&run, document) in context.section.runs.iter().map(|run| (run, &context.documents[*run])) {
        let about = document.experiments.iter().find(|about| about.name == context.section.name);
        for (about, gains) in about.into_iter().filter_map(|about| Some((about, about.gains.as_ref()?))) {
            let parts: Vec<_> = gains.blocks.iter().map(|part| (part, cells(context, (run, about), part))).collect();
            let values = parts.iter().flat_map(|(_, cells)| cells).filter_map(|cell| cell.value);
            let most = values.filter(|value| *value > 0.0).map(|value| value.max(1.0 / value)).fold(1.1, f64::max);
            let has = |mark: char| parts.iter().flat_map(|(_, cells)| cells).any(|cell| cell.brief.contains(mark));
            let marks = MARKS.into_iter().filter(|(mark, _)| has(*mark));
            let below = marks.map(|(mark, text)| format!("{mark} {text}")).collect::<Vec<_>>().join("; ");
            for (part, points) in parts.into_iter().filter(|(_, cells)| !cells.is_empty()) {
                let columns = part.columns.iter().map(|column| column.name.clone()).collect();
                let rows = gains.rows.iter().map(|row| neutral(row)).collect();
                let (x, y) = (Axis::named(&gains.corner, columns), Axis::named("", rows));
                let title = match points.iter().any(|point| point.brief.contains('(')) {
                    true => "Gain over the base in per cent (published gain in brackets)",
                    false => "Gain over the base in per cent",
                };
                let series = vec![Series { label: String::new(), role: SeriesRole::Measured, points }];
                let chart = Chart::new(title, ChartKind::Heat(Colouring::Diverging { most }), x, y, series);
                let panel = context.with_run(part.title.clone(), run);
                let first = charts.last().is_none_or(|last: &Chart| last.title != title);
                let below = if first { below.clone() } else { String::new() };
                charts.push(Chart { panel: neutral(&panel), below, ..chart });
            }
        }
    }
    charts
}

fn cells(context: &Context, (run, about): (usize, &Experiment), part: &GainsBlock) -> Vec<Point> {
    let columns = part.columns.iter().enumerate();
    let all = columns.flat_map(|(x, column)| column.cells.iter().enumerate().map(move |(y, cell)| (x, y, cell)));
    let point = |(x, y, cell): (usize, usize, &Option<GainsCell>)| {
        let cell = cell.as_ref()?;
        let trial = context.ranked().find(|trial| trial.run == run && trial.record.id == cell.trial)?;
        let (ratio, brief) = gain(cell, about, &context.documents[run])?;
        Some(Point { x: x as f64, y: y as f64, value: Some(ratio), brief, ..context.point(trial, 0.0) })
    };
    all.filter_map(point).collect()
}

/// The values across the top. Numbers are in ascending order, and words in the order of the suite.
fn columns(trials: &[Trial], across: Key) -> Vec<String> {
    let mut columns = distinct(trials.iter().map(|trial| (number(trial, across), trial.word(across))));
    if across.unit() != Unit::Word {
        columns.sort_by_cached_key(|(number, _)| *number);
    }
    let mut names: Vec<String> = columns.into_iter().map(|(_, name)| name).collect();
    names.dedup();
    names
}

/// The label of a row. A mechanism is named as in the tables: `shm in-place`.
fn row_label(context: &Context, trial: &Trial, down: &[Key]) -> String {
    if !down.contains(&Key::Link) {
        return context.section.name_of(trial, down);
    }
    let rest = down.iter().copied().filter(|key| ![Key::Link, Key::Send, Key::Recv].contains(key));
    let rest = context.section.name_of(trial, &rest.collect::<Vec<_>>());
    let mechanism = trial.record.mechanism();
    if rest.is_empty() { mechanism } else { format!("{mechanism}, {rest}") }
}

fn cell(context: &Context, trial: &Trial, (column, row): (usize, usize), compared: bool) -> Point {
    let mut point = context.point(trial, 0.0);
    if is_null(trial) {
        point.about.push_str("; no transfer; not ranked");
    }
    let (value, unit) = match trial.estimates.ratio().filter(|_| compared) {
        Some(ratio) => (ratio.median, Unit::Ratio),
        // This trial is the baseline.
        None if compared => (1.0, Unit::Ratio),
        None => (point.y, context.unit()),
    };
    let value_to_rank = (!is_null(trial)).then_some(value);
    Point { x: column as f64, y: row as f64, value: value_to_rank, brief: unit.brief(value), ..point }
}
