//! The sheet of `ab`: ranked commands, further figures, a chart over a parameter, and the concluding sentence.

use pipemark_console::verdict::style;
use pipemark_model::{Estimate, Unit, counted, digits, neutral, signed_percent, total_order};
use pipemark_show::{
    Axis, Cell, Chart, ChartKind, Column, Fit, Grid, Note, Point, RowGroup, Scale, Series, SeriesRole, Sheet, Style,
    Table,
};

use pipemark_stats::verdict::Verdict;

use crate::conclusion::{conclusion, shown_interval};
use crate::result::{AbResult, CommandResult, FigureResult};
use crate::run_figures::{FigureKind, FigureUnit, TIME};

/// Commands that take less than this, in nanoseconds, spend most of their time starting a process.
const SHORT: f64 = 5e6;
/// A chart is drawn for a parameter with at least this number of values.
const MIN_POINTS: usize = 3;

/// The result as text. With `all`, the text has every figure of every command.
pub fn commands_sheet(result: &AbResult, kinds: &[FigureKind], all: bool) -> Sheet {
    let by = kinds.iter().find(|kind| kind.key == result.by).expect("one of the figures");
    let mut sheet = Sheet::default();
    let rounds = result.commands.iter().map(|command| command.runs.len()).max().unwrap_or(0);
    let interrupted = || Note::new("!", Style::Caution, &format!("interrupted after {}", counted(rounds, "round")));
    sheet.notes(result.interrupted.then(interrupted));
    sheet.notes(result.warnings.iter().map(|warning| Note::new("!", Style::Caution, warning)));
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
        figure(command).map_or_else(Cell::default, |figure| median(by, &figure))
    });
    if several {
        table.push(Column::figures("change", "change"), |command| change(figure(command).as_ref()));
        table.push(Column::figures("", "interval"), |command| judged_interval(figure(command).as_ref()));
        table.push(Column::words("verdict", "verdict"), |command| verdict(figure(command).as_ref()));
    } else {
        table.push(Column::figures("", "95\u{a0}% interval"), |command| {
            Cell::shown(figure(command).and_then(|figure| ends(by, &figure.estimate)).unwrap_or_default())
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

fn median(kind: &FigureKind, figure: &FigureResult) -> Cell {
    let bound = if figure.at_most { "≤ " } else { "" };
    Cell::of(format!("{bound}{}", kind.unit.show(figure.estimate.median)), figure.estimate.median)
}

fn ends(kind: &FigureKind, estimate: &Estimate) -> Option<String> {
    let (low, high) = estimate.low.zip(estimate.high)?;
    Some(format!("{} – {}", kind.unit.show(low), kind.unit.show(high)))
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
    Table::of(&rows)
        .column(Column::words("figure", "figure"), |kind| Cell::of(&kind.heading, kind.key.as_str()))
        .column(Column::figures("median", "median"), |kind| median(kind, of(kind)))
        .column(Column::figures("", "95\u{a0}% interval"), |kind| {
            Cell::shown(ends(kind, &of(kind).estimate).unwrap_or_default())
        })
        .column(Column::figures("min", "min"), |kind| {
            Cell::of(kind.unit.show(of(kind).estimate.min), of(kind).estimate.min)
        })
        .column(Column::figures("max", "max"), |kind| {
            Cell::of(kind.unit.show(of(kind).estimate.max), of(kind).estimate.max)
        })
        .grid()
}

fn figures_of_two(result: &AbResult, kinds: &[FigureKind], by: &FigureKind) -> Grid {
    let rows = others(result, kinds, by);
    let new = result.commands.iter().position(|command| command.label != result.reference).unwrap_or(1);
    let of = |at: usize, kind: &FigureKind| result.commands[at].figures.get(&kind.key);
    let cell = |at: usize, kind: &FigureKind| of(at, kind).map_or_else(Cell::default, |figure| median(kind, figure));
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

fn figures_of_all(result: &AbResult, kinds: &[FigureKind], by: &FigureKind) -> Grid {
    let mut grid = Grid::default();
    for kind in others(result, kinds, by) {
        let rows: Vec<&CommandResult> = result.commands.iter().filter(|command| command.failed.is_none()).collect();
        let of = |command: &CommandResult| command.figures.get(&kind.key).cloned();
        let own = Table::of(&rows)
            .column(Column::words("label", "name"), |command| Cell::text(&command.label))
            .column(Column::figures("median", "median"), |command| {
                of(command).map_or_else(Cell::default, |figure| median(kind, &figure))
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
            about: ends(by, &estimate).unwrap_or_default(),
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

fn notes(result: &AbResult, kinds: &[FigureKind], by: &FigureKind) -> Vec<Note> {
    let plain = |text: String| Note { style: Style::Plain, ..Note::plain(text) };
    let ran = || result.commands.iter().filter(|command| command.failed.is_none());
    let mut notes = Vec::new();
    if result.commands.len() > 1 {
        notes.push(Note::new("*", Style::Aside, &format!("reference{}", confidence(result))));
    }
    let outputs: Vec<u64> = ran().map(|command| command.output).collect();
    let steady = ran().all(|command| command.same_output);
    let allowing = if kinds.iter().any(FigureKind::is_printed) { "--figure" } else { "--ignore-output" };
    // Without hashes, or with different parameters, only the lengths of the outputs are known to be the same.
    let alike = ran().all(|command| command.hashed && command.parameters == result.commands[0].parameters);
    let same = if alike { "the same " } else { "" };
    let bytes = |count: u64| counted(usize::try_from(count).unwrap_or(usize::MAX), "byte");
    notes.push(plain(match (outputs.as_slice(), steady) {
        (_, false) => format!("The outputs differ, which {allowing} allows."),
        ([one], _) => format!("Each run wrote {}.", bytes(*one)),
        ([one, other], _) if one == other => format!("Both commands wrote {same}{}.", bytes(*one)),
        ([one, others @ ..], _) if others.iter().all(|other| other == one) => {
            format!("All commands wrote {same}{}.", bytes(*one))
        }
        _ => String::new(),
    }));
    notes.retain(|note| !note.text.is_empty());
    if let Some(cold) = result.cold {
        notes.push(match cold.stayed {
            0 => plain(format!("Cold: all {} pages were evicted from the page cache before each run.", cold.pages)),
            stayed => Note::new(
                "!",
                Style::Caution,
                &format!("Cold: {stayed} of {} pages stayed in the page cache.", cold.pages),
            ),
        });
    }
    notes.extend(start_note(result));
    if kinds.iter().any(|kind| kind.key == "instructions")
        && ran().all(|command| !command.figures.contains_key("instructions"))
    {
        notes.push(Note::plain("Hardware counters (instructions, cycles, cache misses) are not available here."));
    }
    let judged = |command: &CommandResult| result.judged(command).cloned();
    for command in ran() {
        if let Some(why) = judged(command).and_then(|figure| figure.why) {
            notes.push(Note::new("!", Style::Caution, &format!("{}: {why}", command.label)));
        }
    }
    notes.extend(
        match &result.catch {
            Some(catch) => Some(catch.sentence.clone()),
            None => conclusion(&result.commands, &result.reference, by),
        }
        .map(plain),
    );
    notes.extend(beyond_thresholds(result, kinds));
    notes
}

/// The figures that are worse by their own threshold, except the judged one.
fn beyond_thresholds(result: &AbResult, kinds: &[FigureKind]) -> Vec<Note> {
    let note = |command: &CommandResult, kind: &FigureKind| {
        let figure = command.figures.get(&kind.key).filter(|_| kind.key != result.by)?;
        let (threshold, comparison) = (figure.threshold?, figure.comparison?);
        let text = format!(
            "{}: {} {} %{}: worse; threshold {} %",
            command.label,
            kind.heading,
            signed_percent(comparison.change),
            shown_interval(&comparison).map_or_else(String::new, |interval| format!(" ({interval})")),
            digits(threshold * 100.0)
        );
        (figure.verdict == Some(Verdict::Worse)).then(|| Note::new("!", Style::Failure, &text))
    };
    result.commands.iter().flat_map(|command| kinds.iter().filter_map(move |kind| note(command, kind))).collect()
}

fn confidence(result: &AbResult) -> &'static str {
    match result.sessions {
        _ if result.catch.is_some() => "; compared by session, with intervals that all hold in 98 % of measurements",
        1 => "; 98 % intervals that hold for all rows together",
        _ => "; compared by session, with 98 % intervals that hold for all rows together",
    }
}

/// The time to start the shell, and the error that subtracting it adds to short times.
fn start_note(result: &AbResult) -> Option<Note> {
    let start = result.shell_start?;
    let error = (start.high? - start.low?) / 2.0;
    let ns = |ns: f64| Unit::Nanoseconds.show(ns);
    let times = result.commands.iter().filter_map(|command| Some(command.figures.get(TIME)?.estimate.median));
    let shortest = times.reduce(f64::min)?;
    if !result.shell_start_taken_off && start.median >= shortest {
        return Some(Note::new(
            "!",
            Style::Caution,
            "The time to start the shell is included, because it varied too much to subtract; use --shell none.",
        ));
    }
    if !result.shell_start_taken_off {
        return Some(Note::new(
            "!",
            Style::Caution,
            &format!(
                "The times include {} to start the shell, too large a share to subtract; use --shell none.",
                ns(start.median)
            ),
        ));
    }
    let taken = format!(
        "The time to start the shell, {} ({} – {}), is subtracted.",
        ns(start.median),
        ns(start.low?),
        ns(start.high?)
    );
    if shortest >= SHORT {
        return Some(Note::plain(taken));
    }
    let percent = digits(error / shortest * 100.0);
    Some(Note::new(
        "!",
        Style::Caution,
        &format!(
            "{taken} For times under 5 ms, this adds an error of up to {percent} %; --shell none avoids the error."
        ),
    ))
}
