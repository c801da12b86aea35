//! Tests how trials are matched, which comparisons are refused, and which figures the verdicts are based on.

use std::slice::from_ref;

use pipemark_model::{Better, Experiment, METHOD, Mode, Record, SCHEMA, Status, Value, WORKLOAD, Warning};

use super::*;
use crate::compare::Pairing;
use crate::fixture::{STEADY, record, round_trip_record};
use crate::verdict::{Criterion, Verdict};

fn document(trials: Vec<Record>) -> Document {
    let mut experiments: Vec<Experiment> = Vec::new();
    for trial in &trials {
        if !experiments.iter().any(|known| known.name == trial.experiment) {
            experiments.push(Experiment {
                name: trial.experiment.clone(),
                title: format!("title of {}", trial.experiment),
                about: String::new(),
                varies: Vec::new(),
                across: None,
                headline: false,
                gains: None,
                known: Vec::new(),
            });
        }
    }
    Document {
        schema: SCHEMA.to_owned(),
        workload: WORKLOAD,
        method: METHOD,
        version: "0.1.0".to_owned(),
        suite: "s".to_owned(),
        title: String::new(),
        command: Vec::new(),
        label: None,
        started: "2025-03-01T12:00:00Z".to_owned(),
        elapsed_ns: 1,
        seed: 1,
        partial: false,
        host: pipemark_model::Host::default(),
        memory_copy: None,
        experiments,
        trials,
        claims: Vec::new(),
        findings: Vec::new(),
        warnings: Vec::new(),
        watched: None,
        tuned: None,
        commands: Vec::new(),
    }
}

fn settings(texts: &[&str]) -> Vec<Value> {
    texts.iter().map(|text| Value::parse_pair(text).unwrap()).collect()
}

/// Five sessions of a measurement with different start times. Their figures differ by a few per mille.
fn sessions(document: &Document, day: &str) -> Vec<Document> {
    let session = |(at, by): (usize, f64)| {
        let mut session = document.clone();
        session.started = format!("2025-03-{day}T1{at}:00:00Z");
        for sample in session.trials.iter_mut().flat_map(|record| &mut record.samples) {
            sample.bytes = (sample.bytes as f64 * by).round() as u64;
            if let Some(latency) = &mut sample.latency {
                latency.p50 = (latency.p50 as f64 * by).round() as u64;
            }
        }
        session
    };
    [1.0, 1.002, 0.998, 1.001, 0.999].into_iter().enumerate().map(session).collect()
}

fn diff(base: &[Document], new: &[Document], history: &[Document]) -> Result<Diff, DiffRefusal> {
    let side_input = |name, documents| SideInput { name, documents, settings: &[] };
    Diff::of(side_input("a.json", base), side_input("b.json", new), history, &Criterion::new)
}

/// Compares five sessions of BASE with five sessions of NEW.
fn compare_five_sessions(base: &Document, new: &Document) -> Result<Diff, DiffRefusal> {
    diff(&sessions(base, "01"), &sessions(new, "02"), &[])
}

fn within(document: &Document, base: &[&str], new: &[&str]) -> Result<Diff, DiffRefusal> {
    let (base, new) = (settings(base), settings(new));
    let side_input = |settings| SideInput { name: "a.json", documents: from_ref(document), settings };
    Diff::of(side_input(&base), side_input(&new), &[], &Criterion::new)
}

