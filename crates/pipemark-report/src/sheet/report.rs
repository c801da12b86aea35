//! A report of several documents, with charts above their tables. Also the main charts alone.

use std::collections::HashMap;

use pipemark_model::{Document, Finding, Nanos, counted};
use pipemark_show::{Block, Chart, Column, Fit, Grid, Note, Row, RowGroup, Sheet, Style};
use pipemark_stats::diff::{Diff, SideInput};
use pipemark_stats::verdict::Criterion;

use crate::sheet::charts::{Section, charts, labels, over_time};
use crate::sheet::document::{heading, tables};
use crate::sheet::experiment::{MeasuredExperiment, trials_by_experiment};
use crate::sheet::{add_pipeline, tuned, watched};
use crate::sheet::{comparison, marks, summary, words};

/// The whole content of the documents. The main figures and one chart come first. Findings that aren't shown elsewhere
/// come last.
pub fn report(documents: &[Document]) -> Sheet {
    let labels = labels(documents);
    let runs = || documents.iter().zip(&labels);
    let several_documents = documents.len() > 1;
    let mut sheet = Sheet::default();
    let titles: Vec<&String> = documents.iter().map(|document| &document.title).collect();
    let all = || documents.iter().map(|document| document.suite.clone()).collect::<Vec<_>>().join(", ");
    sheet.heading(
        1,
        &match (titles.iter().all(|title| *title == titles[0]), several_documents) {
            (true, true) if !titles[0].is_empty() => titles[0].clone(),
            (_, false) => heading(&documents[0]),
            _ => all(),
        },
    );
    for (document, label) in runs() {
        sheet.text(Style::Heading, several_documents.then_some(label));
        sheet.text(Style::Plain, words::host(document));
        sheet.text(Style::Aside, measurement_facts(document));
        sheet.text(Style::Caution, words::partial(document));
        document.warnings.iter().for_each(|warning| sheet.text(Style::Caution, [warning.to_string()]));
    }
    let sections = Section::all(documents);
    let mut findings: Vec<(usize, &Finding)> =
        documents.iter().enumerate().flat_map(|(run, own)| own.findings.iter().map(move |own| (run, own))).collect();
    let mut drawn: Vec<Vec<Chart>> = Vec::new();
    for section in &sections {
        let mut charts = charts(section, documents, &labels);
        if let Some(chart) = charts.first_mut()
            && let Some(at) = findings.iter().position(|(_, finding)| section.concerns(finding))
        {
            let (run, finding) = findings.remove(at);
            chart.caption = in_words(finding, &labels[run], several_documents);
        }
        charts.extend(over_time(section, &labels));
        drawn.push(charts);
    }
    documents.iter().for_each(|document| add_pipeline(&mut sheet, document));
    if documents.iter().all(Document::is_of_pipeline) {
        return sheet;
    }
    sheet.heading(2, "In brief");
    let groups = runs().map(|(document, label)| RowGroup {
        caption: if several_documents { label.clone() } else { String::new() },
        rows: summary::summary(document, |experiment, record| experiment.unit(record))
            .into_iter()
            .map(|row| Row { cells: row.cells, instead: None })
            .collect(),
    });
    let words = |heading| Column::words("", heading).fit(Fit::Wrapped);
    let columns = [words("figure"), Column::figures("", "speed"), words("details")];
    let groups = groups.filter(|group| !group.rows.is_empty()).collect();
    sheet.grid(Grid { labels: 1, columns: columns.into(), groups });
    if let Some(charts) = drawn.first_mut().filter(|charts| !charts.is_empty()) {
        let title = charts[0].title.clone();
        let (first, rest) = std::mem::take(charts).into_iter().partition(|chart| chart.title == title);
        *charts = rest;
        sheet.blocks.extend(Vec::into_iter(first).map(Box::new).map(Block::Chart));
    }
    if let [base, new] = documents {
        changes(&mut sheet, [base, new], &labels);
    }
    for (document, label) in runs() {
        pipemark_claims::sheet::table(&mut sheet, document, if several_documents { label } else { "" });
    }
    let by_experiment: Vec<_> = documents.iter().map(trials_by_experiment).collect();
    // If a name occurs several times, the first experiment counts.
    let by_name = |document: &Document| -> HashMap<String, usize> {
        document.experiments.iter().enumerate().rev().map(|(at, about)| (about.name.clone(), at)).collect()
    };
    let places: Vec<HashMap<String, usize>> = documents.iter().map(by_name).collect();
    for (section, charts) in sections.iter().zip(drawn) {
        sheet.heading(2, &section.title);
        sheet.text(Style::Aside, [&section.about]);
        sheet.blocks.extend(charts.into_iter().map(Box::new).map(Block::Chart));
        for &run in &section.runs {
            let label = if section.runs.len() > 1 { labels[run].as_str() } else { "" };
            let about = places[run].get(section.name).map(|at| &documents[run].experiments[*at]);
            if let Some(experiment) =
                about.and_then(|about| MeasuredExperiment::of(&documents[run], about, &by_experiment[run]))
            {
                tables(&mut sheet, &documents[run], &experiment, label);
            }
        }
    }
    if !findings.is_empty() {
        sheet.heading(2, "More findings");
        let note = |(run, finding): (usize, &Finding)| {
            Note::new("•", Style::Plain, &in_words(finding, &labels[run], several_documents))
        };
        sheet.notes(findings.into_iter().map(note));
    }
    sheet.heading(2, "How it was measured");
    for (document, label) in runs() {
        if several_documents {
            sheet.heading(3, label);
        }
        let command = document.command.join(" ");
        let facts = [
            format!("command: {command}"),
            format!("pipemark {}", document.version),
            format!("started {}", words::time(&document.started)),
        ];
        let facts = words::method(document).into_iter().chain(facts).filter(|fact| !fact.is_empty());
        sheet.notes(facts.map(Note::plain).chain(marks::legend(document)).collect::<Vec<_>>());
    }
    sheet.text(Style::Aside, [
        "Shaded bands and thin lines at the ends of bars are 95 % intervals of the median; they may reach beyond the axis. \
         Hollow diamonds are published figures from other hardware. Each chart can be saved, or opened in the Vega \
         editor; only opening it there sends its figures to another site.",
    ]);
    sheet
}

