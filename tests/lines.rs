//! `pipemark lines` as a stage of a pipeline, and the four programs with which it is compared.

use std::fs::{self, File, OpenOptions};
use std::io::{PipeReader, Read, Write, pipe};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;

use crate::program::{PIPEMARK, report_skip};
use rustix::fs::{OFlags, SeekFrom, fcntl_getfl, fcntl_setfl};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

fn lines(words: &[&str]) -> Command {
    let mut command = Command::new(PIPEMARK);
    command.arg("lines").args(words);
    command
}

/// Runs a program with `input` through a pipe; returns its output.
fn filter(mut command: Command, input: &[u8]) -> Output {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    thread::scope(|scope| {
        // This fails if the program stops reading early.
        scope.spawn(move || drop(stdin.write_all(input)));
        child.wait_with_output().unwrap()
    })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A plain implementation of the transform.
fn reference(input: &[u8]) -> Vec<u8> {
    let mut output = Vec::new();
    for line in input.split_inclusive(|&byte| byte == b'\n') {
        match line.iter().filter(|&&byte| byte == b' ').count() {
            spaces @ 0..=6 => write!(output, "[spaces: {spaces}]").unwrap(),
            _ => output.extend(b"[spaces: >6]"),
        }
        output.extend(line);
    }
    output
}

/// Reads one line byte by byte, so that no byte of the next line is consumed.
fn read_line(mut pipe: &PipeReader) -> String {
    let mut line = Vec::new();
    while line.last() != Some(&b'\n') {
        let mut byte = [0];
        assert_eq!(pipe.read(&mut byte).unwrap(), 1, "the output ended within a line");
        line.push(byte[0]);
    }
    text(&line)
}

fn set_nonblocking(descriptor: impl AsFd) {
    let flags = fcntl_getfl(&descriptor).unwrap();
    fcntl_setfl(&descriptor, flags | OFlags::NONBLOCK).unwrap();
}

/// A text of a few hundred KiB with all kinds of lines.
fn sample_text() -> String {
    let mut text = String::from("hello world\n\n   \n       \r\nä ö ü ß\nabcdefg\n");
    for length in 0..600 {
        text.extend((0..length).map(|at| if at % 9 == 8 { ' ' } else { 'x' }));
        text.push('\n');
    }
    text.push_str("end\n");
    text
}

#[test]
fn the_document_s_example() {
    let output = filter(lines(&[]), b"hello world\n");
    assert_eq!(text(&output.stdout), "[spaces: 1]hello world\n");
    assert!(output.status.success() && output.stderr.is_empty());
}

#[test]
fn every_transform_works_as_documented() {
    let input = b"a,b c\n\nx,\xff,z";
    for (words, expected) in [
        (&["spaces"][..], &b"[spaces: 1]a,b c\n[spaces: 0]\n[spaces: 0]x,\xff,z"[..]),
        (&["number"], b"1\ta,b c\n2\t\n3\tx,\xff,z"),
        (&["length"], b"5\n0\n5"),
        (&["upper"], b"A,B C\n\nX,\xff,Z"),
        (&["identity"], input),
        (&["field", "2", "--delimiter", ","], b"b c\n\n\xff"),
        (&["field", "1", "--delimiter", " "], b"a,b\n\nx,\xff,z"),
        (&["field", "1"], input),
    ] {
        for more in [&["--threads", "1"][..], &["--threads", "3", "--batch", "1"]] {
            let output = filter(lines(&[words, more].concat()), input);
            assert_eq!(text(&output.stdout), text(expected), "{words:?} {more:?}");
            assert_eq!(output.stdout, expected, "{words:?} {more:?}");
            assert!(output.status.success());
        }
    }
}

#[test]
fn bytes_stay_as_they_are() {
    let mut input = b"\0\r\n\xc3\x28 \xff\xfe\n\n\r\n".to_vec();
    input.extend((0..=255u8).cycle().take(300_000));
    input.extend(b"no newline at the end");
    for words in [&["--threads", "1"][..], &["--threads", "2"], &["--threads", "2", "--send", "give-away"]] {
        let output = filter(lines(words), &input);
        assert!(output.stdout == reference(&input), "{words:?}");
    }
    let output = filter(lines(&["upper", "-z"]), b"a\nb\0c d\0");
    assert_eq!(output.stdout, b"A\nB\0C D\0");
    let output = filter(lines(&["-z"]), b"a\nb c\0d");
    assert_eq!(output.stdout, b"[spaces: 1]a\nb c\0[spaces: 0]d");
}

#[test]
fn a_file_is_read_like_a_pipe() {
    let path = std::env::temp_dir().join(format!("pipemark-lines-{}", std::process::id()));
    let input = sample_text().repeat(8);
    fs::write(&path, &input).unwrap();
    for words in [&[][..], &["--threads", "1"], &["--threads", "4", "--batch", "10000"]] {
        let output = lines(words).stdin(File::open(&path).unwrap()).output().unwrap();
        assert!(output.stdout == reference(input.as_bytes()), "{words:?}");
    }
    fs::remove_file(&path).unwrap();
}

/// The test hangs if the output for a line waits for the next line or for a full batch.
#[test]
fn slow_input_is_answered_line_by_line() {
    for threads in ["auto", "1", "2"] {
        let (stdin, mut to_filter) = pipe().unwrap();
        let (from_filter, stdout) = pipe().unwrap();
        let mut child = lines(&["--threads", threads]).stdin(stdin).stdout(stdout).spawn().unwrap();
        for round in 0..10 {
            write!(to_filter, "{round} a").unwrap();
            to_filter.write_all(b" b\n").unwrap();
            assert_eq!(read_line(&from_filter), format!("[spaces: 2]{round} a b\n"));
        }
        drop(to_filter);
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn a_line_typed_on_a_terminal_is_answered() {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
    let keyboard = OpenOptions::new().read(true).write(true).open(name).unwrap();
    let (from_filter, stdout) = pipe().unwrap();
    let mut child = lines(&[]).stdin(keyboard).stdout(stdout).spawn().unwrap();
    let mut typist = File::from(terminal);
    for _ in 0..3 {
        typist.write_all(b"hello world\n").unwrap();
        assert_eq!(read_line(&from_filter), "[spaces: 1]hello world\n");
    }
    // Control-D ends the input.
    typist.write_all(b"\x04").unwrap();
    assert!(child.wait().unwrap().success());
}

fn endless() -> Child {
    Command::new(PIPEMARK).args(["gen", "line:a b"]).stdout(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_reader_that_leaves_ends_it_quietly() {
    for words in [&["--threads", "1"][..], &["--threads", "2"], &["--send", "give-away"]] {
        let mut source = endless();
        let (from_filter, stdout) = pipe().unwrap();
        let stdin = source.stdout.take().unwrap();
        let mut child = lines(words).stdin(stdin).stdout(stdout).stderr(Stdio::piped()).spawn().unwrap();
        assert_eq!(read_line(&from_filter), "[spaces: 1]a b\n");
        drop(from_filter);
        assert!(child.wait().unwrap().success(), "{words:?}");
        let mut printed = String::new();
        child.stderr.take().unwrap().read_to_string(&mut printed).unwrap();
        assert_eq!(printed, "", "{words:?}");
        assert!(source.wait().unwrap().success(), "the source ends as quietly");
    }
}

#[test]
fn non_blocking_descriptors_are_waited_for() {
    let (stdin, mut to_filter) = pipe().unwrap();
    let (mut from_filter, stdout) = pipe().unwrap();
    set_nonblocking(&stdin);
    set_nonblocking(&stdout);
    let mut child = lines(&[]).stdin(stdin).stdout(stdout).spawn().unwrap();
    to_filter.write_all(b"one\n").unwrap();
    assert_eq!(read_line(&from_filter), "[spaces: 0]one\n");
    let input = sample_text();
    let mut output = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            to_filter.write_all(input.as_bytes()).unwrap();
            drop(to_filter);
        });
        from_filter.read_to_end(&mut output).unwrap();
    });
    assert!(output == reference(input.as_bytes()));
    assert!(child.wait().unwrap().success());
}

#[test]
fn failures_are_sentences_and_code_1() {
    let full = || OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = lines(&[]).stdin(File::open("/etc/passwd").unwrap()).stdout(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).starts_with("pipemark: the output can't be written: No space left"), "{output:?}");

    let output = lines(&[]).stdin(File::open("/").unwrap()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).starts_with("pipemark: the input can't be read: Is a directory"), "{output:?}");
}

