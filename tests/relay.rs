//! `pipemark relay` on the command line: between programs, files and devices, with readers that leave early, full disks
//! and signals.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;

use crate::program::{PIPEMARK, eventually, report_skip};
use rustix::process::{Pid, Signal, kill_process};

fn relay(words: &[&str]) -> Command {
    let mut command = Command::new(PIPEMARK);
    command.arg("relay").args(words);
    command
}

/// Runs a pipeline in bash, with the program as $RELAY.
fn shell(script: &str) -> Output {
    Command::new("bash").args(["-c", script]).env("RELAY", format!("{PIPEMARK} relay")).output().expect("bash starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Bytes that depend on their position.
fn content(bytes: usize) -> Vec<u8> {
    (0..bytes as u64).map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory for the test")
}

fn file(directory: &Path, bytes: &[u8]) -> PathBuf {
    let path = directory.join("content");
    fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn output_equals_input() {
    let directory = directory();
    let bytes = content(5_000_003);
    let path = file(directory.path(), &bytes);
    let path = path.to_str().unwrap();
    for script in [
        format!("$RELAY <{path}"),
        format!("cat {path} | $RELAY"),
        format!("cat {path} | $RELAY | cat"),
        format!("$RELAY <{path} | $RELAY --capacity 4k | $RELAY --capacity keep | $RELAY --method read-write"),
        format!("$RELAY <{path} >{path}.out && cat {path}.out"),
        format!("$RELAY <{path} | $RELAY >>{path}.appended && cat {path}.appended"),
    ] {
        let output = shell(&script);
        assert!(output.status.success(), "{script}: {}", text(&output.stderr));
        assert!(output.stdout == bytes, "{script}: {} bytes of {}", output.stdout.len(), bytes.len());
        assert!(output.stderr.is_empty(), "{script}: {}", text(&output.stderr));
    }
}

/// Starts `stages` as a pipeline, writes `bytes` to the first and returns the output of the last.
fn pipe_through(stages: impl Iterator<Item = Command>, bytes: Vec<u8>) -> Vec<u8> {
    let (mut reader, mut first) = std::io::pipe().unwrap();
    let mut children: Vec<Child> = Vec::new();
    for mut stage in stages {
        let (next, writer) = std::io::pipe().unwrap();
        children.push(stage.stdin(std::mem::replace(&mut reader, next)).stdout(writer).spawn().unwrap());
    }
    let source = thread::spawn(move || first.write_all(&bytes).unwrap());
    let mut arrived = Vec::new();
    reader.read_to_end(&mut arrived).unwrap();
    source.join().unwrap();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    arrived
}

#[test]
fn long_chains_pass_every_byte() {
    let bytes = content(3_000_001);
    let stage = |n: usize| match n % 3 {
        0 => Command::new("cat"),
        1 => relay(&["--method", "read-write"]),
        _ => relay(&[]),
    };
    let mixed = (0..50).map(stage);
    assert!(pipe_through(mixed, bytes.clone()) == bytes, "a mixed chain");
    assert!(pipe_through((0..256).map(|_| relay(&[])), bytes.clone()) == bytes, "a chain of 256");
}

#[test]
fn a_reader_that_leaves_early_ends_the_relay_like_cat() {
    for method in ["fastest", "read-write"] {
        let output = shell(&format!(
            "yes | $RELAY --method {method} | head -n 1; echo \"${{PIPESTATUS[*]}}\"; $RELAY </dev/zero | head -c 3 | wc -c"
        ));
        assert_eq!(text(&output.stdout), "y\n141 141 0\n3\n");
        assert_eq!(text(&output.stderr), "");
        // If SIGPIPE is ignored, a failed write ends the relay instead of the signal.
        let output =
            shell(&format!("trap '' PIPE; yes 2>&- | $RELAY --method {method} | head -n 1; echo ${{PIPESTATUS[1]}}"));
        assert_eq!(text(&output.stdout), "y\n1\n");
        assert!(text(&output.stderr).contains("Broken pipe"), "{}", text(&output.stderr));
    }
}

#[test]
fn stats_are_one_line_on_standard_error() {
    let directory = directory();
    let path = file(directory.path(), &content(300_000));
    let run = |words: &[&str], output: Stdio| {
        let child = relay(words).stdin(File::open(&path).unwrap()).stdout(output).stderr(Stdio::piped()).spawn();
        text(&child.unwrap().wait_with_output().unwrap().stderr)
    };
    let line = run(&["--stats", "--capacity", "128k"], Stdio::piped());
    assert!(line.starts_with("pipemark relay: 300000 bytes in ") && line.ends_with("a pipe of 128 KiB\n"), "{line}");
    assert!(line.contains("by splice") && line.lines().count() == 1, "{line}");
    let append = OpenOptions::new().append(true).create(true).open(directory.path().join("log")).unwrap();
    let line = run(&["--stats"], append.into());
    assert!(line.contains("by read and write") && line.contains("was refused"), "{line}");
    assert_eq!(run(&[], Stdio::null()), "");
}

#[test]
fn errors_are_reported() {
    let directory = directory();
    let path = file(directory.path(), b"abc");
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = relay(&[]).stdin(File::open(&path).unwrap()).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("No space left on device"), "{}", text(&output.stderr));

    let itself = OpenOptions::new().append(true).open(&path).unwrap();
    let output = relay(&[]).stdin(File::open(&path).unwrap()).stdout(itself).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("the same file"), "{}", text(&output.stderr));
    assert_eq!(fs::read(&path).unwrap(), b"abc");
    let shared = File::options().read(true).write(true).open(&path).unwrap();
    let output = relay(&["--buffer", "1m"]).stdin(shared.try_clone().unwrap()).stdout(shared).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("share one position"), "{}", text(&output.stderr));
    assert_eq!(fs::read(&path).unwrap(), b"abc");

    for (words, expected) in [
        (&["--capacity", "0"][..], "out of range"),
        (&["--capacity", "huge"], "is not a size"),
        (&["--method", "magic"], "read-write"),
        (&["--nosuch"], "unexpected argument"),
    ] {
        let output = relay(words).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(text(&output.stderr).contains(expected), "{words:?}: {}", text(&output.stderr));
    }
}

