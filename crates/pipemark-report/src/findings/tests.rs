//! Tests of rules on whole documents, and of their error rate.

use proptest::prelude::*;
use serde_json::json;

use pipemark_model::{Outcome, SendMethod, Settings, Status, Value, WaitPolicy};
use pipemark_stats::fixture::records;
use pipemark_stats::fixture::{STEADY, outcome, record, round_trip_outcome};
use pipemark_stats::noise::{ALL, Dice, Noise};
use pipemark_stats::records::memory_copy;

use super::*;

#[test]
fn nothing_has_no_findings() {
    assert_eq!(findings(&[], None, &[]), []);
    assert_eq!(findings(&[record("e", &[], 1.0, &STEADY)], None, &[]), []);
}

#[test]
fn rules_are_limited_and_alternate() {
    let mut all = Vec::new();
    for align in 0..20 {
        for (capacity, throughput) in [("64k", 1.0), ("1m", 2.0 + f64::from(align))] {
            let params = [("align", &*align.to_string()), ("capacity", capacity)];
            all.push(record("e", &params, throughput, &STEADY));
        }
    }
    let findings = findings(&all, None, &[]);
    let of_capacity: Vec<f64> =
        findings.iter().filter(|f| f.rule == "capacity").map(|f| f.evidence["ratio"].as_f64().unwrap()).collect();
    assert_eq!(of_capacity.len(), MAX_PER_RULE);
    assert!(of_capacity.is_sorted_by(|one, other| one > other), "{of_capacity:?}");
    let first: Vec<&str> = findings[..3].iter().map(|finding| finding.rule.as_str()).collect();
    assert_eq!(first, ["capacity", "recommended", "capacity"]);
    assert!(findings.iter().all(|finding| !finding.topic.is_empty()));
}

#[test]
fn failed_trials_are_no_evidence() {
    let mut slow = outcome("e", &[("capacity", "64k")], 1.0, &STEADY);
    let fast = outcome("e", &[("capacity", "1m")], 2.0, &STEADY);
    let found = |outcomes| findings(&records(outcomes), None, &[]).len();
    assert!(found(vec![slow.clone(), fast.clone()]) > 0);
    slow.verified = Some(false);
    assert_eq!(found(vec![slow.clone(), fast.clone()]), 0);
    (slow.verified, slow.status) = (None, Status::Skipped);
    assert_eq!(found(vec![slow.clone(), fast.clone()]), 0);
    // A trial isn't used as evidence if more than half of its runs are faster than its source can produce the bytes.
    let above = |runs| {
        let mut slow = Outcome { status: Status::Ok, ..slow.clone() };
        for (nth, sample) in slow.samples.iter_mut().enumerate() {
            sample.sources[0].ceiling = Some(if nth < runs { 1e6 } else { 1e15 });
        }
        found(vec![slow, fast.clone()])
    };
    assert!(above(3) > 0 && above(4) == 0);
}

