//! `pipemark chain`: chains of every length pass all bytes, and every kind of failing stage is reported.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::program::PIPEMARK;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

fn chain(words: &[&str]) -> Command {
    let mut command = Command::new(PIPEMARK);
    command.args(["chain", "--runs", "1", "--no-save"]).args(words);
    if !words.contains(&"--total") {
        command.args(["--total", "1m"]);
    }
    command
}

/// Runs one trial; returns its document and exit code.
fn trial(words: &[&str]) -> (Value, Option<i32>) {
    let Output { stdout, status, stderr } = chain(words).args(["--json", "-"]).output().expect("the program starts");
    let document = serde_json::from_slice(&stdout);
    (document.unwrap_or_else(|error| panic!("{words:?}: {error}: {}", String::from_utf8_lossy(&stderr))), status.code())
}

#[test]
fn every_byte_comes_through() {
    bytes_come_through(&["cat | relay --method read-write | relay"], &["0", "1", "17"]);
}

#[test]
#[ignore = "long"]
fn long_every_byte_comes_through() {
    bytes_come_through(&["cat", "relay", "cat | relay --method read-write | relay"], &["0", "1", "2", "17", "256"]);
}

fn bytes_come_through(stages: &[&str], lengths: &[&str]) {
    for &stage in stages {
        for &length in lengths {
            let (document, code) = trial(&["--length", length, "--stage", stage, "--verify", "full", "--total", "3m"]);
            let record = &document["trials"][0];
            assert_eq!(code, Some(0), "{length} × {stage}: {}", record["reason"]);
            assert_eq!(record["verified"], true, "{length} × {stage}");
            let sample = &record["samples"][0];
            assert_eq!(sample["bytes"], 3 << 20, "{length} × {stage}");
            let stages = sample["stages"].as_array().map_or(0, Vec::len);
            assert_eq!(stages.to_string(), length, "{stage}");
        }
    }
}

const GREP: [&str; 12] = [
    "--length",
    "1",
    "--stage",
    "grep no-such-line",
    "--content",
    "text",
    "--verify",
    "none",
    "--send",
    "write",
    "--total",
    "5m",
];

#[test]
fn grep_that_finds_nothing_ends_with_1_and_has_a_speed() {
    let (document, code) = trial(&[&GREP[..], &["--exit", "1"]].concat());
    let record = &document["trials"][0];
    assert_eq!(code, Some(0), "{}", record["reason"]);
    let sample = &record["samples"][0];
    assert_eq!(sample["bytes"], 5 << 20, "what grep took");
    assert_eq!(sample["sinks"][0]["bytes"], 0, "what it passed on");
    assert!(sample["ns"].as_u64() < sample["wall_ns"].as_u64());
}

#[test]
fn a_stage_that_ends_with_another_code_is_a_failure() {
    // This grep finds matches, so it exits with 0.
    let mut found = GREP;
    found[3] = "grep -m1 -c e";
    for (words, reason) in [
        (&[&GREP[..], &["--exit", "0"]].concat(), "ended with exit code 1"),
        (&[&found[..], &["--exit", "1"]].concat(), "ended with exit code 0 instead of 1"),
    ] {
        let (document, code) = trial(words);
        let record = &document["trials"][0];
        assert_eq!(code, Some(1), "{words:?}");
        assert!(record["reason"].as_str().unwrap().contains(reason), "{words:?}: {}", record["reason"]);
    }
}

