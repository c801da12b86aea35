//! Tables that fit on a screen: with a parameter across the top, or the best trials with bars.

use std::collections::BTreeSet;

use pipemark_model::{
    ByteSize, Capacity, ColumnUnit, Figure, Key, Published, Record, Statistic, Unit, Volume, bytes_in_words, distinct,
    group_by_key, mixes_foreign_programs, name, neutral,
};
use pipemark_show::{Cell, Column, Fit, Grid, Style};

use crate::sheet::experiment::{CitedTrials, MeasuredExperiment, agrees_with_medians, times};
use crate::sheet::marks::{of_bytes, uncertainty_marks};
use crate::sheet::matrix;
use crate::sheet::message_cpu::MessageCpu;
use crate::sheet::words::{missing, ranked};

/// The number of characters in a line of text.
pub(super) const TEXT_WIDTH: usize = 76;

/// The minimum number of values of a parameter that gets columns. A parameter with fewer values is shown in rows.
const MIN_COLUMNS: usize = 5;
/// The minimum width of the column of bars, in characters. Narrower bars show nothing.
const MIN_BAR: usize = 8;
/// The largest number of values that fit side by side.
const MAX_COLUMNS: usize = 12;

/// The label of a trial: the parameters in which it differs from the other trials of its experiment.
pub(super) fn label(experiment: &MeasuredExperiment, record: &Record) -> String {
    label_by(&experiment.varying(), record)
}

/// The label of a trial, made of these parameters.
fn label_by(keys: &[Key], record: &Record) -> String {
    let granted = record.samples.first().and_then(|sample| sample.capacity_granted);
    match (keys, record.job.ends().map(|ends| ends.capacity), granted) {
        ([], ..) => record.name.clone(),
        ([Key::Capacity], Some(Capacity::Named(named)), Some(granted)) => {
            format!("{} ({named})", Unit::Bytes.show(granted as f64))
        }
        ([Key::Capacity], ..) => record.shown(Key::Capacity),
        _ => name(&record.job, keys),
    }
}

/// The values of the parameter shown in columns, and the rows. Each row has the name of a combination of the other
/// parameters, and one trial for each value.
pub(super) type Sweep<'a> = (Vec<String>, Vec<(String, Vec<&'a Record>)>);

/// The rows and columns of a table of throughput or round trips over a numeric parameter. `None` unless every
/// combination of the other parameters was measured with each value of that parameter.
pub(super) fn sweep<'a>(experiment: &MeasuredExperiment<'a>) -> Option<Sweep<'a>> {
    let cut = |record: &Record| record.estimate.as_ref().is_some_and(|own| own.get(Figure::Interleaved).is_some());
    // For chains, real time is shown too, and a table in columns has no room for it.
    if experiment.about.headline && is_chained(experiment) {
        return None;
    }
    if experiment.records.iter().any(|record| record.published.is_some() || cut(record)) {
        return None;
    }
    let keys = experiment.varying();
    let across = keys.iter().copied().filter(|key| key.unit() != Unit::Word).find_map(|key| {
        let values = BTreeSet::from_iter(experiment.records.iter().map(|record| record.job.value(key)));
        let values: Vec<_> = values.into_iter().collect();
        let numbers: Option<Vec<u64>> = values.iter().map(|value| value.as_ref()?.number()).collect();
        let fits = (MIN_COLUMNS..=MAX_COLUMNS).contains(&values.len()) && numbers.is_some();
        fits.then_some((key, values))
    });
    let (across, values) = across?;
    let others: Vec<Key> = keys.into_iter().filter(|key| *key != across).collect();
    let label = |record: &Record| if others.is_empty() { String::new() } else { name(&record.job, &others) };
    let mut ascending = experiment.records.clone();
    ascending.sort_by_key(|record| record.job.value(across));
    let rows = group_by_key(ascending.into_iter().map(|record| (label(record), record)));
    let whole = rows.iter().all(|(_, row)| row.len() == values.len() && row.iter().all(|own| own.estimate.is_some()));
    let headings = values.iter().flatten().map(|value| matrix::abbreviate_size(&value.to_string())).collect();
    whole.then_some((headings, rows))
}

