//! Reports: pages from real measurements in a real browser, charts in the terminal, and input files without results.
//!
//! `PIPEMARK_PICTURES=DIR cargo test --test program report::` saves screenshots of each page.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use crate::program::{PIPEMARK, file, pipemark, report_skip};
use serde_json::{Value, json};
use tempfile::TempDir;

/// One short experiment for each kind of chart.
const SUITE: &str = r#"
name = "small"
title = "One experiment for each kind of chart"

[schedule]
runs = 3

[defaults]
place = "same"
time = "5ms"

[[experiment]]
name = "sizes"
title = "Throughput by block size"
about = "What a call costs and what a byte costs."
axes = { send = ["write", "vmsplice"], block = ["256", "1k", "4k", "64k", "256k"] }

[[experiment.published]]
source = "a paper, by others"
hardware = "other hardware"
unit = "MiB/s"
by = "block"

[experiment.published.values]
1024 = 500.0
4096 = 1500.0
65536 = 3000.0

[[experiment]]
name = "senders"
title = "Senders"
cases = [{ send = "write" }, { send = "vmsplice" }, { send = "tee", recv = "splice" }, { send = "write", wait = "spin", place = "cross" }]

[[experiment]]
name = "links"
title = "Links by message size"
across = "block"
axes = { link = ["pipe", "socketpair", "shm", "null"], place = ["same", "cross"], block = ["64", "4k", "64k"] }

[[experiment]]
name = "improvement"
title = "Capacity by block size, against one page"
across = "capacity"
axes = { block = ["2k", "8k", "32k"], capacity = ["4k", "64k", "1m"] }
baseline = { capacity = "4k" }

[[experiment]]
name = "spoken"
title = "Round trips"
params = { mode = "latency", block = "64" }
axes = { link = ["pipe", "socketpair", "tcp"] }

[[experiment]]
name = "chain"
title = "Chains of relays"
params = { link = "pipe", stage = "relay", total = "256k" }
axes = { length = [0, 1, 2, 4] }
"#;

/// The document of a real run of [`SUITE`].
fn measured_document() -> Value {
    static MEASURED: LazyLock<Value> = LazyLock::new(|| {
        let suite = file(SUITE.as_bytes(), ".toml");
        pipemark(&["run", suite.path().to_str().unwrap(), "--json", "-"]).measured()
    });
    MEASURED.clone()
}

/// The number of charts on the page of [`SUITE`]: one for each experiment, one for the links' other placement and one
/// for the distribution of round trips.
const CHARTS: usize = 8;

struct Files(TempDir);

