//! `pipemark why` with many processes, threads and pipes, with processes that come and go, and with a first thread that
//! has ended. bench/why_sizes.py measures what that costs.

use serde_json::Value;

use crate::program::{eventually, pipemark, without_contention};
use crate::why::{Running, filter};

/// Python that starts `count` children, each with `work`, and waits.
fn parent(count: usize, work: &str) -> String {
    format!(
        "python3 -c 'import os, signal, time
for n in range({count}):
    if os.fork() == 0:
        {work}
        os._exit(0)
signal.pause()'"
    )
}

fn sample(words: &[&str]) -> Value {
    without_contention(|| {
        let ended = pipemark(&[&["why", "--json", "-"], words].concat());
        assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
        serde_json::from_str(&ended.stdout).unwrap()
    })
}

#[test]
fn hundreds_of_children_on_one_pipe_are_one_stage() {
    let children = parent(400, "\n        while os.write(1, b\"x\"): time.sleep(0.5)");
    let pipeline = Running::new(&format!("{children} | cat"));
    std::thread::sleep(std::time::Duration::from_secs(1));
    let report = sample(&[&pipeline.pid()]);
    let stages = report["stages"].as_array().unwrap();
    assert_eq!(stages.len(), 2, "{report}");
    assert_eq!(stages[0]["processes"], 401, "{report}");
    assert!(report["samples"].as_u64().unwrap() >= 2, "{report}");
}

#[test]
fn thousands_of_children_on_one_pipe_are_one_stage() {
    let children = parent(2000, "\n        while os.write(1, b\"x\"): time.sleep(2)");
    let pipeline = Running::new(&format!("{children} | cat"));
    std::thread::sleep(std::time::Duration::from_secs(2));
    let report = sample(&["--for", "4s", &pipeline.pid()]);
    assert_eq!(report["stages"][0]["processes"], 2001, "{report}");
    assert!(report["samples"].as_u64().unwrap() >= 20, "{report}");
    assert_eq!(
        (&report["verdict"]["stage"], &report["verdict"]["reason"]),
        (&1.into(), &"sleeping".into()),
        "{report}"
    );
}

#[test]
fn a_process_whose_first_thread_has_ended_is_a_stage() {
    // The first thread calls exit(2), which ends that thread only.
    let leader = "python3 -c 'import ctypes, os, platform, threading, time
def work():
    while block := os.read(0, 65536):
        time.sleep(0.02)
        while block: block = block[os.write(1, block):]
    os._exit(0)
threading.Thread(target=work).start()
ctypes.CDLL(None).syscall(60 if platform.machine() == \"x86_64\" else 93, 0)'";
    let pipeline = Running::new(&format!("yes | {leader} | cat"));
    let report = sample(&[&pipeline.pid()]);
    assert_eq!(report["stages"].as_array().unwrap().len(), 3, "{report}");
    assert_eq!((&report["verdict"]["kind"], &report["verdict"]["stage"]), (&"stage".into(), &2.into()), "{report}");
    assert_eq!(report["verdict"]["reason"], "sleeping", "{report}");
    assert_eq!(report["stages"][1]["hidden"], false);
}

#[test]
fn processes_that_end_while_they_are_looked_for_by_name_are_no_error() {
    // A copy of a program under another name, which no other test runs.
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("comesandgoes");
    // The copy isn't written by this process, because processes of other tests would inherit the descriptor.
    assert!(std::process::Command::new("cp").arg("/bin/sleep").arg(&program).status().unwrap().success());
    let program = program.to_str().unwrap();
    let _pipeline = Running::new(&format!("(while :; do {program} 1; done & while :; do {program} 0.7; done) | cat"));
    for _ in 0..20 {
        let ended = pipemark(&["why", "--name", "comesandgoes", "--for", "50ms", "--json", "-"]);
        assert!(!ended.stderr.contains("there is no process"), "{}", ended.stderr);
    }
}

#[test]
fn the_list_has_a_pipeline_among_thousands_of_processes() {
    let _others = Running::new(&format!("exec {}", parent(3000, "signal.pause()")));
    let pipeline = Running::new(&format!("yes | {} | cat", filter("time.sleep(0.02)")));
    std::thread::sleep(std::time::Duration::from_secs(2));
    let listed = pipemark(&["why", "--json", "-"]);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    let found = listed.as_array().unwrap().iter().find(|one| one["stages"][1].to_string().contains("time.sleep(0.02)"));
    assert_eq!(found.unwrap()["stages"].as_array().unwrap().len(), 3, "{listed}");
    let report = sample(&[&pipeline.pid()]);
    assert_eq!((&report["verdict"]["kind"], &report["verdict"]["stage"]), (&"stage".into(), &2.into()), "{report}");
}

#[test]
#[ignore = "long"]
fn long_the_holder_of_a_pipe_is_found_among_a_thousand_processes() {
    let others = Running::new(&format!("exec {}", parent(1000, "signal.pause()")));
    let children = format!("/proc/{0}/task/{0}/children", others.pid());
    let count = || std::fs::read_to_string(&children).unwrap().split_ascii_whitespace().count();
    eventually("all processes run", || count() == 1000);
    let directory = tempfile::tempdir().unwrap();
    let fifo = directory.path().join("fifo");
    let fifo = fifo.to_str().unwrap();
    assert!(std::process::Command::new("mkfifo").arg(fifo).status().unwrap().success());
    let report: Value = without_contention(|| {
        // The pipeline ends when the holder does.
        let _holder = Running::new(&format!("exec 9<>{fifo}; exec sleep 6"));
        let ended = pipemark(&["why", "--for", "3s", "--json", "-", &format!("cat {fifo} | cat")]);
        serde_json::from_str(&ended.stdout).unwrap()
    });
    assert_eq!(report["verdict"]["kind"], "peer", "{report}");
    assert!(report["verdict"]["text"].as_str().unwrap().contains("sleep"), "{report}");
}
