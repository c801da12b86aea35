//! Comma-separated values: a heading and a line for each row.

use std::io;

use ::csv::WriterBuilder;
use serde_json::Value;

use crate::sheet::{Sheet, neutral};

/// The tables of a sheet, which have the same columns.
///
/// # Errors
/// When a row has another number of fields than there are columns, which is an error of ours.
pub fn of_sheet(sheet: &Sheet) -> io::Result<String> {
    let mut writer = Writer::new();
    for (index, grid) in sheet.grids().enumerate() {
        let columns = || grid.columns.iter().enumerate().filter(|(_, column)| column.is_for_programs());
        if index == 0 {
            writer.row(columns().map(|(_, column)| column.key.clone()))?;
        }
        for row in grid.rows() {
            writer.row(columns().map(|(index, _)| field(&row.cells[index].value)))?;
        }
    }
    writer.finish()
}

/// A value of JSON as a field; text from elsewhere is harmless in it.
fn field(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => words(text),
        other => other.to_string(),
    }
}

/// Text from elsewhere: on one line, and with an apostrophe where a spreadsheet would take it for a formula.
fn words(text: &str) -> String {
    let text = neutral(text);
    if text.starts_with(['=', '+', '-', '@', '|', '%', '\'']) { format!("'{text}") } else { text }
}

/// Rows as text.
struct Writer(::csv::Writer<Vec<u8>>);

impl Writer {
    fn new() -> Writer {
        Writer(WriterBuilder::new().from_writer(Vec::new()))
    }

    fn row(&mut self, fields: impl Iterator<Item = String>) -> io::Result<()> {
        self.0.write_record(fields).map_err(io::Error::other)
    }

    fn finish(self) -> io::Result<String> {
        let bytes = self.0.into_inner().map_err(io::Error::other)?;
        String::from_utf8(bytes).map_err(io::Error::other)
    }
}
