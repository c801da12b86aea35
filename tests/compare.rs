//! `pipemark compare` on the command line: files and labels, verdicts and exit codes, and the output in a CI job.

use std::fs;
use std::sync::OnceLock;

use crate::program::{PIPEMARK, ProgramOutput, RunningProgram, bw, pipemark, placement, run};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A measured document with two trials, `capacity` default and 1m. Each trial's seven runs are replaced by constructed
/// ones: 10^9 bytes in 1 ms, within 4 per mille.
fn document() -> Value {
    static MEASURED: OnceLock<Value> = OnceLock::new();
    let mut document = MEASURED.get_or_init(|| bw("--capacity default,1m --runs 1")).clone();
    for trial in document["trials"].as_array_mut().unwrap() {
        let one = trial["samples"][0].clone();
        let noise = [0, 4, -4, 2, -2, 1, -1].into_iter().zip(0..);
        let samples = noise.map(|(noise, round)| {
            let mut sample = one.clone();
            sample["round"] = json!(round);
            sample["bytes"] = json!(1_000_000_000 + noise * 1_000_000);
            sample["ns"] = json!(1_000_000);
            sample
        });
        trial["samples"] = samples.collect();
    }
    document
}

/// The same document at `percent` of its speed. Changes all trials, or only the trial with the capacity `only`.
fn at(percent: u64, only: Option<&str>) -> Value {
    let mut document = document();
    for trial in document["trials"].as_array_mut().unwrap() {
        if only.is_some_and(|capacity| trial["params"]["capacity"] != capacity) {
            continue;
        }
        for sample in trial["samples"].as_array_mut().unwrap() {
            sample["bytes"] = json!(sample["bytes"].as_u64().unwrap() * percent / 100);
        }
    }
    document
}

struct Files(TempDir);

impl Files {
    fn new() -> Files {
        Files(tempfile::tempdir().unwrap())
    }

    fn put(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.0.path().join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn json(&self, name: &str, document: &Value) -> String {
        self.put(name, document.to_string())
    }

    /// A file with five sessions that differ by up to 2 per mille.
    fn sessions(&self, name: &str, document: &Value) -> String {
        let session = |(by, hour): (i64, i64)| {
            let mut session = document.clone();
            session["started"] = json!(format!("2025-03-01T0{hour}:00:00Z"));
            for sample in session["trials"]
                .as_array_mut()
                .unwrap()
                .iter_mut()
                .flat_map(|trial| trial["samples"].as_array_mut().unwrap())
            {
                sample["bytes"] = json!(sample["bytes"].as_i64().unwrap() / 1000 * (1000 + by));
            }
            session.to_string()
        };
        self.put(name, [0, 2, -2, 1, -1].into_iter().zip(0..).map(session).collect::<Vec<_>>().join("\n"))
    }
}

fn compare(words: &[&str]) -> ProgramOutput {
    pipemark(&[&["compare"], words].concat())
}

#[test]
fn verdicts_have_codes_when_asked_for() {
    let files = Files::new();
    let base = files.sessions("base.json", &document());
    let same = files.sessions("same.json", &at(100, None));
    let faster = files.sessions("faster.json", &at(120, None));
    let slower = files.sessions("slower.json", &at(80, None));
    let mixed = files.sessions("mixed.json", &at(80, Some("default")));
    let mut one = document();
    one["trials"].as_array_mut().unwrap().retain(|trial| trial["params"]["capacity"] == "default");
    let one = files.sessions("one.json", &one);
    // With sessions that differ by up to 40 %, the verdict is inconclusive.
    let unsteady = [60, 140, 100, 80, 120].map(|percent| at(percent, None).to_string()).join("\n");
    let unsteady = files.put("unsteady.json", unsteady);

    let all = ["--fail-on", "worse,missing,no-verdict,inconclusive,better,same"];
    for (new, flags, code) in [
        (&slower, &[][..], 0),
        (&slower, &["--fail-on", "worse"], 10),
        (&slower, &["--fail-on", "better"], 0),
        (&slower, &["--fail-on", "worse", "--threshold", "15%"], 10),
        (&slower, &["--fail-on", "worse", "--threshold", "25%"], 0),
        (&mixed, &["--fail-on", "worse"], 10),
        (&mixed, &["--fail-on", "same"], 14),
        (&faster, &["--fail-on", "worse"], 0),
        (&faster, &["--fail-on", "better,worse"], 13),
        (&one, &["--fail-on", "missing"], 11),
        (&unsteady, &["--fail-on", "cant-tell"], 12),
        (&unsteady, &["--fail-on", "inconclusive,no-verdict"], 12),
        (&unsteady, &["--fail-on", "worse"], 0),
        (&slower, &all, 10),
        (&one, &all, 11),
        (&unsteady, &all, 12),
        (&faster, &all, 13),
        (&same, &all, 14),
    ] {
        let ended = compare(&[&[base.as_str(), new], flags].concat());
        assert_eq!(ended.code(), Some(code), "{new} {flags:?}\n{}{}", ended.stdout, ended.stderr);
    }
}

#[test]
fn the_table_says_what_changed() {
    let files = Files::new();
    let base = files.sessions("base.json", &document());
    let new = files.sessions("new.json", &at(80, Some("default")));
    let ended = compare(&[&base, &new]);
    assert_eq!(ended.stderr, "");
    let row = ended.stdout.lines().find(|line| line.contains("capacity default")).expect("a row");
    assert!(row.contains("-20.0 %") && row.ends_with("worse"), "{}", ended.stdout);
    assert!(ended.stdout.contains("geometric mean of 2"), "{}", ended.stdout);
    assert!(ended.stdout.contains("2 trials: 1 worse, 1 same"), "{}", ended.stdout);
    // Unchanged trials are listed after changed ones.
    let row = |capacity: &str| ended.stdout.lines().position(|line| line.contains(capacity)).expect("a row");
    assert!(row("capacity default") < row("capacity 1 MiB"), "{}", ended.stdout);
}

#[test]
fn parts_of_one_measurement_are_compared_round_by_round() {
    let files = Files::new();
    let file = files.json("one.json", &at(150, Some("default")));
    let ended = compare(&[&file, "--base", "capacity=default", "--new", "capacity=1m", "--json", "-"]);
    let report = ended.measured();
    assert_eq!(report["schema"], "pipemark-compare/1");
    let change = &report["groups"][0]["changes"][0];
    assert_eq!(change["comparison"]["verdict"], "worse");
    assert_eq!(change["comparison"]["pairing"], "rounds");
    assert_eq!(report["missing"], json!([]));
}

#[test]
fn standard_input_is_a_file_too() {
    let files = Files::new();
    let base = files.sessions("base.json", &document());
    let words = ["sh", "-c", "\"$0\" compare \"$1\" - <\"$1\"", PIPEMARK];
    let ended = run(&words, &[&base]);
    assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("2 same"), "{}", ended.stdout);
}

