//! `pipemark tune` enlarges pipes and restores them, and the pipeline's result doesn't change.

use std::fs::File;

use rustix::process::Signal;
use serde_json::Value;

use crate::program::{PIPEMARK, RunningProgram, eventually, pipemark, run};
use crate::why::{Running, filter};

const OLD: usize = 64 << 10;
const LARGE: usize = 1 << 20;

/// The process that reads from the first pipe.
fn reader(running: &Running) -> String {
    let ended = pipemark(&["why", &running.pid(), "--for", "200ms", "--json", "-"]);
    ended.document()["stages"][1]["pid"].to_string()
}

fn capacity(reader: &str) -> usize {
    rustix::pipe::fcntl_getpipe_size(File::open(format!("/proc/{reader}/fd/0")).unwrap()).unwrap()
}

/// Tunes a running pipeline. Returns the outcome and the first pipe's capacity afterwards, in bytes.
fn tune(pipeline: &str) -> (Value, usize) {
    let running = Running::new(pipeline);
    let reader = reader(&running);
    assert_eq!(capacity(&reader), OLD);
    let ended = pipemark(&["tune", &running.pid(), "--for", "8s", "--json", "-"]);
    assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
    (ended.document(), capacity(&reader))
}

/// A source that writes a burst after each sleep.
fn bursts() -> String {
    "/usr/bin/python3 -c 'import os,time
while True:
    time.sleep(0.05)
    block = bytes(262144)
    while block: block = block[os.write(1, block):]'"
        .to_owned()
}

#[test]
fn a_larger_pipe_is_kept_if_it_helps() {
    let pipeline = format!("{} | {} >/dev/null", bursts(), filter("time.sleep(0.01)"));
    let (mut outcome, mut now) = tune(&pipeline);
    // While other programs use the CPUs, a comparison may be inconclusive, and a large pipe may be too full to be made
    // smaller again.
    for _ in 0..3 {
        if outcome["verdict"] != "better" || outcome["in_turns"] == false {
            (outcome, now) = tune(&pipeline);
        }
    }
    assert_eq!((&outcome["verdict"], now), (&"better".into(), LARGE), "{outcome}");
    assert!(outcome["in_turns"] == true && outcome["low"].as_f64() > Some(1.0), "{outcome}");
    assert!(outcome["text"].as_str().unwrap().contains("the larger pipes were kept"), "{outcome}");
}

#[test]
#[ignore = "long"]
fn long_capacities_that_do_not_help_are_restored() {
    let (outcome, now) = tune(&format!("{} </dev/zero | cat >/dev/null", filter("time.sleep(0.01)")));
    let helps = outcome["verdict"] == "better";
    assert_eq!(now, if helps { LARGE } else { OLD }, "{outcome}");
    assert_eq!(outcome["pipes"][0]["now"], now, "{outcome}");
    assert!(outcome["rounds"].as_u64() >= Some(5), "{outcome}");
}

/// The writer keeps the pipe full, and a full pipe can't be shrunk. So the capacities don't alternate: the pipeline is
/// measured once before and once after the change.
#[test]
#[ignore = "long"]
fn long_a_full_pipe_is_measured_before_and_after_only() {
    let (outcome, now) = tune(&format!("cat /dev/zero | {} >/dev/null", filter("time.sleep(0.02)")));
    assert_eq!((&outcome["in_turns"], now), (&false.into(), LARGE), "{outcome}");
    let text = outcome["text"].as_str().unwrap();
    assert!(text.contains("once before and once after") && text.contains("larger"), "{outcome}");
}

#[test]
fn an_interrupt_restores_the_old_capacities() {
    let running = Running::new(&format!("{} </dev/zero | cat >/dev/null", filter("time.sleep(0.01)")));
    let reader = reader(&running);
    // Any signal that would end the program restores them.
    for signal in [Signal::INT, Signal::USR1] {
        let started = RunningProgram::pipemark(&["tune", &running.pid(), "--for", "1min"]);
        eventually("the pipe is enlarged", || capacity(&reader) == LARGE);
        started.signal(signal);
        let (ended, _) = started.end();
        assert_eq!((ended.code(), capacity(&reader)), (Some(130), OLD), "{signal:?}: {}", ended.stderr);
    }
}

#[test]
fn pipelines_that_cannot_be_tuned_are_reported() {
    let running = Running::new("exec sleep 60");
    let ended = pipemark(&["tune", &running.pid()]);
    assert_eq!(ended.code(), Some(1), "{}", ended.stdout);
    assert!(ended.stderr.contains("not a pipeline"), "{}", ended.stderr);
    let ended = pipemark(&["tune", &running.pid(), "--json", "-"]);
    assert_eq!((ended.code(), &ended.document()["verdict"]), (Some(1), &Value::Null));
    for (words, code, says) in [
        (vec!["tune", "1", "--no-touch"], 125, "--no-touch"),
        (vec!["tune", "1", "--for", "1s"], 125, "use 8s to 5min"),
        (vec!["tune", "2147483646"], 2, "no process"),
    ] {
        let ended = pipemark(&words);
        assert_eq!(ended.code(), Some(code), "{words:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(says), "{words:?}: {}", ended.stderr);
    }
}

#[test]
fn a_pipeline_that_it_starts_has_the_same_output() {
    for pipeline in [
        "seq 100000 | grep 7 | tail -3; exit 5",
        "for i in $(seq 80); do seq 9000; sleep 0.05; done | sort -n | md5sum | head -1; exit 7",
    ] {
        let with = run(&["env", "SHELL=/bin/bash", PIPEMARK], &["tune", "--live", pipeline]);
        let without = run(&["bash", "-c"], &[pipeline]);
        assert_eq!((with.code(), with.stdout), (without.code(), without.stdout), "{}", with.stderr);
        assert!(with.stderr.contains("tune · "), "{}", with.stderr);
    }
}

#[test]
#[ignore = "long"]
fn long_one_pipe_can_be_tried_alone() {
    let running = Running::new("cat /dev/zero | cat | cat >/dev/null");
    let pid = running.pid();
    let ended = pipemark(&["tune", &pid, "--pipe", "2", "--for", "8s", "--json", "-"]);
    assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
    assert!(ended.stderr.contains("pipe 2 alternates between"), "{}", ended.stderr);
    let pipes = &ended.document()["pipes"];
    assert_eq!((pipes.as_array().unwrap().len(), &pipes[0]["from"]), (1, &2.into()), "{pipes}");
}

#[test]
fn a_pipe_that_is_not_there_is_reported() {
    let running = Running::new("yes | cat | sleep 600");
    let ended = pipemark(&["tune", &running.pid(), "--pipe", "3", "--for", "8s"]);
    assert_eq!(ended.code(), Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("there is no pipe 3; the pipeline has 2 pipes"), "{}", ended.stderr);
}

#[test]
fn a_pipeline_that_ends_before_three_rounds_gets_no_ratio() {
    let ended = pipemark(&["tune", "--live", "--json", "/dev/stdout", "timeout 3.5 cat /dev/zero | cat >/dev/null"]);
    let outcome: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&outcome["verdict"], &outcome["ratio"]), (&Value::Null, &Value::Null), "{outcome}");
    assert!(outcome["text"].as_str().unwrap().contains("too few rounds"), "{outcome}");
}
