//! The output equals the reference's, for any bytes, batch sizes, thread counts and read sizes.

use std::io::PipeWriter;
use std::num::NonZeroUsize;

use pipeio::lines::transforms::{Field, Identity, Length, Number, Spaces, Upper};
use pipeio::lines::{Engine, OutputMethod};
use proptest::prelude::*;

use super::reference::Job;
use super::{all, pieces, run, threads};

fn output(engine: &Engine, threads: usize, job: Job, feed: impl FnOnce(PipeWriter) + Send) -> Vec<u8> {
    let (bytes, result) = match job {
        Job::Spaces => run(engine, threads, Spaces::new(), feed),
        Job::Number => run(engine, threads, Number::default(), feed),
        Job::Length => run(engine, threads, Length, feed),
        Job::Upper => run(engine, threads, Upper, feed),
        Job::Identity => run(engine, threads, Identity, feed),
        Job::Field(number, delimiter) => {
            run(engine, threads, Field::new(NonZeroUsize::new(number).unwrap(), delimiter), feed)
        }
    };
    assert_eq!(result.unwrap().bytes_out, bytes.len() as u64);
    bytes
}

fn job() -> impl Strategy<Value = Job> {
    prop_oneof![
        3 => Just(Job::Spaces),
        1 => Just(Job::Number),
        1 => Just(Job::Length),
        1 => Just(Job::Upper),
        1 => Just(Job::Identity),
        1 => (1usize..4, prop_oneof![Just(b' '), Just(b'\t'), any::<u8>()]).prop_map(|(n, d)| Job::Field(n, d)),
    ]
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let texty = prop_oneof![2 => Just(b'\n'), 3 => Just(b' '), 8 => b'a'..=b'z', 1 => any::<u8>()];
    let sparse = prop_oneof![1 => Just(b'\n'), 5 => Just(b' '), 100 => any::<u8>()];
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..200),
        prop::collection::vec(texty, 0..600),
        prop::collection::vec(sparse, 0..3000),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn output_equals_the_reference(
        input in bytes(),
        job in job(),
        terminator in prop_oneof![6 => Just(b'\n'), 1 => Just(b'\0'), 1 => any::<u8>()],
        batch in prop_oneof![1usize..80, 1usize..5000],
        threads in 1usize..5,
        mut ends in prop::collection::vec(0usize..3000, 0..6),
        send in prop_oneof![Just(OutputMethod::Write), Just(OutputMethod::GiveAway)],
    ) {
        ends.sort_unstable();
        let engine = Engine::new().batch(NonZeroUsize::new(batch).unwrap()).terminator(terminator).send(send);
        let got = output(&engine, threads, job, pieces(&input, &ends));
        let expected = job.reference(&input, terminator);
        prop_assert_eq!(String::from_utf8_lossy(&got), String::from_utf8_lossy(&expected));
        prop_assert!(got == expected);
    }
}

/// Enough lines to fill pipes, reuse buffers, lend long lines and give pages away.
#[test]
fn large_input_matches_the_reference() {
    let mut input = Vec::new();
    let mut state = 1u32;
    while input.len() < 6 << 20 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let length = match state >> 28 {
            0 => 100_000,
            1..4 => 2000,
            _ => (state >> 20) & 127,
        };
        input.extend((0..length).map(|at| if at % 11 == 7 { b' ' } else { b'a' + (at % 26) as u8 }));
        input.push(b'\n');
    }
    input.extend(b"no end");
    for job in [Job::Spaces, Job::Number, Job::Length, Job::Upper, Job::Identity, Job::Field(3, b' ')] {
        let expected = job.reference(&input, b'\n');
        for send in [OutputMethod::Write, OutputMethod::GiveAway] {
            for threads in [1, 2, 3] {
                let engine = Engine::new().send(send);
                let got = output(&engine, threads, job, all(&input));
                assert!(got == expected, "{job:?}, {send:?}, {threads} threads");
            }
        }
    }
}

#[test]
fn one_huge_line() {
    let input = [vec![b'x'; 20 << 20], b" \n".to_vec(), vec![b' '; 5 << 20]].concat();
    let expected = Job::Spaces.reference(&input, b'\n');
    for threads in [1, 2] {
        for send in [OutputMethod::Write, OutputMethod::GiveAway] {
            let got = output(&Engine::new().send(send), threads, Job::Spaces, all(&input));
            assert!(got == expected);
        }
    }
}

#[test]
fn a_file_is_read_from_its_offset() {
    use std::io::{Read, Seek, SeekFrom, Write};
    let mut file = tempfile();
    file.write_all(b"skipped\nfirst line\nlast").unwrap();
    for workers in [1, 2] {
        file.seek(SeekFrom::Start(8)).unwrap();
        let (mut result, pipe) = std::io::pipe().unwrap();
        Engine::new().run_parallel(&file, pipe, Spaces::new(), threads(workers)).unwrap();
        let mut text = String::new();
        result.read_to_string(&mut text).unwrap();
        assert_eq!(text, "[spaces: 1]first line\n[spaces: 0]last");
    }
}

proptest! {
    /// All threads read parts of a file concurrently.
    #[test]
    fn output_for_files_equals_the_reference(
        lines in prop::collection::vec(prop::collection::vec(prop::sample::select(&b"ab \0\r"[..]), 0..40), 0..400),
        ended in any::<bool>(),
        skipped in 0usize..9000,
        batch in 1usize..200,
        workers in 2usize..5,
    ) {
        use std::io::{Read, Seek, SeekFrom, Write};
        let mut input = lines.join(&b'\n');
        if ended {
            input.push(b'\n');
        }
        let mut file = tempfile();
        file.write_all(&vec![b'\n'; skipped]).unwrap();
        file.write_all(&input).unwrap();
        file.seek(SeekFrom::Start(skipped as u64)).unwrap();
        let (mut result, pipe) = std::io::pipe().unwrap();
        let reader = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            result.read_to_end(&mut bytes).map(|_| bytes)
        });
        let engine = Engine::new().batch(NonZeroUsize::new(batch).unwrap());
        let report = engine.run_parallel(&file, pipe, Identity, threads(workers)).unwrap();
        prop_assert!(reader.join().unwrap().unwrap() == input);
        prop_assert_eq!(report.bytes_in, input.len() as u64);
        prop_assert_eq!(file.stream_position().unwrap(), (skipped + input.len()) as u64);
    }
}

#[test]
fn an_overlong_line_in_a_file_is_the_same_error_on_any_number_of_threads() {
    use std::io::{Read, Seek, Write};
    let mut file = tempfile();
    file.write_all(&[&b"short\n".repeat(100)[..], &[b'x'; 1000], b"\nafter\n", &b"more\n".repeat(500)].concat())
        .unwrap();
    for workers in [1, 2, 4] {
        file.rewind().unwrap();
        let (mut result, pipe) = std::io::pipe().unwrap();
        let engine = Engine::new().batch(NonZeroUsize::new(64).unwrap()).max_line(999);
        let error = engine.run_parallel(&file, pipe, Identity, threads(workers)).unwrap_err();
        assert!(matches!(error, pipeio::lines::Error::LineTooLong { offset: 600, limit: 999 }), "{workers}: {error}");
        let mut text = Vec::new();
        result.read_to_end(&mut text).unwrap();
        assert!(text == b"short\n".repeat(100), "{workers}");
    }
}

fn tempfile() -> std::fs::File {
    rustix::fs::memfd_create("lines", rustix::fs::MemfdFlags::CLOEXEC).unwrap().into()
}
