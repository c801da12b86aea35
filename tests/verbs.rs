//! The verbs besides `bw`: suites, lists of what is available, and the machine.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use crate::program::{PIPEMARK, bw, file, pipemark, samples, trials};

const SUITE: &str = r#"
name = "mine"
title = "My own"

[schedule]
runs = 2

[defaults]
place = "free"
total = "256k"

[[experiment]]
name = "sizes"
title = "Two block sizes"
axes = { block = ["1k", "4k"] }
baseline = { block = "1k" }

[[experiment]]
name = "proof"
title = "Every byte"
params = { verify = "full", send = "vmsplice" }
"#;

#[test]
fn a_run_that_measures_no_requested_trial_fails() {
    // CPU 1023 doesn't exist here, so the trial is skipped. The memory copy is still measured.
    for words in [&["bw", "--place", "0:1023"][..], &["chain", "--length", "1", "--place", "0:1023", "--total", "1m"]] {
        let ended = pipemark(&[words, &["--runs", "1", "--json", "-"]].concat());
        assert_eq!(ended.code(), Some(1), "{words:?}: {}", ended.stderr);
        assert!(ended.stderr.contains("none of these trials can be measured"), "{words:?}: {}", ended.stderr);
        let document = ended.document();
        assert!(trials(&document).iter().all(|trial| trial["status"] == "skipped"), "{words:?}");
    }
    assert_eq!(pipemark(&["bw", "--link", "memory-copy", "--runs", "1", "--time", "2ms"]).code(), Some(0));
}

/// Only pipes have a capacity.
#[test]
fn a_link_without_a_capacity_takes_none() {
    for link in ["tcp", "unix-stream", "null"] {
        let ended = pipemark(&["bw", "--link", link, "--capacity", "1m", "--time", "2ms", "--runs", "1"]);
        assert_eq!(ended.code(), Some(2), "{link}: {}{}", ended.stdout, ended.stderr);
        assert!(ended.stderr.contains("capacity") && ended.stderr.contains(link), "{}", ended.stderr);
    }
}

#[test]
fn a_suite_file_is_run() {
    let suite = file(SUITE.as_bytes(), ".toml");
    let document = pipemark(&["run", suite.path().to_str().unwrap(), "--json", "-"]).measured();
    assert_eq!((&document["suite"], &document["title"]), (&"mine".into(), &"My own".into()));
    let verified: Vec<_> = trials(&document)
        .iter()
        .map(|trial| (trial["experiment"].as_str().unwrap(), samples(trial).len(), trial["verified"].as_bool()))
        .collect();
    assert_eq!(verified, [("sizes", 2, Some(true)), ("sizes", 2, Some(true)), ("proof", 2, Some(true))]);
}

#[test]
fn both_lists_of_a_suite_name_the_trials_that_are_measured() {
    let suite = file(SUITE.as_bytes(), ".toml");
    let path = suite.path().to_str().unwrap();
    let document = pipemark(&["run", path, "--json", "-"]).measured();
    let name = |trial: &serde_json::Value| ["experiment", "id"].map(|key| trial[key].as_str().unwrap().to_owned());
    let measured: Vec<[String; 2]> = trials(&document).into_iter().map(name).collect();
    for words in [&["list", path][..], &["run", path, "--dry-run"]] {
        let ended = pipemark(&[words, &["--format", "csv"]].concat());
        assert_eq!((ended.code(), ended.stderr.as_str()), (Some(0), ""), "{words:?}");
        let mut reader = csv::Reader::from_reader(ended.stdout.as_bytes());
        let mut listed: Vec<[String; 2]> = reader.deserialize().map(Result::unwrap).collect();
        // The reference comes last.
        assert_eq!(listed.pop().unwrap()[0], "memory-copy", "{words:?}");
        assert_eq!(listed, measured, "{words:?}");
    }
}

#[test]
fn scale_and_runs_on_the_command_line_override_the_suite() {
    let suite = file(SUITE.as_bytes(), ".toml");
    let words = ["run", suite.path().to_str().unwrap(), "--scale", "0.25", "--runs", "3", "--json", "-"];
    let document = pipemark(&words).measured();
    for trial in trials(&document) {
        assert_eq!(trial["params"]["volume"]["total"], 64 << 10, "{trial}");
        assert_eq!(samples(trial).len(), 3);
    }
}

#[test]
fn the_block_size_suite_shows_what_was_published() {
    let json = tempfile::NamedTempFile::new().unwrap();
    let path = json.path().to_str().unwrap();
    let ended = pipemark(&["run", "block-size", "--scale", "0.0001", "--runs", "1", "--json", path]);
    assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("published"), "{}", ended.stdout);
    let document: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let published: Vec<_> = trials(&document).into_iter().filter(|trial| !trial["published"].is_null()).collect();
    assert!(published.len() >= 8, "{} trials", published.len());
}

#[test]
fn suites_run_one_after_the_other() {
    let other = SUITE.replace("\"mine\"", "\"other\"").replace("\"sizes\"", "\"a\"").replace("\"proof\"", "\"b\"");
    let (one, two) = (file(SUITE.as_bytes(), ".toml"), file(other.as_bytes(), ".toml"));
    let words = ["run", one.path().to_str().unwrap(), two.path().to_str().unwrap(), "--runs", "1", "--json", "-"];
    let document = pipemark(&words).measured();
    assert_eq!(document["suite"], "mine, other");
    let trials = trials(&document);
    assert_eq!(trials.len(), 6);
    // A trial that occurs in both suites is measured once, because two figures for one trial would contradict each
    // other.
    for (one, other) in trials[..3].iter().zip(&trials[3..]) {
        assert_eq!((&one["id"], &one["samples"]), (&other["id"], &other["samples"]));
    }
}

