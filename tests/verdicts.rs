//! Verdicts of `why` on small pipelines of each kind: which stage is the bottleneck, and why.

use serde_json::Value;

use crate::program::{PIPEMARK, ProgramOutput, eventually, pipemark, report_skip, run, without_contention};
use crate::why::Running;

/// The report on a pipeline that `why` starts.
fn run_why(words: &[&str]) -> Value {
    let all = [&["why", "--for", "2500ms", "--json", "/dev/stderr"][..], words].concat();
    // `why` gets a higher priority than parallel tests, where permitted.
    without_contention(|| report(run(&["nice", "-n", "-10", "timeout", "-k", "1", "5", PIPEMARK], &all)))
}

/// The JSON report on standard error.
fn report(ended: ProgramOutput) -> Value {
    let line = ended.stderr.lines().find(|line| line.starts_with('{')).unwrap_or_else(|| panic!("{ended:?}"));
    serde_json::from_str(line).unwrap()
}

/// The report on a pipeline that is already running.
fn why_report(pipeline: &str) -> Value {
    let running = Running::new(pipeline);
    without_contention(|| {
        let ended = pipemark(&["why", &running.pid(), "--for", "4s", "--json", "-"]);
        serde_json::from_str(&ended.stdout).unwrap()
    })
}

/// The kind of verdict, and the name of its stage.
fn judged(report: &Value) -> (String, String) {
    let verdict = &report["verdict"];
    let stage = verdict["stage"].as_u64().map(|number| &report["stages"][number as usize - 1]["name"]);
    let name = stage.and_then(Value::as_str).unwrap_or("none");
    (verdict["kind"].as_str().unwrap().to_owned(), name.to_owned())
}

fn pair(kind: &str, name: &str) -> (String, String) {
    (kind.to_owned(), name.to_owned())
}

fn has(program: &str) -> bool {
    let found = std::process::Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    let found = found.is_ok_and(|output| output.status.success());
    if !found {
        report_skip("a verdict", format!("{program} isn't here"));
    }
    found
}

/// The path of the system's python3. A python3 elsewhere may be a script that starts this one.
const PYTHON: &str = "/usr/bin/python3";

/// A Python program that hashes the bytes that its child sends.
const HASHING_PARENT: &str = "import hashlib,subprocess
child = subprocess.Popen(['cat', '/dev/zero'], stdout=subprocess.PIPE)
h = hashlib.sha256()
while block := child.stdout.read(65536): h.update(block)";

#[test]
fn a_program_that_reads_its_child_is_a_stage() {
    let report = run_why(&["--", PYTHON, "-c", HASHING_PARENT]);
    assert_eq!(judged(&report), pair("stage", "python3"), "{report}");
    assert_eq!(report["stages"].as_array().unwrap().len(), 2, "{report}");
}

/// The kernel adds the time of reaped children to their parent's.
#[test]
fn the_time_of_a_stage_is_not_counted_again_for_the_shell_that_started_it() {
    // On a busy machine, `why` may begin to sample when sort has ended.
    let mut reports = (0..6).map(|_| why_report("bash -c 'seq 5000000 | sort -rn | tail -n 1; sleep 1' | cat"));
    let report = reports.find(|report| report["stages"].as_array().unwrap().len() == 4).expect("all stages are seen");
    assert_eq!(report["stages"][1]["name"], "sort", "{report}");
    let figure = |stage: usize, key: &str| report["stages"][stage][key].as_f64().unwrap_or(0.0);
    let of_shell = figure(2, "cpu") + figure(2, "cpu_of_children");
    // What sort used since it was last read is still counted for both.
    assert!(of_shell < 0.8 * figure(1, "cpu"), "{report}");
}

#[test]
#[ignore = "long"]
fn long_a_program_that_reads_its_child_is_a_stage_however_it_is_started() {
    let in_shell = format!("{PYTHON} -c \"{HASHING_PARENT}\"");
    let after = format!("{in_shell}; true");
    for words in [&["--", PYTHON, "-c", HASHING_PARENT][..], &[&in_shell], &[&after]] {
        let report = run_why(words);
        assert_eq!(judged(&report), pair("stage", "python3"), "{words:?}: {report}");
        assert_eq!(report["stages"].as_array().unwrap().len(), 2, "{words:?}: {report}");
    }
    let report = why_report(&in_shell);
    assert_eq!(judged(&report), pair("stage", "python3"), "{report}");
}

