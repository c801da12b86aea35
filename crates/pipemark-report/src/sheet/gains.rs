//! A table of gains in the published form: a row for each value of a parameter, and gains in per cent over the base,
//! each beside the published gain.

use pipemark_model::{Document, Gains, GainsBlock, GainsCell, Key, Record, counted, group_by_key};
use pipemark_show::{Cell, Column, Grid, Note, Row, RowGroup};
use pipemark_stats::family::Family;

use crate::sheet::experiment::MeasuredExperiment;
use crate::sheet::marks::warnings_by_trial;
use crate::sheet::matrix::{MISSING_FIGURE, abbreviate_size, headline};
use crate::sheet::words::missing;

/// A table for each block, and the notes below the tables; `None` if the experiment has no table of gains.
pub(super) fn grids(document: &Document, experiment: &MeasuredExperiment) -> Option<(Vec<Grid>, Vec<Note>)> {
    let gains = experiment.about.gains.as_ref()?;
    let grids = gains.blocks.iter().map(|block| part(gains, block, experiment, document)).collect();
    Some((grids, notes(gains, experiment, document).into_iter().map(Note::plain).collect()))
}

/// The largest number of published columns that fit side by side on a screen.
const COLUMNS_IN_BRIEF: usize = 6;

/// As many published blocks as fit side by side on a screen, and the notes below them. `None` if the experiment has no
/// table of gains.
pub(super) fn in_brief(document: &Document, experiment: &MeasuredExperiment) -> Option<(Grid, Vec<Note>)> {
    let gains = experiment.about.gains.as_ref()?;
    let published = |block: &&GainsBlock| {
        block.columns.iter().flat_map(|column| &column.cells).flatten().any(|cell| cell.published.is_some())
    };
    let mut blocks: Vec<&GainsBlock> = Vec::new();
    for block in gains.blocks.iter().filter(published) {
        let columns: usize = blocks.iter().map(|block| block.columns.len()).sum();
        if !blocks.is_empty() && columns + block.columns.len() > COLUMNS_IN_BRIEF {
            break;
        }
        blocks.push(block);
    }
    let mut columns = vec![Column::words("", &gains.corner)];
    // The heading of a block's first column names the block.
    for block in &blocks {
        for (nth, column) in block.columns.iter().enumerate() {
            let heading = match nth {
                0 if blocks.len() > 1 => format!("{}: {}", block.title, column.name),
                _ => column.name.clone(),
            };
            columns.push(Column::figures("", &heading));
        }
    }
    let all = || blocks.iter().flat_map(|block| &block.columns);
    let row = |(index, label): (usize, &String)| {
        let cell = |cell: &Option<GainsCell>| match cell.as_ref() {
            None => Cell::default(),
            Some(cell) => match Gain::of(cell, experiment.about, document) {
                Some(gain) => Cell::shown(gain.in_brief()),
                None => Cell::shown(MISSING_FIGURE),
            },
        };
        let cells = all().map(|column| cell(&column.cells[index]));
        Row::from([vec![Cell::shown(abbreviate_size(label))], cells.collect()].concat())
    };
    let rows = gains.rows.iter().enumerate().map(row).collect();
    let grid = Grid { labels: 1, columns, groups: vec![RowGroup::new("", rows)] };
    let marks = "= no significant gain (within 10 %); ? inconclusive; ≠ the sign differs from the published one";
    let note = format!("gain over the base in %: ours/published ({}); {marks}", gains.source);
    Some((grid, vec![Note::plain(note)]))
}

