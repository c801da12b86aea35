//! Tables as data: columns, what cells say to people and to programs, and their making column by column.

use std::hash::Hash;

use serde::Serialize;
use serde_json::Value;

use pipemark_model::{grouped, neutral};

use crate::Style;

/// Which side of its column a cell keeps to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Align {
    /// Words.
    Left,
    /// Figures.
    Right,
}

/// How a column gives way where the table is too wide; what does not fit even so goes below, labels repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Fit {
    /// It has what its widest cell needs.
    Needed,
    /// Its cells are cut.
    Elastic,
    /// Its cells are wrapped.
    Wrapped,
    /// It is omitted where the line has no room for all.
    Optional,
    /// It fills the rest of the line, or is omitted: for bars, which only terminals show.
    Bars,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Column {
    /// What programs call it; a column without is for people only.
    pub key: String,
    /// What stands above it; a column with a key and no heading is for programs only.
    pub heading: String,
    /// Which side its cells keep to.
    pub side: Align,
    /// How it gives way.
    pub fit: Fit,
}

impl Column {
    /// Words, which keep left.
    pub fn words(key: &str, heading: &str) -> Column {
        Column { key: key.to_owned(), heading: neutral(heading), side: Align::Left, fit: Fit::Needed }
    }

    /// Figures, which keep right.
    pub fn figures(key: &str, heading: &str) -> Column {
        Column { side: Align::Right, ..Column::words(key, heading) }
    }

    /// For programs only.
    pub fn data(key: &str) -> Column {
        Column::words(key, "")
    }

    /// A column of bars, which is for people only.
    pub fn bars(heading: &str) -> Column {
        Column { fit: Fit::Bars, ..Column::words("", heading) }
    }

    /// Giving way so.
    pub fn fit(self, fit: Fit) -> Column {
        Column { fit, ..self }
    }

    /// Whether people see it.
    pub fn is_for_people(&self) -> bool {
        !self.heading.is_empty() || self.key.is_empty()
    }

    /// Whether programs see it.
    pub fn is_for_programs(&self) -> bool {
        !self.key.is_empty()
    }
}

/// What a cell says to people and to programs.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Cell {
    /// For people.
    pub text: String,
    /// What stands behind the text, such as a footnote's letter.
    pub mark: String,
    /// How it is meant.
    pub style: Style,
    /// For programs.
    pub value: Value,
    /// For a bar: the ends of the interval, as shares of the longest.
    pub bar: Option<(f64, f64)>,
}

impl Cell {
    /// The same for both. Text from elsewhere is left as it is for programs.
    pub fn text(text: impl Into<String>) -> Cell {
        let text = text.into();
        Cell { text: neutral(&text), value: Value::String(text), ..Cell::default() }
    }

    /// Words for people, a value for programs.
    pub fn of(text: impl AsRef<str>, value: impl Into<Value>) -> Cell {
        Cell { text: neutral(text.as_ref()), value: value.into(), ..Cell::default() }
    }

    /// Words for people.
    pub fn shown(text: impl AsRef<str>) -> Cell {
        Cell::of(text, Value::Null)
    }

    /// A value for programs, if there is one.
    pub fn data(value: Option<impl Into<Value>>) -> Cell {
        Cell { value: value.map_or(Value::Null, Into::into), ..Cell::default() }
    }

    /// A bar that is certain up to the share `low` and may reach to `high`.
    pub fn bar(low: f64, high: f64) -> Cell {
        Cell { bar: Some((low, high)), style: Style::Bar, ..Cell::default() }
    }

    /// In another style.
    pub fn style(self, style: Style) -> Cell {
        Cell { style, ..self }
    }

    /// With a mark behind it.
    pub fn mark(self, mark: impl Into<String>) -> Cell {
        Cell { mark: mark.into(), ..self }
    }

    /// Whether people see nothing of it.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.mark.is_empty() && self.bar.is_none()
    }
}