impl Files {
    fn new() -> Files {
        Files(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn document(&self, name: &str, document: &Value) -> String {
        let path = self.path(name);
        fs::write(&path, serde_json::to_vec(document).unwrap()).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// The page for these documents.
    fn page(&self, documents: &[&Value]) -> PathBuf {
        let files: Vec<String> =
            documents.iter().enumerate().map(|(n, document)| self.document(&format!("{n}.json"), document)).collect();
        let page = self.path("report.html");
        let mut words = vec!["report", "-o", page.to_str().unwrap()];
        words.extend(files.iter().map(String::as_str));
        let ended = pipemark(&words);
        assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
        page
    }
}

/// The contents of the page according to the browser; `None` without a browser.
fn open_in_browser(page: &Path, name: &str) -> Option<Value> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/browser");
    if !directory.join("node_modules").is_dir() {
        report_skip("reports in a browser", "its tools are not here; tests/tools.sh installs them");
        return None;
    }
    let mut node = Command::new("node");
    node.arg(directory.join("check.mjs")).arg(page);
    if let Some(pictures) = std::env::var_os("PIPEMARK_PICTURES") {
        let pictures = Path::new(&pictures).join(name);
        fs::create_dir_all(&pictures).unwrap();
        node.arg("--pictures").arg(pictures);
    }
    let output = node.output().expect("node, which tests/tools.sh installs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// Checks that hold for every page.
fn assert_sound(found: &Value) {
    for nothing in ["errors", "requests", "owned", "strange", "axe", "axe_dark"] {
        assert_eq!(found[nothing], json!([]), "{nothing}");
    }
    let charts = found["charts"].as_array().unwrap();
    assert!(charts.iter().all(|marks| marks.as_u64().unwrap() > 1), "every chart has marks: {charts:?}");
    assert_eq!(found["printed"], charts.len(), "printing draws all");
    for tip in found["tips"].as_array().unwrap() {
        assert!(!tip.as_str().unwrap().is_empty(), "hovering shows nothing: {}", found["tips"]);
    }
    for legend in found["legends"].as_array().unwrap() {
        assert_ne!(legend["before"], legend["hidden"], "a click hides: {legend}");
        assert_eq!(legend["before"], legend["after"], "another shows it again: {legend}");
    }
    for view in ["light", "dark", "phone"] {
        assert_eq!(found[format!("{view}_overflow")], 0, "nothing is wider than the {view} screen");
    }
}

#[test]
fn a_page_of_a_real_run_is_whole_and_works() {
    let document = measured_document();
    let files = Files::new();
    let page = files.page(&[&document]);
    assert!(fs::metadata(&page).unwrap().len() < 2 << 20, "it can be mailed");
    let Some(found) = open_in_browser(&page, "measured") else { return };
    assert_sound(&found);
    assert_eq!(found["charts"].as_array().unwrap().len(), CHARTS);
    assert!(found["legends"].as_array().unwrap().len() >= 3, "{}", found["legends"]);
    let text = found["text"].as_str().unwrap();
    for words in ["One experiment for each kind of chart", "In brief", "memory copy", "published: a paper", "seed"] {
        assert!(text.contains(words), "'{words}' is not in\n{text}");
    }
    assert!(found["svg"]["begin"].as_str().unwrap().starts_with("<svg"), "{}", found["svg"]);
    assert!(found["png"]["begin"].as_str().unwrap().contains("PNG"), "{}", found["png"]);
    let trials = document["trials"].as_array().unwrap();
    let samples: usize = trials.iter().map(|trial| trial["samples"].as_array().unwrap().len()).sum();
    assert_eq!(found["raw"], json!({"schema": "pipemark/1", "trials": trials.len(), "samples": samples}));
}

/// Text that attacks the user who opens the page.
const ATTACKS: [&str; 5] = [
    "</script><script>owned_1=1;alert(1)</script>",
    "<img src=x onerror=\"owned_2=1\">",
    "{{ 7*7 }}'\"><svg onload=owned_3=1>",
    "\u{202e}gnirts\u{2028}\x1b[31m\u{9b}2J",
    "javascript:owned_4=1 --><!-- ']; owned_5=1; //",
];

/// Puts the attacks into every field of a document that has free text.
fn with_hostile_text(document: &Value) -> Value {
    let mut document = document.clone();
    let attack = ATTACKS.join(" ");
    for pointer in [
        "/suite",
        "/title",
        "/host/name",
        "/host/kernel",
        "/host/cpu",
        "/host/virtualization",
        "/version",
        "/started",
        "/command/0",
    ] {
        *document.pointer_mut(pointer).unwrap() = json!(attack);
    }
    document["findings"] = json!([{"rule": attack, "text": attack, "evidence": {attack.as_str(): attack}}]);
    document["warnings"] = json!([{"kind": "governor", "governor": attack}]);
    for experiment in document["experiments"].as_array_mut().unwrap() {
        let name = format!("{} {attack}", experiment["name"].as_str().unwrap());
        experiment["name"] = json!(name);
        experiment["title"] = json!(name);
        experiment["about"] = json!(attack);
    }
    for (n, trial) in document["trials"].as_array_mut().unwrap().iter_mut().enumerate() {
        trial["experiment"] = json!(format!("{} {attack}", trial["experiment"].as_str().unwrap()));
        trial["name"] = json!(attack);
        if !trial["published"].is_null() {
            trial["published"]["source"] = json!(attack);
        }
        // The command of a stage is the only parameter with free text.
        if trial["params"]["length"].as_u64() > Some(0) {
            trial["params"]["stage"] = json!("cat '<img src=x onerror=owned_6=1></script>'");
        }
        if n == 5 {
            trial["status"] = json!("failed");
            trial["reason"] = json!(attack);
        }
    }
    document
}

/// Two documents on one page, with labels that are also properties of JavaScript objects.
#[test]
#[ignore = "long"]
fn long_text_from_a_file_is_not_interpreted() {
    let document = with_hostile_text(&measured_document());
    let mut both = [document.clone(), document.clone()];
    both[0]["label"] = json!("constructor");
    both[1]["label"] = json!("__proto__");
    let files = Files::new();
    let Some(found) = open_in_browser(&files.page(&[&both[0], &both[1]]), "attacked") else { return };
    assert_sound(&found);
    let text = found["text"].as_str().unwrap();
    assert!(text.contains("</script><script>owned_1=1"), "it is shown as text:\n{text}");
    assert!(text.contains("\\u{202e}") && !text.contains('\u{202e}'), "what reorders text is shown, not obeyed");
    for words in ["Download JSON: constructor", "Download JSON: __proto__", "What changed."] {
        assert!(text.contains(words), "'{words}' is not in\n{text}");
    }
}

#[test]
fn text_from_a_file_does_not_control_the_terminal() {
    let files = Files::new();
    let path = files.document("attacked.json", &with_hostile_text(&measured_document()));
    let ended = pipemark(&["report", &path, "--terminal"]);
    assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
    let harmful = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!ended.stdout.contains(harmful), "{:?}", ended.stdout);
}

#[test]
fn charts_are_drawn_in_the_terminal() {
    let files = Files::new();
    let path = files.document("run.json", &measured_document());
    for (locale, unicode) in [("C.UTF-8", true), ("C", false)] {
        let output =
            Command::new(PIPEMARK).args(["report", &path, "--terminal"]).env("LC_ALL", locale).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(!text.is_ascii(), unicode, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        for title in ["Throughput by block size", "Senders", "Links by message size", "Round trips", "Chains of relays"]
        {
            assert!(text.contains(title), "'{title}' is not in\n{text}");
        }
        assert!(!text.contains('\x1b'), "no colours into a pipe");
    }
}

#[test]
fn the_default_page_replaces_only_an_earlier_report() {
    let files = Files::new();
    files.document("a.json", &measured_document());
    let report = |words: &[&str]| {
        let mut command = Command::new(PIPEMARK);
        let output = command.args(["report", "./a.json"]).args(words).current_dir(&files.0).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    for _ in 0..2 {
        assert_eq!(report(&[]), (Some(0), "wrote report.html\n".to_owned()));
    }
    let foreign = "<html>another program's</html>";
    fs::write(files.path("report.html"), foreign).unwrap();
    let (code, text) = report(&[]);
    assert!(code == Some(2) && text.contains("report.html exists and isn't a report of pipemark"), "{text}");
    assert_eq!(fs::read_to_string(files.path("report.html")).unwrap(), foreign);
    assert_eq!(report(&["-o", "report.html"]).0, Some(0));
}

#[test]
fn a_file_that_holds_no_results_is_named() {
    let files = Files::new();
    let write = |name: &str, text: &str| {
        fs::write(files.path(name), text).unwrap();
        files.path(name).to_str().unwrap().to_owned()
    };
    let cases = [
        (write("a.json", "not json"), "holds no pipemark results"),
        (write("b.json", "{}"), "names no schema"),
        (write("c.json", r#"{"schema": "pipemark/99"}"#), "has the schema 'pipemark/99'"),
        (write("d.json", r#"{"schema": "pipemark/1"}"#), "missing field"),
        (write("e.json", "{\"schema\": \"\\u001b[31m\"}"), "\\u{1b}[31m"),
        (files.path("f.json").to_str().unwrap().to_owned(), "there is no run"),
        (files.0.path().to_str().unwrap().to_owned(), "directory"),
    ];
    for (path, words) in cases {
        let ended = pipemark(&["report", &path, "-o", files.path("report.html").to_str().unwrap()]);
        assert_eq!(ended.code(), Some(2), "{}", ended.stderr);
        assert!(ended.stderr.contains(&path) && ended.stderr.contains(words), "{}", ended.stderr);
        assert!(!ended.stderr.contains('\x1b'));
        assert!(!files.path("report.html").exists(), "nothing is written");
    }
    let nothing = pipemark(&["report"]);
    assert_eq!(nothing.code(), Some(2));
    assert!(nothing.stderr.contains("history is empty"), "{}", nothing.stderr);
}

#[test]
fn a_page_of_many_trials_stays_small() {
    let files = Files::new();
    let mut document = measured_document();
    let trials = document["trials"].as_array().unwrap().clone();
    let mut many = Vec::new();
    for n in 0..600 {
        let mut trial = trials[n % trials.len()].clone();
        trial["params"]["align"] = json!(n / trials.len());
        trial["id"] = json!(format!("{n}"));
        many.push(trial);
    }
    document["trials"] = json!(many);
    let page = files.page(&[&document]);
    assert!(fs::metadata(&page).unwrap().len() <= 2 << 20, "{} bytes", fs::metadata(&page).unwrap().len());
}
