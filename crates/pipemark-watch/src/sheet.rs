//! Lays out the report on a pipeline: stages and pipes, then the verdict. The columns are in `columns`.

use pipemark_causes::report::{GainRange, HypothesisRecord, Quality};
use pipemark_causes::verdict::percent;
use pipemark_causes::{Phase, PipeRecord, PipelineReport, PipelineVerdict, Remedy, StageMoment, StageRecord};
use pipemark_model::{ByteSize, ColumnUnit, Unit, counted, neutral, total_order};
use pipemark_show::{
    Axis, Block, Cell, Chart, ChartKind, Column, Fit, Grid, Note, Point, Row, RowGroup, Scale, Series, SeriesRole,
    Sheet, Style, Table,
};

use crate::columns::{StageColumn, StageRow, View, columns};
use crate::live::LivePipeline;

/// Up to this number of stages, all are shown in full. With more stages, only the busiest are.
const MAX_FULL: usize = 30;

/// A first scan that took less CPU time than this, in seconds, isn't mentioned.
const MIN_FIRST_SCAN: f64 = 0.1;

/// The report on a pipeline.
pub fn why(report: &PipelineReport) -> Sheet {
    let mut sheet = Sheet::default();
    let mut about = vec![format!("why · {}", report.pipeline), format!("{:.1} s", report.seconds)];
    if report.samples > 0 {
        about.push(format!("{:.0} samples/s", report.samples_per_second));
        about.push(format!("pipemark used {:.1} % of one CPU", report.own_cpu * 100.0));
        if report.first_scan >= MIN_FIRST_SCAN {
            about.push(format!("and {:.1} s for the first scan", report.first_scan));
        }
    }
    sheet.text(Style::Heading, about);
    sheet.grid(grid(report, &[], false, View::Report));
    conclude(&mut sheet, report);
    sheet
}

/// The live report, in two sheets. One has the stages and the busy share of each over time, in the order of the data or
/// the busiest first. The other has the rest. `narrow` omits pipes and rates.
pub fn screen(report: &PipelineReport, history: &[Vec<f64>], busiest_first: bool, narrow: bool) -> [Sheet; 2] {
    let [mut stages, mut verdict] = <[Sheet; 2]>::default();
    let view = if narrow { View::NarrowScreen } else { View::Screen };
    stages.grid(grid(report, history, busiest_first, view));
    conclude(&mut verdict, report);
    [stages, verdict]
}

fn conclude(sheet: &mut Sheet, report: &PipelineReport) {
    sheet.notes(report.notes.iter().map(Note::plain));
    // Phases may need the same remedy, which is printed once.
    let mut printed: Vec<&Remedy> = Vec::new();
    for Phase { begin, end, verdict } in &report.phases {
        sheet.text(Style::Plain, [format!("{begin:.1} to {end:.1} s: {}", verdict.text)]);
        remedies(sheet, verdict, &mut printed);
    }
    if report.phases.is_empty() {
        sheet.text(Style::Plain, [&report.verdict.text]);
        remedies(sheet, &report.verdict, &mut printed);
    }
    let experiments = report.experiments.as_deref().unwrap_or_default();
    if printed.iter().all(|remedy| remedy.command != experiments)
        && let Some(command) = Note::command(experiments)
    {
        sheet.notes([Note::new("→", Style::Success, "prove it, and find a faster pipeline, by experiment"), command]);
    }
}

/// Adds the remedies of a verdict that aren't `printed` yet.
fn remedies<'a>(sheet: &mut Sheet, verdict: &'a PipelineVerdict, printed: &mut Vec<&'a Remedy>) {
    if verdict.remedies.is_empty() {
        sheet.notes(verdict.advice.iter().map(|advice| Note::new("→", Style::Success, advice)));
    }
    for remedy in &verdict.remedies {
        if !printed.contains(&remedy) {
            sheet.notes([Note::new("→", Style::Success, &remedy.text)]);
            sheet.notes(Note::command(&remedy.command));
            printed.push(remedy);
        }
    }
}

/// Adds the causes that were considered: the gain without each, what it rests on, and why it wasn't chosen.
pub fn explain(sheet: &mut Sheet, report: &PipelineReport) {
    let gain = |found: &HypothesisRecord| match found.gain {
        None => "–".to_owned(),
        Some(GainRange { low, high: Some(high) }) if high - low < 0.05 => format!("{low:.1}×"),
        Some(GainRange { low, high: Some(high) }) => format!("{low:.1}–{high:.1}×"),
        Some(GainRange { low, high: None }) => format!("≥ {low:.1}×"),
    };
    let place = |found: &HypothesisRecord| match (found.stage, found.pipe) {
        (Some(stage), _) => stage_name(report, stage),
        (None, Some(pipe)) => {
            let ends = report.pipes.iter().find(|one| one.number == pipe).map(|one| (one.from, one.to));
            ends.map(|(from, to)| format!("pipe {from} to {to}")).unwrap_or_default()
        }
        (None, None) => "all".to_owned(),
    };
    let rests = |found: &HypothesisRecord| match found.quality {
        Quality::Proved => "proved",
        Quality::Measured => "measured",
        Quality::Inferred => "inferred",
    };
    let table = Table::of(&report.verdict.hypotheses)
        .column(Column::words("place", "place"), |found| Cell::text(place(found)))
        .column(Column::words("cause", "cause"), |found| Cell::text(found.cause.clone()))
        .column(Column::figures("gain", "without it"), |found| Cell::shown(gain(found)))
        .column(Column::figures("explains", "explains"), |found| Cell::shown(percent(found.explains)))
        .column(Column::words("quality", "").fit(Fit::Optional), |found| Cell::text(rests(found)))
        .column(Column::words("why_not", "why not").fit(Fit::Elastic), |found| {
            Cell::text(found.why_not.clone().unwrap_or_else(|| "chosen".to_owned()))
        });
    sheet.heading(2, "Causes considered");
    sheet.grid(table.grid());
}