#[test]
fn list_shows_all_that_can_be_named() {
    let ended = pipemark(&["list"]);
    assert_eq!(ended.code(), Some(0));
    for word in ["quick", "block-size", "write", "vmsplice-gift", "tee", "io-uring", "spin", "huge", "cross"] {
        assert!(ended.stdout.contains(word), "{word} is not in\n{}", ended.stdout);
    }
    assert!(ended.stdout.lines().all(|line| line.chars().count() <= 80));
}

#[test]
fn the_listed_machine_is_that_of_every_document() {
    let shown = pipemark(&["list", "machine"]).stdout;
    let host = pipemark(&["list", "machine", "--format", "json"]).measured();
    let document = bw("--time 2ms");
    for key in ["kernel", "cpu", "cpus", "topology", "pipe_max_size", "permissions", "huge_pages"] {
        assert!(!host[key].is_null() || key == "huge_pages", "{key}");
        assert_eq!(host[key], document["host"][key], "{key}");
    }
    assert!(shown.contains(host["kernel"].as_str().unwrap().split(' ').next().unwrap()), "{shown}");
}

#[test]
fn the_hidden_verb_is_explained() {
    let ended = pipemark(&["__end"]);
    assert_eq!(ended.code(), Some(2));
    assert!(ended.stderr.contains("is an internal verb"), "{}", ended.stderr);
}

/// A directory whose entrants and programs leave a file when they are executed. It has a program for every name in
/// /usr/bin and /bin, and is first on the path.
#[test]
fn verbs_that_list_or_explain_execute_nothing_from_the_working_directory() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let trap = path("trap");
    fs::write(&trap, format!("#!/bin/sh\necho \"$0\" >>{}\n", path("EXECUTED").display())).unwrap();
    fs::set_permissions(&trap, fs::Permissions::from_mode(0o755)).unwrap();
    let names =
        ["/usr/bin", "/bin"].into_iter().flat_map(|all| fs::read_dir(all).unwrap()).map(|one| one.unwrap().file_name());
    names.for_each(|name| drop(symlink(&trap, directory.path().join(name))));
    for (kind, file) in [("c", "entrant.toml"), ("rust", "entrant.toml"), ("lines", "filters.toml")] {
        let form = format!("{}/../../entrants/{kind}/{file}", env!("CARGO_MANIFEST_DIR"));
        fs::create_dir_all(path("entrants").join(kind)).unwrap();
        fs::copy(form, path("entrants").join(kind).join(file)).unwrap();
    }
    fs::create_dir(path("entrants/evil")).unwrap();
    let program = "run = [\"{tool}\"]\nabout = \"\"\n";
    let form = format!(
        "name = \"Evil\"\n[[tools]]\nname = \"tool\"\ntry = [[\"./trap\"], [\"sh\"]]\nversion = [\"--version\"]\n\
         install = \"\"\n[build]\ncommands = [[\"./trap\"]]\n[idiomatic]\n{program}[tuned]\n{program}"
    );
    fs::write(path("entrants/evil/entrant.toml"), form).unwrap();
    fs::create_dir_all(path("links/evil")).unwrap();
    let form = "contract = 1\nabout = \"Evil\"\nboundaries = \"kept\"\n[[tools]]\nname = \"tool\"\ntry = [[\"./trap\"], [\"sh\"]]\n\
                version = [\"--version\"]\ninstall = \"\"\n[sender]\nrun = [\"{tool}\"]\n[receiver]\nrun = [\"{tool}\"]\n";
    fs::write(path("links/evil/link.toml"), form).unwrap();
    fs::write(path("mine.toml"), SUITE).unwrap();
    let search = format!(".:{}:{}", directory.path().display(), std::env::var("PATH").unwrap());
    let run = |words: &[&str]| {
        let mut command = Command::new(PIPEMARK);
        command.args(words).current_dir(&directory).env("PATH", &search).env("XDG_DATA_HOME", path("data"));
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let parts = ["suites", "links", "senders", "receivers", "waits", "pages", "placements", "languages", "machine"];
    let mut all: Vec<Vec<&str>> = parts.iter().map(|part| vec!["list", part]).collect();
    all.extend([vec![], vec!["--help"], vec!["-h"], vec!["help"], vec!["list"], vec!["list", "./mine.toml"]]);
    all.extend([vec!["list", "languages", "--format", "json"], vec!["list", "languages", "--only", "evil"]]);
    all.extend(["bash", "zsh", "fish"].map(|shell| vec!["--completions", shell]));
    all.extend(["quick", "languages", "lines", "./mine.toml"].map(|suite| vec!["run", suite, "--dry-run"]));
    all.push(vec!["run", "quick", "--against", "./trap", "--dry-run"]);
    all.extend(["run", "bw", "why", "ab", "relay", "report"].map(|verb| vec![verb, "--help"]));
    for words in all {
        let (code, text) = run(&words);
        // Not every suite takes --against.
        assert!(code == Some(0) || words.contains(&"--against"), "{words:?}: {code:?} {text}");
        let executed = fs::read_to_string(path("EXECUTED")).unwrap_or_default();
        assert_eq!(executed, "", "{words:?}");
    }
    for part in ["languages", "links"] {
        assert!(run(&["list", part]).1.contains("evil"), "{part}: it is listed");
    }
    // The test can fail: whoever names the directory runs its version commands.
    run(&["list", "languages", "--entrants", "entrants", "--only", "evil"]);
    fs::remove_file(path("EXECUTED")).unwrap();
    run(&["list", "links", "--links", "links"]);
    assert!(path("EXECUTED").exists());
}
