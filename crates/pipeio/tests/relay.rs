//! The relay between descriptors of every type: the output is the input.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use pipeio::pipe::{self, Pipe};
use pipeio::relay::{CapacityChange, End, Method, MethodChoice, Relay, RelayReport};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, OptionalActions, OutputModes, tcgetattr, tcsetattr};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Pipe,
    Packets,
    Fifo,
    File,
    Memfd,
    Append,
    Unix,
    Tcp,
    Messages,
    Datagrams,
    Tty,
    Master,
    Null,
}

const INPUTS: [Kind; 12] = [
    Kind::Pipe,
    Kind::Packets,
    Kind::Fifo,
    Kind::File,
    Kind::Memfd,
    Kind::Unix,
    Kind::Tcp,
    Kind::Messages,
    Kind::Datagrams,
    Kind::Tty,
    Kind::Master,
    Kind::Null,
];
const OUTPUTS: [Kind; 13] = [
    Kind::Pipe,
    Kind::Packets,
    Kind::Fifo,
    Kind::File,
    Kind::Memfd,
    Kind::Append,
    Kind::Unix,
    Kind::Tcp,
    Kind::Messages,
    Kind::Datagrams,
    Kind::Tty,
    Kind::Master,
    Kind::Null,
];

/// Returns lines, because a terminal needs lines. All lines differ, and they don't fill a whole number of pages.
fn content(bytes: usize) -> Vec<u8> {
    let lines = (0..).map(|n: u64| format!("{n:08} {:016x}\n", n.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    let mut text = lines.take(bytes / 26 + 1).collect::<String>().into_bytes();
    text.truncate(bytes);
    *text.last_mut().unwrap() = b'\n';
    text
}

/// A new file and its path.
fn scratch() -> (PathBuf, File) {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!("pipeio-relay-{}-{}", std::process::id(), COUNT.fetch_add(1, Relaxed));
    let path = std::env::temp_dir().join(name);
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
    (path, file)
}

/// A file without a name.
fn unnamed() -> File {
    let (path, file) = scratch();
    fs::remove_file(path).unwrap();
    file
}

fn tcp() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (near, listener.accept().unwrap().0)
}

/// Two ends of a connection that carries messages.
fn messages() -> (OwnedFd, OwnedFd) {
    rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap()
}

/// A FIFO's ends, the reader first.
fn fifo() -> (OwnedFd, OwnedFd) {
    let (path, _) = scratch();
    fs::remove_file(&path).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    // Opening one end alone would wait for the other.
    let both = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let reader = File::open(&path).unwrap();
    let writer = OpenOptions::new().write(true).open(&path).unwrap();
    fs::remove_file(path).unwrap();
    drop(both);
    (reader.into(), writer.into())
}

fn memfd() -> File {
    rustix::fs::memfd_create("content", rustix::fs::MemfdFlags::CLOEXEC).unwrap().into()
}

/// A pseudo-terminal: first its master side, then the side that a program uses.
pub(crate) fn tty() -> (OwnedFd, OwnedFd) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let program = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).unwrap();
    let mut modes = tcgetattr(&program).unwrap();
    modes.output_modes -= OutputModes::OPOST;
    modes.local_modes -= LocalModes::ECHO;
    tcsetattr(&program, OptionalActions::Now, &modes).unwrap();
    (master, program)
}

/// The writing thread. Returns its descriptor if the descriptor must stay open until everything is read.
type Feeder = JoinHandle<Option<File>>;

/// Writes `text` to `fd` in another thread. Ignores the error if the reader leaves early.
fn feed(fd: impl Into<OwnedFd>, text: Vec<u8>) -> Feeder {
    let mut file = File::from(fd.into());
    thread::spawn(move || {
        let _ = file.write_all(&text);
        None
    })
}

