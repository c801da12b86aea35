//! A table with one parameter across the top: a row for each combination of the others, the best of each column marked.
//! The terminal's table and Markdown both lay this out.

use crate::model::{Document, Estimate, Experiment, Key, LinkKind, Record};

use super::experiment::missing;
use super::footnotes::Footnotes;
use super::text::{Side, abridge, counted, digits, neutral, pad, width as columns_of};

/// What stands in the place of a figure that could not be measured; the reasons follow below.
const NONE: &str = "–";

/// What a row is told by; the rest of what varies makes blocks.
const ROW: [Key; 3] = [Key::Link, Key::Send, Key::Recv];

/// The longest label of a row in a terminal.
const LONGEST_LABEL: usize = 24;

/// A warning of more rows than this does not name them.
const MOST_NAMED: usize = 3;

/// A figure, and whether none of its column is better for certain.
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) best: bool,
}

/// A mechanism; a cell for each column, `None` where the suite orders no trial.
pub(super) struct Row {
    pub(super) label: String,
    pub(super) cells: Vec<Option<Cell>>,
}

/// Rows that may be ranked together.
pub(super) struct Block {
    /// What they have in common, in words; empty for a single block.
    pub(super) heading: String,
    pub(super) rows: Vec<Row>,
}

/// An experiment as a matrix.
pub(super) struct Matrix {
    /// What stands above the labels.
    pub(super) corner: String,
    /// The values of the parameter across the top.
    pub(super) columns: Vec<String>,
    pub(super) blocks: Vec<Block>,
    latency: bool,
    notes: Vec<String>,
}

impl Matrix {
    /// Lays out the records of an experiment; `None` if it does not ask for it.
    pub(super) fn of(document: &Document, experiment: &Experiment) -> Option<Matrix> {
        let across = experiment.across?;
        let records: Vec<&Record> =
            document.trials.iter().filter(|record| record.experiment == experiment.name).collect();
        let differs = |key: Key| records.iter().any(|record| record.shown(key) != records[0].shown(key));
        let apart: Vec<Key> = experiment
            .varies
            .iter()
            .copied()
            // A link that moves nothing proves nothing either, and is not ranked with the others anyway.
            .filter(|key| !matches!(key, Key::Total | Key::Time | Key::Verify))
            .filter(|key| *key != across && !ROW.contains(key) && differs(*key))
            .collect();
        let mut columns: Vec<String> = Vec::new();
        let mut groups: Vec<(String, Vec<&Record>)> = Vec::new();
        for &record in &records {
            let column = record.shown(across);
            if !columns.contains(&column) {
                columns.push(column);
            }
            let words: Vec<String> = apart.iter().map(|key| format!("{key} {}", record.shown(*key))).collect();
            let heading = neutral(&words.join(" · "));
            match groups.iter_mut().find(|(known, _)| *known == heading) {
                Some((_, group)) => group.push(record),
                None => groups.push((heading, vec![record])),
            }
        }
        let blocks = groups.into_iter().map(|(heading, group)| block(heading, &group, across, &columns)).collect();
        Some(Matrix {
            corner: format!("by {across}"),
            columns: columns.iter().map(|column| short(column)).collect(),
            blocks,
            latency: records.iter().any(|record| is_latency(record)),
            notes: notes(&records),
        })
    }

