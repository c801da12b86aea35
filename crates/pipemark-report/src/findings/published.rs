//! Compares measured figures with published ones, which were measured on other hardware: the ratio, and whether the
//! shape of the curves agrees.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use pipemark_model::three_digits;

use crate::findings::contrast::Contrast;
use crate::findings::{Candidate, MeasuredTrial, fastest};

/// The minimum number of published figures for comparing the shapes of two curves.
const MIN_TRIALS: usize = 3;
/// The largest slowdown relative to the best that counts as equally good, as a fraction. Published figures have no
/// interval that could decide this.
const MAX_SLOWDOWN: f64 = 0.05;

/// Compares the best published trial with the best measured trial, for each source of published figures in an
/// experiment.
pub(super) fn against(streams: &[MeasuredTrial]) -> Vec<Candidate> {
    let mut sources: BTreeMap<(&str, &str), Vec<(MeasuredTrial, f64)>> = BTreeMap::new();
    for one in streams {
        let published = one.record.published.as_ref();
        if let Some(theirs) = published.filter(|p| p.throughput.is_finite() && p.throughput > 0.0 && !p.relative) {
            let source = (one.record.experiment.as_str(), theirs.source.as_str());
            sources.entry(source).or_default().push((*one, theirs.throughput));
        }
    }
    sources.into_iter().filter_map(|((_, source), figures)| of_source(source, &figures)).collect()
}

/// The published figure as text, with its volume if that differs from the measured volume.
fn published_figure(one: MeasuredTrial) -> String {
    one.record.published.as_ref().map_or_else(String::new, |figure| figure.shown_next_to(one.job.volume()))
}

/// The finding for one source. `figures` pairs each trial with its published throughput in bytes per second.
fn of_source(source: &str, figures: &[(MeasuredTrial, f64)]) -> Option<Candidate> {
    // If a trial has too few runs for an interval, its ratio has no interval either.
    if figures.iter().any(|(ours, _)| ours.estimates.throughput().low.is_none()) {
        return None;
    }
    let ratio = |(ours, theirs): &(MeasuredTrial, f64)| ours.throughput() / theirs;
    let trial = |figure: &(MeasuredTrial, f64)| {
        json!({
            "trial": figure.0.record.id, "experiment": figure.0.record.experiment,
            "published": figure.1, "measured": figure.0.estimates.throughput(), "ratio": ratio(figure),
        })
    };
    let mut evidence = json!({ "source": source, "trials": figures.iter().map(trial).collect::<Value>() });
    let effect = figures.len() as f64;
    if figures.len() < MIN_TRIALS {
        let words = |figure: &(MeasuredTrial, f64)| {
            let (name, ours, ratio) = (&figure.0.record.name, figure.0.headline(), three_digits(ratio(figure)));
            format!("{} for {name} (here {ours}, {ratio}× as fast)", published_figure(figure.0))
        };
        let words: Vec<String> = figures.iter().map(words).collect();
        // The name of the source includes the hardware.
        let text = format!("Published: {}. Source: {source}.", words.join("; "));
        return Some(Candidate::new("published", effect, text, evidence));
    }
    let (theirs_at, theirs) = figures.iter().max_by(|one, other| one.1.total_cmp(&other.1))?;
    let ours = fastest(figures.iter().map(|(ours, _)| *ours))?;
    let (_, theirs_at_ours) = figures.iter().find(|(one, _)| one.record.id == ours.record.id)?;
    // The shapes agree if our best trial is nearly the best of the published ones, or the best published one is nearly
    // our best.
    let near = |contrast: &Contrast| {
        contrast.adjusted.0 >= 1.0 - MAX_SLOWDOWN || *theirs_at_ours >= (1.0 - MAX_SLOWDOWN) * theirs
    };
    // If another trial of ours may be as fast, the optima are the same only as far as can be told.
    let others = figures.iter().filter(|(other, _)| other.record.id != ours.record.id);
    let others: Vec<Option<Contrast>> = others.map(|(other, _)| Contrast::throughput(ours, *other)).collect();
    let is_rival = |other: &Option<Contrast>| !other.as_ref().is_some_and(|contrast| contrast.adjusted.1 < 1.0);
    let is_within = |other: &Option<Contrast>| {
        other.as_ref().is_some_and(|contrast| {
            contrast.adjusted.0 >= 1.0 - MAX_SLOWDOWN && contrast.adjusted.1 <= 1.0 + MAX_SLOWDOWN
        })
    };
    let has_rival = others.iter().any(is_rival);
    let is_open = others.iter().any(|other| is_rival(other) && !is_within(other));
    let within = if is_open { 0 } else { others.iter().filter(|other| is_within(other)).count() };
    let shape = match Contrast::throughput(ours, *theirs_at) {
        _ if ours.record.id == theirs_at.record.id && !has_rival => Some(("the optimum is the same", true)),
        _ if ours.record.id == theirs_at.record.id => None,
        Some(contrast) if near(&contrast) => Some(("the optimum is the same within 5 %", true)),
        Some(contrast) if contrast.is_lower() => Some(("the optima differ", false)),
        _ => None,
    };
    evidence["their_best"] = theirs_at.record.id.clone().into();
    evidence["our_best"] = ours.record.id.clone().into();
    evidence["shapes_agree"] = shape.map(|(_, agree)| agree).into();
    let statistic = figures.iter().find_map(|(one, _)| one.record.published.as_ref()?.statistic);
    let text = format!(
        "Published throughput is highest with {} ({}), ours with {} ({}{}){}. {} are {}× to {}× the published figures. \
         Source: {source}.",
        theirs_at.record.name,
        published_figure(*theirs_at),
        ours.record.name,
        ours.headline(),
        match within {
            0 => String::new(),
            1 => "; 1 other is within 5 %".to_owned(),
            within => format!("; {within} others are within 5 %"),
        },
        shape.map_or_else(String::new, |(words, _)| format!("; {words}")),
        if statistic.is_some() { "Our medians" } else { "Our figures" },
        three_digits(figures.iter().map(ratio).fold(f64::INFINITY, f64::min)),
        three_digits(figures.iter().map(ratio).fold(0.0, f64::max)),
    );
    Some(Candidate::new("published", effect, text, evidence))
}

