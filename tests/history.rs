//! The history returns measurements unchanged, and they can be found, deleted and followed over time.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::program::history::{TestHistory, at, document, small};
use crate::program::{PIPEMARK, pipemark, placement, report_skip};
use rusqlite::Connection;
use serde_json::Value;

#[test]
fn exports_equal_the_written_json() {
    let past = TestHistory::new();
    let json = past.file("out.json");
    past.measure(&["--label", "größer \x1b[31m\u{202e} \"x\"", "--json", json.to_str().unwrap()]);
    let written = fs::read(&json).unwrap();
    assert_eq!(past.history(&["export"]).as_bytes(), written, "byte for byte");
    let copy = past.file("copy.json");
    past.history(&["export", "1", "--output", copy.to_str().unwrap()]);
    assert_eq!(fs::read(&copy).unwrap(), written);
    // Importing skips runs that are already in the history, and restores deleted runs.
    assert!(past.history(&["import", copy.to_str().unwrap()]).contains("is run 1"));
    assert_eq!(past.ids(&[]), [1]);
    past.history(&["delete", "--yes", "1"]);
    past.history(&["import", copy.to_str().unwrap()]);
    assert_eq!(past.history(&["export", "2"]).as_bytes(), written);
    assert_eq!(past.ids(&[]), [2]);
    assert_eq!(past.history(&["show", "2", "--format", "json"]).as_bytes(), written);
}

#[test]
fn shown_runs_equal_the_printed_output() {
    let past = TestHistory::new();
    let words = ["bw", "--block", "4k,64k", "--place", placement(), "--runs", "2", "--time", "2ms"];
    let printed = past.run(&words);
    assert_eq!(printed.code(), Some(0), "{}", printed.stderr);
    assert_eq!(past.history(&["show"]), printed.stdout);
    for (format, flag) in [("markdown", "--markdown"), ("csv", "--csv")] {
        let printed = past.run(&[&words[..], &[flag, "-"]].concat()).stdout;
        assert_eq!(past.history(&["show", "--format", format]), printed);
    }
}

#[test]
fn every_measuring_verb_saves_unless_no_save_is_given() {
    let past = TestHistory::new();
    let suite = past.file("own.toml");
    fs::write(
        &suite,
        "name = \"own\"\ntitle = \"Own\"\n[schedule]\nmin-runs = 1\nmax-runs = 1\n\
         [defaults]\ntime = \"2ms\"\nplace = \"free\"\n[[experiment]]\nname = \"e\"\ntitle = \"E\"\n",
    )
    .unwrap();
    past.measure(&[]);
    let chain = ["chain", "--length", "1", "--total", "1m", "--runs", "1", "--quiet"];
    for words in [&["run", suite.to_str().unwrap(), "--quiet"][..], &chain] {
        let ended = past.run(words);
        assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
    }
    past.measure(&["--no-save"]);
    let suites: Vec<String> = past.list(&[]).iter().map(|run| run["suite"].as_str().unwrap().to_owned()).collect();
    assert_eq!(suites, ["chain", "own", "bw"], "newest first");
}

#[test]
fn the_default_directory_is_private_to_the_user() {
    let data = tempfile::tempdir().unwrap();
    // With a umask of 0 files get exactly the mode that the program asks for.
    let script = format!("umask 0; exec {PIPEMARK} {}", small(&[]).join(" "));
    let output =
        Command::new("sh").args(["-c", &script]).env("XDG_DATA_HOME", data.path().join("deep")).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let mode = |path: &str| fs::metadata(data.path().join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("deep"), mode("deep/pipemark"), mode("deep/pipemark/history.db")), (0o700, 0o700, 0o600));
    assert_eq!(fs::read_dir(data.path().join("deep/pipemark")).unwrap().count(), 1, "no journal is left");
}

