//! `run --against`: programs written from two published descriptions are measured together with pipemark's own rows.
//! Also programs that fail.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::program::{ProgramOutput, pipemark};
use serde_json::Value;
use tempfile::TempDir;

const SUITE: &str = "name = \"own\"\ntitle = \"own\"\nheadline = \"blocks\"\n[defaults]\nplace = \"free\"\n\
                     [[experiment]]\nname = \"blocks\"\ntitle = \"blocks\"\n\
                     cases = [{ block = 1024, total = 1_024_000 }, { block = 65536, total = 6_553_600 }]\n\
                     [[experiment]]\nname = \"others\"\ntitle = \"others\"\nparams = { time = \"1ms\" }\n";

fn suite(directory: &TempDir, more: &str) -> String {
    let file = directory.path().join("own.toml");
    fs::write(&file, format!("{SUITE}{more}")).unwrap();
    file.to_str().unwrap().to_owned()
}

/// Compiles a program of tests/fixtures/against; returns the path of the executable.
fn program(directory: &TempDir, name: &str) -> String {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/against/");
    let out = directory.path().join(name);
    let done = Command::new("cc").args(["-O2", "-o"]).arg(&out).arg(format!("{source}{name}.c")).status();
    assert!(done.expect("a C compiler").success(), "{name}");
    out.to_str().unwrap().to_owned()
}

fn run(suite: &str, words: &[&str]) -> ProgramOutput {
    pipemark(&[&["run", suite, "--runs", "2", "--no-save", "--json", "-"], words].concat())
}

fn rows<'d>(document: &'d Value, name: &str) -> Vec<&'d Value> {
    document["trials"].as_array().unwrap().iter().filter(|trial| trial["params"]["language"] == name).collect()
}

#[test]
fn programs_of_two_documents_have_rows_in_the_same_table() {
    let directory = TempDir::new().unwrap();
    let suite = suite(&directory, "");
    let bandwidth = format!("{} {{blocks}} {{block}}", program(&directory, "pipe_bandwidth"));
    let xor = format!("{} {{total}}", program(&directory, "stream_xor"));
    let figures = ["rate,MiB/s=Bandwidth: ([0-9.]+) MB/second", "time,ms=Mean Time: ([0-9.]+) ms"];
    let words = ["--against", &bandwidth, "--figure", figures[0], "--against", &xor, "--figure", figures[1]];
    let document = run(&suite, &words).measured();
    for name in ["pipe_bandwidth", "stream_xor"] {
        let rows = rows(&document, name);
        let blocks: Vec<&Value> = rows.iter().map(|row| &row["params"]["block"]).collect();
        assert_eq!(blocks, [1024, 65536], "{name}: only what the suite is for");
        for row in rows {
            assert_eq!((row["status"].as_str(), row["experiment"].as_str()), (Some("ok"), Some("blocks")), "{name}");
            let samples = row["samples"].as_array().unwrap();
            let bytes = if row["params"]["block"] == 1024 { 1_024_000 } else { 6_553_600 };
            assert!(samples.len() == 2 && samples.iter().all(|own| own["bytes"] == bytes), "{name}: {samples:?}");
            assert!(samples.iter().all(|own| own["ns"].as_u64() < own["wall_ns"].as_u64()), "{name}: what it printed");
        }
    }
    let table = pipemark(&[&["run", &suite, "--runs", "2", "--no-save"], &words[..]].concat()).stdout;
    for name in ["pipemark", "pipe_bandwidth", "stream_xor"] {
        for block in ["1 KiB blocks", "64 KiB blocks"] {
            let row = format!("{name}, {block} ");
            assert!(table.lines().any(|line| line.trim_start_matches([' ', '◐']).starts_with(&row)), "{row}: {table}");
        }
    }
    assert!(!table.contains('●'), "nobody checked their bytes: {table}");
}

/// Programs are looked up by name, so the name of another row would run the wrong program.
#[test]
fn a_program_named_like_a_row_of_others_has_its_own_name() {
    let directory = TempDir::new().unwrap();
    let others = "[[experiment]]\nname = \"languages\"\ntitle = \"languages\"\n\
                  cases = [{ language = \"c\", program = \"idiomatic\", verify = \"full\", total = 6_553_600 }]\n";
    let suite = suite(&directory, others);
    let words = ["run", &suite, "--against", "./c {total}", "--against", "/usr/bin/pipemark sink", "--dry-run"];
    let listed = pipemark(&words).stdout;
    for language in ["c", "c-against", "pipemark-against"] {
        let setting = format!("language={language}");
        assert!(listed.split_whitespace().any(|word| word == setting), "{setting}: {listed}");
    }
}

#[test]
fn a_program_in_a_suite_without_a_figure_has_its_wall_time() {
    let directory = TempDir::new().unwrap();
    let xor = program(&directory, "stream_xor");
    let with = |figure: &str| {
        SUITE.replacen("cases =", &format!("against = [{{ command = \"{xor} {{total}}\"{figure} }}]\ncases ="), 1)
    };
    let file = directory.path().join("own.toml");
    fs::write(&file, with("")).unwrap();
    let file = file.to_str().unwrap();
    let document = run(file, &[]).measured();
    let rows_of_it = rows(&document, "stream_xor");
    assert_eq!(rows_of_it.len(), 2);
    for row in rows_of_it {
        assert!(row["samples"].as_array().unwrap().iter().all(|own| own["ns"] == own["wall_ns"]));
        assert!(row["warnings"].to_string().contains("start-included"), "{}", row["warnings"]);
    }
    fs::write(file, with(", figure = \"time,ms=Mean Time: ([0-9.]+)\"")).unwrap();
    let document = run(file, &[]).measured();
    assert!(!rows(&document, "stream_xor")[0]["warnings"].to_string().contains("start-included"));
}

