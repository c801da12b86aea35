//! Tables as data: columns, cells with text for people and a value for programs, and a builder that adds one column
//! at a time.

use std::hash::Hash;

use serde_json::Value;

use pipemark_model::{group_by_key, neutral};

use crate::style::Style;

/// The alignment of cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// For words.
    Left,
    /// For figures.
    Right,
}

/// How a column is narrowed if the table is too wide. Columns that still don't fit are printed below the others, with
/// the labels repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// The column stays as wide as its widest cell.
    Needed,
    /// Cells are cut and end with `…`.
    Elastic,
    /// Cells become several lines.
    Wrapped,
    /// The column is omitted if the line has no room for it. The last optional column is omitted first.
    Optional,
    /// The column fills the rest of the line, or is omitted if there is no room. For bars, which only terminals show.
    Bars,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// The name in CSV and JSON; empty for a column that only people see.
    pub key: String,
    /// The heading in tables; empty for a column that only programs see, which has a key.
    pub heading: String,
    /// The alignment of the cells.
    pub side: Align,
    /// How the column is narrowed.
    pub fit: Fit,
}

impl Column {
    /// A column of words, aligned left.
    pub fn words(key: &str, heading: &str) -> Column {
        Column { key: key.to_owned(), heading: neutral(heading), side: Align::Left, fit: Fit::Needed }
    }

    /// A column of figures, aligned right.
    pub fn figures(key: &str, heading: &str) -> Column {
        Column { side: Align::Right, ..Column::words(key, heading) }
    }

    /// A column for programs only.
    pub fn data(key: &str) -> Column {
        Column::words(key, "")
    }

    /// A column of bars, for people only.
    pub fn bars(heading: &str) -> Column {
        Column { fit: Fit::Bars, ..Column::words("", heading) }
    }

    /// Sets how the column is narrowed.
    pub fn fit(self, fit: Fit) -> Column {
        Column { fit, ..self }
    }

    /// Whether people see the column.
    pub fn is_in_text(&self) -> bool {
        !self.heading.is_empty() || self.key.is_empty()
    }

    /// Whether programs see the column.
    pub fn is_in_data(&self) -> bool {
        !self.key.is_empty()
    }
}

/// A cell's text for people and its value for programs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cell {
    /// The text for people.
    pub text: String,
    /// The mark after the text, such as a footnote's letter.
    pub mark: String,
    /// The meaning of the text, which decides its colour.
    pub style: Style,
    /// The value for programs.
    pub value: Value,
    /// For a bar, the ends of its interval as fractions of the longest bar; `None` for other cells.
    pub bar: Option<(f64, f64)>,
}

impl Cell {
    /// A cell with the same text for people and programs. Control characters are escaped only for people.
    pub fn text(text: impl Into<String>) -> Cell {
        let text = text.into();
        Cell { text: neutral(&text), value: Value::String(text), ..Cell::default() }
    }

    /// A cell with text for people and a value for programs.
    pub fn of(text: impl AsRef<str>, value: impl Into<Value>) -> Cell {
        Cell { text: neutral(text.as_ref()), value: value.into(), ..Cell::default() }
    }

    /// A cell with text for people only.
    pub fn shown(text: impl AsRef<str>) -> Cell {
        Cell::of(text, Value::Null)
    }

    /// A cell with a value for programs only; `None` leaves it empty.
    pub fn data(value: Option<impl Into<Value>>) -> Cell {
        Cell { value: value.map_or(Value::Null, Into::into), ..Cell::default() }
    }

    /// A bar with the interval `low` to `high`, as fractions of the longest bar.
    pub fn bar(low: f64, high: f64) -> Cell {
        Cell { bar: Some((low, high)), style: Style::Bar, ..Cell::default() }
    }

    /// Sets the style.
    pub fn style(self, style: Style) -> Cell {
        Cell { style, ..self }
    }

    /// Sets the mark.
    pub fn mark(self, mark: impl Into<String>) -> Cell {
        Cell { mark: mark.into(), ..self }
    }

