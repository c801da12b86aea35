//! Runs engines/test_line_job.py, which tests the line job of other engines. `make test-spark` tests Spark's.

use std::path::Path;
use std::process::Command;

use crate::program::{PIPEMARK, report_skip};

#[test]
fn the_line_job_gives_the_same_bytes_or_nothing() {
    run_tests(&["-k", "Faults", "-k", "in_the_order_of_names", "-k", "OnDask"]);
}

#[test]
#[ignore = "long"]
fn long_the_line_job_gives_the_same_bytes_or_nothing() {
    run_tests(&[]);
}

fn run_tests(selection: &[&str]) {
    let test = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../engines/test_line_job.py");
    let output =
        Command::new("python3").arg(test).arg("-v").args(selection).env("PIPEMARK", PIPEMARK).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    for (_, reason) in stderr.lines().filter_map(|line| line.split_once("... skipped ")) {
        let reason = reason.trim_matches(['\'', '"']);
        report_skip("the line job on an engine", reason);
    }
}
