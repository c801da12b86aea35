//! Slow input is answered line by line. These tests write a line only after the answer to the previous line, so they
//! hang if an answer is held back.

use std::io::{Write, pipe};
use std::thread;

use pipeio::lines::transforms::Spaces;
use pipeio::lines::{Engine, OutputMethod};

use super::{read_line, set_nonblocking, threads};

#[test]
fn every_line_is_answered_before_the_next() {
    for workers in [1, 2, 3] {
        for send in [OutputMethod::Write, OutputMethod::GiveAway] {
            let (input, mut to_engine) = pipe().unwrap();
            let (from_engine, output) = pipe().unwrap();
            let engine = Engine::new().send(send);
            let run = thread::spawn(move || engine.run_parallel(input, output, Spaces::new(), threads(workers)));
            for round in 0..20 {
                // Write a line in two pieces, the second together with the start of the next line.
                if round == 0 {
                    to_engine.write_all(b"0 ").unwrap();
                }
                write!(to_engine, "a b\n{} ", round + 1).unwrap();
                assert_eq!(read_line(&from_engine), format!("[spaces: 2]{round} a b\n").as_bytes());
            }
            drop(to_engine);
            run.join().unwrap().unwrap();
        }
    }
}

#[test]
fn non_blocking_descriptors_are_waited_for() {
    for workers in [1, 2] {
        for send in [OutputMethod::Write, OutputMethod::GiveAway] {
            let (input, mut to_engine) = pipe().unwrap();
            let (from_engine, output) = pipe().unwrap();
            set_nonblocking(&input);
            set_nonblocking(&output);
            let engine = Engine::new().send(send);
            let run = thread::spawn(move || engine.run_parallel(input, output, Spaces::new(), threads(workers)));
            to_engine.write_all(b"one\n").unwrap();
            assert_eq!(read_line(&from_engine), b"[spaces: 0]one\n");
            // The input is larger than both pipes, and nothing reads the output: the engine must wait for room.
            let writer = thread::spawn(move || {
                for _ in 0..20_000 {
                    to_engine.write_all(b"a longer line, with spaces\n").unwrap();
                }
            });
            // A pipe has 16 slots of one page each, and none of these writes is split between pages. So a full pipe of
            // 64 KiB holds at least half of that.
            while super::unread(&writer_end(&from_engine)) < 32_000 {
                thread::yield_now();
            }
            for _ in 0..20_000 {
                assert_eq!(read_line(&from_engine), b"[spaces: 4]a longer line, with spaces\n");
            }
            writer.join().unwrap();
            run.join().unwrap().unwrap();
        }
    }
}

/// A write end of the pipe whose read end is `reader`.
fn writer_end(reader: &std::io::PipeReader) -> std::io::PipeWriter {
    use std::os::fd::AsRawFd;
    let path = format!("/proc/self/fd/{}", reader.as_raw_fd());
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    std::os::fd::OwnedFd::from(file).into()
}
