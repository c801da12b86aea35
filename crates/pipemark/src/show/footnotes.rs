//! Warnings of rows as footnotes below their table: one letter for all rows that are warned of the same.

use std::mem;

use crate::model::{Record, Warning};

use super::text::{counted, neutral};

/// A footnote and the rows it belongs to.
#[derive(Debug)]
struct Footnote<'a> {
    /// The worst case of the rows, in words.
    warning: Warning,
    /// Their ids.
    rows: Vec<&'a str>,
}

impl Footnote<'_> {
    /// The worst case, and of which `places` it is the worst.
    fn sentence(&self, places: &str) -> String {
        let mut text = neutral(&self.warning.to_string());
        if self.rows.len() > 1 && magnitude(&self.warning).is_some() {
            text.push_str(&format!(" (the worst of {places})"));
        }
        text
    }
}

/// The footnotes of one table.
#[derive(Debug)]
pub(super) struct Footnotes<'a>(Vec<Footnote<'a>>);

impl<'a> Footnotes<'a> {
    /// One footnote per kind of warning where only its magnitude differs, else one per sentence.
    pub(super) fn of(records: &[&'a Record]) -> Footnotes<'a> {
        let mut notes: Vec<Footnote> = Vec::new();
        for record in records {
            for warning in &record.warnings {
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
        }
        Footnotes(notes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The letters of the footnotes that belong to this row.
    pub(super) fn letters(&self, record: &Record) -> String {
        let own = self.0.iter().enumerate().filter(|(_, note)| note.rows.contains(&record.id.as_str()));
        own.map(|(index, _)| letter(index)).collect::<Vec<_>>().join(",")
    }

    /// Letters and sentences.
    pub(super) fn notes(&self) -> Vec<(String, String)> {
        let notes = self
            .0
            .iter()
            .enumerate()
            .map(|(index, note)| (letter(index), note.sentence(&counted(note.rows.len(), "row"))));
        notes.collect()
    }

    /// The ids of the trials and the sentence of each, for tables in which a trial is a cell.
    pub(super) fn sentences(&self) -> impl Iterator<Item = (&[&'a str], String)> {
        self.0.iter().map(|note| (note.rows.as_slice(), note.sentence("them")))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_do_not_run_out() {
        assert_eq!([0, 25, 26, 27, 702].map(letter), ["a", "z", "aa", "ab", "aaa"]);
    }
}
