//! Checks from the tests of pv and mbuffer, applied to `pipemark relay`: bytes are unchanged whatever the sizes, marks
//! and limits, progress is correct, and full disks, readers that leave early and empty inputs are handled.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, mknodat};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::program::{PIPEMARK, eventually, sleeps};

/// Bytes that depend on their position.
fn content(bytes: usize) -> Vec<u8> {
    (0..bytes as u64).map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

fn relay(words: &[&str]) -> Command {
    let mut command = Command::new(PIPEMARK);
    command.arg("relay").args(words);
    command
}

/// Starts a relay whose standard input, output and error are pipes.
fn start(words: &[&str]) -> Child {
    relay(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Writes `bytes` to the program's standard input, a pipe, in pieces of this size. Returns its output.
fn pipe_through(words: &[&str], bytes: &[u8], piece: usize) -> Output {
    let mut child = start(words);
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

/// The words that print progress every 10 ms.
const PROGRESS: [&str; 4] = ["--progress", "text", "--interval", "10ms"];
const JSON: [&str; 4] = ["--progress", "json", "--interval", "10ms"];

/// The lines on standard error as they come: at most those of a minute, so that a test that waits for one of them ends.
fn messages(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap).take(6000)
}

/// The objects of `--progress json` as they come.
fn reports(child: &mut Child) -> impl Iterator<Item = Value> + use<> {
    messages(child).map(|line| serde_json::from_str(&line).unwrap())
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

/// pv -q and mbuffer -q: without --progress nothing is printed.
#[test]
fn without_progress_nothing_is_printed() {
    for words in [&[][..], &["--buffer", "1m", "--start-at", "50"], &["--limit", "100m"]] {
        let output = pipe_through(words, &content(100_000), 5000);
        assert!(output.status.success() && output.stdout.len() == 100_000, "{words:?}: {:?}", output.status);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{words:?}");
    }
}

/// pv: several inputs, one of which can't be read. The others arrive.
#[test]
fn an_unreadable_input_is_the_failure_of_its_reader_alone() {
    let directory = tempfile::tempdir().unwrap();
    for (name, bytes) in [("a", content(100_000)), ("c", content(200_000))] {
        fs::write(directory.path().join(name), bytes).unwrap();
    }
    for words in ["", "--buffer 1m", "--limit 1g"] {
        let script = format!("cat a b c | {PIPEMARK} relay {words} | cat; echo \"${{PIPESTATUS[*]}}\" >&2");
        let output = Command::new("bash").args(["-c", &script]).current_dir(&directory).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.starts_with("cat: b: ") && stderr.ends_with("\n1 0 0\n"), "{words}: {stderr}");
        assert!(output.stdout == [content(100_000), content(200_000)].concat(), "{words}");
    }
}

/// mbuffer: a buffer smaller than what its reader requests at once.
#[test]
fn a_reader_may_request_more_than_the_buffer_holds() {
    let bytes = content(3 << 20);
    for buffer in ["1", "64k"] {
        let mut child = start(&["--buffer", buffer, "--capacity", "keep"]);
        let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        thread::scope(|scope| {
            let bytes = &bytes;
            scope.spawn(move || input.write_all(bytes).unwrap());
            for piece in bytes.chunks(1 << 20) {
                let mut arrived = vec![0; piece.len()];
                output.read_exact(&mut arrived).unwrap();
                assert!(arrived == piece, "{buffer}");
            }
        });
        assert!(output.read(&mut [0]).unwrap() == 0 && child.wait().unwrap().success(), "{buffer}");
    }
}

/// mbuffer -p and -P: the buffer becomes full, reading pauses until the reader has taken enough, and then goes on.
#[test]
fn a_slow_reader_gets_all_bytes_in_order() {
    let (mut reader, mut output) = std::io::pipe().unwrap();
    // The output's pipe is full from the start, so that no byte passes through while the buffer fills.
    let held = pipeio::pipe::capacity(&output).unwrap();
    output.write_all(&vec![0; held]).unwrap();
    let words = [&["--buffer", "1m", "--start-at", "50", "--stop-at", "25", "--capacity", "keep"], &JSON[..]].concat();
    let command = &mut relay(&words);
    let mut child = command.stdin(Stdio::piped()).stdout(output).stderr(Stdio::piped()).spawn().unwrap();
    // The command keeps its own descriptor of the output.
    command.stdout(Stdio::null());
    let (mut input, mut reports) = (child.stdin.take().unwrap(), reports(&mut child));
    let bytes = content(3 << 20);
    let sent = bytes.clone();
    let source = thread::spawn(move || input.write_all(&sent).unwrap());
    let mut arrived = Vec::new();
    let mut take = |bytes: usize| (&mut reader).take(bytes as u64).read_to_end(&mut arrived).unwrap();
    let full = reports.find(|line| line["buffered"] == 1 << 20).expect("the buffer becomes full");
    assert_eq!(full["read"], 1 << 20, "{full}");
    // The fill level stays above its mark.
    take(held + (1 << 19));
    let paused = reports.find(|line| line["written"].as_u64() >= Some(1 << 19)).expect("bytes are written");
    assert_eq!(paused["read"], 1 << 20, "{paused}");
    // It falls below the mark.
    take(300 << 10);
    reports.find(|line| line["read"].as_u64() > Some(1 << 20)).expect("reading goes on");
    take(usize::MAX);
    assert!(arrived[held..] == bytes, "{} bytes", arrived.len() - held);
    source.join().unwrap();
    assert!(child.wait().unwrap().success());
}

/// pv and mbuffer: after a reader that leaves early, the relay ends as cat does. With options that count bytes, what is lost is
/// reported.
#[test]
fn a_reader_that_leaves_early_ends_the_relay() {
    for words in [&[][..], &["--buffer", "1m"], &["--limit", "1g"], &JSON] {
        let command = &mut relay(words);
        let zeros = File::open("/dev/zero").unwrap();
        let mut child = command.stdin(zeros).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut output = child.stdout.take().unwrap();
        output.read_exact(&mut [0; 1000]).unwrap();
        if words.first() == Some(&"--buffer") {
            eventually("the buffer is full", || sleeps(child.id()));
        }
        drop(output);
        let ended = child.wait_with_output().unwrap();
        assert_eq!(ended.status.signal(), Some(Signal::PIPE.as_raw()), "{words:?}");
        let stderr = String::from_utf8_lossy(&ended.stderr);
        let is_reported = stderr.contains(" bytes were read but not delivered\n");
        assert_eq!(is_reported, !words.is_empty(), "{words:?}: {stderr}");
    }
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
    let mut child = start(&["--buffer", "4m", "--start-at", "50"]);
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

/// pv: the percentage and the time left, of the total from -s or, without -s, of the input file's size; and numeric
/// output that ends with the total.
#[test]
fn progress_reports_the_percentage_and_the_total() {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&content(1 << 20)).unwrap();
    let start = |form: &[&str]| {
        let command = &mut relay(&[form, &["--capacity", "keep"]].concat());
        (&file).rewind().unwrap();
        let input = file.try_clone().unwrap();
        let mut child = command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        (child.stdout.take().unwrap(), child)
    };
    // The reader takes nothing, then half, then all.
    let (mut output, mut child) = start(&PROGRESS);
    let mut lines = messages(&mut child);
    let first = lines.next().unwrap();
    assert!(first.contains("  0 B delivered  ") && first.ends_with("  0.0 %"), "{first}");
    output.read_exact(&mut vec![0; 1 << 19]).unwrap();
    let half = lines.find(|line| line.contains("  50.0 %")).expect("half is shown");
    assert!(half.contains("  512 KiB delivered  ") && half.ends_with(" left"), "{half}");
    output.read_to_end(&mut Vec::new()).unwrap();
    let last = lines.last().unwrap();
    assert!(last.contains("  1 MiB delivered  ") && last.ends_with("  100.0 %"), "{last}");
    assert!(child.wait().unwrap().success());

    let (mut output, mut child) = start(&JSON);
    let mut reports = reports(&mut child);
    let first = reports.next().unwrap();
    assert_eq!((&first["delivered"], &first["size"], &first["left_ns"]), (&0.into(), &(1 << 20).into(), &Value::Null));
    output.read_exact(&mut vec![0; 1 << 19]).unwrap();
    let half = reports.find(|line| line["delivered"] == 1 << 19).expect("half is shown");
    assert!(half["left_ns"].as_u64() > Some(0) && half["ended"] == false, "{half}");
    output.read_to_end(&mut Vec::new()).unwrap();
    let rest: Vec<Value> = reports.collect();
    let written: Vec<u64> = rest.iter().map(|line| line["written"].as_u64().unwrap()).collect();
    let last = rest.last().unwrap();
    assert!(written.is_sorted() && last["written"] == 1 << 20 && last["ended"] == true, "{rest:?}");
    assert!(child.wait().unwrap().success());
}

/// pv: more bytes than -s announced are more than 100 %, and then the time left is unknown.
#[test]
fn more_bytes_than_announced_are_more_than_all() {
    for (form, size) in [(&PROGRESS, "1000"), (&JSON, "1000"), (&PROGRESS, "4000")] {
        let mut child = start(&[&form[..], &["--size", size]].concat());
        let mut lines = messages(&mut child);
        let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let first = lines.next().unwrap();
        assert!(form == &JSON || first.ends_with("  0.0 %"), "{first}");
        input.write_all(&content(1500)).unwrap();
        output.read_exact(&mut [0; 1500]).unwrap();
        let more = match (form == &JSON, size) {
            (true, _) => "\"delivered\":1500,",
            (false, "1000") => "  150.0 %",
            _ => "  37.5 %",
        };
        let line = lines.find(|line| line.contains(more)).expect("it is shown");
        let no_time = if form == &JSON { line.contains("\"left_ns\":null") } else { line.ends_with(more) };
        assert_eq!(no_time, size == "1000", "{line}");
        drop(input);
        assert!(output.read(&mut [0]).unwrap() == 0 && child.wait().unwrap().success());
    }
}

/// pv #8 and #28: with a buffer, bytes count as delivered once the reader has taken them.
#[test]
fn bytes_not_taken_by_the_reader_are_undelivered() {
    let (input, mut writer) = std::io::pipe().unwrap();
    let (mut reader, output) = std::io::pipe().unwrap();
    let command = &mut relay(&[&["--buffer", "4m"], &JSON[..]].concat());
    let mut child = command.stdin(input).stdout(output).stderr(Stdio::piped()).spawn().unwrap();
    writer.write_all(&content(2_000_000)).unwrap();
    let mut reports = reports(&mut child);
    let full = reports.find(|line| line["read"] == 2_000_000 && line["written"].as_u64() > Some(0));
    assert_eq!(full.unwrap()["delivered"], 0);
    reader.read_exact(&mut [0; 1000]).unwrap();
    let taken = reports.find(|line| line["delivered"].as_u64() > Some(0));
    assert_eq!(taken.unwrap()["delivered"], 1000);
    drop((reader, writer));
    drop(reports);
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
        assert!(stderr.contains("1000 bytes were read but not delivered"), "{stderr}");
    }
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut child =
        relay(&["--buffer", "1m"]).stdin(Stdio::piped()).stdout(full).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"x").unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("1 byte was read but not delivered"), "{stderr}");
}