#[test]
#[ignore = "long"]
fn long_a_child_over_a_pair_of_sockets_is_a_stage() {
    if !has("node") {
        return;
    }
    let script = "const h=require('crypto').createHash('sha512');
require('child_process').spawn('cat',['/dev/zero']).stdout.on('data',b=>{for(let i=0;i<9;i++)h.update(b)})";
    let report = run_why(&["--", "node", "-e", script]);
    assert_eq!(judged(&report), pair("stage", "node"), "{report}");
    let names: Vec<&Value> = report["stages"].as_array().unwrap().iter().map(|stage| &stage["name"]).collect();
    assert!(names.contains(&&"cat".into()), "{report}");
    assert_eq!(report["pipes"][0]["is_socket"], true, "{report}");
}

/// A Python program that sends to its child through multiprocessing.Pipe. Each of the two processes holds both ends.
const SENDING_PARENT: &str = "import hashlib,multiprocessing
def work(connection):
    while block := connection.recv_bytes(): hashlib.sha512(block * 4)
ours, theirs = multiprocessing.get_context('fork').Pipe()
child = multiprocessing.get_context('fork').Process(target=work, args=(theirs,))
child.start()
block = bytes(100000)
while True: ours.send_bytes(block)";

#[test]
#[ignore = "long"]
fn long_processes_over_another_pair_of_sockets_are_two_stages() {
    let report = run_why(&["--", PYTHON, "-c", SENDING_PARENT]);
    assert_eq!(judged(&report), pair("stage", "python3"), "{report}");
    assert_eq!((report["stages"].as_array().unwrap().len(), &report["verdict"]["stage"]), (2, &2.into()), "{report}");
}

#[test]
fn parents_that_only_start_and_wait_are_no_stages() {
    assert_no_stages(&["env A=1 sh -c 'timeout 9 yes | cat >/dev/null; true'; true"]);
}

#[test]
#[ignore = "long"]
fn long_parents_that_only_start_and_wait_are_no_stages() {
    assert_no_stages(&["timeout 9 yes | cat >/dev/null", "env A=1 sh -c 'yes | cat >/dev/null; true'; true"]);
}

