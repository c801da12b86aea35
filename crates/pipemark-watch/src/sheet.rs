//! Lays out the report on a pipeline: stages and pipes, then the verdict.

use pipemark_model::{ByteSize, ColumnUnit, Nanos, Unit, counted};
use pipemark_show::{
    Axis, Block, Cell, Chart, ChartKind, Column, Fit, Grid, Note, Point, Row, RowGroup, Scale, Series, SeriesRole,
    Sheet, Style, Table, sparkline,
};

use crate::live::LivePipeline;
use crate::report::{Phase, PipeFigures, PipelineReport, Remedy, StageFigures, StageMoment};
use crate::verdict::{is_unsampled, percent};

/// Up to this number of stages, all are shown in full. With more stages, only the busiest are.
const MAX_FULL: usize = 30;
/// The number of points of history shown beside a stage.
const HISTORY_POINTS: usize = 10;

/// The report on a pipeline.
pub fn why(report: &PipelineReport) -> Sheet {
    let mut sheet = Sheet::default();
    let mut about = vec![format!("why · {}", report.pipeline), format!("{:.1} s", report.seconds)];
    if report.samples > 0 {
        about.push(format!("{:.0} samples/s", report.samples_per_second));
        about.push(format!("pipemark used {:.1} % of one CPU", report.own_cpu * 100.0));
    }
    sheet.text(Style::Heading, about);
    sheet.grid(grid(report, &[], false));
    conclude(&mut sheet, report);
    sheet
}

/// The live report, in two sheets. One has the stages and the busy share of each over time, in the order of the data or
/// the busiest first. The other has the rest. `narrow` omits pipes and rates.
pub fn screen(report: &PipelineReport, history: &[Vec<f64>], busiest_first: bool, narrow: bool) -> [Sheet; 2] {
    let [mut stages, mut verdict] = <[Sheet; 2]>::default();
    let mut grid = grid(report, history, busiest_first);
    if narrow {
        // The columns that are kept: the stage and its states.
        const KEPT: [usize; 4] = [0, 3, 4, 5];
        grid.columns = KEPT.map(|at| grid.columns[at].clone()).to_vec();
        for group in &mut grid.groups {
            group.rows.retain(|row| row.instead.is_none());
            group.rows.iter_mut().for_each(|row| row.cells = KEPT.map(|at| row.cells[at].clone()).to_vec());
        }
    }
    stages.grid(grid);
    conclude(&mut verdict, report);
    [stages, verdict]
}

fn conclude(sheet: &mut Sheet, report: &PipelineReport) {
    sheet.notes(report.notes.iter().map(Note::plain));
    for Phase { begin, end, verdict } in &report.phases {
        sheet.text(Style::Plain, [format!("{begin:.1} to {end:.1} s: {}", verdict.text)]);
    }
    if report.phases.is_empty() {
        sheet.text(Style::Plain, [&report.verdict.text]);
    }
    if report.verdict.remedies.is_empty() {
        sheet.notes(report.verdict.advice.iter().map(|advice| Note::new("→", Style::Success, advice)));
    }
    for Remedy { text, command, .. } in &report.verdict.remedies {
        sheet.notes([Note::new("→", Style::Success, text)]);
        if !command.is_empty() {
            sheet.notes([Note::command(command)]);
        }
    }
}

fn grid(report: &PipelineReport, history: &[Vec<f64>], busiest_first: bool) -> Grid {
    let runs = !history.is_empty();
    let mut columns = vec![
        Column::words("stage", "stage").fit(Fit::Elastic),
        Column::figures("in", "in").fit(Fit::Optional),
        Column::figures("out", "out").fit(Fit::Optional),
        Column::figures("busy", "busy"),
        Column::figures("starved", "starved"),
        Column::figures("blocked", "blocked"),
        Column::figures("cpu", "CPU").fit(Fit::Optional),
        Column::figures("read", "B/read").fit(Fit::Optional),
        Column::figures("write", "B/write").fit(Fit::Optional),
        Column::figures("calls", "calls/s").fit(Fit::Optional),
    ];
    if runs {
        columns.extend([Column::figures("switches", "sw/s"), Column::words("", "past")]);
    }
    let mut rows = Vec::new();
    let mut shown: Vec<&StageFigures> = report.stages.iter().collect();
    if shown.len() > MAX_FULL || busiest_first {
        shown.sort_by(|a, b| b.busy.total_cmp(&a.busy));
        shown.truncate(MAX_FULL);
    }
    if !busiest_first {
        shown.sort_by_key(|stage| stage.number);
    }
    let unit = unit_of_rates(&shown);
    for figures in shown {
        let mark = report.verdict.stage == Some(figures.number);
        let busy = history.get(figures.number - 1).map_or(&[][..], Vec::as_slice);
        // A bar covers the whole time: if there are more moments than points, each point is a mean.
        let mean = |moments: &[f64]| moments.iter().sum::<f64>() / moments.len() as f64;
        let busy: Vec<f64> = busy.rchunks(busy.len().div_ceil(HISTORY_POINTS).max(1)).rev().map(mean).collect();
        let switches = figures.switches_per_second.map_or_else(|| "–".to_owned(), thousands);
        let live = [Cell::shown(switches), Cell::shown(sparkline(&busy)).style(Style::Bar)];
        rows.push(Row::from(
            [stage(figures, unit, mark, runs), calls(figures), live[..if runs { 2 } else { 0 }].to_vec()].concat(),
        ));
        let outs = report.pipes.iter().filter(|pipe| pipe.from == figures.number && !busiest_first);
        rows.extend(outs.map(|one| pipe(one, figures.number, report.verdict.pipe == Some(one.number), runs)));
    }
    Grid { labels: 1, columns, groups: vec![RowGroup::new("", rows)] }
}

