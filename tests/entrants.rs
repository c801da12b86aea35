//! The real entrants (benchmark programs in other languages): each program of every installed language keeps the
//! contract. pipemark checks this; in `make soak`, entrants/check.py does too.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::program::PIPEMARK;
use serde_json::Value;

/// The file with the languages whose toolchains tests/tools.sh found or installed, one per line.
const TOOLCHAINS: &str = "build/toolchains";

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn pipemark(words: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(PIPEMARK).args(words).current_dir(root()).output().unwrap();
    if !output.status.success() {
        eprintln!("{}", String::from_utf8_lossy(&output.stderr));
    }
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

/// The languages that can run here. Languages that `make test` installed must be among them.
fn languages() -> Vec<String> {
    let (code, text) = pipemark(&["list", "languages", "--entrants", "entrants", "--format", "json"]);
    assert_eq!(code, Some(0));
    let listed: Vec<Value> = serde_json::from_str(&text).unwrap();
    let here = listed.iter().filter(|one| one["missing"].is_null());
    let languages: Vec<String> = here.filter_map(|one| one["language"].as_str()).map(str::to_owned).collect();
    for language in fs::read_to_string(root().join(TOOLCHAINS)).unwrap_or_default().lines() {
        assert!(languages.iter().any(|known| known == language), "{language} is installed and not detected:\n{text}");
    }
    // Building pipemark needs both of these.
    for language in ["rust", "c"] {
        assert!(languages.iter().any(|known| known == language), "{language} is not detected:\n{text}");
    }
    languages
}

const CASES: [&str; 2] = [
    "{ block = \"64k\", total = 5_000_001, verify = \"full\" },\n",
    "{ block = \"512\", total = 100_001, verify = \"xor\" },\n",
];

/// A directory with the same entrants, except that Zig doesn't optimise its programs, because that takes a minute.
fn quick_entrants() -> PathBuf {
    let (from, to) = (root().join("entrants"), root().join("build/quick/entrants"));
    fs::create_dir_all(to.join("zig")).unwrap();
    for entry in fs::read_dir(&from).unwrap().map(Result::unwrap) {
        let link = to.join(entry.file_name());
        if entry.path().is_dir() && !link.exists() {
            symlink(entry.path(), link).unwrap();
        }
    }
    for entry in fs::read_dir(from.join("zig")).unwrap().map(Result::unwrap) {
        let text = fs::read_to_string(entry.path()).unwrap().replace("ReleaseFast", "Debug");
        let copy = to.join("zig").join(entry.file_name());
        // A new time of change would trigger a new build.
        if fs::read_to_string(&copy).ok().as_ref() != Some(&text) {
            fs::write(copy, text).unwrap();
        }
    }
    to
}

#[test]
fn every_program_of_every_language_is_measured_and_notices_a_changed_byte() {
    check_programs(&quick_entrants(), 1);
}

#[test]
#[ignore = "long"]
fn long_every_optimised_program_is_measured_and_notices_a_changed_byte() {
    check_programs(&root().join("entrants"), 2);
}

/// Builds and runs each program with pipemark in the first one or two cases, which have different patterns, and block
/// sizes that don't divide the total. Before its first run, each program must detect a changed byte.
fn check_programs(entrants: &Path, cases: usize) {
    let languages = languages();
    let directory = tempfile::TempDir::new().unwrap();
    let suite = directory.path().join("check.toml");
    let text = format!(
        "name = \"check\"\ntitle = \"Check\"\n[defaults]\nplace = \"free\"\n[[experiment]]\nname = \"check\"\n\
         title = \"Check\"\naxes = {{ language = {languages:?}, program = [\"idiomatic\", \"tuned\"] }}\ncases = [\n\
         {}]\n",
        CASES[..cases].concat()
    );
    fs::write(&suite, text).unwrap();
    let entrants = entrants.to_str().unwrap();
    let words = ["run", suite.to_str().unwrap(), "--entrants", entrants, "--runs", "1", "--json", "-"];
    let (code, json) = pipemark(&words);
    assert_eq!(code, Some(0));
    let document: Value = serde_json::from_str(&json).unwrap();
    let trials = document["trials"].as_array().unwrap();
    let measured: Vec<&Value> = trials.iter().filter(|trial| !trial["params"]["language"].is_null()).collect();
    assert_eq!(measured.len(), languages.len() * 2 * cases);
    for trial in measured {
        assert_eq!(
            (&trial["status"], &trial["verified"]),
            (&"ok".into(), &true.into()),
            "{}: {}",
            trial["id"],
            trial["reason"]
        );
    }
}

/// entrants/check.py tests sizes that are multiples of the block size and others. It also changes a byte, and kills
/// either end during a run.
#[test]
#[ignore = "soak: each runtime starts seventy times"]
fn soak_every_program_keeps_the_contract_at_every_size() {
    // Starting the runtimes takes most of the time, so two checks run in parallel. Each check computes the expected
    // answers once.
    let languages = languages();
    let checks = languages.chunks(languages.len().div_ceil(2)).map(|half| {
        let words = ["entrants/check.py", "--only", &half.join(",")];
        Command::new("python3").args(words).current_dir(root()).stdout(Stdio::piped()).spawn().unwrap()
    });
    for check in checks.collect::<Vec<_>>() {
        let output = check.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}
