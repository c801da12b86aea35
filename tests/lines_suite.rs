//! The suite `lines`: which tools its filters need, how the output of a filter is checked before the filter is timed,
//! and what happens to filters that are wrong, missing or fail.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use crate::program::PIPEMARK;
use serde_json::Value;
use tempfile::TempDir;

/// Measures `filter` once with the input `feed`. `tools` are sh scripts that come first in PATH.
fn trial(feed: &str, filter: &str, tools: &[(&str, &str)]) -> (Value, Output) {
    let directory = TempDir::new().unwrap();
    for (name, script) in tools {
        let file = directory.path().join(name);
        fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o755)).unwrap();
    }
    let path = std::env::var("PATH").unwrap();
    measure(directory.path(), feed, filter, &format!("{}:{path}", directory.path().display()))
}

fn measure(directory: &Path, feed: &str, filter: &str, path: &str) -> (Value, Output) {
    let volume = match feed {
        "timed" => "time = \"200ms\", rate = 2000",
        _ if feed.starts_with("yes") => "time = \"50ms\"",
        _ => "total = \"1m\"",
    };
    let suite = format!(
        "name = \"s\"\ntitle = \"S\"\n[schedule]\nruns = 1\n[defaults]\nplace = \"free\"\n[[experiment]]\nname = \"e\"\n\
         title = \"E\"\nparams = {{ feed = \"{feed}\", filter = \"{filter}\", {volume} }}\n"
    );
    fs::write(directory.join("suite.toml"), suite).unwrap();
    let output = Command::new(PIPEMARK)
        .args(["run", "./suite.toml", "--json", "-", "--quiet", "--no-save"])
        .current_dir(directory)
        .env("PATH", path)
        .output()
        .unwrap();
    let document: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    let trials = document["trials"].as_array().unwrap();
    let record = trials.iter().find(|record| record["params"]["filter"] == filter).unwrap();
    (record.clone(), output)
}

#[test]
fn every_feed_passes_through_our_filters_and_the_sink() {
    for (feed, filter) in [("yes-short", "lines-1"), ("yes-middle", "sink"), ("file", "lines-all"), ("zcat", "lines-1")]
    {
        pass_through(&[feed], &[filter]);
    }
}

#[test]
#[ignore = "long"]
fn long_every_feed_passes_through_our_filters_and_the_sink() {
    pass_through(
        &["yes-short", "yes-middle", "yes-long", "file", "zcat", "throughput-sh"],
        &["sink", "lines-1", "lines-all"],
    );
}

fn pass_through(feeds: &[&str], filters: &[&str]) {
    for &feed in feeds {
        for &filter in filters {
            let (record, output) = trial(feed, filter, &[]);
            assert_eq!(output.status.code(), Some(0), "{feed} {filter}: {record}");
            assert_eq!(record["status"], "ok", "{feed} {filter}: {}", record["reason"]);
            assert_eq!(record["verified"], true);
            let sample = &record["samples"][0];
            let bytes = sample["bytes"].as_u64().unwrap();
            match feed.starts_with("yes") {
                true => assert!(bytes > 0),
                // Whole lines of the log, as many as fit into 1 MiB.
                false => assert!((1 << 20) - 400 < bytes && bytes <= 1 << 20, "{bytes}"),
            }
            let stats = &sample["pipeline"];
            assert_eq!(stats.get("feed").is_some(), feed != "file");
            assert!(stats["filter"]["page_faults"].as_u64().unwrap() > 0, "{stats}");
            let counters = &record["estimate"]["counters"];
            assert!(counters["task_clock_ns"]["median"].as_f64().unwrap() > 0.0);
        }
    }
}

#[test]
fn lines_are_timed_on_their_way_through_a_filter() {
    let latency = |filter: &str, tools: &[(&str, &str)]| {
        let (record, output) = trial("timed", filter, tools);
        assert_eq!(record["status"], "ok", "{filter}: {}", record["reason"]);
        assert_eq!(output.status.code(), Some(0));
        let latency = record["samples"][0]["latency"].clone();
        let lines = latency["round_trips"].as_u64().unwrap() + latency["held"].as_u64().unwrap();
        assert_eq!(record["samples"][0]["bytes"], lines * 64);
        (record, latency)
    };
    for filter in ["cat", "lines-1"] {
        let (record, latency) = latency(filter, &[]);
        assert!(latency["round_trips"].as_u64() > Some(0), "{filter}: {latency}");
        assert_eq!(latency["due"], 400);
        assert_eq!(record["params"]["mode"], "latency");
    }
    // Lines that are written only when the input ends count as held back.
    let (record, held) = latency("cat", &[("cat", "input=$(/bin/cat; echo .); printf %s \"${input%.}\"")]);
    assert_eq!(held["round_trips"], 0);
    assert!(record["estimate"]["latency"]["p50"].is_null(), "{record}");
    // On a busy machine the warning may instead be that the rate wasn't reached.
    let kinds: Vec<_> = record["warnings"].as_array().unwrap().iter().map(|warning| &warning["kind"]).collect();
    assert!(kinds.iter().any(|kind| *kind == "held" || *kind == "behind"), "{record}");
}