/// mbuffer: the disk becomes full in mid-stream. What was written stays.
#[test]
fn a_disk_that_becomes_full_keeps_what_was_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("output");
    let bytes = content(300_000);
    for words in ["", "--buffer 1m", "--limit 1g", "--progress json"] {
        // A limit on the size of files acts like a full disk. Bash counts it in KiB.
        let script = format!("trap '' XFSZ; ulimit -f 100; exec {PIPEMARK} relay {words} >{}", path.display());
        let mut child =
            Command::new("bash").args(["-c", &script]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let _ = child.stdin.take().unwrap().write_all(&bytes);
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && stderr.contains("File too large"), "{words}: {stderr}");
        assert!(stderr.contains("bytes were read but not delivered"), "{words}: {stderr}");
        assert!(fs::read(&path).unwrap() == bytes[..100 << 10], "{words}");
    }
}

/// mbuffer: a buffer that the system refuses.
#[test]
fn a_buffer_beyond_the_memory_limit_is_refused() {
    let script = format!("ulimit -v 1000000; exec {PIPEMARK} relay --buffer 2g");
    let output = Command::new("bash").args(["-c", &script]).stdin(Stdio::null()).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.starts_with("pipemark: no memory for the buffer: "), "{stderr}");
    assert!(stderr.ends_with("; use a smaller --buffer\n") && stderr.lines().count() == 1, "{stderr}");
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
    eventually("the output ends", || end.is_finished());
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
    let path = directory.path().join("fifo");
    mknodat(CWD, &path, FileType::Fifo, 0o600.into(), 0).unwrap();
    // A relay that draws nothing is ended after a minute.
    let relay = format!("timeout --foreground 60 {PIPEMARK} relay --progress --interval 10ms");
    let job = format!("{relay} <{} >/dev/null", path.display());
    for (script, is_drawn) in [(job.clone(), true), (format!("set -m; {job} & wait"), false)] {
        let mut terminal = Command::new("script");
        terminal.args(["-qec", &format!("bash -c '{script}'"), "/dev/null"]).env("TERM", "xterm").stdin(Stdio::null());
        let mut terminal = terminal.stdout(Stdio::piped()).spawn().expect("script starts");
        // The relay runs as long as this FIFO is open.
        let input = OpenOptions::new().write(true).open(&path).unwrap();
        let mut output = terminal.stdout.take().unwrap();
        let (mut text, mut piece) = (String::new(), [0; 4096]);
        while is_drawn && !text.contains("\x1b[K") {
            let length = output.read(&mut piece).unwrap();
            assert!(length > 0, "it draws nothing: {text:?}");
            text += &String::from_utf8_lossy(&piece[..length]);
        }
        if !is_drawn {
            thread::sleep(Duration::from_millis(200));
        }
        drop(input);
        output.read_to_string(&mut text).unwrap();
        terminal.wait().unwrap();
        assert!(text.contains("written"), "{script}: {text:?}");
        assert_eq!(text.contains("\x1b[K"), is_drawn, "{script}: {text:?}");
    }
}