#[test]
fn a_line_too_long_is_named_and_nothing_is_cut() {
    for threads in ["1", "2"] {
        let output = filter(lines(&["--max-line", "5", "--threads", threads]), b"12345\n123\n123456\n1\n");
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(text(&output.stdout), "[spaces: 0]12345\n[spaces: 0]123\n");
        assert_eq!(
            text(&output.stderr),
            "pipemark: the line at byte 10 of the input is longer than the limit of 5 bytes; raise --max-line to accept it\n"
        );
    }
}

#[test]
fn bad_usage_is_code_2() {
    for words in [
        &["spaced"][..],
        &["field"],
        &["field", "0"],
        &["field", "1", "--delimiter", "ab"],
        &["--threads", "0"],
        &["--threads", "100000"],
        &["--batch", "0"],
        &["--batch", "1g"],
        &["--max-line", "x"],
    ] {
        let output = filter(lines(words), b"");
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(output.stdout.is_empty() && text(&output.stderr).starts_with("pipemark: "), "{words:?}");
    }
}

#[test]
fn files_are_read_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str, content: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    };
    // A last line without a newline ends with its file; the next file begins a new line.
    let (one, two) = (path("one", "a b\nc"), path("two", "d\n"));
    let run = |words: &[&str], input: &[u8]| {
        let output = filter(lines(words), input);
        assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    assert_eq!(run(&["upper", &one, &two], b""), "A B\nC\nD\n");
    assert_eq!(run(&["upper", &two, "-", &one], b"in\n"), "D\nIN\nA B\nC");
    assert_eq!(run(&["field", "1", "-d", " ", "--stats", &one, &one], b""), "a\nc\na\nc");
    // Without a transform, each line gets its number of spaces.
    assert_eq!(run(&[&one], b""), "[spaces: 1]a b\n[spaces: 0]c");
    assert_eq!(run(&["--threads", "2", &two, &two], b""), "[spaces: 0]d\n[spaces: 0]d\n");
    // After `--` every word is a file, even the name of a transform.
    path("upper", "x\n");
    let mut command = lines(&["upper", "--", "upper"]);
    command.current_dir(directory.path());
    assert_eq!(text(&filter(command, b"").stdout), "X\n");
    for (words, code, expected) in [
        (&["upper", "/nonexistent/x"][..], 2, "there is no file /nonexistent/x"),
        (&["uper"], 2, "did you mean upper?"),
        (&["upper", "/"], 1, "Is a directory"),
        (&[&one, "upper"], 2, "write it before the files"),
    ] {
        let output = filter(lines(words), b"");
        assert_eq!(output.status.code(), Some(code), "{words:?}");
        assert!(text(&output.stderr).contains(expected), "{words:?}: {}", text(&output.stderr));
    }
}

