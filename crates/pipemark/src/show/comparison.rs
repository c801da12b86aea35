//! A comparison of two measurements as a table, as Markdown and as JSON.

use std::io;

use serde::Serialize;

use crate::compare::{Change, Group, Missing, Origin, Report};
use crate::model::{Mode, Nanos, Throughput};
use crate::stats::compare::{Comparison, Pairing};
use crate::stats::verdict::Verdict;

use super::json;
use super::markdown::escaped;
use super::text::{Colour, Side, Style, counted, neutral, pad, width as columns_of, wrap};

pub use super::comparison_csv::csv;

/// Below this the figures have no room.
const NARROWEST: usize = 72;
/// Names of trials keep to this, however wide the terminal is.
const WIDEST_NAME: usize = 44;
const INDENT: usize = 2;
/// Trials that were not compared and are named; JSON names all.
const MOST_NAMED: usize = 20;
/// What the columns behind the name show.
const HEADINGS: [&str; 5] = ["BASE", "NEW", "change", "95 % interval", "verdict"];
const GAP: usize = 2;

/// The whole report as one line of JSON.
///
/// # Errors
/// When `out` refuses the bytes.
pub fn json<T: Serialize>(report: &T, out: &mut dyn io::Write) -> io::Result<()> {
    json::line(&serde_json::to_string(report)?, out)
}

/// The report for a terminal of `width` columns.
///
/// # Errors
/// When `out` refuses the bytes.
pub fn table(report: &Report, width: usize, colour: Colour, out: &mut dyn io::Write) -> io::Result<()> {
    let page = Page { width: width.max(NARROWEST), colour, figures: figures(report) };
    for (side, origin) in [("BASE", &report.base), ("NEW", &report.new)] {
        let label = colour.paint(Style::Heading, &pad(side, 4, Side::Left));
        for (index, line) in wrap(&origin_in_words(origin), page.width - 6).iter().enumerate() {
            writeln!(out, "{}  {line}", if index == 0 { label.as_str() } else { "    " })?;
        }
    }
    for warning in &report.warnings {
        page.item("!", Style::Caution, &neutral(warning), out)?;
    }
    for group in &report.groups {
        page.group(group, out)?;
    }
    if !report.missing.is_empty() {
        writeln!(out, "\n{}", colour.paint(Style::Heading, "Not compared"))?;
        for line in missing_in_words(&report.missing) {
            page.item("-", Style::Plain, &line, out)?;
        }
    }
    writeln!(out)?;
    for line in wrap(&summary(report), page.width) {
        writeln!(out, "{}", colour.paint(Style::Heading, &line))?;
    }
    for line in wrap(&legend(report), page.width) {
        writeln!(out, "{}", colour.paint(Style::Aside, &line))?;
    }
    Ok(())
}

/// The report as GitHub's Markdown.
///
/// # Errors
/// When `out` refuses the bytes.
pub fn markdown(report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
    writeln!(out, "**{}**\n", escaped(&summary(report)))?;
    writeln!(out, "- BASE: {}", escaped(&origin_in_words(&report.base)))?;
    writeln!(out, "- NEW: {}", escaped(&origin_in_words(&report.new)))?;
    for warning in &report.warnings {
        writeln!(out, "- **Note:** {}", escaped(&neutral(warning)))?;
    }
    for group in &report.groups {
        writeln!(out, "\n### {}\n", escaped(&heading(group)))?;
        writeln!(out, "| trial | BASE | NEW | change | 95 % interval | verdict |")?;
        writeln!(out, "| --- | ---: | ---: | ---: | ---: | --- |")?;
        for change in &group.changes {
            let [base, new, by, interval, verdict] = cells(group.mode, change);
            let name = escaped(&neutral(&change.name));
            let verdict = if change.comparison.verdict == Verdict::Worse { format!("**{verdict}**") } else { verdict };
            writeln!(out, "| {name} | {base} | {new} | {by} | {interval} | {verdict} |")?;
        }
        if let Some(mean) = &group.mean {
            let [by, interval, verdict] = outcome(mean);
            writeln!(out, "| {} | | | {by} | {interval} | {verdict} |", mean_name(group))?;
        }
    }
    if !report.missing.is_empty() {
        writeln!(out, "\n### Not compared\n")?;
        for line in missing_in_words(&report.missing) {
            writeln!(out, "- {}", escaped(&line))?;
        }
    }
    writeln!(out, "\n{}", escaped(&legend(report)))
}

