//! The line engine with arbitrary bytes, batches, threads and limits, against a reference of ten lines.
#![no_main]

use std::io::{Read, Write, pipe};
use std::num::NonZeroUsize;
use std::os::unix::net::UnixStream;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use pipeio::lines::transforms::Spaces;
use pipeio::lines::{Engine, Error, SendMethod, Simd};

#[derive(Debug, Arbitrary)]
struct Case {
    batch: u8,
    threads: u8,
    terminator: u8,
    max_line: u8,
    simd: u8,
    give_away: bool,
    input: Vec<u8>,
}

fuzz_target!(|case: Case| {
    let levels: Vec<_> = Simd::available().collect();
    let spaces = Spaces::with(levels[usize::from(case.simd) % levels.len()]);
    let engine = Engine::new()
        .batch(NonZeroUsize::MIN.saturating_add(case.batch.into()))
        .terminator(case.terminator)
        .max_line(case.max_line.into())
        .send(if case.give_away { SendMethod::GiveAway } else { SendMethod::Write });
    let threads = NonZeroUsize::MIN.saturating_add(usize::from(case.threads) % 4);
    // No more than a pipe surely holds unread, for input and output.
    let input = &case.input[..case.input.len().min(4096)];

    // A pipe's capacity is at least a page.
    let (from_us, mut to_engine) = UnixStream::pair().unwrap();
    let (mut from_engine, output) = pipe().unwrap();
    to_engine.write_all(input).unwrap();
    drop(to_engine);
    let result = engine.run_parallel(from_us, output, spaces, threads);
    let mut got = Vec::new();
    from_engine.read_to_end(&mut got).unwrap();

    let mut expected = Vec::new();
    let mut offset = 0;
    for line in input.split_inclusive(|&byte| byte == case.terminator) {
        let content = line.strip_suffix(&[case.terminator]).unwrap_or(line);
        if content.len() > case.max_line.into() {
            assert!(matches!(result, Err(Error::LineTooLong { offset: at, .. }) if at == offset));
            assert_eq!(got, expected);
            return;
        }
        match content.iter().filter(|&&byte| byte == b' ').count() {
            count @ 0..=6 => write!(expected, "[spaces: {count}]").unwrap(),
            _ => expected.extend(b"[spaces: >6]"),
        }
        expected.extend(line);
        offset += line.len() as u64;
    }
    result.unwrap();
    assert_eq!(got, expected);
});
