//! `pipemark history list`: a line for each measurement.

use std::io;
use std::process::ExitCode;

use super::{ListOptions, opened, printed, shown_time};
use crate::show::{Cell, Column, Grid, Room, Side, Style};
use crate::store::{Entry, Outcome};

pub(super) fn list(options: &ListOptions) -> Result<ExitCode, String> {
    let failed = |error: crate::store::HistoryError| error.to_string();
    let filter = options.filter.filter(options.limit);
    let (entries, all) = match opened(&options.db).map_err(failed)? {
        Some(history) => (history.list(&filter).map_err(failed)?, history.count().map_err(failed)?),
        None => (Vec::new(), 0),
    };
    let mut grid = grid(&entries);
    if entries.len() < all as usize {
        grid.notes.push(format!("{} of {all}; --limit 0 and no filter list all", entries.len()));
    }
    printed(grid.write(options.format.form(), &mut io::stdout().lock()))
}

/// A row for each entry.
pub(super) fn grid(entries: &[Entry]) -> Grid {
    let column = |name, heading, side, room| Column { name, heading, side, room };
    Grid {
        columns: vec![
            column("id", "id", Side::Right, Room::Needed),
            column("started", "when", Side::Left, Room::Needed),
            column("suite", "suite", Side::Left, Room::Elastic),
            column("label", "label", Side::Left, Room::Elastic),
            column("host", "host", Side::Left, Room::Elastic),
            column("measured", "trials", Side::Right, Room::Needed),
            column("outcome", "outcome", Side::Left, Room::Needed),
            column("headline", "figures", Side::Left, Room::Elastic),
            column("trials", "", Side::Right, Room::Needed),
            column("title", "", Side::Left, Room::Needed),
            column("kernel", "", Side::Left, Room::Needed),
            column("cpu", "", Side::Left, Room::Needed),
            column("version", "", Side::Left, Room::Needed),
        ],
        rows: entries.iter().map(row).collect(),
        ..Grid::default()
    }
}

fn row(entry: &Entry) -> Vec<Cell> {
    let Entry { id, started, suite, title, label, host, kernel, cpu, version, trials, measured, outcome, headline } =
        entry;
    let counted = if measured == trials { trials.to_string() } else { format!("{measured}/{trials}") };
    let ended = match outcome {
        // What is as it should be needs no word.
        Outcome::Ok => Cell::of("", "ok"),
        Outcome::Partial => Cell::text("partial").in_style(Style::Caution),
        Outcome::Failed | Outcome::NotVerified => Cell::text(outcome.to_string()).in_style(Style::Failure),
    };
    vec![
        Cell::of(id.to_string(), id.number()),
        Cell::of(shown_time(*started), started.to_string()),
        Cell::text(suite),
        label.as_ref().map_or_else(Cell::none, Cell::text),
        Cell::text(host),
        Cell::of(counted, *measured),
        ended,
        Cell::text(headline),
        Cell::of("", *trials),
        Cell::text(title),
        Cell::text(kernel),
        Cell::text(cpu),
        Cell::text(version),
    ]
}
