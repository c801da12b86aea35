//! Marks after figures, each with one meaning in all tables. Also warnings about trials, as sentences below their
//! table.

use std::collections::HashSet;
use std::mem;

use pipemark_model::{Document, Estimate, IMPORTED, Record, Warning, counted, group_by_key};
use pipemark_show::{Note, Style};

use crate::sheet::words::missing;

/// The largest number of trials that a warning names.
const MAX_NAMED: usize = 3;

/// The meaning of a mark after a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FigureMark {
    Read,
    Copied,
    Unseen,
    Wide,
    Few,
    Warned,
}

/// The mark of a row that has warnings below the table.
pub(super) const WARNED: &str = "!";

/// Each mark with its sign and its explanation, in order of display.
const MARKS: [(FigureMark, &str, &str); 6] = [
    (FigureMark::Read, "●", "checked every byte"),
    (FigureMark::Copied, "◐", "received, didn't check"),
    (FigureMark::Unseen, "○", "never received"),
    (FigureMark::Wide, "~", "the ends of the 95 % interval are more than a factor of two apart"),
    (FigureMark::Few, "?", "too few runs for an interval"),
    (FigureMark::Warned, WARNED, "see the note below the table"),
];

impl FigureMark {
    fn applies(self, record: &Record) -> bool {
        let Some(estimates) = record.estimate.as_ref().filter(|_| missing(record).is_none()) else { return false };
        let job = &record.job;
        let arrives = job.ends().is_none_or(|ends| ends.recv.touches()) && !job.link().is_null();
        match self {
            // Nothing is known of bytes that another tool moved.
            FigureMark::Read | FigureMark::Copied | FigureMark::Unseen
                if job.lines().is_some() || record.experiment == IMPORTED =>
            {
                false
            }
            FigureMark::Read => record.touched,
            FigureMark::Copied => !record.touched && arrives,
            FigureMark::Unseen => !record.touched && !arrives,
            // The interval's ends are more than a factor of two apart.
            FigureMark::Wide => {
                matches!(*estimates.headline(), Estimate { low: Some(low), high: Some(high), .. } if high > 2.0 * low)
            }
            FigureMark::Few => estimates.headline().low.is_none(),
            FigureMark::Warned => record.warnings.iter().any(|warning| !matches!(warning, Warning::Wide { .. })),
        }
    }
}

/// The signs of a row for those marks that `wanted` accepts.
fn signs(record: &Record, wanted: fn(FigureMark) -> bool) -> impl Iterator<Item = &'static str> {
    MARKS.into_iter().filter(move |(mark, ..)| wanted(*mark) && mark.applies(record)).map(|(_, sign, _)| sign)
}

/// All marks of a row, such as ` ● ~`.
pub(super) fn marks(record: &Record) -> String {
    signs(record, |_| true).map(|sign| format!(" {sign}")).collect()
}

/// The marks of a row that show uncertainty, such as `~`.
pub(super) fn uncertainty_marks(record: &Record) -> String {
    signs(record, |mark| matches!(mark, FigureMark::Wide | FigureMark::Few)).collect()
}

/// The mark that shows how the bytes were verified, such as `●`.
pub(super) fn of_bytes(record: &Record) -> &'static str {
    signs(record, |mark| matches!(mark, FigureMark::Read | FigureMark::Copied | FigureMark::Unseen))
        .next()
        .unwrap_or_default()
}

/// The legend of a document's tables.
pub(super) fn legend(document: &Document) -> Vec<Note> {
    // Memory copies have no row.
    let shown: Vec<&Record> = document.trials.iter().filter(|record| !record.job.is_memory_copy()).collect();
    let used = MARKS.into_iter().filter(|(mark, ..)| shown.iter().any(|record| mark.applies(record)));
    used.map(|(_, sign, meaning)| Note::new(sign, Style::Plain, meaning)).collect()
}

/// The legend of the marks in `signs`, one text for each.
pub(super) fn legend_in_brief(signs: &str) -> Vec<String> {
    let used = MARKS.into_iter().filter(|(_, sign, _)| signs.contains(sign));
    used.map(|(_, sign, meaning)| format!("{sign} {meaning}")).collect()
}

/// The warnings other than those that `~` stands for, without duplicates. Each is given once, with the worst case and
/// the names of the trials.
pub(super) fn warnings_by_trial(records: &[&Record], noun: &str, name: impl Fn(&Record) -> String) -> Vec<String> {
    let all = records.iter().flat_map(|record| record.warnings.iter().map(move |warning| (*record, warning)));
    let all = all.filter(|(_, warning)| !matches!(warning, Warning::Wide { .. }));
    // Warnings with a severity are the same if they are of one kind, and others if they have the same text.
    let key = |warning: &Warning| match magnitude(warning) {
        Some(_) => (Some(mem::discriminant(warning)), String::new()),
        None => (None, warning.to_string()),
    };
    let notes = group_by_key(all.map(|(record, warning)| (key(warning), (record, warning))));
    let sentence = |(_, found): (_, Vec<(&Record, &Warning)>)| {
        // Of equally severe warnings, the first counts.
        let worse = |one: &'_ Warning, other: &'_ Warning| magnitude(other) > magnitude(one);
        let warning =
            found.iter().map(|(_, warning)| *warning).reduce(|one, other| if worse(one, other) { other } else { one });
        let warning = warning.expect("a group has a member");
        let mut ids = HashSet::new();
        let rows: Vec<&Record> =
            found.iter().map(|(record, _)| *record).filter(|record| ids.insert(&record.id)).collect();
        let mut names: Vec<String> = rows.iter().map(|record| name(record)).collect();
        names.dedup();
        let whose = if names.len() > MAX_NAMED { counted(rows.len(), noun) } else { names.join("; ") };
        let worst = if rows.len() > 1 && magnitude(warning).is_some() { "in the worst, " } else { "" };
        format!("{whose}: {worst}{warning}")
    };
    notes.into_iter().map(sentence).collect()
}

/// The severity of a warning; `None` for kinds of warning without a severity.
fn magnitude(warning: &Warning) -> Option<f64> {
    match warning {
        Warning::Drift { change } => Some(change.abs()),
        Warning::Outliers { count: some, runs } | Warning::AboveCeiling { above: some, runs, .. }
            if !warning.invalidates_figures() =>
        {
            Some(f64::from(*some) / f64::from((*runs).max(1)))
        }
        Warning::Steal { percent } | Warning::CpuPressure { percent } => Some(*percent),
        Warning::Load { busy } => Some(*busy),
        Warning::Behind { sent, due } => Some(1.0 - *sent as f64 / *due as f64),
        Warning::Held { held, lines } => Some(*held as f64 / *lines as f64),
        _ => None,
    }
}
