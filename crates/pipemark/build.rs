//! Links the program without symbols, and to fixed addresses. Every run starts several processes of it, and `relay` and `lines` stand
//! in pipelines where `cat` would: with other addresses, writing 36,000 of them into tables takes each process 0.3 ms, a quarter of the
//! time to start and end.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let says = |name: &str, word: &str| env::var(name).is_ok_and(|value| value.contains(word));
    // What Cargo.toml says of stripping is lost where a profile has settings for this package (Cargo 1.95), and a quarter of the program
    // is symbols. Who asks for debug information keeps them.
    if says("PROFILE", "release") && says("DEBUG", "false") && says("CARGO_CFG_TARGET_OS", "linux") {
        println!("cargo:rustc-link-arg-bins=-s");
    }
    // A static program can't be told so, and one for a newer libc has a quick way to write them.
    let otherwise =
        says("CARGO_CFG_TARGET_FEATURE", "crt-static") || says("CARGO_ENCODED_RUSTFLAGS", "pack-relative-relocs");
    if says("CARGO_CFG_TARGET_OS", "linux") && says("CARGO_CFG_TARGET_ENV", "gnu") && !otherwise {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