#[test]
fn stats_count_every_byte() {
    let output = filter(lines(&["--stats"]), b"hello world\nx\n");
    let stderr = text(&output.stderr);
    assert!(stderr.contains("in: 14 bytes in ") && stderr.contains("out: 36 bytes in "), "{stderr}");
    assert!(stderr.ends_with("ended: at the end of its input\n"), "{stderr}");
    assert_eq!(text(&output.stdout), "[spaces: 1]hello world\n[spaces: 0]x\n");
}

#[test]
fn memory_does_not_grow_with_the_input() {
    for words in [&["--threads", "1"][..], &["--threads", "2"], &["--send", "give-away"]] {
        let mut child = lines(words).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let block = sample_text();
        for _ in 0..1000 {
            stdin.write_all(block.as_bytes()).unwrap();
        }
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the peak of resident memory");
        let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
        drop(stdin);
        assert!(child.wait().unwrap().success());
        assert!(peak < 64 << 10, "{words:?}: {peak} KiB");
    }
}

/// The four programs, built here because pipemark doesn't depend on them.
fn four_programs() -> Vec<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("entrants-lines");
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--locked", "--manifest-path"])
        .arg(root.join("entrants/lines/Cargo.toml"))
        .arg("--target-dir")
        .arg(&target)
        .status()
        .unwrap();
    assert!(status.success(), "the four programs have to build");
    ["std-baseline", "baseline", "streamer", "pipeline"].map(|name| target.join("debug").join(name)).to_vec()
}

