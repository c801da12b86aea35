//! The sheet of `ab`: ranked commands, further figures, a chart over a parameter, and the concluding sentence.

use pipemark_console::verdict::style;
use pipemark_model::{Estimate, MAX_SPAN, Unit, counted, neutral, signed_percent, spans_too_much, total_order};
use pipemark_show::{
    Axis, Cell, Chart, ChartKind, Column, Fit, Grid, Note, Point, RowGroup, Scale, Series, SeriesRole, Sheet, Style,
    Table,
};

use crate::conclusion::shown_interval;
use crate::notes::notes;
use crate::result::{AbResult, CommandResult, FigureResult};
use crate::run_figures::{FigureKind, FigureUnit};

/// A chart is drawn for a parameter with at least this number of values. Of fewer, the table says as much.
const MIN_POINTS: usize = 4;

/// The result as text. With `all`, the text has every figure of every command.
pub fn commands_sheet(result: &AbResult, kinds: &[FigureKind], all: bool) -> Sheet {
    let by = kinds.iter().find(|kind| kind.key == result.by).expect("one of the figures");
    let mut sheet = Sheet::default();
    let rounds = result.commands.iter().map(|command| command.runs.len()).max().unwrap_or(0);
    let interrupted = || Note::new("!", Style::Caution, &format!("interrupted after {}", counted(rounds, "round")));
    sheet.notes(result.interrupted.then(interrupted));
    sheet.notes(result.warnings.iter().map(|warning| Note::new("!", Style::Caution, warning)));
    if let Some(baseline) = &result.baseline {
        sheet.grid(compared(result, baseline, kinds, by, all));
        sheet.notes(notes(result, kinds, by));
        return sheet;
    }
    sheet.grid(ranked(result, by));
    if let Some(chart) = chart(result, by) {
        sheet.blocks.push(pipemark_show::Block::Chart(Box::new(chart)));
    }
    match result.commands.as_slice() {
        [one] => sheet.grid(figures_of_one(one, kinds, by)),
        [_, _] => sheet.grid(figures_of_two(result, kinds, by)),
        _ if all => sheet.grid(figures_of_all(result, kinds, by)),
        _ => {}
    }
    sheet.notes(notes(result, kinds, by));
    sheet
}

/// The columns of [`commands_csv`], except those of parameters.
const CSV_COLUMNS: [&str; 16] = [
    "label",
    "command",
    "rank",
    "figure",
    "unit",
    "median",
    "low",
    "high",
    "min",
    "max",
    "runs",
    "change",
    "judged_low",
    "judged_high",
    "verdict",
    "failed",
];

/// The result as a table for programs, with a row for each figure of each command. `change` and the ends of the
/// interval that decides the verdict are fractions.
pub fn commands_csv(result: &AbResult, kinds: &[FigureKind]) -> Sheet {
    let rows: Vec<(&CommandResult, &FigureKind)> =
        result.commands.iter().flat_map(|command| kinds.iter().map(move |kind| (command, kind))).collect();
    let rows: Vec<_> = rows
        .into_iter()
        .filter(|(command, kind)| command.figures.contains_key(&kind.key) || kind.key == result.by)
        .map(|(command, kind)| (command, kind, command.figures.get(&kind.key)))
        .collect();
    type CsvRow<'a> = (&'a CommandResult, &'a FigureKind, Option<&'a FigureResult>);
    let compared = |row: &CsvRow| row.2.and_then(|figure| figure.comparison);
    let mut names: Vec<&String> = result.commands.iter().flat_map(|command| command.parameters.keys()).collect();
    names.dedup();
    let mut table = Table::of(&rows)
        .data("label", |row| Some(row.0.label.as_str()))
        .data("command", |row| Some(row.0.command.as_str()));
    let names = std::collections::BTreeSet::from_iter(names);
    for name in names {
        let column = if CSV_COLUMNS.contains(&name.as_str()) { format!("parameter_{name}") } else { name.clone() };
        table.push(Column::data(&column), |row| Cell::data(row.0.parameters.get(name).map(String::as_str)));
    }
    let table = table
        .data("rank", |row| row.0.rank)
        .data("figure", |row| Some(row.1.key.as_str()))
        .data("unit", |row| Some(row.1.unit.name()))
        .data("median", |row| Some(row.2?.estimate.median))
        .data("low", |row| row.2?.estimate.low)
        .data("high", |row| row.2?.estimate.high)
        .data("min", |row| Some(row.2?.estimate.min))
        .data("max", |row| Some(row.2?.estimate.max))
        .data("runs", |row| Some(row.2?.estimate.runs))
        .data("change", |row| Some(compared(row)?.change))
        .data("judged_low", |row| compared(row)?.judged_low)
        .data("judged_high", |row| compared(row)?.judged_high)
        .data("verdict", |row| Some(row.2?.verdict?.name()))
        .data("failed", |row| row.0.failed.as_deref());
    Sheet::of(table.grid(), [])
}