fn assert_no_stages(pipelines: &[&str]) {
    for pipeline in pipelines {
        let report = run_why(&[pipeline]);
        let names: Vec<&str> =
            report["stages"].as_array().unwrap().iter().map(|stage| stage["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["yes", "cat"], "{pipeline}: {report}");
    }
}

/// The small cases of tests/real measure the same two pipelines.
#[test]
#[ignore = "long"]
fn long_small_pieces_are_counted_and_their_writer_is_named() {
    for (pipeline, stage, most) in [
        ("perl -e '$|=1; print \"row $_ of it\\n\" for 1..1e9' | wc -l", "perl", 40.0),
        ("dd if=/dev/zero bs=256 status=none | dd of=/dev/null bs=64k status=none", "dd", 256.0),
    ] {
        let report = why_report(pipeline);
        assert_eq!(judged(&report), pair("calls", stage), "{pipeline}: {report}");
        assert_eq!((&report["verdict"]["stage"], &report["verdict"]["bound"]), (&1.into(), &Value::Null), "{report}");
        let bytes = report["stages"][0]["bytes_per_write"].as_f64().unwrap();
        assert!(bytes <= most && bytes > 10.0, "{bytes}: {report}");
        assert!(report["verdict"]["text"].as_str().unwrap().contains("bytes per call"), "{report}");
        assert!(!report["verdict"]["remedies"].as_array().unwrap().is_empty(), "{report}");
    }
}

#[test]
fn a_shell_that_reads_byte_by_byte_is_named() {
    let report = why_report("yes 'a line of text' | while read -r x; do :; done");
    assert_eq!(judged(&report), pair("calls", "bash"), "{report}");
    assert_eq!(report["verdict"]["remedies"][0]["id"], "shell-read-loop", "{report}");
}

#[test]
fn output_that_stays_in_a_buffer_is_held() {
    let report = why_report("(while :; do echo a hit; sleep 0.1; done) | grep hit | cat >/dev/null");
    assert_eq!(judged(&report), pair("held", "grep"), "{report}");
    // The loop is a subshell, which the arguments of processes don't describe, so there is no command to paste.
    let remedy = &report["verdict"]["remedies"][0];
    assert!(remedy["text"].as_str().unwrap().contains("--line-buffered"), "{report}");
    assert_eq!(remedy["command"], "", "{report}");
    let report = why_report("(while :; do echo a hit; sleep 0.1; done) | grep --line-buffered hit | cat >/dev/null");
    assert_ne!(report["verdict"]["kind"], "held", "{report}");
}

#[test]
fn a_cycle_of_waits_is_named_with_its_descriptors() {
    let child = "import sys; sys.stderr.write('x' * 1000000); print('done')";
    let parent = format!(
        "import subprocess as s
child = s.Popen(['{PYTHON}', '-c', \"\"\"{child}\"\"\"], stdout=s.PIPE, stderr=s.PIPE)
child.stdout.read()"
    );
    let report = run_why(&["--", PYTHON, "-c", &parent]);
    let verdict = &report["verdict"];
    assert_eq!(
        (&verdict["kind"], &verdict["cause"]),
        (&"deadlock".into(), &"deadlock: stderr unread".into()),
        "{report}"
    );
    let text = verdict["text"].as_str().unwrap();
    assert!(text.contains("room in the pipe on its standard error") && text.contains("PID"), "{text}");
}

#[test]
fn bursts_that_no_pipe_holds_are_measured() {
    let reader = "/usr/bin/python3 -c 'import os,time
while True:
    left = 32 << 20
    while left: left -= len(os.read(0, min(left, 65536)))
    time.sleep(0.5)'";
    let writer = "/usr/bin/python3 -c 'import os,time
block = bytes(1 << 20)
while True:
    time.sleep(0.012)
    os.write(1, block)'";
    let report = why_report(&format!("{writer} | {reader}"));
    assert_eq!(report["verdict"]["kind"], "burst", "{report}");
    let ids: Vec<&Value> = report["verdict"]["remedies"].as_array().unwrap().iter().map(|one| &one["id"]).collect();
    assert_eq!(ids[0], "burst-relay-buffer", "{report}");
    assert!(!report["verdict"]["advice"].to_string().contains("tune"), "{report}");
}

#[test]
fn starting_processes_is_work() {
    let report = why_report("yes | while read x; do /bin/true; done | cat >/dev/null");
    assert_eq!(judged(&report), pair("starts", "bash"), "{report}");
    assert!(report["stages"][1]["starts_per_second"].as_f64() > Some(20.0), "{report}");
}

#[test]
fn the_process_beyond_a_socket_is_named() {
    let both = "/usr/bin/python3 -c 'import socket,time,os
a, b = socket.socketpair()
if os.fork():
    b.close()
    while block := os.read(0, 65536): a.sendall(block)
else:
    a.close()
    while b.recv(65536): time.sleep(0.01)'";
    let report = why_report(&format!("yes | {both}"));
    let (kind, stage) = judged(&report);
    // Both processes belong to one stage, so the verdict may name the stage instead of a peer.
    assert!(kind == "peer" || kind == "stage", "{report}");
    assert_eq!(stage, "python3", "{report}");
    let serve = "import socket,time,sys,os
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); c, _ = s.accept()
while c.recv(4096): time.sleep(0.02)";
    let send = "import socket,sys,os
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])
while block := os.read(0, 65536): s.sendall(block)";
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let mut server = std::process::Command::new(PYTHON).args(["-c", serve]).arg(&path).spawn().unwrap();
    eventually("the server listens", || path.exists());
    let report = why_report(&format!("yes | {PYTHON} -c '{send}' {}", path.display()));
    let _ = server.kill();
    let _ = server.wait();
    assert_eq!(judged(&report), pair("peer", "python3"), "{report}");
    assert_eq!(report["stages"][1]["peer"]["pid"], server.id(), "{report}");
    assert!(report["verdict"]["text"].as_str().unwrap().contains("over a Unix socket"), "{report}");
}

#[test]
#[ignore = "long"]
fn long_stages_are_called_as_they_were_typed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("zeros.gz");
    let made = format!("head -c 400000000 /dev/zero | gzip -1 >{0}", path.display());
    assert_eq!(run(&["sh", "-c"], &[&made]).code(), Some(0));
    let report = why_report(&format!("while :; do zcat {} | cat; done >/dev/null", path.display()));
    assert_eq!(report["stages"][0]["name"], "zcat", "{report}");
}
