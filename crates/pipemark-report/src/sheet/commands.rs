//! The commands that `ab --save` measured, as a table.

use pipemark_model::{Document, SavedCommand, Unit};
use pipemark_show::{Cell, Column, Fit, Sheet, Table};
use pipemark_stats::estimate::from_runs;

/// Adds the table, if the document has commands.
pub fn add_commands(sheet: &mut Sheet, document: &Document) {
    let commands: Vec<&SavedCommand> = document.commands.iter().collect();
    if commands.is_empty() {
        return;
    }
    let runs = |command: &SavedCommand| command.sessions.iter().map(Vec::len).sum::<usize>();
    let time = |command: &SavedCommand| Some(from_runs(&command.figures("time", true)?.concat())?.median);
    let table = Table::of(&commands)
        .column(Column::words("name", "name").fit(Fit::Wrapped), |command| Cell::text(&command.name))
        .column(Column::words("version", "version"), |command| {
            Cell::text(command.version.as_deref().unwrap_or_default())
        })
        .column(Column::figures("sessions", "sessions"), |command| {
            Cell::of(command.sessions.len().to_string(), command.sessions.len())
        })
        .column(Column::figures("runs", "runs"), |command| Cell::of(runs(command).to_string(), runs(command)))
        .column(Column::figures("time", "time"), |command| {
            time(command).map_or_else(Cell::default, |time| Cell::of(Unit::Nanoseconds.show(time), time))
        });
    sheet.grid(table.grid());
}
