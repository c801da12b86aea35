//! A document on one screen of 80 columns: a compact table for each experiment, then the headline figures and findings.

use std::collections::BTreeMap;

use super::document::warnings;
use super::experiment::{Experiment, interval, published_real, times};
use super::marks::{doubts, legend_in_brief, of_bytes};
use super::words::{is_plain, missing, ranked};
use super::{Block, Cell, Column, Fit, Grid, Note, Sheet, Style, counted, gains, grouped, matrix, why, words};
use crate::model::{
    Capacity, Document, Ends, Figure, Finding, Job, Key, LinkKind, Mode, Nanos, Record, RecvMethod, SendMethod,
    Throughput, Unit, Verify, WaitPolicy, differing, name, names, shared,
};
use crate::order::{self, Order};
use crate::stats::records::ratio_of;

/// Lines of the whole, on a terminal of 80 columns.
const LINES: usize = 45;
/// Characters of a line of text.
const LINE: usize = 76;
/// Lines of findings, and the most findings.
const LINES_OF_FINDINGS: usize = 8;
const MOST_FINDINGS: usize = 5;
/// Each experiment shows at least as many rows, if it has them.
const FEWEST_ROWS: usize = 2;
/// Fewer values of a parameter are rows rather than columns.
const FEWEST_COLUMNS: usize = 5;
/// More values don't fit beside each other.
const MOST_COLUMNS: usize = 12;
/// Different reasons why trials have no figures.
const MOST_REASONS: usize = 2;

/// The document in brief; `pointers` say where the rest of it is.
pub fn brief(document: &Document, pointers: &[String]) -> Sheet {
    if let Some(watched) = &document.watched {
        let mut sheet = why(watched);
        sheet.text(Style::Aside, pointers);
        return sheet;
    }
    let mut sheet = Sheet::default();
    let experiments: Vec<Experiment> =
        document.experiments.iter().filter_map(|about| Experiment::of(document, about)).collect();
    // What bounds the others stands in the summary.
    let bounds =
        |own: &&Experiment| own.records.iter().all(|record| record.job.is_memory_copy() || record.job.is_two_copies());
    let (bounds, shown): (Vec<&Experiment>, Vec<&Experiment>) = experiments.iter().partition(bounds);
    let experiments = if shown.is_empty() { bounds } else { shown };
    let machine = [vec![format!("pipemark {}", document.suite)], words::machine(document)].concat();
    sheet.text(Style::Heading, machine);
    sheet.text(Style::Caution, words::partial(document));
    sheet.notes(warnings(document));
    if let [experiment] = experiments[..]
        && let [record] = experiment.records[..]
    {
        single(&mut sheet, document, record);
        sheet.text(Style::Aside, pointers);
        return sheet;
    }
    let (summary, findings) = (summary(document), findings(document));
    let claims = super::claims::brief(document);
    let rows = rows_of(&experiments, &sheet, summary_lines(&summary) + findings.len() + 3 * claims.len(), &findings);
    let mut signs = String::new();
    for (experiment, rows) in experiments.iter().zip(rows) {
        sheet.heading(2, &heading(experiment, rows));
        table(&mut sheet, document, experiment, rows, &mut signs);
    }
    if !claims.is_empty() {
        sheet.heading(2, "Claims");
        sheet.notes(claims);
    }
    let legend = legend_in_brief(&signs);
    if !legend.is_empty() {
        sheet.blocks.push(Block::Gap);
        sheet.text(Style::Aside, legend);
    }
    let measured = document.trials.iter().filter(|record| record.estimate.is_some()).count();
    if !summary.is_empty() || !findings.is_empty() {
        sheet.heading(2, &format!("Summary ({}, {})", Nanos(document.elapsed_ns), counted(measured, "trial")));
    }
    sheet.grid(Grid::new(
        vec![Column::words("", ""), Column::figures("", ""), Column::words("", "").fit(Fit::Wrapped)],
        summary,
    ));
    if !findings.is_empty() {
        sheet.blocks.push(Block::Gap);
    }
    let several = findings.len() > 1;
    let mark = |index: usize| if several { format!("{}", index + 1) } else { "•".to_owned() };
    let numbered = findings.iter().enumerate();
    sheet.notes(numbered.map(|(index, own)| Note::new(&mark(index), Style::Heading, &own.text)));
    let topics = order::set(findings.iter().map(|own| own.topic.as_str()).filter(|own| !own.is_empty()));
    let explained = topics.iter().map(|topic| format!("pipemark help {topic}")).collect::<Vec<_>>().join(", ");
    let explained = (!topics.is_empty()).then(|| format!("explained: {explained}"));
    if !pointers.is_empty() {
        sheet.blocks.push(Block::Gap);
        sheet.text(Style::Aside, explained.iter().chain(pointers));
    }
    sheet
}