/// Records with any value of any parameter, any number of runs, and figures from zero to absurdly large.
fn any_record() -> impl Strategy<Value = Record> {
    let choices: Vec<(&str, &[&str])> = vec![
        ("mode", &["throughput", "throughput", "latency"]),
        ("link", &["pipe", "pipe", "shm", "tcp", "memory-copy", "null"]),
        ("gap", &["0", "0", "1ms"]),
        ("send", &["write", "vmsplice", "tee", "splice"]),
        ("recv", &["read", "splice", "vmsplice"]),
        ("wait", &["block", "spin", "poll"]),
        ("pages", &["base", "huge"]),
        ("place", &["same", "cross", "free", "0:1", "1:1"]),
        ("capacity", &["default", "quota", "64k", "1m"]),
        ("block", &["1", "64", "4k", "64k", "1g"]),
        ("verify", &["none", "count", "full"]),
    ];
    let params: Vec<_> = choices
        .into_iter()
        .map(|(key, values)| prop::sample::select(values).prop_map(move |value| (key, value)))
        .collect();
    let runs = prop_oneof![
        4 => prop::collection::vec(0.9..1.1f64, 0..9),
        1 => prop::collection::vec(0.0..1e9f64, 0..9),
    ];
    let status = prop::sample::select(vec![Status::Ok, Status::Ok, Status::Ok, Status::Failed, Status::Skipped]);
    (params, 0.0..100.0f64, runs, status, prop::option::of(0.0..1e12f64)).prop_filter_map(
        "parameters that contradict each other",
        |(params, throughput, runs, status, published)| {
            let values = params.iter().map(|(key, text)| Value::parse(Key::named(key).unwrap(), text).unwrap());
            Job::try_from(Settings::of(values)).ok()?;
            let round_trip_record = params.contains(&("mode", "latency"));
            let mut outcome = match round_trip_record {
                true => round_trip_outcome("e", &params, throughput * 1e4, &runs),
                false => outcome("e", &params, throughput, &runs),
            };
            outcome.status = status;
            outcome.trial.published = published.map(|throughput| pipemark_model::Published {
                throughput,
                source: "a paper".to_owned(),
                relative: false,
                ..Default::default()
            });
            Some(records(vec![outcome]).remove(0))
        },
    )
}

proptest! {
    #[test]
    fn odd_records_cause_no_panic_or_nonsense(all in prop::collection::vec(any_record(), 0..60)) {
        for finding in findings(&all, memory_copy(&all).as_ref(), &[]) {
            prop_assert!(!finding.evidence.is_empty() && finding.text.ends_with('.'), "{finding:?}");
            prop_assert!(!finding.text.contains("NaN") && !finding.text.contains("inf "), "{}", finding.text);
        }
    }
}

/// If null links, memory copies and round trips were ranked with streams, they would win every ranking.
#[test]
fn round_trips_are_excluded_from_stream_rules() {
    let mut all = vec![record("e", &[("block", "4k")], 1.0, &STEADY), record("e", &[], 2.0, &STEADY)];
    let before = findings(&all, None, &[]);
    assert!(before.iter().any(|finding| finding.rule == "recommended"), "{before:?}");
    for (place, block) in [("cross", "4k"), ("cross", "64k"), ("same", "4k")] {
        let params = [("place", place), ("block", block)];
        all.push(record("e", &[&params[..], &[("link", "null")]].concat(), 1e3, &STEADY));
        all.push(record("e", &[&params[..], &[("link", "memory-copy")]].concat(), 90.0, &STEADY));
        all.extend(records(vec![round_trip_outcome("e", &params, 4_000.0, &STEADY)]));
    }
    let own = ["harness", "round-trip", "tail"];
    let mut after = findings(&all, None, &[]);
    after.retain(|finding| !own.contains(&finding.rule.as_str()));
    assert_eq!(after, before);
}

/// Records that are similar enough for rules to report findings.
fn document() -> impl Strategy<Value = Vec<Record>> {
    let choices: Vec<(&str, &[&str])> = vec![
        ("mode", &["throughput", "throughput", "latency"]),
        ("link", &["pipe", "pipe", "shm", "process-vm", "memory-copy"]),
        ("send", &["write", "write", "vmsplice", "in-place", "tee"]),
        ("recv", &["read", "read", "splice", "vmsplice", "in-place"]),
        ("wait", &["block", "block", "spin"]),
        ("capacity", &["default", "1m"]),
        ("block", &["64", "1k", "16k", "64k", "1m"]),
        ("verify", &["count", "count", "full"]),
    ];
    let params: Vec<_> = choices
        .into_iter()
        .map(|(key, values)| prop::sample::select(values).prop_map(move |value| (key, value)))
        .collect();
    let runs = prop::collection::vec(0.97..1.03f64, 9);
    let one = (params, 1.0..9.0f64, runs).prop_filter_map("contradictions", |(params, speed, runs)| {
        let values = params.iter().map(|(key, text)| Value::parse(Key::named(key).unwrap(), text).unwrap());
        Job::try_from(Settings::of(values)).ok()?;
        Some(
            records(vec![match params.contains(&("mode", "latency")) {
                true => round_trip_outcome("e", &params, speed * 1e3, &runs),
                false => outcome("e", &params, speed, &runs),
            }])
            .remove(0),
        )
    });
    prop::collection::vec(one, 2..60).prop_map(|records| {
        let by_id: BTreeMap<String, Record> = records.into_iter().map(|record| (record.id.clone(), record)).collect();
        by_id.into_values().collect()
    })
}