/// Writes `text` in messages of many lengths, some longer than 64 KiB, and then an empty message.
fn feed_messages(fd: impl Into<OwnedFd>, text: Vec<u8>) -> Feeder {
    let fd = fd.into();
    thread::spawn(move || {
        let (mut text, mut length) = (&text[..], 1);
        while !text.is_empty() {
            let (message, rest) = text.split_at(length.min(text.len()));
            if rustix::io::write(&fd, message).is_err() {
                return None;
            }
            (text, length) = (rest, length * 3 % 150_001);
        }
        let _ = rustix::net::send(&fd, &[], rustix::net::SendFlags::empty());
        let _ = rustix::net::shutdown(&fd, rustix::net::Shutdown::Write);
        // Unread datagrams are lost when their sender is closed.
        Some(File::from(fd))
    })
}

/// A descriptor of this type that delivers `text`, and the thread that writes it.
fn input(kind: Kind, text: &[u8]) -> (OwnedFd, Option<Feeder>) {
    match kind {
        Kind::Pipe => {
            let pipe = Pipe::new().unwrap();
            (pipe.reader.into(), Some(feed(pipe.writer, text.to_vec())))
        }
        Kind::Packets => {
            let (reader, writer) = pipe_with(PipeFlags::DIRECT | PipeFlags::CLOEXEC).unwrap();
            (reader, Some(feed(writer, text.to_vec())))
        }
        Kind::Fifo => {
            let (reader, writer) = fifo();
            (reader, Some(feed(writer, text.to_vec())))
        }
        Kind::Messages => {
            let (near, far) = messages();
            (near, Some(feed_messages(far, text.to_vec())))
        }
        Kind::Datagrams => {
            let (near, far) = UnixDatagram::pair().unwrap();
            (near.into(), Some(feed_messages(far, text.to_vec())))
        }
        Kind::Master => {
            let (master, program) = tty();
            (master, Some(feed(program, text.to_vec())))
        }
        Kind::File | Kind::Memfd => {
            let mut file = if kind == Kind::File { unnamed() } else { memfd() };
            file.write_all(text).unwrap();
            file.rewind().unwrap();
            (file.into(), None)
        }
        Kind::Unix => {
            let (near, far) = UnixStream::pair().unwrap();
            (near.into(), Some(feed(far, text.to_vec())))
        }
        Kind::Tcp => {
            let (near, far) = tcp();
            (near.into(), Some(feed(far, text.to_vec())))
        }
        Kind::Tty => {
            let (master, program) = tty();
            // Control-D at the start of a line ends the input once.
            let typed = [text, b"\x04"].concat();
            let mut master = File::from(master);
            let feeder = thread::spawn(move || {
                master.write_all(&typed).unwrap();
                // Closing the terminal's master side would discard typed but unread bytes.
                Some(master)
            });
            (program, Some(feeder))
        }
        Kind::Null => (File::open("/dev/null").unwrap().into(), None),
        Kind::Append => unreachable!("append is about writing"),
    }
}

fn collect(fd: impl Into<OwnedFd>) -> JoinHandle<Vec<u8>> {
    let mut file = File::from(fd.into());
    thread::spawn(move || {
        let (mut all, mut piece) = (Vec::new(), vec![0; 200_000]);
        loop {
            match file.read(&mut piece) {
                Ok(0) => return all,
                Ok(got) => all.extend_from_slice(&piece[..got]),
                // EIO: a terminal reports that the program has closed it.
                Err(error) if error.raw_os_error() == Some(5) => return all,
                Err(error) => panic!("{error}"),
            }
        }
    })
}

/// Returns the bytes that arrived, or `None` if they can't be known.
type Arrived = Box<dyn FnOnce() -> Option<Vec<u8>>>;

