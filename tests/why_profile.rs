//! `pipemark why` names what a stage computes, where the kernel permits sampling.

use std::fs;

use serde_json::Value;

use crate::program::{pipemark, report_skip};

/// Whether functions can be sampled here; if not, says why.
fn may_sample() -> bool {
    let machine = pipemark(&["list", "machine", "--format", "json"]);
    let machine: Value = serde_json::from_str(&machine.stdout).unwrap();
    let rows = machine["permissions"].as_array().unwrap();
    let row = rows.iter().find(|row| row["name"] == "function sampling").expect("a row of the machine");
    row["missing"].as_str().inspect(|reason| report_skip("sampling functions", reason)).is_none()
}

fn why(words: &[&str]) -> Value {
    let ended = pipemark(&[&["why", "--json", "-"], words].concat());
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
}

/// What the verdict says about a pipeline, and the report.
fn verdict(pipeline: &str) -> (String, Value) {
    let report = why(&[pipeline]);
    (report["verdict"]["text"].as_str().unwrap().to_owned(), report)
}

#[test]
fn kinds_of_work_are_named() {
    if !may_sample() {
        return;
    }
    let cases = [
        ("head -c 100M /dev/zero | gzip -9 | wc -c >/dev/null", "gzip", "compression", "compressing or decompressing"),
        ("head -c 400M /dev/zero | sha256sum >/dev/null", "sha256sum", "hashing", "hashing"),
        ("seq 4000000 | perl -ne '$n += $_ % 7; END { print $n }' >/dev/null", "perl", "interpreting", "interpreting"),
        ("dd if=/dev/zero bs=1 count=1M 2>/dev/null | wc -c >/dev/null", "dd", "system-calls", "system calls"),
    ];
    for (pipeline, name, kind, phrase) in cases {
        let (text, report) = verdict(pipeline);
        let stages = report["stages"].as_array().unwrap();
        let stage = stages.iter().find(|stage| stage["name"] == name).unwrap_or_else(|| panic!("{pipeline}: {report}"));
        // Without permission to sample the kernel, the calls of dd are not seen.
        if kind == "system-calls" && stage["profile"]["user_only"] == true {
            continue;
        }
        assert_eq!(stage["profile"]["kinds"][0]["kind"], kind, "{pipeline}: {report}");
        assert!(text.contains(phrase) || !text.contains("computing"), "{pipeline}: {text}");
    }
}

#[test]
fn functions_and_stacks_are_listed_and_kept_in_traces() {
    if !may_sample() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (stacks, trace, redacted) = (path("stacks"), path("trace"), path("redacted"));
    let pipeline = "head -c 100M /dev/zero | gzip -9 | wc -c >/dev/null";
    let ended = pipemark(&["why", "--functions", "--folded", &stacks, "--trace", &trace, pipeline]);
    assert!(ended.stderr.contains("Functions of 2 gzip ("), "{}", ended.stderr);
    let stacks = fs::read_to_string(stacks).unwrap();
    let is_stack = |line: &str| line.rsplit_once(' ').is_some_and(|(_, count)| count.parse::<u32>().is_ok());
    assert!(stacks.lines().any(|line| line.starts_with("gzip;")) && stacks.lines().all(is_stack), "{stacks}");

    let report = why(&["--replay", &trace]);
    let again = report["verdict"]["text"].as_str().unwrap();
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(one_line(&ended.stderr).contains(&one_line(again)), "{again}\n{}", ended.stderr);
    assert_eq!(pipemark(&["why", "--replay", &trace, "--trace", &redacted, "--redact"]).code(), Some(0));
    let report = why(&["--replay", &redacted]);
    assert_eq!(report["verdict"]["text"], again);
    let functions = |stage: &Value| stage["profile"]["functions"].as_array().map(Vec::len);
    assert!(report["stages"].as_array().unwrap().iter().all(|stage| functions(stage).unwrap_or(0) == 0), "{report}");
}

#[test]
fn nothing_is_sampled_if_that_is_not_wanted() {
    let report = why(&["--no-profile", "head -c 20M /dev/zero | gzip -9 | wc -c >/dev/null"]);
    assert!(report["stages"].as_array().unwrap().iter().all(|stage| stage.get("profile").is_none()), "{report}");
    assert!(!report["verdict"]["text"].as_str().unwrap().contains("Of its CPU time"), "{report}");
}
