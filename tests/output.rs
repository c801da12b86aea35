//! Output in all forms and to all destinations: tables, JSON, CSV and Markdown, to files, pipes and full disks.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};

use crate::program::{self, PIPEMARK, file, pipemark, placement, samples, trials};
use serde_json::Value;

/// The words of a short measurement.
fn words() -> [&'static str; 9] {
    ["bw", "--place", placement(), "--block", "4k,64k", "--runs", "2", "--time", "3ms"]
}

fn small(more: &[&str]) -> program::ProgramOutput {
    pipemark(&[&words()[..], more].concat())
}

/// The first violation of the schema in `value`, if any. Supports only the keywords that our schema uses, and
/// panics on others.
pub fn schema_violation(root: &Value, schema: &Value, value: &Value, path: &str) -> Option<String> {
    let Some(schema) = schema.as_object() else {
        return (schema != &Value::Bool(true)).then(|| format!("{path} is not allowed"));
    };
    let wrong = |what: &str| Some(format!("{path}: {what}: {value}"));
    for (key, rule) in schema {
        let found = match key.as_str() {
            "$schema" | "title" | "description" | "format" | "$defs" | "default" => None,
            "$ref" => {
                let name = rule.as_str().unwrap().strip_prefix("#/$defs/").unwrap();
                schema_violation(root, &root["$defs"][name], value, path)
            }
            "type" => {
                let types = rule.as_array().cloned().unwrap_or_else(|| vec![rule.clone()]);
                let fits = |name: &Value| match name.as_str().unwrap() {
                    "integer" => value.is_u64() || value.is_i64(),
                    "number" => value.is_number(),
                    "string" => value.is_string(),
                    "boolean" => value.is_boolean(),
                    "null" => value.is_null(),
                    "array" => value.is_array(),
                    "object" => value.is_object(),
                    other => panic!("type {other}"),
                };
                if types.iter().any(fits) { None } else { wrong("its type") }
            }
            "const" if rule != value => wrong("not the constant"),
            "enum" if !rule.as_array().unwrap().contains(value) => wrong("not in the list"),
            "minimum" if value.as_f64().is_some_and(|number| number < rule.as_f64().unwrap()) => wrong("too small"),
            "maximum" if value.as_f64().is_some_and(|number| number > rule.as_f64().unwrap()) => wrong("too large"),
            "const" | "enum" | "minimum" | "maximum" => None,
            "required" => {
                let lacking = |name: &&Value| value.get(name.as_str().unwrap()).is_none();
                rule.as_array().unwrap().iter().find(lacking).and_then(|name| wrong(&format!("lacks {name}")))
            }
            "properties" => {
                let properties = rule.as_object().unwrap();
                let mut present = properties.iter().filter_map(|(name, schema)| Some((name, schema, value.get(name)?)));
                // Documents have no fields that are missing from the schema.
                let unknown = value.as_object().and_then(|object| {
                    object.keys().find(|name| !properties.contains_key(*name)).filter(|_| !schema.contains_key("oneOf"))
                });
                match unknown {
                    Some(name) => wrong(&format!("unknown field {name}")),
                    None => present.find_map(|(name, schema, value)| {
                        schema_violation(root, schema, value, &format!("{path}.{name}"))
                    }),
                }
            }
            "additionalProperties" => None,
            "items" => value.as_array().and_then(|items| {
                let mut items = items.iter().enumerate();
                items.find_map(|(index, item)| schema_violation(root, rule, item, &format!("{path}[{index}]")))
            }),
            "anyOf" | "oneOf" => {
                let errors: Vec<_> =
                    rule.as_array().unwrap().iter().map(|one| schema_violation(root, one, value, path)).collect();
                if errors.iter().any(Option::is_none) { None } else { wrong(&format!("no alternative: {errors:?}")) }
            }
            other => panic!("the schema uses {other}"),
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

#[test]
fn documents_match_the_schema() {
    let schema = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    for more in [
        &["--json", "-"][..],
        &["--json", "-", "--place", "0:1000"],
        &["--json", "-", "--verify", "xor,full", "--baseline", "verify=xor", "--pages", "huge", "--read-delay", "9"],
    ] {
        let words: Vec<&str> = words().into_iter().filter(|word| !["--place", placement()].contains(word)).collect();
        let document = pipemark(&[&words[..], more].concat()).document();
        assert_eq!(schema_violation(&schema, &schema, &document, "document"), None);
        // The check itself detects errors in an invalid document.
        let mut wrong = document.clone();
        wrong["trials"][0]["params"]["block"] = "64k".into();
        assert!(schema_violation(&schema, &schema, &wrong, "document").unwrap().contains("block"));
        wrong = document;
        wrong["trials"][0].as_object_mut().unwrap().remove("status");
        assert!(schema_violation(&schema, &schema, &wrong, "document").is_some());
    }
}

/// Scripts read the first row, so it must be a requested trial.
#[test]
fn reference_rows_come_last() {
    let document = small(&["--json", "-"]).measured();
    let reference: Vec<bool> =
        document["trials"].as_array().unwrap().iter().map(|trial| trial["reference"] == true).collect();
    assert_eq!(reference, [false, false, true]);
    let text = small(&["--csv", "-", "--quiet"]).stdout;
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let place = reader.headers().unwrap().iter().position(|name| name == "reference").unwrap();
    let column: Vec<String> = reader.records().map(|row| row.unwrap()[place].to_owned()).collect();
    assert_eq!(column, ["false", "false", "true"]);
}

#[test]
fn the_table_is_for_people_and_the_rest_for_machines() {
    let ended = small(&[]);
    assert_eq!(ended.code(), Some(0));
    assert!(ended.stdout.contains("Throughput") && ended.stdout.contains("B/s"), "{}", ended.stdout);
    assert!(ended.stdout.lines().all(|line| line.chars().count() <= 80), "{}", ended.stdout);
    assert!(!ended.stdout.contains('\x1b') && ended.stderr.is_empty(), "no colour and no progress into a pipe");
    let ended = small(&["--quiet"]);
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("", ""));
}

#[test]
fn standard_output_holds_one_export_and_nothing_else() {
    let json = small(&["--json", "-"]).measured();
    assert_eq!(json["schema"], "pipemark/1");
    assert!(trials(&json).iter().all(|trial| samples(trial).len() == 2));
    let csv = small(&["--csv", "-", "--quiet"]);
    let rows = rows(&csv.stdout);
    assert_eq!(rows.len(), 3, "the limit and two trials");
    let markdown = small(&["--markdown", "-"]).stdout;
    assert!(markdown.starts_with('#') && markdown.contains("|---") || markdown.contains("| ---"), "{markdown}");
    let widths: BTreeSet<usize> = markdown
        .split("\n\n")
        .filter(|block| block.starts_with('|'))
        .flat_map(|table| {
            let widths: BTreeSet<usize> = table.lines().map(|line| line.matches('|').count()).collect();
            assert_eq!(widths.len(), 1, "ragged table:\n{table}");
            widths
        })
        .collect();
    assert!(!widths.is_empty(), "no table in\n{markdown}");
}

fn rows(text: &str) -> Vec<csv::StringRecord> {
    csv::Reader::from_reader(text.as_bytes()).records().map(|row| row.unwrap()).collect()
}

#[test]
fn csv_and_json_agree() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (json, csv, markdown) = (path("a.json"), path("a.csv"), path("a.md"));
    let ended = small(&["--json", &json, "--csv", &csv, "--markdown", &markdown]);
    assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("Throughput"), "the table comes all the same");
    let document: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    let text = fs::read_to_string(&csv).unwrap();
    let head = csv::Reader::from_reader(text.as_bytes()).headers().unwrap().clone();
    let column = |name: &str| head.iter().position(|column| column == name).unwrap();
    for (row, trial) in rows(&text).iter().zip(document["trials"].as_array().unwrap()) {
        assert_eq!(&row[column("id")], trial["id"].as_str().unwrap());
        let figure: f64 = row[column("throughput")].parse().unwrap();
        let median = trial["estimate"]["throughput"]["median"].as_f64().unwrap();
        assert!((figure / median - 1.0).abs() < 1e-6, "{figure} {median}");
    }
    assert!(fs::read_to_string(&markdown).unwrap().contains('|'));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 3, "no other file");
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    for words in [
        &words()[..],
        &[&words()[..], &["--json", "-"]].concat(),
        &["list"],
        &["list", "machine"],
        &["list", "machine", "--format", "json"],
    ] {
        let data = tempfile::tempdir().unwrap();
        let mut command = Command::new(PIPEMARK);
        command.args(words).env("XDG_DATA_HOME", data.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // The reader leaves early, like `head`.
        drop(child.stdout.take());
        let mut error = String::new();
        child.stderr.take().unwrap().read_to_string(&mut error).unwrap();
        assert_eq!((child.wait().unwrap().code(), error.as_str()), (Some(0), ""), "{words:?}");
    }
    let script = format!("{PIPEMARK} bw --place {} --runs 1 --time 2ms --no-save --csv - | head -1", placement());
    let output = Command::new("bash").args(["-o", "pipefail", "-c", &script]).output().unwrap();
    assert!(output.stderr.is_empty() && output.status.success(), "{output:?}");
    assert!(output.stdout.starts_with(b"suite,"));
}