fn refusal(result: Result<Diff, DiffRefusal>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn trials_are_matched_by_their_parameters_and_the_others_are_listed() {
    let base = document(vec![
        record("e", &[("block", "4k")], 1.0, &STEADY),
        record("e", &[("block", "64k")], 2.0, &STEADY),
        record("e", &[("block", "1m")], 3.0, &STEADY),
    ]);
    let new = document(vec![
        record("e", &[("block", "1m")], 2.4, &STEADY),
        record("e", &[("block", "64k")], 2.2, &STEADY),
        record("e", &[("block", "128k")], 9.0, &STEADY),
        record("f", &[("block", "4k")], 9.0, &STEADY),
    ]);
    let report = compare_five_sessions(&base, &new).unwrap();
    let [group] = report.groups.as_slice() else { panic!("{report:?}") };
    let verdicts: Vec<(&str, Verdict)> =
        group.changes.iter().map(|change| (change.name.as_str(), change.comparison.verdict)).collect();
    assert_eq!(verdicts, [("64 KiB blocks", Verdict::Better), ("1 MiB blocks", Verdict::Worse)]);
    assert_eq!(group.title, "title of e");
    assert!((group.changes[0].comparison.change - 0.1).abs() < 0.01, "{:?}", group.changes[0]);
    let comparison = &group.changes[0].comparison;
    assert_eq!((comparison.pairing, comparison.base_runs, comparison.new_sessions), (Pairing::Sessions, 35, 5));
    let missing: Vec<(Side, &str)> = report.missing.iter().map(|missing| (missing.side, missing.id.as_str())).collect();
    assert_eq!(
        missing,
        [
            (Side::New, "pipe write-read 4096 cross count"),
            (Side::Base, "pipe write-read 131072 cross count"),
            (Side::Base, "pipe write-read 4096 cross count"),
        ]
    );
}

#[test]
fn a_wrong_id_matches_no_trial() {
    let base = document(vec![record("e", &[("block", "4k")], 1.0, &STEADY)]);
    let mut new = document(vec![record("e", &[("block", "64k")], 1.0, &STEADY)]);
    new.trials[0].id = base.trials[0].id.clone();
    let error = refusal(compare_five_sessions(&base, &new));
    assert!(error.contains("--base capacity=default"), "{error}");
}

#[test]
fn round_trips_are_better_when_shorter() {
    let base = document(vec![round_trip_record(&[], 5000.0, &STEADY)]);
    let new = document(vec![round_trip_record(&[], 6000.0, &STEADY)]);
    let report = compare_five_sessions(&base, &new).unwrap();
    let group = &report.groups[0];
    assert_eq!((group.mode, group.better), (Mode::Latency, Better::Lower));
    assert_eq!((group.changes[0].base.round(), group.changes[0].new.round()), (5000.0, 6000.0));
    assert!(group.changes[0].comparison.change > 0.19);
    assert_eq!(group.changes[0].comparison.verdict, Verdict::Worse);
}

#[test]
fn only_selected_parameters_may_differ() {
    let one = |capacity, block, speed| record("e", &[("capacity", capacity), ("block", block)], speed, &STEADY);
    let document = document(vec![
        one("default", "4k", 1.0),
        one("1m", "4k", 1.5),
        one("default", "64k", 2.0),
        one("1m", "64k", 1.0),
        one("256k", "64k", 7.0),
        record("memory-copy", &[("link", "memory-copy"), ("place", "same")], 9.0, &STEADY),
    ]);
    let report = within(&document, &["capacity=default"], &["capacity=1048576"]).unwrap();
    let changes = &report.groups[0].changes;
    assert_eq!(changes.len(), 2);
    assert_eq!((changes[0].name.as_str(), changes[0].comparison.verdict), ("4 KiB blocks", Verdict::Better));
    assert_eq!((changes[1].name.as_str(), changes[1].comparison.verdict), ("64 KiB blocks", Verdict::Worse));
    assert_eq!(changes[0].new_id, "pipe write-read 4096 cross count capacity=1MiB");
    assert_eq!(changes[0].comparison.pairing, Pairing::Rounds);
    assert_eq!(report.missing, []);
    assert_eq!(report.base.chosen, ["capacity=default"]);

    let error = refusal(within(&document, &["capacity=3m"], &["capacity=1m"]));
    assert!(error.contains("no trial with capacity=3 MiB; it has") && error.contains("256 KiB"), "{error}");
    let error = refusal(within(&document, &["block=4k"], &["capacity=1m"]));
    assert!(error.contains("several trials") && error.contains("give more parameters"), "{error}");
}

#[test]
fn rounds_are_paired_by_their_number() {
    let drift = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7];
    let mut base = record("e", &[], 1.0, &drift);
    let mut new = record("e", &[("capacity", "1m")], 1.05, &drift);
    // Remove the last rounds of the trial, as if it had stopped early. The order of the runs in the file doesn't
    // matter.
    base.samples.remove(7);
    new.samples.reverse();
    let document = document(vec![base, new]);
    let comparison =
        within(&document, &["capacity=default"], &["capacity=1m"]).unwrap().groups[0].changes[0].comparison;
    assert_eq!((comparison.pairing, comparison.base_runs), (Pairing::Rounds, 7));
    assert_eq!(comparison.verdict, Verdict::Better);
    assert!((comparison.change - 0.05).abs() < 1e-6);
}

