//! The ways in which `pipemark relay` can end, in each mode. What is lost is counted from outside: bytes that are no
//! longer in the input and have not reached the output. The relay must report exactly this number.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::thread::{self, sleep};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::program::{PIPEMARK, eventually};

const MODES: [&str; 9] = [
    "",
    "--method read-write",
    "--capacity 4k",
    "--limit 400k",
    "--limit 30m",
    "--progress json --interval 10ms",
    "--progress json --interval 10ms --limit 1m",
    "--buffer 256k",
    "--buffer 256k --limit 1m",
];

#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    Signal(Signal),
    /// The reader takes some bytes and leaves.
    ReaderLeaves,
    /// The output is a file that can't grow beyond a limit.
    FullDisk,
    InputEnds,
}

const WAYS: [Way; 9] = [
    Way::Signal(Signal::TERM),
    Way::Signal(Signal::INT),
    Way::Signal(Signal::HUP),
    Way::Signal(Signal::QUIT),
    Way::Signal(Signal::USR1),
    Way::Signal(Signal::ALARM),
    Way::ReaderLeaves,
    Way::FullDisk,
    Way::InputEnds,
];

#[derive(Debug, Clone, Copy, PartialEq)]
enum Descriptor {
    Pipe,
    Socket,
    File,
}

/// Numbers that depend on a seed (splitmix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut n = self.0;
        n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((n ^ (n >> 31)) % below as u64) as usize
    }
}

/// Both ends of a pipe or a stream socket: first the end to read from.
fn link(kind: Descriptor) -> (OwnedFd, OwnedFd) {
    if kind == Descriptor::Socket {
        let (reader, writer) = UnixStream::pair().unwrap();
        (reader.into(), writer.into())
    } else {
        let (reader, writer) = std::io::pipe().unwrap();
        (reader.into(), writer.into())
    }
}

/// Reads at most `most` bytes, with a pause after each piece. Returns the number of bytes read.
fn read_slowly(from: OwnedFd, most: usize, piece: usize, pause: Duration) -> usize {
    let (mut from, mut sum, mut buffer) = (File::from(from), 0, vec![0; piece]);
    while sum < most {
        match from.read(&mut buffer[..piece.min(most - sum)]) {
            Ok(0) | Err(_) => break,
            Ok(bytes) => sum += bytes,
        }
        sleep(pause);
    }
    sum
}

/// The number of bytes in the message about undelivered bytes; 0 without a message.
fn reported(stderr: &str) -> usize {
    let line = stderr.lines().find(|line| line.contains("read but not delivered"));
    let number = line.and_then(|line| line.strip_prefix("pipemark relay: ")?.split(' ').next()?.parse().ok());
    assert_eq!(line.is_some(), number.is_some(), "{stderr}");
    number.unwrap_or(0)
}