/// pv -l and -0: lines are counted once the reader has taken them, and --size is their number.
#[test]
fn lines_are_counted() {
    let text: String = (0..20_000).map(|n| format!("{n}\n")).collect();
    for words in [&["--lines"][..], &["--lines", "--buffer", "1m"], &["--lines", "--limit", "1g"]] {
        let words = [&JSON[..], &["--size", "40000"], words].concat();
        let output = pipe_through(&words, text.as_bytes(), 10_000);
        assert!(output.stdout == text.as_bytes(), "{words:?}");
        let last = lines(&output).pop().unwrap();
        assert_eq!((&last["lines"], &last["size"]), (&20_000.into(), &40_000.into()), "{words:?}: {last}");
    }
    let mut child = start(&[&PROGRESS[..], &["--lines=null", "--size", "4"]].concat());
    child.stdin.take().unwrap().write_all(b"a\nb\0\0c\0d").unwrap();
    // The reader takes nothing.
    let mut shown = messages(&mut child);
    let last = shown.find(|line| line.contains(" unread ")).expect("the last line comes though nobody reads");
    assert!(last.contains("  0 lines delivered  8 B unread  ") && last.ends_with("  0.0 %"), "{last}");
    assert!(child.wait().unwrap().success());
    let output = pipe_through(&[&PROGRESS[..], &["--lines=null", "--size", "3"]].concat(), b"a\nb\0\0c\0d", 2);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("  3 lines delivered  ") && text.ends_with("  100.0 %\n"), "{text}");
}