fn of_id<'r>(records: &'r [Record], id: &Json) -> &'r Record {
    records.iter().find(|record| id == &json!(record.id)).expect("evidence is of a record")
}

/// The speed of a record. Higher is faster.
fn speed(record: &Record) -> f64 {
    let estimates = record.estimate.as_ref().unwrap();
    estimates.round_trip().map_or(estimates.throughput().median, |trip| 1e9 / trip.median)
}

/// The records that differ from `one` only in the parameters `keys`.
fn rivals<'r>(records: &'r [Record], one: &Record, keys: &[Key]) -> Vec<&'r Record> {
    let fixed = |record: &Record| -> Vec<_> {
        let settings = record.job.settings();
        Key::iter().filter(|key| !keys.contains(key)).map(|key| settings.get(key)).collect()
    };
    records.iter().filter(|other| fixed(other) == fixed(one)).collect()
}

proptest! {
    /// A finding that names the best trial is right about the records. The test searches the records without using the
    /// code of the rules. Trials that do different work on their bytes may be ranked only if the text says so.
    #[test]
    fn findings_name_the_true_fastest(all in document()) {
        let ends = |record: &Record| record.job.ends().unwrap().clone();
        let fastest = |rivals: &[&Record]| rivals.iter().map(|record| speed(record)).fold(0.0, f64::max);
        for finding in findings(&all, memory_copy(&all).as_ref(), &[]) {
            let (text, evidence) = (&finding.text, &finding.evidence);
            match finding.rule.as_str() {
                "memory-copy" => {
                    let rivals: Vec<&Record> = all.iter().filter(|record| {
                        let ends = ends(record);
                        !record.job.is_round_trip() && ends.work().copies == 2 && ends.wait != WaitPolicy::Spin
                    }).collect();
                    prop_assert_eq!(speed(of_id(&all, &evidence["of"]["trial"])), fastest(&rivals), "{}", text);
                }
                "best-block" if text.starts_with("Blocks of") => {
                    let sweep = evidence["sweep"].as_array().unwrap();
                    let best = sweep.iter().map(|one| of_id(&all, &one["trial"]))
                        .find(|one| json!(ends(one).block) == evidence["best"]).unwrap();
                    let rivals = rivals(&all, best, &[Key::Block]);
                    prop_assert_eq!(speed(best), fastest(&rivals), "{}", text);
                    if text.contains("no other size") {
                        let near = |record: &&&Record| speed(record) >= 0.95 * speed(best);
                        prop_assert_eq!(rivals.iter().filter(near).count(), 1, "{}", text);
                    }
                }
                "best-link" => for at in evidence["by_block"].as_array().unwrap() {
                    let best = of_id(&all, &at["of"]["trial"]);
                    let mut rivals = rivals(&all, best, &[Key::Link, Key::Send, Key::Recv]);
                    rivals.retain(|one| ends(one).recv.touches() && ends(one).send != SendMethod::Tee);
                    rivals.retain(|one| ends(one).link.transfers());
                    prop_assert_eq!(speed(best), fastest(&rivals), "{}", text);
                    let work = ends(best).work();
                    prop_assert!(
                        rivals.iter().all(|one| ends(one).work() == work) || text.contains("copied"), "{}", text
                    );
                },
                "round-trip" => {
                    let best = of_id(&all, &evidence["of"]["trial"]);
                    let rivals: Vec<&Record> = all.iter().filter(|record| {
                        record.job.is_round_trip() && ends(record).wait == ends(best).wait
                    }).collect();
                    prop_assert_eq!(speed(best), fastest(&rivals), "{}", text);
                    prop_assert!(text.contains("copied"), "{}", text);
                }
                "zero-copy" => {
                    let [new, base] = ["of", "to"].map(|side| ends(of_id(&all, &evidence[side]["trial"])).work().copies);
                    prop_assert!(base == 2 && new < 2 && text.starts_with("Zero copy") == (new == 0), "{}", text);
                }
                "call-cost" => {
                    prop_assert!(evidence["r_squared"].as_f64().unwrap() >= 0.9, "{}", text);
                    let [from, to, even] = ["from", "to", "even_at"].map(|name| evidence[name].as_u64());
                    prop_assert!(even.is_none_or(|even| from.unwrap() <= even && even <= to.unwrap()), "{}", text);
                }
                _ => {}
            }
        }
    }
}

