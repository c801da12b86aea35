//! The columns of the table of stages. A new column is a new row of [`COLUMNS`]; its figure is a field of
//! [`StageFigures`].

use pipemark_model::{ColumnUnit, Nanos};
use pipemark_show::{Cell, Column, Fit, Style, sparkline};

use pipemark_causes::StageFigures;
use pipemark_causes::verdict::{is_unsampled, percent};

/// The number of points of history shown beside a stage.
const HISTORY_POINTS: usize = 10;
/// Other waits than those for pipes have a column if a stage waits for at least this share of the time.
const MIN_WAITS: f64 = 0.005;

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
    pub figures: &'a StageFigures,
    /// The unit of all rates in the table.
    pub rate: ColumnUnit,
    /// The busy share over time, the latest last.
    pub past: &'a [f64],
    /// Whether the verdict names the stage.
    pub is_named: bool,
}

/// A column of the table of stages.
pub(crate) struct StageColumn {
    key: &'static str,
    heading: &'static str,
    /// The views that have the column. The report and the live screen omit columns that don't fit, the last first; the
    /// columns of the narrow screen are never omitted.
    views: &'static [View],
    pub cell: fn(&StageRow) -> Cell,
    /// Whether a stage has anything to show in it. Without such a stage, there is no column.
    has: fn(&StageFigures) -> bool,
}

const ALL: &[View] = &[View::Report, View::Screen, View::NarrowScreen];
const WIDE: &[View] = &[View::Report, View::Screen];
const LIVE: &[View] = &[View::Screen];
const ANY_LIVE: &[View] = &[View::Screen, View::NarrowScreen];

const ALWAYS: fn(&StageFigures) -> bool = |_| true;

#[rustfmt::skip]
pub(crate) const COLUMNS: [StageColumn; 15] = [
    StageColumn { key: "stage", heading: "stage", views: ALL, cell: name, has: ALWAYS },
    StageColumn { key: "in", heading: "in", views: WIDE, cell: |stage| rate(stage, stage.figures.bytes_in_per_second), has: ALWAYS },
    StageColumn { key: "out", heading: "out", views: WIDE, cell: |stage| rate(stage, stage.figures.bytes_out_per_second), has: ALWAYS },
    StageColumn { key: "busy", heading: "busy", views: ALL, cell: |stage| share(stage, stage.figures.works()).style(style(stage)), has: ALWAYS },
    StageColumn { key: "waits", heading: "waits", views: ALL, cell: |stage| share(stage, stage.figures.waits()), has: |stage| stage.waits() >= MIN_WAITS },
    StageColumn { key: "starved", heading: "starved", views: ALL, cell: |stage| share(stage, stage.figures.starved), has: ALWAYS },
    StageColumn { key: "blocked", heading: "blocked", views: ALL, cell: |stage| share(stage, stage.figures.blocked), has: ALWAYS },
    StageColumn { key: "cpu", heading: "CPU", views: WIDE, cell: |stage| or_dash(stage.figures.cpu.map(percent)), has: ALWAYS },
    StageColumn { key: "read", heading: "B/read", views: WIDE, cell: |stage| or_dash(stage.figures.bytes_per_read.map(bytes)), has: ALWAYS },
    StageColumn { key: "write", heading: "B/write", views: WIDE, cell: |stage| or_dash(stage.figures.bytes_per_write.map(bytes)), has: ALWAYS },
    StageColumn { key: "calls", heading: "calls/s", views: WIDE, cell: |stage| or_dash(stage.figures.calls_per_second().map(thousands)), has: ALWAYS },
    StageColumn { key: "switches", heading: "sw/s", views: LIVE, cell: |stage| or_dash(stage.figures.switches_per_second.map(thousands)), has: ALWAYS },
    StageColumn { key: "done", heading: "done", views: ANY_LIVE, cell: |stage| or_dash(stage.figures.progress.map(percent)), has: |stage| stage.progress.is_some() },
    StageColumn { key: "left", heading: "left", views: ANY_LIVE, cell: |stage| or_dash(stage.figures.seconds_left.map(seconds)), has: |stage| stage.seconds_left.is_some() },
    StageColumn { key: "", heading: "past", views: LIVE, cell: past, has: ALWAYS },
];

impl StageColumn {
    /// Whether the table of these stages has the column.
    pub(crate) fn is_in(&self, view: View, stages: &[&StageFigures]) -> bool {
        self.views.contains(&view) && stages.iter().any(|stage| (self.has)(stage))
    }

    pub(crate) fn heading(&self) -> Column {
        match self.key {
            "stage" => Column::words(self.key, self.heading).fit(Fit::Elastic),
            "" => Column::words(self.key, self.heading),
            _ if self.views == WIDE => Column::figures(self.key, self.heading).fit(Fit::Optional),
            _ => Column::figures(self.key, self.heading),
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

fn rate(stage: &StageRow, rate: Option<f64>) -> Cell {
    or_dash(rate.map(|rate| stage.rate.show(rate)))
}

fn share(stage: &StageRow, share: f64) -> Cell {
    if is_unsampled(stage.figures) { or_dash(None) } else { Cell::of(percent(share), share) }
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
        let figures = StageFigures {
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
            ..StageFigures::default()
        };
        let rate = Unit::BytesPerSecond.common([3.0 * 1024.0 * 1024.0]);
        let stage = StageRow { figures: &figures, rate, past: &[0.0, 1.0], is_named: true };
        let shown = COLUMNS.iter().map(|column| (column.heading, (column.cell)(&stage).text));
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
        let tail = StageFigures { busy: 1.0, sleep: 1.0, cpu: Some(0.0), ..StageFigures::default() };
        let head = StageFigures { starved: 1.0, ..StageFigures::default() };
        let headings = |stages: &[&StageFigures]| {
            let all = COLUMNS.iter().filter(|column| column.is_in(View::NarrowScreen, stages));
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