/// Bytes per read and per write, and calls per second.
fn calls(figures: &StageFigures) -> Vec<Cell> {
    let bytes = |bytes: Option<f64>| {
        let digits = |bytes: f64| if bytes < 9.95 { format!("{bytes:.1}") } else { thousands(bytes) };
        Cell::shown(bytes.map_or_else(|| "–".to_owned(), digits))
    };
    let all = [figures.reads_per_second, figures.writes_per_second];
    let sum = all.into_iter().flatten().sum::<f64>();
    let calls = if all == [None, None] { "–".to_owned() } else { thousands(sum) };
    vec![bytes(figures.bytes_per_read), bytes(figures.bytes_per_write), Cell::shown(calls)]
}

fn thousands(count: f64) -> String {
    if count < 9_999.5 { format!("{count:.0}") } else { format!("{:.0}k", count / 1e3) }
}

/// The unit of all rates in the table. Rates that are small beside the largest don't affect it.
fn unit_of_rates(stages: &[&StageFigures]) -> ColumnUnit {
    let rates = stages.iter().flat_map(|stage| [stage.bytes_in_per_second, stage.bytes_out_per_second]).flatten();
    let most = rates.clone().fold(0.0, f64::max);
    Unit::BytesPerSecond.common(rates.filter(|rate| *rate > most * 1e-4))
}

fn stage(figures: &StageFigures, unit: ColumnUnit, mark: bool, runs: bool) -> Vec<Cell> {
    let rate = |rate: Option<f64>| Cell::shown(rate.map_or_else(|| "–".to_owned(), |rate| unit.show(rate)));
    let unsampled = is_unsampled(figures);
    let share = |share: f64| if unsampled { Cell::shown("–") } else { Cell::of(percent(share), share) };
    let style = if mark { Style::Success } else { Style::Plain };
    let several = if figures.processes > 1 { format!(" ×{}", figures.processes) } else { String::new() };
    let left = match (figures.progress, figures.seconds_left) {
        (Some(done), Some(seconds)) if runs => format!(" {} {}", percent(done), Nanos((seconds * 1e9) as u64)),
        _ => String::new(),
    };
    let name = format!("{} {}{several}{}{left}", figures.number, figures.name, if mark { " ◀" } else { "" });
    vec![
        Cell::text(name).style(style),
        rate(figures.bytes_in_per_second),
        rate(figures.bytes_out_per_second),
        share(figures.busy).style(style),
        share(figures.starved),
        share(figures.blocked),
        Cell::shown(figures.cpu.map_or_else(|| "–".to_owned(), percent)),
    ]
}

/// A pipe's row. With `short`, the row of a live screen fits into 80 columns.
fn pipe(figures: &PipeFigures, after: usize, mark: bool, short: bool) -> Row {
    let to = if figures.to == after + 1 { String::new() } else { format!(" to {}", figures.to) };
    let capacity = figures.capacity.map(|bytes| format!(" {}", ByteSize(bytes))).unwrap_or_default();
    let word = if short && !capacity.is_empty() { "" } else { " pipe" };
    let name = format!("  └{word}{to}{capacity}{}", if mark { " ◀" } else { "" });
    let text =
        format!("writer waits {}, reader waits {}", percent(figures.writer_waits), percent(figures.reader_waits));
    let style = if mark { Style::Success } else { Style::Aside };
    Row { cells: vec![Cell { text: name, ..Cell::default() }], instead: Some((style, text)) }
}

/// Adds each stage's activity over time.
pub fn timeline(sheet: &mut Sheet, report: &PipelineReport) {
    sheet.heading(2, &report.pipeline);
    sheet.blocks.extend(why(report).blocks);
    if report.stages.iter().any(|stage| stage.moments.len() > 1) {
        sheet.heading(2, "Activity of each stage over time");
    }
    for stage in &report.stages {
        let series = |(place, label): (usize, &str)| {
            let point = |moment: &StageMoment| {
                let share = [moment.busy, moment.starved, moment.blocked][place];
                let name = label.to_owned();
                Point { x: moment.seconds * 1e9, y: share * 100.0, name, figure: percent(share), ..Point::default() }
            };
            let points = stage.moments.iter().map(point).collect();
            Series { label: label.to_owned(), role: SeriesRole::Distribution, points }
        };
        let x = Axis::new("time", Unit::Nanoseconds, Scale::Linear);
        let y = Axis::new("per cent", Unit::Count, Scale::Linear);
        let series = ["busy", "starved", "blocked"].into_iter().enumerate().map(series).collect();
        let chart = Chart::new("Share of the time, in per cent", ChartKind::Curves, x, y, series);
        let panel = format!("{} {}", stage.number, stage.name);
        sheet.blocks.push(Block::Chart(Box::new(Chart { panel, ..chart })));
    }
}

/// The live pipelines that a verb can choose from.
pub fn live(found: &[LivePipeline], verb: &str) -> Sheet {
    let short = |words: &String| match words.char_indices().nth(24) {
        Some((end, _)) => format!("{}…", &words[..end]),
        None => words.clone(),
    };
    let stages = |live: &LivePipeline| Cell::text(live.stages.iter().map(short).collect::<Vec<_>>().join(" | "));
    let table = Table::of(found)
        .column(Column::figures("pid", "PID"), |live| Cell::of(live.pid.to_string(), live.pid))
        .column(Column::words("pipeline", "pipeline").fit(Fit::Elastic), stages);
    let text = match found.len() {
        0 => format!("there is no running pipeline that you may sample; to run one: pipemark {verb} 'a | b'"),
        count => format!("{}; to select one: pipemark {verb} PID", counted(count, "running pipeline")),
    };
    Sheet::of(table.grid(), [Note::plain(text)])
}