#[test]
#[ignore = "long"]
fn long_the_four_programs_agree_on_text_and_stop_at_other_bytes() {
    let input = sample_text();
    let expected = reference(input.as_bytes());
    for program in four_programs() {
        let output = filter(Command::new(&program), input.as_bytes());
        // The other programs drop a \r at the end of a line, as std's and tokio's `lines` do. pipemark keeps it.
        let kept = text(&expected).replace("\r\n", "\n");
        assert!(text(&output.stdout) == kept, "{}", program.display());
        assert!(output.status.success());

        let stopped = filter(Command::new(&program), b"good\nbad \xff\nnever seen\n");
        assert!(!stopped.status.success(), "{} accepts what is not UTF-8", program.display());
        assert!(!text(&stopped.stdout).contains("never seen"), "{}", program.display());
        assert!(text(&stopped.stderr).contains("InvalidData"), "{}", text(&stopped.stderr));
    }
    assert!(filter(lines(&[]), input.as_bytes()).stdout == expected);
    assert_eq!(
        filter(lines(&[]), b"good\nbad \xff\nnever seen\n").stdout,
        b"[spaces: 0]good\n[spaces: 1]bad \xff\n[spaces: 1]never seen\n"
    );
}

#[test]
fn a_closed_input_is_reported() {
    // If standard input is closed, the program opens /dev/null write-only in its place at the start.
    let write_only: OwnedFd = OpenOptions::new().write(true).open("/dev/null").unwrap().into();
    let output = lines(&[]).stdin(write_only).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).starts_with("pipemark: the input can't be read: Bad file descriptor"), "{output:?}");
}

/// Reading through the write end would take data meant for another reader.
#[test]
fn a_pipe_is_not_read_through_its_writing_end() {
    for threads in ["1", "3"] {
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(b"of others\n").unwrap();
        let output = lines(&["--threads", threads]).stdin(writer).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains("the input can't be read: Bad file descriptor"), "{output:?}");
        let mut there = Vec::new();
        reader.read_to_end(&mut there).unwrap();
        assert_eq!(there, b"of others\n");
    }
}

/// All lines together exceed one message.
#[test]
fn short_lines_are_written_to_a_socket_of_messages() {
    let content = b"abcdefg\n".repeat(1 << 20);
    for kind in [SocketType::SEQPACKET, SocketType::DGRAM] {
        let (from_filter, stdout) =
            rustix::net::socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).unwrap();
        let (stdin, mut writer) = std::io::pipe().unwrap();
        let mut child = lines(&["identity"]).stdin(stdin).stdout(stdout).spawn().unwrap();
        let feeder = thread::spawn({
            let content = content.clone();
            move || writer.write_all(&content)
        });
        let (mut all, mut message) = (Vec::new(), vec![0; 256 << 10]);
        while all.len() < content.len() {
            let (got, _) = rustix::net::recv(&from_filter, &mut message[..], RecvFlags::empty()).unwrap();
            assert!(got > 0, "{kind:?}: {} bytes came", all.len());
            all.extend_from_slice(&message[..got]);
        }
        feeder.join().unwrap().unwrap();
        assert!(child.wait().unwrap().success() && all == content, "{kind:?}");
    }
}

