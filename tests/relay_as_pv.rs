//! Checks from the tests of pv and mbuffer, applied to `pipemark relay`: bytes are unchanged whatever the sizes, marks
//! and limits, progress is correct, and full disks, readers that leave early and empty inputs are handled.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::program::PIPEMARK;

/// Bytes that depend on their position.
fn content(bytes: usize) -> Vec<u8> {
    (0..bytes as u64).map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

fn relay(words: &[&str]) -> Command {
    let mut command = Command::new(PIPEMARK);
    command.arg("relay").args(words);
    command
}

/// Writes `bytes` to the program's standard input, a pipe, in pieces of this size. Returns its output.
fn pipe_through(words: &[&str], bytes: &[u8], piece: usize) -> Output {
    let mut command = relay(words);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    thread::scope(|scope| {
        scope.spawn(move || bytes.chunks(piece).for_each(|piece| input.write_all(piece).unwrap()));
        child.wait_with_output().unwrap()
    })
}

/// The lines of `--progress json`.
fn lines(output: &Output) -> Vec<Value> {
    String::from_utf8_lossy(&output.stderr).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// pv: "cat" and transfers of files and pipes; mbuffer: checksums at several buffer and block sizes, with -P and -p.
#[test]
fn bytes_stay_as_they_were() {
    let bytes = content(3_000_001);
    for buffer in ["1", "4096", "10k", "1m", "16m"] {
        for marks in [
            &[][..],
            &["--start-at", "90"],
            &["--start-at", "100", "--stop-at", "0"],
            &["--stop-at", "10"],
            &["--start-at", "1", "--stop-at", "99"],
        ] {
            let words = [&["--buffer", buffer], marks].concat();
            let output = pipe_through(&words, &bytes, 50_000);
            assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
            assert!(output.stdout == bytes, "{words:?}: {} bytes", output.stdout.len());
        }
    }
    for words in [&["--limit", "100m"][..], &["--limit", "100m", "--buffer", "1m"], &["--progress"]] {
        assert!(pipe_through(words, &bytes, 12_345).stdout == bytes, "{words:?}");
    }
    let small = content(20_000);
    assert!(pipe_through(&["--buffer", "1m"], &small, 7).stdout == small, "small pieces");
}

/// mbuffer and pv: an empty input, and an input of one byte.
#[test]
fn inputs_of_zero_and_one_bytes_are_passed_on() {
    for words in
        [&["--buffer", "1m"][..], &["--buffer", "1m", "--start-at", "100"], &["--limit", "1m"], &["--progress"]]
    {
        for bytes in [&b""[..], b"x"] {
            let output = pipe_through(words, bytes, 1);
            assert!(output.status.success() && output.stdout == bytes, "{words:?}");
        }
    }
}

/// mbuffer: -P delays output until the buffer reaches the mark, and writes everything when the input ends.
#[test]
fn below_its_mark_nothing_is_written_before_the_end_or_a_pause() {
    let mut child =
        relay(&["--buffer", "4m", "--start-at", "50"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let begin = Instant::now();
    input.write_all(b"less than a half").unwrap();
    // A pause of at least one second in the input ends the delay.
    let mut bytes = [0; 16];
    output.read_exact(&mut bytes).unwrap();
    assert!(begin.elapsed() >= Duration::from_secs(1) && &bytes == b"less than a half");
    // Above the mark, writing doesn't pause until all bytes are written.
    let many = content(3 << 20);
    input.write_all(&many).unwrap();
    let mut arrived = vec![0; many.len()];
    output.read_exact(&mut arrived).unwrap();
    assert!(arrived == many);
    drop(input);
    assert!(child.wait().unwrap().success());
}

/// pv and mbuffer: each byte is passed on before the next arrives.
#[test]
fn nothing_is_held_back() {
    for words in [&["--buffer", "1m"][..], &["--progress", "--interval", "1s"], &["--limit", "10m"]] {
        let command = &mut relay(words);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        for n in 0..200u8 {
            input.write_all(&[n]).unwrap();
            let mut byte = [0];
            output.read_exact(&mut byte).unwrap();
            assert_eq!(byte, [n], "{words:?}");
        }
        drop(input);
        assert!(child.wait().unwrap().success());
    }
}

/// pv: the total from -s or, without -s, from the size of the input file; numeric output that ends with the total.
#[test]
fn progress_reports_the_percentage_and_the_total() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("content");
    fs::write(&path, content(1_000_000)).unwrap();
    let command = &mut relay(&["--progress", "json", "--interval", "10ms", "--limit", "5m"]);
    let output = command.stdin(File::open(&path).unwrap()).output().unwrap();
    let printed = lines(&output);
    let last = printed.last().unwrap();
    assert_eq!((&last["written"], &last["size"], &last["ended"]), (&1_000_000.into(), &1_000_000.into(), &true.into()));
    assert!(printed.len() > 1, "it takes a fifth of a second");
    let written: Vec<u64> = printed.iter().map(|line| line["written"].as_u64().unwrap()).collect();
    assert!(written.is_sorted(), "{written:?}");
    let output = pipe_through(&["--progress", "--size", "1000"], &content(1000), 1000);
    assert!(String::from_utf8_lossy(&output.stderr).contains("1000 B written"), "{:?}", output.stderr);
}

/// pv #8 and #28: with a buffer, bytes count as delivered once the reader has taken them.
#[test]
fn bytes_not_taken_by_the_reader_are_undelivered() {
    let (input, mut writer) = std::io::pipe().unwrap();
    let (mut reader, output) = std::io::pipe().unwrap();
    let command = &mut relay(&["--buffer", "4m", "--progress", "json", "--interval", "10ms"]);
    let mut child = command.stdin(input).stdout(output).stderr(Stdio::piped()).spawn().unwrap();
    writer.write_all(&content(2_000_000)).unwrap();
    let mut stderr = std::io::BufRead::lines(std::io::BufReader::new(child.stderr.take().unwrap()));
    let full = stderr.find_map(|line| {
        let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
        (line["read"] == 2_000_000 && line["written"].as_u64() > Some(0)).then_some(line)
    });
    assert_eq!(full.unwrap()["delivered"], 0);
    reader.read_exact(&mut [0; 1000]).unwrap();
    let taken = stderr.find_map(|line| {
        let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
        line["delivered"].as_u64().filter(|&bytes| bytes > 0)
    });
    assert_eq!(taken, Some(1000));
    drop((reader, writer));
    drop(stderr);
    child.wait().unwrap();
}

/// pv: the rate of -L is never exceeded by more than the bytes that a pipe holds.
#[test]
fn the_rate_limit_is_never_exceeded() {
    for words in
        [&["--limit", "200k", "--capacity", "keep"][..], &["--limit", "200k/s", "--buffer", "1m", "--capacity", "keep"]]
    {
        let begin = Instant::now();
        let output = pipe_through(words, &content(300_000), 300_000);
        let most = 204_800.0 * begin.elapsed().as_secs_f64() + 65536.0;
        assert!(output.stdout.len() == 300_000 && most >= 300_000.0, "{words:?}: {most}");
    }
}

/// mbuffer: a full disk is an error. pv: the error is reported, and the exit code isn't 0.
#[test]
fn a_full_disk_is_an_error() {
    for words in [&["--buffer", "1m"][..], &["--limit", "1g"], &["--progress", "json"]] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut child = relay(words).stdin(Stdio::piped()).stdout(full).stderr(Stdio::piped()).spawn().unwrap();
        let _ = child.stdin.take().unwrap().write_all(&content(1000));
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains("No space left on device"), "{stderr}");
        assert_eq!(stderr.contains("1000 bytes were read but not delivered"), words[0] == "--buffer", "{stderr}");
    }
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut child =
        relay(&["--buffer", "1m"]).stdin(Stdio::piped()).stdout(full).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"x").unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("1 byte was read but not delivered"), "{stderr}");
}