/// A table with a row and a sparkline for each combination.
pub(super) fn as_columns(headings: &[String], rows: &[(String, Vec<&Record>)], signs: &mut String) -> Grid {
    let mut columns = vec![Column::words("", "").fit(Fit::Wrapped)];
    columns.extend(headings.iter().map(|heading| Column::figures("", heading)));
    columns.push(Column::words("", ""));
    let column = |at: usize| UnitOfColumn::of(rows.iter().filter_map(|(_, row)| row.get(at).copied()));
    let units: Vec<UnitOfColumn> = (0..headings.len()).map(column).collect();
    let row = |(label, records): &(String, Vec<&Record>)| {
        let mut cells = vec![Cell::shown(label)];
        let figure = |(record, unit): (&&Record, &UnitOfColumn)| {
            signs.push_str(&uncertainty_marks(record));
            Cell::shown(unit.brief(record)).mark(uncertainty_marks(record))
        };
        cells.extend(records.iter().zip(&units).map(figure));
        cells.push(Cell::shown(sparkline(records)).style(Style::Bar));
        cells
    };
    let mut rows: Vec<Vec<Cell>> = rows.iter().map(row).collect();
    // Sparklines that don't fit beside the figures are omitted, because there is no room for them below the table.
    let marks = rows.iter().flatten().map(|cell| cell.mark.chars().count()).max().unwrap_or(0);
    let chars = |cell: &Cell| 2 + cell.text.chars().count() + marks;
    let widths = (0..columns.len()).map(|at| rows.iter().map(|row| chars(&row[at])).max().unwrap_or(0));
    if widths.sum::<usize>() > TEXT_WIDTH + 2 {
        columns.pop();
        rows.iter_mut().for_each(|row| row.truncate(columns.len()));
    }
    Grid::new(columns, rows)
}

/// The main figure of a record.
fn headline(record: &Record) -> (Unit, f64) {
    matrix::headline(record).map_or((Unit::Count, 0.0), |(unit, estimate)| (unit, estimate.median))
}

/// The unit of a column's figures. Streams and round trips in one table have different units; those that aren't in the
/// unit of the first figure are in their own.
#[derive(Clone, Copy)]
struct UnitOfColumn {
    unit: Unit,
    common: ColumnUnit,
}

impl UnitOfColumn {
    fn of<'a>(records: impl Iterator<Item = &'a Record>) -> UnitOfColumn {
        let figures: Vec<(Unit, f64)> = records.map(headline).collect();
        let unit = figures.first().map_or(Unit::Count, |(unit, _)| *unit);
        let of_unit = figures.iter().filter(|(own, _)| *own == unit).map(|(_, figure)| *figure);
        UnitOfColumn { unit, common: unit.common(of_unit) }
    }

    /// The unit in which the column shows a record's figure.
    fn of_record(self, record: &Record) -> ColumnUnit {
        let (unit, figure) = headline(record);
        if unit == self.unit { self.common } else { unit.common([figure]) }
    }

    fn show(self, record: &Record) -> String {
        match matrix::headline(record) {
            None => matrix::instead_of_figure(record),
            Some((unit, estimate)) if unit == self.unit => self.common.show(estimate.median),
            Some((unit, estimate)) => unit.show(estimate.median),
        }
    }

    fn brief(self, record: &Record) -> String {
        match matrix::headline(record) {
            None => matrix::instead_of_figure(record),
            Some((unit, estimate)) if unit == self.unit => self.common.brief(estimate.median),
            Some((unit, estimate)) => unit.brief(estimate.median),
        }
    }
}

/// The number of lines of a row with a bar. Long labels are wrapped.
pub(super) fn lines_per_row(experiment: &MeasuredExperiment) -> usize {
    /// The width of the figure, the ratio and their gaps.
    const BESIDE: usize = 26;
    let keys = experiment.varying();
    let labels = experiment.records.iter().map(|record| label_by(&keys, record).chars().count());
    labels.max().unwrap_or(0).div_ceil(TEXT_WIDTH - BESIDE).max(1)
}

/// The unit of the figures beside bars. It doesn't depend on the rows shown.
fn unit_of_bars(experiment: &MeasuredExperiment) -> UnitOfColumn {
    let measured = || experiment.records.iter().copied().filter(|record| missing(record).is_none());
    let unread = measured().all(is_unread);
    UnitOfColumn::of(measured().filter(|record| unread || !is_unread(record)))
}

/// The unit in which a table on the screen shows a record's throughput or median time.
pub(super) fn unit_on_screen(experiment: &MeasuredExperiment, record: &Record) -> ColumnUnit {
    let in_sweep = || {
        let (_, rows) = sweep(experiment)?;
        let column = rows.iter().find_map(|(_, row)| row.iter().position(|own| std::ptr::eq(*own, record)))?;
        Some(UnitOfColumn::of(rows.iter().filter_map(|(_, row)| row.get(column).copied())).of_record(record))
    };
    matrix::unit(experiment.about, &experiment.records, record)
        .or_else(in_sweep)
        .unwrap_or_else(|| unit_of_bars(experiment).of_record(record))
}

