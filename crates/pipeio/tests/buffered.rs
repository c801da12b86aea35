//! Relays with memory between their sides, and relays with a rate limit.

use std::fs::File;
use std::io::{ErrorKind, PipeReader, PipeWriter, Read, Seek, Write, pipe};
use std::num::NonZeroU64;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, fchmod, ftruncate};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Uid, geteuid};
use rustix::thread::set_thread_res_uid;

use pipeio::relay::{CapacityChange, End, MemoryBuffer, MethodChoice, Relay, RelayHandle, RelayReport, unread};

/// Bytes that depend on their position.
fn content(bytes: usize) -> Vec<u8> {
    (0..bytes as u64).map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

struct Running {
    input: PipeWriter,
    output: PipeReader,
    handle: RelayHandle,
    thread: JoinHandle<std::io::Result<RelayReport>>,
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
    Relay::new().buffer(MemoryBuffer::new(bytes).start_at(start_at).stop_at(stop_at)).capacity(CapacityChange::Keep)
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
    // The output's pipe is full before the first byte arrives, so that no byte passes through while the buffer fills.
    let held = pipeio::pipe::capacity(&output).unwrap();
    let path = format!("/proc/self/fd/{}", output.as_raw_fd());
    File::options().write(true).open(path).unwrap().write_all(&vec![0; held]).unwrap();
    let source = thread::spawn(move || input.write_all(&content(3 << 20)).unwrap());
    eventually("it is full", || handle.buffered() >= 1 << 20);
    // Take half of the buffer: its fill level stays above the mark.
    output.read_exact(&mut vec![0; held + (1 << 19)]).unwrap();
    eventually("it falls", || handle.written() >= 1 << 19);
    assert_eq!(handle.read(), 1 << 20);
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
fn bytes_being_read_when_the_reader_leaves_are_counted() {
    for _ in 0..20 {
        let ((from, mut input), (mut output, to)) = (pipe().unwrap(), pipe().unwrap());
        let mut rest = from.try_clone().unwrap();
        let thread = thread::spawn(move || buffered(8 << 20, 0, 100).run(from, to));
        let source = thread::spawn(move || input.write_all(&vec![0; 4 << 20]).unwrap());
        output.read_exact(&mut [0; 100_000]).unwrap();
        drop(output);
        let report = thread.join().unwrap().unwrap();
        let mut left = Vec::new();
        rest.read_to_end(&mut left).unwrap();
        source.join().unwrap();
        assert_eq!((report.end, 100_000 + report.undelivered + left.len() as u64), (End::Output, 4 << 20));
    }
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

/// Whether a relay was stopped by its handle.
fn was_stopped(ended: std::io::Result<RelayReport>) -> bool {
    ended.is_err_and(|error| Errno::from_io_error(&error) == Some(Errno::CANCELED))
}

#[test]
fn a_stop_ends_a_relay_without_a_buffer() {
    // From a pipe that is always full to a pipe whose reader never pauses: splice.
    let Running { mut input, mut output, handle, thread } = start(Relay::new(), None);
    let source = thread::spawn(move || while input.write_all(&[0; 1 << 16]).is_ok() {});
    let sink = thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()).unwrap());
    eventually("bytes pass", || handle.written() > 1 << 20);
    assert_eq!(handle.stop(), 0);
    eventually("it stops", || thread.is_finished());
    assert!(was_stopped(thread.join().unwrap()));
    source.join().unwrap();
    sink.join().unwrap();

    // From a large file to /dev/null: sendfile.
    let (from, to) = (memfd(), File::options().write(true).open("/dev/null").unwrap());
    ftruncate(&from, 1 << 42).unwrap();
    let handle = RelayHandle::new();
    let observed = handle.clone();
    let thread = thread::spawn(move || Relay::new().run_with(from, to, &observed));
    eventually("bytes pass", || handle.written() > 0);
    handle.stop();
    eventually("it stops", || thread.is_finished());
    assert!(was_stopped(thread.join().unwrap()));
}

#[test]
fn a_handle_that_only_stops_counts_at_the_end() {
    let ((from, mut input), (mut output, to)) = (pipe().unwrap(), pipe().unwrap());
    let mut rest = from.try_clone().unwrap();
    let handle = RelayHandle::only_stops();
    let observed = handle.clone();
    let relay = Relay::new().method(MethodChoice::ReadWrite);
    let thread = thread::spawn(move || relay.run_with(from, to, &observed));
    input.write_all(&[0; 1000]).unwrap();
    output.read_exact(&mut [0; 1000]).unwrap();
    assert_eq!((handle.written(), handle.buffered()), (0, 0));
    assert_eq!(handle.stop(), 0);
    // A relay that already waits for input reads these bytes and can't write them.
    input.write_all(&[0; 500]).unwrap();
    assert!(was_stopped(thread.join().unwrap()));
    drop(input);
    let mut left = Vec::new();
    rest.read_to_end(&mut left).unwrap();
    assert_eq!((handle.written(), handle.buffered() + left.len() as u64), (1000, 500));
}

#[test]
fn after_a_stop_the_reader_gets_the_end_of_the_output() {
    let Running { mut input, mut output, handle, thread } = start(buffered(1 << 20, 0, 100), None);
    input.write_all(&[0; 300_000]).unwrap();
    eventually("the output's pipe is full", || handle.read() == 300_000 && handle.written() >= 1 << 16);
    handle.stop();
    // The input stays open and sends no more.
    let reader = thread::spawn(move || output.read_to_end(&mut Vec::new()).unwrap());
    eventually("the output ends", || reader.is_finished());
    assert!(was_stopped(thread.join().unwrap()));
    drop(input);
}

fn memfd() -> File {
    rustix::fs::memfd_create("content", rustix::fs::MemfdFlags::CLOEXEC).unwrap().into()
}

/// Starts a relay from a file of 8 MiB that may not open its output again, like a pipe of another user.
fn start_without_access(to: OwnedFd, method: MethodChoice) -> (RelayHandle, JoinHandle<std::io::Result<RelayReport>>) {
    let (from, handle) = (memfd(), RelayHandle::new());
    ftruncate(&from, 8 << 20).unwrap();
    let observed = handle.clone();
    let thread = thread::spawn(move || {
        fchmod(&to, Mode::empty()).unwrap();
        // Root may open everything, so this thread becomes another user.
        let other = Uid::from_raw(65534);
        if geteuid().is_root() {
            set_thread_res_uid(other, other, other).unwrap();
        }
        Relay::new().method(method).capacity(CapacityChange::Keep).run_with(from, to, &observed)
    });
    (handle, thread)
}

#[test]
fn progress_is_seen_on_a_pipe_of_another_user_and_on_a_terminal() {
    for method in [MethodChoice::Fastest, MethodChoice::ReadWrite] {
        let (mut reader, writer) = pipe().unwrap();
        let (handle, thread) = start_without_access(writer.into(), method);
        // The reader has taken nothing, and more bytes follow than the pipe holds.
        eventually("bytes in the pipe are counted", || handle.written() >= 32 << 10);
        std::io::copy(&mut reader, &mut std::io::sink()).unwrap();
        assert_eq!(thread.join().unwrap().unwrap().bytes, 8 << 20, "{method:?}");
    }
    let (master, terminal) = crate::relay::tty();
    let (handle, thread) = start_without_access(terminal, MethodChoice::Fastest);
    eventually("bytes in the terminal are counted", || handle.written() >= 4 << 10);
    handle.stop();
    drop(master);
    assert!(thread.join().unwrap().is_err());
}

#[test]
fn progress_is_seen_while_a_slow_reader_takes_the_bytes() {
    let mut file = memfd();
    file.write_all(&content(8 << 20)).unwrap();
    for method in [MethodChoice::Fastest, MethodChoice::ReadWrite] {
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
            let relay = Relay::new().method(method).capacity(CapacityChange::Keep);
            let thread = thread::spawn(move || relay.run_with(from, to, &observed));
            // The reader has taken nothing, and more bytes follow than the kernel holds.
            eventually("written bytes are counted", || handle.written() >= 32 << 10);
            std::io::copy(&mut reader, &mut std::io::sink()).unwrap();
            assert_eq!(thread.join().unwrap().unwrap().bytes, 8 << 20, "{method:?} {socket}");
        }
    }
}
