//! Faults from outside: ends killed, the program killed or interrupted, a run that hangs. After each fault, the program
//! ends with a message and the right exit code, and nothing is left behind.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::thread;
use std::time::Duration;

use crate::program::{ProgramOutput, Role, RunningProgram, eventually, only_trial, samples, trials};
use rustix::process::Signal;
use serde_json::Value;

/// A run too long to end by itself before the test ends it.
const LONG_RUN: [&str; 6] = ["bw", "--place", "free", "--time", "40s", "--runs"];

fn start_long_run(more: &[&str]) -> RunningProgram {
    RunningProgram::pipemark(&[&LONG_RUN[..], &["1"], more].concat())
}

/// Kills one end in the middle of a run; returns the message.
fn kill_end(role: Role, more: &[&str]) -> String {
    let mut started = start_long_run(more);
    started.end_with(role).signal(Signal::KILL);
    let (ended, left) = started.end();
    assert_eq!(ended.code(), Some(1), "{}", ended.stderr);
    assert_eq!(left, Vec::<String>::new());
    assert!(!ended.stdout.contains("panicked") && !ended.stderr.contains("panicked"), "{}", ended.stderr);
    ended.stderr
}

#[test]
fn a_killed_end_is_named() {
    for more in [&[][..], &["--send", "vmsplice", "--recv", "splice"], &["--wait", "spin"]] {
        let message = kill_end(Role::Source, more);
        assert!(message.contains("the source was killed (SIGKILL)"), "{more:?}: {message}");
        let message = kill_end(Role::Sink, more);
        assert!(message.contains("the sink was killed (SIGKILL)"), "{more:?}: {message}");
    }
}

#[test]
fn an_end_killed_in_its_window_is_named() {
    for role in [Role::Source, Role::Sink] {
        let mut started = start_long_run(&["--wait", "spin"]);
        let end = started.end_with(role);
        assert!(end.reaches_window());
        end.signal(Signal::KILL);
        let (ended, left) = started.end();
        assert_eq!((ended.code(), left), (Some(1), vec![]), "{}", ended.stderr);
        let name = if role == Role::Source { "source" } else { "sink" };
        assert!(ended.stderr.contains(&format!("the {name} was killed (SIGKILL)")), "{}", ended.stderr);
    }
}

#[test]
fn one_of_many_pairs_killed_ends_them_all() {
    let mut started = start_long_run(&["--pairs", "3"]);
    started.ends(6)[3].signal(Signal::KILL);
    let (ended, left) = started.end();
    assert_eq!((ended.code(), left), (Some(1), vec![]), "{}", ended.stderr);
    assert!(ended.stderr.contains("was killed (SIGKILL)"), "{}", ended.stderr);
}

#[test]
fn a_killed_end_fails_its_trial_and_not_the_others() {
    let words = ["bw", "--place", "free", "--send", "write,splice", "--time", "2s", "--runs", "1", "--json", "-"];
    let mut started = RunningProgram::pipemark(&words);
    started.end_with(Role::Sink).signal(Signal::KILL);
    let (ended, _) = started.end();
    assert_eq!(ended.code(), Some(1));
    let document = ended.document();
    let mut statuses: Vec<&str> = trials(&document).iter().map(|trial| trial["status"].as_str().unwrap()).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, ["failed", "ok"]);
    let failed = *trials(&document).iter().find(|trial| trial["status"] == "failed").unwrap();
    assert!(failed["estimate"].is_null() && failed["reason"].as_str().unwrap().contains("the sink was killed"));
}

#[test]
fn nothing_outlives_a_killed_parent() {
    kill_parent((0..60).step_by(6));
}

#[test]
#[ignore = "long"]
fn long_nothing_outlives_a_killed_parent() {
    kill_parent(0..60);
}

fn kill_parent(steps: impl Iterator<Item = u64>) {
    for step in steps {
        let words =
            ["bw", "--place", "free", "--pairs", "2", "--time", "5ms", "--runs", "3", "--json", "pipemark.json"];
        let started = RunningProgram::pipemark(&words);
        // The delays start before the first process exists and end after the last has ended.
        thread::sleep(Duration::from_micros(step * step * 150));
        started.signal(Signal::KILL);
        let directory: Vec<_> =
            fs::read_dir(started.directory()).unwrap().flatten().map(|entry| entry.file_name()).collect();
        let (ended, left) = started.end();
        let whole = ["pipemark.json"];
        assert!(left.is_empty() || left == whole, "after step {step}: {left:?} {directory:?}");
        assert!(ended.status.signal() == Some(9) || ended.code() == Some(0), "{ended:?}");
    }
}

#[test]
fn a_stopped_end_does_not_outlive_its_parent() {
    let mut started = start_long_run(&[]);
    for end in started.ends(2) {
        end.stop();
    }
    started.signal(Signal::KILL);
    let (ended, left) = started.end();
    assert_eq!((ended.status.signal(), left), (Some(9), vec![]));
}

/// Interrupts after some runs; returns the saved document.
fn interrupt_after_some_runs(signal: Signal) -> Value {
    let words = ["bw", "--place", "free", "--block", "4k,64k", "--time", "40ms", "--runs", "500", "--json", "-"];
    let mut started = RunningProgram::pipemark(&words);
    let mut seen = BTreeSet::new();
    // Eight processes are the ends of four runs. There are two trials, so at least one round is complete.
    while seen.len() < 8 {
        seen.extend(started.ends(2).into_iter().map(|end| end.process));
    }
    started.signal(signal);
    let (ended, left) = started.end();
    assert_eq!((ended.code(), left), (Some(130), vec![]), "{}", ended.stderr);
    ended.document()
}

