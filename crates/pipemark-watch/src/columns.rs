//! The columns of the table of stages, and how each looks. The figure's row in `pipemark-causes` names its column.

use pipemark_model::{ColumnUnit, Nanos};
use pipemark_show::{Cell, Column, Fit, Style, sparkline};

use pipemark_causes::verdict::percent;
use pipemark_causes::{SHOWN, ShownFigure, StageRecord, TableColumn};

/// The number of points of history shown beside a stage.
const HISTORY_POINTS: usize = 10;
/// Where the table is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    /// The report at the end.
    Report,
    /// The live screen.
    Screen,
    /// The live screen of a small terminal.
    NarrowScreen,
}

/// What the cells of a row are made from.
pub(crate) struct StageRow<'a> {
    pub figures: &'a StageRecord,
    /// The unit of all rates in the table.
    pub rate: ColumnUnit,
    /// The busy share over time, the latest last.
    pub past: &'a [f64],
    /// Whether the verdict names the stage.
    pub is_named: bool,
}

/// A column of the table of stages.
pub(crate) struct StageColumn {
    heading: &'static str,
    key: &'static str,
    /// The views that have the column. The report and the live screen omit columns that don't fit, the last first; the
    /// columns of the narrow screen are never omitted.
    views: &'static [View],
    shows: Shows,
    /// Without a stage whose figure is at least this, there is no column.
    least: Option<f64>,
}

/// What a column shows.
enum Shows {
    Name,
    /// The busy share over time.
    Past,
    Figure(TableColumn, FigureFormat),
}

/// How a figure looks.
#[derive(Clone, Copy)]
enum FigureFormat {
    Rate,
    /// A share of the time in which a stage was sampled, in colour if the verdict names the stage.
    Busy,
    Share,
    Percent,
    Bytes,
    Count,
    Seconds,
}

const ALL: &[View] = &[View::Report, View::Screen, View::NarrowScreen];
const WIDE: &[View] = &[View::Report, View::Screen];
const LIVE: &[View] = &[View::Screen];
const ANY_LIVE: &[View] = &[View::Screen, View::NarrowScreen];

/// The column of a figure. `key` is its name in CSV and JSON.
const fn column_of(figure: TableColumn) -> StageColumn {
    const KNOWN: Option<f64> = Some(0.0);
    let (key, heading, views, format, least) = match figure {
        TableColumn::In => ("in", "in", WIDE, FigureFormat::Rate, None),
        TableColumn::Out => ("out", "out", WIDE, FigureFormat::Rate, None),
        TableColumn::Busy => ("busy", "busy", ALL, FigureFormat::Busy, None),
        // A smaller share is shown as 0 %.
        TableColumn::Waits => ("waits", "waits", ALL, FigureFormat::Share, Some(0.005)),
        TableColumn::Starved => ("starved", "starved", ALL, FigureFormat::Share, None),
        TableColumn::Blocked => ("blocked", "blocked", ALL, FigureFormat::Share, None),
        TableColumn::Cpu => ("cpu", "CPU", WIDE, FigureFormat::Percent, None),
        TableColumn::BytesPerRead => ("read", "B/read", WIDE, FigureFormat::Bytes, None),
        TableColumn::BytesPerWrite => ("write", "B/write", WIDE, FigureFormat::Bytes, None),
        TableColumn::Calls => ("calls", "calls/s", WIDE, FigureFormat::Count, None),
        TableColumn::Switches => ("switches", "sw/s", LIVE, FigureFormat::Count, None),
        TableColumn::Progress => ("done", "done", ANY_LIVE, FigureFormat::Percent, KNOWN),
        TableColumn::TimeLeft => ("left", "left", ANY_LIVE, FigureFormat::Seconds, KNOWN),
    };
    StageColumn { heading, key, views, shows: Shows::Figure(figure, format), least }
}

/// All columns, from left to right.
pub(crate) fn columns() -> impl Iterator<Item = StageColumn> {
    let name = StageColumn { heading: "stage", key: "stage", views: ALL, shows: Shows::Name, least: None };
    let past = StageColumn { heading: "past", key: "", views: LIVE, shows: Shows::Past, least: None };
    let mut figures: Vec<TableColumn> = shown().map(|figure| figure.column).collect();
    figures.sort();
    [name].into_iter().chain(figures.into_iter().map(column_of)).chain([past])
}

fn shown() -> impl Iterator<Item = &'static ShownFigure> {
    SHOWN.iter().copied().flatten()
}

/// A stage's figure in a column; `None` if it is unknown.
fn value(stage: &StageRecord, column: TableColumn) -> Option<f64> {
    shown().find(|figure| figure.column == column).and_then(|figure| (figure.of)(stage))
}

impl StageColumn {
    /// Whether the table of these stages has the column.
    pub(crate) fn is_in(&self, view: View, stages: &[&StageRecord]) -> bool {
        let has = |stage: &&StageRecord| match (&self.shows, self.least) {
            (Shows::Figure(figure, _), Some(least)) => value(stage, *figure).is_some_and(|value| value >= least),
            _ => true,
        };
        self.views.contains(&view) && stages.iter().any(has)
    }

    pub(crate) fn heading(&self) -> Column {
        match self.shows {
            Shows::Name => Column::words(self.key, self.heading).fit(Fit::Elastic),
            Shows::Past => Column::words(self.key, self.heading),
            Shows::Figure(..) if self.views == WIDE => Column::figures(self.key, self.heading).fit(Fit::Optional),
            Shows::Figure(..) => Column::figures(self.key, self.heading),
        }
    }