/// One trial.
fn single(sheet: &mut Sheet, document: &Document, record: &Record) {
    sheet.text(Style::Aside, shared(&[&record.job]).into_iter().filter(|word| !word.ends_with(" per run")));
    if let Some(reason) = missing(record) {
        sheet.text(Style::Failure, [reason]);
        return;
    }
    let Some(estimates) = &record.estimate else { return };
    let (unit, headline) = (estimates.headline_figure().unit(), estimates.headline());
    let doubts = doubts(record);
    let ends = match headline.low {
        Some(_) => format!("{}, {}", interval(headline, |end| unit.show(end)), counted(headline.runs as usize, "run")),
        None => format!("{}, too few for an interval", counted(headline.runs as usize, "run")),
    };
    let figure = Cell::shown(unit.show(headline.median)).style(Style::Heading).mark(doubts.clone());
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
    sheet.text(Style::Aside, legend_in_brief(&doubts.replace('?', "")));
    let warnings = super::marks::warnings_by_trial(&[record], "row", |_| String::new());
    sheet
        .notes(warnings.iter().take(1).map(|text| Note::new("!", Style::Caution, text.trim_start_matches([':', ' ']))));
}

/// Its title; in brackets as much of what its trials share as the line holds; how many of its trials are shown.
fn heading(experiment: &Experiment, rows: usize) -> String {
    let mut heading = experiment.title().to_owned();
    let all = experiment.records.iter().filter(|record| missing(record).is_none()).count();
    let listed = experiment.about.across.is_none() && experiment.about.gains.is_none() && sweep(experiment).is_none();
    let some = if listed && rows < all { format!(": {rows} of {all} trials") } else { String::new() };
    let mut shared = String::new();
    for word in experiment.shared().iter().filter(|word| !word.ends_with(" per run")) {
        let longer = if shared.is_empty() { word.clone() } else { format!("{shared}, {word}") };
        if heading.chars().count() + longer.chars().count() + some.chars().count() + 3 <= LINE {
            shared = longer;
        }
    }
    if !shared.is_empty() {
        heading.push_str(&format!(" ({shared})"));
    }
    heading + &some
}

/// The findings that fit: the first are the most useful.
fn findings(document: &Document) -> Vec<&Finding> {
    let mut lines = 0;
    let fits = |finding: &&Finding| {
        lines += finding.text.chars().count().div_ceil(LINE);
        lines <= LINES_OF_FINDINGS
    };
    document.findings.iter().take_while(fits).take(MOST_FINDINGS).collect()
}

/// How many rows each experiment shows, so that all fits one screen.
fn rows_of(experiments: &[&Experiment], above: &Sheet, summary: usize, findings: &[&Finding]) -> Vec<usize> {
    let lines = |text: &str| text.chars().count().div_ceil(LINE);
    let notes = |block: &Block| match block {
        Block::Notes(notes) => notes.iter().map(|note| lines(&note.text)).sum(),
        _ => 1,
    };
    let above: usize = above.blocks.iter().map(notes).sum();
    let below: usize = summary + findings.iter().map(|own| lines(&own.text) - 1).sum::<usize>();
    // The legend in two lines, the pointers and what sets them apart; a heading, a blank line for each experiment.
    let reasons: usize = experiments.iter().flat_map(|own| reasons(own)).map(|text| lines(&text)).sum();
    let whole: usize = experiments.iter().filter_map(|own| sweep(own)).map(|own| 1 + own.1.len()).sum();
    let room = LINES.saturating_sub(above + below + reasons + whole + 9 + 2 * experiments.len());
    let rows = |own: &&Experiment| if sweep(own).is_some() { 0 } else { own.records.len() };
    let wanted: Vec<usize> = experiments.iter().map(rows).collect();
    let shown = |most: usize| wanted.iter().map(|rows| *rows.min(&most)).collect::<Vec<usize>>();
    let fits = |most: &usize| shown(*most).iter().sum::<usize>() <= room;
    let most = (FEWEST_ROWS..=wanted.iter().copied().max().unwrap_or(0)).rev().find(fits);
    shown(most.unwrap_or(FEWEST_ROWS))
}

