//! The tables, findings and notes as GitHub's Markdown, for issues and pages.

use std::io;

use crate::model::{Document, Record, WaitPolicy};

use super::Format;
use super::column::Column;
use super::experiment::{Experiment, legend, missing};
use super::gains::GainsTable;
use super::head::{host, method, partial};
use super::matrix::Matrix;
use super::text::{Side, neutral};

/// GitHub's Markdown.
#[derive(Debug, Clone, Copy)]
pub struct Markdown;

impl Format for Markdown {
    fn name(&self) -> &'static str {
        "Markdown"
    }

    fn write(&self, document: &Document, out: &mut dyn io::Write) -> io::Result<()> {
        let (suite, title) = (escaped(&neutral(&document.suite)), escaped(&neutral(&document.title)));
        match title.as_str() {
            "" => writeln!(out, "# {suite}\n")?,
            title => writeln!(out, "# {suite}: {title}\n")?,
        }
        writeln!(out, "{}  ", escaped(&join(&host(document))))?;
        writeln!(out, "{}", escaped(&join(&method(document))))?;
        if let Some(sentence) = partial(document) {
            writeln!(out, "\n**{}**", escaped(&sentence))?;
        }
        for experiment in Experiment::all(document) {
            writeln!(out, "\n## {}\n", escaped(&experiment.title))?;
            if !experiment.shared.is_empty() {
                writeln!(out, "{}\n", escaped(&join(&experiment.shared)))?;
            }
            let about = document.experiments.iter().find(|about| about.name == experiment.name);
            if let Some(gains) = about.and_then(|about| GainsTable::of(document, about)) {
                parts(&gains, out)?;
            } else if let Some(matrix) = about.and_then(|about| Matrix::of(document, about)) {
                blocks(&matrix, out)?;
            } else {
                groups(&experiment, out)?;
            }
        }
        let legend = legend(document);
        if !legend.is_empty() {
            writeln!(out, "\n{}", escaped(&legend.join("; ")))?;
        }
        list("Findings", document.findings.iter().map(|finding| neutral(&finding.text)), out)?;
        list("Notes", document.warnings.iter().map(|warning| neutral(&warning.to_string())), out)
    }
}

fn join(parts: &[String]) -> String {
    parts.iter().filter(|part| !part.is_empty()).map(String::as_str).collect::<Vec<_>>().join(" · ")
}

fn blocks(matrix: &Matrix, out: &mut dyn io::Write) -> io::Result<()> {
    for (index, block) in matrix.blocks.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        if !block.heading.is_empty() {
            writeln!(out, "{}\n", escaped(&block.heading))?;
        }
        let headings = matrix.columns.iter().map(|column| escaped(column));
        line([escaped(&matrix.corner)].into_iter().chain(headings), out)?;
        line(["---"].into_iter().chain(matrix.columns.iter().map(|_| "---:")).map(str::to_owned), out)?;
        for row in &block.rows {
            let cells = row.cells.iter().map(|cell| match cell {
                Some(cell) if cell.best => format!("**{}**", escaped(&cell.text)),
                Some(cell) => escaped(&cell.text),
                None => String::new(),
            });
            line([escaped(&row.label)].into_iter().chain(cells), out)?;
        }
    }
    writeln!(out)?;
    for note in matrix.notes("bold:") {
        writeln!(out, "- {}", escaped(&note))?;
    }
    Ok(())
}

fn parts(gains: &GainsTable, out: &mut dyn io::Write) -> io::Result<()> {
    for part in &gains.parts {
        writeln!(out, "{}\n", escaped(&part.title))?;
        line(part.headings.iter().map(|heading| escaped(heading)), out)?;
        line(["---"].into_iter().chain(part.headings[1..].iter().map(|_| "---:")).map(str::to_owned), out)?;
        for row in &part.rows {
            line(row.iter().map(|cell| escaped(cell)), out)?;
        }
        writeln!(out)?;
    }
    for note in gains.notes() {
        writeln!(out, "- {}", escaped(note))?;
    }
    Ok(())
}

fn groups(experiment: &Experiment, out: &mut dyn io::Write) -> io::Result<()> {
    let columns: Vec<Column> = experiment.columns.iter().copied().filter(|column| *column != Column::Bar).collect();
    for (index, group) in experiment.groups.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        if experiment.groups.len() > 1 || group.wait != WaitPolicy::Block {
            writeln!(out, "{}\n", escaped(group.meaning()))?;
        }
        let headings = columns.iter().map(|column| escaped(column.heading().join(" ").trim()));
        line(headings, out)?;
        let rules = columns.iter().map(|column| match column.side() {
            Side::Left => "---".to_owned(),
            Side::Right => "---:".to_owned(),
        });
        line(rules, out)?;
        for record in &group.records {
            line(columns.iter().map(|column| escaped(&cell(experiment, *column, record))), out)?;
        }
    }
    let notes = experiment.notes();
    if !notes.is_empty() {
        writeln!(out)?;
    }
    for (mark, text) in notes {
        writeln!(out, "- **{}** {}", escaped(&mark), escaped(&text))?;
    }
    Ok(())
}

/// The cell's text; for a trial without figures its outcome stands where the throughput would.
fn cell(experiment: &Experiment, column: Column, record: &Record) -> String {
    match (missing(record), column) {
        (None, _) | (Some(_), Column::Param(_) | Column::Name) => experiment.cell(column, record),
        (Some(outcome), Column::Throughput | Column::P50) => outcome,
        (Some(_), _) => String::new(),
    }
}

pub(super) fn line(cells: impl Iterator<Item = String>, out: &mut dyn io::Write) -> io::Result<()> {
    writeln!(out, "| {} |", cells.collect::<Vec<_>>().join(" | "))
}

fn list(heading: &str, items: impl Iterator<Item = String>, out: &mut dyn io::Write) -> io::Result<()> {
    let mut items = items.peekable();
    if items.peek().is_some() {
        writeln!(out, "\n## {heading}\n")?;
    }
    for item in items {
        writeln!(out, "- {}", escaped(&item))?;
    }
    Ok(())
}

/// Neutral text with everything escaped that Markdown, HTML or a table would act on.
pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for (index, c) in text.chars().enumerate() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '#' | '|' | '~' | '!' | '$' => safe.extend(['\\', c]),
            // Only the start of a line makes these a list or a heading.
            '-' | '+' | '=' if index == 0 => safe.extend(['\\', c]),
            _ => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;

    fn written(document: &Document) -> String {
        let mut out = Vec::new();
        Markdown.write(document, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn pages_are_as_kept() {
        for (name, document) in fixture::all() {
            fixture::assert_file(&format!("src/show/snapshots/{name}.md"), &written(&document));
        }
    }

    /// Bars that are not escaped separate cells.
    fn cells(line: &str) -> usize {
        line.replace("\\\\", "").replace("\\|", "").matches('|').count()
    }

    #[test]
    fn every_row_has_the_cells_of_its_heading() {
        for (name, document) in fixture::all() {
            let text = written(&document);
            let lines: Vec<&str> = text.lines().collect();
            let tables = lines.chunk_by(|a, b| a.starts_with('|') == b.starts_with('|'));
            for table in tables.filter(|lines| lines[0].starts_with('|')) {
                for line in table {
                    assert_eq!(cells(line), cells(table[0]), "{name}: {line}");
                }
            }
        }
    }

    #[test]
    fn hostile_text_stays_text() {
        let text = written(&fixture::hostile());
        assert!(!text.contains("<script"), "{text}");
        assert!(!text.contains("[x]("), "{text}");
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
    }
}
