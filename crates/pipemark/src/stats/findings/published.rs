//! Measured figures against published ones, which come from other hardware: how much, and whether the shape agrees.

use std::collections::BTreeMap;

use serde_json::json;

use super::contrast::Contrast;
use super::words::{rate, times};
use super::{Found, Subject, fastest};
use crate::model::{Published, Record, Throughput};

/// The fewest figures that have a shape.
const FEWEST: usize = 3;
/// As good as the best: at most this much slower, for published figures that come without an interval.
const NEARLY: f64 = 0.05;

/// For each source of published figures within an experiment: where their best is and where ours.
pub(super) fn against<'a>(records: impl IntoIterator<Item = &'a Record>) -> Vec<Found> {
    let mut sources: BTreeMap<(&str, &str), Vec<(Subject, &Published)>> = BTreeMap::new();
    for subject in records.into_iter().filter_map(Subject::of).filter(|subject| !subject.job.is_round_trip()) {
        let published =
            subject.record.published.as_ref().filter(|p| p.throughput.is_finite() && p.throughput > 0.0 && !p.relative);
        if let Some(published) = published {
            sources.entry((&subject.record.experiment, &published.source)).or_default().push((subject, published));
        }
    }
    sources.into_iter().filter_map(|((_, source), figures)| of_source(source, &figures)).collect()
}

