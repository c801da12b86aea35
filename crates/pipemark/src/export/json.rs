//! One line of JSON; docs/schema.json says what it may hold.

use serde_json::{Map, Value};

use crate::sheet::{Grid, Row, Sheet, hides};

/// JSON text and a line end.
pub fn line(text: &str) -> String {
    // JSON asks for escapes up to U+001F only, but terminals also act on U+0080 to U+009F. Outside of strings there are
    // no such characters.
    let mut safe = String::with_capacity(text.len() + 1);
    for c in text.chars() {
        match hides(c) {
            true => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| safe.push_str(&format!("\\u{unit:04x}"))),
            false => safe.push(c),
        }
    }
    safe + "\n"
}

/// The rows of a sheet's tables, as objects.
pub fn of_sheet(sheet: &Sheet) -> String {
    let object = |grid: &Grid, row: &Row| {
        let columns = grid.columns.iter().zip(&row.cells).filter(|(column, _)| column.is_for_programs());
        Value::Object(columns.map(|(column, cell)| (column.key.clone(), cell.value.clone())).collect::<Map<_, _>>())
    };
    let rows = sheet.grids().flat_map(|grid| grid.rows().map(move |row| object(grid, row)));
    line(&Value::Array(rows.collect()).to_string())
}