#[test]
fn a_full_disk_is_code_1_and_the_table_comes() {
    for flag in ["--json", "--csv", "--markdown"] {
        let ended = small(&[flag, "/dev/full"]);
        assert_eq!(ended.code(), Some(1));
        assert!(ended.stderr.contains("/dev/full: No space left on device"), "{}", ended.stderr);
        assert!(ended.stdout.contains("B/s"), "what was measured is shown");
        let others = |ended: &program::ProgramOutput| ended.stderr.contains("Other outputs are complete");
        assert!(others(&ended), "{}", ended.stderr);
        let ended = small(&[flag, "/dev/full", "--quiet"]);
        assert!(ended.code() == Some(1) && !others(&ended), "{}", ended.stderr);
    }
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let small = [&words()[..], &["--no-save"]].concat();
    for words in [&small[..], &["list"], &["list", "machine"], &["--help"], &["--version"]] {
        let output = Command::new(PIPEMARK).args(words).stdout(full.try_clone().unwrap()).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        assert!(error.contains("No space left") && !error.contains("panicked"), "{words:?}: {error}");
    }
}

#[test]
fn unwritable_outputs_are_reported_before_measuring() {
    let plain = file(b"", "");
    let below = format!("{}/x.json", plain.path().display());
    for path in ["/nonexistent/x.json", "/", &below] {
        let ended = pipemark(&["bw", "--time", "50s", "--runs", "1", "--json", path]);
        assert_eq!(ended.code(), Some(1), "{path}");
        assert!(ended.stderr.contains(path) && ended.stdout.is_empty(), "{}", ended.stderr);
    }
}