    /// The heading of the columns and a line for each row of `block`, in lines of at most `room` columns: what does not fit
    /// beside the others goes below them, labels repeated.
    pub(super) fn lines(&self, block: &Block, room: usize) -> Vec<String> {
        let text = |cell: &Option<Cell>| {
            cell.as_ref().map_or_else(String::new, |cell| format!("{}{}", cell.text, if cell.best { "*" } else { " " }))
        };
        let labels = self.blocks.iter().flat_map(|block| &block.rows).map(|row| columns_of(&row.label));
        let first = labels.max().unwrap_or(0).min(LONGEST_LABEL).max(columns_of(&self.corner));
        // Blocks stand below each other, so their columns do as well.
        let rows = || self.blocks.iter().flat_map(|block| &block.rows);
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|column| {
                let cells = rows().map(|row| columns_of(&text(&row.cells[column])));
                cells.max().unwrap_or(0).max(columns_of(&self.columns[column]) + 1)
            })
            .collect();
        let mut lines = Vec::new();
        let mut from = 0;
        while from < widths.len() {
            let mut used = first;
            let fitting = widths[from..].iter().take_while(|width| {
                used += 1 + **width;
                used <= room
            });
            let to = from + fitting.count().max(1);
            let line = |label: &str, cell: &dyn Fn(usize) -> String| {
                let mut line = pad(&abridge(label, first), first, Side::Left);
                for (column, width) in widths.iter().enumerate().take(to).skip(from) {
                    line.push(' ');
                    line.push_str(&pad(&cell(column), *width, Side::Right));
                }
                line.trim_end().to_owned()
            };
            lines.push(line(&self.corner, &|column| format!("{} ", self.columns[column])));
            lines.extend(block.rows.iter().map(|row| line(&row.label, &|column| text(&row.cells[column]))));
            from = to;
        }
        lines
    }

    /// What the figures and `mark` mean, why cells are empty, and what to keep in mind.
    pub(super) fn notes(&self, mark: &str) -> Vec<String> {
        let meaning = if self.latency {
            format!(
                "median round trip in seconds (n, µ, m); {mark} the shortest of the column, or not to be told from it"
            )
        } else {
            format!(
                "bytes per second (K, M, G, T: KiB/s and so on); {mark} the best of the column, or not to be told from it"
            )
        };
        [vec![meaning], self.notes.clone()].concat()
    }
}

fn block(heading: String, records: &[&Record], across: Key, columns: &[String]) -> Block {
    let mut rows: Vec<(String, Vec<Option<&Record>>)> = Vec::new();
    for &record in records {
        let label = label(record);
        let Some(column) = columns.iter().position(|column| *column == record.shown(across)) else { continue };
        let index = rows.iter().position(|(known, _)| *known == label).unwrap_or_else(|| {
            rows.push((label, vec![None; columns.len()]));
            rows.len() - 1
        });
        rows[index].1[column] = Some(record);
    }
    let best: Vec<Option<&Record>> = (0..columns.len())
        .map(|column| {
            let measured = rows.iter().filter_map(|(_, cells)| cells[column]).filter(|record| ranked(record));
            measured.reduce(|best, other| if better(other, best) { other } else { best })
        })
        .collect();
    let cell = |record: &Record, column: usize| match headline(record) {
        None => Cell { text: NONE.to_owned(), best: false },
        Some(estimate) => Cell {
            text: figure(record, estimate.median),
            best: best[column].is_some_and(|best| ranked(record) && as_good(headline(best), headline(record))),
        },
    };
    let row = |(label, records): (String, Vec<Option<&Record>>)| Row {
        label,
        cells: records
            .into_iter()
            .enumerate()
            .map(|(column, record)| record.map(|record| cell(record, column)))
            .collect(),
    };
    Block { heading, rows: rows.into_iter().map(row).collect() }
}

/// The mechanism, safe for a terminal.
fn label(record: &Record) -> String {
    neutral(&record.mechanism())
}

/// What the cell shows: the median round trip, or throughput.
fn headline(record: &Record) -> Option<&Estimate> {
    if missing(record).is_some() {
        return None;
    }
    Some(record.estimate.as_ref()?.headline())
}

fn is_latency(record: &Record) -> bool {
    record.estimate.as_ref().is_some_and(|estimate| estimate.round_trip().is_some())
}

/// What moves nothing wins nothing.
fn ranked(record: &Record) -> bool {
    record.job.link().transfers() && headline(record).is_some()
}

/// Throughput is better when it is high, a round trip when it is short.
fn better(one: &Record, other: &Record) -> bool {
    match (headline(one), headline(other)) {
        (Some(this), Some(that)) if is_latency(one) => this.median < that.median,
        (Some(this), Some(that)) => this.median > that.median,
        _ => false,
    }
}

/// Whether the intervals leave open which of the two is better.
fn as_good(best: Option<&Estimate>, other: Option<&Estimate>) -> bool {
    let (Some(best), Some(other)) = (best, other) else { return false };
    best.median == other.median
        || matches!((best.low, other.high), (Some(low), Some(high)) if high >= low)
            && matches!((best.high, other.low), (Some(high), Some(low)) if low <= high)
}

