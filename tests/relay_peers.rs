//! `pipemark relay` between neighbouring processes that wait, hang up or die. On every kind of pipe, socket and
//! terminal, the relay blocks neither neighbour.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, Shutdown, SocketFlags, SocketType, send, shutdown, socketpair};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

use crate::program::PIPEMARK;

/// The time after which a test counts as hanging.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Ways to connect two processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Pipe,
    Fifo,
    Unix,
    Tcp,
    Messages,
    Datagrams,
    Tty,
}

const KINDS: [Kind; 7] = [Kind::Pipe, Kind::Fifo, Kind::Unix, Kind::Tcp, Kind::Messages, Kind::Datagrams, Kind::Tty];

impl Kind {
    /// The reading end and the writing end.
    fn open(self) -> (OwnedFd, OwnedFd) {
        match self {
            Kind::Pipe => {
                let (reader, writer) = io::pipe().unwrap();
                (reader.into(), writer.into())
            }
            Kind::Fifo => {
                let directory = tempfile::tempdir().unwrap();
                let path = directory.path().join("fifo");
                rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
                // Opening one end alone would wait for the other end.
                let _both = File::options().read(true).write(true).open(&path).unwrap();
                (File::open(&path).unwrap().into(), File::options().write(true).open(&path).unwrap().into())
            }
            Kind::Unix => {
                let (reader, writer) = UnixStream::pair().unwrap();
                (reader.into(), writer.into())
            }
            Kind::Tcp => {
                let listener = TcpListener::bind("127.0.0.1:0").unwrap();
                let writer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
                (listener.accept().unwrap().0.into(), writer.into())
            }
            Kind::Messages => {
                socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap()
            }
            Kind::Datagrams => {
                let (reader, writer) = UnixDatagram::pair().unwrap();
                (reader.into(), writer.into())
            }
            Kind::Tty => {
                let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
                grantpt(&master).unwrap();
                unlockpt(&master).unwrap();
                let name = ptsname(&master, Vec::new()).unwrap();
                let terminal =
                    rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).unwrap();
                let mut modes = tcgetattr(&terminal).unwrap();
                modes.make_raw();
                tcsetattr(&terminal, OptionalActions::Now, &modes).unwrap();
                (master, terminal)
            }
        }
    }
}

fn every_pair() -> impl Iterator<Item = (Kind, Kind)> {
    KINDS.into_iter().flat_map(|from| KINDS.map(|to| (from, to)))
}

/// A process that is killed when dropped.
struct Process(Child);

impl Process {
    fn start(command: &mut Command, input: impl Into<Stdio>, output: impl Into<Stdio>) -> Process {
        Process(command.stdin(input).stdout(output).stderr(Stdio::piped()).spawn().unwrap())
    }

    fn relay(input: impl Into<Stdio>, output: impl Into<Stdio>) -> Process {
        Process::start(Command::new(PIPEMARK).arg("relay"), input, output)
    }

    /// Whether the process stays in a sleep that signals can't end (state D).
    fn hangs(&self) -> bool {
        (0..20).all(|_| {
            thread::sleep(Duration::from_millis(1));
            let stat = fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap();
            stat.rsplit_once(") ").unwrap().1.starts_with('D')
        })
    }