fn part(gains: &Gains, block: &GainsBlock, experiment: &MeasuredExperiment, document: &Document) -> Grid {
    let mut columns = vec![Column::words("", &gains.corner), Column::figures("", "base")];
    columns.extend(block.columns.iter().map(|column| Column::figures("", &column.name)));
    let row = |(index, label): (usize, &String)| {
        let cells: Vec<_> = block.columns.iter().map(|column| column.cells[index].as_ref()).collect();
        let base = cells.iter().flatten().find_map(|cell| base_of(&cell.trial, experiment, document));
        let base = base.and_then(headline).map(|(unit, estimate)| unit.brief(estimate.median));
        let mut row =
            vec![Cell::shown(abbreviate_size(label)), Cell::shown(base.unwrap_or_else(|| MISSING_FIGURE.to_owned()))];
        row.extend(cells.into_iter().map(|cell| match cell {
            None => Cell::default(),
            Some(cell) => match Gain::of(cell, experiment.about, document) {
                Some(gain) => Cell::shown(gain_text(&gain)),
                None => Cell::shown(MISSING_FIGURE),
            },
        }));
        Row::from(row)
    };
    let rows = gains.rows.iter().enumerate().map(row).collect();
    Grid { labels: 1, columns, groups: vec![RowGroup::new(&block.title, rows)] }
}

/// The marks of gains and their meanings.
pub(super) const MARKS: [(char, &str); 3] = [
    ('=', "no significant gain: the interval includes 0 and is within 10 % of it"),
    ('?', "inconclusive: the interval includes 0 and more than 10 %, or too few runs"),
    ('≠', "the sign differs significantly from the published one"),
];
/// A gain counts as zero if its whole interval is within this many per cent of zero.
const NO_GAIN: f64 = 10.0;

/// The baseline of a trial; `None` if it wasn't measured.
fn base_of<'a>(trial: &str, experiment: &MeasuredExperiment<'a>, document: &'a Document) -> Option<&'a Record> {
    let id = experiment.records.iter().find(|record| record.id == trial)?.baseline.as_ref()?;
    record(id, experiment.about, &document.trials)
}

/// The gain with its marks, and the published gain in brackets: `?+30 (-18)`.
fn gain_text(gain: &Gain) -> String {
    let published = gain.published.map_or_else(String::new, |percent| format!(" ({})", as_published(percent)));
    format!("{}{published}", gain.marked())
}

/// A published percentage with all its digits: `+165`, `-2.58`.
fn as_published(percent: f64) -> String {
    if percent == 0.0 && percent.is_sign_positive() { "0".to_owned() } else { format!("{percent:+}") }
}

/// A measured percentage with a sign: `+165`, `-2.6`.
fn signed_percent(percent: f64) -> String {
    match percent {
        0.0 => "0".to_owned(),
        p if p.fract() == 0.0 || p.abs() >= 9.95 => format!("{p:+.0}"),
        p if p.abs() < 0.05 => format!("{p:+.2}"),
        p => format!("{p:+.1}"),
    }
}

fn notes(gains: &Gains, experiment: &MeasuredExperiment, document: &Document) -> Vec<String> {
    let cells =
        || gains.blocks.iter().flat_map(|block| &block.columns).flat_map(|column| column.cells.iter().flatten());
    let shown = experiment.records.iter().filter(|record| cells().any(|cell| cell.trial == record.id));
    let shown: Vec<&Record> = shown.copied().collect();
    let base = cells().find_map(|cell| base_of(&cell.trial, experiment, document));
    let base = base.map_or_else(String::new, |base| {
        let words = [Key::Send, Key::Recv, Key::Capacity].map(|key| format!("{key} {}", base.shown(key)));
        format!(" ({}; bytes per second: K, M, G are KiB/s and so on)", words.join(", "))
    });
    let mut notes = vec![format!(
        "gains in per cent over the base{base}, computed within each round; published gains in brackets: {}",
        gains.source
    )];
    let gained = || cells().filter_map(|cell| Gain::of(cell, experiment.about, document));
    let used = |mark: &char| gained().any(|gain| gain.marked().contains(*mark));
    notes.extend(MARKS.iter().filter(|(mark, _)| used(mark)).map(|(mark, meaning)| format!("{mark} {meaning}")));
    let reasons = group_by_key(shown.iter().filter_map(|record| Some((missing(record)?, ()))));
    notes.extend(
        reasons.into_iter().map(|(reason, of)| format!("{MISSING_FIGURE} {}: {reason}", counted(of.len(), "trial"))),
    );
    notes.extend(warnings_by_trial(&shown, "trial", |record| record.name.clone()));
    notes
}

