//! A document on one screen of 80 columns: a compact table for each experiment, then the main figures and findings.

mod tables;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use pipemark_model::{
    Document, Figure, Finding, Nanos, Published, Record, Statistic, Throughput, bytes_in_words, counted, shared,
    three_digits,
};
use pipemark_show::{Block, Cell, Characters, Colour, Column, Fit, Grid, Note, Sheet, Style, Terminal};
use pipemark_tune::sheet::sheet as tune_sheet;
use pipemark_watch::sheet::why;

use crate::sheet::brief::tables::{
    BY_ROUND, TEXT_WIDTH, as_bars, as_columns, in_words, label, lines_per_row, rows_shown, sweep, unit_on_screen,
    volume_published,
};
use crate::sheet::commands::add_commands;
use crate::sheet::document::warnings;
use crate::sheet::experiment::{CitedTrials, MeasuredExperiment, trials_by_experiment};
use crate::sheet::marks::{legend_in_brief, uncertainty_marks};
use crate::sheet::matrix::without_transfer;
use crate::sheet::summary::{SummaryRow, summary};
use crate::sheet::words::{self, interval, missing};
use crate::sheet::{cpu_map, gains, matrix};
use crate::sheet::{tuned, watched};

/// The largest number of lines of the sheet, on a terminal of 80 columns.
const MAX_LINES: usize = 45;
/// The largest number of lines of a sheet with main tables and a summary. A longer sheet omits the summary.
const MAX_HEADLINE_LINES: usize = 50;
/// The largest number of lines for findings.
const MAX_FINDING_LINES: usize = 8;
/// The largest number of findings.
const MAX_FINDINGS: usize = 5;
/// The minimum number of rows shown of an experiment, if the experiment has that many.
const MIN_ROWS: usize = 2;
/// The largest number of lines of a table that is still printed in addition to a suite's main table.
const MAX_TABLE_BESIDE: usize = 8;
/// The largest number of published figures listed for an experiment whose table isn't shown.
const MAX_PUBLISHED: usize = 6;
/// The largest number of reasons shown for missing figures.
const MAX_REASONS: usize = 2;

/// The document in brief. `pointers` are sentences that say where to find the rest.
pub fn brief(document: &Document, pointers: &[String]) -> Sheet {
    if let Some(watched) = watched(document) {
        let mut sheet = why(&watched);
        sheet.text(Style::Aside, pointers);
        return sheet;
    }
    if let Some(tuned) = tuned(document) {
        let mut sheet = tune_sheet(&tuned);
        sheet.text(Style::Aside, pointers);
        return sheet;
    }
    if !document.commands.is_empty() {
        let mut sheet = Sheet::default();
        add_commands(&mut sheet, document);
        sheet.text(Style::Aside, pointers);
        return sheet;
    }
    let findings = findings(document);
    // The claims follow on a screen of their own. The suite's main experiments are shown whole, and so are the rows that
    // findings are about. To make room for them, findings are dropped, the last first.
    let headline = document.experiments.iter().any(|experiment| experiment.headline);
    let lines = |sheet: &Sheet| {
        let terminal = Terminal { width: TEXT_WIDTH + 4, colour: Colour::Never, characters: Characters::Unicode };
        terminal.render(sheet).lines().count()
    };
    let main_figures = summary(document, unit_on_screen);
    let fewer = (findings.len().min(1)..=findings.len()).rev();
    // If that isn't enough, a suite with main tables shows no findings.
    let none = headline.then_some(0);
    let (mut sheet, mut shown) = <(Sheet, Vec<&Finding>)>::default();
    for most in fewer.chain(none) {
        let footer = ScreenFooter { findings: &findings[..most], summary: &main_figures };
        (sheet, shown) = lay_out(document, &footer);
        if lines(&sheet) + pointers.len() < MAX_LINES {
            return with_claims(sheet, document, &shown, pointers);
        }
    }
    if headline && lines(&sheet) + pointers.len() >= MAX_HEADLINE_LINES {
        (sheet, shown) = lay_out(document, &ScreenFooter::default());
    }
    with_claims(sheet, document, &shown, pointers)
}