#[test]
fn a_file_is_not_its_own_output() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lines-same-file");
    fs::write(&path, "one\ntwo\n").unwrap();
    let read = || File::open(&path).unwrap();
    let ways: [fn(&mut OpenOptions) -> &mut OpenOptions; 2] =
        [|options| options.append(true), |options| options.write(true)];
    for way in ways {
        for threads in ["1", "3"] {
            let output = way(&mut OpenOptions::new()).open(&path).unwrap();
            let result = lines(&["--threads", threads]).stdin(read()).stdout(output).output().unwrap();
            assert_eq!(result.status.code(), Some(1));
            assert!(text(&result.stderr).starts_with("pipemark: input and output are the same file"), "{result:?}");
            assert_eq!(fs::read(&path).unwrap(), b"one\ntwo\n");
        }
    }
    // An input that is already at its end isn't refused.
    fs::write(&path, "").unwrap();
    let output = OpenOptions::new().append(true).open(&path).unwrap();
    assert!(lines(&[]).stdin(read()).stdout(output).status().unwrap().success());
}

#[test]
fn messages_are_read_whole() {
    for threads in ["1", "2"] {
        let kind = (AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC);
        let (to_filter, stdin) = rustix::net::socketpair(kind.0, kind.1, kind.2, None).unwrap();
        let mut expected = Vec::new();
        let child = lines(&["--threads", threads]).stdin(stdin).stdout(Stdio::piped()).spawn().unwrap();
        let sender = thread::spawn(move || {
            // The largest message that the socket accepts, smaller messages, one byte, an empty message, and lines that
            // cross messages.
            for length in [150_000, 70_000, 1, 0, 100, 65_537].into_iter().cycle().take(60) {
                let message: Vec<u8> = (0..length).map(|at| if at % 91 == 90 { b'\n' } else { b'a' }).collect();
                assert_eq!(rustix::net::send(&to_filter, &message, SendFlags::empty()).unwrap(), length);
                expected.extend(message);
            }
            reference(&expected)
        });
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        assert!(output.stdout == sender.join().unwrap(), "{threads} threads");
    }
}

/// Once a thread has found that a line is too long, later threads must not read that line, because its memory may have
/// moved.
#[test]
fn a_line_too_long_ends_all_threads() {
    let input = format!("{}{}\n{}", "ab\n".repeat(50), "x".repeat(20_000), "ab\n".repeat(5000));
    for _ in 0..40 {
        let output = filter(lines(&["--threads", "4", "--batch", "40", "--max-line", "5000"]), input.as_bytes());
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
        assert_eq!(text(&output.stdout), "[spaces: 0]ab\n".repeat(50));
    }
}

/// `lines WORDS` under a ulimit, which sh sets.
fn limited_lines(limit: &str, words: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit {limit} || exit 99; exec \"$0\" lines {words}")]).arg(PIPEMARK);
    command
}

#[test]
fn low_memory_uses_fewer_threads_or_fails_with_a_message() {
    let input = sample_text();
    let expected = reference(input.as_bytes());
    let long = format!("{}\n{}", "x".repeat(30 << 20), sample_text());
    let mut fewer = false;
    for mib in (4..64).step_by(4).chain([96, 128, 256, 512]) {
        let limit = format!("-v {}", mib << 10);
        if !limited_lines(&limit, "--help").stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success() {
            continue;
        }
        for threads in ["1", "3", "200"] {
            let output = filter(limited_lines(&limit, &format!("--stats --threads {threads}")), input.as_bytes());
            let stderr = text(&output.stderr);
            match output.status.code() {
                Some(0) => assert!(output.stdout == expected, "{mib} MiB, {threads} threads"),
                Some(1) => {
                    assert!(stderr.starts_with("pipemark: ") && stderr.lines().count() == 1, "{mib} MiB: {stderr}")
                }
                code => panic!("{mib} MiB, {threads} threads: {code:?}, {stderr}"),
            }
            fewer |= threads == "200" && output.status.success() && !stderr.contains("threads: 200;");
            let output = filter(limited_lines(&limit, &format!("--threads {threads}")), long.as_bytes());
            let code = output.status.code();
            assert!(matches!(code, Some(0 | 1)), "{mib} MiB, {threads} threads, a long line: {output:?}");
            assert!(code != Some(1) || text(&output.stderr).starts_with("pipemark: "), "{output:?}");
        }
    }
    assert!(fewer, "no limit left some of the threads out");
}

