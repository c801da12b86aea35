//! `pipemark gen` and `pipemark sink` on the command line.

use crate::program::{PIPEMARK, eventually, sleeps};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write, pipe};
use std::process::{Command, Output, Stdio};

fn pipemark(words: &[&str]) -> Command {
    let mut command = Command::new(PIPEMARK);
    command.args(words);
    command
}

/// The bytes that `gen` writes to a pipe.
fn generated(words: &[&str]) -> Vec<u8> {
    let output = pipemark(&[&["gen"], words].concat()).stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "{words:?}");
    output.stdout
}

/// Runs `sink` with this input.
fn sink(words: &[&str], input: &[u8]) -> Output {
    let mut child = pipemark(&[&["sink"], words].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // The write fails if `sink` refuses its flags, because `sink` then never reads.
    let _ = stdin.write_all(input);
    drop(stdin);
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const CONTENTS: [&str; 6] = ["line", "line:hello world", "log:7", "counted", "pattern:7", "random:7"];

#[test]
fn a_line_is_repeated_as_yes_does() {
    assert_eq!(generated(&["--total", "5"]), b"y\ny\ny");
    assert_eq!(generated(&["5"]), b"y\ny\ny");
    assert_eq!(generated(&["line:ab c", "--total", "12"]), b"ab c\nab c\nab");
    let long = format!("line:{}", "x".repeat(100_000));
    let bytes = generated(&[&long, "--total", "300000"]);
    assert!(bytes == format!("{}\n", &long[5..]).repeat(3).as_bytes()[..300_000]);
}

#[test]
fn a_seed_makes_the_same_bytes_whatever_they_go_to() {
    let path = std::env::temp_dir().join(format!("pipemark-gen-{}", std::process::id()));
    for content in CONTENTS {
        let piped = generated(&[content, "--total", "700001"]);
        assert_eq!(piped.len(), 700_001, "{content}");
        let slow = generated(&[content, "--total", "700001", "--rate", "100m"]);
        assert!(piped == slow, "{content}: a rate changes the bytes");
        let status = pipemark(&["gen", content, "--total", "700001"]).stdout(File::create(&path).unwrap()).status();
        assert!(status.unwrap().success());
        assert!(piped == fs::read(&path).unwrap(), "{content}: a file gets other bytes than a pipe");
    }
    fs::remove_file(&path).unwrap();
    assert_ne!(generated(&["log:1", "--total", "1000"]), generated(&["log:2", "--total", "1000"]));
    assert_ne!(generated(&["random:1", "--total", "1000"]), generated(&["random:2", "--total", "1000"]));
}

#[test]
fn gen_ends_quietly_with_its_reader() {
    for content in CONTENTS {
        let (mut reader, stdout) = pipe().unwrap();
        let child = pipemark(&["gen", content]).stdout(stdout).stderr(Stdio::piped()).spawn().unwrap();
        reader.read_exact(&mut [0; 200_000]).unwrap();
        drop(reader);
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{content}");
        assert_eq!(text(&output.stderr), "", "{content}");
    }
}

#[test]
fn gen_reports_what_failed() {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = pipemark(&["gen", "log"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("standard output: No space left"), "{}", text(&output.stderr));
    for words in [
        &["gen", "lines"][..],
        &["gen", "log:x"],
        &["gen", "--rate", "0"],
        &["gen", "--total", "-1"],
        &["gen", "5", "--total", "5"],
    ] {
        assert_eq!(pipemark(words).output().unwrap().status.code(), Some(2), "{words:?}");
    }
}

#[test]
fn sink_verifies_what_gen_made_through_a_real_pipe() {
    for content in CONTENTS {
        let mut source = pipemark(&["gen", content, "--total", "50m"]).stdout(Stdio::piped()).spawn().unwrap();
        let output = pipemark(&["sink", "--verify", content, "--total", "50m"])
            .stdin(source.stdout.take().unwrap())
            .output()
            .unwrap();
        assert!(source.wait().unwrap().success());
        let stdout = text(&output.stdout);
        assert!(
            stdout.contains("(52428800 bytes, 50 MiB, in ") && stdout.ends_with(", verified\n"),
            "{content}: {stdout}"
        );
        assert!(output.status.success() && output.stderr.is_empty(), "{content}");
    }
}

#[test]
fn sink_counts_by_splice_too() {
    let mut source = pipemark(&["gen", "log", "--total", "3000001"]).stdout(Stdio::piped()).spawn().unwrap();
    let output = pipemark(&["sink", "--recv", "splice"]).stdin(source.stdout.take().unwrap()).output().unwrap();
    assert!(source.wait().unwrap().success());
    assert!(text(&output.stdout).contains("(3000001 bytes, "), "{}", text(&output.stdout));

    let output = pipemark(&["sink", "--recv", "splice"]).stdin(File::open("/etc/passwd").unwrap()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("use --recv read"));
    assert_eq!(sink(&["--recv", "splice", "--verify", "log"], b"").status.code(), Some(2));
}

#[test]
fn sink_detects_wrong_or_missing_bytes() {
    for content in CONTENTS {
        let good = generated(&[content, "--total", "300000"]);
        let mut bad = good.clone();
        bad[200_001] ^= 0x10;
        let output = sink(&["--verify", content], &bad);
        assert_eq!(output.status.code(), Some(3), "{content}");
        assert!(
            text(&output.stderr).starts_with("pipemark: byte 200001 is wrong"),
            "{content}: {}",
            text(&output.stderr)
        );
        assert!(!text(&output.stdout).contains("verified"), "{content}");

        let output = sink(&["--verify", content, "--total", "300001"], &good);
        assert_eq!(output.status.code(), Some(3), "{content}");
        assert_eq!(text(&output.stderr), "pipemark: 300000 bytes arrived; 300001 were expected\n");
        assert!(
            !text(&output.stdout).contains("verified"),
            "{content}: all is as it should be, except for what is missing"
        );
    }
    let output = sink(&["--total", "3"], b"1234");
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn a_different_seed_is_reported() {
    let output = sink(&["--verify", "pattern:3"], &generated(&["pattern:4", "--total", "300000"]));
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("the content or seed differs"), "{}", text(&output.stderr));
}

#[test]
fn ctrl_c_reports_the_bytes_that_arrived() {
    for (format, expected) in [("text", "(4 bytes, "), ("csv", "\n4,")] {
        let mut child = pipemark(&["sink", "--verify", "line:abc", "--format", format])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"abc\n").unwrap();
        // It has read the bytes, counted them, and waits for more.
        eventually("the bytes are counted", || pipeio::pipe::fill(&stdin).unwrap() == 0 && sleeps(child.id()));
        let process = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
        // The program ends although its input is still open.
        let output = child.wait_with_output().unwrap();
        drop(stdin);
        assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
        let stdout = text(&output.stdout);
        assert!(stdout.contains(expected) && !stdout.ends_with(", verified\n"), "{stdout}");
    }
}

/// As in iperf3, the columns have headings, and the bytes after the last whole interval get a line too.
#[test]
fn every_byte_is_in_the_line_of_an_interval() {
    let mut child = pipemark(&["sink", "--interval", "100ms"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for pause in [250, 0] {
        stdin.write_all(&[1; 1024]).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(pause));
    }
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let stdout = text(&output.stdout);
    let (report, intervals): (Vec<&str>, Vec<&str>) = stdout.lines().partition(|line| line.contains(" bytes, "));
    assert!(report.len() == 1 && stdout.ends_with(&format!("{}\n", report[0])), "{stdout}");
    assert_eq!(intervals[0].split_whitespace().collect::<Vec<_>>(), ["Interval", "Transfer", "Rate"], "{stdout}");
    assert!(intervals.len() > 1 && intervals[1..].iter().all(|line| line.contains(" sec ")), "{stdout}");
    // On a busy machine, both writes may be in one interval.
    let kib =
        |line: &&str| line.split_once(" KiB  ").and_then(|(before, _)| before.rsplit(' ').next()?.parse::<f64>().ok());
    assert_eq!(intervals.iter().filter_map(kib).sum::<f64>(), 2.0, "{stdout}");
}

#[test]
fn empty_input_and_output_are_no_failure() {
    let output = sink(&[], b"");
    assert_eq!(text(&output.stdout), "no bytes\n");
    assert!(output.status.success());
    assert!(generated(&["--total", "0"]).is_empty());
}