#[test]
fn measuring_works_without_a_place_for_the_history() {
    for (data, home, expected) in [
        (Some("relative"), Some("/root"), "not an absolute path"),
        (None, None, "neither XDG_DATA_HOME nor HOME"),
        (Some(""), Some(""), "neither XDG_DATA_HOME nor HOME"),
        (Some("/dev/null"), Some("/root"), "/dev/null/pipemark"),
    ] {
        let mut command = Command::new(PIPEMARK);
        command.args(small(&["--json", "-"])).env_remove("XDG_DATA_HOME").env_remove("HOME");
        command.envs(data.map(|data| ("XDG_DATA_HOME", data))).envs(home.map(|home| ("HOME", home)));
        let output = command.output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{stderr}");
        assert!(
            stderr.contains("not saved in the history") && stderr.contains(expected) && stderr.lines().count() == 1,
            "{stderr}"
        );
        assert!(serde_json::from_slice::<serde_json::Value>(&output.stdout).is_ok());
    }
    // An empty XDG_DATA_HOME counts as unset.
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(PIPEMARK);
    command.args(small(&[])).env("XDG_DATA_HOME", "").env("HOME", home.path());
    assert!(command.output().unwrap().stderr.is_empty());
    assert!(home.path().join(".local/share/pipemark/history.db").is_file());
    // sudo may keep the user's HOME, and the user couldn't write to a history that root created there.
    if rustix::process::getuid().is_root() {
        let home = tempfile::tempdir().unwrap();
        std::os::unix::fs::chown(home.path(), Some(65534), None).unwrap();
        let refused = |data: Option<&Path>| {
            let mut command = Command::new(PIPEMARK);
            command.args(small(&[])).env_remove("XDG_DATA_HOME").env("HOME", home.path());
            command.envs(data.map(|data| ("XDG_DATA_HOME", data)));
            let stderr = String::from_utf8(command.output().unwrap().stderr).unwrap();
            assert!(stderr.contains("belongs to user 65534"), "{stderr}");
        };
        refused(None);
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
        // A symbolic link into the user's home is refused too, and so is an existing directory there.
        let data = tempfile::tempdir().unwrap();
        symlink(home.path(), data.path().join("pipemark")).unwrap();
        refused(Some(data.path()));
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
        let own = home.path().join(".local/share/pipemark");
        fs::create_dir_all(&own).unwrap();
        std::os::unix::fs::chown(&own, Some(65534), None).unwrap();
        refused(None);
        assert_eq!(fs::read_dir(&own).unwrap().count(), 0);
    }
}

#[test]
fn lists_are_filtered() {
    let past = TestHistory::new();
    let measured = document();
    for (day, suite, label, host) in [
        ("2026-01-01T12:00:00Z", "quick", Some("before"), "one"),
        ("2026-03-01T12:00:00Z", "ipc", None, "one"),
        ("2026-02-01T12:00:00Z", "quick, ipc", Some("after-1"), "two"),
        ("2026-02-02T12:00:00Z", "quicker", Some("after-2"), "two"),
    ] {
        let mut document = at(&measured, day, 1.0);
        document["suite"] = suite.into();
        document["host"]["name"] = host.into();
        if let Some(label) = label {
            document["label"] = label.into();
        }
        past.import(&document);
    }
    for (words, expected) in [
        (&[][..], &[2, 4, 3, 1][..]),
        (&["--suite", "quick"], &[3, 1]),
        (&["--suite", "ipc"], &[2, 3]),
        (&["--label", "before"], &[1]),
        (&["--label", "after-*"], &[4, 3]),
        (&["--label", "'; DROP TABLE run; --"], &[]),
        (&["--host", "two"], &[4, 3]),
        (&["--since", "2026-02-01T12:00:01Z"], &[2, 4]),
        (&["--since", "2026-02-01"], &[2, 4, 3]),
        (&["--host", "two", "--suite", "quick"], &[3]),
        (&["--limit", "1"], &[2]),
        (&["--limit", "0"], &[2, 4, 3, 1]),
    ] {
        assert_eq!(past.ids(words), expected, "{words:?}");
    }
    let table = past.history(&["--limit", "2"]);
    assert!(table.contains("2 of 4") && table.lines().all(|line| line.chars().count() <= 80), "{table}");
    let csv = past.history(&["list", "--format", "csv"]);
    assert_eq!(csv.lines().count(), 5, "{csv}");
    assert!(past.history(&["list", "--format", "markdown"]).starts_with("| id | when |"));
}