/// The commands, best first. Failed commands are last.
fn ranked(result: &AbResult, by: &FigureKind) -> Grid {
    let mut order: Vec<&CommandResult> = result.commands.iter().collect();
    if order.len() > 2 {
        let median =
            |command: &CommandResult| result.judged(command).map_or(f64::INFINITY, |figure| figure.estimate.median);
        let best_first = |command: &CommandResult| match by.better {
            pipemark_model::Better::Higher => -median(command),
            _ => median(command),
        };
        order.sort_by(|one, other| {
            let key = |command: &CommandResult| (command.failed.is_some(), command.rank.unwrap_or(usize::MAX));
            key(one).cmp(&key(other)).then(best_first(one).total_cmp(&best_first(other)))
        });
    }
    let several = order.len() > 1;
    let figure = |command: &CommandResult| result.judged(command).cloned();
    let estimates: Vec<Estimate> =
        result.commands.iter().filter_map(|one| Some(result.judged(one)?.estimate)).collect();
    let unit = by.unit.common(&shown_values(&estimates));
    let rank = if order.len() > 2 { Column::figures("rank", "#") } else { Column::data("rank") };
    let granted = result.commands.iter().any(|command| command.capacity_granted.is_some());
    let capacity = if granted { Column::figures("capacity", "capacity") } else { Column::data("capacity") };
    let mut table = Table::of(&order);
    table.push(rank, |command| command.rank.map_or_else(Cell::default, |rank| Cell::of(rank.to_string(), rank)));
    table.push(Column::words("label", "name"), |command| {
        let mark = if several && command.label == result.reference { "*" } else { "" };
        Cell::text(&command.label).mark(mark)
    });
    table.push(Column::words("command", "command").fit(Fit::Wrapped), |command| Cell::text(&command.command));
    table.push(Column::figures(&by.key, &by.heading), |command| {
        figure(command).map_or_else(Cell::default, |figure| median(&unit, &figure))
    });
    if several {
        table.push(Column::figures("change", "change"), |command| change(figure(command).as_ref()));
        table.push(Column::figures("", "interval"), |command| judged_interval(figure(command).as_ref()));
        table.push(Column::words("verdict", "verdict"), |command| verdict(figure(command).as_ref()));
    } else {
        table.push(Column::figures("", "95\u{a0}% interval"), |command| {
            Cell::shown(figure(command).and_then(|figure| ends(&unit, &figure.estimate)).unwrap_or_default())
        });
        table.push(Column::figures("runs", "runs"), |command| {
            Cell::of(command.runs.len().to_string(), command.runs.len())
        });
    }
    table.push(capacity, |command| {
        command.capacity_granted.map_or_else(Cell::default, |bytes| Cell::of(Unit::Bytes.show(bytes as f64), bytes))
    });
    let mut grid = table
        .instead(|command| {
            command.failed.as_ref().map(|reason| (Style::Failure, format!("failed: {}", neutral(reason))))
        })
        .grid();
    grid.labels = 2;
    grid
}

/// The values that choose the unit of a row or a column: the medians, or of one command all that are shown.
fn shown_values(estimates: &[Estimate]) -> Vec<f64> {
    match estimates {
        [Estimate { median, low, high, min, max, .. }] => {
            [Some(*median), *low, *high, Some(*min), Some(*max)].into_iter().flatten().collect()
        }
        several => several.iter().map(|estimate| estimate.median).collect(),
    }
}

fn median(show: impl Fn(f64) -> String, figure: &FigureResult) -> Cell {
    let bound = if figure.at_most { "≤ " } else { "" };
    Cell::of(format!("{bound}{}", show(figure.estimate.median)), figure.estimate.median)
}

fn ends(show: impl Fn(f64) -> String, estimate: &Estimate) -> Option<String> {
    let (low, high) = estimate.low.zip(estimate.high)?;
    if spans_too_much(low, high) {
        return Some(format!("over {MAX_SPAN}× wide"));
    }
    Some(format!("{} – {}", show(low), show(high)))
}

fn change(figure: Option<&FigureResult>) -> Cell {
    figure.and_then(|figure| figure.comparison).map_or_else(Cell::default, |comparison| {
        Cell::of(format!("{} %", signed_percent(comparison.change)), comparison.change)
    })
}