fn in_words(finding: &Finding, label: &str, several_documents: bool) -> String {
    if several_documents { format!("{label}: {}", finding.text) } else { finding.text.clone() }
}

/// Adds the changes from the first document to the second.
fn changes(sheet: &mut Sheet, [base, new]: [&Document; 2], labels: &[String]) {
    let party = |name, document| SideInput { name, documents: std::slice::from_ref(document), settings: &[] };
    match Diff::of(party(&labels[0], base), party(&labels[1], new), &[], &Criterion::new) {
        Err(refusal) => sheet.text(Style::Aside, [format!("No verdicts: {refusal}")]),
        Ok(diff) => {
            let mut blocks = comparison(&diff, true).blocks.into_iter();
            if let Some(Block::Heading(_, summary)) = blocks.next() {
                sheet.heading(2, &format!("What changed. {summary}"));
            }
            sheet.blocks.extend(blocks.filter(|block| !matches!(block, Block::Heading(..))));
        }
    }
}

/// A sheet with the first chart of each experiment.
pub fn main_charts(documents: &[Document]) -> Sheet {
    let labels = labels(documents);
    let mut sheet = Sheet::default();
    documents.iter().for_each(|document| add_pipeline(&mut sheet, document));
    for section in Section::all(documents) {
        let mut charts = charts(&section, documents, &labels);
        if let Some(title) = charts.first().map(|chart| chart.title.clone()) {
            charts.retain(|chart| chart.title == title);
            sheet.heading(2, &section.title);
            sheet.blocks.extend(charts.into_iter().map(Box::new).map(Block::Chart));
        }
    }
    if sheet.blocks.is_empty() {
        let text = "Nothing to draw: no experiment has two measured trials.";
        sheet.text(Style::Plain, [text]);
    }
    sheet
}

/// The number of trials and runs, the host and the start.
fn measurement_facts(document: &Document) -> Vec<String> {
    // The same trials as in the terminal: those that were asked for.
    let trials = document.requested().filter(|record| record.estimate.is_some()).count();
    let runs: usize = document.requested().map(|record| record.samples.len()).sum();
    let started = words::time(&document.started);
    let mut facts = match (watched(document), tuned(document)) {
        (Some(watched), _) => vec![format!("sampled {} times in {}", watched.samples, Nanos(document.elapsed_ns))],
        (None, Some(tuned)) => {
            vec![format!("{} in {}", counted(tuned.runs as usize, "run"), Nanos(document.elapsed_ns))]
        }
        (None, None) => {
            let (trials, runs) = (counted(trials, "trial"), counted(runs, "run"));
            vec![format!("{trials}, {runs} in {}", Nanos(document.elapsed_ns))]
        }
    };
    facts.extend(words::memory_copy(document));
    facts.push(format!("on {}, {started}", document.host.name));
    facts
}