    /// Whether the cell has neither text nor a bar for people.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.mark.is_empty() && self.bar.is_none()
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Row {
    /// One cell for each column.
    pub cells: Vec<Cell>,
    /// The reason why the row has no figures, shown in their place; `None` for a row with figures.
    pub instead: Option<(Style, String)>,
}

impl From<Vec<Cell>> for Row {
    fn from(cells: Vec<Cell>) -> Row {
        Row { cells, instead: None }
    }
}

/// Rows that belong together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RowGroup {
    /// What the rows have in common; empty for none.
    pub caption: String,
    pub rows: Vec<Row>,
}

impl RowGroup {
    /// Rows under a caption.
    pub fn new(caption: &str, rows: Vec<Row>) -> RowGroup {
        RowGroup { caption: neutral(caption), rows }
    }
}

/// A table: groups of rows under common columns.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Grid {
    /// The number of leading columns that identify a row. The other columns hold figures.
    pub labels: usize,
    pub columns: Vec<Column>,
    /// The rows, grouped under captions.
    pub groups: Vec<RowGroup>,
}

impl Grid {
    /// A table with one group. The first column identifies each row.
    pub fn new(columns: Vec<Column>, rows: Vec<Vec<Cell>>) -> Grid {
        Grid { labels: 1, columns, groups: vec![RowGroup::new("", rows.into_iter().map(Row::from).collect())] }
    }

    /// All rows.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.groups.iter().flat_map(|group| &group.rows)
    }

    /// The indices of the columns shown to people: those with any content.
    pub fn text_columns(&self) -> Vec<usize> {
        let filled = |index: usize| {
            self.rows().any(|row| {
                (row.instead.is_none() || index < self.labels)
                    && row.cells.get(index).is_some_and(|cell| !cell.is_empty())
            })
        };
        (0..self.columns.len()).filter(|&index| self.columns[index].is_in_text() && filled(index)).collect()
    }

    /// Like [`text_columns`](Grid::text_columns), but without bars, which only terminals draw.
    pub fn without_bars(&self) -> Vec<usize> {
        self.text_columns().into_iter().filter(|&index| self.columns[index].fit != Fit::Bars).collect()
    }
}

/// A table under construction, filled column by column.
pub struct Table<'a, T> {
    of: &'a [T],
    pub columns: Vec<Column>,
    rows: Vec<Row>,
}

impl<'a, T> Table<'a, T> {
    /// A table with a row for each item.
    pub fn of(of: &'a [T]) -> Table<'a, T> {
        Table { of, columns: Vec::new(), rows: vec![Row::default(); of.len()] }
    }

    pub fn push(&mut self, column: Column, cell: impl Fn(&'a T) -> Cell) {
        self.columns.push(column);
        self.rows.iter_mut().zip(self.of).for_each(|(row, of)| row.cells.push(cell(of)));
    }

    /// [`push`](Table::push) for chained calls.
    pub fn column(mut self, column: Column, cell: impl Fn(&'a T) -> Cell) -> Self {
        self.push(column, cell);
        self
    }

    /// Adds a column for programs only.
    pub fn data<V: Into<Value>>(self, key: &str, value: impl Fn(&'a T) -> Option<V>) -> Self {
        self.column(Column::data(key), |of| Cell::data(value(of)))
    }

    /// Sets the text shown in place of figures; `None` for a row with figures.
    pub fn instead(mut self, instead: impl Fn(&'a T) -> Option<(Style, String)>) -> Self {
        self.rows.iter_mut().zip(self.of).for_each(|(row, of)| row.instead = instead(of));
        self
    }

    /// Finishes the table. The first column identifies each row.
    pub fn grid(self) -> Grid {
        Grid { labels: 1, columns: self.columns, groups: vec![RowGroup { caption: String::new(), rows: self.rows }] }
    }

    /// Finishes the table with one group for each value of `kind`, in order of first appearance.
    pub fn grouped<K: Clone + Eq + Hash>(self, kind: impl Fn(&'a T) -> K, caption: impl Fn(&K) -> String) -> Grid {
        let groups = group_by_key(self.of.iter().map(kind).zip(self.rows)).into_iter();
        let groups = groups.map(|(kind, rows)| RowGroup { caption: neutral(&caption(&kind)), rows });
        Grid { labels: 1, columns: self.columns, groups: groups.collect() }
    }
}
