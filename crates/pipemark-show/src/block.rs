//! What is shown, before it is laid out: a sheet is a list of blocks. Text from elsewhere is made harmless here.

use serde::Serialize;

use pipemark_model::neutral;

use crate::chart::Chart;
use crate::grid::Grid;

/// Shares of the greatest as bars of eight heights.
pub fn sparkline(shares: &[f64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    shares.iter().map(|share| BARS[((share * 8.0).ceil() as usize).clamp(1, 8) - 1]).collect()
}

/// One piece of a sheet.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// A heading: 1 is the whole sheet's, 2 a section's, 3 a part's of it.
    Heading(u8, String),
    /// Parts of a sentence, or facts side by side.
    Text(Style, Vec<String>),
    /// Lines that are not wrapped.
    Code(String),
    /// A table.
    Grid(Grid),
    /// A chart.
    Chart(Box<Chart>),
    /// Sentences, each behind a mark.
    Notes(Vec<Note>),
    /// What follows is set apart.
    Gap,
}

/// What a piece of text is; how it looks is decided where it is rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub enum Style {
    /// What the reader came for.
    #[default]
    Plain,
    /// What stands above it.
    Heading,
    /// What may be overlooked.
    Aside,
    /// A bar of a chart.
    Bar,
    /// What to be careful about.
    Caution,
    /// What went wrong.
    Failure,
    /// What went well.
    Success,
    /// One of several curves, by its place among them.
    Series(usize),
}

/// A sentence behind a mark, such as a footnote's letter.
#[derive(Debug, Clone, PartialEq)]
pub struct Note {
    /// What the rows or cells that it belongs to are marked with; may be empty.
    pub mark: String,
    /// The sentence.
    pub text: String,
    /// Of the mark.
    pub style: Style,
}

impl Note {
    /// A note behind a mark.
    pub fn new(mark: &str, style: Style, text: &str) -> Note {
        Note { mark: neutral(mark), text: neutral(text), style }
    }

    /// A note without a mark.
    pub fn plain(text: impl AsRef<str>) -> Note {
        Note::new("", Style::Aside, text.as_ref())
    }
}

/// Blocks, in the order in which they are read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sheet {
    /// The blocks.
    pub blocks: Vec<Block>,
}

impl Sheet {
    /// Adds a heading.
    pub fn heading(&mut self, level: u8, text: &str) {
        self.blocks.push(Block::Heading(level, neutral(text)));
    }

    /// Adds facts side by side, unless there are none.
    pub fn text(&mut self, style: Style, parts: impl IntoIterator<Item = impl AsRef<str>>) {
        let parts = parts.into_iter().map(|part| neutral(part.as_ref())).filter(|part| !part.is_empty());
        let parts: Vec<String> = parts.collect();
        if !parts.is_empty() {
            self.blocks.push(Block::Text(style, parts));
        }
    }

    /// Adds a grid, unless it is empty.
    pub fn grid(&mut self, grid: Grid) {
        if grid.rows().next().is_some() {
            self.blocks.push(Block::Grid(grid));
        }
    }

    /// Adds notes, unless there are none.
    pub fn notes(&mut self, notes: impl IntoIterator<Item = Note>) {
        let notes: Vec<Note> = notes.into_iter().collect();
        if !notes.is_empty() {
            self.blocks.push(Block::Notes(notes));
        }
    }

    /// A grid, unless it is empty, with notes below it.
    pub fn of(grid: Grid, notes: impl IntoIterator<Item = Note>) -> Sheet {
        let mut sheet = Sheet::default();
        sheet.grid(grid);
        sheet.notes(notes);
        sheet
    }

    /// Its tables, for programs.
    pub fn grids(&self) -> impl Iterator<Item = &Grid> {
        self.blocks.iter().filter_map(|block| if let Block::Grid(grid) = block { Some(grid) } else { None })
    }
}
