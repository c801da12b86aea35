//! Passes the compiler's version to the programs, which report it as their runtime.

use std::env;
use std::process::Command;

fn main() {
    let rustc = env::var_os("RUSTC").expect("cargo sets RUSTC");
    let output = Command::new(rustc)
        .arg("--version")
        .output()
        .expect("rustc runs");
    let version = String::from_utf8(output.stdout).expect("a version is text");
    println!("cargo::rustc-env=RUNTIME={}", version.trim());
    println!("cargo::rerun-if-changed=build.rs");
}