#[test]
fn a_file_opened_with_o_direct_is_read() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lines-direct");
    let input = sample_text().repeat(20);
    fs::write(&path, &input).unwrap();
    let flags = OFlags::RDONLY | OFlags::DIRECT;
    let Ok(direct) = rustix::fs::open(&path, flags, rustix::fs::Mode::empty()) else {
        return report_skip("lines of a file read with O_DIRECT", "the file system of target/ has none");
    };
    let expected = reference(input.as_bytes());
    for threads in ["1", "4"] {
        rustix::fs::seek(&direct, SeekFrom::Start(0)).unwrap();
        let stdin = direct.try_clone().unwrap();
        let output = lines(&["--threads", threads]).stdin(stdin).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(output.stdout == expected, "{threads} threads");
        let end = rustix::fs::seek(&direct, SeekFrom::Current(0)).unwrap();
        assert_eq!(end, input.len() as u64, "the offset is behind the last line");
    }
}

/// The output of `lines WORDS --range RANGE FILE`.
fn of_range(file: &Path, range: &str, words: &[&str]) -> Vec<u8> {
    let output = lines(&[words, &["--range", range]].concat()).arg(file).output().unwrap();
    assert!(output.status.success(), "{range} {words:?}: {}", text(&output.stderr));
    output.stdout
}

#[test]
fn adjacent_ranges_cover_the_file_exactly() {
    ranges_cover(&[&b""[..], b"a b\r\n\n\rc\0d"]);
}

#[test]
#[ignore = "long"]
fn long_adjacent_ranges_cover_the_file_exactly() {
    let long = "x".repeat(11);
    ranges_cover(&[
        &b""[..],
        b"\n",
        b"x",
        b"\n\n\n",
        b"a b\r\n\n\rc\0d\n\xff\xc3\x28 e",
        b"\r\r\n\0\n \0",
        format!("a\n{long}\nb\n{long}").as_bytes(),
    ]);
}

/// Splits a file into two ranges in all ways, and into many ranges in some ways: each line occurs once, in order.
fn ranges_cover(inputs: &[&[u8]]) {
    let directory = tempfile::TempDir::new().unwrap();
    let path = directory.path().join("input");
    for &input in inputs {
        fs::write(&path, input).unwrap();
        let size = input.len();
        for words in [&["spaces"][..], &["spaces", "--threads", "2", "--batch", "2"], &["length", "-z"]] {
            let whole = lines(words).arg(&path).output().unwrap().stdout;
            for cut in 0..=size + 2 {
                let (low, high) =
                    (of_range(&path, &format!(":{cut}"), words), of_range(&path, &format!("{cut}:"), words));
                assert_eq!(text(&[low, high].concat()), text(&whole), "{words:?} {cut} of {input:?}");
            }
        }
        for step in 1..4 {
            let cuts = (0..=size).step_by(step);
            let parts: Vec<_> =
                cuts.map(|low| of_range(&path, &format!("{low}:{}", low + step), &["identity"])).collect();
            assert!(parts.concat() == input, "{step} of {input:?}");
            // Each range continues the numbers of the ranges before it.
            let mut start = 1;
            let mut numbered = Vec::new();
            for (index, part) in parts.iter().enumerate() {
                let range = format!("{}:{}", index * step, (index + 1) * step);
                numbered.extend(of_range(&path, &range, &["number", "--start", &start.to_string()]));
                start += part.iter().filter(|&&byte| byte == b'\n').count();
            }
            assert_eq!(text(&numbered), text(&lines(&["number"]).arg(&path).output().unwrap().stdout));
        }
    }
}

