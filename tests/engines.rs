//! Runs engines/test_line_job.py, which tests the line job of other engines. `make test-spark` tests Spark's.

use std::path::Path;
use std::process::Command;

use crate::program::{PIPEMARK, left_out};

#[test]
fn the_line_job_gives_the_same_bytes_or_nothing() {
    let test = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../engines/test_line_job.py");
    let output = Command::new("python3").arg(test).arg("-v").env("PIPEMARK", PIPEMARK).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    for (_, reason) in said.lines().filter_map(|line| line.split_once("... skipped ")) {
        let reason = reason.trim_matches(['\'', '"']);
        left_out("the line job on an engine", reason);
    }
}
