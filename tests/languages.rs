//! Entrants (benchmark programs in other languages) end to end: fake entrants keep the contract, or break it in each
//! known way. Also tests what they leave behind. Fake entrants send no bytes. entrants.rs tests the real entrants.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::program::{PIPEMARK, eventually};
use serde_json::Value;
use tempfile::TempDir;

/// A directory with fake entrants. A fake's name says how it breaks the contract.
struct FakeEntrants {
    directory: TempDir,
}

impl FakeEntrants {
    fn new(ways: &[&str]) -> FakeEntrants {
        let fake_entrants = FakeEntrants { directory: TempDir::new().unwrap() };
        fs::create_dir(fake_entrants.path("tmp")).unwrap();
        for way in ways {
            fake_entrants.add(way, "[[\"python3\"]]", "[]");
        }
        fake_entrants
    }

    fn add(&self, way: &str, tries: &str, commands: &str) {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/fake_entrant.py");
        let directory = self.path("entrants").join(way);
        fs::create_dir_all(&directory).unwrap();
        let program = format!("run = [\"{{python}}\", \"{script}\", \"{way}\"]\nabout = \"{way}\"");
        let form = format!(
            "name = \"Fake\"\n[[tools]]\nname = \"python\"\ntry = {tries}\nversion = [\"--version\"]\n\
             install = \"apt install python\"\n[build]\ncommands = {commands}\n[idiomatic]\n{program}\n[tuned]\n{program}\n"
        );
        fs::write(directory.join("entrant.toml"), form).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The sleeping processes that fake entrants start have this path on their command line.
    fn mark(&self) -> &Path {
        self.directory.path()
    }

    /// A suite with one trial for each name.
    fn suite(&self, ways: &[&str]) -> String {
        let file = self.path("fakes.toml");
        let suite = format!(
            "name = \"fakes\"\ntitle = \"Fakes\"\n[[experiment]]\nname = \"fakes\"\ntitle = \"Fakes\"\n\
             params = {{ total = 20_000, block = 512, program = \"tuned\", place = \"free\", verify = \"full\" }}\n\
             axes = {{ language = {ways:?} }}\n"
        );
        fs::write(&file, suite).unwrap();
        file.to_str().unwrap().to_owned()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(PIPEMARK);
        command.args(words).arg("--entrants").arg(self.path("entrants"));
        command.env("TMPDIR", self.path("tmp")).env("FAKE_MARK", self.mark()).env("XDG_DATA_HOME", self.path("data"));
        command
    }

    fn run(&self, ways: &[&str], more: &[&str]) -> (Output, Value) {
        let suite = self.suite(ways);
        let output = self.command(&[&["run", &suite, "--json", "-"], more].concat()).output().unwrap();
        let document = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
        (output, document)
    }

    fn assert_nothing_is_left(&self) {
        assert_eq!(self.files(), 0, "temporary files are left");
        assert_eq!(self.sleepers(), [""; 0], "processes are left");
    }

    /// The number of temporary files.
    fn files(&self) -> usize {
        fs::read_dir(self.path("tmp")).unwrap().count()
    }

    fn sleepers(&self) -> Vec<String> {
        let mark = self.mark().to_str().unwrap();
        let lines = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
            let line = fs::read(entry.path().join("cmdline")).ok()?;
            Some(String::from_utf8_lossy(&line).replace('\0', " "))
        });
        lines.filter(|line| line.contains("time.sleep") && line.contains(mark)).collect()
    }
}

fn trial<'a>(document: &'a Value, way: &str) -> &'a Value {
    let trials = document["trials"].as_array().unwrap();
    trials.iter().find(|trial| trial["params"]["language"] == way).unwrap_or_else(|| panic!("no trial of {way}"))
}