#[test]
fn a_directory_that_may_not_be_written_to_is_named() {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o555)).unwrap();
    let path = directory.path().join("x.json");
    let words = ["bw", "--time", "50s", "--runs", "1", "--json", path.to_str().unwrap()];
    // Root may write anywhere.
    let nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--", PIPEMARK];
    let ended = if rustix::process::getuid().is_root() { program::run(&nobody, &words) } else { pipemark(&words) };
    assert_eq!(ended.code(), Some(1), "{ended:?}");
    assert!(ended.stderr.contains("Permission denied"), "{}", ended.stderr);
}

#[test]
fn an_existing_file_is_replaced_as_a_whole() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.json");
    fs::write(&path, vec![b'x'; 1 << 20]).unwrap();
    let ended = small(&["--json", path.to_str().unwrap()]);
    assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
    let document: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(document["suite"], "bw");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn without_standard_output_there_is_an_error() {
    let tools: [&[&str]; 6] =
        [&["gen", "--total", "9"], &["relay"], &["lines"], &["sink"], &["help", "units"], &["--completions", "bash"]];
    let others: [&[&str]; 3] = [&["list"], &["list", "machine"], &["bw", "--time", "50s"]];
    for words in tools.into_iter().chain(others) {
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$@\" >&-", "sh", PIPEMARK]).args(words);
        let output = command.stdin(std::process::Stdio::null()).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{words:?}: {stderr}");
        assert!(stderr.contains("standard output"), "{words:?}: {stderr}");
    }
    // A caller's /dev/null is a valid output, even when opened like the one that replaces a closed output.
    let null = fs::File::options().read(true).write(true).open("/dev/null").unwrap();
    assert!(Command::new(PIPEMARK).arg("list").stdout(null).status().unwrap().success());
}