    fn end(&mut self, what: &str) -> ExitStatus {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status;
            }
            assert!(begin.elapsed() < TIMEOUT, "{what} doesn't end");
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn stderr(&mut self) -> String {
        let mut text = String::new();
        self.0.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        text
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads the bytes that arrive within the time limit.
fn read_some(from: BorrowedFd<'_>, buffer: &mut [u8], what: &str) -> usize {
    let mut polled = [PollFd::from_borrowed_fd(from, PollFlags::IN)];
    let limit = Timespec { tv_sec: TIMEOUT.as_secs() as i64, tv_nsec: 0 };
    assert!(poll(&mut polled, Some(&limit)).unwrap() > 0, "{what}: what was sent doesn't arrive");
    match rustix::io::read(from, buffer) {
        // The master of a terminal whose program has ended returns EIO.
        Err(Errno::IO) => 0,
        got => got.unwrap(),
    }
}

/// Checks that a pipeline of cat, relay and cat answers while its input is idle, and that each of its processes can be
/// killed.
fn check_idle_pipeline(from: Kind, to: Kind) {
    let what = format!("{from:?} to {to:?}");
    let (typed, mut keyboard) = io::pipe().unwrap();
    let (screen, shown) = io::pipe().unwrap();
    let ((input, producer_end), (consumer_end, output)) = (from.open(), to.open());
    let mut producer = Process::start(&mut Command::new("cat"), typed, producer_end);
    let mut consumer = Process::start(&mut Command::new("cat"), consumer_end, shown);
    let mut relay = Process::relay(input, output);
    for request in ["one\n", "two\n", "three\n"] {
        keyboard.write_all(request.as_bytes()).unwrap();
        let (mut answer, mut piece) = (String::new(), [0; 100]);
        while answer.len() < request.len() {
            let got = read_some(screen.as_fd(), &mut piece, &what);
            assert!(got > 0, "{what}: an end instead of an answer");
            answer.push_str(std::str::from_utf8(&piece[..got]).unwrap());
        }
        assert_eq!(answer, request, "{what}");
    }
    for process in [&producer, &relay, &consumer] {
        assert!(!process.hangs(), "{what}: hangs");
    }
    for process in [&mut consumer, &mut producer] {
        process.0.kill().unwrap();
        process.end(&what);
    }
    if from != Kind::Datagrams {
        relay.end(&what);
    }
}

#[test]
fn what_was_delivered_can_be_read_and_neighbours_can_be_killed() {
    for (from, to) in every_pair() {
        check_idle_pipeline(from, to);
    }
}

/// Bytes that depend on their position.
fn byte_at(position: u64) -> u8 {
    (position.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// The counters of a producer that never blocks.
#[derive(Default)]
struct Progress {
    sent: AtomicU64,
    /// The number of writes that found no room.
    refused: AtomicU64,
    enough: AtomicBool,
}

/// Writes pieces of many lengths until `enough` is set.
fn produce(writer: &OwnedFd, progress: &Progress) {
    let flags = rustix::fs::fcntl_getfl(writer).unwrap();
    rustix::fs::fcntl_setfl(writer, flags | OFlags::NONBLOCK).unwrap();
    let mut length = 1;
    while !progress.enough.load(Relaxed) {
        let sent = progress.sent.load(Relaxed);
        let piece: Vec<u8> = (sent..sent + length).map(byte_at).collect();
        match rustix::io::write(writer, &piece) {
            Ok(taken) => {
                progress.sent.fetch_add(taken as u64, Relaxed);
                length = length * 3 % 70_001;
            }
            Err(Errno::AGAIN) => {
                progress.refused.fetch_add(1, Relaxed);
                thread::sleep(Duration::from_micros(200));
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Checks that a consumer that doesn't read yet never blocks the producer, and that it gets all bytes in the end.
fn check_waiting_consumer(from: Kind, to: Kind) {
    let what = format!("{from:?} to {to:?}");
    let ((input, writer), (reader, output)) = (from.open(), to.open());
    let mut relay = Process::relay(input, output);
    let progress = Progress::default();
    thread::scope(|scope| {
        let producer = scope.spawn(|| produce(&writer, &progress));
        let begin = Instant::now();
        while progress.refused.load(Relaxed) < 100 && begin.elapsed() < TIMEOUT {
            thread::sleep(Duration::from_millis(1));
        }
        let free = progress.refused.load(Relaxed) >= 100;
        progress.enough.store(true, Relaxed);
        if !free {
            // Frees the producer if the producer hangs.
            relay.0.kill().unwrap();
        }
        assert!(free, "{what}: the producer hangs");
        producer.join().unwrap();
        let sent = progress.sent.load(Relaxed);
        let (mut arrived, mut buffer) = (0, vec![0; 300_000]);
        while arrived < sent {
            let got = read_some(reader.as_fd(), &mut buffer, &what);
            assert!(got > 0, "{what}: {arrived} bytes of {sent}");
            let right = buffer[..got].iter().zip(arrived..).all(|(&byte, position)| byte == byte_at(position));
            assert!(right, "{what}: other bytes than were sent, after {arrived}");
            arrived += got as u64;
        }
        assert_eq!(arrived, sent, "{what}");
    });
    if from == Kind::Datagrams {
        rustix::fs::fcntl_setfl(&writer, OFlags::empty()).unwrap();
        send(&writer, &[], SendFlags::empty()).unwrap();
    }
    drop(writer);
    assert!(relay.end(&what).success(), "{what}: {}", relay.stderr());
}

#[test]
fn a_consumer_that_waits_holds_up_no_producer_and_gets_everything() {
    // A part that has each kind of input and of output.
    check_waiting_consumers(|from, to| (from as usize + to as usize).is_multiple_of(3));
}

#[test]
#[ignore = "long"]
fn long_a_consumer_that_waits_holds_up_no_producer_and_gets_everything() {
    check_waiting_consumers(|_, _| true);
}

fn check_waiting_consumers(is_wanted: impl Fn(Kind, Kind) -> bool) {
    // A terminal that isn't read may accept too few bytes to fill another kind of connection.
    for (from, to) in every_pair().filter(|pair| pair.0 != Kind::Tty && is_wanted(pair.0, pair.1)) {
        check_waiting_consumer(from, to);
    }
}

#[test]
#[ignore = "soak"]
fn soak_every_pair_of_neighbours() {
    for _ in 0..40 {
        for (from, to) in every_pair() {
            check_idle_pipeline(from, to);
            if from != Kind::Tty {
                check_waiting_consumer(from, to);
            }
        }
    }
}

#[test]
fn a_peer_that_only_stops_sending_loses_nothing() {
    for from in [Kind::Unix, Kind::Tcp, Kind::Messages] {
        for to in KINDS {
            let what = format!("{from:?} to {to:?}");
            let ((input, writer), (reader, output)) = (from.open(), to.open());
            let mut relay = Process::relay(input, output);
            for part in ["all of ", "it"] {
                rustix::io::write(&writer, part.as_bytes()).unwrap();
            }
            shutdown(&writer, Shutdown::Write).unwrap();
            let (mut text, mut piece) = (Vec::new(), [0; 100]);
            while text.len() < 9 {
                let got = read_some(reader.as_fd(), &mut piece, &what);
                assert!(got > 0, "{what}: {} bytes", text.len());
                text.extend_from_slice(&piece[..got]);
            }
            assert_eq!(text, b"all of it", "{what}");
            assert!(relay.end(&what).success(), "{what}: {}", relay.stderr());
        }
    }
}

#[test]
fn a_consumer_that_dies_ends_the_relay() {
    for (from, to) in every_pair().filter(|pair| pair.0 != Kind::Tty) {
        let what = format!("{from:?} to {to:?}");
        let ((input, writer), (reader, output)) = (from.open(), to.open());
        let mut relay = Process::relay(input, output);
        let progress = Progress::default();
        thread::scope(|scope| {
            let producer = scope.spawn(|| {
                while !progress.enough.load(Relaxed) {
                    // The relay closes the other end of this connection when it ends.
                    if send_or_write(&writer, from).is_err() {
                        break;
                    }
                }
            });
            let mut piece = vec![0; 70_000];
            read_some(reader.as_fd(), &mut piece, &what);
            drop(reader);
            let status = relay.end(&what);
            // Like cat, the relay ends by SIGPIPE or with a message.
            assert!(status.signal() == Some(13) || status.code() == Some(1), "{what}: {status}");
            progress.enough.store(true, Relaxed);
            producer.join().unwrap();
        });
    }
}

fn send_or_write(writer: &OwnedFd, kind: Kind) -> rustix::io::Result<usize> {
    match kind {
        Kind::Pipe | Kind::Fifo => rustix::io::write(writer, &[b'x'; 5000]),
        _ => send(writer, &[b'x'; 5000], SendFlags::NOSIGNAL),
    }
}

#[test]
fn a_connection_that_was_reset_is_an_error() {
    for to in KINDS {
        let what = format!("{to:?}");
        let ((input, writer), (_reader, output)) = (Kind::Tcp.open(), to.open());
        rustix::net::sockopt::set_socket_linger(&writer, Some(Duration::ZERO)).unwrap();
        rustix::io::write(&writer, b"x").unwrap();
        let mut relay = Process::relay(input, output);
        drop(writer);
        assert_eq!(relay.end(&what).code(), Some(1), "{what}");
        assert!(relay.stderr().contains("Connection reset"), "{what}");
    }
}

#[test]
fn a_socket_that_may_lose_messages_is_refused_with_the_reason() {
    let socket = || OwnedFd::from(UdpSocket::bind("127.0.0.1:0").unwrap());
    for (input, output) in [(socket(), Kind::Pipe.open().1), (Kind::Pipe.open().0, socket())] {
        let mut relay = Process::relay(input, output);
        assert_eq!(relay.end("UDP").code(), Some(1));
        let stderr = relay.stderr();
        assert!(stderr.contains("loses messages") && stderr.contains("use a stream"), "{stderr}");
    }
}

#[test]
fn relays_may_share_a_pipe() {
    let bytes: Vec<u8> = (0..3_000_000).map(byte_at).collect();
    let count = |bytes: &[u8]| {
        let mut counts = [0_u64; 256];
        bytes.iter().for_each(|&byte| counts[usize::from(byte)] += 1);
        counts
    };
    // Three relays share the same input and output pipes.
    let ((input, first), (last, output)) = (Kind::Pipe.open(), Kind::Pipe.open());
    let mut relays: Vec<_> =
        (0..3).map(|_| Process::relay(input.try_clone().unwrap(), output.try_clone().unwrap())).collect();
    drop((input, output));
    let arrived = thread::scope(|scope| {
        scope.spawn(|| File::from(first).write_all(&bytes).unwrap());
        let mut all = Vec::new();
        File::from(last).read_to_end(&mut all).unwrap();
        all
    });
    assert_eq!(arrived.len(), bytes.len());
    assert!(count(&arrived) == count(&bytes), "each byte comes once");
    assert!(relays.iter_mut().all(|relay| relay.end("one of three").success()));
}