/// pv: the output ends when the input ends, even if nobody reads standard error.
#[test]
fn a_blocked_standard_error_does_not_hold_back_the_end_of_the_output() {
    let (_reader, mut stderr) = std::io::pipe().unwrap();
    let capacity = pipeio::pipe::capacity(&stderr).unwrap();
    stderr.write_all(&vec![b'x'; capacity]).unwrap();
    let command = &mut relay(&["--progress", "json"]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr).spawn().unwrap();
    let mut output = child.stdout.take().unwrap();
    let end = thread::spawn(move || output.read_to_end(&mut Vec::new()).unwrap());
    let begin = Instant::now();
    while !end.is_finished() {
        if begin.elapsed() > Duration::from_secs(20) {
            child.kill().unwrap();
            panic!("the output doesn't end");
        }
        thread::sleep(Duration::from_millis(5));
    }
    assert!(child.wait().unwrap().success());
}

/// Lines that several processes write to one terminal or file aren't joined.
#[test]
fn each_line_is_one_write() {
    // Each write to this pipe is a packet.
    let (reader, stderr) = pipe_with(PipeFlags::DIRECT | PipeFlags::CLOEXEC).unwrap();
    let mut command = relay(&["--progress", "json", "--stats"]);
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr).status().unwrap();
    drop(command);
    assert!(status.success());
    let (mut packet, mut count) = ([0; 4096], 0);
    loop {
        let length = rustix::io::read(&reader, &mut packet).unwrap();
        if length == 0 {
            break;
        }
        let text = String::from_utf8_lossy(&packet[..length]);
        assert!(text.ends_with('\n') && text.lines().count() == 1, "{text:?}");
        count += 1;
    }
    assert_eq!(count, 2);
}

