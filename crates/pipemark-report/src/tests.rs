//! Checks that every comparison in a finding or a claim is between two rows of one table: of one experiment, with the
//! same volume, block and verification.

use proptest::prelude::*;
use serde_json::Value as Json;

use pipemark_model::{
    ByteSize, Claim, Figure, Finding, Job, Key, Outcome, PipelineStats, ProcessStats, Record, Settings, Value, Volume,
    three_digits,
};
use pipemark_run::plan::EMBEDDED;
use pipemark_stats::estimate::from_runs;
use pipemark_stats::fixture::{outcome, records};
use pipemark_stats::records::{memory_copy, ratio_of, ratios};

use crate::findings::claims::answered;
use crate::findings::findings;
use crate::sheet::fixture::of_suite;

/// The rules about sizes may compare blocks of different sizes.
const OF_SIZES: [&str; 3] = ["best-block", "language-best-block", "language-by-block"];

/// Totals are rounded to whole blocks, so they may differ by a few per cent.
fn same_volume(one: &Job, other: &Job) -> bool {
    match (one.volume(), other.volume()) {
        (Volume::Time(one), Volume::Time(other)) => one == other,
        (Volume::Total(ByteSize(one)), Volume::Total(ByteSize(other))) => one.abs_diff(other) <= one.max(other) / 20,
        _ => false,
    }
}

/// Collects the comparisons of two trials in `evidence`.
fn comparisons<'e>(evidence: &'e Json, found: &mut Vec<&'e Json>) {
    if evidence.pointer("/of/trial").is_some() && evidence.pointer("/to/trial").is_some() {
        found.push(evidence);
    }
    match evidence {
        Json::Object(fields) => fields.values().for_each(|inner| comparisons(inner, found)),
        Json::Array(items) => items.iter().for_each(|inner| comparisons(inner, found)),
        _ => {}
    }
}

fn numbers(evidence: &Json, found: &mut Vec<f64>) {
    match evidence {
        Json::Number(number) => found.extend(number.as_f64()),
        Json::Object(fields) => fields.values().for_each(|inner| numbers(inner, found)),
        Json::Array(items) => items.iter().for_each(|inner| numbers(inner, found)),
        _ => {}
    }
}

/// A description of a comparison that no table of the document shows; `None` if one shows both rows with this ratio.
fn fault(rule: &str, comparison: &Json, all: &[Record]) -> Option<String> {
    let of_side = |side: &str| {
        let [trial, experiment] = ["trial", "experiment"].map(|key| comparison[side][key].as_str());
        all.iter()
            .filter(move |record| Some(&*record.id) == trial && experiment.is_none_or(|own| own == record.experiment))
    };
    let pairs = || of_side("of").flat_map(|of| of_side("to").map(move |to| (of, to)));
    let mut alike = pairs().filter(|(of, to)| {
        of.experiment == to.experiment && same_volume(&of.job, &to.job) && of.job.verify() == to.job.verify()
    });
    let ratio = comparison["ratio"].as_f64();
    let shown = |(of, to): (&Record, &Record)| {
        let size = |record: &Record| record.job.settings().get(Key::Block);
        let own = |of: &Record, to: &Record| ratio_of(&of.samples, &to.samples).map(|ratio| ratio.median);
        let of_figure =
            |figure: Figure| from_runs(&ratios(&of.samples, &to.samples, |sample| figure.of_sample(sample)));
        let mut ratios = Figure::iter()
            .filter_map(of_figure)
            .map(|ratio| ratio.median)
            .chain(own(of, to))
            .chain(own(to, of).map(|ratio| 1.0 / ratio));
        let equal = ratio.is_none_or(|told| ratios.any(|own| (told / own - 1.0).abs() < 1e-9));
        equal && (OF_SIZES.contains(&rule) || size(of) == size(to))
    };
    (!alike.any(shown)).then(|| format!("{rule}: {comparison}"))
}