/// A sparkline `▁▃█▅` of each figure relative to the highest.
fn sparkline(records: &[&Record]) -> String {
    let figures: Vec<f64> = records.iter().map(|record| headline(record).1).collect();
    let most = figures.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    pipemark_show::sparkline(&figures.iter().map(|figure| figure / most).collect::<Vec<_>>())
}

/// Whether the bytes never reached the reader's memory. The figure then shows how fast the pipe passes on bytes, but
/// not how fast a reader can use them.
fn is_unread(record: &Record) -> bool {
    of_bytes(record) == "○"
}

/// The rows to show: those that sentences are about, the baselines and the best trials. Rows whose bytes weren't read come
/// last.
pub(super) fn rows_shown<'a>(experiment: &MeasuredExperiment<'a>, most: usize, cited: &CitedTrials) -> Vec<&'a Record> {
    let measured = || experiment.records.iter().copied().filter(|record| missing(record).is_none());
    let speed = |record: &&Record| {
        let (unit, figure) = headline(record);
        if unit == Unit::Nanoseconds { -figure } else { figure }
    };
    let mut best: Vec<&Record> = measured().collect();
    best.sort_by(|one, other| {
        let first = |record: &&Record| (!experiment.is_needed(record, cited), !ranked(record), is_unread(record));
        first(one).cmp(&first(other)).then(speed(other).total_cmp(&speed(one)))
    });
    best.truncate(most);
    let shown = measured().filter(|record| best.iter().any(|own| std::ptr::eq(*own, *record)));
    let (last, first): (Vec<_>, Vec<_>) = shown.partition(|record| is_unread(record));
    first.into_iter().chain(last).collect()
}

/// The common volume of all published figures of an experiment; `None` if it equals the measured volume or there is no
/// common volume.
pub(super) fn volume_published(experiment: &MeasuredExperiment) -> Option<ByteSize> {
    let published = || experiment.records.iter().filter_map(|record| Some((record, record.published.as_ref()?)));
    let (_, first) = published().next()?;
    let total = ByteSize(first.total?);
    let alike =
        |own: &Published| own.total.is_some_and(|own| Volume::Total(ByteSize(own)).is_equivalent(Volume::Total(total)));
    let differ = published().any(|(record, own)| own.other_volume(record.job.volume()).is_some());
    (differ && published().all(|(_, own)| alike(own))).then_some(total)
}

fn is_chained(experiment: &MeasuredExperiment) -> bool {
    experiment.records.iter().any(|record| record.job.chain().is_some())
}

pub(super) fn in_words(volume: Volume) -> String {
    match volume {
        Volume::Total(total) => bytes_in_words(total.0),
        time => time.to_string(),
    }
}

/// The sign after a ratio. The legend explains it if a ratio differs from the ratio of the medians beside it.
pub(super) const BY_ROUND: &str = "×";