/// pv: only a job in the foreground draws on the terminal.
#[test]
fn a_background_job_draws_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("content");
    fs::write(&path, content(300_000)).unwrap();
    // At this limit, the relay takes a third of a second.
    let job = format!("{PIPEMARK} relay --progress --interval 10ms --limit 1m <{} >/dev/null", path.display());
    for (script, is_drawn) in [(job.clone(), true), (format!("set -m; {job} & wait"), false)] {
        let mut terminal = Command::new("script");
        terminal.args(["-qec", &format!("bash -c '{script}'"), "/dev/null"]).env("TERM", "xterm").stdin(Stdio::null());
        let output = terminal.output().expect("script starts");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("written"), "{script}: {text:?}");
        assert_eq!(text.contains("\x1b[K"), is_drawn, "{script}: {text:?}");
    }
}

/// A buffer has at least two pages, and without a buffer no bytes are buffered.
#[test]
fn progress_has_the_size_of_the_buffer() {
    let words = ["--progress", "json", "--interval", "10ms", "--limit", "5m", "--buffer", "1"];
    let bytes = content(300_000);
    for line in lines(&pipe_through(&words, &bytes, 50_000)) {
        assert_eq!(line["buffer"], 2 * rustix::param::page_size(), "{line}");
    }
    for line in lines(&pipe_through(&words[..6], &bytes, 50_000)) {
        assert!(line["buffer"].is_null() && line["buffered"] == 0 && line["read"] == line["written"], "{line}");
    }
}

/// pv: after the process was stopped and continued, the display goes on at its interval.
#[test]
fn a_stopped_relay_prints_nothing_for_the_missed_intervals() {
    let command = &mut relay(&["--progress", "json", "--interval", "10ms"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let (input, pid) = (child.stdin.take(), Pid::from_child(&child));
    let begin = Instant::now();
    thread::sleep(Duration::from_millis(100));
    kill_process(pid, Signal::STOP).unwrap();
    thread::sleep(Duration::from_secs(1));
    kill_process(pid, Signal::CONT).unwrap();
    thread::sleep(Duration::from_millis(100));
    drop(input);
    let printed = lines(&child.wait_with_output().unwrap());
    let running = begin.elapsed() - Duration::from_millis(900);
    assert!(printed.len() as u128 <= running.as_millis() / 10 + 3, "{} lines in {running:?}", printed.len());
}

/// Whether all threads of a process wait.
fn sleeps(child: &Child) -> bool {
    let tasks = fs::read_dir(format!("/proc/{}/task", child.id())).unwrap();
    tasks.flatten().all(|task| fs::read_to_string(task.path().join("stat")).is_ok_and(|stat| stat.contains(") S ")))
}

/// pv: a signal ends the display.
#[test]
fn a_signal_ends_the_display_with_the_total() {
    for words in [&["--progress"][..], &["--progress", "--buffer", "1m"]] {
        let command = &mut relay(words);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // The input stays open: `wait` would close the child's own.
        let mut input = child.stdin.take().unwrap();
        input.write_all(b"abc").unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0; 3]).unwrap();
        // Only now does the relay know that the bytes are written.
        let begin = Instant::now();
        while !sleeps(&child) {
            assert!(begin.elapsed() < Duration::from_secs(60), "{words:?} doesn't wait for input");
            thread::sleep(Duration::from_millis(5));
        }
        // Not SIGINT, which is ignored in background jobs.
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(15), "{words:?}");
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        assert!(stderr.contains("3 B written"), "{words:?}: {stderr:?}");
    }
}

#[test]
fn invalid_options_are_refused() {
    for (words, expected) in [
        (&["--buffer", "0"][..], "out of range"),
        (&["--buffer", "1m", "--start-at", "101"], "101"),
        (&["--start-at", "50"], "--buffer"),
        (&["--size", "1m"], "--progress"),
        (&["--interval", "1s"], "--progress"),
        (&["--progress", "--interval", "0"], "out of range"),
        (&["--limit", "0"], "out of range"),
        (&["--limit", "18446744073709551616"], "fits 64 bits"),
        (&["--limit", "fast"], "is not a size"),
        (&["--set", "1"], "2 values"),
        (&["--set", "1", "limit=1m", "--stats"], "cannot be used with"),
    ] {
        let output = relay(words).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains(expected), "{words:?}: {stderr}");
    }
}
