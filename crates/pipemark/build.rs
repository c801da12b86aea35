//! Compresses the shell completions, 0.3 MB of text, and decides how the program is linked.

use std::fs::{self, File};
use std::path::PathBuf;
use std::{env, io};

use flate2::Compression;
use flate2::write::GzEncoder;

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=completions");
    let directory = PathBuf::from(env::var_os("OUT_DIR").expect("Cargo sets it"));
    for script in fs::read_dir("completions")? {
        let script = script?;
        let mut name = script.file_name();
        name.push(".gz");
        let file = File::create(directory.join(name))?;
        let mut packer = GzEncoder::new(file, Compression::best());
        io::copy(&mut File::open(script.path())?, &mut packer)?;
        packer.finish()?;
    }
    link();
    Ok(())
}

/// Links the program to fixed addresses. Otherwise each process writes 36,000 addresses into tables when it starts.
/// That takes 0.3 ms, a quarter of the time that an empty process takes. The start must be short, because every run
/// starts several processes, and because `relay` and `lines` replace `cat` in pipelines.
///
/// A release omits the tables for unwinding. A panic aborts, so only backtraces would use them, and these show nothing without
/// symbols.
fn link() {
    let says = |name: &str, word: &str| env::var(name).is_ok_and(|value| value.contains(word));
    // Not for a static program, which rustc links with -static-pie, and not with packed relocations, which are processed
    // quickly.
    let otherwise =
        says("CARGO_CFG_TARGET_FEATURE", "crt-static") || says("CARGO_ENCODED_RUSTFLAGS", "pack-relative-relocs");
    if says("CARGO_CFG_TARGET_OS", "linux") && says("CARGO_CFG_TARGET_ENV", "gnu") && !otherwise {
        println!("cargo:rustc-link-arg-bins=-no-pie");
        // Flags for rustc may choose another linker, such as mold, which may not read linker scripts.
        let has_flags = env::var_os("CARGO_ENCODED_RUSTFLAGS").is_some_and(|flags| !flags.is_empty());
        if env::var("PROFILE").is_ok_and(|profile| profile == "release") && !has_flags {
            let script = env::current_dir().expect("the directory of the package").join("release.ld");
            println!("cargo:rustc-link-arg-bins=-T{}", script.display());
            println!("cargo:rerun-if-changed=release.ld");
        }
    }
}
