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
        tar czf words.tgz few words; tar cJf words.txz few words; mkdir dir dir.gz; cp words.gz dir
        cat words.gz words.gz >multi.gz; (cat words.gz; head -c 512 /dev/zero) >padded.gz; ln -s words.gz link.gz
        cat words.bz2 words.bz2 >multi.bz2; (cat words.bz2; head -c 512 /dev/zero) >padded.bz2; ln -s words.bz2 link.bz2
        cat words.xz words.xz >multi.xz; (cat words.xz; head -c 512 /dev/zero) >padded.xz; ln -s words.xz link.xz
        xz --block-size=20k -T2 -c words >blocks.xz; head -c 5000 blocks.xz >cut-blocks.xz; head -c 2000 words.xz >cut.xz
        (head -c 3000 blocks.xz; echo x; tail -c +3003 blocks.xz) >changed.xz; xz --format=lzma -c words >words.lzma
        for name in empty empty.gz empty.bz2 empty.xz; do : >$name; done; ln -s words link; ln words hard
        for name in words.zz words.taz words-z; do cp words $name; done; chmod 444 $(find . -type f)";
    assert!(in_bash(directory, make).status.success());
    for (name, members) in [("header.gz", 1), ("blocks.gz", 3)] {
        fs::write(directory.join(name), with_header(directory, members)).unwrap();
    }
}

/// A gzip file whose members have each optional field of the format: extra fields, a name, a comment.
fn with_header(directory: &Path, members: usize) -> Vec<u8> {
    let plain = fs::read(directory.join("multi.gz")).unwrap();
    // `gzip -k` writes the flag of a name, six bytes, and the name.
    let end = 10 + plain[10..].iter().position(|&byte| byte == 0).unwrap() + 1;
    let body = &plain[end..plain.len() / 2];
    let flags = 4 | 8 | 16;
    let head =
        [&[0x1f, 0x8b, 8, flags, 0, 0, 0, 0, 0, 3, 6, 0][..], b"BC\x02\0\xff\x7f", b"name\0", b"comment\0"].concat();
    [head, body.to_vec()].concat().repeat(members)
}

/// Runs a command in bash, for at most ten seconds.
fn in_bash(directory: &Path, command: &str) -> Output {
    for left in ["1", "x"] {
        // What an option such as -o x wrote.
        let _ = fs::remove_file(directory.join(left));
    }
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
    let fed = if input == "-" { command.to_owned() } else { format!("{{ cat {input} || true; }} | {command}") };
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
    if before.is_empty() && code != Some(0) {
        return None; // There is nothing that the remedy could change.
    }
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

/// Tries all remedies of these commands, each with the file that it reads. Returns their number and what is wrong.
fn try_all(commands: &[(String, String)]) -> (u32, Vec<String>) {
    let of_part = |part: &[(String, String)]| {
        let directory = tempfile::tempdir().unwrap();
        make_files(directory.path());
        let (mut tried, mut faults) = (0, Vec::new());
        for (input, text) in part {
            let (is_fed, dialect) = (input != "-", Dialect::Bash);
            let command = CommandAsTyped {
                text,
                dialect,
                is_fed,
                collates: true,
                cpus: 2,
                memory_limited: false,
                environment: b"",
            };
            for remedy in all_typed_remedies(&command) {
                if remedy.programs.iter().all(|program| is_installed(program)) {
                    tried += 1;
                    faults.extend(fault(directory.path(), input, text, &remedy));
                }
            }
        }
        (tried, faults)
    };
    std::thread::scope(|scope| {
        let length = commands.len().div_ceil(3).max(1);
        let parts: Vec<_> = commands.chunks(length).map(|part| scope.spawn(|| of_part(part))).collect();
        let results = parts.into_iter().map(|part| part.join().unwrap());
        results.fold((0, Vec::new()), |all, one| (all.0 + one.0, [all.1, one.1].concat()))
    })
}

#[test]
fn remedies_respect_the_options_beside_them() {
    let lines: Vec<(String, String)> = COMMANDS
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split_once(' ').expect("an input and a command"))
        .map(|(input, command)| (input.to_owned(), command.to_owned()))
        .collect();
    let (tried, faults) = try_all(&lines);
    assert!(tried >= 200, "only {tried} remedies were tried");
    assert!(faults.is_empty(), "{} of {tried}:\n{}", faults.len(), faults.join("\n"));
    eprintln!("{tried} remedies, none changes what it shouldn't");
}

