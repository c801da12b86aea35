//! Text in two columns, a name and what there is to say about it, that fits a terminal of 80 columns.

use std::io;

use comfy_table::{ColumnConstraint, ContentArrangement, Table, Width, presets};

const WIDTH: u16 = 80;
/// Before the names.
const INDENT: u16 = 2;
/// Between name and text.
const GAP: u16 = 2;

/// A name and the text beside it.
pub type Row = (String, String);

/// Writes the rows below a heading; the second column starts at the same place for all rows with the same `names`.
pub fn write(out: &mut dyn io::Write, heading: &str, names: u16, rows: &[Row]) -> io::Result<()> {
    writeln!(out, "{heading}")?;
    if rows.is_empty() {
        return writeln!(out, "  none");
    }
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH);
    for (name, text) in rows {
        table.add_row([name, text]);
    }
    let columns = [(names, (INDENT, GAP)), (WIDTH - names - INDENT - GAP, (0, 0))];
    for (column, (width, padding)) in table.column_iter_mut().zip(columns) {
        column.set_padding(padding);
        column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(width + padding.0 + padding.1)));
    }
    writeln!(out, "{}", table.trim_fmt())
}

/// The width of the longest name.
pub fn widest<'a>(names: impl IntoIterator<Item = &'a str>) -> u16 {
    // A name that takes more than half of the line is wrapped as the text is.
    let longest = names.into_iter().map(|name| name.chars().count()).max().unwrap_or(0);
    u16::try_from(longest).unwrap_or(u16::MAX).min(WIDTH / 2)
}