#[test]
fn ranges_of_a_large_file_by_several_threads() {
    let directory = tempfile::TempDir::new().unwrap();
    let path = directory.path().join("input");
    let input = sample_text().repeat(8);
    fs::write(&path, &input).unwrap();
    for words in [&["--threads", "1"][..], &["--threads", "4", "--batch", "10000"], &["--threads", "2"]] {
        let cuts = [0, 1, 4096, 70_001, 699_999, input.len() - 1];
        let ends = cuts.iter().skip(1).map(usize::to_string).chain([String::new()]);
        let parts: Vec<_> =
            cuts.iter().zip(ends).map(|(low, high)| of_range(&path, &format!("{low}:{high}"), words)).collect();
        assert!(parts.concat() == reference(input.as_bytes()), "{words:?}");
    }
    // A range counts from the start of the file on standard input, whatever the descriptor's offset.
    let mut file = File::open(&path).unwrap();
    file.read_exact(&mut [0; 100]).unwrap();
    let output = lines(&["--range", "0:1"]).stdin(file).output().unwrap();
    assert_eq!(text(&output.stdout), "[spaces: 1]hello world\n");
}

#[test]
fn inputs_without_ranges_are_reported() {
    let stderr_of = |output: Output, code| {
        assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
        assert!(output.stdout.is_empty());
        text(&output.stderr)
    };
    let (from, to) =
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    drop(to);
    for output in
        [filter(lines(&["--range", "0:10"]), b"a\n"), lines(&["--range", "0:10"]).stdin(from).output().unwrap()]
    {
        assert!(stderr_of(output, 1).contains("a range of bytes can be read only from a file"));
    }
    for (words, sentence) in [
        (&["--range", "10"][..], "a range is LOW:HIGH"),
        (&["--range", "2k:1k"], "the range ends at 1024, before its start at 2048"),
        (&["--range", "x:1"], "'x' is not a size"),
        (&["--range", "0:1", "a", "b"], "--range works on a single file; run it once for each of a, b"),
        (&["number", "--start", "0"], "0 is not in 1..=4611686018427387904"),
    ] {
        assert!(stderr_of(lines(words).output().unwrap(), 2).contains(sentence), "{words:?}");
    }
    // Only the range in which an overlong line starts reports that line, with its offset in the file.
    let directory = tempfile::TempDir::new().unwrap();
    let path = directory.path().join("input");
    fs::write(&path, format!("ab\n{}\nc\n", "x".repeat(50_000))).unwrap();
    let run = |range| lines(&["identity", "--max-line", "10", "--range", range]).arg(&path).output().unwrap();
    assert_eq!(run("0:3").stdout, b"ab\n");
    assert!(text(&run("1:4").stderr).contains("the line at byte 3 of the input is longer"));
    assert!(run("4:50003").status.success() && run("4:50003").stdout.is_empty());
    assert_eq!(run("50001:").stdout, b"c\n");
}

/// Several threads must not poll for input that never becomes ready. Reading an unopened FIFO ends at once, and reading
/// a listening socket fails at once.
#[test]
fn inputs_without_writers_do_not_block() {
    let directory = tempfile::TempDir::new().unwrap();
    let fifo = directory.path().join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    let unopened = || rustix::fs::open(&fifo, OFlags::RDONLY | OFlags::NONBLOCK, rustix::fs::Mode::empty()).unwrap();
    for threads in ["1", "3"] {
        let listening = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        for (input, code) in [(unopened(), 0), (OwnedFd::from(listening), 1)] {
            let mut command = Command::new("timeout");
            command.args(["10", PIPEMARK, "lines", "--threads", threads]).stdin(input);
            let output = command.output().unwrap();
            assert_eq!(output.status.code(), Some(code), "{threads} threads: {}", text(&output.stderr));
        }
    }
}

#[test]
fn the_largest_numbers_are_exact() {
    let first: u64 = 1 << 62;
    for threads in ["1", "2"] {
        let output = filter(lines(&["number", "--threads", threads, "--start", &first.to_string()]), b"a\nb\n");
        assert_eq!(text(&output.stdout), format!("{first}\ta\n{}\tb\n", first + 1));
    }
    let output = filter(lines(&["number", "--start", &u64::MAX.to_string()]), b"a\nb\n");
    assert_eq!(output.status.code(), Some(2), "there are fewer numbers than lines");
}