/// A descriptor of this type to write to, and a function that returns the bytes that arrived. Call the function once
/// the descriptor is closed.
fn output(kind: Kind) -> (OwnedFd, Arrived) {
    let joined = |reader: JoinHandle<Vec<u8>>| -> Arrived { Box::new(move || Some(reader.join().unwrap())) };
    match kind {
        Kind::Pipe => {
            let pipe = Pipe::new().unwrap();
            (pipe.writer.into(), joined(collect(pipe.reader)))
        }
        Kind::Packets => {
            let (reader, writer) = pipe_with(PipeFlags::DIRECT | PipeFlags::CLOEXEC).unwrap();
            (writer, joined(collect(reader)))
        }
        Kind::Fifo => {
            let (reader, writer) = fifo();
            (writer, joined(collect(reader)))
        }
        Kind::Messages => {
            let (near, far) = messages();
            (near, joined(collect(far)))
        }
        Kind::Datagrams => {
            let (near, far) = UnixDatagram::pair().unwrap();
            let end = near.try_clone().unwrap();
            let reader = collect(far);
            let arrived = move || {
                // The reader's queue may be full, so the descriptor must block.
                end.set_nonblocking(false).unwrap();
                // If the input's empty message was passed on, it has already ended the reader.
                if let Err(error) = end.send(&[]) {
                    assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused, "{error}");
                }
                Some(reader.join().unwrap())
            };
            (near.into(), Box::new(arrived))
        }
        Kind::Master => {
            let (master, program) = tty();
            let mut typing = File::from(master.try_clone().unwrap());
            let reader = collect(program);
            let arrived = move || {
                typing.write_all(b"\x04").unwrap();
                Some(reader.join().unwrap())
            };
            (master, Box::new(arrived))
        }
        Kind::File | Kind::Memfd => {
            let mut file = if kind == Kind::File { unnamed() } else { memfd() };
            let fd = file.try_clone().unwrap().into();
            (
                fd,
                Box::new(move || {
                    let mut all = Vec::new();
                    file.rewind().unwrap();
                    file.read_to_end(&mut all).unwrap();
                    Some(all)
                }),
            )
        }
        Kind::Append => {
            let (path, mut file) = scratch();
            file.write_all(b"before\n").unwrap();
            let fd = OpenOptions::new().append(true).open(&path).unwrap().into();
            fs::remove_file(path).unwrap();
            (
                fd,
                Box::new(move || {
                    let mut all = Vec::new();
                    file.rewind().unwrap();
                    file.read_to_end(&mut all).unwrap();
                    Some(all.strip_prefix(b"before\n").expect("what was there stays").to_vec())
                }),
            )
        }
        Kind::Unix => {
            let (near, far) = UnixStream::pair().unwrap();
            (near.into(), joined(collect(far)))
        }
        Kind::Tcp => {
            let (near, far) = tcp();
            (near.into(), joined(collect(far)))
        }
        Kind::Tty => {
            let (master, program) = tty();
            (program, joined(collect(master)))
        }
        Kind::Null => (OpenOptions::new().write(true).open("/dev/null").unwrap().into(), Box::new(|| None)),
    }
}

/// Passes `text` from one type of descriptor to the other and compares the bytes that arrive with `text`.
fn pass(from: Kind, to: Kind, text: &[u8], nonblocking: bool, relay: Relay) -> RelayReport {
    let what = format!("{from:?} to {to:?}, non-blocking {nonblocking}, {relay:?}");
    let (source, feeder) = input(from, text);
    let (sink, arrived) = output(to);
    for fd in [&source, &sink] {
        rustix::io::ioctl_fionbio(fd, nonblocking).unwrap();
    }
    let report = relay.run(&source, &sink).unwrap_or_else(|error| panic!("{what}: {error}"));
    drop((source, sink));
    if let Some(feeder) = feeder {
        feeder.join().unwrap();
    }
    let text = if from == Kind::Null { b"" } else { text };
    if let Some(arrived) = arrived() {
        assert!(arrived == text, "{what}: {} bytes of {} arrived, {report:?}", arrived.len(), text.len());
    }
    assert_eq!((report.bytes, report.end), (text.len() as u64, End::Input), "{what}");
    report
}