#[test]
fn an_interruption_keeps_what_was_measured() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let document = interrupt_after_some_runs(signal);
        assert_eq!(document["partial"], true);
        let measured: Vec<_> = trials(&document).into_iter().filter(|trial| !samples(trial).is_empty()).collect();
        assert!(!measured.is_empty());
        for trial in measured {
            assert_eq!((&trial["status"], &trial["stopped"]), (&"ok".into(), &"interrupted".into()), "{trial}");
            assert!(trial["estimate"]["throughput"]["median"].as_f64().unwrap() > 0.0);
        }
    }
}

#[test]
fn an_interruption_at_any_moment_ends_it_whole() {
    interrupt((0..25).step_by(4));
}

#[test]
#[ignore = "long"]
fn long_an_interruption_at_any_moment_ends_it_whole() {
    interrupt(0..25);
}

fn interrupt(steps: impl Iterator<Item = u64>) {
    for step in steps {
        let words = ["bw", "--place", "free", "--time", "5ms", "--runs", "3", "--csv", "pipemark.csv"];
        let started = RunningProgram::pipemark(&words);
        thread::sleep(Duration::from_micros(step * step * 600));
        started.signal(Signal::INT);
        let (ended, left) = started.end();
        assert!(left.is_empty() || left == ["pipemark.csv"], "after step {step}: {left:?}");
        match (ended.code(), ended.status.signal()) {
            // A signal that arrives before the handler is installed kills the program, and there is nothing to save.
            (None, Some(2)) => assert!(left.is_empty(), "after step {step}: {left:?}"),
            (Some(130), _) => assert!(!left.is_empty(), "after step {step}: {ended:?}"),
            other => assert_eq!(other, (Some(0), None), "{ended:?}"),
        }
    }
}

#[test]
fn a_table_of_an_interrupted_measurement_says_so() {
    let mut started = start_long_run(&[]);
    started.ends(2);
    started.signal(Signal::INT);
    let (ended, left) = started.end();
    assert_eq!((ended.code(), left), (Some(130), vec![]));
    assert!(ended.stdout.to_lowercase().contains("interrupted"), "{}", ended.stdout);
}

#[test]
fn an_interruption_ends_a_program_that_cannot_write() {
    let directory = tempfile::tempdir().unwrap();
    let fifo = directory.path().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    let words = ["bw", "--place", "free", "--time", "40s", "--runs", "1", "--json", fifo.to_str().unwrap()];
    let mut started = RunningProgram::pipemark(&words);
    // When both ends exist, the program's signal handlers are installed.
    started.ends(2);
    // No process reads the FIFO. The program must end wherever it waits.
    eventually("it ends", || {
        started.signal(Signal::INT);
        started.is_over()
    });
    let (ended, left) = started.end();
    assert_eq!((ended.code(), left), (Some(130), vec![]), "{ended:?}");
}

#[test]
fn a_hang_is_ended_with_its_reasons() {
    let words = ["bw", "--place", "free", "--time", "2s", "--limit", "3s", "--runs", "1", "--json", "-"];
    let ended = end_stopped(&words, |started| started.end_with(Role::Sink).stop());
    let document = ended.document();
    let reason = only_trial(&document)["reason"].as_str().unwrap();
    for words in ["limit of 3s", "the sink was stopped", "the source was waiting", "of 65536 bytes", "--limit"] {
        assert!(reason.contains(words), "'{words}' is not in: {reason}");
    }
    assert!(ended.stderr.contains(reason));
}

/// The outcome of a measurement of which `stop` stops an end. On a busy machine the measurement may end first; then it
/// is repeated.
fn end_stopped(words: &[&str], stop: impl Fn(&mut RunningProgram) -> bool) -> ProgramOutput {
    for _ in 0..5 {
        let mut started = RunningProgram::pipemark(words);
        let is_stopped = stop(&mut started);
        let (ended, left) = started.end();
        assert_eq!(left, [""; 0], "{}", ended.stderr);
        if is_stopped && ended.code() != Some(0) {
            assert_eq!(ended.code(), Some(1), "{}", ended.stderr);
            return ended;
        }
    }
    panic!("it always ends before an end is stopped");
}

/// a_hang_is_ended_with_its_reasons stops the sink, and so fills its pipe.
#[test]
fn an_empty_pipe_is_named() {
    stop_an_end(&[(Role::Source, "its pipe held 0 of 65536")]);
}

#[test]
#[ignore = "long"]
fn long_full_and_empty_pipes_are_distinguished() {
    let full = (Role::Sink, "its pipe held 65536 of 65536 bytes");
    stop_an_end(&[full, (Role::Source, "its pipe held 0 of 65536")]);
}

fn stop_an_end(cases: &[(Role, &str)]) {
    for &(stopped, held) in cases {
        let words = ["bw", "--place", "free", "--time", "4s", "--limit", "5s", "--runs", "1"];
        let ended = end_stopped(&words, |started| {
            let end = started.end_with(stopped);
            // The stopped end is within the measured window, where the other end soon finds the pipe full or empty.
            end.reaches_window() && end.stop()
        });
        assert!(ended.stderr.contains(held) && ended.stderr.contains("measuring"), "{}", ended.stderr);
    }
}
