//! Runs tests/hostile.py: `lines` and `relay` under signals, limits, odd descriptors and files that change.

use std::process::Command;

use crate::program::PIPEMARK;

#[test]
fn hostile_environments_lose_no_bytes() {
    hostile(1, "250");
}

#[test]
#[ignore = "takes minutes"]
fn soak_hostile_surroundings() {
    hostile(2000, "1800");
}

/// Runs tests/hostile.py repeatedly until it has made this number of tries.
fn hostile(tries: u32, seconds: &str) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/hostile.py");
    let mut command = Command::new("timeout");
    command.args([seconds, "python3", script, PIPEMARK]).env("PIPEMARK_TRIES", tries.to_string());
    let output = command.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}");
}
