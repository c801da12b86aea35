//! Results in the first version of the format `pipemark/1` can still be read, shown, exported, compared and reported.
//! There is a document for each kind of trial, and a history.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::program::history::TestHistory;
use crate::program::pipemark;

const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/pipemark-1");

fn path(name: &str) -> String {
    format!("{DIRECTORY}/{name}")
}

fn read(name: &str) -> Value {
    serde_json::from_slice(&fs::read(path(name)).unwrap()).unwrap()
}

/// Names and contents of all old measurements.
fn documents() -> Vec<(String, Value)> {
    let mut names: Vec<String> =
        fs::read_dir(DIRECTORY).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let all: Vec<(String, Value)> = names
        .into_iter()
        .filter(|name| name.ends_with(".json"))
        .map(|name| (name.clone(), read(&name)))
        .filter(|(_, document)| document["schema"] == "pipemark/1")
        .collect();
    assert!(all.len() >= 15, "there is one of each kind");
    all
}

fn trials(document: &Value) -> &Vec<Value> {
    document["trials"].as_array().unwrap()
}

/// A history that holds this document.
fn history_with(name: &str) -> TestHistory {
    let past = TestHistory::new();
    past.history(&["import", &path(name)]);
    past
}

/// The rows of a CSV file, by column.
fn rows(csv: &str) -> Vec<BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let columns = reader.headers().unwrap().clone();
    let row = |row: csv::StringRecord| columns.iter().zip(&row).map(|(a, b)| (a.to_owned(), b.to_owned())).collect();
    reader.records().map(|record| row(record.unwrap())).collect()
}

#[test]
fn documents_are_stored_and_returned_unchanged() {
    for (name, document) in documents() {
        let past = history_with(&name);
        let exported: Value = serde_json::from_str(&past.history(&["export"])).unwrap();
        assert!(exported == document, "{name}");
    }
}

#[test]
fn documents_are_shown_with_all_their_experiments() {
    for (name, document) in documents() {
        let past = history_with(&name);
        for format in ["table", "markdown"] {
            let shown = past.history(&["show", "--all", "--format", format]);
            // Line breaks depend on the width.
            let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").replace('\\', "");
            let shown = words(&shown);
            for experiment in document["experiments"].as_array().unwrap() {
                let title = experiment["title"].as_str().unwrap();
                assert!(shown.contains(&words(title)), "{name} as {format}: '{title}' is not there:\n{shown}");
            }
        }
    }
}

#[test]
fn each_trial_is_a_row_of_csv() {
    for (name, document) in documents() {
        let rows = rows(&history_with(&name).history(&["show", "--format", "csv"]));
        let of = |key: &str| rows.iter().map(|row| row[key].clone()).collect::<Vec<_>>();
        for key in ["id", "status"] {
            let expected: Vec<_> =
                trials(&document).iter().map(|trial| trial[key].as_str().unwrap().to_owned()).collect();
            assert_eq!(of(key), expected, "{name}");
        }
    }
}

/// Whether a CSV cell holds this JSON value.
fn cell_holds(cell: &str, value: &Value) -> bool {
    match value {
        Value::Null => cell.is_empty(),
        Value::String(text) => cell == text,
        Value::Number(number) => cell.parse().ok() == number.as_f64(),
        Value::Bool(flag) => cell.parse() == Ok(*flag),
        other => panic!("{other} is no fact"),
    }
}

/// The values in a trial's JSON, each with the CSV column that must have it: parameters, and figures with their bounds.
fn facts(trial: &Value) -> Vec<(String, Value)> {
    let mut facts = Vec::new();
    let params = trial["params"].as_object().unwrap();
    // Old documents gave stage parameters to trials without stages.
    let stages = trial["params"]["length"].as_u64().unwrap() > 0;
    for (key, value) in params {
        match (key.as_str(), value) {
            ("stage" | "length" | "content" | "exit", _) if !stages => {}
            // Old documents gave a gap to streams and to messages at a rate.
            ("gap", _) if params["mode"] == "throughput" || params.contains_key("rate") => {}
            // Old documents gave parameters of ends to entrants and filters, which have no ends.
            (key, _) if params.contains_key("language") && !["language", "program", "volume"].contains(&key) => {}
            (key, _) if params.contains_key("filter") && !["feed", "filter", "volume"].contains(&key) => {}
            ("volume", volume) => {
                facts.extend(volume.as_object().unwrap().iter().map(|(key, value)| (key.clone(), value.clone())));
            }
            (key, value) => facts.push((key.to_owned(), value.clone())),
        }
    }
    let empty = serde_json::Map::new();
    let figures = trial["estimate"].as_object().unwrap_or(&empty).iter().flat_map(|(key, value)| match key.as_str() {
        // Objects that contain several figures.
        "latency" | "counters" => value.as_object().unwrap().iter().collect(),
        _ => vec![(key, value)],
    });
    for (figure, value) in figures {
        for (bound, value) in value.as_object().into_iter().flatten() {
            match bound.as_str() {
                "runs" => facts.push(("runs".to_owned(), trial["samples"].as_array().unwrap().len().into())),
                "median" => facts.push((figure.clone(), value.clone())),
                _ => facts.push((format!("{figure}_{bound}"), value.clone())),
            }
        }
        if value.is_number() {
            facts.push((figure.clone(), value.clone()));
        }
    }
    for key in ["status", "reason", "verified", "touched", "stopped", "baseline"] {
        facts.push((key.to_owned(), trial[key].clone()));
    }
    facts
}

