//! A table with one parameter across the top. It has a row for each combination of the other parameters. The best cell
//! of each column is marked.

use pipemark_model::{
    Better, ColumnUnit, Estimate, Experiment, Figure, Key, Record, Unit, Warning, differing_keys, distinct,
    group_by_key, neutral,
};
use pipemark_show::{Cell, Column, Fit, Grid, Note, Row, RowGroup, Style};

use crate::sheet::marks::warnings_by_trial;
use crate::sheet::words::{missing, ranked};

/// The text shown in place of a missing figure. The reasons are listed below the table.
pub(super) const MISSING_FIGURE: &str = "–";

/// The parameters that identify a row. Other varying parameters form groups.
const ROW_KEYS: [Key; 4] = [Key::Link, Key::Send, Key::Recv, Key::Filter];

/// The table, and the notes below the table; `None` if the experiment doesn't request this form.
pub(super) fn grid(about: &Experiment, records: &[&Record]) -> Option<(Grid, Vec<Note>)> {
    let across = about.across?;
    // After an interruption, the first row may be incomplete, so the columns aren't taken from it.
    let mut ascending = records.to_vec();
    ascending.sort_by_cached_key(|record| record.job.value(across).and_then(|value| value.number()));
    let columns = distinct(ascending.iter().map(|record| record.shown(across)));
    let caption = captions(about, records, across);
    let groups = group_by_key(records.iter().map(|&record| (caption(record), record)));
    let groups = groups.iter().map(|(caption, group)| RowGroup::new(caption, rows(group, across, &columns))).collect();
    let headings = columns.iter().map(|column| Column::figures("", &abbreviate_size(column)));
    let labels = Column::words("", &format!("by {across}")).fit(Fit::Elastic);
    let grid = Grid { labels: 1, columns: [labels].into_iter().chain(headings).collect(), groups };
    Some((grid, notes(records).into_iter().map(Note::plain).collect()))
}

/// The unit of a record's cell; `None` if the experiment doesn't request this form or the record has no figure.
pub(super) fn unit(about: &Experiment, records: &[&Record], record: &Record) -> Option<ColumnUnit> {
    let across = about.across?;
    let caption = captions(about, records, across);
    let of_column = |other: &&Record| other.shown(across) == record.shown(across) && caption(other) == caption(record);
    common_unit(records.iter().copied().filter(of_column))
}

fn common_unit<'a>(records: impl Iterator<Item = &'a Record>) -> Option<ColumnUnit> {
    let figures: Vec<(Unit, f64)> =
        records.filter_map(headline).map(|(unit, estimate)| (unit, estimate.median)).collect();
    figures.first().map(|(unit, _)| unit.common(figures.iter().map(|(_, figure)| *figure)))
}

/// The caption of a record's group.
fn captions(about: &Experiment, records: &[&Record], across: Key) -> impl Fn(&Record) -> String {
    let jobs: Vec<_> = records.iter().map(|record| &record.job).collect();
    let mut apart = differing_keys(&jobs, &about.varies);
    // Rows aren't grouped by verification, because it differs only for links that move nothing, which aren't ranked.
    apart.retain(|key| !key.is_volume() && ![across, Key::Verify].contains(key) && !ROW_KEYS.contains(key));
    move |record| {
        let words: Vec<String> = apart.iter().map(|key| format!("{key} {}", record.shown(*key))).collect();
        words.join(" · ")
    }
}