/// A closed standard input is an error, not an empty input.
#[test]
fn without_standard_input_there_is_an_error() {
    for words in [&["relay"][..], &["lines"], &["sink"]] {
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$@\" <&-", "sh", PIPEMARK]).args(words);
        let output = command.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{words:?}: {stderr}");
        assert!(stderr.contains("Bad file descriptor"), "{words:?}: {stderr}");
        // With this limit on descriptors, the closed descriptors can't be replaced.
        let mut command = Command::new("sh");
        command.args(["-c", "exec prlimit --nofile=2 \"$@\" <&- >&- 2>&-", "sh", PIPEMARK]).args(words);
        assert_eq!(command.status().unwrap().code(), Some(1), "{words:?}");
    }
}

#[test]
fn a_reader_of_errors_may_leave() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    for words in [&["chain", "--stage", "nonexist", "--to", "2", "--total", "1m"][..], &["run", "nonexist"]] {
        let status = Command::new(PIPEMARK).args(words).stderr(writer.try_clone().unwrap()).output().unwrap().status;
        assert!(matches!(status.code(), Some(0..=2)), "{words:?}: {status}");
    }
}

#[test]
fn no_output_controls_the_terminal() {
    const HOSTILE: &str = "\x1b[2J\u{9b}31m\u{202e}";
    let mut document = small(&["--json", "-"]).document();
    document["label"] = HOSTILE.into();
    let odd = file(document.to_string().as_bytes(), ".json");
    document["trials"][1]["status"] = HOSTILE.into();
    let wrong = file(document.to_string().as_bytes(), ".json");
    let [odd, wrong] = [&odd, &wrong].map(|file| file.path().to_str().unwrap());
    let stage = format!("sh -c 'printf \"{HOSTILE}\" >&2; exit 3'");
    for (words, codes) in [
        (&[HOSTILE][..], 2),
        (&["bw", HOSTILE], 2),
        (&["bw", "--link", HOSTILE], 2),
        (&["bw", "--baseline", &format!("{HOSTILE}=1")], 2),
        (&["run", HOSTILE], 2),
        (&["help", HOSTILE], 2),
        (&["lines", HOSTILE], 1),
        (&["compare", odd, HOSTILE], 1),
        (&["compare", odd, odd], 0),
        (&["compare", odd, wrong], 1),
        (&["history", "import", wrong], 1),
        (&["history", "show", HOSTILE], 1),
        (&["ab", "--runs", "1", "--", &format!("exit 3 #{HOSTILE}"), "--", "true"], 1),
        (&["chain", "--stage", &stage, "--length", "1", "--runs", "1", "--total", "1m"], 1),
        (&["list", "languages", "--only", HOSTILE], 2),
    ] {
        let ended = pipemark(words);
        let printed = format!("{}{}", ended.stdout, ended.stderr);
        assert!(
            !printed.contains(|c: char| (c.is_control() && c != '\n') || c == '\u{202e}'),
            "{words:?}: {printed:?}"
        );
        assert!(ended.code().is_some_and(|code| code == codes || code == 2), "{words:?}: {ended:?}");
    }
}