fn of_source(source: &str, figures: &[(Subject, &Published)]) -> Option<Found> {
    let ratio = |(subject, published): &(Subject, &Published)| subject.throughput() / published.throughput;
    // Where a trial has too few runs for an interval, so does its ratio.
    if figures.iter().any(|(subject, _)| subject.estimates.throughput().low.is_none()) {
        return None;
    }
    let least = figures.iter().map(ratio).fold(f64::INFINITY, f64::min);
    let most = figures.iter().map(ratio).fold(0.0, f64::max);
    let (theirs_at, theirs) = figures.iter().max_by(|one, other| one.1.throughput.total_cmp(&other.1.throughput))?;
    let ours = fastest(figures.iter().map(|(subject, _)| *subject))?;
    let mut evidence = json!({
        "source": source,
        "trials": figures.iter().map(|figure| json!({
            "trial": figure.0.record.id, "published": figure.1.throughput, "measured": figure.0.estimates.throughput(),
            "ratio": ratio(figure),
        })).collect::<Vec<_>>(),
    });
    // The source says on which hardware.
    let elsewhere = format!("Published figures of {source}");
    let effect = figures.len() as f64;
    if figures.len() < FEWEST {
        let names = |figure: &(Subject, &Published)| {
            format!(
                "{} for {}, here {}, {} as much",
                Throughput(figure.1.throughput),
                figure.0.record.name,
                rate(figure.0),
                times(ratio(figure))
            )
        };
        let text = format!("{elsewhere}: {}.", figures.iter().map(names).collect::<Vec<_>>().join("; "));
        return Some(Found::new("published", effect, text, evidence));
    }
    let shape = if ours.record.id == theirs_at.record.id {
        Some(("the shapes agree on where the best is", true))
    } else {
        let contrast = Contrast::throughput(ours, *theirs_at);
        // Their best is ours too, or ours theirs, as far as either can tell.
        let theirs_at_ours = figures.iter().find(|(s, _)| s.record.id == ours.record.id)?.1.throughput;
        match contrast {
            Some(contrast) if contrast.low >= 1.0 - NEARLY || theirs_at_ours >= (1.0 - NEARLY) * theirs.throughput => {
                Some(("the shapes agree within 5 % on where the best is", true))
            }
            Some(contrast) if contrast.less() => Some(("the shapes differ", false)),
            _ => None,
        }
    };
    evidence["their_best"] = theirs_at.record.id.clone().into();
    evidence["our_best"] = ours.record.id.clone().into();
    evidence["shapes_agree"] = shape.map(|(_, agree)| agree).into();
    let shape = shape.map_or_else(String::new, |(words, _)| format!("; {words}"));
    let text = format!(
        "{elsewhere} are best with {} ({}), ours with {} ({}){shape}. Ours are {} to {} theirs.",
        theirs_at.record.name,
        Throughput(theirs.throughput),
        ours.record.name,
        rate(ours),
        crate::model::three_digits(least),
        times(most),
    );
    Some(Found::new("published", effect, text, evidence))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::fixture::{STEADY, outcome};
    use crate::stats::records::records;

    /// pipe_bandwidth.c's averages in MiB/s by block size, as published.
    const PIPE_BANDWIDTH: [(&str, f64); 8] = [
        ("64", 250.91),
        ("256", 933.07),
        ("1k", 2534.25),
        ("4k", 1532.90),
        ("8k", 3184.68),
        ("16k", 2093.62),
        ("32k", 1508.83),
        ("64k", 1096.92),
    ];

    /// Measured `figures` in MiB/s beside the first of the published ones.
    fn found(figures: &[f64], runs: &[f64]) -> Vec<Found> {
        let outcomes = PIPE_BANDWIDTH.iter().zip(figures).map(|((block, published), figure)| {
            let mut outcome = outcome("e", &[("block", block)], figure / 1024.0, runs);
            let throughput = published * 1024.0 * 1024.0;
            outcome.trial.published =
                Some(Published { throughput, source: "pipe_bandwidth.c".to_owned(), relative: false });
            outcome
        });
        against(&records(outcomes.collect()))
    }

    #[test]
    fn their_best_and_ours_are_read_from_the_figures() {
        let ours = [100.0, 400.0, 1000.0, 1800.0, 2400.0, 2600.0, 2900.0, 3000.0];
        let found = &found(&ours, &STEADY)[0].finding;
        assert_eq!(
            found.text,
            "Published figures of pipe_bandwidth.c are best with 8 KiB blocks (3.11 GiB/s), ours \
             with 64 KiB blocks (2.93 GiB/s); the shapes differ. Ours are 0.39 to 2.73 times theirs."
        );
        assert_eq!(found.evidence["trials"].as_array().unwrap().len(), 8);
    }

    #[test]
    fn shapes_may_agree() {
        let scaled = PIPE_BANDWIDTH.map(|(_, figure)| figure * 2.0);
        assert!(
            found(&scaled, &STEADY)[0].finding.text.contains("; the shapes agree on where the best is. Ours are 2.00")
        );
        let mut level = scaled;
        level[5] = level[4] * 1.01;
        assert!(found(&level, &STEADY)[0].finding.text.contains("agree within 5 %"));
    }

    #[test]
    fn doubt_about_the_shape_is_not_told() {
        let mut noisy = PIPE_BANDWIDTH.map(|(_, figure)| figure);
        noisy[5] = noisy[4] * 1.06;
        let wild = [1.0, 1.15, 0.85, 1.1, 0.9, 1.2, 0.8];
        let mut all: Vec<Record> = Vec::new();
        for (index, (block, published)) in PIPE_BANDWIDTH.iter().enumerate() {
            let runs = if index == 5 { &wild[..] } else { &STEADY[..] };
            let mut outcome = outcome("e", &[("block", block)], noisy[index] / 1024.0, runs);
            outcome.trial.published =
                Some(Published { throughput: *published, source: "a paper".to_owned(), relative: false });
            all.extend(records(vec![outcome]));
        }
        let found = &against(&all)[0].finding;
        assert!(!found.text.contains("shape"), "{}", found.text);
        assert!(found.evidence["shapes_agree"].is_null());
    }

    #[test]
    fn one_figure_has_no_shape_and_few_runs_no_finding() {
        let one = &found(&[500.0], &STEADY)[0].finding.text;
        assert!(
            one.contains(": 251 MiB/s for pipe, write → read, cross, 64 B blocks, here 500 MiB/s, 1.99 times as much"),
            "{one}"
        );
        assert!(found(&[500.0; 8], &STEADY[..4]).is_empty());
    }
}
