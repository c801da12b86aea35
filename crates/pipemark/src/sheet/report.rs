//! A report: documents laid over one another, with charts above their tables; and the main charts alone.

use super::charts::{Section, charts, labels};
use super::document::{findings, heading, tables, warnings};
use super::{Block, Note, Sheet, Style, marks, words};
use crate::model::{Document, Nanos};

/// Everything that the documents say, the findings first.
pub fn report(documents: &[Document]) -> Sheet {
    let labels = labels(documents);
    let runs = || documents.iter().zip(&labels);
    let several = documents.len() > 1;
    let mut sheet = Sheet::default();
    let titles: Vec<&String> = documents.iter().map(|document| &document.title).collect();
    let all = || documents.iter().map(|document| document.suite.clone()).collect::<Vec<_>>().join(", ");
    sheet.heading(
        1,
        &match (titles.iter().all(|title| *title == titles[0]), several) {
            (true, true) if !titles[0].is_empty() => titles[0].clone(),
            (_, false) => heading(&documents[0]),
            _ => all(),
        },
    );
    for (document, label) in runs() {
        sheet.text(Style::Heading, several.then_some(label));
        sheet.text(Style::Plain, words::host(document));
        sheet.text(Style::Aside, measured(document));
        sheet.text(Style::Caution, words::partial(document));
    }
    sheet.heading(2, "Findings");
    for (document, label) in runs() {
        if several {
            sheet.heading(3, label);
        }
        match document.findings.is_empty() {
            true => {
                sheet.text(Style::Plain, ["No findings: too few trials, or differences that can't be told from noise."])
            }
            false => sheet.notes(findings(document)),
        }
    }
    for section in Section::all(documents) {
        sheet.heading(2, &section.title);
        sheet.text(Style::Aside, [&section.about]);
        sheet.blocks.extend(charts(&section, documents, &labels).into_iter().map(Box::new).map(Block::Chart));
        for &run in &section.runs {
            let about = documents[run].experiments.iter().find(|about| about.name == section.name);
            let label = if section.runs.len() > 1 { labels[run].as_str() } else { "" };
            about.into_iter().for_each(|about| tables(&mut sheet, &documents[run], about, label));
        }
    }
    sheet.heading(2, "How it was measured");
    for (document, label) in runs() {
        if several {
            sheet.heading(3, label);
        }
        let command = document.command.join(" ");
        let facts = [
            format!("command: {command}"),
            format!("pipemark {}", document.version),
            format!("started {}", document.started),
        ];
        let facts = words::method(document).into_iter().chain(facts).filter(|fact| !fact.is_empty());
        sheet.notes(facts.map(Note::plain).chain(marks::legend(document)).collect::<Vec<_>>());
        sheet.notes(warnings(document));
    }
    sheet.text(Style::Aside, [
        "Shaded bands and thin lines at the ends of bars are 95 % intervals of the median. Hollow diamonds are figures that \
         others published for other hardware. Each chart can be saved, or opened in the Vega editor: only that, and only when \
         it is asked for, sends the figures of that chart to another site.",
    ]);
    sheet
}

/// The first chart of each experiment.
pub fn main_charts(documents: &[Document]) -> Sheet {
    let labels = labels(documents);
    let mut sheet = Sheet::default();
    for section in Section::all(documents) {
        let mut charts = charts(&section, documents, &labels);
        if let Some(title) = charts.first().map(|chart| chart.title.clone()) {
            charts.retain(|chart| chart.title == title);
            sheet.heading(2, &section.title);
            sheet.blocks.extend(charts.into_iter().map(Box::new).map(Block::Chart));
        }
    }
    if sheet.blocks.is_empty() {
        let text = "Fewer than two trials of an experiment were measured: there is nothing to draw.";
        sheet.text(Style::Plain, [text]);
    }
    sheet
}

/// How much was measured, where and when.
fn measured(document: &Document) -> Vec<String> {
    let trials = document.trials.iter().filter(|record| record.estimate.is_some()).count();
    let runs: usize = document.trials.iter().map(|record| record.samples.len()).sum();
    let started: String = document.started.chars().take(16).map(|c| if c == 'T' { ' ' } else { c }).collect();
    let mut facts = vec![format!("{trials} trials, {runs} runs in {}", Nanos(document.elapsed_ns))];
    facts.extend(words::memory_copy(document));
    facts.push(format!("on {}, {started}", document.host.name));
    facts
}