/// Commands that get each option of their program in turn, and the file that they read.
const WITH_OPTIONS: &[(&str, &str)] = &[
    ("few", "grep {} the"),
    ("few", "grep --line-buffered {} the"),
    ("few", "sed {} s/a/b/"),
    ("few", "sed -u {} s/a/b/"),
    ("few", "gawk {} '{ print $2, $1 }'"),
    ("few", "mawk {} '{ print $2, $1 }'"),
    ("json", "jq {} .n"),
    ("json", "jq --unbuffered {} .n"),
    ("few", "gzip {}"),
    ("words.gz", "gzip -dc {}"),
    ("words.gz", "zcat {}"),
    ("words.gz", "gunzip -c {}"),
    ("few", "bzip2 {}"),
    ("words.bz2", "bzip2 -dc {}"),
    ("words.bz2", "bzcat {}"),
    ("words.bz2", "bunzip2 -c {}"),
    ("few", "xz {}"),
    ("words.xz", "xz -dc {}"),
    ("words.xz", "xzcat {}"),
    ("few", "zstd {}"),
    ("few", "sort {}"),
    ("few", "sort -u {}"),
    ("sorted", "uniq {}"),
    ("few", "tr {} a b"),
    ("few", "cut -c2 {}"),
    ("few", "paste {}"),
    ("few", "dd {}"),
    ("names", "xargs {} wc"),
    ("names", "xargs -n1 {} md5sum"),
    ("names", "xargs -L1 {} cat"),
    ("few", "python3 {} script.py"),
    ("few", "socat {} - STDOUT"),
];

/// The options that a program's --help names, with values that most of them accept.
fn options_of(program: &str) -> Vec<String> {
    let help = Command::new(program).arg("--help").stdin(Stdio::null()).output().map(|help| help.stdout);
    let help = String::from_utf8_lossy(&help.unwrap_or_default()).into_owned();
    let is_end = |c: char| !(c.is_ascii_alphanumeric() || c == '-');
    let mut options: Vec<String> = Vec::new();
    for word in help.split(|c: char| c.is_whitespace() || ",[]|/()'`\"".contains(c)) {
        if let Some((operand, _)) = word.split_once('=').filter(|(name, _)| program == "dd" && name.len() > 1) {
            let values = ["1", "3", "512", "sync", "ucase", "fullblock", "none", "count_bytes"];
            options.extend(values.map(|value| format!("{operand}={value}")));
        }
        let length = word.find(is_end).unwrap_or(word.len());
        let option = &word[..length];
        let is_long = option.len() > 3 && option.starts_with("--");
        if ["-R", "--random-sort"].contains(&option) {
            continue;
        }
        if is_long || option.len() == 2 && option.starts_with('-') && option != "--" {
            options.push(option.to_owned());
            for value in ["1", "x"] {
                options.push(if is_long { format!("{option}={value}") } else { format!("{option} {value}") });
            }
        }
    }
    options.sort();
    options.dedup();
    options
}

/// The commands with each option, and with pairs of them: every one of `step`.
fn generated(step: usize, pairs: bool) -> Vec<(String, String)> {
    let mut commands = Vec::new();
    for (input, form) in WITH_OPTIONS {
        let program = form.split(' ').next().unwrap();
        let options = if is_installed(program) { options_of(program) } else { Vec::new() };
        let mut add = |options: &str| commands.push(((*input).to_owned(), form.replace("{}", options)));
        options.iter().for_each(|option| add(option));
        if pairs {
            for (at, first) in options.iter().enumerate() {
                // A few others for each option, at changing distances.
                for distance in [1, 5, 13] {
                    add(&format!("{first} {}", options[(at * 7 + distance) % options.len()]));
                }
            }
        }
    }
    commands.into_iter().step_by(step).collect()
}

#[test]
fn remedies_respect_options_that_the_programs_name() {
    let (tried, faults) = try_all(&generated(11, false));
    assert!(tried >= 100, "only {tried} remedies were tried");
    assert!(faults.is_empty(), "{} of {tried}:\n{}", faults.len(), faults.join("\n"));
}

#[test]
#[ignore = "soak"]
fn soak_remedies_respect_all_options_and_pairs_of_them() {
    let (tried, faults) = try_all(&generated(1, true));
    assert!(tried >= 2000, "only {tried} remedies were tried");
    assert!(faults.is_empty(), "{} of {tried}:\n{}", faults.len(), faults.join("\n"));
    eprintln!("{tried} remedies, none changes what it shouldn't");
}