#[test]
fn every_kind_of_input_reaches_every_kind_of_output() {
    let text = content(300_007);
    for from in INPUTS {
        for to in OUTPUTS {
            for nonblocking in [false, true] {
                for method in [MethodChoice::Fastest, MethodChoice::ReadWrite] {
                    let report = pass(from, to, &text, nonblocking, Relay::new().method(method));
                    if method == MethodChoice::ReadWrite {
                        assert_eq!((report.method, report.fallbacks.len()), (Method::ReadWrite, 0));
                    }
                }
            }
        }
    }
}

#[test]
fn pages_move_where_they_can() {
    let text = content(3_000_007);
    for (from, to, method) in [
        (Kind::Pipe, Kind::Pipe, Method::Splice),
        (Kind::Fifo, Kind::Pipe, Method::Splice),
        (Kind::File, Kind::Pipe, Method::SpliceThroughPipe),
        (Kind::Memfd, Kind::Pipe, Method::SpliceThroughPipe),
        (Kind::Pipe, Kind::File, Method::SpliceThroughPipe),
        (Kind::Pipe, Kind::Null, Method::Splice),
        (Kind::Pipe, Kind::Unix, Method::SpliceThroughPipe),
        (Kind::Tcp, Kind::Pipe, Method::SpliceThroughPipe),
        (Kind::File, Kind::Tcp, Method::Sendfile),
        (Kind::File, Kind::Null, Method::Sendfile),
        (Kind::Unix, Kind::Tcp, Method::SpliceThroughPipe),
        (Kind::Tcp, Kind::File, Method::SpliceThroughPipe),
        (Kind::Tty, Kind::Pipe, Method::ReadWrite),
        (Kind::Messages, Kind::Pipe, Method::ReadWrite),
    ] {
        let report = pass(from, to, &text, false, Relay::new());
        assert_eq!((report.method, report.fallbacks), (method, vec![]), "{from:?} to {to:?}");
    }
}

/// Two relays and a program write to the same open file, as in a shell's `{ one | relay & two | relay; } > file`.
#[test]
fn sharers_of_an_open_file_lose_no_bytes() {
    const SIZE: usize = 16 << 20;
    for kind in [Kind::Pipe, Kind::Unix] {
        let mut file = unnamed();
        thread::scope(|scope| {
            for byte in [b'a', b'b'] {
                let (input, writer): (OwnedFd, OwnedFd) = match kind {
                    Kind::Unix => UnixStream::pair().map(|(near, far)| (near.into(), far.into())).unwrap(),
                    _ => Pipe::new().map(|pipe| (pipe.reader.into(), pipe.writer.into())).unwrap(),
                };
                feed(writer, vec![byte; SIZE]);
                let file = &file;
                scope.spawn(move || assert_eq!(Relay::new().run(input, file).unwrap().bytes, SIZE as u64));
            }
            for _ in 0..1000 {
                (&file).write_all(&[b'c'; 57]).unwrap();
            }
        });
        assert_eq!(file.stream_position().unwrap(), 2 * SIZE as u64 + 57_000);
        file.rewind().unwrap();
        let mut content = Vec::new();
        file.read_to_end(&mut content).unwrap();
        let counts = [b'a', b'b', b'c'].map(|byte| content.iter().filter(|&&there| there == byte).count());
        assert_eq!(counts, [SIZE, SIZE, 57_000], "{kind:?}");
    }
}

/// Small pieces are joined to fill pages: all 33,000 bytes fit into a pipe of the default capacity.
#[test]
fn small_pieces_from_a_socket_take_little_room_in_a_pipe() {
    for (near, input) in [UnixStream::pair().map(|(a, b)| (OwnedFd::from(a), OwnedFd::from(b))).unwrap(), {
        let (near, far) = tcp();
        (near.into(), far.into())
    }] {
        let output = Pipe::new().unwrap();
        let mut near = File::from(near);
        thread::scope(|scope| {
            scope.spawn(|| Relay::new().capacity(CapacityChange::Keep).run(input, output.writer).unwrap());
            rustix::io::ioctl_fionbio(&near, true).unwrap();
            let deadline = Instant::now() + Duration::from_secs(60);
            let (text, mut sent) = (b"eleven bit\n".repeat(3000), 0);
            while sent < text.len() && Instant::now() < deadline {
                // The socket is full if the relay is late, or if the pieces fill the pipe.
                sent += near.write(&text[sent..(sent / 11 + 1) * 11]).unwrap_or(0);
                thread::sleep(Duration::from_micros(20));
            }
            while pipe::fill(&output.reader).unwrap() < 33_000 && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(1));
            }
            let held = pipe::fill(&output.reader).unwrap();
            drop(near);
            let reader = collect(output.reader);
            assert_eq!(reader.join().unwrap().len(), sent);
            assert_eq!((sent, held), (33_000, 33_000));
        });
    }
}