/// The column for a value: its name is the value's name, with or without a unit.
fn column<'a>(row: &'a BTreeMap<String, String>, key: &str) -> Option<&'a str> {
    let (stem, bound) = match key.rsplit_once('_') {
        Some((stem, bound @ ("low" | "high" | "min" | "max"))) => (stem, format!("_{bound}")),
        _ => (key, String::new()),
    };
    [key.to_owned(), format!("{stem}_ns{bound}")].iter().find_map(|name| row.get(name)).map(String::as_str)
}

#[test]
fn csv_has_every_value_of_json() {
    let mut missing: BTreeMap<String, String> = BTreeMap::new();
    for (name, document) in documents() {
        let rows = rows(&history_with(&name).history(&["show", "--format", "csv"]));
        for (trial, row) in trials(&document).iter().zip(&rows) {
            for (key, value) in facts(trial) {
                let problem = match column(row, &key) {
                    None => "no such column".to_owned(),
                    Some(cell) if cell_holds(cell, &value) => continue,
                    // The column is empty unless the read block differs from the block.
                    Some("") if key == "read_block" => continue,
                    // With a rate, the column is empty; old documents had a gap of 0.
                    Some("") if key.starts_with("gap") && trial["params"]["rate"].is_number() => continue,
                    Some(cell) => format!("'{cell}' in place of {value}"),
                };
                missing.entry(key).or_insert_with(|| format!("{problem}, {name}, {}", trial["id"]));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn documents_are_compared_with_themselves() {
    for (name, document) in documents() {
        let file = path(&name);
        let report = pipemark(&["compare", &file, &file, "--json", "-"]).measured();
        let changes =
            report["groups"].as_array().unwrap().iter().flat_map(|group| group["changes"].as_array().unwrap());
        let changes: Vec<&Value> = changes.collect();
        let measured = trials(&document).iter().filter(|trial| trial["status"] == "ok").count();
        assert_eq!(changes.len(), measured, "{name}");
        for change in changes {
            let verdict = change["comparison"]["verdict"].as_str().unwrap();
            assert!(["same", "inconclusive"].contains(&verdict), "{name}: {change}");
        }
    }
}

/// Comparisons have the same results as with the old program, trial by trial, except for verdicts that need more
/// sessions.
#[test]
fn comparisons_match_those_of_the_old_program() {
    let (bw, after) = (path("bw.json"), path("bw-after.json"));
    for (kept, words) in [
        ("compare.json", vec![bw.as_str(), &after]),
        ("compare-parts.json", vec![&bw, "--base", "send=write", "--new", "send=vmsplice"]),
    ] {
        let comparisons = |report: &Value| -> Vec<Value> {
            let groups = report["groups"].as_array().unwrap();
            let changes = groups.iter().flat_map(|group| group["changes"].as_array().unwrap());
            let fields = ["base_id", "new_id", "base", "new", "reference"];
            let comparison = |change: &Value| {
                let mut values: Vec<Value> = fields.iter().map(|field| change[field].clone()).collect();
                // `cant-tell` is the old name of the verdict `inconclusive`.
                let verdict = change["comparison"]["verdict"].as_str().unwrap().replace("cant-tell", "inconclusive");
                values.push(verdict.into());
                values.push(change["comparison"]["pairing"].clone());
                values.into()
            };
            changes.map(comparison).collect()
        };
        let report = pipemark(&[&["compare"], &words[..], &["--json", "-"]].concat()).measured();
        let mut expected = comparisons(&read(kept));
        if kept == "compare.json" {
            // With one session on each side the old program gave a verdict. The new verdict is inconclusive.
            expected.iter_mut().for_each(|values| values[5] = json!("inconclusive"));
        }
        assert_eq!(comparisons(&report), expected, "{kept}");
    }
}

#[test]
fn pages_and_charts_show_old_documents() {
    let past = TestHistory::new();
    let page = past.file("page.html");
    for (name, _) in documents() {
        let ended = pipemark(&["report", &path(&name), "--output", page.to_str().unwrap()]);
        assert_eq!(ended.code(), Some(0), "{name}: {}", ended.stderr);
        let html = fs::read_to_string(&page).unwrap();
        assert!(html.trim_end().ends_with("</html>"), "{name}");
        let ended = pipemark(&["report", "--terminal", &path(&name)]);
        assert_eq!(ended.code(), Some(0), "{name}: {}", ended.stderr);
        assert!(ended.stdout.lines().count() > 2, "{name}: {}", ended.stdout);
    }
    let ended =
        pipemark(&["report", &path("quick.json"), &path("quick-after.json"), "--output", page.to_str().unwrap()]);
    assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
}

/// README selects one trial of the suite `quick` by these words. Each parameter that isn't named has its default.
#[test]
fn a_trial_is_named_by_its_nondefault_parameters() {
    let past = history_with("quick.json");
    let trial = |words: &[&str]| {
        let shown = past.history(&[&["trend"], words].concat());
        shown.lines().next().unwrap_or_default().to_owned()
    };
    let plain = trial(&["block=64k", "send=write", "place=cross"]);
    assert_eq!(plain, "pipe write-read 65536 cross count time=2.00ms");
    let large = trial(&["block=64k", "send=write", "place=cross", "capacity=1m"]);
    assert_eq!(large, "pipe write-read 65536 cross count capacity=1MiB time=2.00ms");
    let several = past.run(&["history", "trend", "pages=huge"]);
    assert!(
        several.code() == Some(2) && several.stderr.contains("give more parameters, or one of these keys"),
        "{several:?}"
    );
}

/// Labels distinguish measurements on a page.
#[test]
fn measurements_are_distinguished_by_label() {
    let (before, after) = (path("bw.json"), path("bw-after.json"));
    let past = TestHistory::new();
    let page = past.file("page.html");
    let ended = pipemark(&["report", &before, &after, "--output", page.to_str().unwrap()]);
    assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
    let html = fs::read_to_string(&page).unwrap();
    for label in ["before", "after"] {
        // In the page's text the label is between tags, in the embedded JSON between quotes.
        assert!(html.contains(&format!(">{label}<")), "{label}");
    }
}

#[test]
fn comparisons_show_labels() {
    let ended = pipemark(&["compare", &path("bw.json"), &path("bw-after.json")]);
    assert!(ended.stdout.contains("'before'") && ended.stdout.contains("'after'"), "{}", ended.stdout);
    let report = pipemark(&["compare", &path("bw.json"), &path("bw-after.json"), "--json", "-"]).measured();
    assert_eq!((&report["base"]["label"], &report["new"]["label"]), (&"before".into(), &"after".into()));
}

#[test]
fn an_older_history_is_read_and_extended() {
    let past = TestHistory::new();
    fs::copy(path("history.db"), past.db()).unwrap();
    fs::set_permissions(past.db(), fs::Permissions::from_mode(0o600)).unwrap();
    let runs = past.list(&[]);
    let labels: Vec<Option<&str>> = runs.iter().map(|run| run["label"].as_str()).collect();
    assert_eq!(labels, [None, Some("with 'quotes', commas"), Some("before"), Some("after"), Some("before")]);
    assert_eq!(past.ids(&["--label", "before"]), [3, 1]);
    for (id, file) in [("1", "bw.json"), ("2", "bw-after.json"), ("3", "chain.json"), ("4", "latency.json")] {
        let exported: Value = serde_json::from_str(&past.history(&["export", id])).unwrap();
        assert!(exported == read(file), "{file}");
    }
    let pairs = past.run(&["compare", "1", "2", "--json", "-"]);
    assert_eq!(pairs.measured()["groups"].as_array().unwrap().len(), 2);
    let trend = ["trend", "block=64k", "send=write", "place=cross", "--format", "json"];
    let trend: Vec<Value> = serde_json::from_str(&past.history(&trend)).unwrap();
    let points: Vec<_> = trend.iter().map(|point| (point["id"].as_u64(), point["runs"].as_u64())).collect();
    assert_eq!(points, [(Some(1), Some(4)), (Some(2), Some(4))]);
    past.measure(&["--label", "today"]);
    assert_eq!(past.ids(&["--label", "today"]), [6]);
    past.history(&["delete", "1", "--yes"]);
    assert_eq!(past.ids(&[]), [6, 5, 4, 3, 2]);
}