    /// The cell of a row.
    pub(crate) fn cell(&self, stage: &StageRow) -> Cell {
        let (figure, format) = match self.shows {
            Shows::Name => return name(stage),
            Shows::Past => return past(stage),
            Shows::Figure(figure, format) => (value(stage.figures, figure), format),
        };
        match format {
            FigureFormat::Rate => or_dash(figure.map(|rate| stage.rate.show(rate))),
            FigureFormat::Busy => share(stage, figure).style(style(stage)),
            FigureFormat::Share => share(stage, figure),
            FigureFormat::Percent => or_dash(figure.map(percent)),
            FigureFormat::Bytes => or_dash(figure.map(bytes)),
            FigureFormat::Count => or_dash(figure.map(thousands)),
            FigureFormat::Seconds => or_dash(figure.map(seconds)),
        }
    }
}

fn style(stage: &StageRow) -> Style {
    if stage.is_named { Style::Success } else { Style::Plain }
}

fn name(stage: &StageRow) -> Cell {
    let figures = stage.figures;
    let several = if figures.processes > 1 { format!(" ×{}", figures.processes) } else { String::new() };
    let mark = if stage.is_named { " ◀" } else { "" };
    Cell::text(format!("{} {}{several}{mark}", figures.number, figures.name)).style(style(stage))
}

fn or_dash(text: Option<String>) -> Cell {
    Cell::shown(text.unwrap_or_else(|| "–".to_owned()))
}

fn share(stage: &StageRow, share: Option<f64>) -> Cell {
    match share.filter(|_| !stage.figures.is_unsampled()) {
        Some(share) => Cell::of(percent(share), share),
        None => or_dash(None),
    }
}

/// A mean number of bytes, in KiB from 1 KiB up.
fn bytes(bytes: f64) -> String {
    let kibi = bytes / 1024.0;
    match bytes {
        ..9.95 => format!("{bytes:.1}"),
        ..1023.5 => format!("{bytes:.0}"),
        _ if kibi < 9.95 => format!("{kibi:.1}Ki"),
        _ => format!("{kibi:.0}Ki"),
    }
}

fn thousands(count: f64) -> String {
    match count {
        ..9_999.5 => format!("{count:.0}"),
        ..999_500.0 => format!("{:.0}k", count / 1e3),
        _ => format!("{:.1}M", count / 1e6),
    }
}

fn seconds(seconds: f64) -> String {
    Nanos((seconds * 1e9) as u64).to_string()
}

/// The bar covers the whole time: if there are more moments than points, each point is a mean.
fn past(stage: &StageRow) -> Cell {
    let mean = |moments: &[f64]| moments.iter().sum::<f64>() / moments.len() as f64;
    let moments = stage.past.len().div_ceil(HISTORY_POINTS).max(1);
    let points: Vec<f64> = stage.past.rchunks(moments).rev().map(mean).collect();
    Cell::shown(sparkline(&points)).style(Style::Bar)
}

#[cfg(test)]
mod tests {
    use pipemark_model::Unit;

    use super::*;

    #[test]
    fn each_column_shows_its_figure() {
        let figures = StageRecord {
            number: 2,
            name: "grep".to_owned(),
            processes: 3,
            present: 1.0,
            busy: 0.5,
            sleep: 0.1,
            progress: Some(0.25),
            seconds_left: Some(3.0),
            starved: 0.3,
            blocked: 0.2,
            cpu: Some(0.4),
            bytes_in_per_second: Some(3.0 * 1024.0 * 1024.0),
            reads_per_second: Some(90_000.0),
            bytes_per_read: Some(34.6),
            writes_per_second: None,
            bytes_per_write: None,
            switches_per_second: Some(12.0),
            ..StageRecord::default()
        };
        let rate = Unit::BytesPerSecond.common([3.0 * 1024.0 * 1024.0]);
        let stage = StageRow { figures: &figures, rate, past: &[0.0, 1.0], is_named: true };
        let shown = columns().map(|column| (column.heading, column.cell(&stage).text));
        let expected = [
            ("stage", "2 grep ×3 ◀"),
            ("in", "3.00 MiB/s"),
            ("out", "–"),
            ("busy", "40 %"),
            ("waits", "10 %"),
            ("starved", "30 %"),
            ("blocked", "20 %"),
            ("CPU", "40 %"),
            ("B/read", "35"),
            ("B/write", "–"),
            ("calls/s", "90k"),
            ("sw/s", "12"),
            ("done", "25 %"),
            ("left", "3.00 s"),
            ("past", "▁█"),
        ];
        assert_eq!(shown.collect::<Vec<_>>(), expected.map(|(heading, text)| (heading, text.to_owned())));
    }

    #[test]
    fn columns_without_anything_to_show_are_omitted() {
        let tail = StageRecord { busy: 1.0, sleep: 1.0, cpu: Some(0.0), ..StageRecord::default() };
        let head = StageRecord { starved: 1.0, ..StageRecord::default() };
        let headings = |stages: &[&StageRecord]| {
            let all = columns().filter(|column| column.is_in(View::NarrowScreen, stages));
            all.map(|column| column.heading).collect::<Vec<_>>()
        };
        assert_eq!(headings(&[&head]), ["stage", "busy", "starved", "blocked"]);
        assert_eq!(headings(&[&head, &tail]), ["stage", "busy", "waits", "starved", "blocked"]);
        assert_eq!((tail.works(), tail.waits()), (0.0, 1.0), "what sleeps isn't busy");
    }

    #[test]
    fn counts_have_at_most_four_digits() {
        let shown = [999.0, 9_999.0, 10_400.0, 999_400.0, 1_234_567.0].map(thousands);
        assert_eq!(shown, ["999", "9999", "10k", "999k", "1.2M"]);
    }
}
