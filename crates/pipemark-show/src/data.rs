//! The tables of a sheet as CSV and JSON.

use std::{io, iter};

use csv::WriterBuilder;
use serde_json::{Map, Value};

use pipemark_model::{is_control_or_invisible, neutral};

use crate::block::Sheet;
use crate::grid::{Grid, Row};

/// The tables of a sheet as CSV, all with the same columns.
///
/// # Errors
/// If the number of fields in a row differs from the number of columns, which is a bug.
pub fn sheet_as_csv(sheet: &Sheet) -> io::Result<String> {
    let rows = sheet.grids().enumerate().flat_map(|(index, grid)| {
        let columns = || grid.columns.iter().enumerate().filter(|(_, column)| column.is_in_data());
        let heading = columns().map(|(_, column)| column.key.clone()).collect();
        let row = |row: &Row| columns().map(|(index, _)| field(&row.cells[index].value)).collect();
        iter::once(heading).filter(|_| index == 0).chain(grid.rows().map(row)).collect::<Vec<_>>()
    });
    csv_text(rows)
}

/// Formats a JSON value as a CSV field. Control characters in text from other sources are escaped.
fn field(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => csv_field(text),
        other => other.to_string(),
    }
}

/// Text from other sources, on one line. An apostrophe is added if a spreadsheet would read the text as a formula.
pub fn csv_field(text: &str) -> String {
    let text = neutral(text);
    if text.starts_with(['=', '+', '-', '@', '|', '%', '\'']) { format!("'{text}") } else { text }
}

/// Rows as CSV text.
///
/// # Errors
/// If rows differ in their number of fields.
pub fn csv_text(rows: impl Iterator<Item = Vec<String>>) -> io::Result<String> {
    let mut writer = WriterBuilder::new().from_writer(Vec::new());
    for row in rows {
        writer.write_record(row).map_err(io::Error::other)?;
    }
    let bytes = writer.into_inner().map_err(io::Error::other)?;
    String::from_utf8(bytes).map_err(io::Error::other)
}

/// JSON text with a newline at the end. Characters that a terminal would interpret are escaped.
pub fn json_line(text: &str) -> String {
    // JSON requires escapes only up to U+001F, but terminals also interpret U+0080 to U+009F. Outside of strings, JSON
    // has no such characters.
    let mut safe = String::with_capacity(text.len() + 1);
    for c in text.chars() {
        // Newlines of indented JSON are kept. Within strings, newlines are already escaped.
        match is_control_or_invisible(c) && c != '\n' {
            true => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| safe.push_str(&format!("\\u{unit:04x}"))),
            false => safe.push(c),
        }
    }
    safe + "\n"
}

/// The rows of a sheet's tables, as JSON objects.
pub fn sheet_as_json(sheet: &Sheet) -> String {
    let object = |grid: &Grid, row: &Row| {
        let columns = grid.columns.iter().zip(&row.cells).filter(|(column, _)| column.is_in_data());
        Value::Object(columns.map(|(column, cell)| (column.key.clone(), cell.value.clone())).collect::<Map<_, _>>())
    };
    let rows = sheet.grids().flat_map(|grid| grid.rows().map(move |row| object(grid, row)));
    json_line(&Value::Array(rows.collect()).to_string())
}
