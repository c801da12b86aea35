//! Runs tests/python_module.py, which tests the Python module that the wheel contains.

use std::path::Path;
use std::process::Command;

use crate::program::{PIPEMARK, report_skip};

#[test]
fn the_python_module_calls_the_program() {
    let test = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/python_module.py");
    let mut command = Command::new("python3");
    command.arg("-B").arg(test).env("PIPEMARK", PIPEMARK).env("SHELL", "/bin/bash");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for part in String::from_utf8_lossy(&output.stdout).lines().filter_map(|line| line.strip_prefix("skipped: ")) {
        report_skip("the Python module", part);
    }
}
