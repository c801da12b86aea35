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

/// The claims by their answers, a line each.
pub(super) fn brief(document: &Document) -> Vec<Note> {
    let answers = answers(document);
    let note = |verdict: Verdict| {
        let ids: Vec<&str> =
            answers.iter().filter(|one| one.1.verdict == verdict).map(|(claim, _)| claim.id.as_str()).collect();
        (!ids.is_empty()).then(|| {
            let all = if ids.len() > 8 {
                format!("{} and {} more", ids[..8].join(", "), ids.len() - 8)
            } else {
                ids.join(", ")
            };
            Note::new(verdict.told(), Style::Plain, &format!("{} ({all})", ids.len()))
        })
    };
    VERDICTS.into_iter().filter_map(note).collect()
}