/// A table with a row for each trial with its figure, its ratio to the baseline, and a bar.
pub(super) fn as_bars(
    experiment: &MeasuredExperiment,
    (most, cited): (usize, &CitedTrials),
    signs: &mut String,
) -> Grid {
    let latency = experiment.is_latency();
    let shown = rows_shown(experiment, most, cited);
    let differs = shown.iter().any(|record| of_bytes(record) != of_bytes(shown[0]));
    // If only some rows have bytes that are read, the other rows get no ratio and no bar.
    let aside = |record: &Record| differs && is_unread(record);
    let has_bar = |record: &Record| !record.job.is_latency() && ranked(record) && !aside(record);
    let longest = shown.iter().filter(|record| has_bar(record)).map(|record| headline(record).1);
    let longest = longest.fold(f64::MIN_POSITIVE, f64::max);
    let beside_programs =
        mixes_foreign_programs(&experiment.records.iter().map(|record| &record.job).collect::<Vec<_>>());
    let unit = unit_of_bars(experiment);
    let chained = is_chained(experiment);
    let volumes = distinct(experiment.records.iter().map(|record| record.job.volume()));
    let published_for = volume_published(experiment);
    let statistic = experiment.statistic();
    let in_least = statistic == Some(Statistic::Least);
    let counts_calls = experiment.counts_calls();
    let median = |record: &Record, figure: Figure| Some(record.estimate.as_ref()?.get(figure)?.median);
    let least = |record: &Record, figure: Figure| Some(record.estimate.as_ref()?.get(figure)?.min);
    let message_cpu = !MessageCpu::parts(&experiment.records).is_empty();
    let row = |record: &&Record| {
        let estimates = record.estimate.as_ref();
        let (_, figure) = headline(record);
        let ratio = match estimates.and_then(|own| own.ratio()) {
            _ if experiment.is_baseline(record) => "base".to_owned(),
            _ if aside(record) => String::new(),
            None => String::new(),
            Some(ratio) => {
                let base = experiment.baseline_of(record).map(|base| headline(base).1);
                // The ratio is one of speeds, also where the medians are times.
                let speeds = |base: f64| if record.job.is_latency() { (base, figure) } else { (figure, base) };
                if base.map(speeds).is_some_and(|(own, base)| !agrees_with_medians(ratio, own, base)) {
                    signs.push_str(BY_ROUND);
                }
                times(ratio)
            }
        };
        let bytes = if differs { of_bytes(record) } else { "" };
        signs.push_str(bytes);
        signs.push_str(&uncertainty_marks(record));
        let shown_in_common = |figure: Figure, value: &dyn Fn(&Record, Figure) -> Option<f64>| {
            let common = figure.unit().common(shown.iter().filter_map(|other| value(other, figure)));
            value(record, figure).map(|own| common.show(own))
        };
        let of = |figure: Figure| shown_in_common(figure, &median);
        // The real time is the same statistic as the published one beside it.
        let real = || if in_least { shown_in_common(Figure::Real, &least) } else { of(Figure::Real) };
        let more = match (latency, chained) {
            (true, _) => of(Figure::P99).map(|p99| format!("99 % within {p99}")),
            (_, true) if volumes.len() > 1 || published_for.is_some() => {
                real().map(|real| format!("{real} for {}", in_words(record.job.volume())))
            }
            (_, true) => real().map(|real| format!("{real} in all")),
            _ if of(Figure::Interleaved).is_some() => {
                of(Figure::Interleaved).map(|cut| format!("{cut} of records cut"))
            }
            _ if counts_calls => {
                let calls = estimates.and_then(|own| own.get(Figure::Calls));
                calls.map(|calls| format!("{:.0} calls", calls.median))
            }
            // Programs in other languages have a start-up time. pipemark's own trials in the same table have none.
            _ if beside_programs => None,
            _ => of(Figure::StartUp).map(|start| format!("{start} to start and end")),
        };
        let message_cpu = message_cpu.then(|| MessageCpu::All.of(record)).flatten();
        let message_cpu = message_cpu.map(|ns| format!("CPU {}/msg", Unit::Nanoseconds.show(ns)));
        let published = record.published.as_ref();
        let beside = |own: &Published| match published_for {
            Some(_) => own.shown_with_rate(record.job.volume()),
            None => own.shown_next_to(record.job.volume()),
        };
        // The published time, if the main figure is a rate.
        let time = |own: &Published| {
            let time = own.figures_as_published.get(Figure::Elapsed.column()).filter(|time| **time != own.shown());
            time.map_or_else(String::new, |time| format!(", {}", neutral(time)))
        };
        // If the heading says that the figures are published, cells with nothing else don't.
        let word = if statistic.is_some() && !chained && more.is_none() { "" } else { "published " };
        let published = published.map(|own| format!("{word}{}{}", beside(own), time(own)));
        vec![
            Cell::shown(bytes),
            Cell::shown(label(experiment, record)),
            Cell::shown(unit.show(record)).mark(uncertainty_marks(record)),
            Cell::shown(ratio),
            Cell::shown([more, message_cpu, published].into_iter().flatten().collect::<Vec<_>>().join(", ")),
            if has_bar(record) { Cell::bar(figure / longest, figure / longest) } else { Cell::default() },
        ]
    };
    let (ours, beside) = match statistic {
        None => ("", String::new()),
        Some(Statistic::Least) if chained => ("median", "least real time".to_owned()),
        Some(own) => ("median", format!("published: {}", own.in_words())),
    };
    let mut columns = vec![
        Column::words("", ""),
        Column::words("", "").fit(Fit::Wrapped),
        Column::figures("", ours),
        Column::figures("", ""),
        Column::words("", &beside).fit(Fit::Wrapped),
        Column::bars(""),
    ];
    let mut rows: Vec<Vec<Cell>> = shown.iter().map(row).collect();
    // If there is no room for both, bars are dropped and text is kept.
    let chars = |cell: &Cell| cell.text.chars().count() + cell.mark.chars().count();
    let widths = (0..columns.len()).map(|at| rows.iter().map(|row| chars(&row[at])).max().unwrap_or(0));
    let needed: usize = widths.filter(|width| *width > 0).map(|width| width + 2).sum();
    if needed + MIN_BAR > TEXT_WIDTH && (needed <= TEXT_WIDTH || lines_per_row(experiment) > 1) {
        columns.pop();
        rows.iter_mut().for_each(|row| row.truncate(columns.len()));
    }
    Grid { labels: 2, ..Grid::new(columns, rows) }
}