#[test]
fn a_broken_contract_is_a_failed_trial_and_never_a_figure() {
    let faults = [
        ("lies", "it computed a checksum other than "),
        ("loses", "it counted 19999 of 20000 bytes"),
        ("blind", "a byte was changed in transit, and the program did not detect that"),
        ("boasts", "it reports 0 ns"),
        ("dawdles", "it reports 1000000000000000 ns"),
        ("crashes", "it ended with status 7; its stderr: out of cheese"),
        ("dies", "it was ended by signal 11"),
        ("silent", "it succeeded but printed no answer"),
        ("chatty", "it printed 2 lines instead of one: 'hello"),
        ("floods", "bytes; the limit is 4000"),
        ("leaves", "it left 1 process behind; its stderr: gone fishing"),
    ];
    let ways: Vec<&str> = faults.iter().map(|(way, _)| *way).collect();
    let fake_entrants = FakeEntrants::new(&ways);
    let (output, document) = fake_entrants.run(&ways, &["--runs", "2"]);
    assert_eq!(output.status.code(), Some(3), "wrong data outweighs all else");
    for (way, words) in faults {
        let trial = trial(&document, way);
        let reason = trial["reason"].as_str().unwrap_or_default();
        assert_eq!(trial["status"], "failed", "{way}: {reason}");
        assert!(reason.contains(words), "{way}: {reason}");
        assert!(trial["estimate"].is_null() && trial["samples"].as_array().unwrap().is_empty(), "{way} has a figure");
        assert!(reason.len() < 3000, "{way}: {} bytes of reason", reason.len());
    }
    for way in ["lies", "loses", "blind"] {
        assert_eq!(trial(&document, way)["verified"], false, "{way}");
    }
    fake_entrants.assert_nothing_is_left();
}