fn rows<'a>(records: &[&'a Record], across: Key, columns: &[String]) -> Vec<Row> {
    let at = |row: &[&'a Record], column: &String| row.iter().copied().rfind(|record| record.shown(across) == *column);
    let of_row = |row: Vec<&'a Record>| columns.iter().map(|column| at(&row, column)).collect::<Vec<_>>();
    let rows = group_by_key(records.iter().map(|&record| (record.mechanism(), record)));
    let rows: Vec<(String, Vec<Option<&Record>>)> = rows.into_iter().map(|(label, row)| (label, of_row(row))).collect();
    let best: Vec<Option<&Record>> = (0..columns.len())
        .map(|column| {
            let measured = rows.iter().filter_map(|(_, cells)| cells[column]).filter(|record| ranked(record));
            measured.reduce(|best, other| if better(other, best) { other } else { best })
        })
        .collect();
    let units: Vec<Option<ColumnUnit>> =
        (0..columns.len()).map(|column| common_unit(rows.iter().filter_map(|(_, cells)| cells[column]))).collect();
    let cell = |record: &Record, column: usize| match headline(record) {
        None => Cell::shown(instead_of_figure(record)),
        Some((unit, estimate)) => {
            let cell = Cell::shown(
                units[column]
                    .map_or_else(|| unit.brief(estimate.median), |column_unit| column_unit.brief(estimate.median)),
            );
            let among_best = best[column].is_some_and(|best| ranked(record) && is_tied(best, record));
            if among_best { cell.style(Style::Success).mark("*") } else { cell }
        }
    };
    let row = |(label, records): (String, Vec<Option<&Record>>)| {
        let cells = records.into_iter().enumerate();
        let cells = cells.map(|(column, record)| record.map_or_else(Cell::default, |record| cell(record, column)));
        Row::from([Cell::shown(label)].into_iter().chain(cells).collect::<Vec<_>>())
    };
    rows.into_iter().map(row).collect()
}

/// The figure of a cell with its unit: the median round trip, or throughput. `None` if the record has no figure.
pub(super) fn headline(record: &Record) -> Option<(Unit, &Estimate)> {
    let estimates = record.estimate.as_ref().filter(|_| missing(record).is_none())?;
    let has_times = !record.job.is_latency() || estimates.round_trip().is_some();
    has_times.then_some((estimates.headline_figure().unit(), estimates.headline()))
}

/// The text of a record without a figure.
pub(super) fn instead_of_figure(record: &Record) -> String {
    replacement_for_figure(record).unwrap_or_else(|| MISSING_FIGURE.to_owned())
}

/// The text shown in place of omitted times: the rate that was reached, or `held` if lines were held back. `None` if
/// the times aren't omitted.
fn replacement_for_figure(record: &Record) -> Option<String> {
    let reached = record.estimate.as_ref()?.get(Figure::RoundTripsPerSecond)?;
    let behind = |warning: &Warning| matches!(warning, Warning::Behind { .. });
    Some(match record.warnings.iter().any(behind) {
        true => format!("{}/s", Unit::Count.brief(round_down(reached.median))),
        false => "held".to_owned(),
    })
}

/// Rounds down to three digits, so that the rate reached isn't shown as the rate requested. Rates below 100 stay exact.
fn round_down(rate: f64) -> f64 {
    let step = 10f64.powf((rate.max(1.0).log10().floor() - 2.0).max(0.0));
    if rate < 100.0 { rate } else { (rate / step).floor() * step }
}

fn better(one: &Record, other: &Record) -> bool {
    let (Some((_, this)), Some((_, that))) = (headline(one), headline(other)) else { return false };
    match one.estimate.as_ref().map(|estimates| estimates.headline_figure().better()) {
        Some(Better::Lower) => this.median < that.median,
        _ => this.median > that.median,
    }
}

/// Whether the intervals of two records overlap, so that the records are tied.
fn is_tied(best: &Record, other: &Record) -> bool {
    let (Some((_, best)), Some((_, other))) = (headline(best), headline(other)) else { return false };
    best.median == other.median
        || matches!((best.low, other.high), (Some(low), Some(high)) if high >= low)
            && matches!((best.high, other.low), (Some(high), Some(low)) if low <= high)
}

/// Abbreviates `64 KiB` to `64k`, because columns are narrow.
pub(super) fn abbreviate_size(value: &str) -> String {
    neutral(&value.replace(" KiB", "k").replace(" MiB", "M").replace(" GiB", "G").replace(" B", ""))
}

/// The meaning of the null link's figures; `None` if no record uses the null link.
pub(super) fn without_transfer(records: &[&Record]) -> Option<&'static str> {
    let null = |record: &&Record| record.job.link().is_null() && missing(record).is_none();
    records.iter().any(null).then_some("no transfer, the cost of the harness itself; not ranked")
}

/// The meaning of figures and marks, the reasons for empty cells, and warnings.
fn notes(records: &[&Record]) -> Vec<String> {
    let latency = records.iter().any(|record| record.job.is_latency());
    let mut notes = vec![match latency {
        true if records.iter().any(|record| record.job.lines().is_some()) => {
            "median time of a line in seconds (n, µ, m); * shortest of the column, or tied with it; held: lines were held back \
             until more arrived; N/s: at most N lines per second were reached"
                .to_owned()
        }
        true => "median round trip in seconds (n, µ, m); * shortest of the column, or tied with it".to_owned(),
        false => "bytes per second (K, M, G, T: KiB/s and so on); * best of the column, or tied with it".to_owned(),
    }];
    notes.extend(without_transfer(records).iter().map(|note| format!("null: {note}")));
    let reasons = group_by_key(records.iter().filter_map(|record| Some((missing(record)?, record.mechanism()))));
    notes.extend(
        reasons
            .into_iter()
            .map(|(reason, labels)| format!("{MISSING_FIGURE} {}: {reason}", distinct(labels).join(", "))),
    );
    notes.extend(warnings_by_trial(records, "cell", Record::mechanism));
    notes
}