#[test]
fn a_refused_capacity_does_not_stop_the_relay() {
    // pipe-max-size limits root only if it lacks its capabilities.
    let output = shell(
        "drop=; [ $(id -u) = 0 ] && drop='setpriv --bounding-set=-sys_resource,-sys_admin --inh-caps=-all'
         echo all of it | $drop $RELAY --capacity 1g | cat",
    );
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "all of it\n");
    let stderr = text(&output.stderr);
    assert!(stderr.contains("a pipe capacity of 1 GiB was refused") && stderr.contains("continuing with"), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "of both pipes once: {stderr}");
    // A pipe that root has made larger than pipe-max-size keeps its capacity.
    let (input, writer) = std::io::pipe().unwrap();
    if rustix::process::geteuid().is_root() && pipeio::pipe::set_capacity(&writer, 4 << 20).is_ok() {
        let mut child = Command::new("setpriv")
            .args(["--bounding-set=-sys_resource,-sys_admin", "--inh-caps=-all", PIPEMARK, "relay", "--capacity", "1g"])
            .stdin(input.try_clone().unwrap())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(writer);
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        assert!(child.wait().unwrap().success() && stderr.contains("was refused"), "{stderr}");
        assert!(pipeio::pipe::capacity(&input).unwrap() >= 4 << 20);
    }
}

#[test]
fn signals_end_the_relay_like_any_filter() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let (reader, mut writer) = std::io::pipe().unwrap();
        // The process that runs the tests may ignore signals (as under nohup), and a child inherits that.
        let mut child = Command::new("env")
            .args(["--default-signal=TERM,INT,HUP", PIPEMARK, "relay"])
            .stdin(reader)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // Once a byte has passed through the relay, it is running.
        writer.write_all(b"x").unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(signal.as_raw()), "{signal:?}");
    }
}