/// Adds the claims, one line each, and the pointers.
fn with_claims(mut sheet: Sheet, document: &Document, findings: &[&Finding], pointers: &[String]) -> Sheet {
    pipemark_claims::sheet::list(&mut sheet, document);
    let topics =
        BTreeSet::from_iter(findings.iter().map(|finding| finding.topic.as_str()).filter(|topic| !topic.is_empty()));
    let explained = topics.iter().enumerate().map(|(nth, topic)| {
        let what = if nth == 0 { "explanations: " } else { "" };
        format!("{what}pipemark help {topic}")
    });
    if !pointers.is_empty() {
        if document.requested().count() > 1 {
            sheet.blocks.push(Block::Gap);
        }
        sheet.text(Style::Aside, explained.chain(pointers.iter().cloned()));
    }
    sheet
}

/// The part of the sheet after the tables.
#[derive(Default)]
struct ScreenFooter<'a> {
    findings: &'a [&'a Finding],
    summary: &'a [SummaryRow<'a>],
}

impl<'a> ScreenFooter<'a> {
    /// The trials that the footer is about.
    fn cited(&self) -> CitedTrials<'a> {
        let by_summary = self.summary.iter().flat_map(|row| keys(&row.cited));
        by_summary.chain(self.findings.iter().flat_map(|finding| cited_by(finding))).collect()
    }
}

/// What identifies these trials on the screen.
fn keys<'r>(records: &[&'r Record]) -> impl Iterator<Item = (&'r str, &'r str)> {
    records.iter().map(|record| (record.experiment.as_str(), record.id.as_str()))
}

/// The trials that a finding is about.
fn cited_by(finding: &Finding) -> CitedTrials<'_> {
    fn collect<'a>(evidence: &'a Json, cited: &mut CitedTrials<'a>) {
        match evidence {
            Json::Object(fields) => {
                let text = |key: &str| fields.get(key).and_then(Json::as_str);
                cited.extend(text("experiment").zip(text("trial")));
                fields.values().for_each(|value| collect(value, cited));
            }
            Json::Array(values) => values.iter().for_each(|value| collect(value, cited)),
            _ => {}
        }
    }
    let mut cited = CitedTrials::new();
    finding.evidence.values().for_each(|value| collect(value, &mut cited));
    cited
}

