//! Results before layout: a sheet is a list of blocks. Control characters in text from other sources are escaped here.

use pipemark_model::neutral;
use pipemark_shell::is_shown_exactly;

use crate::chart::Chart;
use crate::grid::Grid;
use crate::style::Style;

/// Draws a sparkline: a bar of one of eight heights for each value. Values are fractions of the largest, 0 to 1.
pub fn sparkline(shares: &[f64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    shares.iter().map(|share| BARS[((share * 8.0).ceil() as usize).clamp(1, 8) - 1]).collect()
}

/// One piece of a sheet.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// A heading: level 1 for the sheet, 2 for a section, 3 for a part of a section.
    Heading(u8, String),
    /// Parts of a sentence, or facts separated by dots.
    Text(Style, Vec<String>),
    /// Lines that are not wrapped.
    Code(String),
    /// A table.
    Grid(Grid),
    /// A chart.
    Chart(Box<Chart>),
    /// Sentences, each after a mark.
    Notes(Vec<Note>),
    /// A gap before the next block.
    Gap,
}

/// A sentence after a mark, such as a footnote's letter.
#[derive(Debug, Clone, PartialEq)]
pub struct Note {
    /// The mark of the rows or cells that the sentence is about; empty for none.
    pub mark: String,
    /// The sentence.
    pub text: String,
    /// The style of the mark.
    pub style: Style,
}

impl Note {
    /// A note after a mark.
    pub fn new(mark: &str, style: Style, text: &str) -> Note {
        Note { mark: neutral(mark), text: neutral(text), style }
    }

    /// A command to paste, byte for byte: neither wrapped nor changed. `None` if it is empty, or has a character that a
    /// terminal doesn't show exactly.
    pub fn command(text: &str) -> Option<Note> {
        let is_exact = text.chars().all(|c| c == '\n' || is_shown_exactly(c));
        // The mark is blank.
        let note = || Note { mark: " ".to_owned(), text: text.to_owned(), style: Style::Plain };
        (is_exact && !text.is_empty()).then(note)
    }

    /// Whether it is a command to paste.
    pub(crate) fn is_command(&self) -> bool {
        self.mark == " "
    }

    /// A note without a mark.
    pub fn plain(text: impl AsRef<str>) -> Note {
        Note::new("", Style::Aside, text.as_ref())
    }
}

/// Blocks in reading order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sheet {
    pub blocks: Vec<Block>,
}

impl Sheet {
    /// Adds a heading.
    pub fn heading(&mut self, level: u8, text: &str) {
        self.blocks.push(Block::Heading(level, neutral(text)));
    }

    /// Adds facts, or the parts of a sentence. Adds nothing if there are none.
    pub fn text(&mut self, style: Style, parts: impl IntoIterator<Item = impl AsRef<str>>) {
        let parts = parts.into_iter().map(|part| neutral(part.as_ref())).filter(|part| !part.is_empty());
        let parts: Vec<String> = parts.collect();
        if !parts.is_empty() {
            self.blocks.push(Block::Text(style, parts));
        }
    }

    /// Adds a table, unless it is empty.
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

    /// A sheet with a table, unless it is empty, and notes below the table.
    pub fn of(grid: Grid, notes: impl IntoIterator<Item = Note>) -> Sheet {
        let mut sheet = Sheet::default();
        sheet.grid(grid);
        sheet.notes(notes);
        sheet
    }

    /// The tables of the sheet.
    pub fn grids(&self) -> impl Iterator<Item = &Grid> {
        self.blocks.iter().filter_map(|block| if let Block::Grid(grid) = block { Some(grid) } else { None })
    }
}