/// The comparisons in findings and claims that no table shows.
fn faults(all: &[Record], claims: Vec<Claim>) -> Vec<String> {
    let mut faults = Vec::new();
    for Finding { rule, text, evidence, .. } in findings(all, memory_copy(all).as_ref()) {
        let evidence = Json::Object(evidence);
        let mut own = Vec::new();
        comparisons(&evidence, &mut own);
        faults.extend(own.into_iter().filter_map(|comparison| fault(&rule, comparison, all)));
        let mut figures = Vec::new();
        numbers(&evidence, &mut figures);
        let known: Vec<String> = figures.into_iter().map(three_digits).collect();
        let told = text.match_indices('×').map(|(at, _)| text[..at].rsplit([' ', '(']).next().unwrap_or_default());
        let untold = told.filter(|figure| !known.iter().any(|known| known == figure));
        faults.extend(untold.map(|figure| format!("{rule}: no evidence for {figure}×: {text}")));
    }
    for claim in answered(claims, all) {
        let compared = claim.to.is_some() || ["gain", "ratio"].contains(&&*claim.figure);
        // A claim that names a volume compares volumes.
        let of_volumes =
            claim.to.as_ref().is_some_and(|to| Key::iter().any(|key| key.is_volume() && to.get(key).is_some()));
        for one in claim.answer.iter().flat_map(|answer| &answer.evidence).filter(|_| compared && !of_volumes) {
            let find = |id: &String| all.iter().find(|record| record.experiment == one.experiment && record.id == *id);
            let (Some(of), Some(to)) = (find(&one.trial), one.to.as_ref().and_then(find)) else {
                faults.push(format!("claim {}: no such row: {one:?}", claim.id));
                continue;
            };
            let free = |key: Key| claim.to.as_ref().is_some_and(|to| to.get(key).is_some());
            let verified = of.job.verify() == to.job.verify() || free(Key::Verify);
            let sized = of.job.block() == to.job.block() || free(Key::Block);
            let ratio = (claim.figure == "ratio").then(|| ratio_of(&of.samples, &to.samples).unwrap().median);
            let equal = ratio.is_none_or(|ratio| (ratio / one.figure - 1.0).abs() < 1e-9);
            let as_much = claim.is_per_byte() || same_volume(&of.job, &to.job);
            if !(as_much && verified && sized && equal) {
                faults.push(format!("claim {}: {one:?}", claim.id));
            }
        }
    }
    faults
}

/// Adds the measurements of a line filter's pipeline.
fn with_pipeline(mut outcome: Outcome) -> Outcome {
    if outcome.trial.job.lines().is_some() {
        for sample in &mut outcome.samples {
            let filter = ProcessStats { user_ns: sample.user_ns, context_switches: 100, ..ProcessStats::default() };
            sample.pipeline = Some(PipelineStats { feed: None, filter });
        }
    }
    outcome
}

#[test]
fn suites_compare_what_their_tables_show() {
    for (seed, (name, text)) in EMBEDDED.into_iter().enumerate() {
        for scale in ["1", "0.05"] {
            let document = of_suite(text, scale, seed as u64);
            assert!(!document.findings.is_empty(), "{name} at {scale}");
            let faults = faults(&document.trials, document.claims);
            assert!(faults.is_empty(), "{name} at {scale}: {} faults\n{}", faults.len(), faults.join("\n"));
        }
    }
}

/// A trial of one of three experiments, which share settings and differ in volume.
fn overlapping() -> impl Strategy<Value = Record> {
    let word = |words: &'static [&'static str]| prop::sample::select(words);
    let stream = (
        word(&["same", "cross", "0:1"]),
        word(&["64", "1k", "64k"]),
        word(&["default", "1m"]),
        word(&["count", "count", "full"]),
        word(&["write", "write", "vmsplice"]),
        word(&["pipe", "pipe", "tcp", "null"]),
        word(&["block", "block", "spin"]),
    );
    let stream = stream.prop_map(|(place, block, capacity, verify, send, link, wait)| {
        vec![
            ("place", place),
            ("block", block),
            ("capacity", capacity),
            ("verify", verify),
            ("send", send),
            ("link", link),
            ("wait", wait),
        ]
    });
    let entrant = (word(&["c", "rust", "java"]), word(&["idiomatic", "tuned"]), word(&["512", "64k", "1m"]));
    let entrant = entrant.prop_map(|(language, program, block)| {
        vec![("language", language), ("program", program), ("block", block), ("verify", "full"), ("place", "free")]
    });
    let feed = word(&["yes-short", "yes-long", "file"]);
    let lines = (feed, word(&["sink", "std-baseline", "baseline", "pipeline", "lines-1"]));
    let lines = lines.prop_map(|(feed, filter)| vec![("feed", feed), ("filter", filter), ("place", "free")]);
    let chain = word(&["0", "1", "2", "4", "8"]);
    let chain = chain.prop_map(|length| vec![("stage", "cat"), ("length", length), ("place", "free")]);
    let volume = prop::sample::select(vec![("total", "1g"), ("total", "20m"), ("time", "200ms"), ("time", "50ms")]);
    let params = prop_oneof![6 => stream, 2 => entrant, 2 => lines, 1 => chain];
    let runs = prop::collection::vec(0.99..1.01f64, 7);
    (word(&["one", "two", "three"]), params, volume, 0.2..9.0f64, runs).prop_filter_map(
        "contradictions",
        |(experiment, params, volume, speed, runs)| {
            let params = [params, vec![volume]].concat();
            let values = params.iter().map(|(key, text)| Value::parse(Key::named(key).unwrap(), text).unwrap());
            Job::try_from(Settings::of(values)).ok()?;
            Some(records(vec![with_pipeline(outcome(experiment, &params, speed, &runs))]).remove(0))
        },
    )
}

proptest! {
    #[test]
    fn overlapping_experiments_are_not_mixed(all in prop::collection::vec(overlapping(), 20..90)) {
        let mut kept: Vec<Record> = Vec::new();
        for record in all {
            if !kept.iter().any(|own| own.experiment == record.experiment && own.id == record.id) {
                kept.push(record);
            }
        }
        let faults = faults(&kept, Vec::new());
        prop_assert!(faults.is_empty(), "{}", faults.join("\n"));
    }
}