/// Lays out the document with this footer. Main figures and findings about rows that aren't on the screen are omitted;
/// returns the findings that are shown.
fn lay_out<'a>(document: &Document, footer: &ScreenFooter<'a>) -> (Sheet, Vec<&'a Finding>) {
    let ScreenFooter { findings, summary } = footer;
    let cited = footer.cited();
    let mut sheet = Sheet::default();
    let trials = trials_by_experiment(document);
    let experiments: Vec<MeasuredExperiment> =
        document.experiments.iter().filter_map(|about| MeasuredExperiment::of(document, about, &trials)).collect();
    // Trials that are upper bounds for the other trials are shown in the summary.
    let bounds = |experiment: &&MeasuredExperiment| {
        experiment.records.iter().all(|record| record.job.is_memory_copy() || record.job.is_two_copies())
    };
    let (bounds, shown): (Vec<&MeasuredExperiment>, Vec<&MeasuredExperiment>) = experiments.iter().partition(bounds);
    let experiments = if shown.is_empty() { bounds } else { shown };
    let machine = [vec![format!("pipemark {}", document.suite)], words::machine(document)].concat();
    sheet.text(Style::Heading, machine);
    sheet.text(Style::Caution, words::partial(document));
    sheet.notes(warnings(document));
    if let [experiment] = experiments[..]
        && let [record] = experiment.records[..]
    {
        single(&mut sheet, document, record);
        return (sheet, Vec::new());
    }
    // The suite's main experiments are shown whole, so tall tables of other experiments are dropped.
    let headline = experiments.iter().any(|experiment| experiment.about.headline);
    let stays = |experiment: &&MeasuredExperiment| {
        !headline
            || experiment.about.headline
            || table_height(document, experiment).is_none_or(|lines| lines <= MAX_TABLE_BESIDE)
    };
    let (experiments, mut omitted): (Vec<&MeasuredExperiment>, Vec<&MeasuredExperiment>) =
        experiments.into_iter().partition(stays);
    let lines_below = summary_lines(summary) + findings.len();
    let rows = rows_of(document, &experiments, &sheet, (lines_below, findings), &cited);
    let mut signs = String::new();
    let (shown, without_room): (Vec<_>, Vec<_>) =
        experiments.iter().zip(rows).partition(|(experiment, rows)| *rows > 0 || is_whole(experiment));
    omitted.extend(without_room.into_iter().map(|(experiment, _)| *experiment));
    let is_whole_table =
        |experiment: &MeasuredExperiment| table_height(document, experiment).is_some() || sweep(experiment).is_some();
    // The trials whose figures are on the screen.
    let mut on_screen = CitedTrials::new();
    for (experiment, rows) in &shown {
        let records = match is_whole_table(experiment) {
            true => experiment.records.clone(),
            false => rows_shown(experiment, *rows, &cited),
        };
        // A table of gains has the figures of its bases only, or on a main table none.
        let has_figure = |record: &&&Record| match experiment.about.gains {
            Some(_) => !experiment.about.headline && experiment.is_baseline(record),
            None => true,
        };
        on_screen.extend(keys(&records.iter().filter(has_figure).copied().collect::<Vec<_>>()));
    }
    let has_rows = |row: &&SummaryRow| keys(&row.cited).all(|trial| on_screen.contains(&trial));
    let mut summary: Vec<&SummaryRow> = summary.iter().filter(has_rows).collect();
    // A limit alone sums nothing up.
    if summary.iter().all(|row| row.cited.is_empty()) {
        summary.clear();
    }
    let is_shown = |finding: &&&Finding| cited_by(finding).is_subset(&on_screen);
    let findings: Vec<&Finding> = findings.iter().filter(is_shown).copied().collect();
    for (experiment, rows) in shown {
        sheet.heading(2, &heading(experiment, rows));
        table(&mut sheet, document, experiment, (rows, &cited), &mut signs);
    }
    if !omitted.is_empty() {
        let words = |experiment: &&MeasuredExperiment| {
            format!("{} ({})", experiment.title(), counted(experiment.records.len(), "trial"))
        };
        sheet.blocks.push(Block::Gap);
        let published = omitted.iter().filter_map(|own| published_in_brief(own));
        sheet.notes(published.map(Note::plain));
        sheet.text(Style::Aside, [format!("with --all: {}", omitted.iter().map(words).collect::<Vec<_>>().join("; "))]);
    }
    let mut legend = legend_in_brief(&signs);
    if signs.contains(BY_ROUND) {
        legend.push(format!("{BY_ROUND} median of the ratios within each round, not the ratio of the medians"));
    }
    if !legend.is_empty() {
        sheet.blocks.push(Block::Gap);
        sheet.text(Style::Aside, legend);
    }
    let measured = document.requested().filter(|record| record.estimate.is_some()).count();
    if !summary.is_empty() || !findings.is_empty() {
        sheet.heading(2, &format!("Summary ({}, {})", Nanos(document.elapsed_ns), counted(measured, "trial")));
    }
    sheet.grid(Grid::new(
        vec![Column::words("", ""), Column::figures("", ""), Column::words("", "").fit(Fit::Wrapped)],
        summary.iter().map(|row| row.cells.clone()).collect(),
    ));
    if !findings.is_empty() && !summary.is_empty() {
        sheet.blocks.push(Block::Gap);
    }
    let several_findings = findings.len() > 1;
    let mark = |index: usize| if several_findings { format!("{}", index + 1) } else { "•".to_owned() };
    let numbered = findings.iter().enumerate();
    sheet.notes(numbered.map(|(index, finding)| Note::new(&mark(index), Style::Heading, &finding.text)));
    (sheet, findings)
}