#[test]
fn another_machine_is_a_warning_that_names_it() {
    let files = Files::new();
    let base = files.json("base.json", &document());
    let mut other = document();
    other["host"]["kernel"] = json!("Linux 3.10.0-\u{1b}[2Jevil");
    other["host"]["cpus"] = json!(77);
    let new = files.json("new.json", &other);
    let ended = compare(&[&base, &new]);
    assert_eq!(ended.code(), Some(0));
    assert!(
        ended.stdout.contains("machine or system differs: kernel (") && ended.stdout.contains("77 in NEW"),
        "{}",
        ended.stdout
    );
    // Without a table the warning still appears.
    for flags in [&["--quiet"][..], &["--json", "-"], &["--markdown", "-"], &["--format", "csv"], &["--format", "json"]]
    {
        let ended = compare(&[&[base.as_str(), &new], flags].concat());
        assert!(ended.stderr.contains("machine or system differs: kernel ("), "{flags:?} {}", ended.stderr);
        let printed = format!("{}{}", ended.stdout, ended.stderr);
        assert!(!printed.contains(|c: char| c.is_control() && c != '\n'), "{flags:?} {printed:?}");
    }
}

#[test]
fn files_that_cannot_be_compared_are_code_2_with_a_sentence() {
    let files = Files::new();
    let base = files.json("base.json", &document());
    let with = |name: &str, change: &dyn Fn(&mut Value)| {
        let mut document = document();
        change(&mut document);
        files.json(name, &document)
    };
    let text = |name: &str, from: &str, to: &str| {
        let whole = document().to_string();
        assert!(whole.contains(from), "{from}");
        files.put(name, whole.replacen(from, to, 1))
    };
    let huge = files.put("huge.json", "{");
    fs::File::options().write(true).open(&huge).unwrap().set_len(600 << 20).unwrap();
    let directory = files.0.path().to_str().unwrap().to_owned();
    for (new, expected) in [
        (files.put("empty.json", ""), "holds no pipemark results"),
        (files.put("text.json", "throughput 3 GiB/s\x1b[2J"), "holds no pipemark results"),
        (files.put("binary.json", b"\xff\xfe\x00"), "holds no pipemark results"),
        (files.put("deep.json", "[".repeat(1 << 20)), "holds no pipemark results"),
        (files.put("cut.json", &document().to_string()[..2000]), "holds no pipemark results"),
        (files.put("other.json", "{\"results\": []}"), "names no schema"),
        (with("schema.json", &|d| d["schema"] = json!("pipemark/99\u{1b}[2J")), "has the schema 'pipemark/99"),
        (with("why.json", &|d| d["schema"] = json!("pipemark-why/1")), "holds results of 'pipemark why'; expected"),
        (with("workload.json", &|d| d["workload"] = json!(99)), "version 99"),
        (with("none.json", &|d| d["trials"] = json!([])), "has no trials"),
        (with("word.json", &|d| d["trials"][0]["params"]["send"] = json!("pigeon\u{1b}[2J")), "unknown variant"),
        (with("minus.json", &|d| d["trials"][0]["samples"][0]["bytes"] = json!(-5)), "invalid value"),
        (with("zero.json", &|d| d["trials"][1]["samples"][3]["ns"] = json!(0)), "which is impossible"),
        (with("light.json", &|d| d["trials"][1]["samples"][3]["bytes"] = json!(u64::MAX)), "which is impossible"),
        (text("nan.json", "\"ns\":1000000", "\"ns\":NaN"), "holds no pipemark results"),
        (text("infinite.json", "\"load\":", "\"load\":1e999,\"x\":"), "holds no pipemark results"),
        (
            with("params.json", &|d| {
                for trial in d["trials"].as_array_mut().unwrap() {
                    trial["params"]["block"] = json!(512);
                }
                d["trials"].as_array_mut().unwrap().remove(0);
            }),
            "no trial of BASE has a counterpart",
        ),
        (huge, "larger than 512 MiB"),
        (directory, "directory"),
        ("/nonexistent.json".to_owned(), "there is no run"),
    ] {
        let ended = compare(&[&base, &new]);
        assert_eq!(ended.code(), Some(2), "{new}: {}{}", ended.stdout, ended.stderr);
        let error = &ended.stderr;
        assert!(error.starts_with("pipemark: ") && error.contains(expected), "{new}: {error}");
        assert!(!error.contains(|c: char| c.is_control() && c != '\n'), "{error:?}");
        assert_eq!(ended.stdout, "");
    }
}