/// The lines of the summary: its last column is wrapped.
fn summary_lines(summary: &[Vec<Cell>]) -> usize {
    let chars = |cell: &Cell| cell.text.chars().count();
    let widest = |column: usize| summary.iter().map(|row| chars(&row[column])).max().unwrap_or(0);
    let room = LINE.saturating_sub(widest(0) + widest(1) + 4).max(1);
    summary.iter().map(|row| chars(&row[2]).div_ceil(room).max(1)).sum()
}

/// The table of an experiment, and why some of its trials are not in it.
fn table(sheet: &mut Sheet, document: &Document, experiment: &Experiment, rows: usize, signs: &mut String) {
    if let Some((grids, notes)) = gains::grids(document, experiment) {
        grids.into_iter().for_each(|grid| sheet.grid(grid));
        sheet.notes(notes.into_iter().take(1));
        return;
    }
    if let Some((grid, notes)) = matrix::grid(experiment) {
        sheet.grid(grid);
        sheet.notes(notes.into_iter().take(1));
    } else if let Some((columns, own)) = sweep(experiment) {
        sheet.grid(as_columns(&columns, &own, signs));
    } else {
        sheet.grid(as_bars(experiment, rows, signs));
    }
    let reasons = reasons(experiment).into_iter().map(|text| Note::new(matrix::NONE, Style::Aside, &text));
    sheet.notes(reasons);
}

/// Why some of its trials have no figures, each reason once.
fn reasons(experiment: &Experiment) -> Vec<String> {
    let mut reasons: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for record in &experiment.records {
        if let Some(reason) = missing(record) {
            reasons.entry(reason).or_default().push(label(experiment, record));
        }
    }
    let sentence = |(reason, own): (String, Vec<String>)| match own.len() {
        1 | 2 => format!("{}: {reason}", own.join("; ")),
        several => format!("{}: {reason}", counted(several, "trial")),
    };
    reasons.into_iter().take(MOST_REASONS).map(sentence).collect()
}

/// What tells a trial from the others of its experiment.
fn label(experiment: &Experiment, record: &Record) -> String {
    let keys = experiment.varying();
    let granted = record.samples.first().and_then(|sample| sample.capacity_granted);
    match (&keys[..], record.job.ends().map(|ends| ends.capacity), granted) {
        ([], ..) => record.name.clone(),
        ([Key::Capacity], Some(Capacity::Named(named)), Some(granted)) => {
            format!("{} ({named})", Unit::Bytes.show(granted as f64))
        }
        ([Key::Capacity], ..) => record.shown(Key::Capacity),
        _ => name(&record.job, &keys),
    }
}

/// The values of a parameter that becomes columns, and for each combination of the others a trial for each of them.
type Sweep<'a> = (Vec<String>, Vec<(String, Vec<&'a Record>)>);

