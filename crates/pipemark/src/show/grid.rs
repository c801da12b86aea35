//! A plain list in columns, for what is no document of trials: the history, its trends, what `list` and `host` tell.

use std::io;

use ::csv::WriterBuilder;
use serde_json::{Map, Value};

use super::text::{Colour, Side, Style, abridge, bar, neutral, width, wrap};
use super::{Csv, Format, Json, Markdown, Table, json, markdown};

/// How results are written: the choices of `--format`.
#[derive(Debug, Clone, Copy)]
pub enum Form {
    /// For a person at a terminal.
    Table(Table),
    /// GitHub's Markdown.
    Markdown,
    /// Comma-separated values.
    Csv,
    /// One line of JSON.
    Json,
}

impl Form {
    /// The way to write a document in this form.
    pub fn of_documents(&self) -> &dyn Format {
        match self {
            Form::Table(table) => table,
            Form::Markdown => &Markdown,
            Form::Csv => &Csv,
            Form::Json => &Json,
        }
    }
}

/// How much room a column takes in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// What its widest cell needs.
    Needed,
    /// Less, where the table is too wide.
    Elastic,
    /// What is left of the line: for bars, which only tables have.
    Rest,
}

/// A column.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// What programs call it.
    pub name: &'static str,
    /// What stands above it; a column without is for programs only.
    pub heading: &'static str,
    /// Which side its cells keep to.
    pub side: Side,
    /// How much room it takes.
    pub room: Room,
}

/// What a cell says to people and to programs.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    text: String,
    value: Value,
    style: Style,
    /// For a bar: the ends of the interval and what lies between, as shares of the room.
    bar: Option<(f64, f64)>,
}

impl Cell {
    /// The same for both. Text from elsewhere is made harmless for people and left as it is for programs.
    pub fn text(text: impl Into<String>) -> Cell {
        let text = text.into();
        Cell { text: neutral(&text), value: Value::String(text), style: Style::Plain, bar: None }
    }

    /// Words for people, a value for programs.
    pub fn of(text: impl AsRef<str>, value: impl Into<Value>) -> Cell {
        Cell { text: neutral(text.as_ref()), value: value.into(), style: Style::Plain, bar: None }
    }

    /// Nothing.
    pub fn none() -> Cell {
        Cell::of("", Value::Null)
    }

    /// A bar that is certain up to the share `low` and may reach to `high`.
    pub fn bar(low: f64, high: f64) -> Cell {
        Cell { bar: Some((low, high)), style: Style::Bar, ..Cell::none() }
    }

    /// In another style.
    pub fn in_style(self, style: Style) -> Cell {
        Cell { style, ..self }
    }

    fn shown(&self, room: usize) -> String {
        match self.bar {
            None => abridge(&self.text, room),
            Some((low, high)) => {
                let whole = bar(high, room);
                // At most the terminal's width.
                let certain = (low.clamp(0.0, 1.0) * room as f64).round() as usize;
                whole.chars().enumerate().map(|(at, c)| if c == '█' && at >= certain { '▒' } else { c }).collect()
            }
        }
    }
}

/// A list in columns.
#[derive(Debug, Clone, Default)]
pub struct Grid {
    /// What it shows, for people; may be empty.
    pub title: String,
    /// The columns.
    pub columns: Vec<Column>,
    /// A cell for each column.
    pub rows: Vec<Vec<Cell>>,
    /// Sentences below it, for people.
    pub notes: Vec<String>,
}

/// Elastic columns keep this much.
const SHORTEST: usize = 6;
/// Shorter bars say nothing, longer ones say no more.
const BAR: std::ops::RangeInclusive<usize> = 8..=48;
const GAP: usize = 2;

impl Grid {
    /// Writes it.
    ///
    /// # Errors
    /// When `out` refuses the bytes.
    pub fn write(&self, form: Form, out: &mut dyn io::Write) -> io::Result<()> {
        match form {
            Form::Table(table) => self.table(table.width, table.colour, out),
            Form::Markdown => self.markdown(out),
            Form::Csv => self.csv(out),
            Form::Json => self.json(out),
        }
    }

    fn table(&self, room: usize, colour: Colour, out: &mut dyn io::Write) -> io::Result<()> {
        if !self.title.is_empty() {
            for line in wrap(&neutral(&self.title), room) {
                writeln!(out, "{}", colour.paint(Style::Heading, &line))?;
            }
        }
        let shown: Vec<(usize, usize)> = self.layout(room);
        let line = |cells: &dyn Fn(usize, usize) -> (String, Style)| {
            let mut line = String::new();
            for (position, &(index, room)) in shown.iter().enumerate() {
                let (text, style) = cells(index, room);
                let blanks = " ".repeat(room - width(&text).min(room));
                let painted = colour.paint(style, &text);
                line.push_str(&" ".repeat(if position == 0 { 0 } else { GAP }));
                match self.columns[index].side {
                    Side::Left => line.extend([painted, blanks]),
                    Side::Right => line.extend([blanks, painted]),
                }
            }
            line.truncate(line.trim_end().len());
            line
        };
        if !self.rows.is_empty() {
            let heading = line(&|index, room| (abridge(self.columns[index].heading, room), Style::Aside));
            writeln!(out, "{heading}")?;
        }
        for row in &self.rows {
            writeln!(out, "{}", line(&|index, room| (row[index].shown(room), row[index].style)))?;
        }
        for note in &self.notes {
            for line in wrap(&neutral(note), room) {
                writeln!(out, "{}", colour.paint(Style::Aside, &line))?;
            }
        }
        Ok(())
    }