#[test]
fn conforming_programs_are_measured_completely() {
    let ways = ["honest", "noisy", "litters", "greedy", "detached"];
    let fake_entrants = FakeEntrants::new(&ways);
    let (output, document) = fake_entrants.run(&ways, &["--runs", "2"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let sample = |way: &str| trial(&document, way)["samples"][0].clone();
    for way in ways {
        let trial = trial(&document, way);
        assert_eq!((&trial["status"], &trial["verified"]), (&"ok".into(), &true.into()), "{way}: {}", trial["reason"]);
        let sample = sample(way);
        assert_eq!((&sample["bytes"], &sample["entrant"]["runtime"]), (&20_000.into(), &"fake 1.0".into()));
        assert!(sample["ns"].as_u64() <= sample["wall_ns"].as_u64());
        assert!(trial["estimate"]["start_up_ns"]["median"].as_f64().unwrap() > 0.0);
    }
    let cpu = |way: &str| sample(way)["user_ns"].as_u64().unwrap() + sample(way)["sys_ns"].as_u64().unwrap();
    assert!(cpu("greedy") >= 200_000_000, "its own CPU time counts: {} ns", cpu("greedy"));
    assert!(cpu("detached") >= 200_000_000, "a detached child's CPU time counts: {} ns", cpu("detached"));
    let peak = |way: &str| sample(way)["entrant"]["max_rss"].as_u64().unwrap_or(0);
    assert!(peak("greedy") > 100 << 20, "{}", peak("greedy"));
    for way in ["honest", "noisy", "litters", "detached"] {
        assert!(peak(way) < 60 << 20, "one run's peak is not another's: {way} {}", peak(way));
    }
    fake_entrants.assert_nothing_is_left();
}

#[test]
fn a_hanging_program_is_killed_and_its_stderr_shown() {
    let ways = ["hangs", "stops", "honest"];
    let fake_entrants = FakeEntrants::new(&ways);
    let (output, document) = fake_entrants.run(&ways, &["--runs", "1", "--limit", "3s"]);
    assert_eq!(output.status.code(), Some(1));
    for way in ["hangs", "stops"] {
        let reason = trial(&document, way)["reason"].as_str().unwrap();
        assert!(reason.contains("its limit of 3s") && reason.contains("waiting for a byte"), "{way}: {reason}");
    }
    assert_eq!(trial(&document, "honest")["status"], "ok", "the others go on");
    fake_entrants.assert_nothing_is_left();
}

/// Starts a run that hangs, signals it once the entrant's detached process exists, and returns its exit code.
fn interrupted(fake_entrants: &FakeEntrants, signal: rustix::process::Signal) -> Option<i32> {
    let suite = fake_entrants.suite(&["hangs"]);
    let mut run = fake_entrants.command(&["run", &suite, "--quiet"]).stderr(Stdio::null()).spawn().unwrap();
    eventually("the entrant starts", || !fake_entrants.sleepers().is_empty());
    rustix::process::kill_process(rustix::process::Pid::from_child(&run), signal).unwrap();
    let status = run.wait().unwrap();
    // If pipemark was killed, the guards remove what it left.
    eventually("all processes and files are removed", || {
        fake_entrants.sleepers().is_empty() && fake_entrants.files() == 0
    });
    status.code()
}

#[test]
fn nothing_survives_an_interrupt() {
    assert_eq!(interrupted(&FakeEntrants::new(&["hangs"]), rustix::process::Signal::INT), Some(130));
}

#[test]
fn nothing_survives_the_death_of_pipemark() {
    assert_eq!(interrupted(&FakeEntrants::new(&["hangs"]), rustix::process::Signal::KILL), None);
}

#[test]
fn missing_tools_are_skipped_and_build_errors_are_failures() {
    let fake_entrants = FakeEntrants::new(&["honest"]);
    fake_entrants.add("absent", "[[\"no-such-python\"], [\"false\"]]", "[]");
    fake_entrants.add("unbuilt", "[[\"python3\"]]", "[[\"sh\", \"-c\", \"echo line 3: no such word >&2; exit 4\"]]");
    let (output, document) = fake_entrants.run(&["honest", "absent", "unbuilt", "unheard-of"], &["--runs", "1"]);
    assert_eq!(output.status.code(), Some(1));
    for (way, status, words) in [
        ("honest", "ok", &[][..]),
        ("absent", "skipped", &["no-such-python: not found", "false: ", "to install it: apt install python"]),
        ("unheard-of", "skipped", &["there is no entrant 'unheard-of'"]),
        ("unbuilt", "failed", &["does not build", "exit status: 4", "build.log", "line 3: no such word"]),
    ] {
        let trial = trial(&document, way);
        let reason = trial["reason"].as_str().unwrap_or_default();
        assert_eq!(trial["status"], status, "{way}: {reason}");
        assert!(words.iter().all(|word| reason.contains(word)), "{way}: {reason}");
    }

    let output = fake_entrants.command(&["list", "languages"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success() && text.contains("honest") && text.contains("Not available here\nabsent "),
        "{text}"
    );
    let output = fake_entrants.command(&["list", "languages", "--format", "json"]).output().unwrap();
    let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let missing = |name: &str| {
        let one = listed.as_array().unwrap().iter().find(|one| one["language"] == name).expect("it is listed");
        one["missing"].is_string()
    };
    assert!(missing("absent") && !missing("honest"), "{listed}");

    let output = fake_entrants.command(&["run", "languages", "--build"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    for line in ["honest: nothing to build", "absent: skipped: ", "unbuilt: failed: it does not build"] {
        assert!(text.contains(line), "{text}");
    }
}

/// Whether a program can run is checked before the first run. If it can't be started later, that run fails.
#[test]
fn a_program_that_disappears_is_a_failure() {
    let fake_entrants = FakeEntrants::new(&[]);
    let python = fake_entrants.path("python");
    fs::write(&python, "#!/bin/sh\n[ \"$1\" = --version ] || rm \"$0\"\nexec python3 \"$@\"\n").unwrap();
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
    fake_entrants.add("honest", &format!("[[{python:?}]]"), "[]");
    let (output, document) = fake_entrants.run(&["honest"], &["--runs", "1"]);
    assert_eq!(output.status.code(), Some(1));
    let trial = trial(&document, "honest");
    assert_eq!(trial["status"], "failed");
    let reason = format!("'{}' could not be started: No such file or directory (os error 2)", python.display());
    assert_eq!(trial["reason"], reason);
}

#[test]
fn a_change_triggers_a_new_build() {
    let fake_entrants = FakeEntrants::new(&[]);
    fake_entrants.add("honest", "[[\"python3\"]]", "[[\"sh\", \"-c\", \"echo built >>{out}/count\"]]");
    let built = || fs::read_to_string(fake_entrants.path("build/entrants/honest/count")).unwrap().lines().count();
    let run = || assert!(fake_entrants.run(&["honest"], &["--runs", "1"]).0.status.success());
    run();
    run();
    assert_eq!(built(), 1);
    fs::write(fake_entrants.path("entrants/honest/source"), "new").unwrap();
    run();
    assert_eq!(built(), 2);
    assert!(fake_entrants.command(&["run", "languages", "--build"]).output().unwrap().status.success());
    assert_eq!(built(), 3, "who asks for a build gets one");
}

#[test]
#[ignore = "long"]
fn long_a_language_outside_the_suite_takes_part() {
    let fake_entrants = FakeEntrants::new(&["honest", "c"]);
    let words = ["run", "languages", "--only", "honest", "--scale", "0.000001", "--runs", "1", "--json", "-"];
    let output = fake_entrants.command(&words).output().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0));
    // Two programs, each at 64 KiB and four other block sizes, and C as the baseline.
    let trials = document["trials"].as_array().unwrap();
    let of = |language: &str| trials.iter().filter(|trial| trial["params"]["language"] == language).count();
    assert_eq!((of("honest"), of("c"), of("java")), (10, 10, 0));
    let honest = trial(&document, "honest");
    let wanted = honest["baseline"].as_str().unwrap();
    assert!(wanted.contains("language=c"), "{wanted}");
}

#[test]
fn unknown_languages_and_useless_flags_are_refused() {
    let fake_entrants = FakeEntrants::new(&["honest", "c"]);
    for (words, expected) in [
        (&["run", "languages", "--only", "honst"][..], "did you mean honest?"),
        (&["run", "quick"], "--entrants is for suites"),
    ] {
        let output = fake_entrants.command(words).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && error.contains(expected), "{error}");
    }
}

#[test]
fn a_missing_entrants_directory_is_reported() {
    let directory = TempDir::new().unwrap();
    for words in [&["run", "languages"][..], &["list", "languages"]] {
        let output = Command::new(PIPEMARK).args(words).current_dir(&directory).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && error.contains("no directory 'entrants' here"), "{error}");
    }
}

/// Runs a trial of bw_pipe as in the suite `large-pipe`, with this sh script in place of bw_pipe; with `None`, without
/// any bw_pipe.
fn bw_pipe(script: Option<&str>) -> Value {
    let directory = TempDir::new().unwrap();
    let suite = "name = \"s\"\ntitle = \"S\"\n[schedule]\nruns = 1\n[[experiment]]\nname = \"e\"\ntitle = \"E\"\nparams = { \
                 language = \"lmbench\", program = \"idiomatic\", place = \"free\", verify = \"none\", total = 10_000_000, block = 4096 }\n";
    let file = directory.path().join("suite.toml");
    fs::write(&file, suite).unwrap();
    let form = directory.path().join("entrants/lmbench");
    fs::create_dir_all(&form).unwrap();
    // Hides an installed lmbench.
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../../entrants/lmbench/entrant.toml");
    fs::write(form.join("entrant.toml"), fs::read_to_string(own).unwrap().replace("/usr/lib/lmbench", "/nowhere"))
        .unwrap();
    if let Some(script) = script {
        let program = directory.path().join("bw_pipe");
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:/usr/bin:/bin", directory.path().display());
    let output = Command::new(PIPEMARK)
        .args(["run", file.to_str().unwrap(), "--json", "-", "--quiet", "--no-save"])
        .current_dir(directory.path())
        .env("PATH", path)
        .output()
        .unwrap();
    let document: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    let trials = document["trials"].as_array().unwrap();
    trials.iter().find(|trial| trial["params"]["language"] == "lmbench").unwrap().clone()
}

#[test]
fn an_external_benchmark_is_measured_by_its_printed_rate() {
    let takes = "[ \"$*\" = '-m 4096 -M 10000000 -N 1' ] || exit 7";
    let right = bw_pipe(Some(&format!("{takes}; echo 'Pipe bandwidth: 1250.00 MB/sec' >&2")));
    assert_eq!(right["status"], "ok", "{right}");
    assert_eq!((&right["samples"][0]["ns"], &right["verified"]), (&8_000_000.into(), &Value::Null), "{right}");
    for (script, words) in [
        ("echo 'Pipe bandwidth: 1250.00 KB/sec' >&2", "printed no rate in MB/sec"),
        ("echo 'Pipe bandwidth: nan MB/sec' >&2", "printed no rate in MB/sec"),
        ("echo '1.00 MB/sec' >&2; exit 1", "ended with status 1"),
    ] {
        let wrong = bw_pipe(Some(script));
        assert_eq!(wrong["status"], "failed", "{script}");
        assert!(wrong["reason"].as_str().unwrap().contains(words), "{wrong}");
    }
    let absent = bw_pipe(None);
    assert_eq!(absent["status"], "skipped");
    assert!(absent["reason"].as_str().unwrap().starts_with("bw_pipe is missing (bw_pipe: not found"), "{absent}");
}
