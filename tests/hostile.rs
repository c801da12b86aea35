//! `lines` and `relay` among signals, limits, odd descriptors and files that change: `tests/hostile.py` has all of it.

use std::process::Command;

use crate::program::PIPEMARK;

#[test]
fn hostile_surroundings_lose_no_byte_and_no_end() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/hostile.py");
    let output = Command::new("timeout").args(["250", "python3", script, PIPEMARK]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}
