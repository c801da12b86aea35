//! Nothing of a link remains, whichever of its processes is killed, and whenever it is killed.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::thread;
use std::time::{Duration, Instant};

use crate::program::{RunningProgram, TIMEOUT, placement, posix_queues, report_skip, samples, trials};
use rustix::process::{Pid, Signal, kill_process};

const LINKS: [&str; 13] = [
    "pipe",
    "fifo",
    "socketpair",
    "unix-stream",
    "unix-seqpacket",
    "unix-dgram",
    "tcp",
    "sysv-mq",
    "posix-mq",
    "shm",
    "process-vm",
    "pty",
    "null",
];

/// Delays after a process is first seen: before it has received its job, while it prepares, warms up and measures, and
/// near its end.
const KILL_DELAYS: [Duration; 6] = [
    Duration::ZERO,
    Duration::from_micros(400),
    Duration::from_micros(1200),
    Duration::from_millis(4),
    Duration::from_millis(8),
    Duration::from_millis(12),
];

/// Waits for a run not yet in `seen` and returns its `nth` process, or `None` once the program ends.
fn nth_process_of_next_run(started: &mut RunningProgram, seen: &mut Vec<u32>, nth: usize) -> Option<u32> {
    let mut run: Vec<u32> = Vec::new();
    while !started.is_over() {
        let now = started.children();
        if now.iter().any(|process| seen.contains(process)) {
            continue;
        }
        // The next run began before this run had `nth` processes.
        if run.first().is_some_and(|first| !now.contains(first)) {
            run.clear();
        }
        run.extend(now.iter().filter(|process| !run.contains(process)).collect::<Vec<_>>());
        if let Some(&process) = run.get(nth) {
            *seen = run;
            return Some(process);
        }
    }
    None
}

/// Kills each process of a link after each of these delays.
fn kill_each_process(link: &str, mode: &str) {
    let keepers = match (link, mode) {
        ("fifo" | "unix-stream" | "sysv-mq" | "posix-mq", "throughput") => 1,
        ("fifo" | "unix-stream" | "sysv-mq" | "posix-mq", _) => 2,
        _ => 0,
    };
    let kills: Vec<(usize, Duration)> =
        KILL_DELAYS.iter().flat_map(|&point| (0..keepers + 2).map(move |nth| (nth, point))).collect();
    let mut killed = kill(link, mode, &kills);
    let hit = |killed: &[String], name: &str| killed.iter().any(|reason| reason.contains(&format!("the {name}")));
    // A keeper, the process that owns a link's name, creates its link within a millisecond. On a busy machine all these
    // kills may come later.
    for _ in 0..50 {
        if keepers == 0 || hit(&killed, "keeper") {
            break;
        }
        killed.extend(kill(link, mode, &[(0, Duration::ZERO); 10]));
    }
    for name in ["source", "sink", "keeper"].iter().take(if keepers > 0 { 3 } else { 2 }) {
        assert!(hit(&killed, name), "no {name} of {link}: {killed:#?}");
    }
    assert!(killed.iter().all(|reason| reason.contains("was killed (SIGKILL)")), "{link}: {killed:#?}");
}

/// Kills processes within one measurement of many short trials. Each element of `kills` is the number of a process in
/// its run and a delay after the process is first seen. Returns the reasons of the failed trials.
fn kill(link: &str, mode: &str, kills: &[(usize, Duration)]) -> Vec<String> {
    // Each kill ends its trial, so there is a trial for each kill. Two more trials run undisturbed.
    let blocks: Vec<String> = (0..kills.len() + 2).map(|nth| (1000 + nth).to_string()).collect();
    let blocks = blocks.join(",");
    let verify = if link == "null" { "count" } else { "full" };
    let words = ["bw", "--link", link, "--mode", mode, "--block", &blocks, "--verify", verify, "--place", placement()];
    let mut started =
        RunningProgram::pipemark(&[&words[..], &["--time", "5ms", "--runs", "1", "--json", "-"]].concat());
    let mut seen = Vec::new();
    for &(nth, point) in kills {
        let Some(process) = nth_process_of_next_run(&mut started, &mut seen, nth) else { break };
        thread::sleep(point);
        // As long as the process is a child of pipemark, running or dead, no other process has its id.
        if started.children().contains(&process) {
            let _ = kill_process(Pid::from_raw(process as i32).unwrap(), Signal::KILL);
        }
    }
    let (ended, left) = started.end();
    assert!(left.is_empty(), "{link}: {left:?}");
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    let document = ended.document();
    let (mut killed, mut whole) = (Vec::new(), 0);
    for trial in trials(&document) {
        match trial["status"].as_str().unwrap() {
            "failed" => {
                assert!(trial["estimate"].is_null() && samples(trial).is_empty(), "{trial}");
                assert_ne!(trial["verified"], false, "{trial}");
                killed.push(trial["reason"].as_str().unwrap().to_owned());
            }
            _ => whole += 1,
        }
    }
    assert!(whole > 0, "{link}");
    assert_eq!(ended.code(), Some(i32::from(!killed.is_empty())), "{link}: {}", ended.stderr);
    killed
}