#[cfg(test)]
mod tests {
    use pipemark_model::{Finding, Published, Record};
    use pipemark_stats::fixture::records;
    use pipemark_stats::fixture::{STEADY, outcome};

    use crate::findings::findings_of_rule as of_rule;

    /// The published averages of pipe_bandwidth.c in MiB/s, by block size.
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

    /// The findings if `figures` in MiB/s were measured for the first of the published block sizes.
    fn findings_for(figures: &[f64], runs: &[f64]) -> Vec<Finding> {
        let outcomes = PIPE_BANDWIDTH.iter().zip(figures).map(|((block, published), figure)| {
            let mut outcome = outcome("e", &[("block", block)], figure / 1024.0, runs);
            let throughput = published * 1024.0 * 1024.0;
            outcome.trial.published = Some(Published {
                throughput,
                source: "pipe_bandwidth.c".to_owned(),
                relative: false,
                ..Published::default()
            });
            outcome
        });
        of_rule("published", &records(outcomes.collect()))
    }

    #[test]
    fn the_published_and_measured_optima_are_found() {
        let ours = [100.0, 400.0, 1000.0, 1800.0, 2400.0, 2600.0, 2900.0, 3000.0];
        let found = &findings_for(&ours, &STEADY)[0];
        assert_eq!(
            found.text,
            "Published throughput is highest with 8 KiB blocks (3.11 GiB/s), ours with 64 KiB blocks (2.93 GiB/s; 1 \
             other is within 5 %); the optima differ. Our figures are 0.39× to 2.73× the published figures. Source: pipe_bandwidth.c."
        );
        assert_eq!(found.evidence["trials"].as_array().unwrap().len(), 8);
    }

    #[test]
    fn shapes_may_agree() {
        let scaled = PIPE_BANDWIDTH.map(|(_, figure)| figure * 2.0);
        assert!(findings_for(&scaled, &STEADY)[0].text.contains("; the optimum is the same. Our figures are 2.00×"));
        let mut level = scaled;
        level[5] = level[4] * 1.01;
        assert!(findings_for(&level, &STEADY)[0].text.contains("the same within 5 %"));
    }

    #[test]
    fn an_inconclusive_curve_is_not_reported() {
        let mut noisy = PIPE_BANDWIDTH.map(|(_, figure)| figure);
        noisy[5] = noisy[4] * 1.06;
        let wild = [1.0, 1.15, 0.85, 1.1, 0.9, 1.2, 0.8];
        let mut all: Vec<Record> = Vec::new();
        for (index, (block, published)) in PIPE_BANDWIDTH.iter().enumerate() {
            let runs = if index == 5 { &wild[..] } else { &STEADY[..] };
            let mut outcome = outcome("e", &[("block", block)], noisy[index] / 1024.0, runs);
            outcome.trial.published = Some(Published {
                throughput: *published,
                source: "a paper".to_owned(),
                relative: false,
                ..Published::default()
            });
            all.extend(records(vec![outcome]));
        }
        let found = &of_rule("published", &all)[0];
        assert!(!found.text.contains("shape"), "{}", found.text);
        assert!(found.evidence["shapes_agree"].is_null());
    }

    #[test]
    fn one_figure_has_no_shape_and_few_runs_no_finding() {
        let one = &findings_for(&[500.0], &STEADY)[0].text;
        assert!(
            one.contains(": 251 MiB/s for pipe, write → read, 2 cores, 64 B blocks (here 500 MiB/s, 1.99× as fast)"),
            "{one}"
        );
        assert!(findings_for(&[500.0; 8], &STEADY[..4]).is_empty());
    }
}