/// One row.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Row {
    /// A cell for each column.
    pub cells: Vec<Cell>,
    /// Why it has no figures; stands in their place.
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
    /// What they have in common; may be empty.
    pub caption: String,
    /// The rows.
    pub rows: Vec<Row>,
}

impl RowGroup {
    /// Rows below what they have in common.
    pub fn new(caption: &str, rows: Vec<Row>) -> RowGroup {
        RowGroup { caption: neutral(caption), rows }
    }
}

/// A table: groups of rows below the same columns.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Grid {
    /// How many columns say which row it is; the rest says what there is to say about it.
    pub labels: usize,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows.
    pub groups: Vec<RowGroup>,
}

impl Grid {
    /// A table in one group, each row named by its first column.
    pub fn new(columns: Vec<Column>, rows: Vec<Vec<Cell>>) -> Grid {
        Grid { labels: 1, columns, groups: vec![RowGroup::new("", rows.into_iter().map(Row::from).collect())] }
    }

    /// All rows.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.groups.iter().flat_map(|group| &group.rows)
    }

    /// The columns that people see: those that have something in them.
    pub fn for_people(&self) -> Vec<usize> {
        let filled = |index: usize| {
            self.rows().any(|row| {
                (row.instead.is_none() || index < self.labels)
                    && row.cells.get(index).is_some_and(|cell| !cell.is_empty())
            })
        };
        (0..self.columns.len()).filter(|&index| self.columns[index].is_for_people() && filled(index)).collect()
    }

    /// The same without bars, which only terminals draw.
    pub fn without_bars(&self) -> Vec<usize> {
        self.for_people().into_iter().filter(|&index| self.columns[index].fit != Fit::Bars).collect()
    }
}

/// A table in the making: beside each column stands what it has in every row.
pub struct Table<'a, T> {
    of: &'a [T],
    pub columns: Vec<Column>,
    rows: Vec<Row>,
}

impl<'a, T> Table<'a, T> {
    /// A table with a row for each of these.
    pub fn of(of: &'a [T]) -> Table<'a, T> {
        Table { of, columns: Vec::new(), rows: vec![Row::default(); of.len()] }
    }

    /// Adds a column.
    pub fn push(&mut self, column: Column, cell: impl Fn(&'a T) -> Cell) {
        self.columns.push(column);
        self.rows.iter_mut().zip(self.of).for_each(|(row, of)| row.cells.push(cell(of)));
    }

    /// With one more column.
    pub fn column(mut self, column: Column, cell: impl Fn(&'a T) -> Cell) -> Self {
        self.push(column, cell);
        self
    }

    /// With one more column that only programs get.
    pub fn data<V: Into<Value>>(self, key: &str, value: impl Fn(&'a T) -> Option<V>) -> Self {
        self.column(Column::data(key), |of| Cell::data(value(of)))
    }

    /// With what stands in place of figures, in rows that have none.
    pub fn instead(mut self, instead: impl Fn(&'a T) -> Option<(Style, String)>) -> Self {
        self.rows.iter_mut().zip(self.of).for_each(|(row, of)| row.instead = instead(of));
        self
    }

    /// All of it, each row named by its first column.
    pub fn grid(self) -> Grid {
        Grid { labels: 1, columns: self.columns, groups: vec![RowGroup { caption: String::new(), rows: self.rows }] }
    }

    /// The same with a group of rows for each kind of them, in the order of the first of each.
    pub fn grouped<K: Clone + Eq + Hash>(self, kind: impl Fn(&'a T) -> K, caption: impl Fn(&K) -> String) -> Grid {
        let groups = grouped(self.of.iter().map(kind).zip(self.rows)).into_iter();
        let groups = groups.map(|(kind, rows)| RowGroup { caption: neutral(&caption(&kind)), rows });
        Grid { labels: 1, columns: self.columns, groups: groups.collect() }
    }
}