/// pv -W: nothing is shown before the first byte.
#[test]
fn waiting_shows_nothing_before_the_first_byte() {
    let mut child = start(&[&JSON[..], &["--wait"]].concat());
    let mut reports = reports(&mut child);
    let mut input = child.stdin.take().unwrap();
    thread::sleep(Duration::from_millis(300));
    input.write_all(b"x").unwrap();
    let first = reports.next().unwrap();
    assert!(first["elapsed_ns"].as_u64() < Some(290_000_000) && first["written"] == 1, "{first}");
    drop((input, child.stdout.take()));
    reports.last();
    child.wait().unwrap();
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

/// pv: a signal ends the display.
#[test]
fn a_signal_ends_the_display_with_the_total() {
    for words in [&["--progress"][..], &["--progress", "--buffer", "1m"]] {
        let mut child = start(words);
        // The input stays open: `wait` would close the child's own.
        let mut input = child.stdin.take().unwrap();
        input.write_all(b"abc").unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0; 3]).unwrap();
        // Only now does the relay know that the bytes are written.
        eventually("it waits for input", || sleeps(child.id()));
        // Not SIGINT, which is ignored in background jobs.
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(15), "{words:?}");
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        assert!(stderr.contains("3 B delivered"), "{words:?}: {stderr:?}");
    }
}