/// Adds the functions in which each profiled stage spent most time.
pub fn functions(sheet: &mut Sheet, report: &PipelineReport) {
    let profiled = report.stages.iter().filter_map(|stage| Some((stage, stage.profile.as_ref()?)));
    let mut is_any = false;
    for (stage, profile) in profiled.filter(|(_, profile)| !profile.functions.is_empty()) {
        is_any = true;
        let table = Table::of(&profile.functions)
            .column(Column::figures("share", "CPU time"), |function| Cell::of(percent(function.share), function.share))
            .column(Column::words("function", "function").fit(Fit::Elastic), |function| {
                Cell::text(neutral(&function.name))
            })
            .column(Column::words("file", "file"), |function| Cell::text(neutral(&function.image)));
        sheet.heading(
            2,
            &format!(
                "Functions of {} ({})",
                stage_name(report, stage.number),
                counted(profile.samples as usize, "sample")
            ),
        );
        sheet.grid(table.grid());
    }
    if !is_any {
        sheet.notes([Note::plain(
            "no functions were sampled: no stage used enough CPU time, or sampling isn't permitted",
        )]);
    }
}

/// A stage as the table of stages shows it.
fn stage_name(report: &PipelineReport, number: usize) -> String {
    let name = report.stages.iter().find(|stage| stage.number == number).map_or("", |stage| stage.name.as_str());
    format!("{number} {name}")
}

fn grid(report: &PipelineReport, history: &[Vec<f64>], busiest_first: bool, view: View) -> Grid {
    let mut shown: Vec<&StageRecord> = report.stages.iter().collect();
    if shown.len() > MAX_FULL || busiest_first {
        shown.sort_by_cached_key(|stage| total_order(-stage.busy));
        shown.truncate(MAX_FULL);
    }
    if !busiest_first {
        shown.sort_by_cached_key(|stage| stage.number);
    }
    let rate = unit_of_rates(&shown);
    let columns: Vec<StageColumn> = columns().filter(|column| column.is_in(view, &shown)).collect();
    let mut rows = Vec::new();
    for figures in shown {
        let past = history.get(figures.number - 1).map_or(&[][..], Vec::as_slice);
        let stage = StageRow { figures, rate, past, is_named: report.verdict.stage == Some(figures.number) };
        rows.push(Row::from(columns.iter().map(|column| column.cell(&stage)).collect::<Vec<_>>()));
        let outs = report.pipes.iter().filter(|pipe| pipe.from == figures.number);
        let outs = outs.filter(|_| !busiest_first && view != View::NarrowScreen);
        let named = |one: &PipeRecord| report.verdict.pipe == Some(one.number);
        rows.extend(outs.map(|one| pipe(one, figures.number, named(one), view == View::Screen)));
    }
    Grid {
        labels: 1,
        columns: columns.iter().map(StageColumn::heading).collect(),
        groups: vec![RowGroup::new("", rows)],
    }
}

/// The unit of all rates in the table. Rates that are small beside the largest don't affect it.
fn unit_of_rates(stages: &[&StageRecord]) -> ColumnUnit {
    let rates = stages.iter().flat_map(|stage| [stage.bytes_in_per_second, stage.bytes_out_per_second]).flatten();
    let most = rates.clone().fold(0.0, f64::max);
    Unit::BytesPerSecond.common(rates.filter(|rate| *rate > most * 1e-4))
}

/// A pipe's row. With `short`, the row of a live screen fits into 80 columns.
fn pipe(figures: &PipeRecord, after: usize, mark: bool, short: bool) -> Row {
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
    if report.stages.iter().any(|stage| stage.profile.is_some()) {
        functions(sheet, report);
    }
}

/// The live pipelines that a verb can choose from.
pub(crate) fn live(found: &[LivePipeline], verb: &str) -> Sheet {
    let short = |words: &String| match words.char_indices().nth(24) {
        Some((end, _)) => format!("{}…", &words[..end]),
        None => words.clone(),
    };
    let stages = |live: &LivePipeline| Cell::text(live.stages.iter().map(short).collect::<Vec<_>>().join(" | "));
    let group = |live: &LivePipeline| {
        let unit = live.unit.as_ref().map(|unit| format!("unit {unit}"));
        let container = live.container.as_ref().map(|container| format!("container {container}"));
        Cell::text(neutral(&container.or(unit).unwrap_or_default()))
    };
    let mut table =
        Table::of(found).column(Column::figures("pid", "PID"), |live| Cell::of(live.pid.to_string(), live.pid));
    if found.iter().any(|live| live.unit.is_some() || live.container.is_some()) {
        table = table.column(Column::words("group", "in"), group);
    }
    let table = table.column(Column::words("pipeline", "pipeline").fit(Fit::Elastic), stages);
    let text = match found.len() {
        0 => format!("there is no running pipeline that you may sample; to run one: pipemark {verb} 'a | b'"),
        count => format!("{}; to select one: pipemark {verb} PID", counted(count, "running pipeline")),
    };
    Sheet::of(table.grid(), [Note::plain(text)])
}
