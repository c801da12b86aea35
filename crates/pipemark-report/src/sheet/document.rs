//! A document: the machine, a table for each experiment, claims, findings and notes.

use pipemark_model::Document;
use pipemark_show::{Note, Sheet, Style};

use crate::sheet::add_pipeline;
use crate::sheet::experiment::{MeasuredExperiment, trials_by_experiment};
use crate::sheet::{cpu_map, gains, marks, matrix, words};

/// The sheet of a document, as shown after a measurement.
pub fn document(document: &Document) -> Sheet {
    let mut sheet = Sheet::default();
    sheet.heading(1, &heading(document));
    sheet.text(Style::Plain, words::host(document));
    sheet.text(Style::Aside, words::method(document));
    sheet.text(Style::Caution, words::partial(document));
    add_pipeline(&mut sheet, document);
    let trials = trials_by_experiment(document);
    for about in &document.experiments {
        let Some(experiment) = MeasuredExperiment::of(document, about, &trials) else { continue };
        sheet.heading(2, experiment.title());
        sheet.text(Style::Aside, experiment.shared());
        tables(&mut sheet, document, &experiment, "");
    }
    let legend = marks::legend(document);
    if !legend.is_empty() {
        sheet.heading(2, "Marks");
        sheet.notes(legend);
    }
    pipemark_claims::sheet::table(&mut sheet, document, "");
    section(&mut sheet, "Findings", findings(document));
    section(&mut sheet, "Notes", warnings(document));
    sheet
}

/// The claims of a document in full, or a sentence if it has none.
pub fn claims(document: &Document) -> Sheet {
    let mut sheet = Sheet::default();
    sheet.heading(1, &heading(document));
    match document.claims.iter().any(|claim| claim.answer.is_some()) {
        true => pipemark_claims::sheet::in_full(&mut sheet, document),
        false => sheet.text(Style::Plain, ["no claims: the suite states none"]),
    }
    sheet
}

/// The document's suite and title.
pub(super) fn heading(document: &Document) -> String {
    let (suite, title) = (&document.suite, &document.title);
    if title.is_empty() { suite.clone() } else { format!("{suite}: {title}") }
}

/// Adds the tables of one experiment with their notes. If `run` isn't empty, it precedes the captions.
pub(super) fn tables(sheet: &mut Sheet, document: &Document, experiment: &MeasuredExperiment, run: &str) {
    let (mut grids, notes) = gains::grids(document, experiment).unwrap_or_else(|| {
        let map = cpu_map::grids(experiment, &document.host.topology, cpu_map::PAGE_COLUMNS);
        map.unwrap_or_else(|| {
            let grid = matrix::grid(experiment.about, &experiment.records);
            let (grid, notes) = grid.unwrap_or_else(|| experiment.grid());
            (vec![grid], notes)
        })
    });
    for group in grids.iter_mut().flat_map(|grid| &mut grid.groups).filter(|_| !run.is_empty()) {
        group.caption = if group.caption.is_empty() { run.to_owned() } else { format!("{run} · {}", group.caption) };
    }
    grids.into_iter().for_each(|grid| sheet.grid(grid));
    experiment.published_figures().into_iter().for_each(|grid| sheet.grid(grid));
    sheet.notes(notes);
}

pub(super) fn findings(document: &Document) -> Vec<Note> {
    document.findings.iter().map(|finding| Note::new("•", Style::Plain, &finding.text)).collect()
}

pub(super) fn warnings(document: &Document) -> Vec<Note> {
    document.warnings.iter().map(|warning| Note::new("!", Style::Caution, &warning.to_string())).collect()
}

fn section(sheet: &mut Sheet, heading: &str, notes: Vec<Note>) {
    if !notes.is_empty() {
        sheet.heading(2, heading);
        sheet.notes(notes);
    }
}
