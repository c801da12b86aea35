//! The tables and the words around them as plain cells, for whoever lays them out in a way of its own: the report page.
//! Every text is neutral; escaping for the page is the page's.

use serde::Serialize;

use crate::model::{Document, Record, WaitPolicy};

use super::column::Column;
use super::experiment::{Experiment, legend, missing};
use super::head::{host, method, partial};
use super::matrix::Matrix;
use super::text::{Side, neutral};

/// One table.
#[derive(Debug, Clone, Serialize)]
pub struct Grid {
    /// What its rows have in common; may be empty.
    pub caption: String,
    /// The headings, the first of them above the rows' names.
    pub head: Vec<Cell>,
    /// As many cells each as there are headings.
    pub rows: Vec<Vec<Cell>>,
}

/// One cell.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Cell {
    /// What it says.
    pub text: String,
    /// Whether it is a figure, which keeps right.
    pub figure: bool,
    /// Whether no other of its column is better for certain.
    pub best: bool,
}

impl Cell {
    fn word(text: String) -> Cell {
        Cell { text, ..Cell::default() }
    }

    fn figure(text: String, best: bool) -> Cell {
        Cell { text, figure: true, best }
    }
}

/// The tables of the experiment called `name`, and the notes that belong below them; none where it has no trials.
pub fn grids(document: &Document, name: &str) -> (Vec<Grid>, Vec<String>) {
    let about = document.experiments.iter().find(|about| about.name == name);
    if let Some(matrix) = about.and_then(|about| Matrix::of(document, about)) {
        return (matrix.blocks.iter().map(|block| of_block(&matrix, block)).collect(), matrix.notes("bold:"));
    }
    let Some(experiment) = Experiment::all(document).into_iter().find(|experiment| experiment.name == name) else {
        return (Vec::new(), Vec::new());
    };
    let columns: Vec<Column> = experiment.columns.iter().copied().filter(|column| *column != Column::Bar).collect();
    let several = experiment.groups.len() > 1;
    let grids = experiment.groups.iter().map(|group| {
        let row =
            |record: &&Record| columns.iter().map(|column| cell(&experiment, *column, record)).collect::<Vec<Cell>>();
        Grid {
            caption: match several || group.wait != WaitPolicy::Block {
                true => group.meaning().to_owned(),
                false => String::new(),
            },
            head: columns.iter().map(|column| heading(*column)).collect(),
            rows: group.records.iter().map(row).collect(),
        }
    });
    let notes = experiment.notes().into_iter().map(|(mark, text)| format!("{mark}: {text}"));
    (grids.collect(), notes.collect())
}

fn heading(column: Column) -> Cell {
    let text = match column {
        Column::Touched => "seen".to_owned(),
        Column::Flags => "notes".to_owned(),
        _ => column.heading().join(" ").trim().to_owned(),
    };
    Cell { text, figure: column.side() == Side::Right, best: false }
}

fn of_block(matrix: &Matrix, block: &super::matrix::Block) -> Grid {
    let columns = matrix.columns.iter().map(|column| Cell::figure(column.clone(), false));
    let rows = block.rows.iter().map(|row| {
        let cells = row.cells.iter().map(|cell| match cell {
            Some(cell) => Cell::figure(cell.text.clone(), cell.best),
            None => Cell::default(),
        });
        [Cell::word(row.label.clone())].into_iter().chain(cells).collect()
    });
    Grid {
        caption: block.heading.clone(),
        head: [Cell::word(matrix.corner.clone())].into_iter().chain(columns).collect(),
        rows: rows.collect(),
    }
}

/// For a trial without figures its outcome stands where the throughput would.
fn cell(experiment: &Experiment, column: Column, record: &Record) -> Cell {
    let text = match (missing(record), column) {
        (None, _) | (Some(_), Column::Param(_) | Column::Name) => experiment.cell(column, record),
        (Some(outcome), Column::Throughput | Column::P50) => return Cell::word(outcome),
        (Some(_), _) => String::new(),
    };
    Cell { text, figure: column.side() == Side::Right, best: false }
}

/// What stands around the tables of a document.
#[derive(Debug, Clone, Serialize)]
pub struct Words {
    /// The machine.
    pub host: Vec<String>,
    /// How it was measured.
    pub method: Vec<String>,
    /// That it was cut short.
    pub partial: Option<String>,
    /// What the marks in the tables mean.
    pub legend: Vec<String>,
    /// What disturbed the measurement.
    pub warnings: Vec<String>,
}

/// What stands around the tables.
pub fn words(document: &Document) -> Words {
    let told = |parts: Vec<String>| parts.into_iter().filter(|part| !part.is_empty()).collect();
    Words {
        host: told(host(document)),
        method: told(method(document)),
        partial: partial(document),
        legend: legend(document),
        warnings: document.warnings.iter().map(|warning| neutral(&warning.to_string())).collect(),
    }
}