fn judged_interval(figure: Option<&FigureResult>) -> Cell {
    Cell::shown(figure.and_then(|figure| shown_interval(&figure.comparison?)).unwrap_or_default())
}

fn verdict(figure: Option<&FigureResult>) -> Cell {
    figure
        .and_then(|figure| figure.verdict)
        .map_or_else(Cell::default, |verdict| Cell::of(verdict.name(), verdict.name()).style(style(verdict)))
}

/// The further figures to show: all except the judged figure and those that no command has.
fn others<'a>(result: &AbResult, kinds: &'a [FigureKind], by: &FigureKind) -> Vec<&'a FigureKind> {
    let has = |kind: &&FigureKind| result.commands.iter().any(|command| command.figures.contains_key(&kind.key));
    kinds.iter().filter(|kind| kind.key != by.key).filter(has).collect()
}

fn figures_of_one(command: &CommandResult, kinds: &[FigureKind], by: &FigureKind) -> Grid {
    let rows: Vec<&FigureKind> =
        kinds.iter().filter(|kind| kind.key != by.key && command.figures.contains_key(&kind.key)).collect();
    let of = |kind: &FigureKind| &command.figures[&kind.key];
    let show = |kind: &FigureKind, value: f64| kind.unit.common(&shown_values(&[of(kind).estimate]))(value);
    Table::of(&rows)
        .column(Column::words("figure", "figure"), |kind| Cell::of(&kind.heading, kind.key.as_str()))
        .column(Column::figures("median", "median"), |kind| median(|value| show(kind, value), of(kind)))
        .column(Column::figures("", "95\u{a0}% interval"), |kind| {
            Cell::shown(ends(|value| show(kind, value), &of(kind).estimate).unwrap_or_default())
        })
        .column(Column::figures("min", "min"), |kind| {
            Cell::of(show(kind, of(kind).estimate.min), of(kind).estimate.min)
        })
        .column(Column::figures("max", "max"), |kind| {
            Cell::of(show(kind, of(kind).estimate.max), of(kind).estimate.max)
        })
        .grid()
}

fn figures_of_two(result: &AbResult, kinds: &[FigureKind], by: &FigureKind) -> Grid {
    let rows = others(result, kinds, by);
    let new = result.commands.iter().position(|command| command.label != result.reference).unwrap_or(1);
    let of = |at: usize, kind: &FigureKind| result.commands[at].figures.get(&kind.key);
    let medians = |kind: &FigureKind| -> Vec<f64> {
        [0, 1].into_iter().filter_map(|at| Some(of(at, kind)?.estimate.median)).collect()
    };
    let cell = |at: usize, kind: &FigureKind| {
        of(at, kind).map_or_else(Cell::default, |figure| median(kind.unit.common(&medians(kind)), figure))
    };
    let label = |at: usize| result.commands[at].label.as_str();
    Table::of(&rows)
        .column(Column::words("figure", "figure"), |kind| Cell::of(&kind.heading, kind.key.as_str()))
        .column(Column::figures("first", label(0)).fit(Fit::Elastic), |kind| cell(0, kind))
        .column(Column::figures("second", label(1)).fit(Fit::Elastic), |kind| cell(1, kind))
        .column(Column::figures("change", "change"), |kind| change(of(new, kind)))
        .column(Column::figures("", "interval"), |kind| judged_interval(of(new, kind)))
        .column(Column::words("verdict", "verdict"), |kind| verdict(of(new, kind)))
        .grid()
}

