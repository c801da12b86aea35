//! Links the program to fixed addresses. Without that, each process writes 36,000 addresses into tables at its start,
//! which takes 0.3 ms, a quarter of the time to start and end. Every run starts several processes, and `relay` and
//! `lines` replace `cat` in pipelines.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let says = |name: &str, word: &str| env::var(name).is_ok_and(|value| value.contains(word));
    // A static program can't be linked this way, and with packed relocations writing the addresses is quick.
    let otherwise =
        says("CARGO_CFG_TARGET_FEATURE", "crt-static") || says("CARGO_ENCODED_RUSTFLAGS", "pack-relative-relocs");
    if says("CARGO_CFG_TARGET_OS", "linux") && says("CARGO_CFG_TARGET_ENV", "gnu") && !otherwise {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