/// Three digits and a unit in five columns: `12.3G` bytes per second, `4.56µ` seconds.
pub(super) fn figure(record: &Record, value: f64) -> String {
    let bytes = |power: i32| 1024f64.powi(power);
    let steps: &[(f64, &str)] = if is_latency(record) {
        &[(1e9, "s"), (1e6, "m"), (1e3, "µ"), (1.0, "n")]
    } else {
        &[(bytes(4), "T"), (bytes(3), "G"), (bytes(2), "M"), (bytes(1), "K"), (1.0, "")]
    };
    let (unit, name) = steps.iter().find(|(unit, _)| value >= *unit).unwrap_or(&steps[steps.len() - 1]);
    format!("{}{name}", digits(value / unit))
}

/// `64 KiB` as `64k`: a column is narrow.
pub(super) fn short(value: &str) -> String {
    neutral(&value.replace(" KiB", "k").replace(" MiB", "M").replace(" GiB", "G").replace(" B", ""))
}

fn notes(records: &[&Record]) -> Vec<String> {
    let mut notes = Vec::new();
    let null = |record: &&Record| record.job.link() == LinkKind::Null && missing(record).is_none();
    if records.iter().any(null) {
        notes.push("null transfers nothing, it is what the harness itself costs; not ranked".to_owned());
    }
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    for record in records {
        if let Some(reason) = missing(record) {
            let label = label(record);
            match reasons.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, labels)) if labels.contains(&label) => {}
                Some((_, labels)) => labels.push(label),
                None => reasons.push((reason, vec![label])),
            }
        }
    }
    notes.extend(reasons.into_iter().map(|(reason, labels)| format!("{NONE} {}: {reason}", labels.join(", "))));
    for (rows, text) in Footnotes::of(records).sentences() {
        let mut labels: Vec<String> =
            records.iter().filter(|record| rows.contains(&record.id.as_str())).map(|record| label(record)).collect();
        labels.dedup();
        labels.sort_unstable();
        labels.dedup();
        let whose = if labels.len() > MOST_NAMED { counted(rows.len(), "cell") } else { labels.join(", ") };
        notes.push(format!("{whose}: {text}"));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;

    fn matrix(name: &str) -> Matrix {
        let document = fixture::ipc();
        let experiment = document.experiments.iter().find(|experiment| experiment.name == name).unwrap();
        Matrix::of(&document, experiment).unwrap()
    }

    fn best(matrix: &Matrix, block: usize, column: usize) -> Vec<&str> {
        let marked = |row: &&Row| row.cells[column].as_ref().is_some_and(|cell| cell.best);
        matrix.blocks[block].rows.iter().filter(marked).map(|row| row.label.as_str()).collect()
    }

    #[test]
    fn the_best_of_each_column_is_marked() {
        let streams = matrix("throughput");
        assert_eq!(best(&streams, 0, 0), ["shm in-place"]);
        assert_eq!(best(&streams, 1, 2), ["shm", "shm in-place"], "intervals overlap");
        let trips = matrix("latency");
        assert_eq!(best(&trips, 0, 0), ["pipe"], "the shortest, and not null");
    }

    #[test]
    fn only_experiments_that_ask_for_it_have_one() {
        let document = fixture::ipc();
        let gap = document.experiments.iter().find(|experiment| experiment.name == "gap").unwrap();
        assert!(Matrix::of(&document, gap).is_none());
    }

    #[test]
    fn what_does_not_fit_goes_below() {
        let matrix = matrix("throughput");
        let rows = matrix.blocks[0].rows.len() + 1;
        assert_eq!(matrix.lines(&matrix.blocks[0], 76).len(), rows);
        let narrow = matrix.lines(&matrix.blocks[0], 36);
        assert!(narrow.len() > rows && narrow.len().is_multiple_of(rows), "{narrow:#?}");
        assert!(narrow.iter().all(|line| columns_of(line) <= 36), "{narrow:#?}");
    }

    #[test]
    fn figures_fit_five_columns() {
        let document = fixture::ipc();
        let stream = document.trials.iter().find(|record| record.estimate.is_some() && !is_latency(record)).unwrap();
        let trip = document.trials.iter().find(|record| is_latency(record)).unwrap();
        for value in [1.0, 999.0, 1023.0 * 1024.0, 9.994e9, 8.7e13] {
            for record in [stream, trip] {
                assert!(columns_of(&figure(record, value)) <= 6, "{}", figure(record, value));
            }
        }
        assert_eq!(
            (figure(stream, 12.3 * 1024f64.powi(3)).as_str(), figure(trip, 4_560.0).as_str()),
            ("12.3G", "4.56µ")
        );
    }
}
