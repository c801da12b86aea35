//! A table of a document's claims and their answers.

use pipemark_model::{Answer, Claim, ClaimVerdict, Document, counted};
use pipemark_show::{Cell, Column, Fit, Note, Sheet, Style, Table};

use crate::answers::range;

/// The groups of verdicts that are counted together.
const ANSWERS: [&[ClaimVerdict]; 4] = [
    &[ClaimVerdict::Holds],
    &[ClaimVerdict::DoesntHold, ClaimVerdict::Reversed],
    &[ClaimVerdict::CantTell],
    &[ClaimVerdict::NotMeasured],
];

fn answers(document: &Document) -> Vec<(&Claim, &Answer)> {
    document.claims.iter().filter_map(|claim| Some((claim, claim.answer.as_ref()?))).collect()
}

/// Adds a table with a row for each claim. `run` is the name of the run that answers the claims.
pub fn table(sheet: &mut Sheet, document: &Document, run: &str) {
    let answers = answers(document);
    if answers.is_empty() {
        return;
    }
    sheet.heading(2, &if run.is_empty() { "Claims".to_owned() } else { format!("Claims, answered by {run}") });
    let style = |answer: &Answer| match answer.verdict {
        ClaimVerdict::Holds => Style::Plain,
        ClaimVerdict::CantTell | ClaimVerdict::NotMeasured => Style::Aside,
        _ => Style::Caution,
    };
    let claimed = |claim: &Claim| match (claim.published.as_str(), range(claim)) {
        (published, range) if range.is_empty() => published.to_owned(),
        ("", range) => format!("holds if {range}"),
        (published, range) => format!("{published}; holds if {range}"),
    };
    let wrapped = |heading| Column::words("", heading).fit(Fit::Wrapped);
    let table = Table::of(&answers)
        .column(Column::words("", "claim"), |(claim, _)| Cell::text(&claim.id))
        .column(Column::words("", "answer"), |(_, answer)| Cell::shown(answer.verdict.in_words()).style(style(answer)))
        .column(wrapped("says"), |(claim, _)| Cell::shown(format!("{} ({})", claim.says, claim.place)))
        .column(wrapped("published"), |(claim, _)| Cell::shown(claimed(claim)))
        .column(wrapped("here"), |(_, answer)| Cell::shown(&answer.here));
    sheet.grid(table.grid());
    let text = "Of the intervals that decide an answer, at most one in twenty is expected to miss the true value \
                (docs/suites.md).";
    sheet.text(Style::Aside, [text]);
}

/// The number of claims with each answer, on one line; `None` without claims.
pub fn counts(document: &Document) -> Option<Note> {
    let answers = answers(document);
    let count = |verdicts: &[ClaimVerdict]| {
        let matching = answers.iter().filter(|one| verdicts.contains(&one.1.verdict)).count();
        (matching > 0).then(|| format!("{}: {matching}", verdicts[0].in_words()))
    };
    let counts: Vec<String> = ANSWERS.into_iter().filter_map(count).collect();
    (!counts.is_empty()).then(|| Note::plain(counts.join(" · ")))
}

/// The number of claims with each answer, then the texts of the first claims that don't hold.
pub fn brief(document: &Document) -> Vec<Note> {
    const WORDED: usize = 2;
    let answers = answers(document);
    let note = |verdicts: &[ClaimVerdict]| {
        let matching = answers.iter().filter(|one| verdicts.contains(&one.1.verdict));
        let says: Vec<&str> = matching.map(|(claim, _)| claim.says.as_str()).collect();
        let count = counted(says.len(), "claim");
        let text = match verdicts[0] {
            ClaimVerdict::Holds | ClaimVerdict::CantTell | ClaimVerdict::NotMeasured => count,
            _ if says.len() <= WORDED => format!("{count}: {}", says.join(" ")),
            _ => format!("{count}: {} …", says[..WORDED].join(" ")),
        };
        (!says.is_empty()).then(|| Note::new(verdicts[0].in_words(), Style::Plain, &text))
    };
    ANSWERS.into_iter().filter_map(note).collect()
}
