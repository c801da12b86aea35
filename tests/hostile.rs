//! Runs tests/hostile.py: `lines`, `relay` and other verbs under signals, limits, odd descriptors, files that change and
//! other users.

use std::process::Command;

use crate::program::{PIPEMARK, report_skip};

/// Cases that wait little.
#[test]
fn hostile_environments_lose_no_bytes() {
    let quick = "dev_full stderr_full all_closed few_fds fsize sealed tiny_pipes ptys deleted truncated sparse \
                 packets onto_itself append_together fifo no_proc inherited event_descriptors setuid_stage little_memory \
                 each_verb few_processes time_namespace vsock";
    hostile(1, "250", &quick.split_whitespace().collect::<Vec<_>>());
}

#[test]
#[ignore = "long"]
fn long_hostile_environments_lose_no_bytes() {
    hostile(1, "250", &[]);
}

#[test]
#[ignore = "soak"]
fn soak_hostile_surroundings() {
    hostile(2000, "1800", &[]);
}

/// A run that tries nothing proves nothing.
#[test]
fn an_unknown_case_is_an_error() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/hostile.py");
    let output = Command::new("python3").args([script, PIPEMARK, "few_fds", "no_such_case"]).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && printed.contains("no such case: no_such_case"), "{printed}");
}

/// Runs tests/hostile.py repeatedly until it has made this number of tries. Words select cases by name.
fn hostile(tries: u32, seconds: &str, words: &[&str]) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/hostile.py");
    let mut command = Command::new("timeout");
    command.args([seconds, "python3", script, PIPEMARK]).args(words).env("PIPEMARK_TRIES", tries.to_string());
    let output = command.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}");
    for (case, why) in printed.lines().filter_map(|line| line.strip_prefix("skip  ")?.split_once(": ")) {
        report_skip(case, why);
    }
}