#[test]
fn listing_reads_no_document() {
    let past = TestHistory::new();
    past.measure(&["--label", "kept"]);
    Connection::open(past.db()).unwrap().execute("UPDATE document SET json = 'broken'", []).unwrap();
    assert_eq!(past.list(&[])[0]["label"], "kept");
    let ended = past.run(&["history", "show"]);
    assert_eq!(ended.code(), Some(1));
    assert!(
        ended.stderr.contains("a run 1 that can't be read") && ended.stderr.contains("export 1"),
        "{}",
        ended.stderr
    );
    assert_eq!(past.history(&["export"]), "broken");
}

#[test]
fn labels_do_nothing_to_a_terminal() {
    let past = TestHistory::new();
    let hostile = "\x1b]0;owned\x07\x1b[2J\u{202e}a|b\r\nc\u{9b}31m";
    past.measure(&["--label", hostile]);
    for words in [&["list"][..], &["list", "--format", "markdown"], &["trend"], &["list", "--format", "csv"]] {
        let text = past.history(words);
        assert!(!text.contains(|c: char| (c.is_control() && c != '\n') || c == '\u{202e}'), "{words:?}: {text:?}");
    }
    let json = past.history(&["list", "--format", "json"]);
    assert!(!json.trim_end().contains(char::is_control), "{json:?}");
    assert_eq!(past.list(&[])[0]["label"], hostile, "programs get it as it is");
    assert_eq!(past.ids(&["--label", hostile]), [1]);
}

#[test]
fn deleting_removes_only_the_selected_runs() {
    let past = TestHistory::new();
    let measured = document();
    for day in 1..=3 {
        past.import(&at(&measured, &format!("2026-01-0{day}T00:00:00Z"), 1.0));
    }
    let ended = past.run(&["history", "delete", "1", "9", "--yes"]);
    assert_eq!(ended.code(), Some(2));
    assert!(ended.stderr.contains("no run 9") && past.ids(&[]) == [3, 2, 1], "{}", ended.stderr);
    past.history(&["delete", "3", "#1", "--yes"]);
    assert_eq!(past.ids(&[]), [2]);
    past.import(&at(&measured, "2026-01-04T00:00:00Z", 1.0));
    assert_eq!(past.ids(&[]), [4, 2], "a number is given once");
    past.history(&["delete", "--yes", "2", "4"]);
    let database = Connection::open(past.db()).unwrap();
    for table in ["run", "document", "trial", "measured"] {
        let rows: u32 = database.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap();
        assert_eq!(rows, 0, "{table}");
    }
}

/// Runs the program on a pseudo-terminal made by Python's pty, because `delete` asks only on a terminal.
#[test]
fn deleting_asks_at_a_terminal() {
    let past = TestHistory::new();
    past.import(&document());
    let script = "import os, pty, sys\n\
                  answer = sys.argv[1]\n\
                  process, terminal = pty.fork()\n\
                  if process == 0: os.execv(sys.argv[2], sys.argv[2:])\n\
                  said = b''\n\
                  while b'[y/N]' not in said: said += os.read(terminal, 4096)\n\
                  os.write(terminal, answer.encode() + b'\\n')\n\
                  try:\n  while os.read(terminal, 4096): pass\n\
                  except OSError: pass\n\
                  sys.exit(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))";
    let flag = past.flag();
    for (answer, code, left) in [("n", 1, 1), ("", 1, 1), ("y", 0, 0)] {
        let words = ["-c", script, answer, PIPEMARK, "history", "delete", "1", &flag[0], &flag[1]];
        let status = Command::new("python3").args(words).status().unwrap();
        assert_eq!((status.code(), past.ids(&[]).len()), (Some(code), left), "{answer:?}");
    }
}