/// The sheet of a single trial.
fn single(sheet: &mut Sheet, document: &Document, record: &Record) {
    sheet.text(Style::Aside, shared(&[&record.job]).into_iter().filter(|word| !word.ends_with(" per run")));
    if let Some(reason) = missing(record) {
        sheet.text(Style::Failure, [reason]);
        return;
    }
    let Some(estimates) = &record.estimate else { return };
    let (unit, headline) = (estimates.headline_figure().unit(), estimates.headline());
    let marks = uncertainty_marks(record);
    let ends = match headline.low {
        Some(_) => format!("{}, {}", interval(headline, |end| unit.show(end)), counted(headline.runs as usize, "run")),
        None => format!("{}, too few for an interval", counted(headline.runs as usize, "run")),
    };
    let figure = Cell::shown(unit.show(headline.median)).style(Style::Heading).mark(marks.clone());
    let mut row = vec![figure, Cell::shown(format!("({ends})"))];
    let median = |figure: Figure| estimates.get(figure).map(|estimate| figure.unit().show(estimate.median));
    let more = match estimates.headline_figure() {
        Figure::P50 => median(Figure::P99).map(|p99| format!("99 % within {p99}")),
        _ => median(Figure::CpuSecondsPerGib).map(|cpu| format!("CPU {cpu} s/GiB")),
    };
    let copy = document.memory_copy.filter(|_| estimates.headline_figure() != Figure::P50);
    let copy = copy.map(|copy| format!("memory copy {}", Throughput(copy.median)));
    row.push(Cell::shown([more, copy].into_iter().flatten().collect::<Vec<_>>().join(", ")));
    let columns = (0..row.len()).map(|_| Column::words("", "").fit(Fit::Wrapped));
    sheet.grid(Grid::new(columns.collect(), vec![row]));
    sheet.text(Style::Aside, legend_in_brief(&marks.replace('?', "")));
    let warnings = super::marks::warnings_by_trial(&[record], "row", |_| String::new());
    sheet
        .notes(warnings.iter().take(1).map(|text| Note::new("!", Style::Caution, text.trim_start_matches([':', ' ']))));
}

/// The title of an experiment, in brackets as many common settings as fit on the line, and the number of trials shown
/// if some are omitted.
fn heading(experiment: &MeasuredExperiment, rows: usize) -> String {
    let mut heading = experiment.title().to_owned();
    let all = experiment.records.iter().filter(|record| missing(record).is_none()).count();
    let some = if !is_whole(experiment) && rows < all { format!(": {rows} of {all} trials") } else { String::new() };
    let volumes = || experiment.records.iter().map(|record| record.job.volume());
    let here = volumes().next().filter(|first| volumes().all(|other| other.is_equivalent(*first)));
    let here = here.map_or_else(String::new, |volume| format!(", here {}", in_words(volume)));
    let mut shared = volume_published(experiment)
        .map_or_else(String::new, |total| format!("published for {}", bytes_in_words(total.0)));
    if !shared.is_empty() && heading.chars().count() + shared.len() + here.len() + some.len() + 3 <= TEXT_WIDTH {
        shared.push_str(&here);
    }
    for word in experiment.shared().iter().filter(|word| !word.ends_with(" per run")) {
        let longer = if shared.is_empty() { word.clone() } else { format!("{shared}, {word}") };
        if heading.chars().count() + longer.chars().count() + some.chars().count() + 3 <= TEXT_WIDTH {
            shared = longer;
        }
    }
    if !shared.is_empty() {
        heading.push_str(&format!(" ({shared})"));
    }
    heading + &some
}

/// As many findings as there is room for, the most useful first.
fn findings(document: &Document) -> Vec<&Finding> {
    let mut lines = 0;
    let fits = |finding: &&Finding| {
        lines += finding.text.chars().count().div_ceil(TEXT_WIDTH);
        lines <= MAX_FINDING_LINES
    };
    document.findings.iter().take_while(fits).take(MAX_FINDINGS).collect()
}

/// The number of lines of a table that can't be shortened: a table with a parameter across the top, or in the form of a
/// published table. `None` for other tables.
fn table_height(document: &Document, experiment: &MeasuredExperiment) -> Option<usize> {
    let grids = match experiment.about.headline {
        true => gains::in_brief(document, experiment).map(|(grid, _)| vec![grid]),
        false => gains::grids(document, experiment).map(|(grids, _)| grids),
    };
    let grids = grids.or_else(|| matrix::grid(experiment.about, &experiment.records).map(|(grid, _)| vec![grid]))?;
    Some(grids.iter().flat_map(|grid| &grid.groups).map(|group| group.rows.len() + 2).sum())
}

/// Whether the experiment's table is shown whole, even if there is no room.
fn is_whole(experiment: &MeasuredExperiment) -> bool {
    experiment.about.across.is_some() || experiment.about.gains.is_some() || sweep(experiment).is_some()
}

