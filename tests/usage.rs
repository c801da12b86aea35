//! The program as it is typed: help, bad usage, and the exit codes and streams that belong to them.

use std::fs;
use std::process::{Command, Output};

fn pipemark(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pipemark")).args(words).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("output is UTF-8")
}

#[test]
fn help_teaches_by_example() {
    for words in [&["--help"][..], &["run", "--help"], &["bw", "--help"], &["relay", "--help"], &["compare", "--help"]]
    {
        let output = pipemark(words);
        assert_eq!(output.status.code(), Some(0), "{words:?}");
        assert!(text(&output.stdout).contains("EXAMPLES"), "{words:?}");
        assert!(output.stderr.is_empty());
    }
    let short = text(&pipemark(&["-h"]).stdout);
    assert!(!short.contains("EXAMPLES") && short.lines().count() <= 20, "{short}");
}

#[test]
fn nothing_typed_shows_help() {
    let output = pipemark(&[]);
    assert!(text(&output.stderr).contains("Usage: pipemark"));
}

#[test]
fn the_version_is_the_package_s() {
    assert_eq!(text(&pipemark(&["--version"]).stdout), format!("pipemark {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn bad_usage_is_code_2_with_a_sentence() {
    for (words, expected) in [
        (&["fly"][..], "unrecognized subcommand"),
        (&["run", "quik"], "did you mean quick?"),
        (&["run", "./nosuch.toml"], "no such file"),
        (&["run", "/"], "it is a directory"),
        (&["run", "quick", "quick"], "run them one at a time"),
        (&["run", "--scale", "0"], "not a scale"),
        (&["run", "--scale", "0.5"], "no totals to scale"),
        (&["bw", "--block", "0"], "out of range"),
        (&["bw", "--recv", "splice", "--verify", "full"], "never sees the bytes"),
        (&["bw", "--time", "1s", "--total", "1m"], "cannot be used with"),
        (&["bw", "--json", "-", "--markdown", "-"], "standard output"),
    ] {
        let output = pipemark(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        let error = text(&output.stderr);
        assert!(error.starts_with("error: ") && error.contains(expected), "{words:?}: {error}");
        assert!(output.stdout.is_empty(), "{words:?} printed results");
    }
}

#[test]
fn a_mistake_in_a_suite_is_shown_in_its_place() {
    let path = std::env::temp_dir().join(format!("pipemark-usage-{}.toml", std::process::id()));
    let suite =
        "name = \"x\"\ntitle = \"X\"\n[[experiment]]\nname = \"e\"\ntitle = \"E\"\nparams = { send = \"wriite\" }\n";
    fs::write(&path, suite).unwrap();
    let file = path.to_str().unwrap();
    let output = pipemark(&["run", file]);
    fs::remove_file(&path).unwrap();
    assert_eq!(output.status.code(), Some(2));
    let error = text(&output.stderr);
    assert!(error.starts_with(&format!("error: {file}:6:19: 'wriite' is not a send method; use write, ")), "{error}");
    assert!(error.ends_with("6 | params = { send = \"wriite\" }\n  |                   ^^^^^^^^\n"), "{error}");
}