#[test]
fn a_trend_distinguishes_changes_from_noise() {
    let past = TestHistory::new();
    let measured = document();
    // An outlier, then a lasting change that comes with another kernel and another load.
    let before = [1.0, 1.003, 0.998, 0.6, 1.001, 0.999, 1.002, 1.0, 1.001, 0.999];
    let after = [0.7, 0.701, 0.699, 0.702, 0.698, 0.7, 0.701, 0.699];
    for (speed, day) in before.into_iter().chain(after).zip(10..) {
        let mut one = at(&measured, &format!("2026-01-{day}T12:00:00Z"), speed);
        if day >= 20 {
            one["host"]["kernel"] = "99.1 #1 SMP".into();
            one["warnings"] = serde_json::json!([{ "kind": "load", "busy": 1.5 }]);
        } else {
            one["warnings"] = serde_json::json!([]);
        }
        past.import(&one);
    }
    // Measurements from another machine form another series.
    let mut other = at(&measured, "2026-01-12T12:30:00Z", 5.0);
    other["host"]["name"] = "elsewhere".into();
    past.import(&other);

    let place = format!("place={}", placement());
    let flags = ["block=4k", &place];
    let json = past.history(&[&["trend", "--format", "json"], &flags[..]].concat());
    let points: Vec<serde_json::Value> = serde_json::from_str(&json).unwrap();
    let verdicts: Vec<(i64, &str)> =
        points.iter().filter_map(|point| Some((point["id"].as_i64()?, point["verdict"].as_str()?))).collect();
    assert_eq!((points.len(), verdicts.as_slice()), (19, &[(11, "worse")][..]), "{json}");
    let turn = points.iter().find(|point| point["id"] == 11).unwrap();
    let change = turn["change"].as_f64().unwrap();
    assert!((change + 0.3).abs() < 0.01, "{change}");
    assert!(turn["change_low"].as_f64().unwrap() < change && change < turn["change_high"].as_f64().unwrap());
    assert_eq!(
        turn["differs"],
        serde_json::json!(["kernel 99.1", "a different load (others used 0.00 CPUs before, 1.50 CPUs after)"])
    );

    let table = past.history(&[&["trend"], &flags[..]].concat());
    let flat = table.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(table.contains('█') && flat.contains("Runs from 11 on are worse than runs up to 10, by -30"), "{table}");
    assert!(flat.contains("also changed: kernel 99.1, a different load (others used 0.00 CPUs before"), "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    // With --fail-on, the exit code reports a change: of one trial, and of all trials.
    for (words, code) in [
        (&["block=4k", &place, "--fail-on", "worse"][..], 10),
        (&["--fail-on", "worse"], 10),
        (&["--fail-on", "better"], 0),
        (&["--fail-on", "worse", "--threshold", "50%"], 0),
        (&["--fail-on", "worse", "--limit", "6"], 0),
        (&["--fail-on", "same"], 2),
    ] {
        let ended = past.run(&[&["history", "trend"], words].concat());
        assert_eq!(ended.code(), Some(code), "{words:?} {ended:?}");
    }
    let all = past.history(&["trend"]);
    assert!(
        all.lines().any(|line| line.contains("pipe ") && line.contains("worse -30") && line.contains("in run 11")),
        "{all}"
    );
    assert!(past.history(&["trend", "--limit", "6", "block=4k", &place]).contains("too few to find a change"));

    assert_eq!(
        past.history(&[&["trend", "--format", "csv", "--host", "elsewhere"], &flags[..]].concat()).lines().count(),
        2
    );

    // A complete key selects its trial. Parameters that select no trial are an error.
    let key = pipe_trial_key(&past);
    assert!(past.history(&["trend", &key]).starts_with(&key));
    let ended = past.run(&["history", "trend", "link=shm"]);
    assert_eq!(ended.code(), Some(2), "{ended:?}");
    let ended = past.run(&["history", "trend", "blok=4k"]);
    assert!(ended.code() == Some(2) && ended.stderr.contains("did you mean block?"), "{ended:?}");
    let ended = past.run(&["history", "trend", "block=4k,64k"]);
    assert_eq!(ended.code(), Some(2), "{ended:?}");
}

/// The key of the trial that isn't the memory copy.
fn pipe_trial_key(past: &TestHistory) -> String {
    let trials: Vec<serde_json::Value> = serde_json::from_str(&past.history(&["trend", "--format", "json"])).unwrap();
    let keys: Vec<&str> = trials.iter().map(|trial| trial["trial"].as_str().unwrap()).collect();
    (*keys.iter().find(|key| key.starts_with("pipe ")).expect("the pipe's")).to_owned()
}

#[test]
fn nothing_is_deleted_without_a_terminal_to_ask_at() {
    let past = TestHistory::new();
    past.import(&document());
    let ended = past.run(&["history", "delete", "1"]);
    assert!(ended.code() == Some(2) && ended.stderr.contains("--yes"), "{ended:?}");
    assert_eq!(past.ids(&[]), [1]);
}

#[test]
fn runs_are_found_by_their_labels() {
    let past = TestHistory::new();
    past.measure(&["--label", "before"]);
    past.measure(&["--label", "after"]);
    let shown: serde_json::Value = serde_json::from_str(&past.history(&["export", "before"])).unwrap();
    assert_eq!(shown["label"], "before");
    let ended = past.run(&["compare", "before", "after", "--json", "-"]);
    assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
    let ended = past.run(&["history", "show", "nothing"]);
    assert!(ended.code() == Some(2) && ended.stderr.contains("no run nothing"), "{}", ended.stderr);
}

#[test]
fn listing_an_empty_history_is_no_error() {
    let past = TestHistory::new();
    for words in [&["history"][..], &["history", "list"], &["history", "trend"]] {
        let ended = pipemark(words);
        assert_eq!((ended.code(), ended.stdout.as_str()), (Some(0), ""), "{ended:?}");
        assert!(ended.stderr.contains("history is empty"));
    }
    for words in [&["history", "show"][..], &["history", "export", "1"], &["history", "delete", "1"]] {
        assert_eq!(past.run(words).code(), Some(2), "{words:?}");
        assert_eq!(pipemark(words).code(), Some(2), "{words:?}");
    }
    assert!(!past.db().exists(), "looking makes nothing");
    past.measure(&[]);
    assert_eq!(past.run(&["history", "show", "7"]).code(), Some(2));
    // A history that the user names must exist.
    for words in [&["history"][..], &["history", "trend"], &["history", "show"], &["compare", "a", "b"], &["report"]] {
        for missing in ["/nosuchdir/h.db", "nosuchfile.db"] {
            let ended = pipemark(&[words, &["--db", missing]].concat());
            assert_eq!((ended.code(), ended.stdout.as_str()), (Some(2), ""), "{words:?}: {}", ended.stderr);
            assert!(ended.stderr.contains(&format!("there is no history {missing};")), "{}", ended.stderr);
        }
    }
}

#[test]
fn only_the_db_option_may_precede_the_subcommand_of_history() {
    let past = TestHistory::new();
    past.measure(&[]);
    let db = past.db().display().to_string();
    for words in [&["--db", &db, "show"][..], &["show", "--db", &db], &["--db", "/nosuchfile", "show", "--db", &db]] {
        let ended = pipemark(&[&["history"], words].concat());
        assert!(ended.code() == Some(0) && ended.stdout.contains("B/s"), "{words:?}: {ended:?}");
    }
    let ended = pipemark(&["history", "--limit", "3", "show"]);
    assert!(ended.code() == Some(2) && ended.stderr.contains("only --db may come before"), "{}", ended.stderr);
}

#[test]
fn bad_usage_is_a_sentence() {
    for (words, expected) in [
        (&["history", "delete", "x"][..], "isn't the number of a run"),
        (&["history", "delete", "0"], "isn't the number of a run"),
        (&["history", "--since", "yesterday"], "is not a time"),
        (&["history", "import"], "required"),
        (&["bw", "--label", ""], "the label is empty"),
        (&["bw", "--label", &"x".repeat(201)], "use at most 200"),
        (&["bw", "--db", ""], "a value is required"),
        (&["bw", "--json", "-", "--format", "csv"], "both write to standard output"),
    ] {
        let ended = pipemark(words);
        assert_eq!(ended.code(), Some(2), "{words:?}");
        assert!(ended.stderr.contains(expected), "{words:?}: {}", ended.stderr);
    }
}

#[test]
fn only_results_can_be_imported() {
    let past = TestHistory::new();
    let mut document = document();
    for (field, value, expected) in
        [("schema", "pipemark/9", "has the schema 'pipemark/9'"), ("started", "soon", "start time 'soon' isn't valid")]
    {
        let before = document[field].take();
        document[field] = value.into();
        let path = past.file("bad.json");
        fs::write(&path, document.to_string()).unwrap();
        let ended = past.run(&["history", "import", path.to_str().unwrap()]);
        assert_eq!(ended.code(), Some(2));
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
        document[field] = before;
    }
    for path in ["/dev/null", "/nonexistent", "/"] {
        let ended = past.run(&["history", "import", path]);
        assert!(ended.code() == Some(2) && ended.stderr.contains(path), "{}", ended.stderr);
    }
}

#[test]
fn only_the_user_s_own_file_is_written() {
    let victim = tempfile::NamedTempFile::new().unwrap();
    let past = TestHistory::new();
    for (name, expected) in
        [("link", "symbolic link"), ("directory", "is a directory"), ("open", "writable by other users")]
    {
        let path = past.db();
        match name {
            "link" => symlink(victim.path(), &path).unwrap(),
            "directory" => fs::create_dir(&path).unwrap(),
            _ => {
                fs::write(&path, "").unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(0o622)).unwrap();
            }
        }
        let ended = past.run(&small(&["--json", "-"]));
        assert!(ended.code() == Some(0) && ended.stderr.contains(expected), "{name}: {}", ended.stderr);
        assert_eq!(ended.document()["schema"], "pipemark/1");
        assert_eq!(past.run(&["history"]).code(), Some(1), "{name}");
        fs::remove_file(&path).or_else(|_| fs::remove_dir(&path)).unwrap();
    }
    // SQLite would replay a planted journal into the history.
    past.measure(&[]);
    symlink(victim.path(), past.file("history.db-journal")).unwrap();
    assert!(past.run(&small(&[])).stderr.contains("symbolic link"));
    fs::remove_file(past.file("history.db-journal")).unwrap();
    assert_eq!(past.ids(&[]), [1]);
    assert_eq!(fs::metadata(victim.path()).unwrap().len(), 0);
    if rustix::process::getuid().is_root() {
        std::os::unix::fs::chown(past.db(), Some(65534), None).unwrap();
        assert!(past.run(&small(&[])).stderr.contains("belongs to user 65534"));
    }
}