#[test]
fn a_timed_line_that_is_lost_or_changed_is_found() {
    // Each script passes the check before it is timed, because no line of the check's input begins like the lines with
    // the wrong output.
    for (script, words) in [
        ("exec sed -u 's/^0000\\(.*\\)x$/0000\\1y/'", "line 1 came out as '0000"),
        ("exec sed -u '/^000000000000002/d'", "line 33 came out as '000000000000003"),
        ("exec perl -e '$| = 1; while (<>) { last if /^000000000000002/; print } 1 while <>'", "cat wrote 32 of"),
        ("exec perl -e '$| = 1; while (<>) { exit 5 if /^000000000000002/; print }'", "ended with exit code 5"),
    ] {
        let (record, output) = trial("timed", "cat", &[("cat", script)]);
        assert_eq!(record["status"], "failed", "{script}");
        let reason = record["reason"].as_str().unwrap();
        assert!(reason.contains(words), "{reason}");
        assert_eq!(output.status.code(), Some(if script.contains("exit 5") { 1 } else { 3 }), "{reason}");
    }
    let (record, _) = trial("timed", "sink", &[]);
    assert_eq!(record["reason"], "sink outputs no lines to time");
}

#[test]
fn installed_tools_do_the_same_transform() {
    for filter in ["awk", "mawk", "perl", "sed", "pv"] {
        let (record, output) = trial("file", filter, &[]);
        let here = Command::new(filter).arg("--version").output().is_ok();
        assert_eq!(record["status"], if here { "ok" } else { "skipped" }, "{filter}: {}", record["reason"]);
        assert_eq!(output.status.code(), Some(0), "{filter}");
    }
}

#[test]
fn a_wrong_output_is_not_timed() {
    for (script, words) in [
        ("cat", "line 1 is '' instead of '[spaces: 0]'"),
        ("cat > /dev/null", "line 1 is '' instead of '[spaces: 0]'"),
        // Six spaces are printed as 6, not as >6.
        (r#"exec perl -ne '$n = tr/ //; print "[spaces: ", ($n > 5 ? ">6" : $n), "]", $_'"#, "'[spaces: >6]      '"),
    ] {
        let (record, output) = trial("yes-short", "awk", &[("awk", script)]);
        assert_eq!(output.status.code(), Some(3), "{script}");
        assert_eq!((&record["status"], &record["verified"]), (&"failed".into(), &false.into()), "{script}");
        let reason = record["reason"].as_str().unwrap();
        assert!(reason.contains("the output of awk is wrong") && reason.contains(words), "{reason}");
        assert!(record["estimate"].is_null() && record["samples"].as_array().unwrap().is_empty());
    }
}

#[test]
fn a_failing_filter_is_reported_with_its_stderr() {
    let (record, output) = trial("yes-short", "awk", &[("awk", "echo no such luck >&2; exit 4")]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(record["reason"], "awk ended with exit code 4: no such luck");
    // The filter passes the check of its output, but ends early in the timed run.
    let directory = TempDir::new().unwrap();
    let mark = directory.path().join("tried");
    let script = format!(
        "if [ -e {0} ]; then exit 0; fi; touch {0}; exec perl -ne '$n = tr/ //; print \"[spaces: \", ($n > 6 ? \">6\" : $n), \"]\", $_'",
        mark.display()
    );
    let (record, _) = trial("yes-short", "awk", &[("awk", &script)]);
    assert_eq!(record["status"], "failed");
    assert!(record["reason"].as_str().unwrap().contains("ended before its input did"), "{}", record["reason"]);
    fs::remove_file(&mark).unwrap();
    let (record, _) = trial("file", "awk", &[("awk", &script)]);
    assert!(record["reason"].as_str().unwrap().contains("ended after reading 0 of"), "{}", record["reason"]);
}

#[test]
fn missing_filters_are_skipped_with_a_reason() {
    let directory = TempDir::new().unwrap();
    for (feed, filter, words) in [
        ("file", "mawk", "mawk is missing (mawk: not found); to install it: apt install mawk"),
        ("file", "spark-sql", "spark is missing (../../build/spark/bin/python filter.py: not found"),
        ("yes-short", "lines-1", "yes, which feeds the filter, is not installed"),
        ("zcat", "lines-1", "gzip, which feeds the filter, is not installed"),
        ("file", "std-baseline", "there is no directory 'entrants/lines' here; run this in pipemark's source tree"),
    ] {
        let (record, output) = measure(directory.path(), feed, filter, "/nowhere");
        assert_eq!(record["status"], "skipped", "{filter}");
        let reason = record["reason"].as_str().unwrap();
        assert!(reason.starts_with(words), "{reason}");
        assert_eq!(output.status.code(), Some(0), "what is skipped has not failed");
    }
}
