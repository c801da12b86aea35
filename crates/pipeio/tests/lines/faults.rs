//! Errors and early ends: what the caller and the reader get.

use std::fs::OpenOptions;
use std::io::{Read, Write, pipe};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use pipeio::lines::transforms::{Identity, Spaces};
use pipeio::lines::{Ended, Engine, Error, Failure, Fate, Output, OutputMethod, Transform, per_line};
use proptest::prelude::*;

use super::{all, run, small, threads};

#[test]
fn a_full_disk_is_an_error() {
    for workers in [1, 2] {
        let (input, mut writer) = pipe().unwrap();
        writer.write_all(b"line\n").unwrap();
        drop(writer);
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let error = Engine::new().run_parallel(input, full, Spaces::new(), threads(workers)).unwrap_err();
        assert!(matches!(&error, Error::Write(error) if error.kind() == std::io::ErrorKind::StorageFull), "{error}");
    }
}

#[test]
fn an_input_that_cannot_be_read_is_an_error() {
    let directory = std::fs::File::open("/").unwrap();
    let (_reader, output) = pipe().unwrap();
    let error = Engine::new().run(directory, output, &mut Spaces::new()).unwrap_err();
    assert!(error.to_string().starts_with("the input can't be read"), "{error}");
}

#[test]
fn a_reader_that_leaves_ends_the_run_quietly() {
    for workers in [1, 2] {
        for send in [OutputMethod::Write, OutputMethod::GiveAway] {
            let (input, mut to_engine) = pipe().unwrap();
            let (mut from_engine, output) = pipe().unwrap();
            // The input is endless, so the run ends only when the reader leaves.
            thread::spawn(move || while to_engine.write_all(&b"line after line\n".repeat(1000)).is_ok() {});
            let engine = Engine::new().send(send);
            let run = thread::spawn(move || engine.run_parallel(input, output, Spaces::new(), threads(workers)));
            from_engine.read_exact(&mut [0; 100_000]).unwrap();
            drop(from_engine);
            assert_eq!(run.join().unwrap().unwrap().ended, Ended::ReadersGone);
        }
    }
}

/// One thread notices the end while another waits for input that never arrives.
#[test]
fn the_end_reaches_a_thread_which_waits_for_input() {
    let (input, mut to_engine) = pipe().unwrap();
    let (from_engine, output) = pipe().unwrap();
    drop(from_engine);
    to_engine.write_all(b"one line\n").unwrap();
    let report = Engine::new().run_parallel(input, output, Spaces::new(), threads(3)).unwrap();
    assert_eq!(report.ended, Ended::ReadersGone);
    drop(to_engine);
}

#[test]
fn interrupted_calls_are_repeated() {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: all zeros is a valid action: the default handler, no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = nothing as *const () as usize;
    // SAFETY: the handler does nothing, so it may run at any time. SA_RESTART isn't set, so that calls return EINTR.
    assert_eq!(unsafe { libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()) }, 0);
    for send in [OutputMethod::Write, OutputMethod::GiveAway] {
        let (input, mut to_engine) = pipe().unwrap();
        let (mut from_engine, output) = pipe().unwrap();
        let line = b"interrupted now and then\n";
        let over = &AtomicBool::new(false);
        thread::scope(|scope| {
            let (sender, receiver) = std::sync::mpsc::channel();
            let run = scope.spawn(move || {
                // SAFETY: the call only returns the calling thread's id.
                sender.send(unsafe { libc::pthread_self() }).unwrap();
                let result = Engine::new().send(send).run(input, output, &mut Identity);
                while !over.load(Ordering::Relaxed) {
                    thread::yield_now();
                }
                result
            });
            let engine = receiver.recv().unwrap();
            let interrupter = scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    // SAFETY: the engine's thread ends only after `over` is set, and it is not joined before then. The
                    // handler is installed.
                    unsafe { libc::pthread_kill(engine, libc::SIGUSR1) };
                    thread::sleep(std::time::Duration::from_micros(50));
                }
            });
            scope.spawn(move || {
                for _ in 0..2000 {
                    to_engine.write_all(&line.repeat(20)).unwrap();
                    thread::yield_now();
                }
            });
            let mut bytes = Vec::new();
            from_engine.read_to_end(&mut bytes).unwrap_or_default();
            over.store(true, Ordering::Relaxed);
            interrupter.join().unwrap();
            run.join().unwrap().unwrap();
            assert!(bytes == line.repeat(40_000));
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// Lines before the long line are written, and nothing after them. The error has the long line's offset.
    #[test]
    fn the_error_for_an_overlong_line_has_its_offset(
        lengths in prop::collection::vec(0usize..40, 0..30),
        limit in 0usize..40,
        batch in 1usize..200,
        workers in 1usize..4,
        ends_with_newline: bool,
    ) {
        let mut input = Vec::new();
        for length in &lengths {
            input.extend(vec![b'x'; *length]);
            input.push(b'\n');
        }
        if !ends_with_newline {
            input.pop();
        }
        let engine = Engine::new().batch(NonZeroUsize::new(batch).unwrap()).max_line(limit);
        let (bytes, result) = run(&engine, workers, Identity, small(&input, batch));
        match lengths.iter().position(|&length| length > limit) {
            None => {
                result.unwrap();
                prop_assert_eq!(bytes, input);
            }
            Some(long) => {
                let start: usize = lengths[..long].iter().map(|length| length + 1).sum();
                let error = result.unwrap_err();
                prop_assert!(matches!(error, Error::LineTooLong { offset, limit: at } if offset == start as u64 && at == limit), "{}", error);
                prop_assert_eq!(bytes, &input[..start]);
            }
        }
    }
}

