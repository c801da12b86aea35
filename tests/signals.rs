//! Signals while `why` or `tune` runs a pipeline. Each process gets each signal exactly once, whether the signal was
//! sent to the group or to pipemark alone.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread::{self, sleep};
use std::time::Duration;

use crate::program::{PIPEMARK, TIMEOUT, eventually};

/// A Python program that prints the number of each signal that it gets. It ends when a file exists, or when that file's
/// directory is gone, as after a failed test.
const SIGNAL_PRINTER: &str = "import os, signal, sys, time
def got(number, frame): os.write(1, b'%d\\n' % number)
for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
    try: signal.signal(number, got)
    except (OSError, ValueError): pass
os.write(1, b'ready\\n')
while os.path.isdir(os.path.dirname(sys.argv[1])) and not os.path.exists(sys.argv[1]): time.sleep(0.005)
sys.exit(7)";

/// All signals that Python can catch (not 32 and 33), except SIGCHLD and those that stop a process.
fn catchable() -> Vec<i32> {
    let none = [9, 17, 19, 20, 21, 22, 32, 33];
    (1..=64).filter(|number| !none.contains(number)).collect()
}

fn kill(target: &str, number: i32) {
    let sent = Command::new("/bin/kill").args([&format!("-{number}"), "--", target]).status().unwrap();
    assert!(sent.success(), "{number} to {target}");
}

/// Starts a verb in a separate process group. No signal is ignored; in background jobs of a shell, some signals would
/// be.
fn start(words: &[&str], stdout: Stdio) -> Child {
    Command::new("env")
        .args(["--default-signal", PIPEMARK])
        .args(words)
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap()
}

fn target(child: &Child, group: bool) -> String {
    if group { format!("-{}", child.id()) } else { child.id().to_string() }
}

/// Sends each signal once, to the group or to the program alone. Returns how many times the pipeline got each signal.
fn deliveries(verb: &str, group: bool) -> BTreeMap<i32, u32> {
    let directory = tempfile::tempdir().unwrap();
    let done = directory.path().join("done");
    let words = [verb, "--", "/usr/bin/python3", "-c", SIGNAL_PRINTER, done.to_str().unwrap()];
    let mut child = start(&words, Stdio::piped());
    let (send, lines) = mpsc::channel();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
    let next = || lines.recv_timeout(TIMEOUT);
    assert_eq!(next().as_deref(), Ok("ready"));
    let mut counts = BTreeMap::new();
    for number in catchable() {
        kill(&target(&child, group), number);
        // Signals are sent one at a time, because a signal that is already pending isn't queued again.
        while !counts.contains_key(&number) {
            let line = next().unwrap_or_else(|error| panic!("signal {number}: {error}"));
            *counts.entry(line.parse().unwrap()).or_insert(0) += 1;
        }
    }
    fs::write(done, "").unwrap();
    for line in lines {
        *counts.entry(line.parse().unwrap()).or_insert(0) += 1;
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{verb}: {}", String::from_utf8_lossy(&output.stderr));
    counts
}

fn assert_delivered_once(verb: &str, group: bool) {
    let once = BTreeMap::from_iter(catchable().into_iter().map(|number| (number, 1)));
    assert_eq!(deliveries(verb, group), once, "{verb}, to the group: {group}");
}

#[test]
fn each_signal_reaches_the_pipeline_exactly_once() {
    assert_delivered_once("why", false);
    assert_delivered_once("tune", true);
}

#[test]
#[ignore = "long"]
fn long_each_signal_reaches_the_other_pipelines_exactly_once() {
    assert_delivered_once("why", true);
    assert_delivered_once("tune", false);
}

/// The first child of a process that has this word in its command line.
fn child_with(parent: u32, word: &str) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
    let has = |pid: &u32| fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.contains(word));
    children.split_whitespace().filter_map(|pid| pid.parse().ok()).find(has)
}

/// The witness is a process of the group from which pipemark learns whether a signal was sent to the group. On a busy
/// machine, the witness may run late.
#[test]
fn a_signal_to_the_group_is_not_passed_on_however_late_its_witness_runs() {
    let directory = tempfile::tempdir().unwrap();
    let done = directory.path().join("done");
    let words = ["why", "--", "/usr/bin/python3", "-c", SIGNAL_PRINTER, done.to_str().unwrap()];
    let mut child = start(&words, Stdio::piped());
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next().as_deref(), Some("ready"));
    let witness = child_with(child.id(), "__witness").expect("pipemark has a witness").to_string();
    kill(&witness, 19);
    kill(&target(&child, true), 10);
    assert_eq!(lines.next().as_deref(), Some("10"));
    sleep(Duration::from_millis(500));
    kill(&witness, 18);
    // pipemark handles 10 before 12, so a 10 that it passed on would arrive first.
    kill(&target(&child, false), 12);
    assert_eq!(lines.next().as_deref(), Some("12"), "10 was passed on");
    fs::write(done, "").unwrap();
    assert_eq!(lines.next(), None);
    assert_eq!(child.wait().unwrap().code(), Some(7));
}

#[test]
fn a_signal_that_ends_the_pipeline_ends_why_with_the_verdict() {
    for number in [10, 12, 14, 15, 24, 34] {
        for group in [true, false] {
            let child = start(&["why", "--", "sleep", "30"], Stdio::null());
            let children = format!("/proc/{0}/task/{0}/children", child.id());
            eventually("sleep runs", || {
                let children = fs::read_to_string(&children).unwrap_or_default();
                children
                    .split(' ')
                    .any(|child| fs::read(format!("/proc/{child}/comm")).is_ok_and(|name| name == b"sleep\n"))
            });
            kill(&target(&child, group), number);
            let output = child.wait_with_output().unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.signal(), Some(number), "group {group}: {stderr}");
            assert!(stderr.contains("why · sleep 30"), "{number}: {stderr}");
        }
    }
}