/// Columns that the figures of a report take.
fn figures(report: &Report) -> [usize; 5] {
    let mut widths = HEADINGS.map(columns_of);
    let mut fit = |cells: &[String]| {
        // Aligned with the last: a mean has no figures of its own.
        for (width, cell) in widths.iter_mut().rev().zip(cells.iter().rev()) {
            *width = columns_of(cell).max(*width);
        }
    };
    for group in &report.groups {
        group.changes.iter().for_each(|change| fit(&cells(group.mode, change)));
        group.mean.iter().for_each(|mean| fit(&outcome(mean)));
    }
    widths
}

struct Page {
    width: usize,
    colour: Colour,
    figures: [usize; 5],
}

impl Page {
    fn item(&self, mark: &str, style: Style, text: &str, out: &mut dyn io::Write) -> io::Result<()> {
        for (index, line) in wrap(text, self.width - INDENT - 2).iter().enumerate() {
            let mark = if index == 0 { self.colour.paint(style, mark) } else { " ".to_owned() };
            writeln!(out, "{}{mark} {line}", " ".repeat(INDENT))?;
        }
        Ok(())
    }

    fn group(&self, group: &Group, out: &mut dyn io::Write) -> io::Result<()> {
        writeln!(out)?;
        for line in wrap(&heading(group), self.width) {
            writeln!(out, "{}", self.colour.paint(Style::Heading, &line))?;
        }
        let named: Vec<String> = group.changes.iter().map(|change| neutral(&change.name)).collect();
        let mean = group.mean.as_ref().map(|comparison| (mean_name(group), comparison));
        let longest = named.iter().chain(mean.iter().map(|(name, _)| name)).map(|name| columns_of(name)).max();
        let figures: usize = self.figures.iter().map(|columns| columns + GAP).sum();
        let room = (self.width - INDENT - figures).min(WIDEST_NAME);
        let name_width = longest.unwrap_or(0).clamp(5, room);
        let headings = HEADINGS.map(str::to_owned);
        let line = self.line("trial", name_width, &headings, Style::Aside).remove(0);
        writeln!(out, "{}", self.colour.paint(Style::Aside, &line))?;
        for (change, name) in group.changes.iter().zip(&named) {
            let style = style(change.comparison.verdict);
            for line in self.line(name, name_width, &cells(group.mode, change), style) {
                writeln!(out, "{line}")?;
            }
        }
        if let Some((name, comparison)) = mean {
            let [by, interval, verdict] = outcome(comparison);
            let cells = [String::new(), String::new(), by, interval, verdict];
            for line in self.line(&name, name_width, &cells, style(comparison.verdict)) {
                writeln!(out, "{line}")?;
            }
        }
        Ok(())
    }

    /// A row; a name that is too long goes on below.
    fn line(&self, name: &str, name_width: usize, cells: &[String; 5], verdict: Style) -> Vec<String> {
        let mut lines = wrap(name, name_width);
        for line in &mut lines {
            *line = format!("{}{}", " ".repeat(INDENT), pad(line, name_width, Side::Left));
        }
        let first = &mut lines[0];
        for (cell, columns) in cells.iter().zip(self.figures).take(4) {
            first.push_str(&" ".repeat(GAP));
            first.push_str(&pad(cell, columns, Side::Right));
        }
        first.push_str(&" ".repeat(GAP));
        first.push_str(&if verdict == Style::Aside { cells[4].clone() } else { self.colour.paint(verdict, &cells[4]) });
        lines.into_iter().map(|line| line.trim_end().to_owned()).collect()
    }
}