    /// Which columns are shown, with the room each has. A column of which every cell is empty is left out.
    fn layout(&self, room: usize) -> Vec<(usize, usize)> {
        let mut slots: Vec<(usize, usize)> = self
            .people()
            .filter(|&index| self.rows.iter().any(|row| !row[index].text.is_empty() || row[index].bar.is_some()))
            .map(|index| match self.columns[index].room {
                Room::Rest => (index, *BAR.start()),
                _ => {
                    let widest = self.rows.iter().map(|row| width(&row[index].text)).max().unwrap_or(0);
                    (index, widest.max(width(self.columns[index].heading)))
                }
            })
            .collect();
        let taken =
            |slots: &[(usize, usize)]| slots.iter().map(|(_, width)| width + GAP).sum::<usize>().saturating_sub(GAP);
        while taken(&slots) > room {
            let elastic = slots.iter_mut().filter(|(index, _)| self.columns[*index].room == Room::Elastic);
            match elastic.max_by_key(|(_, width)| *width) {
                Some((_, width)) if *width > SHORTEST => *width -= 1,
                _ => break,
            }
        }
        let spare = room.saturating_sub(taken(&slots));
        if let Some((_, width)) = slots.iter_mut().find(|(index, _)| self.columns[*index].room == Room::Rest) {
            *width = (*width + spare).min(*BAR.end());
        }
        slots
    }

    /// The columns that people see.
    fn people(&self) -> impl Iterator<Item = usize> {
        (0..self.columns.len()).filter(|&index| !self.columns[index].heading.is_empty())
    }

    fn markdown(&self, out: &mut dyn io::Write) -> io::Result<()> {
        if !self.title.is_empty() {
            writeln!(out, "## {}\n", markdown::escaped(&neutral(&self.title)))?;
        }
        let columns: Vec<usize> = self.people().filter(|&index| self.columns[index].room != Room::Rest).collect();
        markdown::line(columns.iter().map(|&index| markdown::escaped(self.columns[index].heading)), out)?;
        let rule = |side| if side == Side::Right { "---:" } else { "---" };
        markdown::line(columns.iter().map(|&index| rule(self.columns[index].side).to_owned()), out)?;
        for row in &self.rows {
            markdown::line(columns.iter().map(|&index| markdown::escaped(&row[index].text)), out)?;
        }
        for note in &self.notes {
            writeln!(out, "\n{}", markdown::escaped(&neutral(note)))?;
        }
        Ok(())
    }

    /// The columns that programs see.
    fn programs(&self) -> impl Iterator<Item = (usize, &'static str)> {
        let columns = self.columns.iter().enumerate().filter(|(_, column)| column.room != Room::Rest);
        columns.map(|(index, column)| (index, column.name))
    }

    fn csv(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let mut writer = WriterBuilder::new().from_writer(out);
        writer.write_record(self.programs().map(|(_, name)| name))?;
        for row in &self.rows {
            let field = |value: &Value| match value {
                Value::Null => String::new(),
                Value::String(text) => neutral(text),
                other => other.to_string(),
            };
            writer.write_record(self.programs().map(|(index, _)| field(&row[index].value)))?;
        }
        writer.flush()
    }

    fn json(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let object = |row: &Vec<Cell>| {
            let fields = self.programs().map(|(index, name)| (name.to_owned(), row[index].value.clone()));
            Value::Object(fields.collect::<Map<_, _>>())
        };
        json::line(&Value::Array(self.rows.iter().map(object).collect()).to_string(), out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> Grid {
        let column = |name, heading, side, room| Column { name, heading, side, room };
        Grid {
            title: "Two".to_owned(),
            columns: vec![
                column("id", "id", Side::Right, Room::Needed),
                column("label", "label", Side::Left, Room::Elastic),
                column("secret", "", Side::Left, Room::Needed),
                column("bar", "figure", Side::Left, Room::Rest),
            ],
            rows: vec![
                vec![Cell::of("9", 9), Cell::text("a|b\x1b[31m"), Cell::text("s"), Cell::bar(0.5, 1.0)],
                vec![Cell::of("10", 10), Cell::text("x".repeat(90)), Cell::none(), Cell::bar(0.25, 0.25)],
            ],
            notes: vec!["A note.".to_owned()],
        }
    }

    fn written(form: Form) -> String {
        let mut out = Vec::new();
        grid().write(form, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn tables_fit_and_bars_show_the_interval() {
        let text = written(Form::Table(Table { width: 40, colour: Colour::Never }));
        assert!(text.lines().all(|line| width(line) <= 40), "{text}");
        assert!(text.contains("a|b\\u{1b}[31m") && text.contains("████▒▒▒▒") && !text.contains('s'), "{text}");
    }

    #[test]
    fn programs_get_values() {
        assert_eq!(written(Form::Csv).lines().nth(1), Some("9,a|b\\u{1b}[31m,s"));
        let json: Value = serde_json::from_str(&written(Form::Json)).unwrap();
        assert_eq!((&json[0]["id"], &json[0]["label"]), (&Value::from(9), &Value::from("a|b\x1b[31m")));
        assert!(json[1]["secret"].is_null() && json[0].get("bar").is_none());
    }

    #[test]
    fn markdown_has_as_many_cells_in_every_row() {
        let text = written(Form::Markdown).replace("\\|", "");
        let rows: Vec<usize> =
            text.lines().filter(|line| line.starts_with('|')).map(|line| line.matches('|').count()).collect();
        assert_eq!(rows, [3, 3, 3, 3], "{text}");
    }
}
