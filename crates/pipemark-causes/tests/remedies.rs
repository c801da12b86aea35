//! Each remedy with a command, tried on commands with all kinds of options: the output is the same, unless the row says how
//! it changes. The exit code is always the same.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use pipemark_causes::typed_remedies::{CommandAsTyped, TypedRemedy, all_typed_remedies};
use pipemark_shell::Dialect;

const COMMANDS: &str = include_str!("remedies.txt");

/// Makes the files that the commands read.
fn make_files(directory: &Path) {
    let line = |n: u32| {
        let word =
            ["the", "quick", "fox", "jumping", "ünder", "a  b", "x:y,z", "The end", "é", "abab"][n as usize % 10];
        format!("{word} {} word{} and more of it, number {n}\n", n * 7919 % 1000, n * 31 % 97)
    };
    let words: String = (0..3000).map(line).collect();
    let few: String = (0..40).map(line).collect();
    let object = |n: u32| format!("{{\"n\":{n},\"name\":\"n {}\",\"list\":[1,{{\"a\":null}}]}}\n", n % 7);
    let json: String = (0..300).map(object).collect();
    let pretty: String = (0..30).map(|n| format!("{{\n  \"n\": {n},\n  \"name\": \"x\"\n}}\n")).collect();
    let sql: String = (0..50).map(|n| format!("insert into t values({n}, 'v{n}');\n")).collect();
    for (name, content) in [
        ("words", &words[..]),
        ("few", &few),
        ("json", &json),
        ("pretty", &pretty),
        ("names", "few\nwords\nfew\n"),
        ("sql", &format!("create table t(a, b);\n{sql}select count(*), sum(a) from t;\n")),
        ("begun", "begin;\ncreate table t(a);\ninsert into t values(1);\ncommit;\nselect * from t;\n"),
        ("script.sed", "s/a/b/\n2d\n"),
        ("script.awk", "{ print $2, $1 }\n"),
        ("few.awk", "function unused(x) { return x }\n"),
        ("script.jq", ".n + 1\n"),
        ("script.pl", "print scalar reverse($_) for <STDIN>;\n"),
        ("script.py", "import sys\nfor line in sys.stdin: print(len(line))\n"),
        ("script.tcl", "while {[gets stdin line] >= 0} { puts [string length $line] }\n"),
        ("script.mk", "all: a b\n\na:\n\t@echo a\n\nb: a\n\t@echo b\n"),
    ] {
        fs::write(directory.join(name), content).unwrap();
    }
    let make = "LC_ALL=C.UTF-8 sort words >sorted; gzip -k words; cp words.gz words.z; bzip2 -k words; xz -k words; zstd -q words
        tar czf words.tgz few words; tar cJf words.txz few words; mkdir dir; cp words.gz dir; chmod 444 *";
    assert!(in_bash(directory, make).status.success());
}

/// Runs a command in bash, for at most ten seconds.
fn in_bash(directory: &Path, command: &str) -> Output {
    let mut bash = Command::new("timeout");
    bash.args(["-k1", "10", "bash", "-c", command]).current_dir(directory).stdin(Stdio::null());
    bash.env("LC_ALL", "C.UTF-8").env_remove("GZIP").env_remove("XZ_OPT").output().unwrap()
}

fn is_installed(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", "command -v \"$1\"", "sh", program]).output();
    found.is_ok_and(|found| found.status.success())
}

/// What a command prints, after `through` if that is given, and its exit code.
fn result(directory: &Path, input: &str, command: &str, through: Option<&str>) -> (Vec<u8>, Option<i32>) {
    let fed = if input == "-" { command.to_owned() } else { format!("cat {input} | {command}") };
    let ended = match through {
        // The exit code of the command, not that of what undoes its changes.
        Some(through) => in_bash(directory, &format!("set -o pipefail; ({fed}) | {through}")),
        None => in_bash(directory, &format!("set -o pipefail; {fed}")),
    };
    (ended.stdout, ended.status.code())
}

/// Tries a remedy. Returns what is wrong with it.
fn fault(directory: &Path, input: &str, command: &str, remedy: &TypedRemedy) -> Option<String> {
    let through = remedy.compare.as_deref();
    let (before, code) = result(directory, input, command, through);
    let (after, code_after) = result(directory, input, &remedy.command, through);
    let is_same = before == after || remedy.changes.is_some() && through.is_none();
    let failure = format!("{}: {input} | {command}\n  becomes {}", remedy.id, remedy.command);
    if code != code_after {
        return Some(format!("{failure}\n  exit code {code:?}, then {code_after:?}"));
    }
    (!is_same).then(|| {
        let begin = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(80)]).into_owned();
        format!("{failure}\n  printed {:?}, then {:?}", begin(&before), begin(&after))
    })
}

#[test]
fn remedies_respect_the_options_beside_them() {
    let directory = tempfile::tempdir().unwrap();
    make_files(directory.path());
    let lines: Vec<(&str, &str)> = COMMANDS
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split_once(' ').expect("an input and a command"))
        .collect();
    let tried = std::sync::atomic::AtomicU32::new(0);
    let of_part = |part: &[(&str, &str)]| -> Vec<String> {
        let mut faults = Vec::new();
        for (input, text) in part {
            let (is_fed, dialect) = (*input != "-", Dialect::Bash);
            let command = CommandAsTyped { text, dialect, is_fed, collates: true, cpus: 2 };
            for remedy in all_typed_remedies(&command) {
                if remedy.programs.iter().all(|program| is_installed(program)) {
                    tried.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    faults.extend(fault(directory.path(), input, text, &remedy));
                }
            }
        }
        faults
    };
    let faults: Vec<String> = std::thread::scope(|scope| {
        let parts: Vec<_> = lines.chunks(lines.len().div_ceil(3)).map(|part| scope.spawn(|| of_part(part))).collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).collect()
    });
    let tried = tried.into_inner();
    assert!(tried >= 200, "only {tried} remedies were tried");
    assert!(faults.is_empty(), "{} of {tried}:\n{}", faults.len(), faults.join("\n"));
    eprintln!("{tried} remedies, none changes what it shouldn't");
}