/// The same check decides whether a document can be compared and imported.
#[test]
fn a_damaged_document_is_neither_compared_nor_imported() {
    let whole = document();
    type Damage = fn(&mut Value);
    let damages: [(&str, Damage); 4] = [
        ("several trials for", |document| {
            let trials = document["trials"].as_array_mut().unwrap();
            trials.push(trials.last().unwrap().clone());
        }),
        ("moved 0 bytes in", |document| document["trials"][1]["samples"][0]["bytes"] = 0.into()),
        ("bytes in 0 ns", |document| document["trials"][1]["samples"][0]["ns"] = 0.into()),
        ("two runs of round", |document| {
            let samples = document["trials"][1]["samples"].as_array_mut().unwrap();
            samples.push(samples[0].clone());
        }),
    ];
    for (what, damage) in damages {
        let past = TestHistory::new();
        let mut document = whole.clone();
        damage(&mut document);
        fs::write(past.file("damaged.json"), document.to_string()).unwrap();
        fs::write(past.file("whole.json"), whole.to_string()).unwrap();
        let [damaged, other] = ["damaged.json", "whole.json"].map(|name| past.file(name).to_str().unwrap().to_owned());
        for words in [&["compare", &other, &damaged][..], &["history", "import", &damaged]] {
            let ended = past.run(words);
            let says = ended.stderr.contains(what) && ended.stderr.contains("the file is damaged");
            assert!(ended.code() == Some(2) && says, "{words:?}: {:?} {}", ended.code(), ended.stderr);
        }
        assert!(!past.db().exists(), "{what}");
    }
}