#[test]
fn a_group_is_judged_by_its_geometric_mean() {
    let side = |by: f64| {
        let blocks = ["4k", "64k", "1m"];
        let speeds = [1.0 * by, 2.0 * by, 3.0 * by];
        let trials = blocks.iter().zip(speeds).map(|(block, speed)| record("e", &[("block", block)], speed, &STEADY));
        let mut trials: Vec<Record> = trials.collect();
        trials.push(round_trip_record(&[], 5000.0, &STEADY));
        document(trials)
    };
    let report = compare_five_sessions(&side(1.0), &side(0.9)).unwrap();
    assert_eq!(report.groups.len(), 2, "latency is a group of its own");
    let mean = report.groups[0].mean.unwrap();
    assert!((mean.change + 0.1).abs() < 1e-6 && mean.verdict == Verdict::Worse, "{mean:?}");
    assert_eq!(report.groups[1].mean, None, "one trial is no group");
    assert_eq!(report.count(Verdict::Worse), 3);
}

#[test]
fn memory_copies_have_no_verdict() {
    let copy = |speed| record("memory-copy", &[("link", "memory-copy"), ("place", "same")], speed, &STEADY);
    let base = document(vec![copy(9.0), record("e", &[], 1.0, &STEADY)]);
    let new = document(vec![copy(4.0), record("e", &[], 1.0, &STEADY)]);
    let report = compare_five_sessions(&base, &new).unwrap();
    assert!(report.groups[0].changes[0].reference);
    assert_eq!(report.groups[0].changes[0].comparison.verdict, Verdict::Worse);
    assert_eq!((report.count(Verdict::Worse), report.count(Verdict::Same)), (0, 1));
}

#[test]
fn trials_that_did_not_run_are_listed_with_the_reason() {
    let base = document(vec![record("e", &[], 1.0, &STEADY), record("e", &[("block", "4k")], 1.0, &STEADY)]);
    let mut new = base.clone();
    new.trials[0].status = Status::Failed;
    new.trials[0].reason = Some("it hung".to_owned());
    new.trials[1].verified = Some(false);
    let report = compare_five_sessions(&base, &new).unwrap();
    assert!(report.groups.is_empty());
    let reasons: Vec<&str> = report.missing.iter().map(|missing| missing.reason.as_str()).collect();
    assert_eq!(reasons, ["failed: it hung", "its data did not verify"]);
    assert!(report.missing.iter().all(|missing| missing.side == Side::New));
}

#[test]
fn another_workload_is_refused() {
    let base = document(vec![record("e", &[], 1.0, &STEADY)]);
    let mut new = base.clone();
    new.workload += 1;
    let error = refusal(compare_five_sessions(&base, &new));
    assert!(error.contains("b.json") && error.contains("version 2"), "{error}");
}

#[test]
fn there_is_no_verdict_across_methods() {
    let new = document(vec![record("e", &[], 1.0, &STEADY)]);
    let mut base = new.clone();
    base.method = 1;
    let error = refusal(compare_five_sessions(&base, &new));
    assert!(error.contains("method 1") && error.contains("method 2") && error.contains("no verdict"), "{error}");
    let old = base.clone();
    assert!(compare_five_sessions(&base, &old).is_ok(), "those of before can be compared with each other");
}

#[test]
fn other_differences_are_named() {
    let base = document(vec![record("e", &[], 1.0, &STEADY)]);
    assert_eq!(
        diff(from_ref(&base), from_ref(&base.clone()), &[]).unwrap().warnings,
        ["both files hold the same measurement"]
    );
    let mut new = base.clone();
    new.host.kernel = "Linux 6.8".to_owned();
    new.host.cpus = 64;
    new.host.pipe_user_pages_soft = 16384;
    new.version = "0.2.0".to_owned();
    new.partial = true;
    new.warnings.push(Warning::Steal { percent: 7.0 });
    new.trials[0].samples[0].capacity_granted = Some(8192);
    let mut base = base;
    base.host.kernel = "Linux 5.4".to_owned();
    base.trials[0].samples[0].capacity_granted = Some(65536);
    let warnings = compare_five_sessions(&base, &new).unwrap().warnings.join("\n");
    for part in [
        "kernel (Linux 5.4 in BASE, Linux 6.8 in NEW)",
        "CPUs (0 in BASE, 64 in NEW)",
        "pipe-user-pages-soft (no limit in BASE, 16384 pages in NEW)",
        "pipemark 0.2.0 measured NEW",
        "NEW was interrupted",
        "NEW: the hypervisor took 7.0 % of the CPU time (steal); measure when the host is quieter (5 of 5 sessions)",
        "the capacity granted was 64 KiB in BASE and 8 KiB in NEW",
    ] {
        assert!(warnings.contains(part), "{part} is not in\n{warnings}");
    }
}