/// Executes lines that are commands: `drop`, `stop`, `leave`, `fail` and `panic`.
#[derive(Clone)]
struct Commands;

impl Transform for Commands {
    fn line<'b>(&mut self, line: &'b [u8], output: &mut Output<'b>) -> Result<Fate, Failure> {
        output.extend(line);
        match line {
            b"drop" => Ok(Fate::Drop),
            b"stop" => Ok(Fate::KeepAndStop),
            b"leave" => Ok(Fate::DropAndStop),
            b"fail" => Err("told to fail".into()),
            b"panic" => panic!("told to panic"),
            _ => Ok(Fate::Keep),
        }
    }
}

#[test]
fn stops_and_failures_are_the_same_on_any_number_of_threads() {
    for batch in [3, 7, 100, 10_000] {
        for workers in [1, 2, 4] {
            let engine = Engine::new().batch(NonZeroUsize::new(batch).unwrap());
            let run_with = |order: &str| {
                let input = format!("{}drop\nkept\n{order}\n{}", "before\n".repeat(100), "after\n".repeat(1000));
                let (bytes, result) = run(&engine, workers, Commands, small(input.as_bytes(), batch));
                let text = String::from_utf8(bytes).unwrap();
                (text.strip_prefix(&"before\n".repeat(100)).unwrap().to_owned(), result)
            };
            let (text, result) = run_with("stop");
            assert_eq!((text.as_str(), result.unwrap().ended), ("kept\nstop\n", Ended::Stopped));
            let (text, result) = run_with("leave");
            assert_eq!((text.as_str(), result.unwrap().ended), ("kept\n", Ended::Stopped));
            let (text, result) = run_with("fail");
            assert_eq!(text, "kept\n");
            assert_eq!(
                result.unwrap_err().to_string(),
                "the line at byte 710 of the input can't be transformed: told to fail"
            );
        }
    }
}

#[test]
fn a_panic_ends_the_run_and_reaches_the_caller() {
    for workers in [1, 2, 4] {
        let (input, mut writer) = pipe().unwrap();
        let (_reader, output) = pipe().unwrap();
        writer.write_all(b"fine\npanic\nfine\n").unwrap();
        // The writer stays open, so the run must wake the other threads itself.
        let run = thread::spawn(move || Engine::new().run_parallel(input, output, Commands, threads(workers)));
        assert!(run.join().is_err());
        drop(writer);
    }
}

#[test]
fn a_function_is_a_transform() {
    let (bytes, result) = run(
        &Engine::new(),
        2,
        per_line(|line, output| {
            output.lend(line);
            output.extend(b"!");
            Ok(Fate::Keep)
        }),
        all(b"a\nb"),
    );
    result.unwrap();
    assert_eq!(bytes, b"a!\nb!");
}
