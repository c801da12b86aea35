//! A table of a document's claims and their answers.

use pipemark_model::{Answer, Claim, ClaimVerdict, Document, MAX_SHORT, names};
use pipemark_show::{Cell, Column, Fit, Note, Sheet, Style, Table};

use crate::evidence::decisive;
use crate::words::{figure_in_words, range};

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
    let wrapped = |heading| Column::words("", heading).fit(Fit::Wrapped);
    let table = Table::of(&answers)
        .column(Column::words("", "claim"), |(claim, _)| Cell::text(&claim.id))
        .column(Column::words("", "answer"), |(_, answer)| Cell::shown(answer.verdict.in_words()).style(style(answer)))
        .column(wrapped("says"), |(claim, _)| Cell::shown(format!("{} ({})", claim.says, claim.place)))
        .column(wrapped("published"), |(claim, _)| Cell::shown(claimed(claim)))
        .column(wrapped("decided by"), |(claim, answer)| Cell::shown(pair(document, claim, answer)))
        .column(wrapped("here"), |(_, answer)| Cell::shown(&answer.here));
    sheet.grid(table.grid());
    let text = "Of the intervals that decide an answer, at most one in twenty is expected to miss the true value \
                (docs/suites.md).";
    sheet.text(Style::Aside, [text]);
}

/// What was published, and the range in which the claim holds.
fn claimed(claim: &Claim) -> String {
    match (claim.published.as_str(), range(claim)) {
        (published, range) if range.is_empty() => published.to_owned(),
        ("", range) => format!("holds if {range}"),
        (published, range) => format!("{published}; holds if {range}"),
    }
}

/// Each claim in full, with the number that it has in [`list`]: its answer, its sentence, what was published, the trials
/// that decide it and the figures.
pub fn in_full(sheet: &mut Sheet, document: &Document) {
    let note = |(number, (claim, answer)): (usize, &(&Claim, &Answer))| {
        let decided = match pair(document, claim, answer) {
            pair if pair.is_empty() => String::new(),
            pair => format!(" Decided by {pair}."),
        };
        let published = match claimed(claim) {
            claimed if claimed.is_empty() => String::new(),
            claimed => format!(" Published: {claimed}."),
        };
        let (verdict, here) = (answer.verdict.in_words(), &answer.here);
        let text = format!("{verdict}: {} ({}){published}{decided} Here: {here}.", claim.says, claim.place);
        Note::new(&number.to_string(), style(answer), &text)
    };
    sheet.notes((1..).zip(&answers(document)).map(note).collect::<Vec<_>>());
}

/// One line for each claim: its number, its short sentence, the verdict and the figure that decides.
pub fn list(sheet: &mut Sheet, document: &Document) {
    let answers = answers(document);
    if answers.is_empty() {
        return;
    }
    let count = |verdicts: &[ClaimVerdict]| {
        let matching = answers.iter().filter(|one| verdicts.contains(&one.1.verdict)).count();
        (matching > 0).then(|| format!("{}: {matching}", verdicts[0].in_words()))
    };
    let counts: Vec<String> = ANSWERS.into_iter().filter_map(count).collect();
    sheet.heading(2, &format!("Claims ({})", counts.join(", ")));
    let numbered: Vec<(usize, &(&Claim, &Answer))> = (1..).zip(&answers).collect();
    let figure = |claim: &Claim, answer: &Answer| match answer.verdict {
        ClaimVerdict::NotMeasured => String::new(),
        _ => decisive(claim, answer).map_or_else(String::new, |one| figure_in_words(claim, one)),
    };
    let table = Table::of(&numbered)
        .column(Column::figures("", ""), |(number, _)| Cell::shown(number.to_string()))
        .column(Column::words("", ""), |(_, (claim, _))| Cell::text(short(claim)))
        .column(Column::words("", ""), |(_, (_, answer))| Cell::shown(answer.verdict.in_words()).style(style(answer)))
        .column(Column::figures("", ""), |(_, (claim, answer))| Cell::shown(figure(claim, answer)));
    sheet.grid(table.grid());
}

/// The claim's short sentence, or the beginning of the whole one.
fn short(claim: &Claim) -> String {
    match claim.short.as_str() {
        "" if claim.says.chars().count() > MAX_SHORT => claim.says.chars().take(MAX_SHORT - 1).chain(['…']).collect(),
        "" => claim.says.clone(),
        short => short.to_owned(),
    }
}

/// The pair of trials that decides an answer, by the settings in which they differ.
fn pair(document: &Document, claim: &Claim, answer: &Answer) -> String {
    let Some(one) = decisive(claim, answer) else { return String::new() };
    let record =
        |id: &String| document.trials.iter().find(|record| record.experiment == one.experiment && record.id == *id);
    let pair: Vec<_> = [Some(&one.trial), one.to.as_ref()].into_iter().flatten().filter_map(record).collect();
    let words = match pair.as_slice() {
        [own] => own.name.clone(),
        pair => names(&pair.iter().map(|record| &record.job).collect::<Vec<_>>(), &[]).join(" / "),
    };
    format!("{}: {words}", one.experiment)
}

fn style(answer: &Answer) -> Style {
    match answer.verdict {
        ClaimVerdict::Holds => Style::Plain,
        ClaimVerdict::CantTell | ClaimVerdict::NotMeasured => Style::Aside,
        _ => Style::Caution,
    }
}

#[cfg(test)]
mod tests {
    use pipemark_show::{Characters, Colour, Terminal};

    use super::*;

    #[test]
    fn a_claim_takes_one_line_and_its_details_are_in_full() {
        let claim = |nth: usize| Claim {
            id: format!("bw-lp-{nth}"),
            place: "Summary".to_owned(),
            says: "The large pipe makes bw_pipe up to 24 % slower on two CPUs, in all of its sizes.".to_owned(),
            short: "x".repeat(MAX_SHORT),
            published: "-24 %".to_owned(),
            low: Some(0.5),
            answer: Some(Answer {
                verdict: ClaimVerdict::NotMeasured,
                here: "runs of 40.0 MB are too short".to_owned(),
                evidence: Vec::new(),
            }),
            ..Claim::default()
        };
        let document = Document { claims: (0..25).map(claim).collect(), ..Document::default() };
        let shown = |fill: fn(&mut Sheet, &Document)| {
            let mut sheet = Sheet::default();
            fill(&mut sheet, &document);
            Terminal { width: 80, colour: Colour::Never, characters: Characters::Unicode }.render(&sheet)
        };
        let short = shown(list);
        assert!(short.lines().count() <= 40 && short.lines().all(|line| line.chars().count() <= 80), "{short}");
        assert!(!short.contains("bw-lp-"), "names are for JSON: {short}");
        let full = shown(in_full).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            full.contains("25 not measured: The large pipe makes")
                && full.contains("Published: -24 %; holds if at least"),
            "{full}"
        );
        assert!(full.contains("Here: runs of 40.0 MB are too short."), "{full}");
    }
}
