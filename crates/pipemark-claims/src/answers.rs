//! Compares a document's claims with the measurements, by direction and by size.
//!
//! A claim is a range. The claim holds if the measured interval lies within the range, and fails if the interval lies
//! outside. A claim of *no difference* is a range around zero: it holds only if both ends of the interval are inside
//! the range, so a wide interval decides nothing. Because every claim gets an answer, the share of wrong answers is
//! limited: of the trials that decide a claim, at most one in twenty is expected to decide wrongly (the false coverage
//! rate of Benjamini and Yekutieli, 2005).
//!
//! Each trial is compared with one that differs in what the claim is about and in nothing else. If a figure includes the
//! start of the processes, runs in which the start takes more than 5 % of the time don't answer the claim, whatever
//! their scale. Nor do runs of a few milliseconds, or fewer than five runs; a suite can ask for more, not for less.

use pipemark_model::{Answer, Claim, ClaimVerdict, Evidence, Record, Which};
use pipemark_stats::family::Family;
use pipemark_stats::records::speeds_by_round;

use crate::evidence::{evidence, extreme_ends, verdict, verdict_of_all, without_interval};
use crate::too_short::shortfall;
use crate::words::{in_words, runs_to_decide, volumes};

/// Answers the claims. Claims that a demonstration has answered keep their answers.
pub fn answer_claims(mut claims: Vec<Claim>, records: &[Record]) -> Vec<Claim> {
    let speeds: Vec<_> = records
        .iter()
        .filter(|record| record.measured().is_some())
        .map(|record| speeds_by_round(&record.samples))
        .collect();
    let family = Family::of(&speeds);
    let covered: usize = claims.iter().map(|claim| covered_trials(claim, records).len()).sum();
    // If fewer trials decide a claim, each interval has to be wider. So the loop starts with all trials, and repeats
    // until the number of deciding trials no longer falls.
    let mut deciding = covered;
    loop {
        let family = family.with(covered as f64 / deciding.max(1) as f64);
        let answers: Vec<Answer> = claims.iter().map(|claim| answer(claim, records, family)).collect();
        let evidence = answers.iter().flat_map(|answer| &answer.evidence);
        let decided = evidence.filter(|one| one.verdict != ClaimVerdict::CantTell).count();
        if decided >= deciding || decided == 0 {
            claims.iter_mut().zip(answers).for_each(|(claim, answer)| claim.answer = Some(answer));
            return claims;
        }
        deciding = decided;
    }
}

/// The trials that a claim is about, each with the trial that it is compared with.
fn covered_trials<'a>(claim: &Claim, records: &'a [Record]) -> Vec<(&'a Record, Option<&'a Record>)> {
    if claim.open.is_some() || claim.shown_by.is_some() {
        return Vec::new();
    }
    let alone = !claim.is_compared() && !["gain", "ratio"].contains(&claim.figure.as_str());
    let covered = records.iter().filter(|record| claim.covers(&record.experiment, &record.job));
    covered
        .filter_map(|record| {
            let mut of_experiment = records.iter().filter(|other| other.experiment == record.experiment);
            let base = match claim.is_compared() {
                true => of_experiment.find(|other| claim.has_base(&record.job, &other.job)),
                false => {
                    of_experiment.find(|other| record.baseline.as_ref() == Some(&other.id) && other.id != record.id)
                }
            };
            (alone || base.is_some()).then_some((record, base.filter(|_| !alone)))
        })
        .collect()
}

fn answer(claim: &Claim, records: &[Record], family: Family) -> Answer {
    let not_measured = |here: String| Answer { verdict: ClaimVerdict::NotMeasured, here, evidence: Vec::new() };
    if let Some(reason) = &claim.open {
        return not_measured(reason.clone());
    }
    if claim.shown_by.is_some() {
        return claim.answer.clone().unwrap_or_else(|| not_measured("the demonstration did not run".to_owned()));
    }
    let covered = covered_trials(claim, records);
    let measured = |record: &Record| record.measured().is_some();
    let complete: Vec<&(&Record, Option<&Record>)> =
        covered.iter().filter(|one| measured(one.0) && one.1.is_none_or(measured)).collect();
    let short = complete
        .iter()
        .flat_map(|(record, base)| [Some(*record), *base])
        .flatten()
        .filter_map(|record| shortfall(claim, record));
    let short = short.reduce(|one, other| if other.factor > one.factor { other } else { one });
    let enough = |one: &&&(&Record, Option<&Record>)| {
        shortfall(claim, one.0).is_none() && one.1.is_none_or(|base| shortfall(claim, base).is_none())
    };
    let evidence: Vec<Evidence> =
        complete.iter().filter(enough).filter_map(|(record, base)| evidence(claim, record, *base, family)).collect();
    if evidence.is_empty() {
        let reasons = covered.iter().flat_map(|(record, base)| [Some(*record), *base]).flatten();
        let reason = reasons.filter(|record| !measured(record)).find_map(|record| record.reason.clone());
        let reason = short.map(|short| short.in_words()).or(reason);
        let unknown = if complete.is_empty() { "no run finished" } else { "this machine doesn't count the figure" };
        return not_measured(reason.unwrap_or_else(|| unknown.to_owned()));
    }
    let verdict = match claim.which {
        Which::Each if evidence.len() < covered.len() => match verdict_of_all(&evidence) {
            ClaimVerdict::Holds => ClaimVerdict::CantTell,
            other => other,
        },
        Which::Each => verdict_of_all(&evidence),
        which => match verdict(claim, extreme_ends(which, &evidence, covered.len())) {
            // A missing trial could have the highest or lowest figure.
            ClaimVerdict::CantTell if without_interval(&evidence, covered.len()) => ClaimVerdict::NotMeasured,
            verdict => verdict,
        },
    };
    let mut here = in_words(claim, &evidence, records);
    here.push_str(&volumes(&evidence, records));
    let missing = covered.len() - evidence.len();
    if missing > 0 {
        here.push_str(&format!("; {missing} of {} not measured", covered.len()));
    }
    if let Some(short) = short {
        let is_only_reason = missing == complete.len() - complete.iter().filter(enough).count();
        here.push_str(&format!("{} {}", if is_only_reason { ":" } else { ";" }, short.in_words()));
    }
    if verdict == ClaimVerdict::CantTell {
        here.extend(runs_to_decide(claim, &evidence, records).map(|words| format!("; {words}")));
    }
    Answer { verdict, here, evidence }
}

#[cfg(test)]
mod tests;
