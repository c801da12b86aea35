//! Relays with memory between their sides, and relays with a rate limit.

use std::fs::File;
use std::io::{ErrorKind, PipeReader, PipeWriter, Read, Seek, Write, pipe};
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::pipe::{PipeFlags, pipe_with};

use pipeio::relay::{Capacity, Choice, End, MemoryBuffer, Relay, RelayHandle, Report, unread};

/// Bytes that depend on their position.
fn content(bytes: usize) -> Vec<u8> {
    (0..bytes as u64).map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

struct Running {
    input: PipeWriter,
    output: PipeReader,
    handle: RelayHandle,
    thread: JoinHandle<std::io::Result<Report>>,
}

/// A relay between two pipes.
fn start(relay: Relay, limit: Option<u64>) -> Running {
    let ((from, input), (output, to)) = (pipe().unwrap(), pipe().unwrap());
    let handle = RelayHandle::new();
    handle.set_limit(limit.and_then(NonZeroU64::new));
    let watched = handle.clone();
    let thread = thread::spawn(move || relay.run_with(from, to, &watched));
    Running { input, output, handle, thread }
}

fn buffered(bytes: usize, start_at: u8, stop_at: u8) -> Relay {
    Relay::new().buffer(MemoryBuffer::new(bytes).start_at(start_at).stop_at(stop_at)).capacity(Capacity::Keep)
}

/// Waits until `happens` returns true, for at most 20 seconds.
fn eventually(what: &str, mut happens: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !happens() {
        assert!(begin.elapsed() < Duration::from_secs(20), "{what}");
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn bytes_arrive_unchanged() {
    let bytes = content(2_000_003);
    for (buffer, start_at, stop_at) in
        [(1, 0, 100), (1, 100, 0), (10_000, 50, 50), (1 << 20, 100, 0), (1 << 20, 1, 99), (64 << 20, 90, 10)]
    {
        let Running { mut input, mut output, handle, thread } = start(buffered(buffer, start_at, stop_at), None);
        let sent = bytes.clone();
        let source = thread::spawn(move || sent.chunks(70_001).for_each(|piece| input.write_all(piece).unwrap()));
        let mut arrived = Vec::new();
        output.read_to_end(&mut arrived).unwrap();
        assert!(arrived == bytes, "{buffer} {start_at} {stop_at}: {} bytes", arrived.len());
        source.join().unwrap();
        let report = thread.join().unwrap().unwrap();
        assert_eq!((report.bytes, report.undelivered, report.end), (2_000_003, 0, End::Input));
        assert_eq!((handle.read(), handle.written(), handle.buffered()), (2_000_003, 2_000_003, 0));
    }
}

#[test]
fn a_writer_continues_while_the_reader_pauses() {
    let Running { mut input, mut output, handle, thread } = start(buffered(8 << 20, 0, 100), None);
    let bytes = content(4 << 20);
    // The write returns although nobody reads the output.
    input.write_all(&bytes).unwrap();
    eventually("all is read", || handle.read() == 4 << 20);
    assert!(handle.written() <= 65536 && unread(&input).is_some());
    drop(input);
    let mut arrived = Vec::new();
    output.read_to_end(&mut arrived).unwrap();
    assert!(arrived == bytes);
    thread.join().unwrap().unwrap();
}

#[test]
fn a_full_buffer_reads_again_only_at_its_mark() {
    let Running { mut input, mut output, handle, thread } = start(buffered(1 << 20, 0, 25), None);
    let source = thread::spawn(move || input.write_all(&content(3 << 20)).unwrap());
    // While the buffer filled, bytes also passed through it: at most as many as the output's pipe holds.
    eventually("it is full", || handle.read() >= 1 << 20);
    thread::sleep(Duration::from_millis(100));
    let full = handle.read();
    // Take half of the buffer: its fill level stays above the mark.
    output.read_exact(&mut vec![0; 1 << 19]).unwrap();
    eventually("it falls", || handle.written() >= 1 << 19);
    assert_eq!(handle.read(), full);
    let mut rest = Vec::new();
    output.read_to_end(&mut rest).unwrap();
    assert_eq!(rest.len(), (3 << 20) - (1 << 19));
    source.join().unwrap();
    thread.join().unwrap().unwrap();
}

#[test]
fn below_the_mark_bytes_wait_a_second_for_more() {
    let Running { mut input, mut output, handle, thread } = start(buffered(1 << 20, 50, 100), None);
    let begin = Instant::now();
    input.write_all(b"little").unwrap();
    output.read_exact(&mut [0; 6]).unwrap();
    assert!(begin.elapsed() >= Duration::from_secs(1), "it came before a pause");
    // The last bytes of the input are written without waiting for the mark.
    input.write_all(b"end").unwrap();
    drop(input);
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert_eq!((rest.as_str(), handle.read()), ("end", 9));
    thread.join().unwrap().unwrap();
}

#[test]
fn undelivered_bytes_are_counted() {
    let Running { mut input, mut output, thread, .. } = start(buffered(8 << 20, 0, 100), None);
    input.write_all(&content(1 << 20)).unwrap();
    let mut taken = [0; 1000];
    output.read_exact(&mut taken).unwrap();
    drop(output);
    let report = thread.join().unwrap().unwrap();
    assert_eq!(report.end, End::Output);
    // The relay has read these bytes, but no reader took them. Some may still be in the input's pipe.
    assert!((1 << 19..=(1 << 20) - 1000).contains(&report.undelivered), "{}", report.undelivered);
}

#[test]
fn a_limit_holds_and_changes() {
    let Running { mut input, mut output, handle, thread } = start(Relay::new(), Some(1));
    let bytes = content(500_000);
    let sent = bytes.clone();
    let source = thread::spawn(move || input.write_all(&sent).unwrap());
    let mut arrived = vec![0];
    output.read_exact(&mut arrived).unwrap();
    // At one byte per second this would take six days.
    handle.set_limit(NonZeroU64::new(1 << 30));
    output.read_to_end(&mut arrived).unwrap();
    assert!(arrived == bytes);
    source.join().unwrap();
    thread.join().unwrap().unwrap();
}

#[test]
fn impossible_buffers_and_inputs_are_refused() {
    let ((from, _input), (_output, to)) = (pipe().unwrap(), pipe().unwrap());
    let error = buffered(1 << 46, 0, 100).run(from, &to).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    let (near, _far) = UnixDatagram::pair().unwrap();
    let error = buffered(1 << 20, 0, 100).run(OwnedFd::from(near), to).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

#[test]
fn packets_arrive_whole() {
    let bytes = content(60_000);
    for (buffer, limit) in
        [(Some(1), None), (Some(1 << 20), None), (Some(10_000), Some(1 << 20)), (None, Some(100_000))]
    {
        let ((from, input), (mut output, to)) =
            (pipe_with(PipeFlags::DIRECT | PipeFlags::CLOEXEC).unwrap(), pipe().unwrap());
        let handle = RelayHandle::new();
        handle.set_limit(limit.and_then(NonZeroU64::new));
        let relay = buffer.map_or(Relay::new(), |bytes| buffered(bytes, 0, 100));
        let thread = thread::spawn(move || relay.run_with(from, to, &handle));
        let sent = bytes.clone();
        let source = thread::spawn(move || {
            for packet in sent.chunks(3000) {
                assert_eq!(rustix::io::write(&input, packet), Ok(packet.len()));
            }
        });
        let mut arrived = Vec::new();
        output.read_to_end(&mut arrived).unwrap();
        source.join().unwrap();
        assert!(arrived == bytes, "{buffer:?} {limit:?}: {} bytes", arrived.len());
        assert_eq!(thread.join().unwrap().unwrap().bytes, 60_000);
    }
}

#[test]
fn after_a_stop_the_counts_are_exact() {
    for round in 0..20 {
        let ((from, mut input), (mut output, to)) = (pipe().unwrap(), pipe().unwrap());
        let mut rest = from.try_clone().unwrap();
        let handle = RelayHandle::new();
        let observed = handle.clone();
        let thread = thread::spawn(move || buffered(1 << 20, 0, 100).run_with(from, to, &observed));
        let source = thread::spawn(move || input.write_all(&content(8 << 20)).unwrap());
        let reader = thread::spawn(move || {
            let (mut sum, mut piece) = (0, vec![0; 10_000]);
            loop {
                match output.read(&mut piece).unwrap() {
                    0 => return sum,
                    bytes => sum += bytes as u64,
                }
                thread::sleep(Duration::from_micros(200));
            }
        });
        thread::sleep(Duration::from_millis(1 + round));
        let undelivered = handle.stop();
        let (read, written) = (handle.read(), handle.written());
        assert_eq!(undelivered, read - written);
        assert!(thread.join().unwrap().is_err());
        let mut left = Vec::new();
        rest.read_to_end(&mut left).unwrap();
        source.join().unwrap();
        assert_eq!((read + left.len() as u64, written), (8 << 20, reader.join().unwrap()));
    }
}

#[test]
fn progress_is_seen_while_a_slow_reader_takes_the_bytes() {
    let mut file: File = rustix::fs::memfd_create("content", rustix::fs::MemfdFlags::CLOEXEC).unwrap().into();
    file.write_all(&content(8 << 20)).unwrap();
    for method in [Choice::Fastest, Choice::ReadWrite] {
        for socket in [false, true] {
            let (mut reader, to): (Box<dyn Read>, OwnedFd) = if socket {
                let (near, far) = UnixStream::pair().unwrap();
                (Box::new(far), near.into())
            } else {
                let (reader, writer) = pipe().unwrap();
                (Box::new(reader), writer.into())
            };
            file.rewind().unwrap();
            let (from, handle) = (file.try_clone().unwrap(), RelayHandle::new());
            let observed = handle.clone();
            let relay = Relay::new().method(method).capacity(Capacity::Keep);
            let thread = thread::spawn(move || relay.run_with(from, to, &observed));
            // The reader has taken nothing, and more bytes follow than the kernel holds.
            eventually("written bytes are counted", || handle.written() >= 32 << 10);
            std::io::copy(&mut reader, &mut std::io::sink()).unwrap();
            assert_eq!(thread.join().unwrap().unwrap().bytes, 8 << 20, "{method:?} {socket}");
        }
    }
}
