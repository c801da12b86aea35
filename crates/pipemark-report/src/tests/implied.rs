//! Every sentence of a document is implied by the rows that are shown beside it. `tests/implied` recomputes the sentences
//! from the runs; it shares no code with this program.

use std::io::Write;
use std::ops::Range;
use std::process::{Command, Stdio};

use proptest::prelude::Strategy;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::json;

use pipemark_model::{Document, Record};
use pipemark_run::plan::EMBEDDED;
use pipemark_show::{Characters, Colour, Sheet, Terminal};
use pipemark_stats::records::memory_copy;

use crate::findings::findings;
use crate::sheet::fixture::{of_records, of_suite};
use crate::sheet::{brief, report};
use crate::tests::documents::documents;

/// Fails if a sentence of a document isn't implied by its rows, or if a kind of sentence doesn't occur.
fn assert_implied(all: impl Iterator<Item = Document>, kinds: &[&str]) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/implied/check.py");
    let mut child = Command::new("python3")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .arg(script)
        .args(kinds)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3, which CONTRIBUTING.md lists");
    let mut input = child.stdin.take().unwrap();
    let writer = std::thread::scope(|scope| {
        let reader = scope.spawn(|| child.wait_with_output());
        for document in all {
            let text = |sheet: &Sheet| {
                Terminal { width: 100, colour: Colour::Never, characters: Characters::Unicode }.render(sheet)
            };
            let brief = text(&brief(&document, &[]));
            let report = text(&report(std::slice::from_ref(&document)));
            let case = json!({ "document": document, "brief": brief, "report": report });
            writeln!(input, "{case}").expect("the script reads to the end");
        }
        drop(input);
        reader.join().unwrap()
    });
    let output = writer.expect("it ran");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// Random documents, each with its findings: those with these numbers.
fn generated(numbers: Range<usize>) -> impl Iterator<Item = Document> {
    let mut runner = TestRunner::deterministic();
    let all = (0..numbers.end).map(move |_| documents().new_tree(&mut runner).expect("a document").current());
    all.skip(numbers.start).map(|records| {
        let mut kept: Vec<Record> = Vec::new();
        for record in records {
            if !kept.iter().any(|own| own.experiment == record.experiment && own.id == record.id) {
                kept.push(record);
            }
        }
        // Experiments are in order of first appearance.
        kept.sort_by(|one, other| one.experiment.cmp(&other.experiment));
        let copy = memory_copy(&kept);
        let findings = findings(&kept, copy.as_ref(), &[]);
        Document { findings, memory_copy: copy, ..of_records(kept) }
    })
}

#[test]
fn sentences_of_suites_are_implied_by_their_rows() {
    let suites = EMBEDDED.into_iter().enumerate();
    let all = suites.map(|(seed, (_, text))| of_suite(text, "0.05", seed as u64));
    assert_implied(all, &["best-block", "capacity", "zero-copy", "headline", "beside", "summary", "page"]);
}

#[test]
fn sentences_of_generated_documents_are_implied_by_their_rows() {
    assert_implied(generated(0..100), &["capacity", "wait", "place", "published"]);
}

/// A thousand documents together, in parts that take less than a minute each.
fn check_generated(numbers: Range<usize>) {
    let kinds =
        ["best-block", "best-link", "capacity", "chain-cost", "fresh-data", "gap", "place", "round-trip", "wait"];
    assert_implied(generated(numbers), &kinds);
}

#[test]
#[ignore = "long"]
fn long_sentences_of_generated_documents_0_to_250_are_implied_by_their_rows() {
    check_generated(0..250);
}

#[test]
#[ignore = "long"]
fn long_sentences_of_generated_documents_250_to_500_are_implied_by_their_rows() {
    check_generated(250..500);
}

#[test]
#[ignore = "long"]
fn long_sentences_of_generated_documents_500_to_750_are_implied_by_their_rows() {
    check_generated(500..750);
}

#[test]
#[ignore = "long"]
fn long_sentences_of_generated_documents_750_to_1000_are_implied_by_their_rows() {
    check_generated(750..1000);
}
