//! One line of JSON; docs/schema.json says what it may hold.

use std::io;

use serde_json::{Map, Value};

use crate::model::Document;
use crate::sheet::{Grid, Row, Sheet, hides};

/// The whole document.
///
/// # Errors
/// `InvalidData` when a figure is not a number: JSON has no word for that, and what is written has to read back.
pub fn json(document: &Document) -> io::Result<String> {
    let text = serde_json::to_string(document)?;
    // serde_json writes NaN as null, which no figure may be.
    serde_json::from_str::<Document>(&text).map_err(|error| {
        io::Error::new(io::ErrorKind::InvalidData, format!("a figure of the document is not a number ({error})"))
    })?;
    Ok(line(&text))
}

/// JSON text and a line end.
pub fn line(text: &str) -> String {
    // JSON asks for escapes up to U+001F only, but terminals also act on U+0080 to U+009F. Outside of strings there are
    // no such characters.
    let mut safe = String::with_capacity(text.len() + 1);
    for c in text.chars() {
        // A line end is between values, where JSON is laid out; in strings it is escaped already.
        match hides(c) && c != '\n' {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sheet::fixture;

    #[test]
    fn what_is_written_reads_back() {
        for (name, document) in fixture::all() {
            let text = json(&document).unwrap();
            assert_eq!(serde_json::from_str::<Document>(&text).unwrap(), document, "{name}");
            assert_eq!(text.matches('\n').count(), 1, "{name}: one line");
            assert!(!text.trim_end().contains(hides), "{name}: a terminal would act on it");
        }
    }

    #[test]
    fn a_figure_that_is_no_number_is_an_error() {
        for figure in [f64::NAN, f64::INFINITY] {
            let mut document = fixture::quick();
            let estimates = document.trials[0].estimate.as_mut().unwrap();
            let throughput = *estimates.throughput();
            estimates.set(crate::model::Figure::Throughput, crate::model::Estimate { median: figure, ..throughput });
            let error = json(&document).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        }
    }
}