/// SQLite would replay a journal or a write-ahead log that another user has put beside the history.
#[test]
fn files_beside_the_history_that_belong_to_another_user_are_refused() {
    if !rustix::process::geteuid().is_root() {
        return report_skip("files of another user beside the history", "needs root");
    }
    let document = document();
    let save = |past: &TestHistory| {
        fs::write(past.file("one.json"), document.to_string()).unwrap();
        past.run(&["history", "import", past.file("one.json").to_str().unwrap()])
    };
    // A journal and a log with content that SQLite would replay: those of a copy with other content, taken in the
    // middle of a transaction.
    let planted = TestHistory::new();
    save(&planted);
    let replayable = |mode: &str, suffix: &str| {
        let database = planted.file(&format!("{mode}.db"));
        fs::copy(planted.db(), &database).unwrap();
        let connection = Connection::open(&database).unwrap();
        connection
            .execute_batch(&format!("PRAGMA journal_mode={mode}; PRAGMA cache_size=1; PRAGMA cache_spill=1;"))
            .unwrap();
        connection.execute_batch("BEGIN; CREATE TABLE planted (n); INSERT INTO planted VALUES (1);").unwrap();
        if mode == "wal" {
            connection.execute_batch("COMMIT").unwrap();
        } else {
            // More than the cache holds, so that the journal is hot.
            connection.execute_batch("INSERT INTO planted SELECT randomblob(200000)").unwrap();
        }
        let mut path = database.into_os_string();
        path.push(suffix);
        fs::read(path).unwrap()
    };
    for (mode, suffix) in [("delete", "-journal"), ("wal", "-wal"), ("wal", "-shm")] {
        let content = replayable(mode, suffix);
        assert!(!content.is_empty(), "{suffix}");
        for existing in [true, false] {
            let past = TestHistory::new();
            if existing {
                assert_eq!(save(&past).code(), Some(0));
            }
            let before = fs::read(past.db()).ok();
            let beside = past.file(&format!("history.db{suffix}"));
            fs::write(&beside, &content).unwrap();
            std::os::unix::fs::chown(&beside, Some(65534), Some(65534)).unwrap();
            let ended = save(&past);
            assert_eq!(ended.code(), Some(1), "{suffix} {existing}: {}", ended.stderr);
            assert!(ended.stderr.contains("belongs to user 65534"), "{suffix} {existing}: {}", ended.stderr);
            if existing {
                let listed = past.run(&["history", "list"]);
                assert!(listed.stderr.contains("belongs to user 65534"), "{suffix}: {}", listed.stderr);
                assert!(fs::read(past.db()).ok() == before, "{suffix}: the history is unchanged");
            }
            assert!(fs::read(&beside).unwrap() == content, "{suffix}: the other user's file is unchanged");
            fs::remove_file(beside).unwrap();
            assert_eq!(save(&past).code(), Some(0), "{suffix} {existing}");
        }
    }
}
