//! A table of gains in the shape of the published one: rows by a parameter, per cent over the base, the published figure
//! beside each. The terminal's table and Markdown both lay this out.

use crate::model::{Document, Experiment, Gains, GainsBlock, Key, Record};
use crate::stats::gains::{Gain, Sign, record};

use super::experiment::missing;
use super::footnotes::Footnotes;
use super::matrix;
use super::text::{Side, counted, neutral, pad, width as columns_of};

/// What stands in the place of a figure that could not be measured; the reasons follow below.
const NONE: &str = "–";

/// A warning of more rows than this does not name them.
const MOST_NAMED: usize = 3;

/// An experiment as a table of gains.
pub(super) struct GainsTable {
    /// Parts with columns of their own.
    pub(super) parts: Vec<Part>,
    notes: Vec<String>,
}

/// A part of it: headings, and rows of as many cells; the first column is that of the labels.
pub(super) struct Part {
    pub(super) title: String,
    pub(super) headings: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

impl GainsTable {
    /// Lays out the records of an experiment; `None` if it repeats no such table.
    pub(super) fn of(document: &Document, experiment: &Experiment) -> Option<GainsTable> {
        let gains = experiment.gains.as_ref()?;
        let parts = gains.blocks.iter().map(|block| part(gains, block, experiment, document)).collect();
        Some(GainsTable { parts, notes: notes(gains, experiment, document) })
    }

    /// The headings and rows of a part, in lines of at most `room` columns: what does not fit beside the others goes below
    /// them, labels repeated.
    pub(super) fn lines(&self, part: &Part, room: usize) -> Vec<String> {
        let widths: Vec<usize> = (0..part.headings.len())
            .map(|column| {
                let cells = part.rows.iter().map(|row| columns_of(&row[column]));
                cells.chain([columns_of(&part.headings[column])]).max().unwrap_or(0)
            })
            .collect();
        let mut lines = Vec::new();
        let mut from = 1;
        while from < widths.len() {
            let mut used = widths[0];
            let fitting = widths[from..].iter().take_while(|width| {
                used += 2 + **width;
                used <= room
            });
            let to = from + fitting.count().max(1);
            for row in std::iter::once(&part.headings).chain(&part.rows) {
                let mut line = pad(&row[0], widths[0], Side::Left);
                for column in from..to {
                    line.push_str("  ");
                    line.push_str(&pad(&row[column], widths[column], Side::Right));
                }
                lines.push(line.trim_end().to_owned());
            }
            from = to;
        }
        lines
    }

    /// What the figures and marks mean, why cells are empty, and what to keep in mind.
    pub(super) fn notes(&self) -> &[String] {
        &self.notes
    }
}

fn part(gains: &Gains, block: &GainsBlock, experiment: &Experiment, document: &Document) -> Part {
    let mut headings = vec![neutral(&gains.corner), "base".to_owned()];
    headings.extend(block.columns.iter().map(|column| neutral(&column.name)));
    let row = |(index, label): (usize, &String)| {
        let cells: Vec<_> = block.columns.iter().map(|column| column.cells[index].as_ref()).collect();
        let base = cells.iter().flatten().find_map(|cell| base_of(&cell.trial, experiment, document));
        let base = base.and_then(|base| Some(matrix::figure(base, base.estimate.as_ref()?.throughput().median)));
        let mut row = vec![matrix::short(label), base.unwrap_or_else(|| NONE.to_owned())];
        row.extend(cells.into_iter().map(|cell| match cell {
            None => String::new(),
            Some(cell) => match Gain::of(cell, experiment, &document.trials) {
                Some(gain) => shown(&gain),
                None => NONE.to_owned(),
            },
        }));
        row
    };
    Part { title: neutral(&block.title), headings, rows: gains.rows.iter().enumerate().map(row).collect() }
}

/// The baseline of a trial, if it was measured.
fn base_of<'a>(trial: &str, experiment: &Experiment, document: &'a Document) -> Option<&'a Record> {
    let all = document.trials.iter().filter(|record| record.experiment == experiment.name);
    let id = all.clone().find(|record| record.id == trial)?.baseline.as_ref()?;
    record(id, experiment, &document.trials)
}

/// `~+3 (-18)`: the gain with its marks, and in brackets as published.
fn shown(gain: &Gain) -> String {
    let unclear = if gain.told() { "" } else { "~" };
    let reversed = if gain.sign() == Sign::TurnedRound { "!" } else { "" };
    let published = gain.published.map_or_else(String::new, |percent| format!(" ({})", signed(percent)));
    format!("{unclear}{}{reversed}{published}", signed(gain.percent))
}

/// Per cent with its sign: `+165`, `-2.58`.
fn signed(percent: f64) -> String {
    match percent {
        0.0 => "0".to_owned(),
        p if p.fract() == 0.0 || p.abs() >= 9.95 => format!("{p:+.0}"),
        p if p.abs() < 0.05 => format!("{p:+.2}"),
        p => format!("{p:+.1}"),
    }
}

fn notes(gains: &Gains, experiment: &Experiment, document: &Document) -> Vec<String> {
    let cells =
        || gains.blocks.iter().flat_map(|block| &block.columns).flat_map(|column| column.cells.iter().flatten());
    let shown: Vec<&Record> = document
        .trials
        .iter()
        .filter(|record| record.experiment == experiment.name && cells().any(|cell| cell.trial == record.id))
        .collect();
    let base = cells().find_map(|cell| base_of(&cell.trial, experiment, document));
    let base = base.map_or_else(String::new, |base| {
        let words = [Key::Send, Key::Recv, Key::Capacity].map(|key| format!("{key} {}", base.shown(key)));
        format!(" ({}; bytes per second: K, M, G are KiB/s and so on)", neutral(&words.join(", ")))
    });
    let mut notes = vec![format!(
        "per cent over the base{base}, taken within each round; in brackets as published: {}",
        neutral(&gains.source)
    )];
    let gained = || cells().filter_map(|cell| Gain::of(cell, experiment, &document.trials));
    if gained().any(|gain| !gain.told()) {
        notes.push(
            "~ the 95 % interval includes 0, or there are too few runs for one: not told from the base".to_owned(),
        );
    }
    if gained().any(|gain| gain.sign() == Sign::TurnedRound) {
        notes.push("! the other sign than published, for certain".to_owned());
    }
    let mut reasons: Vec<(String, usize)> = Vec::new();
    for reason in shown.iter().filter_map(|record| missing(record)) {
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, count)) => *count += 1,
            None => reasons.push((reason, 1)),
        }
    }
    notes.extend(reasons.into_iter().map(|(reason, count)| format!("{NONE} {}: {reason}", counted(count, "trial"))));
    for (rows, text) in Footnotes::of(&shown).sentences() {
        let whose = match rows.len() {
            many if many > MOST_NAMED => counted(many, "trial"),
            _ => {
                let named = shown.iter().filter(|record| rows.contains(&record.id.as_str()));
                named.map(|record| record.name.as_str()).collect::<Vec<_>>().join("; ")
            }
        };
        notes.push(format!("{}: {text}", neutral(&whose)));
    }
    notes
}