/// With `--baseline`: the figures of each command beside those that were saved. Without `all`, several commands have
/// only the figures that are judged.
fn compared(result: &AbResult, baseline: &str, kinds: &[FigureKind], by: &FigureKind, all: bool) -> Grid {
    let all = all || result.commands.len() == 1;
    let mut grid = Grid::default();
    for command in &result.commands {
        let of = |kind: &FigureKind| command.figures.get(&kind.key);
        let is_shown =
            |kind: &&FigureKind| of(kind).is_some_and(|figure| all || kind.key == by.key || figure.threshold.is_some());
        let rows: Vec<&FigureKind> = kinds.iter().filter(is_shown).collect();
        // A row has one unit.
        let show = |kind: &FigureKind, value: f64| {
            let both = of(kind).map(|figure| [Some(figure.estimate.median), figure.saved.map(|saved| saved.median)]);
            kind.unit.common(&both.into_iter().flatten().flatten().collect::<Vec<_>>())(value)
        };
        let own = Table::of(&rows)
            .column(Column::words("figure", "figure"), |kind| Cell::of(&kind.heading, kind.key.as_str()))
            .column(Column::figures("saved", baseline).fit(Fit::Elastic), |kind| {
                let saved = of(kind).and_then(|figure| figure.saved);
                saved.map_or_else(Cell::default, |saved| Cell::of(show(kind, saved.median), saved.median))
            })
            .column(Column::figures("median", "now"), |kind| {
                of(kind).map_or_else(Cell::default, |figure| median(|value| show(kind, value), figure))
            })
            .column(Column::figures("change", "change"), |kind| change(of(kind)))
            .column(Column::figures("", "interval"), |kind| judged_interval(of(kind)))
            .column(Column::words("verdict", "verdict"), |kind| verdict(of(kind)))
            .data("label", |_| Some(command.label.as_str()))
            .instead(|_| command.failed.as_ref().map(|reason| (Style::Failure, format!("failed: {}", neutral(reason)))))
            .grid();
        let rows = own.groups.into_iter().flat_map(|group| group.rows).collect();
        grid = Grid { labels: 1, columns: own.columns, groups: grid.groups };
        let heading =
            if command.named { command.label.clone() } else { format!("{}: {}", command.label, command.command) };
        grid.groups.push(RowGroup::new(&heading, rows));
    }
    grid
}

fn figures_of_all(result: &AbResult, kinds: &[FigureKind], by: &FigureKind) -> Grid {
    let mut grid = Grid::default();
    for kind in others(result, kinds, by) {
        let rows: Vec<&CommandResult> = result.commands.iter().filter(|command| command.failed.is_none()).collect();
        let of = |command: &CommandResult| command.figures.get(&kind.key).cloned();
        let estimates: Vec<Estimate> = rows.iter().filter_map(|command| Some(of(command)?.estimate)).collect();
        let unit = kind.unit.common(&shown_values(&estimates));
        let own = Table::of(&rows)
            .column(Column::words("label", "name"), |command| Cell::text(&command.label))
            .column(Column::figures("median", "median"), |command| {
                of(command).map_or_else(Cell::default, |figure| median(&unit, &figure))
            })
            .column(Column::figures("change", "change"), |command| change(of(command).as_ref()))
            .column(Column::figures("", "interval"), |command| judged_interval(of(command).as_ref()))
            .column(Column::words("verdict", "verdict"), |command| verdict(of(command).as_ref()))
            .data("figure", |_| Some(kind.key.as_str()))
            .grid();
        let rows = own.groups.into_iter().flat_map(|group| group.rows).collect();
        grid = Grid { labels: 1, columns: own.columns, groups: grid.groups };
        grid.groups.push(RowGroup::new(&kind.heading, rows));
    }
    grid
}

/// A curve for each command over the only numeric parameter; `None` without such a parameter.
fn chart(result: &AbResult, by: &FigureKind) -> Option<Chart> {
    let first = result.commands.first()?;
    let name = first.parameters.keys().next().filter(|_| first.parameters.len() == 1)?;
    let FigureUnit::Known(unit) = by.unit else { return None };
    let mut series: Vec<Series> = Vec::new();
    for command in &result.commands {
        let Some(figure) = result.judged(command) else { continue };
        let value: f64 = command.parameters.get(name)?.parse().ok()?;
        let estimate = figure.estimate;
        let label =
            command.label.strip_suffix(&format!("{name}={}", command.parameters[name])).unwrap_or_default().trim();
        let point = Point {
            x: value,
            y: estimate.median,
            interval: estimate.low.zip(estimate.high),
            name: command.label.clone(),
            figure: by.unit.show(estimate.median),
            about: ends(|value| by.unit.show(value), &estimate).unwrap_or_default(),
            ..Point::default()
        };
        match series.iter_mut().find(|series| series.label == label) {
            Some(own) => own.points.push(point),
            None => series.push(Series { label: label.to_owned(), role: SeriesRole::Measured, points: vec![point] }),
        }
    }
    if series.iter().all(|series| series.points.len() < MIN_POINTS) {
        return None;
    }
    for series in series.iter_mut().filter(|series| series.label.is_empty()) {
        series.label.clone_from(&by.heading);
    }
    series.iter_mut().for_each(|series| series.points.sort_by_cached_key(|point| total_order(point.x)));
    let (x, y) = (Axis::new(name, Unit::Count, Scale::Linear), Axis::new(&by.heading, unit, Scale::Linear));
    Some(Chart::new(&format!("{} by {name}", by.heading), ChartKind::Curves, x, y, series))
}