fn style(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Better => Style::Bar,
        Verdict::Worse => Style::Failure,
        Verdict::Same => Style::Plain,
        Verdict::CantTell => Style::Caution,
    }
}

fn heading(group: &Group) -> String {
    let what = match group.mode {
        Mode::Throughput => "throughput, higher is better",
        Mode::Latency => "median round trip, lower is better",
    };
    format!("{}: {what}", neutral(&group.title))
}

fn mean_name(group: &Group) -> String {
    format!("geometric mean of {}", group.changes.iter().filter(|change| !change.reference).count())
}

fn origin_in_words(origin: &Origin) -> String {
    let mut words = neutral(&origin.file);
    if !origin.chosen.is_empty() {
        words.push_str(&format!(" with {}", neutral(&origin.chosen.join(", "))));
    }
    let kernel = neutral(origin.kernel.split(" #").next().unwrap_or_default());
    format!("{words} · {} of {} · {kernel}", neutral(&origin.suite), neutral(&origin.started))
}

fn cells(mode: Mode, change: &Change) -> [String; 5] {
    let figure = |value: f64| match mode {
        Mode::Throughput => Throughput(value).to_string(),
        Mode::Latency => Nanos(value.round() as u64).to_string(),
    };
    let [by, interval, verdict] = outcome(&change.comparison);
    let verdict = if change.reference { format!("({verdict})") } else { verdict };
    [figure(change.base), figure(change.new), by, interval, verdict]
}

fn outcome(comparison: &Comparison) -> [String; 3] {
    let interval = match (comparison.low, comparison.high) {
        (Some(low), Some(high)) => format!("{} … {} %", signed(low), signed(high)),
        _ => format!("n={}/{}", comparison.base_runs, comparison.new_runs),
    };
    [format!("{} %", signed(comparison.change)), interval, verdict_in_words(comparison.verdict).to_owned()]
}

/// A verdict as it is read.
pub fn verdict_in_words(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::Same => "same",
        Verdict::CantTell => "can't tell",
    }
}

/// A fraction as per cent with its sign, in six columns at most.
pub fn signed(change: f64) -> String {
    let percent = change * 100.0;
    match percent.abs() {
        p if p < 0.05 => "0.0".to_owned(),
        p if p < 99.95 => format!("{percent:+.1}"),
        p if p < 99_999.5 => format!("{percent:+.0}"),
        _ => format!("{percent:+.0e}"),
    }
}

fn missing_in_words(missing: &[Missing]) -> Vec<String> {
    let mut lines: Vec<String> = missing
        .iter()
        .take(MOST_NAMED)
        .map(|missing| {
            format!(
                "not in {}: {} ({}): {}",
                missing.side,
                neutral(&missing.id),
                neutral(&missing.experiment),
                neutral(&missing.reason)
            )
        })
        .collect();
    if missing.len() > MOST_NAMED {
        lines.push(format!("and {} more, which --json names", missing.len() - MOST_NAMED));
    }
    lines
}

fn summary(report: &Report) -> String {
    let parts: Vec<String> = [Verdict::Worse, Verdict::Better, Verdict::Same, Verdict::CantTell]
        .into_iter()
        .map(|verdict| (report.count(verdict), verdict_in_words(verdict)))
        .filter(|(count, _)| *count > 0)
        .map(|(count, verdict)| format!("{count} {verdict}"))
        .collect();
    let compared = report.verdicts().count();
    match (compared, report.missing.len()) {
        (0, 0) => "Nothing was compared".to_owned(),
        (0, missing) => format!("Nothing was compared, {missing} not compared"),
        (_, 0) => format!("{}: {}", counted(compared, "trial"), parts.join(", ")),
        (_, missing) => format!("{}: {}; {missing} not compared", counted(compared, "trial"), parts.join(", ")),
    }
}

