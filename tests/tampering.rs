//! Bytes that change in transit: each test injects a fault into the link of a running measurement. Such a measurement
//! must not give a figure.

use std::io::{Read, Write};

use crate::program::{End, ProgramOutput, Role, RunningProgram, only_trial};
use rustix::process::Signal;
use serde_json::Value;

/// Changes the content of a link. Receives the bytes that are in a slow sink's pipe in the middle of the sink's window,
/// and returns the bytes to put back.
type Change = fn(Vec<u8>) -> Vec<u8>;

const PIECE: usize = 4096;

/// Measures with a slow sink. Within the sink's window, takes all bytes out of the link and puts back the bytes that
/// `change` returns.
fn tampered(verify: &str, link: &str, change: Change) -> ProgramOutput {
    let mut words = vec!["bw", "--place", "free", "--block", "4k", "--read-delay", "1000", "--time", "1s"];
    words.extend(["--runs", "1", "--verify", verify, "--json", "-"]);
    words.extend(link.split_whitespace());
    // On a busy machine the window may end before both ends are stopped.
    for _ in 0..5 {
        let mut started = RunningProgram::pipemark(&words);
        let ends = started.ends(2);
        let with = |role| ends.iter().find(|end| end.role == role).unwrap();
        let done = tamper(with(Role::Source), with(Role::Sink), change);
        let (ended, left) = started.end();
        assert_eq!(left, Vec::<String>::new());
        if done {
            return ended;
        }
    }
    panic!("the ends were never caught in their window");
}

/// Tampers with the link once. Returns false if the window was over.
fn tamper(source: &End, sink: &End, change: Change) -> bool {
    // The sink is stopped first, so that all bytes that the source still writes stay in the pipe.
    if !sink.reaches_window() || !sink.stop() || !source.stop() {
        return false;
    }
    let Ok((mut reader, mut writer)) = sink.link() else { return false };
    let mut bytes = vec![0; rustix::io::ioctl_fionread(&reader).unwrap() as usize];
    reader.read_exact(&mut bytes).unwrap();
    drop(reader);
    let in_the_middle = bytes.len() >= 4 * PIECE;
    // The bytes to put back may exceed the pipe's capacity, so the sink must run.
    sink.signal(Signal::CONT);
    writer.write_all(&if in_the_middle { change(bytes) } else { bytes }).unwrap();
    drop(writer);
    source.signal(Signal::CONT);
    in_the_middle
}

fn not_verified(ended: &ProgramOutput) -> String {
    assert_eq!(ended.code(), Some(3), "{}\n{}", ended.stderr, ended.stdout);
    assert!(ended.stderr.contains("did not verify"), "{}", ended.stderr);
    let document = ended.document();
    let trial = only_trial(&document);
    assert_eq!((&trial["status"], &trial["verified"]), (&"failed".into(), &false.into()));
    assert_eq!(
        (&trial["estimate"], &trial["samples"]),
        (&Value::Null, &Value::Array(vec![])),
        "a wrong answer is timed"
    );
    trial["reason"].as_str().unwrap().to_owned()
}

fn unchanged(bytes: Vec<u8>) -> Vec<u8> {
    bytes
}

fn lose_piece(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.drain(PIECE..2 * PIECE);
    bytes
}

fn repeat_piece(mut bytes: Vec<u8>) -> Vec<u8> {
    let piece = bytes[..PIECE].to_vec();
    bytes.splice(PIECE..PIECE, piece);
    bytes
}

fn swap_pieces(mut bytes: Vec<u8>) -> Vec<u8> {
    let (one, other) = bytes.split_at_mut(PIECE);
    one.swap_with_slice(&mut other[..PIECE]);
    bytes
}

fn truncate(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.truncate(bytes.len() - 100);
    bytes
}

fn change_byte(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes[PIECE + 17] ^= 4;
    bytes
}

fn zero_piece(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes[PIECE..2 * PIECE].fill(0);
    bytes
}

#[test]
fn moving_the_bytes_out_and_back_changes_nothing() {
    for verify in ["full", "xor", "count"] {
        let ended = tampered(verify, "", unchanged);
        assert_eq!(only_trial(&ended.measured())["verified"], true);
    }
}