/// The number of rows for each experiment, so that all experiments fit on one screen. The suite's main experiments get
/// all their rows. Other experiments get at least those that the summary and the findings are about. Beside main
/// experiments they get no other rows if there isn't room for some of each, and none if there is no room left.
fn rows_of(
    document: &Document,
    experiments: &[&MeasuredExperiment],
    above: &Sheet,
    (summary, findings): (usize, &[&Finding]),
    cited: &CitedTrials,
) -> Vec<usize> {
    let lines = |text: &str| text.chars().count().div_ceil(TEXT_WIDTH);
    let notes = |block: &Block| match block {
        Block::Notes(notes) => notes.iter().map(|note| lines(&note.text)).sum(),
        _ => 1,
    };
    let above: usize = above.blocks.iter().map(notes).sum();
    let below: usize = summary + findings.iter().map(|finding| lines(&finding.text) - 1).sum::<usize>();
    // Lines used by other parts: the legend (two lines), the pointers and the gap before them, and for each experiment
    // a heading and a blank line.
    let reasons: usize = experiments.iter().flat_map(|experiment| reasons(experiment)).map(|text| lines(&text)).sum();
    let whole = |experiment: &&MeasuredExperiment| {
        table_height(document, experiment).or_else(|| sweep(experiment).map(|(_, rows)| 1 + rows.len()))
    };
    let whole_lines: usize = experiments.iter().filter_map(whole).sum();
    let headings = experiments.iter().filter(|own| whole(own).is_none() && own.statistic().is_some()).count();
    let room = MAX_LINES.saturating_sub(above + below + reasons + whole_lines + 9 + 2 * experiments.len() + headings);
    let rows =
        |experiment: &&MeasuredExperiment| if whole(experiment).is_some() { 0 } else { experiment.records.len() };
    let wanted: Vec<usize> = experiments.iter().map(rows).collect();
    let headline = experiments.iter().any(|experiment| experiment.about.headline);
    let of = |(rows, experiment): (&usize, &&MeasuredExperiment), most: usize| {
        let height = lines_per_row(experiment);
        let needed = (*rows).min(experiment.needed_rows(cited)).min(room / height);
        if experiment.about.headline { *rows } else { (*rows).min(most).max(needed) }
    };
    let shown = |most: usize| wanted.iter().zip(experiments).map(|both| of(both, most)).collect::<Vec<usize>>();
    let heights: Vec<usize> = experiments.iter().map(|experiment| lines_per_row(experiment)).collect();
    let fits =
        |most: &usize| shown(*most).iter().zip(&heights).map(|(rows, height)| rows * height).sum::<usize>() <= room;
    let most = (MIN_ROWS..=wanted.iter().copied().max().unwrap_or(0)).rev().find(fits);
    match most {
        Some(most) => shown(most),
        None if !headline => shown(MIN_ROWS),
        None if fits(&0) => shown(0),
        None => wanted.iter().zip(experiments).map(|(rows, own)| if own.about.headline { *rows } else { 0 }).collect(),
    }
}

/// The published figures of an experiment whose table isn't shown, each beside the measured figure; `None` if there are
/// none.
fn published_in_brief(experiment: &MeasuredExperiment) -> Option<String> {
    let statistic = experiment.statistic();
    let is_time = |published: &Published| published.relative || published.shown().ends_with(" s");
    let mut published = experiment.records.iter().filter_map(|record| record.published.as_ref());
    let in_least = statistic == Some(Statistic::Least) && published.all(is_time);
    // The time and the published throughput of the first row whose published volume is unknown.
    let first_relative = experiment.records.iter().find_map(|record| {
        let published = record.published.as_ref().filter(|own| own.relative && missing(record).is_none())?;
        let estimates = record.estimate.as_ref()?;
        let time = [Figure::Elapsed, Figure::Real].into_iter().find_map(|figure| estimates.get(figure))?;
        Some((time.median, published.throughput))
    });
    let words = |record: &&Record| {
        let published = record.published.as_ref().filter(|_| missing(record).is_none())?;
        let (shown, estimates) = (published.shown_next_to(record.job.volume()), record.estimate.as_ref()?);
        let in_time = is_time(published);
        let time =
            [Figure::Elapsed, Figure::Real].into_iter().find_map(|figure| Some((figure, estimates.get(figure)?)));
        let (figure, estimate) =
            time.filter(|_| in_time).unwrap_or((estimates.headline_figure(), estimates.headline()));
        let ours = if in_least { estimate.min } else { estimate.median };
        let name = label(experiment, record);
        if !published.relative {
            return Some(format!("{name} {} ({shown})", figure.unit().show(ours)));
        }
        // The published volume is unknown, so only ratios can be compared.
        let (first, of_first) = first_relative?;
        let theirs = of_first / published.throughput;
        Some(format!("{name} {}× ({}×, {shown})", three_digits(ours / first), three_digits(theirs)))
    };
    let rows: Vec<String> = experiment.records.iter().filter_map(words).collect();
    let few = (1..=MAX_PUBLISHED).contains(&rows.len());
    let heading = match statistic {
        None => "ours (published)".to_owned(),
        Some(own) if first_relative.is_some() => {
            format!("our median time (published, {}), relative to the first", own.in_words())
        }
        Some(_) if in_least => "our least (published)".to_owned(),
        Some(own) => format!("our median (published, {})", own.in_words()),
    };
    few.then(|| format!("{}, {heading}: {}", experiment.title(), rows.join(", ")))
}

