//! The columns of the table of stages. A new column is a new row of [`COLUMNS`]; its figure is a field of
//! [`StageFigures`].

use pipemark_model::{ColumnUnit, Nanos};
use pipemark_show::{Cell, Column, Fit, Style, sparkline};

use pipemark_causes::StageFigures;
use pipemark_causes::verdict::{is_unsampled, percent};

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
    pub figures: &'a StageFigures,
    /// The unit of all rates in the table.
    pub rate: ColumnUnit,
    /// The busy share over time, the latest last.
    pub past: &'a [f64],
    pub view: View,
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
}

const ALL: &[View] = &[View::Report, View::Screen, View::NarrowScreen];
const WIDE: &[View] = &[View::Report, View::Screen];
const LIVE: &[View] = &[View::Screen];

#[rustfmt::skip]
pub(crate) const COLUMNS: [StageColumn; 12] = [
    StageColumn { key: "stage", heading: "stage", views: ALL, cell: name },
    StageColumn { key: "in", heading: "in", views: WIDE, cell: |stage| rate(stage, stage.figures.bytes_in_per_second) },
    StageColumn { key: "out", heading: "out", views: WIDE, cell: |stage| rate(stage, stage.figures.bytes_out_per_second) },
    StageColumn { key: "busy", heading: "busy", views: ALL, cell: |stage| share(stage, stage.figures.busy).style(style(stage)) },
    StageColumn { key: "starved", heading: "starved", views: ALL, cell: |stage| share(stage, stage.figures.starved) },
    StageColumn { key: "blocked", heading: "blocked", views: ALL, cell: |stage| share(stage, stage.figures.blocked) },
    StageColumn { key: "cpu", heading: "CPU", views: WIDE, cell: |stage| or_dash(stage.figures.cpu.map(percent)) },
    StageColumn { key: "read", heading: "B/read", views: WIDE, cell: |stage| or_dash(stage.figures.bytes_per_read.map(bytes)) },
    StageColumn { key: "write", heading: "B/write", views: WIDE, cell: |stage| or_dash(stage.figures.bytes_per_write.map(bytes)) },
    StageColumn { key: "calls", heading: "calls/s", views: WIDE, cell: calls_per_second },
    StageColumn { key: "switches", heading: "sw/s", views: LIVE, cell: |stage| or_dash(stage.figures.switches_per_second.map(thousands)) },
    StageColumn { key: "", heading: "past", views: LIVE, cell: past },
];

impl StageColumn {
    pub(crate) fn is_in(&self, view: View) -> bool {
        self.views.contains(&view)
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
    let left = match (figures.progress, figures.seconds_left) {
        (Some(done), Some(seconds)) if stage.view != View::Report => {
            format!(" {} {}", percent(done), Nanos((seconds * 1e9) as u64))
        }
        _ => String::new(),
    };
    let mark = if stage.is_named { " ◀" } else { "" };
    Cell::text(format!("{} {}{several}{mark}{left}", figures.number, figures.name)).style(style(stage))
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

fn calls_per_second(stage: &StageRow) -> Cell {
    let (reads, writes) = (stage.figures.reads_per_second, stage.figures.writes_per_second);
    or_dash((reads.or(writes)).map(|_| thousands(reads.unwrap_or(0.0) + writes.unwrap_or(0.0))))
}

fn thousands(count: f64) -> String {
    if count < 9_999.5 { format!("{count:.0}") } else { format!("{:.0}k", count / 1e3) }
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
        let stage = StageRow { figures: &figures, rate, past: &[0.0, 1.0], view: View::Screen, is_named: true };
        let shown = COLUMNS.iter().map(|column| (column.heading, (column.cell)(&stage).text));
        let expected = [
            ("stage", "2 grep ×3 ◀"),
            ("in", "3.00 MiB/s"),
            ("out", "–"),
            ("busy", "50 %"),
            ("starved", "30 %"),
            ("blocked", "20 %"),
            ("CPU", "40 %"),
            ("B/read", "35"),
            ("B/write", "–"),
            ("calls/s", "90k"),
            ("sw/s", "12"),
            ("past", "▁█"),
        ];
        assert_eq!(shown.collect::<Vec<_>>(), expected.map(|(heading, text)| (heading, text.to_owned())));
    }
}