/// Throughput or round trips by a number, where every combination of the others was measured with each.
fn sweep<'a>(experiment: &Experiment<'a>) -> Option<Sweep<'a>> {
    let cut = |record: &Record| record.estimate.as_ref().is_some_and(|own| own.get(Figure::Interleaved).is_some());
    if experiment.records.iter().any(|record| record.published.is_some() || cut(record)) {
        return None;
    }
    let keys = experiment.varying();
    let across = keys.iter().copied().filter(|key| key.unit() != Unit::Word).find_map(|key| {
        let values = order::set(experiment.records.iter().map(|record| record.job.value(key)));
        let values: Vec<_> = values.into_iter().collect();
        let numbers: Option<Vec<u64>> = values.iter().map(|value| value.as_ref()?.number()).collect();
        let fits = (FEWEST_COLUMNS..=MOST_COLUMNS).contains(&values.len()) && numbers.is_some();
        fits.then_some((key, values))
    });
    let (across, values) = across?;
    let others: Vec<Key> = keys.into_iter().filter(|key| *key != across).collect();
    let label = |record: &Record| if others.is_empty() { String::new() } else { name(&record.job, &others) };
    let mut ascending = experiment.records.clone();
    ascending.order_by_key(|record| record.job.value(across));
    let rows = grouped(ascending.into_iter().map(|record| (label(record), record)));
    let whole = rows.iter().all(|(_, row)| row.len() == values.len() && row.iter().all(|own| own.estimate.is_some()));
    let headings = values.iter().flatten().map(|value| matrix::short(&value.to_string())).collect();
    whole.then_some((headings, rows))
}

/// A row for each combination, and a line of blocks that shows its shape.
fn as_columns(headings: &[String], rows: &[(String, Vec<&Record>)], signs: &mut String) -> Grid {
    let mut columns = vec![Column::words("", "").fit(Fit::Elastic)];
    columns.extend(headings.iter().map(|heading| Column::figures("", heading)));
    columns.push(Column::words("", ""));
    let row = |(label, records): &(String, Vec<&Record>)| {
        let mut cells = vec![Cell::shown(label)];
        let figure = |record: &&Record| {
            let (unit, figure) = headline(record);
            signs.push_str(&doubts(record));
            Cell::shown(unit.brief(figure)).mark(doubts(record))
        };
        cells.extend(records.iter().map(figure));
        cells.push(Cell::shown(sparkline(records)).style(Style::Bar));
        cells
    };
    let mut rows: Vec<Vec<Cell>> = rows.iter().map(row).collect();
    // Curves that have no room beside the figures are left out: a screen has none below them.
    let marks = rows.iter().flatten().map(|cell| cell.mark.chars().count()).max().unwrap_or(0);
    let chars = |cell: &Cell| 2 + cell.text.chars().count() + marks;
    let widths = (0..columns.len()).map(|at| rows.iter().map(|row| chars(&row[at])).max().unwrap_or(0));
    if widths.sum::<usize>() > LINE + 2 {
        columns.pop();
        rows.iter_mut().for_each(|row| row.truncate(columns.len()));
    }
    Grid::new(columns, rows)
}

/// The figure that it is told by.
fn headline(record: &Record) -> (Unit, f64) {
    matrix::headline(record).map_or((Unit::Count, 0.0), |(unit, estimate)| (unit, estimate.median))
}

/// `▁▃█▅`: each figure beside the highest.
fn sparkline(records: &[&Record]) -> String {
    let figures: Vec<f64> = records.iter().map(|record| headline(record).1).collect();
    let most = figures.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    super::sparkline(&figures.iter().map(|figure| figure / most).collect::<Vec<_>>())
}

/// The rows that are shown: what ratios are taken to, and the best.
fn rows_shown<'a>(experiment: &Experiment<'a>, most: usize) -> Vec<&'a Record> {
    let measured = || experiment.records.iter().copied().filter(|record| missing(record).is_none());
    let speed = |record: &&Record| {
        let (unit, figure) = headline(record);
        if unit == Unit::Nanoseconds { -figure } else { figure }
    };
    let mut best: Vec<&Record> = measured().collect();
    best.order_by(|one, other| {
        let first = |record: &&Record| (!experiment.is_baseline(record), !ranked(record));
        first(one).cmp(&first(other)).then(speed(other).total_cmp(&speed(one)))
    });
    best.truncate(most);
    measured().filter(|record| best.iter().any(|own| std::ptr::eq(*own, *record))).collect()
}