#[test]
fn impossible_figures_are_refused() {
    let base = document(vec![record("e", &[], 1.0, &STEADY), round_trip_record(&[], 5000.0, &STEADY)]);
    type Damage = fn(&mut Document);
    let damages: [(Damage, &str); 8] = [
        (|document| document.trials[0].samples[2].ns = 0, "round 2 moved"),
        (|document| document.trials[0].samples[2].bytes = 0, "round 2 moved 0 bytes"),
        (|document| document.trials[0].samples[2].bytes = u64::MAX, "which is impossible"),
        (|document| document.trials[0].samples[2].round = 1, "two runs of round 1"),
        (|document| document.trials[1].samples[0].latency = None, "has no round trips"),
        (|document| document.trials[1].samples[0].latency.as_mut().unwrap().p50 = 0, "round trip of 0 ns"),
        (|document| document.trials[1].samples[0].latency.as_mut().unwrap().p50 = u64::MAX, "which is impossible"),
        (|document| document.trials[1] = document.trials[0].clone(), "several trials"),
    ];
    for (damage, expected) in damages {
        let mut new = base.clone();
        damage(&mut new);
        let error = refusal(compare_five_sessions(&base, &new));
        assert!(error.contains("b.json") && error.contains(expected), "{error}");
    }
    let mut many = base.clone();
    let sample = many.trials[0].samples[0].clone();
    many.trials[0].samples = vec![sample; 1001];
    assert!(refusal(compare_five_sessions(&base, &many)).contains("1001 runs are too many"));
}

/// With one session on each side, only the history shows how much sessions differ.
#[test]
fn the_history_judges_one_session_per_side() {
    let base = document(vec![record("e", &[], 1.0, &STEADY)]);
    let mut new = document(vec![record("e", &[], 2.0, &STEADY)]);
    new.started = "2025-03-02T12:00:00Z".to_owned();
    let judged = |history: &[Document]| diff(from_ref(&base), from_ref(&new), history).unwrap();
    let why = |diff: &Diff| (diff.verdicts().next().unwrap(), diff.counted().next().unwrap().why.clone());
    let (verdict, reason) = why(&judged(&[]));
    assert_eq!(verdict, Verdict::Inconclusive);
    assert_eq!(reason.unwrap(), "1 session each: no verdict; use ab, or --sessions 5");
    assert_eq!(judged(&[]).without_verdict(), 1);

    let history = sessions(&base, "03");
    assert_eq!(why(&judged(&history)), (Verdict::Better, None));
    assert_eq!(judged(&history).known_sessions, 5);
    assert_eq!(why(&judged(&history[..4])).0, Verdict::Inconclusive, "four sessions of one trial know too little");
    // If sessions differ by two thirds, the verdict on a change by a factor of two is inconclusive.
    let mut noisy = history.clone();
    for (session, by) in noisy.iter_mut().zip([3u64, 5, 3, 5, 4]) {
        session.trials[0].samples.iter_mut().for_each(|sample| sample.bytes = sample.bytes * by / 4);
    }
    let (verdict, reason) = why(&judged(&noisy));
    let reason = reason.unwrap();
    assert!(verdict == Verdict::Inconclusive && reason.starts_with("inconclusive; use --sessions"), "{reason}");
    // Some sessions of the history don't count: sessions of other machines or methods, the compared sessions
    // themselves, and groups of one session.
    type Odd = fn(&mut Document);
    let odd: [Odd; 4] = [
        |document| document.host.name = "elsewhere".to_owned(),
        |document| document.method = 1,
        |document| document.started = "2025-03-02T12:00:00Z".to_owned(),
        |document| document.label = Some(document.started.clone()),
    ];
    for change in odd {
        let mut history = history.clone();
        history.iter_mut().for_each(change);
        assert_eq!(why(&judged(&history)).0, Verdict::Inconclusive, "{history:?}");
    }
    let mut none = base.clone();
    none.trials[0].samples.clear();
    assert_eq!(compare_five_sessions(&base, &none).unwrap().missing[0].reason, "it has no runs");
}