#[test]
fn text_is_lines_of_words_and_its_bytes_are_counted() {
    let words = ["--length", "1", "--stage", "tr -dc '\\n'", "--content", "text", "--verify", "none"];
    let (document, code) = trial(&[&words[..], &["--send", "write", "--total", "1m"]].concat());
    assert_eq!(code, Some(0));
    let lines = document["trials"][0]["samples"][0]["sinks"][0]["bytes"].as_u64().unwrap();
    assert!((8_000..40_000).contains(&lines), "{lines} lines in 1 MiB");
    let (document, code) = trial(&["--length", "1", "--content", "text", "--verify", "count"]);
    assert_eq!((code, &document["trials"][0]["verified"]), (Some(0), &Value::Bool(true)));
    let refused = chain(&["--content", "text", "--verify", "full"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{}", String::from_utf8_lossy(&refused.stderr));
}

#[test]
fn a_command_may_be_the_source() {
    for length in ["0", "1", "3"] {
        let words = ["--length", length, "--source", "head -c {total} /dev/zero", "--total", "3m"];
        let (document, code) = trial(&words);
        let record = &document["trials"][0];
        assert_eq!(code, Some(0), "{length}: {}", record["reason"]);
        let sample = &record["samples"][0];
        assert_eq!((sample["bytes"].as_u64(), record["verify"].as_str()), (Some(3 << 20), Some("none")), "{length}");
        assert_eq!(sample["stages"].as_array().map_or(0, Vec::len).to_string(), length);
        assert!(sample["ns"].as_u64() <= sample["real_ns"].as_u64(), "{length}: {sample}");
    }
    let from = |source: &str, stage: &str| {
        let words = ["--length", "2", "--stage", stage, "--source", source];
        let (document, code) = trial(&words);
        let record = &document["trials"][0];
        (code, record["status"].as_str().unwrap().to_owned(), record["reason"].as_str().unwrap_or_default().to_owned())
    };
    let (code, _, reason) = from("sh -c 'exit 5'", "cat");
    assert!(code == Some(1) && reason.contains("the source (sh -c exit 5) ended with exit code 5"), "{reason}");
    let (code, _, reason) = from("head -c {total} /dev/zero", "cat | head -c 9");
    assert!(code == Some(1) && reason.contains("stage 2 of 2 (head -c 9) ended before its input did"), "{reason}");
    let (_, status, reason) = from("no-such-program", "cat");
    assert!(status == "skipped" && reason.contains("the source of the chain"), "{reason}");
}

#[test]
fn the_volume_is_chosen_by_measuring() {
    let words = ["chain", "--length", "0,2", "--runs", "1", "--no-save", "--json", "-"];
    let Output { stdout, status, stderr } = Command::new(PIPEMARK).args(words).output().unwrap();
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    let document: Value = serde_json::from_slice(&stdout).unwrap();
    for record in document["trials"].as_array().unwrap() {
        let total = record["params"]["volume"]["total"].as_u64().unwrap_or_else(|| panic!("{}", record["params"]));
        assert!(total >= 1 << 20 && total % 65536 == 0, "{total}");
        assert_eq!(record["samples"][0]["bytes"], total);
    }
}

#[test]
fn resource_usage_of_stages_is_counted() {
    let (document, _) = trial(&["--length", "3", "--stage", "cat", "--total", "64m"]);
    let sample = &document["trials"][0]["samples"][0];
    let sum = |list: &str, what: &str| -> u64 {
        sample[list].as_array().unwrap().iter().map(|end| end[what].as_u64().unwrap()).sum()
    };
    for what in ["user_ns", "sys_ns", "voluntary_switches", "involuntary_switches"] {
        let all = sum("stages", what) + sum("sources", what) + sum("sinks", what);
        assert_eq!(sample[what].as_u64(), Some(all), "{what}");
    }
    assert!(sum("stages", "user_ns") + sum("stages", "sys_ns") > 0);
    assert!(sample["wall_ns"].as_u64() > sample["ns"].as_u64(), "real time covers the start of the processes");
}

#[test]
fn a_stage_that_changes_bytes_is_noticed_and_may_be_wanted() {
    let words = ["--length", "2", "--stage", "tr a b"];
    let (document, code) = trial(&[&words[..], &["--verify", "full"]].concat());
    assert_eq!(code, Some(3), "{}", document["trials"][0]["reason"]);
    let (_, code) = trial(&[&words[..], &["--verify", "none"]].concat());
    assert_eq!(code, Some(0));
    // sort writes nothing before its input ends.
    let (document, code) = trial(&["--length", "1", "--stage", "sort", "--verify", "none"]);
    assert_eq!(code, Some(0), "{}", document["trials"][0]["reason"]);
}

#[test]
fn a_failing_stage_is_named_with_its_stderr() {
    for (stage, words) in [
        ("/etc/passwd", &["stage 1 of 3 (/etc/passwd)", "exit code 126", "denied"][..]),
        ("cat | cat --no-such-option", &["stage 2 of 3 (cat --no-such-option)", "exit code 1", "unrecognized option"]),
        ("cat | sh -c 'echo oops >&2; exit 7' | cat", &["stage 2 of 3", "exit code 7: oops"]),
        ("cat | cat | sh -c 'kill -9 $$'", &["stage 3 of 3", "was killed (SIGKILL)"]),
        ("cat | head -c 5000 | cat", &["stage 2 of 3 (head -c 5000)", "ended before its input"]),
        ("cat | cat | sh -c 'cat; exit 9'", &["stage 3 of 3", "exit code 9"]),
        ("relay --no-such-option", &["stage 1 of 3", "exit code 2", "--no-such-option"]),
    ] {
        let (document, code) = trial(&["--length", "3", "--stage", stage, "--total", "8m"]);
        let record = &document["trials"][0];
        let reason = record["reason"].as_str().unwrap_or_default();
        assert_eq!((code, record["status"].as_str()), (Some(1), Some("failed")), "{stage}: {reason}");
        assert!(words.iter().all(|word| reason.contains(word)), "{stage}: {reason}");
    }
}

#[test]
fn a_stage_that_is_not_installed_is_skipped_with_a_reason() {
    let (document, code) = trial(&["--length", "3", "--stage", "cat | no-such-program-anywhere"]);
    let record = &document["trials"][0];
    assert_eq!(record["status"], "skipped");
    assert_eq!(record["reason"], "no-such-program-anywhere, a stage of the chain, is not installed");
    assert_eq!(code, Some(1), "nothing was measured");
}

#[test]
fn output_of_a_stage_is_bounded() {
    // A megabyte written to standard error neither fills memory nor blocks the stage.
    let (document, code) =
        trial(&["--length", "1", "--stage", "sh -c 'yes oops 2>/dev/null | head -c 1000000 >&2; exit 5'"]);
    let reason = document["trials"][0]["reason"].as_str().unwrap();
    assert_eq!(code, Some(1));
    assert!(reason.contains("exit code 5") && reason.len() < 6000, "{} bytes", reason.len());
}

/// The number of processes with this text in their command line.
fn running(text: &str) -> usize {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let has_it = |path: &Path| {
        let line = fs::read(path.join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).replace('\0', " ").contains(text)
    };
    entries.filter(|entry| has_it(&entry.path())).count()
}

/// Waits until `enough` accepts the number of processes; fails after a minute.
fn wait_for_count(text: &str, enough: impl Fn(usize) -> bool) {
    let begin = Instant::now();
    while !enough(running(text)) {
        assert!(begin.elapsed() < Duration::from_secs(60), "{} processes with '{text}'", running(text));
        sleep(Duration::from_millis(20));
    }
}

/// A chain of `length` stages that never end and have `mark` in their command line. The stages start no processes, so
/// killing the chain ends all processes.
fn start_hanging(length: &str, mark: &str) -> Child {
    let stage = format!("sleep {mark}");
    let mut command = chain(&["--length", length, "--stage", &stage, "--total", "64m", "-q"]);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn a_hanging_stage_is_killed_with_its_children() {
    let mark = format!("mark-hang-{}", std::process::id());
    let stage = format!("sh -c 'sleep 321; : {mark}'");
    let (document, code) = trial(&["--length", "3", "--stage", &stage, "--limit", "2s"]);
    assert_eq!(code, Some(1));
    assert!(document["trials"][0]["reason"].as_str().unwrap().contains("limit"));
    assert_eq!(running(&mark), 0);
    // No process waits for the child of the stage, so the child may end later than the run.
    wait_for_count("sleep 321", |running| running == 0);
}

#[test]
fn an_interrupt_in_the_middle_leaves_nothing() {
    let mark = format!("100.1{}", std::process::id());
    let mut child = start_hanging("300", &mark);
    // Signals arrive while the stages are being started.
    wait_for_count(&mark, |running| running > 100);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(running(&mark), 0);
}

#[test]
fn a_run_that_is_killed_takes_its_stages_along() {
    let mark = format!("100.2{}", std::process::id());
    let mut child = start_hanging("50", &mark);
    // The command line of the parent contains the mark too.
    wait_for_count(&mark, |running| running > 50);
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for_count(&mark, |running| running == 0);
}

#[test]
fn a_thousand_stages_need_no_more_descriptors_than_are_allowed() {
    let limited = |limit: &str, length: &str| {
        let script =
            format!("ulimit -n {limit}; exec {PIPEMARK} chain --no-save --length {length} --total 64k --runs 1");
        Command::new("bash").args(["-c", &script]).output().unwrap()
    };
    let output = limited("300", "1024");
    assert_eq!(output.status.code(), Some(1));
    let shown = String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains("needs 1") && shown.contains("the limit is 300 (RLIMIT_NOFILE)"), "{shown}");
    // A lower soft limit is raised.
    let script = format!("ulimit -Sn 200; exec {PIPEMARK} chain --no-save --length 256 --total 64k --runs 1 -q");
    assert!(Command::new("bash").args(["-c", &script]).status().unwrap().success());
}

#[test]
#[ignore = "long"]
fn long_a_thousand_relays_pass_every_byte() {
    let (document, code) = trial(&["--length", "1024", "--stage", "relay", "--verify", "full"]);
    assert_eq!(code, Some(0), "{}", document["trials"][0]["reason"]);
}