/// The first process of a new PID namespace.
#[test]
fn signals_end_process_1() {
    let (input, _writer) = std::io::pipe().unwrap();
    let mut unshare = Command::new("unshare")
        .args(["--pid", "--fork", "--kill-child", PIPEMARK, "relay", "--progress", "json", "--interval", "10ms"])
        .stdin(input)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("unshare starts");
    // Once it has shown progress, the relay catches signals.
    let mut line = String::new();
    BufReader::new(unshare.stderr.take().unwrap()).read_line(&mut line).unwrap();
    if !line.starts_with('{') {
        unshare.wait().unwrap();
        return report_skip("a relay as process 1", line);
    }
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", unshare.id())).unwrap();
    let relay = Pid::from_raw(children.trim().parse().unwrap()).unwrap();
    kill_process(relay, Signal::TERM).unwrap();
    assert_eq!(unshare.wait().unwrap().code(), Some(128 + 15));
}

#[test]
fn a_pause_loses_nothing() {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let mut child = relay(&[]).stdin(reader).stdout(Stdio::piped()).spawn().unwrap();
    let bytes = content(1_000_000);
    let mut expected = bytes.clone();
    expected.extend(&bytes);
    let mut out = child.stdout.take().unwrap();
    let sink = thread::spawn(move || {
        let mut all = Vec::new();
        out.read_to_end(&mut all).unwrap();
        all
    });
    let pid = Pid::from_child(&child);
    writer.write_all(&bytes).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    kill_process(pid, Signal::CONT).unwrap();
    writer.write_all(&bytes).unwrap();
    drop(writer);
    assert!(sink.join().unwrap() == expected);
    assert!(child.wait().unwrap().success());
}

#[test]
fn on_one_cpu_the_relay_yields_to_its_writer() {
    // The scheduling policy is field 41 of /proc/PID/stat. SCHED_BATCH is 3.
    const SCRIPT: &str = "$RELAY < <(yes) >/dev/null & for _ in {1..1200}; do policy=$(cut -d' ' -f41 /proc/$!/stat); [ $policy = 3 ] && break; sleep 0.05; done
        kill $!; echo $policy";
    let policy = |bound: &[&str]| {
        let mut words = [bound, &["bash", "-c", SCRIPT]].concat().into_iter();
        let mut command = Command::new(words.next().unwrap());
        command.args(words).env("RELAY", format!("exec {PIPEMARK} relay"));
        text(&command.output().expect("bash starts").stdout)
    };
    let cpus = rustix::thread::sched_getaffinity(None).unwrap();
    let first = (0..rustix::thread::CpuSet::MAX_CPU).find(|&cpu| cpus.is_set(cpu)).unwrap().to_string();
    assert_eq!(policy(&["taskset", "-c", &first]).trim(), "3");
}

#[test]
fn undelivered_bytes_are_reported() {
    // The reader leaves early.
    let output = shell("head -c 3000000 /dev/zero | $RELAY --buffer 8m | head -c 1; echo ${PIPESTATUS[1]}");
    assert!(text(&output.stdout).ends_with("141\n"), "{}", text(&output.stdout));
    let stderr = text(&output.stderr);
    assert!(stderr.contains("bytes were read but not delivered"), "{stderr}");
    // A signal ends the relay. The pipe at its output has 64 KiB of unread bytes.
    for signal in [Signal::TERM, Signal::INT] {
        let (input, mut writer) = std::io::pipe().unwrap();
        let (reader, output) = std::io::pipe().unwrap();
        let mut child = Command::new("env")
            .args(["--default-signal=TERM,INT", PIPEMARK, "relay", "--buffer", "8m", "--capacity", "keep"])
            .args(["--progress", "json", "--interval", "10ms"])
            .stdin(input)
            .stdout(output)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        writer.write_all(&content(3_000_000)).unwrap();
        // Progress shows when the relay has read everything and the pipe is full.
        let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines();
        let left = stderr.find_map(|line| {
            let line: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
            let [read, written] = ["read", "written"].map(|key| line[key].as_u64().unwrap());
            (read == 3_000_000 && written >= 65536).then(|| read - written)
        });
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(signal.as_raw()), "{signal:?}");
        let rest: Vec<String> = stderr.map(Result::unwrap).collect();
        let expected = format!("pipemark relay: {} bytes were read but not delivered", left.unwrap());
        assert!(rest.contains(&expected), "{expected}: {rest:?}");
        drop((reader, writer));
    }
}

