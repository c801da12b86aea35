//! Signals while `why` runs a pipeline: each process gets each signal exactly once, whether it was sent to the group or to
//! pipemark alone.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::program::PIPEMARK;

/// Counts the signals that it gets, until a file is there.
const COUNTS: &str = "import collections, os, signal, sys, time
counts = collections.Counter()
for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
    try: signal.signal(number, lambda number, frame: counts.update([int(number)]))
    except (OSError, ValueError): pass
folder = sys.argv[1]
open(folder + '/ready', 'w').close()
while not os.path.exists(folder + '/done'): time.sleep(0.005)
for number, count in counts.items(): print(number, count)
sys.exit(7)";

/// What can be caught but by those that stop a process, which go on by SIGCONT; Python can't catch 32 and 33.
fn catchable() -> Vec<i32> {
    let none = [9, 17, 19, 20, 21, 22, 32, 33];
    (1..=64).filter(|number| !none.contains(number)).collect()
}

fn kill(target: &str, number: i32) {
    let sent = Command::new("/bin/kill").args([&format!("-{number}"), "--", target]).status().unwrap();
    assert!(sent.success(), "{number} to {target}");
    sleep(Duration::from_millis(90));
}

fn wait_for(path: &Path) {
    let begin = Instant::now();
    while !path.exists() {
        assert!(begin.elapsed() < Duration::from_secs(20), "{path:?}");
        sleep(Duration::from_millis(10));
    }
}

/// How often the pipeline under a verb gets each signal, of which one of each was sent to the group or to the program alone.
fn deliveries(verb: &[&str], group: bool) -> BTreeMap<i32, u32> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let child = Command::new(PIPEMARK)
        .args(verb)
        .args(["--", "/usr/bin/python3", "-c", COUNTS, path])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    wait_for(&folder.path().join("ready"));
    let target = if group { format!("-{}", child.id()) } else { child.id().to_string() };
    for number in catchable() {
        kill(&target, number);
    }
    fs::write(folder.path().join("done"), "").unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(7), "{verb:?}: {stderr}");
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let count = |line: &str| {
        let (number, count) = line.split_once(' ')?;
        Some((number.parse().ok()?, count.parse().ok()?))
    };
    stdout.lines().filter_map(count).collect()
}

#[test]
fn each_signal_reaches_the_pipeline_exactly_once() {
    let once = BTreeMap::from_iter(catchable().into_iter().map(|number| (number, 1)));
    for verb in [&["why"][..], &["tune"]] {
        for group in [true, false] {
            assert_eq!(deliveries(verb, group), once, "{verb:?}, to the group: {group}");
        }
    }
}

#[test]
fn a_signal_that_ends_the_pipeline_ends_why_with_the_verdict() {
    for number in [10, 12, 14, 15, 24, 34] {
        for group in [true, false] {
            let child = Command::new(PIPEMARK)
                .args(["why", "--", "sleep", "30"])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .process_group(0)
                .spawn()
                .unwrap();
            sleep(Duration::from_millis(600));
            kill(&if group { format!("-{}", child.id()) } else { child.id().to_string() }, number);
            let output = child.wait_with_output().unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.signal(), Some(number), "group {group}: {stderr}");
            assert!(stderr.contains("why · sleep 30"), "{number}: {stderr}");
        }
    }
}