#[test]
fn unequal_disturbance_gives_no_verdict() {
    let base = document(vec![record("e", &[], 1.0, &STEADY), record("e", &[("block", "1k")], 1.0, &STEADY)]);
    let disturbances = [
        (Warning::Load { busy: 0.9 }, "others used 0.00 CPUs in BASE and 0.90 CPUs in NEW", "quiet machine"),
        (Warning::Steal { percent: 9.0 }, "the hypervisor took 0.00 % in BASE", "quiet machine"),
        (Warning::Throttled { percent: 9.0, times: 7 }, "CPU limit throttled", "raise the CPU limit"),
    ];
    for (warning, says, advice) in disturbances {
        let mut new = document(vec![record("e", &[], 2.0, &STEADY), record("e", &[("block", "1k")], 2.0, &STEADY)]);
        assert_eq!(compare_five_sessions(&base, &new).unwrap().count(Verdict::Better), 2);
        new.warnings.push(warning.clone());
        let diff = compare_five_sessions(&base, &new).unwrap();
        assert_eq!(
            (diff.count(Verdict::Inconclusive), diff.groups[0].mean.unwrap().verdict),
            (2, Verdict::Inconclusive)
        );
        let reasons: Vec<&String> = diff.counted().map(|change| change.why.as_ref().unwrap()).collect();
        assert!(reasons.iter().all(|reason| reason.contains(says) && reason.contains(advice)), "{reasons:?}");
        let mut base = base.clone();
        base.warnings.push(warning);
        assert_eq!(compare_five_sessions(&base, &new).unwrap().count(Verdict::Better), 2, "both were disturbed alike");
    }
}

/// If one file has several sessions and --base and --new select trials in it, the sides alternate within each session,
/// and each session counts once.
#[test]
fn interleaved_sides_are_compared_within_each_session() {
    let one = |capacity, speed| record("e", &[("capacity", capacity)], speed, &STEADY);
    let all = sessions(&document(vec![one("default", 1.0), one("1m", 1.1)]), "01");
    let (base, new) = (settings(&["capacity=default"]), settings(&["capacity=1m"]));
    let compared = |documents| {
        let side_input = |settings| SideInput { name: "a.json", documents, settings };
        Diff::of(side_input(&base), side_input(&new), &[], &Criterion::new).unwrap().groups[0].changes[0].clone()
    };
    let change = compared(&all);
    assert_eq!((change.comparison.pairing, change.comparison.base_sessions), (Pairing::Rounds, 5));
    assert_eq!((change.comparison.verdict, change.why), (Verdict::Better, None));
    let change = compared(&all[..3]);
    assert!(
        change.comparison.verdict == Verdict::Inconclusive
            && change.why.unwrap().contains("3 sessions against 3: no verdict")
    );
}

#[test]
fn names_omit_selected_parameters() {
    let document = document(vec![
        record("e", &[("send", "write")], 1.0, &STEADY),
        record("e", &[("send", "vmsplice")], 2.0, &STEADY),
    ]);
    let report = within(&document, &["send=write"], &["send=vmsplice"]).unwrap();
    let name = &report.groups[0].changes[0].name;
    assert!(!name.contains("write") && name.contains("64 KiB blocks"), "{name}");
}

/// Rows show figures that agree with the change. For a bimodal trial, the medians suggest a different change.
#[test]
fn figures_agree_with_the_change() {
    let steady = compare_five_sessions(
        &document(vec![record("e", &[], 1.0, &STEADY)]),
        &document(vec![record("e", &[], 2.0, &STEADY)]),
    );
    assert_eq!(steady.unwrap().groups[0].changes[0].typical, None);
    let base = document(vec![record("e", &[], 1.0, &[1.0, 1.01, 1.02, 1.03, 3.0, 3.01, 3.02])]);
    let new = document(vec![record("e", &[], 1.0, &[1.0, 1.02, 1.03, 3.0, 3.01, 3.02, 3.03])]);
    let change = diff(&[base], &[new], &[]).unwrap().groups[0].changes[0].clone();
    assert!(change.new / change.base > 2.0 && change.comparison.change < 0.1, "{change:?}");
    let (base, new) = change.typical.expect("the medians suggest another");
    assert!((new / base - 1.0 - change.comparison.change).abs() < 0.01, "{change:?}");
}