#[test]
fn append_mode_falls_back_to_read_and_write() {
    let text = content(300_007);
    for from in [Kind::Pipe, Kind::File, Kind::Unix] {
        let report = pass(from, Kind::Append, &text, false, Relay::new());
        assert_eq!(report.method, Method::ReadWrite, "{from:?}");
        assert!(!report.fallbacks.is_empty(), "{from:?}");
    }
}

#[test]
fn empty_and_tiny_inputs_are_passed_on() {
    for text in [&b""[..], b"x\n"] {
        for from in [Kind::Pipe, Kind::File, Kind::Unix, Kind::Tcp] {
            for to in OUTPUTS {
                pass(from, to, text, false, Relay::new());
            }
        }
    }
}

#[test]
fn file_offsets_are_used_and_updated() {
    let (mut from, mut to) = (unnamed(), unnamed());
    from.write_all(b"0123456789").unwrap();
    from.seek(SeekFrom::Start(4)).unwrap();
    to.write_all(b"abcdefgh").unwrap();
    to.seek(SeekFrom::Start(1)).unwrap();
    Relay::new().run(&from, &to).unwrap();
    to.write_all(b"!").unwrap();
    let mut all = String::new();
    to.rewind().unwrap();
    to.read_to_string(&mut all).unwrap();
    assert_eq!(all, "a456789!");
    assert_eq!(from.stream_position().unwrap(), 10);
}

#[test]
fn files_of_proc_have_content_whatever_their_size() {
    for to in [Kind::Pipe, Kind::File, Kind::Null, Kind::Unix] {
        let (sink, arrived) = output(to);
        let report = Relay::new().run(File::open("/proc/self/limits").unwrap(), &sink).unwrap();
        drop(sink);
        assert!(report.bytes > 100, "{to:?}: {report:?}");
        if let Some(arrived) = arrived() {
            assert!(arrived.starts_with(b"Limit"), "{to:?}: {report:?}");
        }
    }
}

#[test]
fn a_reader_that_leaves_early_ends_the_relay_quietly() {
    let text = content(8 << 20);
    for from in [Kind::Pipe, Kind::File, Kind::Unix] {
        for method in [MethodChoice::Fastest, MethodChoice::ReadWrite] {
            let (source, feeder) = input(from, &text);
            let Pipe { reader, writer } = Pipe::new().unwrap();
            let early = thread::spawn(move || {
                let mut some = [0; 1000];
                { reader }.read_exact(&mut some).unwrap();
                some
            });
            let report = Relay::new().method(method).run(&source, &writer).unwrap();
            assert_eq!(report.end, End::Output, "{from:?}");
            assert_eq!(early.join().unwrap(), text[..1000], "{from:?}");
            drop(source);
            feeder.map(|feeder| feeder.join().unwrap());
        }
    }
}