const FAULTS: [(Change, &str); 6] = [
    (lose_piece, "are missing"),
    (repeat_piece, "were repeated"),
    (swap_pieces, ""),
    (truncate, "are missing"),
    (change_byte, ""),
    (zero_piece, ""),
];

fn full_verification_detects(faults: &[(Change, &str)]) {
    for &(change, words) in faults {
        let reason = not_verified(&tampered("full", "", change));
        assert!(reason.contains("is wrong") && reason.contains(words), "{reason}");
    }
}

#[test]
fn full_verification_detects_faults() {
    full_verification_detects(&[FAULTS[1], FAULTS[4]]);
}

#[test]
#[ignore = "long"]
fn long_full_verification_detects_every_fault() {
    full_verification_detects(&FAULTS);
}

#[test]
fn full_verification_detects_faults_with_zero_copy() {
    not_verified(&tampered("full", "--send vmsplice", lose_piece));
    not_verified(&tampered("full", "--recv vmsplice --wait poll", change_byte));
}

#[test]
#[ignore = "long"]
fn long_full_verification_detects_other_faults_with_zero_copy() {
    not_verified(&tampered("full", "--send vmsplice", change_byte));
    not_verified(&tampered("full", "--recv vmsplice --wait poll", lose_piece));
}

fn counting_detects(changes: &[Change]) {
    for &change in changes {
        let reason = not_verified(&tampered("count", "", change));
        assert!(reason.contains("bytes were sent"), "{reason}");
    }
}

#[test]
fn counting_detects_missing_and_surplus_bytes() {
    counting_detects(&[repeat_piece, truncate]);
}

#[test]
#[ignore = "long"]
fn long_counting_detects_other_missing_bytes() {
    counting_detects(&[lose_piece]);
    not_verified(&tampered("count", "--recv splice", lose_piece));
}

#[test]
fn xor_verification_detects_a_changed_byte() {
    let reason = not_verified(&tampered("xor", "", change_byte));
    assert!(reason.contains("XOR"), "{reason}");
}

#[test]
fn unverified_runs_are_not_called_verified() {
    let ended = tampered("none", "", change_byte);
    assert_eq!(only_trial(&ended.measured())["verified"], Value::Null);
}

/// The table shows no figure for this trial, not even from its first run, whose data was right.
#[test]
fn the_table_has_no_figure_for_wrong_data() {
    let words = ["bw", "--place", "free", "--read-delay", "500", "--time", "2s", "--runs", "2", "--all"];
    let mut started = RunningProgram::pipemark(&words);
    let first = started.ends(2)[0].process;
    let sink = loop {
        let ends = started.ends(2);
        if ends.iter().all(|end| end.process != first) {
            break ends.into_iter().find(|end| end.role == Role::Sink).unwrap();
        }
    };
    assert!(sink.reaches_window());
    let (mut reader, _) = sink.link().unwrap();
    reader.read_exact(&mut [0; 1000]).unwrap();
    drop(reader);
    let (ended, _) = started.end();
    assert_eq!(ended.code(), Some(3), "{}", ended.stderr);
    assert!(ended.stderr.contains("did not verify") && ended.stderr.contains("bytes were sent"), "{}", ended.stderr);
    let (_, table) = ended.stdout.split_once("\nThroughput\n").expect("the experiment has its table");
    assert!(!table.contains("B/s"), "{table}");
}

/// Bytes added before the window are detected too.
#[test]
fn the_warm_up_is_verified_too() {
    let words = ["bw", "--place", "free", "--time", "2s", "--limit", "20s", "--runs", "1", "--verify", "full"];
    let mut started = RunningProgram::pipemark(&words);
    let sink = started.end_with(Role::Sink);
    let (_, mut writer) = sink.link().unwrap();
    writer.write_all(b"too much").unwrap();
    drop(writer);
    let (ended, left) = started.end();
    assert_eq!((ended.code(), left), (Some(3), vec![]), "{}", ended.stderr);
}