#[test]
fn nothing_remains_of_a_link_whose_end_is_killed() {
    kill_each_process("shm", "throughput");
    kill_each_process("posix-mq", "throughput");
    kill_each_process("fifo", "latency");
}

#[test]
#[ignore = "long"]
fn long_nothing_remains_of_a_link_whose_end_is_killed() {
    for link in LINKS {
        kill_each_process(link, "throughput");
    }
}

#[test]
#[ignore = "long"]
fn long_nothing_remains_of_two_links_whose_end_is_killed() {
    for link in ["fifo", "unix-stream", "sysv-mq", "posix-mq", "shm", "process-vm"] {
        kill_each_process(link, "latency");
    }
}

/// Kills the parent at several times after it has started the first process of a run. A keeper creates its link within
/// about a millisecond.
fn kill_parent(links: &[&str], steps: impl Iterator<Item = u32> + Clone) {
    for &link in links {
        for step in steps.clone() {
            let words = ["bw", "--link", link, "--place", "free", "--pairs", "2", "--time", "5ms", "--runs", "3"];
            let mut started = RunningProgram::pipemark(&words);
            while started.children().is_empty() && !started.is_over() {}
            thread::sleep(Duration::from_micros(step.pow(3).into()) * 100);
            started.signal(Signal::KILL);
            let (ended, left) = started.end();
            assert!(left.is_empty(), "{link} after step {step}: {left:?}");
            assert!(ended.status.signal() == Some(9) || ended.code() == Some(0), "{ended:?}");
            assert_eq!(ended.stderr, "", "{link}: nobody is left to complain");
        }
    }
}

#[test]
fn nothing_remains_of_a_link_whose_parent_is_killed() {
    kill_parent(&["unix-stream", "sysv-mq", "pty"], (0..8).step_by(2));
}

#[test]
#[ignore = "long"]
fn long_nothing_remains_of_a_link_whose_parent_is_killed() {
    kill_parent(&LINKS, 0..8);
}

/// A stopped keeper doesn't block its parent forever, and the objects that the keeper created are removed.
#[test]
fn a_stopped_keeper_is_done_without() {
    for link in ["fifo", "sysv-mq"] {
        let words = ["bw", "--link", link, "--place", "free", "--time", "2s", "--runs", "1", "--limit", "3s"];
        let mut started = RunningProgram::pipemark(&words);
        let keeper = nth_process_of_next_run(&mut started, &mut Vec::new(), 0).unwrap();
        // A keeper that is stopped before its exec would block the call that starts it.
        let name = || fs::read(format!("/proc/{keeper}/cmdline")).unwrap_or_default();
        let begin = Instant::now();
        while !started.is_over() && !name().ends_with(b"__end\0") {
            assert!(begin.elapsed() < TIMEOUT, "{link}: the keeper doesn't start");
        }
        let _ = kill_process(Pid::from_raw(keeper as i32).unwrap(), Signal::STOP);
        let (ended, left) = started.end();
        assert!(left.is_empty(), "{link}: {left:?}");
        assert!(matches!(ended.code(), Some(0 | 1)), "{ended:?} after {:?}", begin.elapsed());
    }
}

#[test]
fn no_posix_queue_remains() {
    let ours =
        |queues: Vec<String>| queues.into_iter().filter(|name| name.starts_with("pipemark-")).collect::<Vec<_>>();
    let Some(before) = posix_queues() else {
        report_skip("POSIX queues that remain", "mounting their file system is for root");
        return;
    };
    let before = ours(before);
    for step in 0..12u32 {
        let words = ["bw", "--link", "posix-mq", "--place", "free", "--pairs", "2", "--time", "5ms", "--runs", "1"];
        let mut started = RunningProgram::pipemark(&words);
        let keeper = nth_process_of_next_run(&mut started, &mut Vec::new(), 0);
        thread::sleep(Duration::from_micros(u64::from(step) * 125));
        let victim = if step % 2 == 0 { Some(started.process()) } else { keeper };
        if let Some(victim) = victim {
            let _ = kill_process(Pid::from_raw(victim as i32).unwrap(), Signal::KILL);
        }
        assert_eq!(started.end().1, Vec::<String>::new());
    }
    // Queues of parallel tests disappear soon.
    let mut left = ours(posix_queues().unwrap());
    let begin = Instant::now();
    while !left.is_empty() && begin.elapsed() < TIMEOUT {
        thread::sleep(Duration::from_millis(50));
        let now = ours(posix_queues().unwrap());
        left.retain(|name| now.contains(name) && !before.contains(name));
    }
    assert_eq!(left, Vec::<String>::new());
}
