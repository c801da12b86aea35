//! The history under faults: kills at any point, full disks, read-only directories, databases of other versions, files
//! that aren't databases. Saved runs stay complete, and no measurement is lost.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use crate::program::history::{TestHistory, document, small};
use crate::program::{PIPEMARK, report_skip, run};
use rusqlite::Connection;
use serde_json::Value;

/// A file to import, with this label.
fn labelled(past: &TestHistory, document: &Value, label: &str) -> String {
    let mut document = document.clone();
    document["label"] = label.into();
    let path = past.file(&format!("{label}.json"));
    fs::write(&path, document.to_string()).unwrap();
    path.to_str().unwrap().to_owned()
}

fn import(past: &TestHistory, file: &str) -> Command {
    let mut command = Command::new(PIPEMARK);
    command.args(["history", "import", file]).args(past.flag()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

fn stderr_of(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Checks that a measurement succeeds although the history can't be written, and that one message reports this.
fn measures_without_history(past: &TestHistory, launcher: &[&str], expected: &str) {
    let flag = past.flag();
    let words = [&small(&["--json", "-"])[..], &[&flag[0], &flag[1]]].concat();
    let ended = run(launcher, &words);
    assert_eq!(ended.measured()["schema"], "pipemark/1");
    assert!(ended.stderr.starts_with("pipemark: this measurement was not saved in the history: "), "{}", ended.stderr);
    assert!(ended.stderr.contains(expected) && ended.stderr.lines().count() == 1, "{expected}: {}", ended.stderr);
}

#[test]
fn many_writers_take_turns() {
    let past = TestHistory::new();
    let document = document();
    let files: Vec<String> = (0..24).map(|number| labelled(&past, &document, &format!("w{number}"))).collect();
    // The first of the imports creates the database.
    let children: Vec<Child> = files.iter().map(|file| import(&past, file).spawn().unwrap()).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", stderr_of(&output));
    }
    let mut labels = past.checked_labels();
    labels.sort();
    labels.dedup();
    assert_eq!(labels.len(), 24);
}

#[test]
fn two_measurements_at_once_are_both_kept() {
    let past = TestHistory::new();
    let (one, other) = (small(&["--label", "one"]), small(&["--label", "other"]));
    let both = [one, other].map(|words| Command::new(PIPEMARK).args(words).args(past.flag()).spawn().unwrap());
    for mut child in both {
        assert!(child.wait().unwrap().success());
    }
    let mut labels = past.checked_labels();
    labels.sort();
    assert_eq!(labels, [Some("one".to_owned()), Some("other".to_owned())]);
}

/// After each kill, all runs reported as saved are in the history. The run that was being saved is either complete or
/// absent.
#[test]
fn a_kill_at_any_time_leaves_whole_runs() {
    let past = TestHistory::new();
    let document = document();
    let mut kept = Vec::new();
    let mut maybe: Vec<String> = Vec::new();
    for number in 0..60u64 {
        let label = format!("k{number}");
        let mut child = import(&past, &labelled(&past, &document, &label)).spawn().unwrap();
        // A process starts within a few milliseconds and saves within a few more. These steps cover both.
        thread::sleep(Duration::from_micros(1000 + number * 400));
        child.kill().unwrap();
        match child.wait().unwrap().success() {
            true => kept.push(label),
            false => maybe.push(label),
        }
        if number % 10 == 9 {
            check(&past, &kept, &maybe);
        }
    }
    past.measure(&["--label", "after"]);
    kept.push("after".to_owned());
    check(&past, &kept, &maybe);
}

fn check(past: &TestHistory, kept: &[String], maybe: &[String]) {
    if !past.db().exists() {
        assert!(kept.is_empty());
        return;
    }
    // After the kill, pipemark is the first to open the database, so it must cope with the files left behind.
    past.ids(&["--limit", "0"]);
    let found: Vec<String> = past.checked_labels().into_iter().map(|label| label.unwrap()).collect();
    for label in kept {
        assert!(found.contains(label), "{label} was kept and is gone");
    }
    for label in &found {
        assert!(kept.contains(label) || maybe.contains(label), "{label} comes from nowhere");
    }
    assert_eq!(found.iter().collect::<std::collections::BTreeSet<_>>().len(), found.len(), "nothing twice");
}

/// Kills before every ninth system call. The soak test below kills before every call.
#[test]
fn a_kill_before_a_system_call_leaves_whole_runs() {
    killed_before_system_calls(9);
}

#[test]
#[ignore = "soak"]
fn soak_a_kill_before_each_system_call_leaves_whole_runs() {
    killed_before_system_calls(1);
}

/// strace kills the program as it enters the N-th call that changes a file, for every `step`-th N until there are no
/// more calls.
fn killed_before_system_calls(step: usize) {
    let usable = Command::new("strace").args(["-f", "-o", "/dev/null", "true"]).status();
    if !usable.is_ok_and(|status| status.success()) {
        report_skip("kills of history before each system call", "strace can't trace here");
        return;
    }
    let document = document();
    for fresh in [true, false] {
        for call in ["openat", "pwrite64", "fsync,fdatasync", "unlink"] {
            let mut kills = 0;
            for number in (1..).step_by(step) {
                let past = TestHistory::new();
                let mut kept = Vec::new();
                if !fresh {
                    assert!(import(&past, &labelled(&past, &document, "first")).status().unwrap().success());
                    kept.push("first".to_owned());
                }
                let inject = format!("inject={call}:signal=KILL:when={number}");
                let file = labelled(&past, &document, "killed");
                let mut traced = Command::new("strace");
                traced.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={call}"), "-e", &inject]);
                traced.arg(PIPEMARK).args(["history", "import", &file]).args(past.flag()).stdout(Stdio::null());
                if traced.status().unwrap().success() {
                    kept.push("killed".to_owned());
                    check(&past, &kept, &[]);
                    break;
                }
                kills += 1;
                check(&past, &kept, &["killed".to_owned()]);
                // After a kill the next import succeeds.
                assert!(import(&past, &labelled(&past, &document, "next")).status().unwrap().success());
                kept.push("next".to_owned());
                check(&past, &kept, &["killed".to_owned()]);
            }
            assert!(kills > 0, "{call} is never called");
        }
    }
}

/// Files are created with their final mode, so other users can't read them even briefly.
#[test]
fn files_are_made_with_their_final_mode() {
    let past = TestHistory::new();
    let log = past.file("log");
    let mut traced = Command::new("sh");
    let script = format!(
        "umask 0; exec strace -f -qq -o {} -e trace=openat,open,creat,mkdir,mkdirat,chmod,fchmod {PIPEMARK} {}",
        log.display(),
        small(&[]).join(" ")
    );
    let status = traced.args(["-c", &script]).env("XDG_DATA_HOME", past.file("data")).status();
    let Ok(calls) = fs::read_to_string(&log) else {
        report_skip("modes of files as they are made", format_args!("strace can't trace here: {status:?}"));
        return;
    };
    let data = past.file("data");
    let made = calls.lines().filter(|line| line.contains(data.to_str().unwrap()));
    let made: Vec<&str> = made.filter(|line| line.contains("O_CREAT") || line.contains("mkdir")).collect();
    assert!(made.len() >= 3, "{calls}");
    for line in made {
        assert!(line.contains("0600") || line.contains("0700") || line.contains("EEXIST"), "{line}");
    }
}

#[test]
fn a_file_that_may_not_grow_loses_nothing() {
    let past = TestHistory::new();
    past.measure(&["--label", "before"]);
    let size = fs::metadata(past.db()).unwrap().len();
    let limit = format!("--fsize={size}");
    // The document needs more pages than the limit allows.
    measures_without_history(&past, &["prlimit", &limit, PIPEMARK], "ulimit -f");
    assert_eq!(past.checked_labels(), [Some("before".to_owned())]);
    let empty = TestHistory::new();
    measures_without_history(&empty, &["prlimit", "--fsize=5000", PIPEMARK], "ulimit -f");
    empty.measure(&["--label", "room again"]);
    assert_eq!(empty.checked_labels(), [Some("room again".to_owned())]);
}

#[test]
fn a_full_disk_loses_nothing() {
    let past = TestHistory::new();
    let result = past.file("result.json");
    let db = past.file("disk/history.db");
    // The mount namespace, and with it the mount, ends with this shell.
    let script = format!(
        "set -e; mkdir disk; mount -t tmpfs -o size=256k pipemark-test disk
        {PIPEMARK} {words} --label before --db {db}
        head -c 1m /dev/zero >disk/filler 2>/dev/null || true
        {PIPEMARK} {words} --json {result} --db {db} 2>said
        cp disk/history.db full.db
        rm disk/filler
        {PIPEMARK} {words} --label after --db {db}
        cp disk/history.db history.db",
        words = small(&[]).join(" "),
        db = db.display(),
        result = result.display(),
    );
    let output =
        Command::new("unshare").args(["-m", "sh", "-c", &script]).current_dir(past.directory()).output().unwrap();
    if stderr_of(&output).contains("unshare") || stderr_of(&output).contains("mount") {
        report_skip("a full disk", format_args!("nothing can be mounted here: {}", stderr_of(&output)));
        return;
    }
    assert!(output.status.success(), "{}", stderr_of(&output));
    let sentence = fs::read_to_string(past.file("said")).unwrap();
    assert!(sentence.contains("on a full disk"), "{sentence}");
    assert!(fs::read_to_string(&result).unwrap().starts_with('{'), "the measurement is there");
    assert_eq!(past.checked_labels(), [Some("before".to_owned()), Some("after".to_owned())]);
}

const NOBODY: [&str; 6] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs", "--"];

#[test]
fn a_directory_that_may_not_be_written_to_can_be_read() {
    let may = Command::new(NOBODY[0]).args(&NOBODY[1..]).args([PIPEMARK, "--version"]).stdout(Stdio::null()).status();
    if !may.is_ok_and(|status| status.success()) {
        report_skip("a history that may not be written", "this user may not become another one");
        return;
    }
    let nobody = [&NOBODY[..], &[PIPEMARK]].concat();
    let past = TestHistory::new();
    let mode = |mode| fs::set_permissions(past.directory(), fs::Permissions::from_mode(mode)).unwrap();
    mode(0o777);
    let flag = past.flag();
    let flag = [flag[0].as_str(), flag[1].as_str()];
    let ended = run(&nobody, &[&small(&["--label", "before"])[..], &flag].concat());
    assert_eq!((ended.code(), ended.stderr.as_str()), (Some(0), ""));
    mode(0o555);
    measures_without_history(&past, &nobody, "can't be");
    let listed = run(&nobody, &[&["history"][..], &flag].concat());
    assert!(listed.code() == Some(0) && listed.stdout.contains("before"), "{listed:?}");
    assert_eq!(run(&nobody, &[&["history", "delete", "1", "--yes"][..], &flag].concat()).code(), Some(1));
    mode(0o777);
}

#[test]
fn unknown_databases_are_left_unchanged() {
    let foreign = |past: &TestHistory| {
        let database = Connection::open(past.db()).unwrap();
        database.execute_batch("CREATE TABLE bookmarks (url TEXT); INSERT INTO bookmarks VALUES ('x');").unwrap();
    };
    let newer = |past: &TestHistory| {
        past.measure(&[]);
        Connection::open(past.db()).unwrap().pragma_update(None, "user_version", 99).unwrap();
    };
    let garbage = |past: &TestHistory| fs::write(past.db(), "not a database at all\n".repeat(400)).unwrap();
    let torn = |past: &TestHistory| {
        past.measure(&[]);
        let whole = fs::read(past.db()).unwrap();
        fs::write(past.db(), &whole[..whole.len() / 2 + 100]).unwrap();
    };
    type Make<'a> = &'a dyn Fn(&TestHistory);
    let cases: [(Make<'_>, &str); 4] = [
        (&foreign, "a database of another program"),
        (&newer, "written by a newer pipemark (format 99"),
        (&garbage, "is not an SQLite database"),
        (&torn, "is damaged"),
    ];
    for (make, expected) in cases {
        let past = TestHistory::new();
        make(&past);
        fs::set_permissions(past.db(), fs::Permissions::from_mode(0o600)).unwrap();
        let before = fs::read(past.db()).unwrap();
        measures_without_history(&past, &[PIPEMARK], expected);
        let ended = past.run(&["history", "delete", "1", "--yes"]);
        assert!(ended.code() == Some(1) && ended.stderr.contains(expected), "{}", ended.stderr);
        assert_eq!(fs::read(past.db()).unwrap(), before, "{expected}: not a byte is changed");
        assert!(!past.file("history.db-journal").exists());
    }
}

/// Writes a database of the first format, as only old versions did.
fn write_first_format(path: &Path, documents: &[&Value]) {
    let database = Connection::open(path).unwrap();
    database
        .execute_batch(
            "PRAGMA application_id = 1885958245; PRAGMA user_version = 1;
            CREATE TABLE run (id INTEGER PRIMARY KEY AUTOINCREMENT, started INTEGER NOT NULL, suite TEXT NOT NULL,
                title TEXT NOT NULL, label TEXT, host TEXT NOT NULL, kernel TEXT NOT NULL, cpu TEXT NOT NULL,
                version TEXT NOT NULL, trials INTEGER NOT NULL, measured INTEGER NOT NULL, outcome TEXT NOT NULL,
                headline TEXT NOT NULL) STRICT;
            CREATE INDEX run_by_time ON run (started, id);
            CREATE TABLE document (run INTEGER PRIMARY KEY REFERENCES run (id) ON DELETE CASCADE, json TEXT NOT NULL)
                STRICT;",
        )
        .unwrap();
    for (number, document) in documents.iter().enumerate() {
        let run = "INSERT INTO run (started, suite, title, label, host, kernel, cpu, version, trials, measured, outcome, \
                   headline) VALUES (?1, 'bw', '', ?2, 'h', 'k', 'c', '0.0.1', 1, 1, 'ok', '1 GiB/s')";
        database.execute(run, (number as i64, document["label"].as_str())).unwrap();
        let json = document.to_string();
        database.execute("INSERT INTO document (run, json) VALUES (last_insert_rowid(), ?)", [json]).unwrap();
    }
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn older_databases_are_migrated_or_left_unchanged() {
    let document = document();
    // Version 0 is an empty file, as if the program was killed after creating it.
    let past = TestHistory::new();
    fs::write(past.db(), "").unwrap();
    fs::set_permissions(past.db(), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(past.ids(&[]), [0; 0]);
    past.measure(&[]);
    assert_eq!(past.checked_labels().len(), 1);

    let past = TestHistory::new();
    write_first_format(&past.db(), &[&document, &document]);
    let before = fs::read(past.db()).unwrap();
    // The file can't grow, so the new tables can't be created and nothing changes.
    measures_without_history(&past, &["prlimit", &format!("--fsize={}", before.len()), PIPEMARK], "ulimit -f");
    assert_eq!(fs::read(past.db()).unwrap(), before);
    // Trials of old runs are found like trials of new runs.
    let trials: Value = serde_json::from_str(&past.history(&["trend", "--format", "json"])).unwrap();
    assert_eq!(trials[0]["runs"], 2, "{trials}");
    past.measure(&[]);
    assert_eq!(past.ids(&[]), [3, 2, 1]);
    let database = Connection::open(past.db()).unwrap();
    let version: i64 = database.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(version, 2);
    assert_eq!(past.history(&["export", "1"]), document.to_string());
}

#[test]
fn waiting_for_a_lock_has_a_limit() {
    let past = TestHistory::new();
    past.measure(&[]);
    let database = Connection::open(past.db()).unwrap();
    database.execute_batch("BEGIN EXCLUSIVE").unwrap();
    measures_without_history(&past, &[PIPEMARK], "locked by another process");
    database.execute_batch("COMMIT").unwrap();
    assert_eq!(past.ids(&[]), [1]);
}