/// A row for each trial with its figure, how many times as fast it is as the baseline, and a bar.
fn as_bars(experiment: &Experiment, most: usize, signs: &mut String) -> Grid {
    let latency = experiment.is_latency();
    let shown = rows_shown(experiment, most);
    let differs = shown.iter().any(|record| of_bytes(record) != of_bytes(shown[0]));
    let longest = shown.iter().filter(|record| ranked(record)).map(|record| headline(record).1);
    let longest = longest.fold(f64::MIN_POSITIVE, f64::max);
    let row = |record: &&Record| {
        let estimates = record.estimate.as_ref();
        let (unit, figure) = headline(record);
        let ratio = match estimates.and_then(|own| own.ratio()) {
            _ if experiment.is_baseline(record) => "base".to_owned(),
            ratio => ratio.map_or_else(String::new, times),
        };
        let bytes = if differs { of_bytes(record) } else { "" };
        signs.push_str(bytes);
        signs.push_str(&doubts(record));
        let of = |figure: Figure| estimates.and_then(|own| own.get(figure)).map(|own| figure.unit().show(own.median));
        let more = match (latency, record.job.chain().is_some()) {
            (true, _) => of(Figure::P99).map(|p99| format!("99 % within {p99}")),
            (_, true) => of(Figure::Real).map(|real| format!("{real} in all")),
            _ if of(Figure::Interleaved).is_some() => {
                of(Figure::Interleaved).map(|cut| format!("{cut} of records cut"))
            }
            _ => of(Figure::StartUp).map(|start| format!("{start} to start and end")),
        };
        let published = match (published_real(record).filter(|_| record.job.chain().is_some()), &record.published) {
            (Some(ns), _) => Some(format!("published {}", Unit::Nanoseconds.show(ns))),
            (None, Some(own)) if !own.relative => Some(format!("published {}", Throughput(own.throughput))),
            _ => None,
        };
        vec![
            Cell::shown(bytes),
            Cell::shown(label(experiment, record)),
            Cell::shown(unit.show(figure)).mark(doubts(record)),
            Cell::shown(ratio),
            Cell::shown([more, published].into_iter().flatten().collect::<Vec<_>>().join(", ")),
            if latency || !ranked(record) { Cell::default() } else { Cell::bar(figure / longest, figure / longest) },
        ]
    };
    let columns = vec![
        Column::words("", ""),
        Column::words("", "").fit(Fit::Elastic),
        Column::figures("", ""),
        Column::figures("", ""),
        Column::words("", ""),
        Column::bars(""),
    ];
    Grid { labels: 2, ..Grid::new(columns, shown.iter().map(row).collect()) }
}

/// A job by what is not as in `plain`; without one, by what matters most.
fn told_from(job: &Job, plain: Option<&Job>) -> String {
    let Some(plain) = plain else { return names(&[job], &[Key::Link]).concat() };
    let keys = differing(&[plain, job], &[]);
    let keys: Vec<Key> = keys.into_iter().filter(|key| !key.is_volume() && *key != Key::Verify).collect();
    name(job, &keys)
}

