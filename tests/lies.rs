//! Runs tests/lies.py: processes of another user try to make `why` accuse pipelines of what isn't so.

use std::process::Command;

use crate::program::{PIPEMARK, report_skip};

#[test]
fn lies_of_another_user_accuse_nobody() {
    lies(&["12"]);
}

#[test]
#[ignore = "soak"]
fn soak_lies_of_another_user_accuse_nobody() {
    lies(&[]);
}

fn lies(words: &[&str]) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/lies.py");
    let output = Command::new("timeout").args(["900", "python3", script, PIPEMARK]).args(words).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}");
    for (case, why) in printed.lines().filter_map(|line| line.strip_prefix("skip  ")?.split_once(": ")) {
        report_skip(case, why);
    }
}