fn legend(report: &Report) -> String {
    let percent = |fraction: f64| format!("{} %", (fraction * 10_000.0).round() / 100.0);
    let comparisons = || report.groups.iter().flat_map(|group| &group.changes).map(|change| &change.comparison);
    let paired = comparisons().any(|comparison| comparison.pairing == Pairing::Rounds);
    let mut text = format!(
        "worse, better: the whole interval is past {}; same: it is within ±{}; can't tell: neither, measure with more --runs",
        percent(report.threshold),
        percent(report.same_within)
    );
    text.push_str(match paired {
        true => "; compared round by round",
        false => "; runs compared as two groups",
    });
    if report.groups.iter().flat_map(|group| &group.changes).any(|change| change.reference) {
        text.push_str("; (in brackets): the machine itself, which is no verdict");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;
    use crate::compare::Party;
    use crate::model::Document;
    use crate::stats::verdict::Criterion;

    fn compared(base: &Document, new: &Document) -> Report {
        let party = |name, document| Party { name, document, settings: &[] };
        Report::of(party("before.json", base), party("after \x1b[2J.json", new), &Criterion::new).unwrap()
    }

    /// Every trial by another change, from much worse to much better; the last is gone.
    fn changed() -> Report {
        let base = fixture::quick();
        let mut new = fixture::quick();
        new.trials.pop();
        new.host.kernel = "6.99.0 #1".to_owned();
        for (record, by) in new.trials.iter_mut().zip([90, 100, 108, 300, 101, 97, 45].into_iter().cycle()) {
            for sample in &mut record.samples {
                sample.bytes = sample.bytes * (by * 10 + u64::from(sample.round)) / 1000;
            }
        }
        compared(&base, &new)
    }

    fn hostile() -> Report {
        let base = fixture::hostile();
        let mut new = fixture::hostile();
        new.host.name = "\x1b]0;owned\x07<b>".to_owned();
        compared(&base, &new)
    }

    fn shown(report: &Report, width: usize, colour: Colour) -> String {
        let mut out = Vec::new();
        table(report, width, colour, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn paged(report: &Report) -> String {
        let mut out = Vec::new();
        markdown(report, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn comparisons_are_as_kept() {
        for (name, report) in [("comparison", changed()), ("comparison-hostile", hostile())] {
            fixture::assert_file(&format!("src/show/snapshots/{name}.80.txt"), &shown(&report, 80, Colour::Never));
            fixture::assert_file(&format!("src/show/snapshots/{name}.md"), &paged(&report));
            let mut rows = Vec::new();
            csv(&report, &mut rows).unwrap();
            fixture::assert_file(&format!("src/show/snapshots/{name}.csv"), &String::from_utf8(rows).unwrap());
        }
    }

    #[test]
    fn no_line_is_too_wide_and_colours_change_no_text() {
        for report in [changed(), hostile()] {
            for width in [72, 80, 132] {
                let plain = shown(&report, width, Colour::Never);
                for line in plain.lines() {
                    assert!(columns_of(line) <= width, "{} columns in {line:?}", columns_of(line));
                }
                let mut coloured = shown(&report, width, Colour::Always);
                for code in ["0", "1", "2", "31", "33", "36"] {
                    coloured = coloured.replace(&format!("\x1b[{code}m"), "");
                }
                assert_eq!(coloured, plain);
            }
        }
    }

    #[test]
    fn hostile_text_stays_text() {
        let mut text = Vec::new();
        json(&hostile(), &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let acts = |text: &str| text.contains(|c: char| c.is_control() && c != '\n');
        assert!(!acts(&shown(&hostile(), 80, Colour::Never)) && !acts(&paged(&hostile())) && !acts(&text));
        assert!(!paged(&hostile()).contains("<script") && !paged(&hostile()).contains("<b>"));
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), hostile());
    }

    #[test]
    fn changes_keep_to_their_columns() {
        for (change, shown) in [
            (0.0, "0.0"),
            (0.0004, "0.0"),
            (0.0512, "+5.1"),
            (-0.5, "-50.0"),
            (12.345, "+1234"),
            (-0.99999, "-100"),
            (1e15, "+1e17"),
        ] {
            assert_eq!(signed(change), shown);
        }
    }
}