/// The ratio of a cell to its base, and the cell's text in the table; `None` if the cell wasn't measured.
pub(super) fn gain(cell: &GainsCell, about: &pipemark_model::Experiment, document: &Document) -> Option<(f64, String)> {
    Gain::of(cell, about, document).map(|gain| (1.0 + gain.percent / 100.0, gain_text(&gain)))
}

/// One cell of a table of gains.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Gain {
    /// The gain in per cent over the base: the median of the rounds.
    percent: f64,
    /// The interval in per cent that holds jointly for all cells of the table, or for all claims if a claim is about this
    /// gain; `None` if there are too few runs.
    adjusted: Option<(f64, f64)>,
    /// The published gain in per cent; `None` if none was published.
    published: Option<f64>,
}

impl Gain {
    /// The gain of a cell; `None` if its trial wasn't measured.
    fn of(cell: &GainsCell, experiment: &pipemark_model::Experiment, document: &Document) -> Option<Gain> {
        let ratio = record(&cell.trial, experiment, &document.trials)?.estimate.as_ref()?.ratio()?;
        let percent = |ratio: f64| (ratio - 1.0) * 100.0;
        let ends = |(low, high): (f64, f64)| (percent(low), percent(high));
        let columns = experiment.gains.iter().flat_map(|gains| &gains.blocks).flat_map(|block| &block.columns);
        let cells = columns.flat_map(|column| &column.cells).flatten().count();
        ratio.median.is_finite().then(|| Gain {
            percent: percent(ratio.median),
            adjusted: claimed_gain(cell, experiment, document)
                .unwrap_or_else(|| Family::of_independent(cells).interval(ratio).map(ends)),
            published: cell.published,
        })
    }

    /// The gain with its marks.
    fn marked(&self) -> String {
        let unclear = match self.differs() {
            true => "",
            false if self.is_negligible() => "=",
            false => "?",
        };
        let reversed = if self.is_reversed() { "≠" } else { "" };
        format!("{unclear}{}{reversed}", signed_percent(self.percent))
    }

    /// The gain with its marks, then the published gain: `?+30/-18`.
    fn in_brief(&self) -> String {
        let published = self.published.map_or_else(String::new, |percent| format!("/{}", as_published(percent)));
        format!("{}{published}", self.marked())
    }

    /// Whether the gain is significantly above or below zero.
    fn differs(&self) -> bool {
        self.adjusted.is_some_and(|(low, high)| low > 0.0 || high < 0.0)
    }

    /// Whether the whole interval is within [`NO_GAIN`] of zero.
    fn is_negligible(&self) -> bool {
        self.adjusted.is_some_and(|(low, high)| low > -NO_GAIN && high < NO_GAIN)
    }

    /// Whether the sign is significantly opposite to the published sign.
    fn is_reversed(&self) -> bool {
        self.differs() && self.published.is_some_and(|published| published * self.percent < 0.0)
    }
}

/// The interval of a gain in the answers to claims, so that the table and the answers agree; `None` if no claim is about
/// this gain.
fn claimed_gain(
    cell: &GainsCell,
    experiment: &pipemark_model::Experiment,
    document: &Document,
) -> Option<Option<(f64, f64)>> {
    let gains = document.claims.iter().filter(|claim| claim.figure == "gain" && claim.to.is_none());
    let mut evidence = gains.filter_map(|claim| claim.answer.as_ref()).flat_map(|answer| &answer.evidence);
    let own = evidence.find(|one| one.experiment == experiment.name && one.trial == cell.trial)?;
    Some(own.with_all_others)
}

/// The trial with the id `id`; `None` if it failed or wasn't measured.
fn record<'a>(id: &str, experiment: &pipemark_model::Experiment, records: &'a [Record]) -> Option<&'a Record> {
    let wanted = |record: &&Record| record.experiment == experiment.name && record.id == id;
    records.iter().find(wanted).filter(|record| record.measured().is_some())
}