/// Runs the relay in one mode until it ends in one way, and counts.
fn end(mode: &str, way: Way, input: Descriptor, output: Descriptor, dice: &mut Dice, directory: &Path) {
    // More than the pipes hold, so that the relay is still running when the reader leaves.
    let total = 100_000 + dice.roll(900_000) + if way == Way::ReaderLeaves { 4_000_000 } else { 0 };
    let (from, source) = link(input);
    let path = directory.join("output");
    let (reader, to) = match output {
        Descriptor::File => (None, File::create(&path).unwrap().into()),
        _ => {
            let (reader, to) = link(output);
            (Some(reader), to)
        }
    };
    // At most 1 KiB times this number.
    let blocks = if way == Way::FullDisk { (1 + dice.roll(90)).to_string() } else { "unlimited".to_owned() };
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" relay {mode}");
    let mut child = Command::new("env")
        .args(["--default-signal=TERM,INT,HUP", "bash", "-c", &script, PIPEMARK])
        .stdin(from.try_clone().unwrap())
        .stdout(to)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut messages = child.stderr.take().unwrap();
    let messages = thread::spawn(move || {
        let mut text = String::new();
        messages.read_to_string(&mut text).unwrap();
        text
    });
    let piece = 1 + dice.roll(30_000);
    let source = thread::spawn(move || {
        let (mut source, content) = (File::from(source), vec![b'x'; total]);
        content.chunks(piece).for_each(|piece| source.write_all(piece).unwrap());
    });
    // A third of the readers take nothing until the relay has ended.
    let late = matches!(way, Way::Signal(_)) && dice.roll(3) == 0;
    let most = if way == Way::ReaderLeaves { 1 + dice.roll(50_000) } else { usize::MAX };
    let (size, pause) = (1 + dice.roll(20_000), Duration::from_micros(dice.roll(300) as u64));
    let mut kept = reader;
    let reader = if late { None } else { kept.take() };
    let reader = reader.map(|reader| thread::spawn(move || read_slowly(reader, most, size, pause)));
    if let Way::Signal(signal) = way {
        // bash ignores QUIT. A process that has ended has no executable.
        let executable = format!("/proc/{}/exe", child.id());
        let is_relay = || fs::read_link(&executable).map_or(true, |file| file.ends_with("pipemark"));
        eventually("bash executes the relay", is_relay);
        sleep(Duration::from_micros(dice.roll(60_000) as u64));
        kill_process(Pid::from_child(&child), signal).unwrap();
    }
    let mut status: Option<ExitStatus> = None;
    eventually(format_args!("relay {mode} ends ({way:?})"), || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    let status = status.expect("it has ended");
    let left = read_slowly(from, usize::MAX, 1 << 16, Duration::ZERO);
    source.join().unwrap();
    let arrived = match (reader, kept) {
        (Some(reader), _) => reader.join().unwrap(),
        (None, Some(reader)) => read_slowly(reader, usize::MAX, 1 << 16, Duration::ZERO),
        (None, None) => fs::metadata(&path).unwrap().len() as usize,
    };
    let (lost, stderr) = (total - left - arrived, messages.join().unwrap());
    let what = format!("relay {mode}, {input:?} to {output:?}, {way:?}: {status}, {lost} bytes lost: {stderr}");
    if status.success() {
        assert_eq!(lost, 0, "{what}");
    }
    match way {
        // The relay may have passed everything on before the signal arrives.
        Way::Signal(signal) => assert!(status.success() || status.signal() == Some(signal.as_raw()), "{what}"),
        Way::ReaderLeaves => assert!(status.success() || status.signal() == Some(13), "{what}"),
        Way::FullDisk => assert_eq!(status.code(), Some(1), "{what}"),
        Way::InputEnds => assert!(status.success(), "{what}"),
    }
    // Without options that count bytes, a relay whose reader leaves ends like cat, without a message.
    let is_plain = !["--limit", "--progress", "--buffer"].iter().any(|word| mode.contains(word));
    let expected = if way == Way::ReaderLeaves && is_plain { 0 } else { lost };
    assert_eq!(reported(&stderr), expected, "{what}");
}

fn inputs_and_outputs(way: Way) -> Vec<(Descriptor, Descriptor)> {
    use Descriptor::{File, Pipe, Socket};
    match way {
        Way::FullDisk => vec![(Pipe, File), (Socket, File)],
        // The kernel drops the bytes in a socket whose reader leaves, and doesn't count them.
        Way::ReaderLeaves => vec![(Pipe, Pipe), (Socket, Pipe)],
        _ => vec![(Pipe, Pipe), (Socket, Pipe), (Pipe, Socket), (Socket, Socket), (Pipe, File), (Socket, File)],
    }
}

#[test]
fn what_is_lost_is_reported_however_the_relay_ends() {
    let (directory, mut dice) = (tempfile::tempdir().unwrap(), Dice(1));
    for mode in MODES {
        for way in WAYS {
            let all = inputs_and_outputs(way);
            let (input, output) = all[dice.roll(all.len())];
            end(mode, way, input, output, &mut dice, directory.path());
        }
    }
}

#[test]
#[ignore = "soak"]
fn soak_what_is_lost_is_reported_however_the_relay_ends() {
    const THREADS: usize = 8;
    let cases: Vec<_> = MODES.iter().flat_map(|mode| WAYS.map(|way| (mode, way))).collect();
    thread::scope(|scope| {
        for part in 0..THREADS {
            let cases = cases.iter().cycle().skip(part).step_by(THREADS).take(2000 / THREADS);
            scope.spawn(move || {
                let (directory, mut dice) = (tempfile::tempdir().unwrap(), Dice(2 + part as u64));
                for (mode, way) in cases {
                    let all = inputs_and_outputs(*way);
                    let (input, output) = all[dice.roll(all.len())];
                    end(mode, *way, input, output, &mut dice, directory.path());
                }
            });
        }
    });
}
