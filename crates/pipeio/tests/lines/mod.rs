//! The line engine on real descriptors, compared with a reference without batches, threads or vector instructions.

mod faults;
mod lent_pages;
mod reference;
mod same_bytes;
mod slow_input;

use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::thread;

use pipeio::lines::{Engine, Error, LinesReport, Transform};

/// Returns the output and the result of a run on `threads` threads, with the input that `feed` writes.
fn run<T: Transform + Clone + Send>(
    engine: &Engine,
    threads: usize,
    transform: T,
    feed: impl FnOnce(PipeWriter) + Send,
) -> (Vec<u8>, Result<LinesReport, Error>) {
    let (input, to_engine) = pipe().unwrap();
    let (mut from_engine, output) = pipe().unwrap();
    let threads = NonZeroUsize::new(threads).unwrap();
    thread::scope(|scope| {
        scope.spawn(move || feed(to_engine));
        let result = scope.spawn(move || engine.run_parallel(input, output, transform, threads));
        let mut bytes = Vec::new();
        from_engine.read_to_end(&mut bytes).unwrap();
        (bytes, result.join().unwrap())
    })
}

/// Writes `bytes` until the reader leaves or all are written.
fn all(bytes: &[u8]) -> impl FnOnce(PipeWriter) + Send {
    move |mut writer| {
        let _ = writer.write_all(bytes);
    }
}

/// Writes `bytes` in pieces that end at `ends`, each after the previous one was read, so that no read returns two.
fn pieces(bytes: &[u8], ends: &[usize]) -> impl FnOnce(PipeWriter) + Send {
    move |mut writer| {
        let mut start = 0;
        for &end in ends.iter().chain([&bytes.len()]) {
            let end = end.clamp(start, bytes.len());
            if writer.write_all(&bytes[start..end]).is_err() {
                return;
            }
            start = end;
            while unread(&writer) > 0 {
                thread::yield_now();
            }
        }
    }
}

/// Writes `bytes` so that one read gets no more than `size` of them.
fn small(bytes: &[u8], size: usize) -> impl FnOnce(PipeWriter) + Send {
    let ends: Vec<_> = (0..bytes.len()).step_by(size).collect();
    move |writer| pieces(bytes, &ends)(writer)
}

/// Bytes in the pipe; 0 if it has no reader any more.
fn unread(pipe: &PipeWriter) -> u64 {
    use rustix::event::{PollFd, PollFlags, poll};
    let mut ready = [PollFd::new(pipe, PollFlags::OUT)];
    poll(&mut ready, Some(&rustix::time::Timespec::default())).unwrap();
    if ready[0].revents().contains(PollFlags::ERR) {
        return 0;
    }
    rustix::io::ioctl_fionread(pipe).unwrap()
}

fn set_nonblocking(descriptor: impl AsFd) {
    let flags = rustix::fs::fcntl_getfl(&descriptor).unwrap();
    rustix::fs::fcntl_setfl(&descriptor, flags | rustix::fs::OFlags::NONBLOCK).unwrap();
}

fn threads(number: usize) -> NonZeroUsize {
    NonZeroUsize::new(number).unwrap()
}

/// Reads exactly one line, byte by byte, so that no byte of the next line is taken.
fn read_line(mut pipe: &PipeReader) -> Vec<u8> {
    let mut line = Vec::new();
    while line.last() != Some(&b'\n') {
        let mut byte = [0];
        assert_eq!(pipe.read(&mut byte).unwrap(), 1, "the output ended within a line");
        line.push(byte[0]);
    }
    line
}

/// The number of a line wraps instead of panicking.
#[test]
fn after_the_greatest_number_comes_zero() {
    for threads in [1, 2] {
        for (first, expected) in [(u64::MAX, "18446744073709551615\ta\n0\tb\n1\tc\n"), (0, "0\ta\n1\tb\n2\tc\n")] {
            let number = pipeio::lines::transforms::Number::default();
            let (bytes, result) = run(&Engine::new().first_line(first), threads, number, all(b"a\nb\nc\n"));
            result.unwrap();
            assert_eq!(String::from_utf8(bytes).unwrap(), expected);
        }
    }
}

/// On several CPUs the pipe's lock makes reader and writer alternate, and a larger pipe would only use more of the
/// cache.
#[test]
fn a_pipe_is_enlarged_on_one_cpu_only() {
    let capacities = |engine: Engine| {
        let ((input, to_engine), (_reader, output)) = (pipe().unwrap(), pipe().unwrap());
        drop(to_engine);
        let before = pipeio::pipe::capacity(&input).unwrap();
        engine.run(&input, &output, &mut pipeio::lines::transforms::Identity).unwrap();
        (before, pipeio::pipe::capacity(&input).unwrap())
    };
    let (_, raised) = super::on_one_cpu(|| capacities(Engine::new()));
    assert_eq!(raised, 256 << 10);
    let (before, told) = super::on_one_cpu(|| capacities(Engine::new().batch(threads(4096))));
    assert_eq!(before, told);
    if thread::available_parallelism().unwrap().get() > 1 {
        let (before, free) = capacities(Engine::new());
        assert_eq!(before, free);
    }
}
