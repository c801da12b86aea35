//! docs/line-by-line.md names every claim of the built-in suites, and the trials that decide it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

const SUITES: [&str; 5] = ["pipe-speed", "block-size", "languages", "lines", "large-pipe"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The trials that decide a claim, as the page shows them.
fn pair(claim: &Table) -> String {
    let text = |key: &str| claim.get(key).and_then(Value::as_str);
    if let Some(name) = text("shown-by") {
        return format!("check [`{name}`](suites.md#claims)");
    }
    if let Some(reason) = text("open") {
        return format!("not measured: {reason}");
    }
    let list = |key: &str| claim.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let experiments: Vec<String> =
        list("in").iter().filter_map(Value::as_str).map(|name| format!("`{name}`")).collect();
    let figure = match text("figure") {
        None | Some("ratio" | "gain") => String::new(),
        Some(figure) => format!("`{figure}` of "),
    };
    let of = match list("of").as_slice() {
        [] => "all".to_owned(),
        of => settings(of.iter().filter_map(Value::as_table)),
    };
    let to = match (claim.get("to").and_then(Value::as_table), list("to-each").as_slice()) {
        (Some(to), _) => format!(" / {}", settings([to])),
        (None, []) if matches!(text("figure"), None | Some("ratio" | "gain")) => " / base".to_owned(),
        (None, []) => String::new(),
        (None, each) => format!(" / {}", settings(each.iter().filter_map(Value::as_table))),
    };
    format!("{}: {figure}{of}{to}", experiments.join(", "))
}

/// The settings of several trials: each parameter with all of its values.
fn settings<'t>(tables: impl IntoIterator<Item = &'t Table>) -> String {
    let mut keys: Vec<(&str, Vec<String>)> = Vec::new();
    for (key, value) in tables.into_iter().flatten() {
        let value = match value {
            Value::String(word) => word.clone(),
            Value::Integer(number) => number.to_string(),
            other => unreachable!("a setting is a word or a number, not {other:?}"),
        };
        match keys.iter_mut().find(|(own, _)| own == key) {
            Some((_, values)) if values.contains(&value) => {}
            Some((_, values)) => values.push(value),
            None => keys.push((key, vec![value])),
        }
    }
    let words = keys.into_iter().filter(|(key, _)| *key != "program");
    words.map(|(key, values)| format!("{key} {}", values.join(", "))).collect::<Vec<_>>().join(" · ")
}

/// The names in italics of a cell that are claims.
fn claims_in<'c>(cell: &'c str, known: &BTreeMap<String, String>) -> Vec<&'c str> {
    cell.split('*').skip(1).step_by(2).filter(|name| known.contains_key(*name)).collect()
}

#[test]
fn the_page_names_every_claim_and_the_trials_that_decide_it() {
    let mut known = BTreeMap::new();
    for suite in SUITES {
        let text = fs::read_to_string(root().join(format!("suites/{suite}.toml"))).unwrap();
        let suite: Table = text.parse().unwrap();
        for claim in suite["claim"].as_array().unwrap().iter().filter_map(Value::as_table) {
            known.insert(claim["id"].as_str().unwrap().to_owned(), pair(claim));
        }
    }
    let page = root().join("docs/line-by-line.md");
    let before = fs::read_to_string(&page).unwrap();
    let mut named = BTreeSet::new();
    let row = |line: &str| {
        // A bar inside a cell is escaped.
        let Some((_, cells)) = line.strip_prefix("| ").and_then(|rest| Some(("", rest.strip_suffix('|')?))) else {
            return line.to_owned();
        };
        let cells: Vec<&str> = cells.split(" | ").map(str::trim).collect();
        let [statement, answer, ..] = cells.as_slice() else { return line.to_owned() };
        let claims = claims_in(answer, &known);
        if claims.is_empty() {
            return line.to_owned();
        }
        named.extend(claims.iter().map(|claim| (*claim).to_owned()));
        let mut pairs: Vec<&str> = claims.iter().map(|claim| known[*claim].as_str()).collect();
        pairs.dedup();
        format!("| {statement} | {answer} | {} |", pairs.join("<br>"))
    };
    let mut after: String = before.lines().map(row).collect::<Vec<_>>().join("\n");
    after.push('\n');
    let missing: Vec<&String> = known.keys().filter(|claim| !named.contains(*claim)).collect();
    assert!(missing.is_empty(), "docs/line-by-line.md names no claim {missing:?}");
    if std::env::var_os("PIPEMARK_BLESS").is_some() {
        fs::write(&page, after).unwrap();
    } else {
        assert!(before == after, "run PIPEMARK_BLESS=1 cargo test -p pipemark-claims, and review docs/line-by-line.md");
    }
}