#[test]
fn more_than_4_gib_are_counted_right() {
    const SIZE: u64 = (4 << 30) + 12_345;
    // A sparse file with one byte at its end takes neither disk nor memory.
    let big = || {
        let fd = rustix::fs::memfd_create("big", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let mut file = File::from(fd);
        file.set_len(SIZE - 1).unwrap();
        file.seek(SeekFrom::End(0)).unwrap();
        file.write_all(b"!").unwrap();
        file.rewind().unwrap();
        file
    };
    let Pipe { reader, writer } = Pipe::new().unwrap();
    let counter = thread::spawn(move || {
        let (mut bytes, mut piece, mut last, mut sum) = (0, vec![0; 1 << 20], 0, 0u64);
        let mut file = reader;
        loop {
            let got = file.read(&mut piece).unwrap();
            if got == 0 {
                return (bytes, last, sum);
            }
            bytes += got as u64;
            last = piece[got - 1];
            // Check one byte of each piece, because holes read as zero.
            sum += u64::from(piece[0]);
        }
    });
    let report = Relay::new().run(big(), &writer).unwrap();
    drop(writer);
    assert_eq!((report.bytes, report.method), (SIZE, Method::SpliceThroughPipe));
    assert_eq!(counter.join().unwrap(), (SIZE, b'!', 0));
    let null = OpenOptions::new().write(true).open("/dev/null").unwrap();
    let report = Relay::new().run(big(), null).unwrap();
    assert_eq!((report.bytes, report.end), (SIZE, End::Input));
}

#[test]
fn a_write_error_is_reported() {
    let text = content(100_000);
    for from in [Kind::Pipe, Kind::File, Kind::Unix] {
        let (source, feeder) = input(from, &text);
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let error = Relay::new().run(&source, full).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{from:?}: {error}");
        drop(source);
        feeder.map(|feeder| feeder.join().unwrap());
    }
    // The output is a file that can't grow. splice fails at the end of the file, and then read and write must report
    // the error too.
    let fd = rustix::fs::memfd_create("t", rustix::fs::MemfdFlags::CLOEXEC | rustix::fs::MemfdFlags::ALLOW_SEALING);
    let small = File::from(fd.unwrap());
    small.set_len(50_000).unwrap();
    rustix::fs::fcntl_add_seals(&small, rustix::fs::SealFlags::GROW).unwrap();
    let (source, feeder) = input(Kind::Pipe, &text);
    let error = Relay::new().run(&source, &small).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}");
    drop(source);
    feeder.map(|feeder| feeder.join().unwrap());
}

#[test]
fn invalid_descriptors_are_reported_by_read_and_write() {
    let directory = File::open("/").unwrap();
    let (sink, _) = output(Kind::Null);
    assert_eq!(Relay::new().run(directory, &sink).unwrap_err().raw_os_error(), Some(21), "EISDIR");
    let (source, _) = input(Kind::File, b"x\n");
    let only_read = File::open("/dev/null").unwrap();
    assert_eq!(Relay::new().run(source, only_read).unwrap_err().raw_os_error(), Some(9), "EBADF");
}

#[test]
fn a_file_is_not_appended_to_itself() {
    let (path, mut file) = scratch();
    file.write_all(b"abc").unwrap();
    file.rewind().unwrap();
    let append = OpenOptions::new().append(true).open(&path).unwrap();
    fs::remove_file(path).unwrap();
    let error = Relay::new().run(&file, append).unwrap_err();
    assert!(error.to_string().contains("never end"), "{error}");
    assert_eq!(file.metadata().unwrap().len(), 3);
}

#[test]
fn messages_stay_apart_and_whole() {
    let long = content(190_000);
    for connected in [false, true] {
        let pair = || {
            if connected {
                return messages();
            }
            let (one, other) = UnixDatagram::pair().unwrap();
            (one.into(), other.into())
        };
        let ((source, feeder), (sink, reader)) = (pair(), pair());
        let sent = [b"one", &long[..], b"two"];
        let all = if connected { [b"one", &long[..], b"", b"two"].to_vec() } else { sent.to_vec() };
        let expected = all.clone();
        thread::scope(|scope| {
            scope.spawn(|| {
                for message in &all {
                    rustix::net::send(&feeder, message, rustix::net::SendFlags::empty()).unwrap();
                }
                // Datagrams end with an empty datagram; a connection reports its end.
                if connected {
                    rustix::net::shutdown(&feeder, rustix::net::Shutdown::Write).unwrap();
                } else {
                    rustix::net::send(&feeder, &[], rustix::net::SendFlags::empty()).unwrap();
                }
            });
            scope.spawn(|| {
                let mut buffer = vec![0; 200_000];
                for message in &expected {
                    let got = rustix::io::read(&reader, &mut buffer).unwrap();
                    assert!(&buffer[..got] == *message, "{got} bytes of {}", message.len());
                }
            });
            let report = Relay::new().run(&source, &sink).unwrap();
            assert_eq!((report.bytes, report.method), (190_006, Method::ReadWrite));
        });
    }
}