#[test]
fn a_filter_of_the_user_is_checked_and_measured_like_the_others() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("lines.toml");
    let text = "name = \"own\"\ntitle = \"own\"\n[[experiment]]\nname = \"filters\"\ntitle = \"filters\"\n\
                params = { feed = \"file\", filter = \"lines-1\", total = \"1m\", place = \"free\" }\n";
    fs::write(&file, text).unwrap();
    let script = |name: &str, header: &str| {
        let path = directory.path().join(name);
        let text =
            format!("#!/bin/sh\nexec perl -ne '$n = tr/ //; print \"{header}\", ($n > 6 ? \">6\" : $n), \"]\", $_'\n");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (right, wrong) = (script("right", "[spaces: "), script("wrong", "[blanks: "));
    let ended = run(file.to_str().unwrap(), &["--against", &right, "--against", &wrong]);
    let document = ended.document();
    let row = |name: &str| {
        let trials = document["trials"].as_array().unwrap();
        trials.iter().find(|trial| trial["params"]["filter"] == name).unwrap().clone()
    };
    assert_eq!((&row("right")["status"], &row("lines-1")["status"]), (&"ok".into(), &"ok".into()));
    let reason = row("wrong")["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains("the output of wrong is wrong"), "{reason}");
    assert_eq!(ended.code(), Some(3));
}

#[test]
fn a_program_that_runs_chains_has_a_row_for_each_length() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("chains.toml");
    let text = "name = \"own\"\ntitle = \"own\"\n[[experiment]]\nname = \"chains\"\ntitle = \"chains\"\n\
                params = { stage = \"cat\", source = \"head -c {total} /dev/zero\", total = 1_000_000, place = \"free\" }\n\
                axes = { length = [0, 2] }\n";
    fs::write(&file, text).unwrap();
    let command = "sh -c 'p=\"head -c {total} /dev/zero\"; n={length}; while [ $n -gt 0 ]; do p=\"$p | cat\"; n=$((n - 1)); \
                   done; eval \"$p\" | wc -c >&2; echo took 1 ms'";
    let words = ["--against", command, "--figure", "time,ms=took ([0-9.]+) ms"];
    let document = run(file.to_str().unwrap(), &words).measured();
    let lengths: Vec<Option<u64>> = rows(&document, "sh").iter().map(|row| row["params"]["length"].as_u64()).collect();
    assert_eq!(lengths, [None, Some(2)]);
    for row in rows(&document, "sh") {
        assert_eq!(row["status"], "ok", "{}", row["reason"]);
    }
    let refused = pipemark(&["run", file.to_str().unwrap(), "--against", "./mine {total}"]);
    assert!(refused.code() == Some(2) && refused.stderr.contains("{length}"), "{}", refused.stderr);
}

#[test]
fn a_failing_program_has_no_figure() {
    let directory = TempDir::new().unwrap();
    let suite = suite(&directory, "");
    let figure = "time,s=took ([0-9.]+) s";
    for (command, words) in [
        ("sh -c 'echo took 1 s; exit 3'", "status 3"),
        ("sh -c 'echo done'", "no match of --figure time"),
        ("sh -c 'echo took 0 s'", "a time of 0"),
        ("sh -c 'head -c 100000 /dev/zero'", "bytes; the limit is"),
        ("sh -c 'sleep 60'", "limit"),
        ("./no-such-program {block}", "o such file"),
    ] {
        let ended = run(&suite, &["--against", command, "--figure", figure, "--limit", "300ms"]);
        assert_eq!(ended.code(), Some(1), "{command}: {}", ended.stderr);
        let document = ended.document();
        let name = if command.starts_with("sh") { "sh" } else { "no-such-program" };
        let rows = rows(&document, name);
        assert_eq!(rows.len(), 2, "{command}");
        for row in rows {
            let reason = row["reason"].as_str().unwrap_or_default();
            assert!(row["status"] == "failed" && row["estimate"].is_null(), "{command}: {row}");
            assert!(reason.contains(words), "{command}: {reason}");
        }
        // The other rows are measured nevertheless.
        assert!(document["trials"].as_array().unwrap().iter().any(|trial| trial["status"] == "ok"), "{command}");
    }
}

#[test]
fn unsupported_requests_are_refused() {
    let directory = TempDir::new().unwrap();
    let suite = suite(&directory, "");
    for (words, sentence) in [
        (vec!["run", &*suite, "--against", "x", "--figure", "speed=x"], "neither rate nor time"),
        (vec!["run", &suite, "--against", "x", "--figure", "rate=x"], "rate,UNIT=REGEX"),
        (vec!["run", &suite, "--figure", "rate,MB/s=x"], "--against"),
        (vec!["run", &suite, "--against", "x", "--against", "x"], "two programs are called 'x'"),
        (vec!["run", "quick", "--against", "x"], "an experiment that moves a fixed number of bytes"),
        (vec!["run", &suite, "--against", "x | y"], "more than one command"),
    ] {
        let ended = pipemark(&words);
        assert_eq!(ended.code(), Some(2), "{words:?}");
        assert!(ended.stderr.contains(sentence), "{words:?}: {}", ended.stderr);
    }
    assert!(Path::new(&suite).exists());
}