#[test]
fn bad_usage_is_code_2() {
    let files = Files::new();
    let base = files.json("base.json", &document());
    for (words, expected) in [
        (&[][..], "BASE NEW"),
        (&[base.as_str()], "nothing to compare"),
        (&[&base, "--base", "capacity=default"], "--new"),
        (&[&base, "--base", "capacity=64k", "--new", "capacity=65536"], "the same trials"),
        (&[&base, "--base", "capacity=3", "--new", "capacity=1m"], "it has default, 1 MiB"),
        (&[&base, "--base", "send=write,send=tee", "--new", "capacity=1m"], "twice"),
        (&[&base, &base, "--threshold", "5"], "not a threshold"),
        (&[&base, &base, "--fail-on", "slower"], "invalid value"),
        (&[&base, &base, "--json", "-", "--markdown", "-"], "standard output"),
        (&[&base, "--aa"], "cannot be used with"),
        (&["-", "-"], "one measurement"),
    ] {
        let ended = compare(words);
        assert_eq!(ended.code(), Some(2), "{words:?}: {}", ended.stderr);
        assert!(
            ended.stderr.starts_with("pipemark: ") && ended.stderr.contains(expected),
            "{words:?}: {}",
            ended.stderr
        );
    }
}

#[test]
fn a_comparison_without_common_trials_fails() {
    let files = Files::new();
    let base = files.json("base.json", &document());
    let mut failed = document();
    for trial in failed["trials"].as_array_mut().unwrap() {
        trial["status"] = json!("skipped");
        trial["reason"] = json!("no pipes here");
    }
    let ended = compare(&[&base, &files.json("new.json", &failed)]);
    assert_eq!(ended.code(), Some(1));
    assert!(ended.stdout.contains("skipped: no pipes here"), "{}", ended.stdout);
}

#[test]
fn real_results_are_compared() {
    let started =
        RunningProgram::pipemark(&["bw", "--runs", "6", "--time", "20ms", "--place", placement(), "--json", "-"]);
    let (one, _) = started.end();
    let files = Files::new();
    let (base, new) = (files.put("base.json", &one.stdout), files.json("new.json", &bw("--runs 6")));
    let report = compare(&[&base, &new, "--json", "-"]).measured();
    let changes: Vec<&Value> =
        report["groups"].as_array().unwrap().iter().flat_map(|group| group["changes"].as_array().unwrap()).collect();
    assert_eq!(changes.len(), 2, "the pipe, and the copy within one process");
    assert!(changes.iter().all(|change| change["comparison"]["p"].is_number()));
    assert_eq!(changes.iter().filter(|change| change["reference"] == true).count(), 1);
}

