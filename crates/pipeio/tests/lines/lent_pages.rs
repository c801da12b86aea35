//! Pages given to a pipe don't change, no matter how late a reader reads them or through which further pipes.

use std::io::{PipeReader, Read, Write, pipe};
use std::thread;

use pipeio::lines::transforms::Spaces;
use pipeio::lines::{Engine, OutputMethod};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::pipe::{SpliceFlags, fcntl_setpipe_size, splice, tee};
use rustix::time::Timespec;

use super::reference::Job;
use super::{all, threads};

/// The capacity of the reader's own pipe, which delays pages: the largest that an unprivileged user may request.
const HELD: usize = 1 << 20;

/// Returns lines that all differ, so an overwritten page is detected.
fn input() -> Vec<u8> {
    let mut input = Vec::new();
    for number in 0..400_000 {
        writeln!(input, "line {number} of many").unwrap();
    }
    input
}

fn check(workers: usize, read: impl FnOnce(PipeReader) -> Vec<u8> + Send) {
    let input = input();
    let expected = Job::Spaces.reference(&input, b'\n');
    let (from_feeder, feeder) = pipe().unwrap();
    let (from_engine, output) = pipe().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| all(&input)(feeder));
        let run = scope.spawn(move || {
            let engine = Engine::new().send(OutputMethod::GiveAway);
            engine.run_parallel(from_feeder, output, Spaces::new(), threads(workers)).unwrap()
        });
        let got = read(from_engine);
        assert!(got == expected, "{workers} threads");
        let report = run.join().unwrap();
        assert_eq!(report.bytes_out, expected.len() as u64);
        assert!(report.given_away > report.bytes_out / 2, "hardly anything was given away: {report:?}");
    });
}

/// Moves page references to another pipe, and reads them 1 MiB later.
#[test]
fn pages_spliced_onwards_and_read_later_are_unchanged() {
    for workers in [1, 2] {
        check(workers, |from_engine| {
            let (mut late, held) = pipe().unwrap();
            fcntl_setpipe_size(&held, HELD).unwrap();
            let mut bytes = Vec::new();
            loop {
                match splice(&from_engine, None, &held, None, HELD, SpliceFlags::NONBLOCK) {
                    Ok(0) => break,
                    Ok(_) => {}
                    // If the target is full, the kernel doesn't check whether the source has ended.
                    Err(Errno::AGAIN) if has_ended(&from_engine) => break,
                    Err(Errno::AGAIN) if is_empty(&from_engine) => thread::yield_now(),
                    Err(Errno::AGAIN) => {
                        let held = rustix::io::ioctl_fionread(&late).unwrap();
                        read_some(&mut late, &mut bytes, held.min(4096) as usize);
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            drop(held);
            late.read_to_end(&mut bytes).unwrap();
            bytes
        });
    }
}

/// Duplicates page references, consumes the originals, and reads the duplicates once their pipe is full.
#[test]
fn pages_teed_and_read_later_are_unchanged() {
    for workers in [1, 2] {
        check(workers, |mut from_engine| {
            let (mut late, held) = pipe().unwrap();
            fcntl_setpipe_size(&held, HELD).unwrap();
            let mut bytes = Vec::new();
            let mut teed = Vec::new();
            loop {
                match tee(&from_engine, &held, HELD, SpliceFlags::NONBLOCK) {
                    Ok(0) => break,
                    Ok(some) => read_some(&mut from_engine, &mut bytes, some),
                    // If the target is full, the kernel doesn't check whether the source has ended.
                    Err(Errno::AGAIN) if has_ended(&from_engine) => break,
                    Err(Errno::AGAIN) if is_empty(&from_engine) => thread::yield_now(),
                    Err(Errno::AGAIN) => {
                        let held = rustix::io::ioctl_fionread(&late).unwrap();
                        read_some(&mut late, &mut teed, held as usize);
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            drop(held);
            late.read_to_end(&mut teed).unwrap();
            assert!(teed == bytes, "what was teed isn't what was read");
            bytes
        });
    }
}

fn has_ended(pipe: &PipeReader) -> bool {
    let mut ready = [PollFd::new(pipe, PollFlags::IN)];
    poll(&mut ready, Some(&Timespec::default())).unwrap();
    ready[0].revents() == PollFlags::HUP
}

fn is_empty(pipe: &PipeReader) -> bool {
    rustix::io::ioctl_fionread(pipe).unwrap() == 0
}

/// Moves exactly `count` bytes to the end of `bytes`.
fn read_some(pipe: &mut PipeReader, bytes: &mut Vec<u8>, count: usize) {
    let read = pipe.take(count as u64).read_to_end(bytes).unwrap();
    assert_eq!(read, count);
}