#[test]
fn packets_become_bytes() {
    let text = content(500_009);
    let (source, feeder) = input(Kind::Packets, &text);
    let Pipe { reader, writer } = Pipe::new().unwrap();
    let sink = thread::spawn(move || {
        let (mut all, mut piece) = (Vec::new(), [0; 100]);
        loop {
            match rustix::io::read(&reader, &mut piece).unwrap() {
                0 => return all,
                got => all.extend_from_slice(&piece[..got]),
            }
        }
    });
    // A reader with a small buffer loses the rest of a packet, unless the relay has turned the packet into plain bytes.
    let report = Relay::new().run(&source, &writer).unwrap();
    drop(writer);
    assert!(sink.join().unwrap() == text, "{report:?}");
    feeder.map(|feeder| feeder.join().unwrap());
}

#[test]
fn sockets_that_lose_messages_are_refused() {
    let udp = || std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let pipe = Pipe::new().unwrap();
    for error in [
        Relay::new().run(udp(), &pipe.writer).unwrap_err(),
        Relay::new().method(MethodChoice::ReadWrite).run(&pipe.reader, udp()).unwrap_err(),
    ] {
        assert_eq!(error.kind(), io::ErrorKind::Unsupported, "{error}");
        assert!(error.to_string().contains("use a stream"), "{error}");
    }
}

#[test]
fn pipes_have_the_requested_capacities() {
    let capacity = |wanted| {
        let (from, to) = (Pipe::new().unwrap(), Pipe::new().unwrap());
        drop(from.writer);
        let relay = Relay::new().capacity(wanted);
        let report = relay.run(&from.reader, &to.writer).unwrap();
        assert_eq!(report.capacities[1], Some(pipe::capacity(to.reader.as_fd()).unwrap()));
        report.capacities
    };
    let page = rustix::param::page_size();
    let new = Some(16 * page);
    assert_eq!(capacity(CapacityChange::Keep), [new, new]);
    assert_eq!(capacity(CapacityChange::Set(100_000)), [Some(131_072), Some(131_072)]);
    let raised = capacity(CapacityChange::Raise);
    assert!(raised.iter().all(|&capacity| capacity >= new), "{raised:?}");
    // If the output is a file, 256 KiB is faster than 1 MiB.
    let from = Pipe::new().unwrap();
    drop(from.writer);
    let report = Relay::new()
        .run(&from.reader, rustix::fs::memfd_create("file", rustix::fs::MemfdFlags::CLOEXEC).unwrap())
        .unwrap();
    assert!(report.capacities[0].is_some_and(|bytes| bytes <= 256 << 10), "{report:?}");
    // The pipe already holds more than the capacity requested here.
    let (from, to) = (Pipe::new().unwrap(), Pipe::new().unwrap());
    rustix::io::write(&from.writer, &[0; 50_000]).unwrap();
    drop(from.writer);
    let relay = Relay::new().capacity(CapacityChange::Set(page));
    let reader = collect(to.reader);
    let report = relay.run(&from.reader, to.writer).unwrap();
    assert_eq!((report.bytes, report.capacities), (50_000, [new, Some(page)]));
    assert_eq!(reader.join().unwrap().len(), 50_000);

    let (from, to) = (Pipe::new().unwrap(), Pipe::new().unwrap());
    let relay = Relay::new().capacity(CapacityChange::Set(1 << 31));
    assert!(relay.run(&from.reader, &to.writer).is_err(), "a requested capacity that is refused is an error");
}
