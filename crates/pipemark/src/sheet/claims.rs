//! What a document claims, beside what was measured.

use super::{Cell, Column, Fit, Grid, Note, Sheet, Style};
use crate::findings::claims::range;
use crate::model::{Answer, Claim, Document, Verdict};

const VERDICTS: [Verdict; 4] = [Verdict::Holds, Verdict::DoesntHold, Verdict::Reversed, Verdict::CantTell];

fn answers(document: &Document) -> Vec<(&Claim, &Answer)> {
    document.claims.iter().filter_map(|claim| Some((claim, claim.answer.as_ref()?))).collect()
}

/// A row for each claim; `run` is whose answers these are.
pub(super) fn table(sheet: &mut Sheet, document: &Document, run: &str) {
    let answers = answers(document);
    if answers.is_empty() {
        return;
    }
    sheet.heading(2, &if run.is_empty() { "Claims".to_owned() } else { format!("Claims, answered by {run}") });
    let row = |(claim, answer): (&Claim, &Answer)| {
        let style = match answer.verdict {
            Verdict::Holds => Style::Plain,
            Verdict::CantTell => Style::Aside,
            _ => Style::Caution,
        };
        let claimed = match (claim.published.as_str(), range(claim)) {
            ("", range) => range,
            (published, range) if range.is_empty() => published.to_owned(),
            (published, range) => format!("{published}; asked: {range}"),
        };
        vec![
            Cell::text(&claim.id),
            Cell::shown(answer.verdict.told()).style(style),
            Cell::shown(format!("{} ({})", claim.says, claim.place)),
            Cell::shown(claimed),
            Cell::shown(&answer.here),
        ]
    };
    let wrapped = |heading| Column::words("", heading).fit(Fit::Wrapped);
    let columns = vec![
        Column::words("", "claim"),
        Column::words("", "answer"),
        wrapped("says"),
        wrapped("published"),
        wrapped("here"),
    ];
    sheet.grid(Grid::new(columns, answers.into_iter().map(row).collect()));
    let text = "An answer is certain where the interval, widened until those of all claims hold together, lies within or outside \
                of the range asked for.";
    sheet.text(Style::Aside, [text]);
}

/// How many claims have each answer, and the first that didn't hold in their own words.
pub(super) fn brief(document: &Document) -> Vec<Note> {
    const WORDED: usize = 2;
    let answers = answers(document);
    let note = |verdict: Verdict| {
        let says: Vec<&str> =
            answers.iter().filter(|one| one.1.verdict == verdict).map(|(claim, _)| claim.says.as_str()).collect();
        let count = match says.len() {
            0 => return None,
            1 => "1 claim".to_owned(),
            count => format!("{count} claims"),
        };
        let worded = if matches!(verdict, Verdict::DoesntHold | Verdict::Reversed) { WORDED } else { 0 };
        let mut text = count;
        for (place, says) in says.iter().take(worded).enumerate() {
            text += if place == 0 { ": " } else { " " };
            text += says;
        }
        if worded > 0 && says.len() > worded {
            text += " …";
        }
        Some(Note::new(verdict.told(), Style::Plain, &text))
    };
    VERDICTS.into_iter().filter_map(note).collect()
}