#[test]
fn the_noise_floor_is_measured_in_sessions() {
    let with = format!("time=20ms,place={}", placement());
    let words = ["--aa", "--sessions", "5", "--rounds", "4", "--with", &with, "--json", "-"];
    let floor = compare(&words).measured();
    assert_eq!((&floor["rounds"], &floor["sessions"], &floor["pairs"]), (&json!(4), &json!(5), &json!(10)));
    // Both sides were measured separately. A comparison of one measurement with itself would show no noise.
    assert!(floor["itself"]["low"].as_f64() < floor["itself"]["high"].as_f64(), "{}", floor["itself"]);
    assert_eq!((&floor["itself"]["base_sessions"], &floor["itself"]["base_runs"]), (&json!(5), &json!(20)));
    let floors = floor["floors"].as_array().unwrap();
    assert_eq!(floors.len(), 4);
    let smallest = |at: usize, way: &str| floors[at][way].as_f64().unwrap();
    assert!(["two_files", "in_turns"].iter().all(|way| smallest(3, way) < smallest(0, way)), "{floor}");
    let shown = compare(&words[..words.len() - 2]);
    assert_eq!(shown.code(), Some(0), "{}", shown.stderr);
    let words = shown.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("Smallest change") && words.contains("of 10 pairs of sessions"), "{}", shown.stdout);
    assert_eq!(compare(&["--aa", "--with", "block=0"]).code(), Some(2));
}

/// Each document in a file is a session. With one session on each side there is no verdict, and the output says how to
/// get one.
#[test]
fn a_verdict_that_is_withheld_says_why() {
    let files = Files::new();
    let (base, new) = (files.json("base.json", &document()), files.json("new.json", &at(50, None)));
    let ended = compare(&[&base, &new]);
    assert!(ended.stdout.contains("2 no verdict"), "{}", ended.stdout);
    assert!(ended.stdout.contains("1 session each: no verdict; use ab, or --sessions 5"), "{}", ended.stdout);
    // The figures are shown nevertheless.
    assert!(ended.stdout.contains("-50.0 %") && ended.stdout.contains("capacity 1 MiB"), "{}", ended.stdout);
    assert_eq!(compare(&[&base, &new, "--fail-on", "worse,no-verdict"]).code(), Some(15));
    let report = compare(&[&base, &new, "--json", "-"]).measured();
    assert!(report["groups"][0]["changes"][0]["why"].as_str().unwrap().contains("no verdict"), "{report}");
    let many = [files.sessions("many.json", &document()), files.sessions("half.json", &at(50, None))];
    let ended = compare(&[&many[0], &many[1]]);
    assert!(ended.stdout.contains("2 worse") && ended.stdout.contains("5 sessions"), "{}", ended.stdout);
}

/// docs/ci.md recommends this for machines that reboot between measurements: sessions share a label, from one or
/// several invocations.
#[test]
fn sessions_under_one_label_are_compared_by_label() {
    let directory = tempfile::tempdir().unwrap();
    let db = directory.path().join("pipes.db");
    let db = db.to_str().unwrap();
    let bw = |label: &str, more: &[&str]| {
        let words = ["bw", "--runs", "4", "--time", "5ms", "--place", placement(), "--db", db, "--label", label];
        pipemark(&[&words[..], more].concat())
    };
    let json = directory.path().join("base.json");
    let ended = bw("base", &["--sessions", "3", "--json", json.to_str().unwrap()]);
    assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("differ by") && ended.stdout.contains("'base'"), "{}", ended.stdout);
    assert_eq!(bw("base", &["--sessions", "2", "--quiet"]).code(), Some(0));
    for _ in 0..5 {
        assert_eq!(bw("new", &["--quiet"]).code(), Some(0));
    }
    let report = compare(&["base", "new", "--db", db, "--json", "-"]).measured();
    assert_eq!((&report["base"]["sessions"], &report["new"]["sessions"]), (&json!(5), &json!(5)));
    let comparison = &report["groups"][0]["changes"].as_array().unwrap().last().unwrap()["comparison"];
    assert_eq!((&comparison["pairing"], &comparison["base_sessions"]), (&json!("sessions"), &json!(5)));
    // Each document in the file is a session. The history provides the variation between other sessions.
    let report = compare(&[json.to_str().unwrap(), "new", "--db", db, "--json", "-"]).measured();
    assert_eq!((&report["base"]["sessions"], &report["known_sessions"]), (&json!(3), &json!(2)));
    let seeds: Vec<u64> = serde_json::Deserializer::from_str(&fs::read_to_string(&json).unwrap())
        .into_iter::<Value>()
        .map(|document| document.unwrap()["seed"].as_u64().unwrap())
        .collect();
    assert_eq!(seeds, [1, 2, 3], "each in another order");
    assert_eq!(pipemark(&["history", "import", json.to_str().unwrap(), "--db", db]).stdout.lines().count(), 3);
    let ended = bw("x", &["--sessions", "2", "--csv", "-"]);
    assert!(ended.code() == Some(2) && ended.stderr.contains("can hold only one session"), "{}", ended.stderr);
}