/// The headline figures: what programs get today, the best by the same calls, the best that is proven, and what a copy
/// within one process reaches.
pub(super) fn summary(document: &Document) -> Vec<Vec<Cell>> {
    let is_stream = |record: &&Record| ranked(record) && record.job.mode() == Mode::Throughput;
    let streams: Vec<&Record> = document.trials.iter().filter(is_stream).collect();
    let plain = streams.iter().copied().find(|record| is_plain(&record.job));
    let speed = |record: &Record| record.estimate.as_ref().map_or(0.0, |own| own.throughput().median);
    let best = |of: &dyn Fn(&Record) -> bool| {
        let own = streams.iter().copied().filter(|record| record.job.wait() == WaitPolicy::Block && of(record));
        own.max_by(|one, other| speed(one).total_cmp(&speed(other)))
    };
    let ends = |record: &Record, send: SendMethod| {
        record
            .job
            .ends()
            .is_some_and(|own| own.link == LinkKind::Pipe && own.send == send && own.recv == RecvMethod::Read)
    };
    let copied = best(&|record| ends(record, SendMethod::Write) && record.job.chain().is_none());
    let new = |record: &Record| record.job.ends().is_some_and(|ends| ends.work().written);
    let checked = best(&|record| record.verify == Verify::Full && record.touched && new(record));
    let mut rows = Vec::new();
    let mut told: Vec<&str> = Vec::new();
    let mut row = |what: &str, figure: String, details: String| {
        rows.push(vec![Cell::shown(what), Cell::shown(figure).style(Style::Heading), Cell::shown(details)]);
    };
    for (what, record) in [
        ("plain pipe, as programs use it", plain),
        ("best pipe, write and read", copied),
        ("best, each byte new and checked", checked),
    ] {
        let Some(record) = record.filter(|record| !told.contains(&record.id.as_str())) else { continue };
        told.push(&record.id);
        let own = record.estimate.as_ref().expect("ranked, so it is measured").throughput();
        let settings = told_from(&record.job, plain.map(|plain| &plain.job));
        let details = match plain {
            Some(plain) if plain.id != record.id => {
                let ratio = ratio_of(&record.samples, &plain.samples).map(|ratio| match times(&ratio).as_str() {
                    "tied" => "tied with plain: ".to_owned(),
                    times => format!("{times} plain: "),
                });
                format!("{}{settings}", ratio.unwrap_or_default())
            }
            Some(_) => format!("({})", interval(own, |end| Unit::BytesPerSecond.show(end))),
            None => settings,
        };
        row(what, Unit::BytesPerSecond.show(own.median), details);
    }
    let trips = document.trials.iter().filter(|record| ranked(record) && record.job.is_round_trip());
    let trip = |record: &&Record| record.estimate.as_ref().and_then(|own| own.round_trip()).copied();
    let trips = trips
        .filter(|record| record.job.wait() == WaitPolicy::Block)
        .filter_map(|record| Some((record, trip(&record)?)));
    if let Some((record, own)) = trips.min_by(|one, other| one.1.median.total_cmp(&other.1.median)) {
        row("shortest round trip", Unit::Nanoseconds.show(own.median), names(&[&record.job], &[Key::Mode]).concat());
    }
    let figure = |speed: f64| Cell::shown(Unit::BytesPerSecond.show(speed)).style(Style::Heading);
    // On a busy machine ends that spin are slower than ends that sleep: then it bounds nothing.
    let bounds = |bound: &&&Record| {
        let mut beside = streams.iter().filter(|own| {
            own.job.place() == bound.job.place() && own.job.ends().map(Ends::work) == bound.job.ends().map(Ends::work)
        });
        bound.job.is_two_copies() && beside.all(|own| speed(own) <= speed(bound))
    };
    if let (Some(record), false) = (streams.iter().find(bounds), rows.is_empty()) {
        let what = format!("two copies, {}", name(&record.job, &[Key::Block, Key::Place]).replace(" · ", ", "));
        let details = "bound: both ends spin";
        rows.push(vec![Cell::shown(what), figure(speed(record)), Cell::shown(details)]);
    }
    if let (Some(copy), false) = (&document.memory_copy, rows.is_empty()) {
        rows.push(vec![Cell::shown("memory copy, 64 KiB, one core"), figure(copy.median), Cell::default()]);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;
    use crate::model::Warning;
    use crate::stats::fixture::{STEADY, record};

    #[test]
    fn what_repeats_prepared_bytes_is_not_new() {
        let of = |send, speed| record("e", &[("send", send), ("verify", "full")], speed, &STEADY);
        let mut document = Document { trials: vec![of("write", 1.5), of("sendfile", 3.0)], ..Document::default() };
        let checked = |document: &Document| summary(document).iter().map(|row| row[1].text.clone()).collect::<Vec<_>>();
        assert_eq!(checked(&document), ["1.50 GiB/s"]);
        // Nor is what is faster than its own end can be.
        let above = Warning::AboveCeiling { end: "sink".to_owned(), ceiling: 1e6, above: 7, runs: 7 };
        document.trials[0].warnings.push(above);
        assert_eq!(checked(&document), [""; 0]);
    }

    #[test]
    fn two_copies_that_are_slower_than_a_pipe_bound_nothing() {
        let mut document = fixture::quick();
        let said = |document: &Document| summary(document).iter().any(|row| row[0].text.starts_with("two copies"));
        assert!(said(&document));
        let pipe = document.trials.iter().position(|own| own.job.place().to_string() == "cross").unwrap();
        document.trials[pipe].estimate = document.trials.last().unwrap().estimate.clone();
        let bound = document.trials.len() - 1;
        document.trials[bound].estimate = document.trials[1].estimate.clone();
        assert!(!said(&document));
    }
}
