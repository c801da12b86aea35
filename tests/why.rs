//! `pipemark why`: what limits a pipeline, and that the pipeline's result is the same with and without it.

use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::output::schema_violation;
use crate::program::{
    PIPEMARK, ProgramOutput, RunningProgram, eventually, pipemark, report_skip, run, without_contention,
};

/// A filter in Python that passes blocks on and runs `work` for each. `work` may use `block`.
pub fn filter(work: &str) -> String {
    format!(
        "/usr/bin/python3 -c 'import os,time
while block := os.read(0, 65536):
    {work}
    while block: block = block[os.write(1, block):]'"
    )
}

/// The number of pipes between the stages of a pipeline. Pipes in quotes and parentheses don't count.
fn pipes(pipeline: &str) -> usize {
    let (mut depth, mut is_quoted, mut count) = (0, false, 0);
    for c in pipeline.chars() {
        match c {
            '\'' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            '(' => depth += 1,
            ')' => depth -= 1,
            '|' if depth == 0 => count += 1,
            _ => {}
        }
    }
    count
}

/// A running pipeline to sample, in a process group of its own.
pub struct Running(Child);

impl Running {
    pub fn new(pipeline: &str) -> Running {
        let mut command = Command::new("bash");
        command.args(["-c", pipeline]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.process_group(0).spawn().unwrap();
        // The pipeline gets a higher priority than parallel tests, where permitted, so that they don't become its
        // bottleneck.
        let _ = rustix::process::setpriority_pgrp(rustix::process::Pid::from_raw(child.id().cast_signed()), -10);
        let running = Running(child);
        // On a busy machine it takes a while until all stages run.
        let children = format!("/proc/{0}/task/{0}/children", running.pid());
        let started = || fs::read_to_string(&children).map_or(0, |pids| pids.split_ascii_whitespace().count());
        eventually("all stages run", || started() > pipes(pipeline) || pipeline.starts_with("exec "));
        std::thread::sleep(Duration::from_millis(500));
        running
    }

    pub fn pid(&self) -> String {
        self.0.id().to_string()
    }

    fn sample(&self, flags: &[&str]) -> Value {
        let pid = self.pid();
        let mut words = vec!["why", &pid, "--json", "-"];
        words.extend(flags);
        without_contention(|| {
            let ended = pipemark(&words);
            assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
            serde_json::from_str(&ended.stdout).unwrap()
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_raw(self.0.id().cast_signed()).unwrap();
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
        let _ = self.0.wait();
    }
}

/// A pipeline that waits, so that it takes no CPU time from parallel tests.
const IDLE: &str = "yes | sleep 600";

fn names(report: &Value) -> Vec<&str> {
    report["stages"].as_array().unwrap().iter().map(|stage| stage["name"].as_str().unwrap()).collect()
}

fn share(report: &Value, stage: usize, what: &str) -> f64 {
    report["stages"][stage - 1][what].as_f64().unwrap()
}

#[test]
fn a_stage_that_sleeps_is_found() {
    find_the_stage_that_sleeps(&[2]);
}

#[test]
#[ignore = "long"]
fn long_a_stage_that_sleeps_is_found_at_the_other_places() {
    find_the_stage_that_sleeps(&[1, 3]);
}

fn find_the_stage_that_sleeps(places: &[u64]) {
    let slow = filter("time.sleep(0.02)");
    let pipelines = [
        format!("{slow} </dev/zero | cat | cat >/dev/null"),
        format!("cat /dev/zero | {slow} | cat >/dev/null"),
        format!("cat /dev/zero | cat | {slow} >/dev/null"),
    ];
    for &place in places {
        let running = Running::new(&pipelines[place as usize - 1]);
        for access in ["syscall", "wchan"] {
            let report = running.sample(&["--access", access]);
            let verdict = &report["verdict"];
            assert_eq!((&verdict["kind"], &verdict["stage"]), (&"stage".into(), &place.into()), "{access}: {report}");
            assert_eq!(verdict["reason"], "sleeping", "{access}: {report}");
            assert_eq!(report["access"], access);
            assert_eq!(report["stages"].as_array().unwrap().len(), 3);
            for stage in 1..=3 {
                let state = if stage < place as usize { "blocked" } else { "starved" };
                assert!(stage == place as usize || share(&report, stage, state) > 0.5, "{access}: {report}");
            }
        }
    }
}

#[test]
fn poll_and_splice_are_seen_through() {
    see_through(&["p.poll()"]);
}

#[test]
#[ignore = "long"]
fn long_poll_select_epoll_and_splice_are_seen_through() {
    see_through(&["p.poll()", "select.select([0],[],[])", "e.poll()"]);
}

fn see_through(waits: &[&str]) {
    let wait = |how: &str| {
        filter(&format!(
            "0
import select
p=select.poll(); p.register(0, select.POLLIN)
e=select.epoll(); e.register(0, select.EPOLLIN)
while True:
    {how}
    block = os.read(0, 65536)
    while block: block = block[os.write(1, block):]
while False:
    block=b\"\""
        ))
    };
    let slow = filter("time.sleep(0.02)");
    for &how in waits {
        let report = Running::new(&format!("{slow} </dev/zero | {} >/dev/null", wait(how))).sample(&["--for", "1s"]);
        assert_eq!(report["verdict"]["stage"], 1, "{how}: {report}");
        assert!(share(&report, 2, "starved") > 0.5, "{how}: {report}");
    }
    // The relay splices from pipe to pipe. The kernel function in which the relay sleeps shows which side it waits for.
    let relay = format!("{PIPEMARK} relay --capacity keep");
    let report = Running::new(&format!("cat /dev/zero | {relay} | {slow} >/dev/null")).sample(&["--for", "1s"]);
    assert_eq!(report["verdict"]["stage"], 3, "{report}");
    assert!(share(&report, 2, "blocked") > 0.5, "{report}");
    let report = Running::new(&format!("{slow} </dev/zero | {relay} | cat >/dev/null")).sample(&["--for", "1s"]);
    assert_eq!(report["verdict"]["stage"], 1, "{report}");
    assert!(share(&report, 2, "starved") > 0.5, "{report}");
    // While the relay lets its input fill, it sleeps in a poll without descriptors, which must not count as a sleep of
    // the relay's own.
    let small = format!("dd if=/dev/zero bs=64 status=none | {PIPEMARK} relay | cat >/dev/null");
    let report = Running::new(&small).sample(&["--for", "1s"]);
    assert!(share(&report, 2, "sleep") < 0.05, "{report}");
}

#[test]
fn branching_pipelines_are_recognised() {
    let slow = filter("time.sleep(0.02)");
    for (pipeline, stages, cause) in [
        (format!("cat /dev/zero | tee >({slow} >/dev/null) | wc -c"), 4, "python3"),
        (format!("(cat /dev/zero & cat /dev/zero) | {slow} >/dev/null"), 2, "python3"),
        ("yes | while read x; do sleep 0.02; echo $x; done | cat".to_owned(), 3, "bash"),
        ("yes 0.1 | xargs -n1 -P2 sleep | cat".to_owned(), 3, "xargs"),
        (format!("paste <(yes) <({slow} </dev/zero) >/dev/null"), 3, "python3"),
    ] {
        let report = Running::new(&pipeline).sample(&["--for", "1s"]);
        assert_eq!(report["stages"].as_array().unwrap().len(), stages, "{pipeline}: {report}");
        let place = report["verdict"]["stage"].as_u64().unwrap_or(0) as usize;
        assert!(place > 0 && names(&report)[place - 1] == cause, "{pipeline}: {report}");
    }
}

#[test]
fn stages_have_the_names_of_what_works() {
    let report = Running::new("(cat /dev/zero; :) | timeout 100 tr a b | wc -c").sample(&["--for", "1s"]);
    assert_eq!(names(&report), ["cat", "tr", "wc"], "{report}");
}

#[test]
#[ignore = "long"]
fn long_rounds_of_the_same_work_are_one_stage() {
    let rounds = "yes | xargs -n1 -P2 sh -c 'head -c 30000000 /dev/zero | md5sum' | cat";
    let report = Running::new(rounds).sample(&["--for", "4s"]);
    let heads = names(&report).iter().filter(|name| **name == "head").count();
    assert!(heads <= 3, "{heads}: {report}");
    let place = names(&report).iter().position(|name| *name == "xargs").unwrap() + 1;
    assert!(share(&report, place, "present") > 0.9, "it is the same all the time: {report}");
    assert_ne!(report["verdict"]["reason"], "waiting for its children", "what they start works: {report}");
}

#[test]
fn a_pool_of_workers_on_one_queue_is_one_stage() {
    let pool = "/usr/bin/python3 -c 'import multiprocessing as m, os, time
def work(block): time.sleep(0.03); return block
pool = m.get_context(\"fork\").Pool(2)
while True:
    for block in pool.map(work, [os.read(0, 4096) for _ in range(8)]): os.write(1, block)'";
    let running = Running::new(&format!("yes | {pool} | cat >/dev/null"));
    for access in ["syscall", "wchan"] {
        let report = running.sample(&["--for", "1s", "--access", access]);
        assert_eq!(names(&report), ["yes", "python3", "cat"], "{access}: {report}");
        let verdict = &report["verdict"];
        assert_eq!((&verdict["kind"], &verdict["stage"]), (&"stage".into(), &2.into()), "{access}: {report}");
    }
}

#[test]
fn short_lived_children_count_as_their_stage() {
    count_as_their_stage("while read x; do y=$(echo $x | sed s/y/z/); echo $y; done");
}

#[test]
#[ignore = "long"]
fn long_threads_count_as_their_stage() {
    let threads = filter("t = threading.Thread(target=sum, args=(range(500000),)); t.start(); t.join()");
    count_as_their_stage(&threads.replace("import os", "import threading,os"));
}

#[test]
fn one_thread_that_works_among_many_idle_ones_is_counted() {
    // With this many threads, their times are read only when the process has used CPU time.
    let idle = "for _ in range(100): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()";
    let program = format!("import os, threading, time\n{idle}\nwhile True: os.write(1, b\"x\")");
    let report =
        Running::new(&format!("yes | /usr/bin/python3 -c '{program}' | cat >/dev/null")).sample(&["--for", "2s"]);
    assert!(share(&report, 2, "switches_per_second") > 0.0, "{report}");
}

fn count_as_their_stage(stage: &str) {
    let pipeline = format!("yes | {stage} | cat >/dev/null");
    let runs = |report: &Value| {
        // On a busy machine the command substitution may live long enough to become a stage.
        let place = report["verdict"]["stage"].as_u64().unwrap_or(0) as usize;
        assert!((2..names(report).len()).contains(&place), "{report}");
        share(report, place, "computing") + share(report, place, "waiting_for_cpu")
    };
    // On a busy machine, most children may end before they are found.
    let mut tries = (0..4).map(|_| runs(&Running::new(&pipeline).sample(&["--for", "2s"])));
    assert!(tries.any(|runs| runs > 0.5), "{stage}");
}

#[test]
fn a_pipeline_that_ends_at_once_has_rates() {
    // It lasts the longer, the slower the machine is.
    let words = ["why", "--json", "/dev/stdout", "head -c 1G /dev/zero | cat | cat >/dev/null"];
    let report: Value = serde_json::from_str(&pipemark(&words).stdout).unwrap();
    for stage in 1..=3 {
        assert!(share(&report, stage, "bytes_in_per_second") > 0.0, "{report}");
    }
    // Reads during a program's start don't count.
    let words = ["why", "--json", "/dev/stdout", "sleep 0.6 | sleep 0.6 | cat"];
    let report: Value = serde_json::from_str(&pipemark(&words).stdout).unwrap();
    for stage in report["stages"].as_array().unwrap() {
        assert_eq!(stage["bytes_in_per_second"], Value::Null, "{report}");
    }
}

#[test]
fn a_background_process_that_keeps_the_pipe_open_is_a_stage() {
    // The shell that starts `sleep 3` has ended before the pipeline is first scanned.
    let pipeline = "sh -c 'sleep 3 & echo started' | cat | cat";
    let sampled = || {
        without_contention(|| {
            let ended = pipemark(&["why", "--for", "2s", "--json", "/dev/stderr", pipeline]);
            assert_eq!(ended.stdout, "started\n");
            serde_json::from_str(ended.stderr.lines().next().unwrap()).unwrap()
        })
    };
    // On a busy machine, the process may not be found in time.
    let report = (0..4).map(|_| sampled()).find(|report| names(report).contains(&"sleep"));
    let report = report.expect("the background process is found");
    let verdict = &report["verdict"];
    assert_eq!(names(&report)[verdict["stage"].as_u64().unwrap() as usize - 1], "sleep", "{report}");
    assert_eq!((verdict["kind"].as_str(), verdict["cause"].as_str()), (Some("stage"), Some("sleeping")), "{report}");
}

#[test]
fn a_pipeline_sampled_for_a_time_continues_afterwards() {
    // The pipeline ends once the verdict is written.
    let pipeline = "yes | (for _ in $(seq 400); do sleep 0.05; [ -s verdict ] && echo later && exit 7; done)";
    for (verb, verdict, expected) in [("why", "--json verdict", "later\n7\n"), ("watch", ">/dev/null 2>verdict", "7\n")]
    {
        let script = format!("export SHELL=/bin/bash; {PIPEMARK} {verb} --for 1s {verdict} '{pipeline}'; echo $?");
        let ended = run(&["bash", "-c"], &[&script]);
        assert_eq!(ended.stdout, expected, "{verb}: {}", ended.stderr);
    }
}

/// Exit code and standard output of a pipeline, under `why` and without it.
fn outcomes_with_and_without_why(pipeline: &str) -> [(Option<i32>, String); 2] {
    let of = |ended: ProgramOutput| (ended.code(), ended.stdout);
    let with = of(run(&["env", "SHELL=/bin/bash", PIPEMARK], &["why", pipeline]));
    [with, of(run(&["bash", "-c"], &[pipeline]))]
}

#[test]
fn outputs_and_exit_codes_are_those_of_the_pipeline() {
    for pipeline in [
        "seq 100000 | grep 7 | sort -r | tail -3",
        "yes | head -3",
        "true | false",
        "set -o pipefail; yes | head -1; echo ${PIPESTATUS[@]}",
        "exit 42",
        "seq 10 | while read x; do echo $((x * x)); done | paste -sd+",
        "nonexistent-program | cat; exit $?",
        "seq 5 | tee >(cat >/dev/null) | wc -l",
    ] {
        let [with, without] = outcomes_with_and_without_why(pipeline);
        assert_eq!(with, without, "{pipeline}");
    }
}

#[test]
fn a_pipeline_that_dies_of_a_signal_is_followed() {
    let ended = pipemark(&["why", "--", "bash", "-c", "kill -TERM $$"]);
    assert_eq!(ended.status.signal(), Some(15), "{}", ended.stderr);
}

#[test]
fn a_signal_to_why_reaches_the_pipeline() {
    let script = "trap 'echo ended; exit 7' TERM; echo ready; touch ready; while :; do sleep 0.05; done";
    let started = RunningProgram::pipemark(&["why", script]);
    eventually("the trap is set", || started.directory().join("ready").exists());
    started.signal(Signal::TERM);
    let (ended, left) = started.end();
    assert_eq!((ended.code(), ended.stdout.as_str()), (Some(7), "ready\nended\n"), "{}", ended.stderr);
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn own_failures_have_codes_of_their_own() {
    let own = std::process::id().to_string();
    for (words, code) in [
        (vec!["why", "--", "/nonexistent"], 127),
        (vec!["why", "--", "/etc/passwd"], 126),
        (vec!["why", "a", "b"], 125),
        (vec!["why", ""], 125),
        (vec!["why", "sort"], 125),
        (vec!["watch", "no-such-verb"], 125),
        (vec!["tune", " "], 125),
        (vec!["why", "--unknown"], 125),
        (vec!["why", "2147483646"], 2),
        (vec!["watch", "2147483646"], 2),
        (vec!["why", "--name", "no-such-name"], 2),
        (vec!["why", "4294967297"], 2),
        (vec!["why", "1 99999999999999999999"], 2),
        (vec!["why", &own, "--for", "1ms"], 1),
        // The call fails before it starts the pipeline, which would print something.
        (vec!["why", "--json", "/nonexistent/file", "echo it ran"], 125),
    ] {
        let ended = pipemark(&words);
        assert_eq!(ended.code(), Some(code), "{words:?}: {}", ended.stderr);
        assert!(!ended.stderr.is_empty() && ended.stdout.is_empty(), "{words:?}");
        assert!(!ended.stderr.contains("had ended"), "{words:?}: {}", ended.stderr);
    }
}

#[test]
fn no_stage_is_blamed_if_only_sleeping_is_visible() {
    let slow = filter("time.sleep(0.02)");
    for pipeline in [format!("{slow} </dev/zero | cat | cat >/dev/null"), format!("yes | {slow} | cat >/dev/null")] {
        let report = Running::new(&pipeline).sample(&["--for", "1s", "--access", "stat"]);
        assert_eq!(report["verdict"]["kind"], "unknown", "{report}");
        assert!(!report["notes"].to_string().contains("another user"), "{report}");
    }
}

#[test]
fn a_full_device_is_an_error_with_a_sentence() {
    let own = std::process::id().to_string();
    let for_ever = ["--for", "9s", "--interval", "100ms"];
    let watch = [&["watch", &own][..], &for_ever].concat();
    let json = [&["watch", &own, "--json", "-"][..], &for_ever].concat();
    for (words, what) in
        [(vec!["why"], "text"), (vec!["why", &own, "--for", "100ms"], "text"), (watch.clone(), "line"), (json, "line")]
    {
        let full = fs::File::create("/dev/full").unwrap();
        let ended = Command::new(PIPEMARK).args(&words).stdout(full).stderr(Stdio::piped()).output().unwrap();
        let stderr = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(1), "{words:?}: {stderr}");
        let sentence = format!("pipemark: cannot write the {what} to standard output");
        assert!(stderr.starts_with(&sentence), "{words:?}: {stderr}");
    }
    // A reader that leaves early doesn't cause an error.
    let ended = run(&["bash", "-c"], &[&format!("{PIPEMARK} {} | true; echo ${{PIPESTATUS[0]}}", watch.join(" "))]);
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("0\n", ""));
}

#[test]
fn an_event_loop_that_waits_for_a_time_does_not_wait_for_the_network() {
    let loops = "/usr/bin/python3 -c 'import asyncio,os
async def work():
    while block := os.read(0, 65536):
        await asyncio.sleep(0.02)
        os.write(1, block)
asyncio.run(work())'";
    let report = Running::new(&format!("cat /dev/zero | {loops} | cat >/dev/null")).sample(&["--for", "1s"]);
    assert_eq!(report["verdict"]["stage"], 2, "{report}");
    assert_ne!(report["verdict"]["reason"], "waiting for the network", "{report}");
}

#[test]
fn a_thread_of_the_kernel_is_no_pipeline() {
    let is_of_kernel = fs::read_to_string("/proc/2/stat").is_ok_and(|stat| stat.contains("(kthreadd)"));
    if !is_of_kernel {
        return report_skip("threads of the kernel", "none can be seen here");
    }
    for verb in ["why", "watch", "tune"] {
        let ended = pipemark(&[verb, "2"]);
        assert_eq!(ended.code(), Some(1), "{verb}: {}", ended.stdout);
        assert!(ended.stderr.contains("is a kernel thread (kthreadd)") && ended.stdout.is_empty(), "{ended:?}");
    }
}

#[test]
fn a_pipeline_that_ends_while_sampled_is_no_error() {
    let running = Running::new("yes | head -c 200000000 | (sleep 2; cat) >/dev/null");
    // If it sampled on after the pipeline's end, the time limit of tests would end it.
    let ended = pipemark(&["why", &running.pid(), "--for", "5min", "--json", "-"]);
    assert_eq!(ended.code(), Some(0), "{}", ended.stderr);

    let running = Running::new("yes | cat >/dev/null");
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", running.pid())).unwrap();
    let cat = children.split_whitespace().last().unwrap().to_owned();
    assert!(Command::new("kill").args(["-STOP", &cat]).status().unwrap().success());
    let report = running.sample(&["--for", "1s"]);
    assert_eq!((&report["verdict"]["stage"], &report["verdict"]["reason"]), (&2.into(), &"stopped".into()), "{report}");
}

#[test]
fn live_pipelines_are_listed_to_choose_from() {
    let running = Running::new("yes listed-by-a-test | sleep 600");
    let listed = pipemark(&["why", "--json", "-"]);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    let all = listed.as_array().unwrap();
    let ours = all.iter().find(|live| live["stages"][0] == "yes listed-by-a-test").expect("it is listed");
    assert_eq!(ours["stages"][1], "sleep 600");
    for verb in ["why", "tune"] {
        let advice = format!("to select one: pipemark {verb} PID");
        assert!(pipemark(&[verb]).stdout.contains(&advice), "{advice}");
    }
    drop(running);
}

#[test]
fn no_touch_opens_no_pipe() {
    if !Command::new("strace").args(["-o", "/dev/null", "true"]).status().is_ok_and(|status| status.success()) {
        return report_skip("why --no-touch under strace", "strace can't trace here");
    }
    let running = Running::new(IDLE);
    let pid = running.pid();
    let opened = |flags: &[&str]| {
        let mut words = vec![
            "-f",
            "-e",
            "trace=open,openat,pidfd_getfd",
            "-o",
            "/dev/stderr",
            PIPEMARK,
            "why",
            &pid,
            "--for",
            "600ms",
        ];
        words.extend(flags);
        let ended = run(&["strace"], &words);
        let opens = ended.stderr.lines().filter(|line| line.contains("/fd/") && !line.contains("O_DIRECTORY"));
        opens.count() + ended.stderr.matches("pidfd_getfd").count()
    };
    assert_eq!(opened(&["--no-touch"]), 0);
    assert!(opened(&[]) > 0, "the test would see it");
}

/// Opening files for each sample would take a tenth of the pipeline's CPU time.
#[test]
fn sampling_its_own_pipeline_opens_no_files() {
    if !Command::new("strace").args(["-o", "/dev/null", "true"]).status().is_ok_and(|status| status.success()) {
        return report_skip("what a sample opens, under strace", "strace can't trace here");
    }
    let words = ["-e", "trace=openat,pidfd_open,ppoll", "-o", "/dev/stderr", PIPEMARK, "why", "sleep 3 | sleep 3"];
    let trace = run(&["strace"], &words).stderr;
    let calls: Vec<&str> = trace.lines().filter_map(|line| line.split_once('(').map(|(call, _)| call)).collect();
    let waits = calls.iter().filter(|call| **call == "ppoll").count();
    let alone = calls.windows(2).filter(|pair| *pair == ["ppoll", "ppoll"]).count();
    assert!(waits > 15, "{waits} waits");
    assert!(trace.matches("pidfd_open").count() <= 2, "{trace}");
    assert!(alone * 2 > waits, "between most waits nothing is opened: {alone} of {waits}");
}

#[test]
fn watch_prints_a_line_for_each_interval_off_a_terminal() {
    let running = Running::new(&format!("cat /dev/zero | {} | cat >/dev/null", filter("time.sleep(0.02)")));
    let pid = running.pid();
    let words = ["watch", &pid, "--for", "6s", "--interval", "1s"];
    let (lines, json) = std::thread::scope(|scope| {
        let json = scope.spawn(|| pipemark(&[&words[..], &["--json", "-"]].concat()));
        (pipemark(&words), json.join().unwrap())
    });
    assert_eq!((lines.code(), json.code()), (Some(0), Some(0)), "{}{}", lines.stderr, json.stderr);
    assert!(lines.stdout.lines().count() >= 2 && json.stdout.lines().count() >= 2, "{}{}", lines.stdout, json.stdout);
    assert!(lines.stdout.lines().all(|line| line.contains("cat | python3 | cat: ")), "{}", lines.stdout);
    assert!(lines.stdout.contains("cat | python3 | cat: python3 holds the pipeline back"), "{}", lines.stdout);
    // On a busy machine, an interval may show too little for a verdict, but never another stage.
    let stages = json.stdout.lines().map(|line| {
        let report: Value = serde_json::from_str(line).unwrap();
        report["verdict"]["stage"].as_u64()
    });
    let named: Vec<u64> = stages.flatten().collect();
    assert!(!named.is_empty() && named.iter().all(|stage| *stage == 2), "{}", json.stdout);
}

#[test]
fn watch_fills_a_terminal_and_leaves_it_as_it_was() {
    let running = Running::new(IDLE);
    let watch = format!("stty rows 24 cols 80; {PIPEMARK} watch {} --for 4s", running.pid());
    let ended = run(&["script"], &["-qec", &watch, "/dev/null"]);
    assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
    let (enter, leave) = (ended.stdout.find("\x1b[?1049h"), ended.stdout.rfind("\x1b[?1049l"));
    assert!(enter.is_some() && leave > enter, "{:?}", ended.stdout);
    assert!(!ended.stdout.contains("frozen"), "no key was pressed: {:?}", ended.stdout);
    assert!(ended.stdout.contains("yes | sleep") && ended.stdout.contains("q quit"), "{:?}", ended.stdout);
}

#[test]
fn a_terminal_without_cursor_control_gets_lines() {
    let running = Running::new(IDLE);
    for kind in ["TERM=dumb", "-u TERM"] {
        let watch = format!("env {kind} {PIPEMARK} watch {} --for 2s --interval 500ms", running.pid());
        let ended = run(&["script"], &["-qec", &watch, "/dev/null"]);
        assert_eq!(ended.code(), Some(0), "{kind}: {}", ended.stderr);
        assert!(ended.stdout.contains("yes | sleep: ") && !ended.stdout.contains('\x1b'), "{kind}: {:?}", ended.stdout);
    }
}

#[test]
fn the_key_n_shows_the_next_pipeline() {
    let running = Running::new(IDLE);
    let watch = format!("stty rows 24 cols 80; {PIPEMARK} watch {}", running.pid());
    // Keys are repeated because those typed before `watch` listens are lost.
    let keys = "(for _ in 1 2 3 4; do sleep 1; printf n; done; while printf q; do sleep 1; done) 2>/dev/null";
    // The next pipeline belongs to another test and may end while `watch` opens it.
    let screens = || {
        let ended = run(&["bash", "-c"], &[&format!("{keys} | script -qec '{watch}' /dev/null")]);
        ended.stdout.matches("\x1b[?1049h").count()
    };
    assert!((0..3).any(|_| screens() >= 2));
}

#[test]
fn a_record_is_kept_shown_and_drawn() {
    let script = format!(
        "{PIPEMARK} why --record -- 'yes | (sleep 1.2; exec head -c 1000000000) >/dev/null' || exit
        {PIPEMARK} history; {PIPEMARK} history show; {PIPEMARK} history export -o kept.json; {PIPEMARK} report -o -
        {PIPEMARK} history import kept.json; {PIPEMARK} report --terminal
        {PIPEMARK} compare 1 kept.json; echo compare ended with $?"
    );
    let ended = run(&["bash", "-c"], &[&script]);
    assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
    assert!(ended.stderr.contains("recorded as run 1"), "{}", ended.stderr);
    for part in [
        "why · yes | (sleep 1.2; exec head",
        "run 1",
        "<!DOCTYPE html>",
        "Activity of each stage over time",
        "1 yes",
        "2 head",
        "starved",
    ] {
        assert!(ended.stdout.contains(part), "{part}: {}", ended.stdout);
    }
    assert!(ended.stderr.contains("1 is a recording of 'pipemark why'"), "{}", ended.stderr);
    assert!(ended.stdout.contains("compare ended with 2"));
    // A record has at most 720 intervals of each stage, however long the pipeline ran.
    assert!(ended.stdout.len() < 20_000_000);
}

#[test]
fn output_matches_the_schema() {
    let schema = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/why.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let running = Running::new("cat /dev/zero | tr a b | (sleep 0.5; cat) >/dev/null");
    let pid = running.pid();
    let watched = pipemark(&["watch", &pid, "--for", "2s", "--interval", "500ms", "--json", "-"]).stdout;
    let short = pipemark(&["why", "--json", "/dev/stdout", "true"]).stdout;
    let all = watched.lines().chain(short.lines()).map(|line| serde_json::from_str(line).unwrap());
    let all: Vec<Value> = all.chain([running.sample(&["--for", "1s"])]).collect();
    assert!(all.len() >= 3, "{watched} {short}");
    for report in &all {
        assert_eq!(schema_violation(&schema, &schema, report, "report"), None);
        let mut wrong = report.clone();
        wrong["verdict"]["kind"] = "slow".into();
        assert!(schema_violation(&schema, &schema, &wrong, "report").unwrap().contains("kind"));
    }
}

#[test]
fn an_ignored_sigpipe_stays_ignored_in_the_pipeline() {
    let mask = "grep SigIgn /proc/self/status";
    let with = |start: &str| run(&["bash", "-c"], &[&format!("{start}; {mask}; {PIPEMARK} why '{mask}'")]).stdout;
    for start in ["trap '' PIPE", "trap - PIPE"] {
        let masks = with(start);
        let masks: Vec<&str> = masks.lines().collect();
        assert_eq!((masks.len(), masks[0]), (2, masks[1]), "{start}");
    }
    assert_ne!(with("trap '' PIPE"), with("trap - PIPE"), "the test would see it");
}

#[test]
fn a_trace_gives_the_same_verdict_later() {
    let directory = TempDir::new().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let pipemark = |words: &[&str]| Command::new(PIPEMARK).args(words).output().unwrap();
    let (trace, json) = (path("slow.trace"), path("why.json"));
    let pipeline = "i=0; while [ $i -lt 9 ]; do echo line; sleep 0.1; i=$((i+1)); done | grep -v '/secret/file' | cat";
    let first = pipemark(&["why", "--trace", &trace, "--json", &json, pipeline]);
    assert_eq!(first.status.code(), Some(0), "{}", String::from_utf8_lossy(&first.stderr));
    let again = pipemark(&["why", "--replay", &trace, "--json", "-"]);
    assert_eq!(String::from_utf8_lossy(&again.stdout), fs::read_to_string(&json).unwrap());
    let shown = pipemark(&["why", "--replay", &trace]);
    assert!(shown.status.success() && String::from_utf8_lossy(&shown.stdout).contains("grep"));
    let public = path("public.trace");
    assert!(pipemark(&["why", "--replay", &trace, "--trace", &public, "--redact"]).status.success());
    let redacted = pipemark(&["why", "--replay", &public, "--json", "-"]);
    let (one, other): (Value, Value) =
        (serde_json::from_slice(&again.stdout).unwrap(), serde_json::from_slice(&redacted.stdout).unwrap());
    for key in ["kind", "stage", "pipe", "cause"] {
        assert_eq!(one["verdict"][key], other["verdict"][key], "{key}");
    }
    assert!(!String::from_utf8_lossy(&redacted.stdout).contains("secret"));
    // A file that is no trace, or only a part of one.
    let part = path("part.trace");
    fs::write(&part, &fs::read(&trace).unwrap()[..300]).unwrap();
    for (file, says) in [(&part, "cut off"), (&json, "isn't a trace"), (&path("none"), "No such file")] {
        let output = pipemark(&["why", "--replay", file]);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(125), 0), "{error}");
        assert!(error.contains("cannot read the trace") && error.contains(says), "{error}");
    }
}
