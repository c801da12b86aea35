//! Links the program to fixed addresses. Every run starts several processes of it, and `relay` and `lines` stand in pipelines where
//! `cat` would: without that, writing 36,000 addresses into tables takes each of them 0.3 ms, a quarter of the time to start and end.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let says = |name: &str, word: &str| env::var(name).is_ok_and(|value| value.contains(word));
    // A static program can't be told so, and one for a newer libc has a quick way to write them.
    let otherwise =
        says("CARGO_CFG_TARGET_FEATURE", "crt-static") || says("CARGO_ENCODED_RUSTFLAGS", "pack-relative-relocs");
    if says("CARGO_CFG_TARGET_OS", "linux") && says("CARGO_CFG_TARGET_ENV", "gnu") && !otherwise {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