#[test]
fn invalid_options_are_refused() {
    for (words, expected) in [
        (&["--buffer", "0"][..], "out of range"),
        (&["--buffer", "1m", "--start-at", "101"], "101"),
        (&["--start-at", "50"], "--buffer"),
        (&["--size", "@file"], "is not a size"),
        (&["--lines=word"], "newline"),
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

#[test]
fn files_are_passed_on_one_after_the_other() {
    let directory = tempfile::tempdir().unwrap();
    let large = content(3_000_000);
    fs::write(directory.path().join("large"), &large).unwrap();
    fs::write(directory.path().join("small"), "small\n").unwrap();
    let run = |words: &[&str]| {
        let mut child = relay(words)
            .current_dir(&directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The relay of other files may have closed it.
        let _ = child.stdin.take().unwrap().write_all(b"standard input\n");
        child.wait_with_output().unwrap()
    };
    for options in [&[][..], &["--buffer", "64k"], &["--limit", "1g"], &["--progress"]] {
        let of = |files: &[&str]| run(&[options, files].concat());
        assert!(of(&["large"]).stdout == large, "{options:?}");
        assert!(
            of(&["small", "large", "small"]).stdout == [b"small\n", &large[..], b"small\n"].concat(),
            "{options:?}"
        );
        assert_eq!(of(&["-", "small"]).stdout, b"standard input\nsmall\n", "{options:?}");
        assert_eq!(of(&["small", "nosuch"]).stdout, b"", "nothing is passed on if a file can't be opened");
    }
    let progress = run(&["--progress=json", "--name", "copy", "small", "large"]);
    let last = lines(&progress).pop().unwrap();
    assert_eq!((&last["size"], &last["name"]), (&3_000_006.into(), &"copy".into()));
    // A FIFO whose writer comes only when the one before it has been read.
    let fifos = ["first", "second"].map(|name| directory.path().join(name));
    fifos.iter().for_each(|fifo| mknodat(CWD, fifo, FileType::Fifo, 0o600.into(), 0).unwrap());
    let writer = thread::spawn(move || fifos.iter().for_each(|fifo| fs::write(fifo, "from a FIFO\n").unwrap()));
    assert_eq!(run(&["first", "small", "second"]).stdout, b"from a FIFO\nsmall\nfrom a FIFO\n");
    writer.join().unwrap();
    // The output would grow as long as it is read.
    let words = ["large", "small"];
    let output = File::options().append(true).open(directory.path().join("small")).unwrap();
    let output = relay(&words).current_dir(&directory).stdin(Stdio::null()).stdout(output).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("small is the output too"), "{output:?}");
    assert_eq!(fs::read(directory.path().join("small")).unwrap(), b"small\n");
    // A directory can be opened, but not read.
    let output = run(&["small", "."]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains(". could not be read: Is a directory"), "{output:?}");
}

#[test]
fn a_call_as_with_pv_or_mbuffer_passes_on_all_bytes() {
    let bytes = content(100_000);
    for words in [
        &["-q"][..],
        &["-pterb"],
        &["-qL", "1g"],
        &["-s", "100k", "-i", "0.2"],
        &["-q", "-m", "1m", "-P", "50"],
        &["-cN", "x", "-W"],
        &["-l", "-a"],
        &["-0", "-B", "1m"],
        &["-lL", "1g"],
    ] {
        let output = pipe_through(words, &bytes, 4096);
        assert!(output.status.success() && output.stdout == bytes, "{words:?}: {output:?}");
    }
    let output = pipe_through(&["-m", "1m", "-b", "10"], b"", 1);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("mbuffer's -b: use --buffer SIZE"), "{output:?}");
}
