//! Compares the public API with `public-api.txt`, so that a review shows every change and a release can list it.

use std::fs;
use std::process::Command;

const SNAPSHOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/public-api.txt");

/// If a type of a dependency were public, each new major version of the dependency would force a new major version of
/// this crate.
#[test]
fn no_type_of_a_dependency_is_in_the_interface() {
    let snapshot = fs::read_to_string(SNAPSHOT).unwrap();
    for dependency in ["rustix::", "libc::", "memchr::"] {
        assert!(!snapshot.contains(dependency), "{dependency}");
    }
}

#[test]
fn the_interface_is_the_snapshot() {
    let target = concat!(env!("CARGO_TARGET_TMPDIR"), "/public-api");
    let mut list = Command::new(env!("CARGO"));
    // cargo-public-api chooses its own toolchain (nightly) to write rustdoc's JSON.
    list.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO").env_remove("RUSTC").env_remove("RUSTDOC");
    list.args(["public-api", "-sss", "--target-dir", target, "--manifest-path"]);
    let listed = list.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")).output().unwrap();
    if !listed.status.success() {
        let error = String::from_utf8_lossy(&listed.stderr);
        let is_missing = error.contains("no such command") || error.contains("is not installed");
        assert!(is_missing, "{error}");
        report_skip("the public interface of pipeio: it needs cargo-public-api and Rust's nightly toolchain");
        return;
    }
    let listed = String::from_utf8(listed.stdout).unwrap();
    if std::env::var_os("PIPEMARK_BLESS").is_some() {
        fs::write(SNAPSHOT, listed).unwrap();
        return;
    }
    let snapshot = fs::read_to_string(SNAPSHOT).unwrap();
    let changes = |sign: &'static str, here: &str, there: &str| -> String {
        let only = here.lines().filter(|line| !there.lines().any(|other| other == *line));
        only.map(|line| format!("{sign} {line}\n")).collect()
    };
    let changes = changes("-", &snapshot, &listed) + &changes("+", &listed, &snapshot);
    assert!(changes.is_empty(), "if that is meant, run PIPEMARK_BLESS=1 cargo test -p pipeio api::\n{changes}");
}

/// Reports a test that could not run. `make test` prints these reports at the end.
fn report_skip(what: &str) {
    use std::io::Write;
    eprintln!("skipped: {what}");
    if let Some(file) = std::env::var_os("PIPEMARK_SKIPPED") {
        let _ = fs::File::options().append(true).create(true).open(file).and_then(|mut file| writeln!(file, "{what}"));
    }
}