#[test]
fn no_cell_is_a_formula() {
    let label = "=cmd|'/c calc'!A1";
    let mut document = small(&["--json", "-"]).document();
    for (field, text) in [("suite", label), ("title", "+1"), ("label", "@sum"), ("version", "-2")] {
        document[field] = text.into();
    }
    document["host"]["name"] = "=1+1".into();
    let odd = file(document.to_string().as_bytes(), ".json");
    let past = tempfile::tempdir().unwrap();
    let db = past.path().join("h.db");
    let db = db.to_str().unwrap();
    assert_eq!(pipemark(&["history", "import", "--db", db, odd.path().to_str().unwrap()]).code(), Some(0));
    for words in [&["list"][..], &["show", "1"], &["trend"]] {
        let csv = pipemark(&[&["history"], words, &["--db", db, "--format", "csv"]].concat()).stdout;
        for row in rows(&csv) {
            let formula =
                |cell: &str| cell.starts_with(['=', '+', '@']) || cell.starts_with('-') && cell.parse::<f64>().is_err();
            assert!(!row.iter().any(formula), "{row:?}");
        }
    }
}

#[test]
fn a_result_never_overwrites_its_inputs() {
    let document = small(&["--json", "-"]).stdout;
    let (one, other) = (file(document.as_bytes(), ".json"), file(document.as_bytes(), ".json"));
    let [a, b] = [&one, &other].map(|file| file.path().to_str().unwrap());
    let link = one.path().with_extension("link");
    std::os::unix::fs::symlink(a, &link).unwrap();
    let link = link.to_str().unwrap();
    for words in [&["report", a, "-o", a][..], &["report", b, a, "-o", link], &["compare", a, b, "--json", b]] {
        let ended = pipemark(words);
        assert_eq!(ended.code(), Some(2), "{words:?}: {}", ended.stderr);
        assert!(ended.stderr.contains("can't also be the output"), "{words:?}: {}", ended.stderr);
    }
    fs::remove_file(link).unwrap();
    assert_eq!((fs::read_to_string(a).unwrap(), fs::read_to_string(b).unwrap()), (document.clone(), document));
}

#[test]
fn missing_proc_is_reported() {
    let words = ["unshare", "--mount", "--map-root-user", "sh", "-c", "mount -t tmpfs none /proc && exec \"$@\"", "sh"];
    if !Command::new(words[0]).args(&words[1..]).arg("true").status().is_ok_and(|status| status.success()) {
        return program::report_skip("a system without /proc", "unshare and mount are refused");
    }
    for verb in [&["bw"][..], &["compare", "--aa"], &["ab", "true", "--", "true"]] {
        let output = Command::new(words[0]).args(&words[1..]).arg(PIPEMARK).args(verb).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{verb:?}: {stderr}");
        assert!(stderr.contains("/proc, which is not mounted"), "{verb:?}: {stderr}");
    }
}

/// Each run and each trial is a line of JSON. With '-', standard output has only these lines.
#[test]
fn lines_are_written_for_runs_and_trials() {
    let words =
        ["bw", "--block", "4k,64k", "--runs", "2", "--time", "5ms", "--place", placement(), "--json-lines", "-"];
    let ended = pipemark(&words);
    assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
    let lines: Vec<serde_json::Value> =
        ended.stdout.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
    let of = |kind: &str| -> Vec<&serde_json::Value> {
        lines.iter().filter(|line| line["kind"] == kind && line["experiment"] == "bw").collect()
    };
    assert_eq!((of("sample").len(), of("trial").len()), (4, 2), "{}", ended.stdout);
    assert!(of("sample").iter().all(|line| line["figure"].as_f64().unwrap() > 0.0 && line["bytes"].is_number()));
    assert!(of("trial").iter().all(|line| line["status"] == "ok" && line["runs"] == 2 && line["median"].is_number()));
    let last = lines.last().unwrap();
    assert_eq!(last["kind"], "trial", "a trial's line comes after those of its runs");
    let both = pipemark(&[&words[..], &["--csv", "-"]].concat());
    assert!(both.code() == Some(2) && both.stderr.contains("standard output"), "{}", both.stderr);
}