/// Whether a finding reports a difference.
fn reports_difference(finding: &Finding) -> bool {
    ["capacity", "best-block", "place", "recommended", "zero-copy"].contains(&finding.rule.as_str())
        && !["hardly", "no difference", "equally fast (within"].iter().any(|words| finding.text.contains(words))
}

/// The findings of a document with sixteen trials. The trials differ only by the factor `gain`.
fn findings_of(figures: &mut dyn FnMut() -> Vec<f64>, gain: f64) -> Vec<Finding> {
    let trial = |trial: usize| {
        let place = ["same", "cross"][trial / 8];
        let (block, capacity) = (["4k", "16k", "64k", "256k"][trial % 4], ["64k", "1m"][trial / 4 % 2]);
        let by = if trial % 4 == 3 || capacity == "1m" { gain } else { 1.0 };
        record("e", &[("place", place), ("block", block), ("capacity", capacity)], by / 100.0, &figures())
    };
    findings(&(0..16).map(trial).collect::<Vec<_>>(), None, &[])
}

/// The share of documents of pure noise that report a difference, 0 to 1.
fn false_documents(documents: usize, mut figures: impl FnMut() -> Vec<f64>) -> f64 {
    (0..documents).filter(|_| findings_of(&mut figures, 1.0).iter().any(reports_difference)).count() as f64
        / documents as f64
}

/// All sixteen trials are equal. Without adjusted intervals, a quarter to a half of such documents report a difference.
fn noise_alone_is_rarely_a_finding_in(documents: usize, most: f64) {
    for noise in ALL {
        let mut dice = Dice::new(15);
        let share = false_documents(documents, || dice.runs(noise, 8));
        assert!(share <= most, "{noise:?}: {share}");
    }
    for like in [0.3, 0.6] {
        let mut dice = Dice::new(15);
        let share = false_documents(documents, || dice.correlated_runs(like, 12));
        assert!(share <= most, "runs like those before, {like}: {share}");
    }
}

#[test]
fn noise_alone_is_rarely_a_finding() {
    noise_alone_is_rarely_a_finding_in(40, 0.05);
}

#[test]
#[ignore = "soak"]
fn soak_noise_alone_is_rarely_a_finding() {
    noise_alone_is_rarely_a_finding_in(1000, 0.05);
}

#[test]
fn a_difference_is_a_finding() {
    let mut dice = Dice::new(15);
    for rule in ["capacity", "best-block", "recommended"] {
        let hits = (0..40).filter(|_| {
            let found = findings_of(&mut || dice.runs(Noise::Quiet, 8), 1.25);
            found.iter().any(|finding| finding.rule == rule && reports_difference(finding))
        });
        assert!(hits.count() >= 38, "{rule}");
    }
}