#[test]
fn a_buffer_gives_its_memory_back() {
    let (input, mut writer) = std::io::pipe().unwrap();
    let (mut reader, output) = std::io::pipe().unwrap();
    let mut child = relay(&["--buffer", "64m"]).stdin(input).stdout(output).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let resident = || -> u64 {
        let text = fs::read_to_string(&status).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
        line.split_whitespace().next().unwrap().parse::<u64>().unwrap() << 10
    };
    // The relay accepts all bytes although the reader doesn't read.
    writer.write_all(&content(40 << 20)).unwrap();
    assert!(resident() > 30 << 20);
    let mut arrived = vec![0; 40 << 20];
    reader.read_exact(&mut arrived).unwrap();
    assert!(arrived == content(40 << 20));
    eventually("memory is given back", || resident() < 4 << 20);
    drop(writer);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_buffer_larger_than_memory_is_refused() {
    let output = relay(&["--buffer", "60t"]).stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = text(&output.stderr);
    assert!(stderr.contains("no memory for the buffer") && stderr.contains("use a smaller --buffer"), "{stderr}");
    assert!(stderr.contains("a buffer of 60.0 TiB is larger"), "{stderr}");
}

#[test]
fn without_options_the_relay_has_one_thread() {
    let (input, mut writer) = std::io::pipe().unwrap();
    let mut child = relay(&[]).stdin(input).stdout(Stdio::piped()).spawn().unwrap();
    writer.write_all(b"x").unwrap();
    child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    assert_eq!(fs::read_dir(format!("/proc/{}/task", child.id())).unwrap().count(), 1);
    drop(writer);
    assert!(child.wait().unwrap().success());
}

fn set(pid: u32, setting: &str) -> Output {
    relay(&["--set", &pid.to_string(), setting]).stdin(Stdio::null()).output().unwrap()
}

#[test]
fn a_limit_is_changed_while_the_relay_runs() {
    let bytes = content(2_000_000);
    let (input, mut writer) = std::io::pipe().unwrap();
    let mut child = relay(&["--limit", "1"]).env_clear().stdin(input).stdout(Stdio::piped()).spawn().unwrap();
    let sent = bytes.clone();
    let source = thread::spawn(move || drop(writer.write_all(&sent)));
    let mut out = child.stdout.take().unwrap();
    // The relay is running. At this limit it would take 23 days.
    let mut arrived = vec![0];
    out.read_exact(&mut arrived).unwrap();
    let output = set(child.id(), "limit=1g");
    assert!(output.status.success(), "{}", text(&output.stderr));
    out.read_to_end(&mut arrived).unwrap();
    assert!(arrived == bytes);
    assert!(child.wait().unwrap().success());
    source.join().unwrap();
}

#[test]
fn a_relay_without_a_limit_is_not_changed() {
    let mut cat = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut plain = relay(&["--stats"]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let gone = {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        child.id()
    };
    for (pid, setting, code, expected) in [
        (cat.id(), "limit=1m", 1, "is not a relay (it is cat)"),
        (plain.id(), "limit=1m", 1, "is a relay without a limit"),
        (gone, "limit=1m", 2, "there is no process"),
        (cat.id(), "limit=0", 2, "out of range"),
        (cat.id(), "limit=99999999999t", 2, "fits 64 bits"),
        (cat.id(), "buffer=1m", 2, "is not a setting"),
        (0, "limit=1m", 2, "not a PID"),
    ] {
        let output = set(pid, setting);
        assert_eq!(output.status.code(), Some(code), "{pid} {setting}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(expected), "{pid} {setting}: {}", text(&output.stderr));
    }
    if rustix::process::geteuid().is_root() {
        let mut other = Command::new("setpriv")
            .args(["--reuid=65534", "--clear-groups", "sleep", "60"])
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let uid = || fs::metadata(format!("/proc/{}", other.id())).unwrap().uid();
        eventually("setpriv becomes the other user", || uid() != 0);
        let output = set(other.id(), "limit=1m");
        other.kill().unwrap();
        other.wait().unwrap();
        assert!(text(&output.stderr).contains("belongs to another user (65534)"), "{}", text(&output.stderr));
    }
    for child in [&mut cat, &mut plain] {
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
