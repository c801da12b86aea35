//! Commands that needn't be UTF-8, which `why` and `ab` take, and print so that they can be pasted.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use tempfile::TempDir;

use crate::program::{PIPEMARK, eventually, report_skip};

/// What bash reads a word as.
fn read_by_bash(word: &str) -> Vec<u8> {
    Command::new("bash").args(["-c", &format!("printf %s {word}")]).output().unwrap().stdout
}

/// A file that every user can read, to which lines are appended.
struct Log {
    directory: TempDir,
    ended: Arc<AtomicBool>,
}

impl Log {
    fn new() -> Log {
        let directory = TempDir::new().unwrap();
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
        let mut file = fs::File::create(directory.path().join("log")).unwrap();
        let ended = Arc::new(AtomicBool::new(false));
        let is_over = ended.clone();
        std::thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                file.write_all(b"a hit\n").unwrap();
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        Log { directory, ended }
    }

    /// A command that never ends, because it follows the file.
    fn source(&self) -> String {
        format!("tail -n 1 -f {}", self.directory.path().join("log").display())
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

/// The report on a pipeline whose grep keeps its output, with this `$SHELL`.
fn why(shell: &str, pipeline: &[u8]) -> Value {
    let mut command = Command::new("timeout");
    command.args(["-k", "1", "6", PIPEMARK, "why", "--for", "3s", "--json", "/dev/stderr"]);
    let ended = command.arg(OsStr::from_bytes(pipeline)).env("SHELL", shell).stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&ended.stderr).into_owned();
    let line = text.lines().find(|line| line.starts_with('{')).unwrap_or_else(|| panic!("{text}"));
    serde_json::from_str(line).unwrap()
}

fn remedy(report: &Value) -> (&str, &str) {
    let remedy = &report["verdict"]["remedies"][0];
    (remedy["text"].as_str().unwrap_or_else(|| panic!("{report}")), remedy["command"].as_str().unwrap())
}

#[test]
fn a_pipeline_is_printed_as_typed_for_bash_and_as_a_sentence_for_other_shells() {
    let log = Log::new();
    let source = log.source();
    let typed = [source.as_bytes(), b" | grep -e 'a  hit' -e h\xe9 -e hit | cat >/dev/null"].concat();
    let bash = std::thread::spawn({
        let typed = typed.clone();
        move || why("/bin/bash", &typed)
    });
    let sh = std::thread::spawn(move || why("/bin/sh", &typed));
    let others = ["zsh", "fish", "ksh"].map(|shell| {
        let source = source.clone();
        std::thread::spawn(move || {
            let path = Path::new("/usr/bin").join(shell);
            let typed = format!("{source} | grep hit | cat >/dev/null");
            path.exists().then(|| why(path.to_str().unwrap(), typed.as_bytes()))
        })
    });
    let report = bash.join().unwrap();
    let typed = format!("{source} | grep -e 'a  hit' -e h$'\\xe9' -e hit | cat >/dev/null");
    let (text, command) = remedy(&report);
    assert!(text.contains("--line-buffered"), "{report}");
    assert_eq!(command, typed.replace("grep -e", "grep --line-buffered -e"));
    let shown = report["pipeline"].as_str().unwrap();
    assert!(shown.starts_with("$'") && shown.contains("h\\xe9"), "{shown}");
    let hex: String = read_by_bash(shown).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(report["pipeline_hex"], hex);
    let report = sh.join().unwrap();
    assert!(remedy(&report).0.contains("--line-buffered") && remedy(&report).1.is_empty(), "{report}");
    for (shell, report) in ["zsh", "fish", "ksh"].into_iter().zip(others) {
        match report.join().unwrap() {
            Some(report) => {
                assert!(remedy(&report).0.contains("--line-buffered") && remedy(&report).1.is_empty(), "{report}");
                assert!(report["pipeline_hex"].is_null(), "{report}");
            }
            None => report_skip("a sentence without a command", format!("{shell} isn't here")),
        }
    }
}

/// The first remedy, with its command, of `why PID` for a pipeline which this user runs.
fn remedy_of_running(pipeline: &[u8], user: u32) -> (String, String) {
    let mut shell = Command::new("bash");
    shell.arg("-c").arg(OsStr::from_bytes(pipeline)).process_group(0);
    shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if user != 0 {
        shell.uid(user).gid(user);
    }
    let mut shell = shell.spawn().unwrap();
    let children = format!("/proc/{0}/task/{0}/children", shell.id());
    eventually("all stages run", || fs::read_to_string(&children).unwrap_or_default().split_whitespace().count() == 3);
    let mut why = Command::new(PIPEMARK);
    why.args(["why", &shell.id().to_string(), "--for", "4s", "--json", "-"]).env("SHELL", "/bin/bash");
    let ended = why.output().unwrap();
    kill_process_group(Pid::from_raw(shell.id().cast_signed()).unwrap(), Signal::KILL).unwrap();
    shell.wait().unwrap();
    let report: Value = serde_json::from_slice(&ended.stdout).unwrap();
    let (text, command) = remedy(&report);
    (text.to_owned(), command.to_owned())
}

#[test]
fn a_running_pipeline_is_rebuilt_byte_for_byte_and_never_from_another_users_arguments() {
    let log = Log::new();
    let source = log.source();
    let long = "x".repeat(6000);
    let pipeline = [source.as_bytes(), b" | grep -e h\xe9 -e ", long.as_bytes(), b" -e 'a  hit' -e '' | cat"].concat();
    let own = std::thread::spawn(move || remedy_of_running(&pipeline, 0));
    let pipeline = format!("{source} | grep -e 'a  hit' -e '' | cat");
    let renamed = format!("{source} | (exec -a rm grep -e 'a  hit' -e '') | cat");
    let renamed = std::thread::spawn(move || remedy_of_running(renamed.as_bytes(), 0));
    let is_root = rustix::process::geteuid().is_root();
    let other = is_root.then(|| std::thread::spawn(move || remedy_of_running(pipeline.as_bytes(), 65534)));
    let (text, command) = own.join().unwrap();
    assert!(text.contains("rebuilt from the processes' arguments"), "{text}");
    let expected = format!("{source} | grep --line-buffered -e $'h\\xe9' -e {long} -e 'a  hit' -e '' | cat");
    assert_eq!(command, expected);
    let (text, command) = renamed.join().unwrap();
    assert!(text.contains("--line-buffered") && command.is_empty(), "it calls itself rm: {text} {command}");
    match other.map(|other| other.join().unwrap()) {
        Some((text, command)) => {
            assert!(text.contains("--line-buffered"), "{text}");
            assert_eq!(command, "", "the program is the other user's choice");
        }
        None => report_skip("a pipeline of another user", "it needs root"),
    }
}

#[test]
fn commands_and_hooks_that_are_not_utf_8_are_run_and_written_exactly() {
    let directory = TempDir::new().unwrap();
    let file = |name: &[u8]| directory.path().join(OsStr::from_bytes(name));
    fs::write(file(b"caf\xe9"), "one\n").unwrap();
    let ab = |words: &[&[u8]]| {
        let words = words.iter().map(|word| OsString::from_vec(word.to_vec()));
        Command::new(PIPEMARK).arg("ab").args(words).current_dir(&directory).output().unwrap()
    };
    let hooks: [&[u8]; 8] = [
        b"--setup",
        b"touch s\xe9",
        b"--prepare",
        b"touch p\xe9",
        b"--conclude",
        b"touch c\xe9",
        b"--cleanup",
        b"touch e\xe9",
    ];
    let outputs: [&[u8]; 8] = [b"--runs", b"2", b"--json", b"json", b"--json-lines", b"lines", b"--csv", b"csv"];
    /// Flags, the command, and the command as run.
    type Case<'a> = (&'a [&'a [u8]], &'a [u8], &'a [u8]);
    let cases: [Case<'_>; 5] = [
        (&[b"--shell=sh"], b"cat caf\xe9", b"cat caf\xe9"),
        (&[b"--shell=bash"], b"cat 'caf\xe9'", b"cat 'caf\xe9'"),
        (&[b"--shell=none"], b"cat 'caf\xe9'", b"cat 'caf\xe9'"),
        (&[b"--capacity", b"default"], b"cat caf\xe9 | cat", b"cat caf\xe9 | cat"),
        (&[b"--parameter", b"x=cat"], b"{x} caf\xe9", b"cat caf\xe9"),
    ];
    for (more, command, run) in cases {
        let command: [&[u8]; 2] = [b"--", command];
        let ended = ab(&[&outputs[..], &hooks, more, &command].concat());
        let error = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(ended.status.success(), "{error}");
        for name in [b"s\xe9", b"p\xe9", b"c\xe9", b"e\xe9"] {
            fs::remove_file(file(name)).unwrap();
        }
        let hex: String = run.iter().map(|byte| format!("{byte:02x}")).collect();
        let document: Value = serde_json::from_slice(&fs::read(file(b"json")).unwrap()).unwrap();
        let lines = fs::read_to_string(file(b"lines")).unwrap();
        let line: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
        let one = &document["commands"][0];
        assert_eq!(one["output"], 4, "{document}");
        for written in [one, &line] {
            assert_eq!(written["command_hex"], hex);
            assert_eq!(read_by_bash(written["command"].as_str().unwrap()), run);
        }
        assert!(fs::read_to_string(file(b"csv")).unwrap().contains("caf\\xe9"));
        assert!(String::from_utf8(ended.stdout).unwrap().contains("caf\\xe9"));
    }
    let plain = ab(&[b"--runs", b"2", b"--json", b"-", b"--", b"echo a"]);
    assert!(!String::from_utf8(plain.stdout).unwrap().contains("command_hex"));
    let failing: [&[&[u8]]; 2] = [&[b"--prepare", b"exit 3 # \xe9", b"true"], &[b"--runs", b"2", b"exit 3 # \xe9"]];
    for words in failing {
        let failed = ab(words);
        let error = String::from_utf8(failed.stderr).unwrap();
        assert!(!failed.status.success() && error.contains("$'exit 3 # \\xe9'"), "{error}");
    }
}
