//! Warnings of trials as footnotes below their table: one letter for all rows that are warned of the same.

use std::mem;

use super::counted;
use crate::model::{Record, Warning};

/// A warning of more trials than this does not name them.
const MOST_NAMED: usize = 3;

/// A footnote and the rows it belongs to.
#[derive(Debug)]
struct Footnote<'a> {
    /// The worst case of the rows.
    warning: Warning,
    /// Their ids.
    rows: Vec<&'a str>,
}

impl Footnote<'_> {
    /// The worst case, and of which `places` it is the worst.
    fn sentence(&self, places: &str) -> String {
        let worst = self.rows.len() > 1 && magnitude(&self.warning).is_some();
        format!("{}{}", self.warning, if worst { format!(" (the worst of {places})") } else { String::new() })
    }
}

/// The footnotes of one table.
#[derive(Debug)]
pub(super) struct Footnotes<'a>(Vec<Footnote<'a>>);

impl<'a> Footnotes<'a> {
    /// One footnote per kind of warning where only its magnitude differs, else one per sentence.
    pub(super) fn of(records: &[&'a Record]) -> Footnotes<'a> {
        let mut notes: Vec<Footnote> = Vec::new();
        for (record, warning) in records.iter().flat_map(|record| record.warnings.iter().map(move |own| (record, own)))
        {
            let same = |note: &&mut Footnote| match (magnitude(warning), magnitude(&note.warning)) {
                (Some(_), Some(_)) => mem::discriminant(warning) == mem::discriminant(&note.warning),
                _ => warning.to_string() == note.warning.to_string(),
            };
            match notes.iter_mut().find(same) {
                Some(note) => {
                    if magnitude(warning) > magnitude(&note.warning) {
                        note.warning = warning.clone();
                    }
                    if !note.rows.contains(&record.id.as_str()) {
                        note.rows.push(&record.id);
                    }
                }
                None => notes.push(Footnote { warning: warning.clone(), rows: vec![&record.id] }),
            }
        }
        Footnotes(notes)
    }

    /// The letters of the footnotes that belong to this row.
    pub(super) fn letters(&self, record: &Record) -> String {
        let own = self.0.iter().enumerate().filter(|(_, note)| note.rows.contains(&record.id.as_str()));
        own.map(|(index, _)| letter(index)).collect::<Vec<_>>().join(",")
    }

    /// Letters and sentences.
    pub(super) fn lettered(&self) -> impl Iterator<Item = (String, String)> {
        let sentence = |note: &Footnote| note.sentence(&counted(note.rows.len(), "row"));
        self.0.iter().enumerate().map(move |(index, note)| (letter(index), sentence(note)))
    }

    /// Sentences that name the trials, for tables in which a trial is a cell.
    pub(super) fn named(&self, records: &[&Record], cell: &str, name: impl Fn(&Record) -> String) -> Vec<String> {
        let sentence = |note: &Footnote| {
            let mut names: Vec<String> = Vec::new();
            for record in records.iter().filter(|record| note.rows.contains(&record.id.as_str())) {
                let name = name(record);
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            let whose = if names.len() > MOST_NAMED { counted(note.rows.len(), cell) } else { names.join(", ") };
            format!("{whose}: {}", note.sentence("them"))
        };
        self.0.iter().map(sentence).collect()
    }
}

/// How bad a warning is, for those that differ from row to row only in this.
fn magnitude(warning: &Warning) -> Option<f64> {
    match warning {
        Warning::Wide { relative } => Some(*relative),
        Warning::Drift { change } => Some(change.abs()),
        Warning::Outliers { count, runs } => Some(f64::from(*count) / f64::from((*runs).max(1))),
        Warning::Steal { percent } | Warning::CpuPressure { percent } => Some(*percent),
        Warning::Load { busy } => Some(*busy),
        _ => None,
    }
}

/// The footnote's letter: a to z, then aa.
fn letter(index: usize) -> String {
    let last = char::from(b'a' + u8::try_from(index % 26).expect("below 26"));
    if index < 26 { last.to_string() } else { format!("{}{last}", letter(index / 26 - 1)) }
}