/// The number of lines of the summary, with its last column wrapped.
fn summary_lines(summary: &[SummaryRow]) -> usize {
    let summary: Vec<&[Cell]> = summary.iter().map(|row| row.cells.as_slice()).collect();
    let chars = |cell: &Cell| cell.text.chars().count();
    let widest = |column: usize| summary.iter().map(|row| chars(&row[column])).max().unwrap_or(0);
    let room = TEXT_WIDTH.saturating_sub(widest(0) + widest(1) + 4).max(1);
    summary.iter().map(|row| chars(&row[2]).div_ceil(room).max(1)).sum()
}

/// Adds the table of an experiment, and the reasons why trials are missing from it.
fn table(
    sheet: &mut Sheet,
    document: &Document,
    experiment: &MeasuredExperiment,
    (rows, cited): (usize, &CitedTrials),
    signs: &mut String,
) {
    if experiment.about.headline
        && let Some((grid, notes)) = gains::in_brief(document, experiment)
    {
        // A table in the published form is the purpose of its suite, so its other figures are omitted here. The legend
        // is shown once, below the last table.
        sheet.grid(grid);
        let last = document.experiments.iter().rfind(|experiment| experiment.headline && experiment.gains.is_some());
        let is_last = last.is_some_and(|last| last.name == experiment.about.name);
        sheet.notes(notes.into_iter().take(usize::from(is_last)));
        return;
    }
    if let Some((grids, notes)) = gains::grids(document, experiment) {
        grids.into_iter().for_each(|grid| sheet.grid(grid));
        sheet.notes(notes.into_iter().take(1));
        return;
    }
    let null = without_transfer(&experiment.records).map(|text| Note::new("null:", Style::Aside, text));
    let map = cpu_map::grids(experiment, &document.host.topology, cpu_map::SCREEN_COLUMNS);
    if let Some((grids, notes)) = map {
        grids.into_iter().for_each(|grid| sheet.grid(grid));
        sheet.notes(notes);
    } else if let Some((grid, notes)) = matrix::grid(experiment.about, &experiment.records) {
        sheet.grid(grid);
        sheet.notes(notes.into_iter().take(1));
    } else if let Some((columns, table_rows)) = sweep(experiment) {
        sheet.grid(as_columns(&columns, &table_rows, signs));
        sheet.notes(null);
    } else {
        sheet.grid(as_bars(experiment, (rows, cited), signs));
        sheet.notes(null);
    }
    let reasons = reasons(experiment).into_iter().map(|text| Note::new(matrix::MISSING_FIGURE, Style::Aside, &text));
    sheet.notes(reasons);
}

/// The reasons why some trials have no figures, without duplicates.
fn reasons(experiment: &MeasuredExperiment) -> Vec<String> {
    let mut reasons: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for record in &experiment.records {
        if let Some(reason) = missing(record) {
            reasons.entry(reason).or_default().push(label(experiment, record));
        }
    }
    let sentence = |(reason, labels): (String, Vec<String>)| match labels.len() {
        1 | 2 => format!("{}: {reason}", labels.join("; ")),
        count => format!("{}: {reason}", counted(count, "trial")),
    };
    reasons.into_iter().take(MAX_REASONS).map(sentence).collect()
}
