//! Shell completions, man pages, installation, help topics, --format, and files for other programs. Each is checked
//! with the real shell, `man`, `groff` or parser.

use std::fmt;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::program::history::small;
use crate::program::{self, PIPEMARK, pipemark, report_skip, run};
use serde_json::Value;

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn is_installed(program: &str) -> bool {
    let here = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !here {
        report_skip(&format!("completions as {program} takes them"), "it is not here");
    }
    here
}

/// The completions that bash offers for the last word.
fn completions_of(script: &Path, words: &[&str]) -> Vec<String> {
    let complete = "source \"$1\"; shift; COMP_WORDS=(pipemark \"$@\"); COMP_CWORD=$#; \
                    complete -p pipemark >/dev/null; \
                    _pipemark pipemark \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD-1]}\"; \
                    printf '%s\\n' \"${COMPREPLY[@]}\"";
    let output = Command::new("bash").args(["-c", complete, "bash"]).arg(script).args(words).output().unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    text(&output).lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes() {
    let script = program::file(pipemark(&["--completions", "bash"]).stdout.as_bytes(), "");
    assert_eq!(completions_of(script.path(), &["hi"]), ["history"]);
    assert_eq!(completions_of(script.path(), &["history", "tr"]), ["trend"]);
    assert_eq!(completions_of(script.path(), &["bw", "--no-"]), ["--no-save"]);
    assert_eq!(completions_of(script.path(), &["bw", "--format", "mark"]), ["markdown"]);
    assert!(completions_of(script.path(), &["ru"]).contains(&"run".to_owned()));
    assert!(
        !completions_of(script.path(), &[""]).iter().any(|word| word.starts_with('_')),
        "what is hidden is not offered"
    );
}

#[test]
fn zsh_and_fish_take_their_completions() {
    for (shell, words) in [("zsh", &["-n"][..]), ("fish", &["--no-execute"])] {
        let script = program::file(pipemark(&["--completions", shell]).stdout.as_bytes(), "");
        if is_installed(shell) {
            let output = Command::new(shell).args(words).arg(script.path()).output().unwrap();
            assert!(text(&output).is_empty() && output.stderr.is_empty(), "{output:?}");
        }
    }
    if is_installed("fish") {
        let script = program::file(pipemark(&["--completions", "fish"]).stdout.as_bytes(), "");
        let ask = format!("source {}; complete --do-complete 'pipemark hist'", script.path().display());
        let output = Command::new("fish").args(["--no-config", "-c", &ask]).output().unwrap();
        assert!(text(&output).starts_with("history\t"), "{output:?}");
    }
}

#[test]
fn a_reader_of_completions_may_leave() {
    let script = format!("{PIPEMARK} --completions zsh | true; {PIPEMARK} help method | head -1");
    let output = Command::new("bash").args(["-o", "pipefail", "-c", &script]).output().unwrap();
    assert!(output.stderr.is_empty() && text(&output) == "Method\n", "{output:?}");
}

#[test]
fn files_are_installed_where_programs_look_for_them() {
    let directory = tempfile::tempdir().unwrap();
    let mut make = Command::new("make");
    // The program is already built. `make install` must not build it again, because that takes minutes.
    make.args(["-s", "-o", "build", "install", "PREFIX=/usr", &format!("PIPEMARK={PIPEMARK}")]);
    make.arg(format!("DESTDIR={}", directory.path().display()))
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let output = make.output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let installed = |path: &str| directory.path().join("usr").join(path);
    let program = installed("bin/pipemark");
    assert_eq!(fs::metadata(&program).unwrap().permissions().mode() & 0o777, 0o755);
    assert!(text(&Command::new(&program).arg("--version").output().unwrap()).starts_with("pipemark "));
    assert_eq!(completions_of(&installed("share/bash-completion/completions/pipemark"), &["hi"]), ["history"]);
    assert!(
        fs::read_to_string(installed("share/zsh/site-functions/_pipemark")).unwrap().starts_with("#compdef pipemark")
    );
    assert!(installed("share/fish/vendor_completions.d/pipemark.fish").is_file());
    let pages = fs::read_dir(installed("share/man/man1")).unwrap().map(|entry| entry.unwrap().path());
    let pages: Vec<_> = pages.collect();
    for name in ["pipemark.1", "pipemark-run.1", "pipemark-bw.1", "pipemark-history.1", "pipemark-history-trend.1"] {
        assert!(pages.iter().any(|page| page.ends_with(name)), "{name} is not in {pages:?}");
    }
    if is_installed("groff") {
        for page in &pages {
            let output =
                Command::new("groff").args(["-Kutf8", "-man", "-ww", "-z", "-Tutf8"]).arg(page).output().unwrap();
            assert!(text(&output).is_empty() && output.stderr.is_empty(), "{page:?}: {output:?}");
        }
    }
    if is_installed("man") {
        let page = installed("share/man/man1/pipemark-bw.1");
        let output = Command::new("man").args(["--warnings", "-l"]).arg(page).env("MANWIDTH", "80").output().unwrap();
        assert!(text(&output).contains("--capacity") && output.stderr.is_empty(), "{output:?}");
    }
}

#[test]
fn man_pages_name_licence_and_authors() {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/man/pipemark.1")).unwrap();
    assert!(page.contains("MIT OR Apache\\-2.0") || page.contains("MIT OR Apache-2.0"), "{page}");
    assert!(page.contains("The pipemark authors"), "{page}");
}

#[test]
fn help_knows_verbs_and_topics() {
    let overview = pipemark(&["help"]).stdout;
    let topics = overview.split_once("Topics").unwrap().1.lines().skip(1);
    let topics: Vec<&str> = topics.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(topics.len() <= 11 && topics.contains(&"method") && topics.contains(&"exit-codes"), "{topics:?}");
    for topic in topics {
        assert!(overview.lines().any(|line| line.starts_with(&format!("  {topic} "))), "{topic}: {overview}");
        let ended = pipemark(&["help", topic]);
        assert_eq!((ended.code(), ended.stderr.as_str()), (Some(0), ""), "{topic}");
        assert!(
            (6..=50).contains(&ended.stdout.lines().count()) && !ended.stdout.contains('\x1b'),
            "{topic}: {}",
            ended.stdout
        );
        assert!(ended.stdout.lines().filter(|line| !line.starts_with("  ")).all(|line| line.chars().count() <= 80));
    }
    assert!(pipemark(&["help", "exit-codes"]).stdout.contains("received data is wrong"));
    for (words, expected) in [
        (&["help", "bw"][..], "Usage: pipemark bw"),
        (&["help", "history"], "Usage: pipemark history"),
        (&["help", "history", "trend"], "Usage: pipemark history trend"),
        (&["help", "help"], "Usage: pipemark help"),
        (&["help", "lines", "field"], "Usage: pipemark lines field"),
    ] {
        let ended = pipemark(words);
        assert!(ended.code() == Some(0) && ended.stdout.contains(expected), "{words:?}: {ended:?}");
    }
    for (word, expected) in
        [("metod", "did you mean method?"), ("hsitory", "did you mean history?"), ("\x1b", "'pipemark help'")]
    {
        let ended = pipemark(&["help", word]);
        assert_eq!(ended.code(), Some(2));
        assert!(ended.stderr.contains(expected) && !ended.stderr.contains('\x1b'), "{}", ended.stderr);
    }
    for (words, expected) in [(["method", "units"], "one topic at a time"), (["bw", "foo"], "'foo' is not a verb of")] {
        let ended = pipemark(&[&["help"][..], &words].concat());
        assert!(ended.code() == Some(2) && ended.stderr.starts_with("pipemark: "), "{}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    }
}

/// Every verb that prints results accepts --format, and each format has the same results.
#[test]
fn formats_are_chosen_in_one_way() {
    let bw = small(&[]);
    let bw: Vec<&str> = bw.into_iter().filter(|word| *word != "--quiet").collect();
    // Arguments that must follow the flags.
    let tails: [(&[&str], &[&str]); 6] = [
        (&bw, &[]),
        (&["list"], &[]),
        (&["list", "machine"], &[]),
        (&["history"], &[]),
        (&["sink"], &[]),
        (&["ab", "--runs", "5"], &["--", "true", "--", "true"]),
    ];
    for (words, tail) in tails {
        if words != ["history"] {
            let json = pipemark(&[words, &["--format", "json"], tail].concat());
            assert_eq!(json.code(), Some(0), "{words:?}: {}", json.stderr);
            // `list machine` prints indented JSON; other results are one line.
            assert!(json.stdout.lines().count() == 1 || words == ["list", "machine"], "{words:?}");
            json.document();
            let csv = pipemark(&[words, &["--format", "csv"], tail].concat()).stdout;
            let rows: Vec<_> =
                csv::Reader::from_reader(csv.as_bytes()).into_records().collect::<Result<_, _>>().unwrap();
            assert!(!rows.is_empty(), "{words:?}: {csv}");
            let markdown = pipemark(&[words, &["--format", "markdown"], tail].concat()).stdout;
            assert!(markdown.contains("| --"), "{words:?}: {markdown}");
            let page = pipemark(&[words, &["--format", "html"], tail].concat()).stdout;
            assert!(page.starts_with("<!DOCTYPE html>") && page.contains("<table>"), "{words:?}: {page}");
        }
        let ended = pipemark(&[words, &["--format", "xml"], tail].concat());
        assert_eq!(ended.code(), Some(2));
        assert!(ended.stderr.contains("text, markdown, html, csv, json"), "{words:?}: {}", ended.stderr);
    }
    let json = pipemark(&[&bw[..], &["--quiet", "--format", "json"]].concat());
    assert_eq!(json.document()["schema"], "pipemark/1", "what was chosen is printed, quiet or not");
}

/// A Python that has prometheus_client.
fn python() -> Option<&'static str> {
    let has = |python: &&str| {
        let status = Command::new(python).args(["-c", "import prometheus_client"]).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    ["python3", "/usr/bin/python3"].into_iter().find(has)
}

#[test]
fn openmetrics_are_read_by_prometheus_s_own_parsers() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pipemark.prom");
    let (file, label) = (path.to_str().unwrap(), "a\"b\\c \x1b[31m größer\nline");
    for mode in ["throughput", "latency"] {
        let ended = pipemark(&small(&["--mode", mode, "--label", label, "--openmetrics", file]));
        assert_eq!((ended.code(), ended.stderr.as_str()), (Some(0), ""));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "no temporary file is left");
        let Some(python) = python() else {
            report_skip("OpenMetrics as Prometheus reads it", "prometheus_client is not here");
            return;
        };
        // The strict OpenMetrics parser runs first, then the text parser, whose format node_exporter reads.
        let script = "import json, sys\n\
                      from prometheus_client.openmetrics.parser import text_string_to_metric_families as strict\n\
                      from prometheus_client.parser import text_string_to_metric_families as old\n\
                      text = open(sys.argv[1]).read()\n\
                      families = list(strict(text))\n\
                      assert all(family.type == 'gauge' for family in families)\n\
                      count = lambda families: sum(len(family.samples) for family in families)\n\
                      assert count(families) == count(old(text)) > 5\n\
                      print(json.dumps([[s.name, s.labels, s.value] for f in families for s in f.samples]))";
        let output = Command::new(python).args(["-c", script, file]).output().unwrap();
        let samples: Vec<Value> = serde_json::from_str(&text(&output)).unwrap();
        let name =
            if mode == "latency" { "pipemark_round_trip_seconds" } else { "pipemark_throughput_bytes_per_second" };
        let sample = samples.iter().find(|sample| sample[0] == name && sample[1]["link"] == "pipe").expect(name);
        assert_eq!(sample[1]["label"], label.replace('\x1b', "\\u{1b}"));
        assert!(sample[2].as_f64().unwrap() > 0.0);
    }
}

/// github-action-benchmark expects an array with these fields (its extractCustomBenchmarkResult).
#[test]
fn benchmark_json_has_the_fields_of_its_reader() {
    let ended = run(
        &[PIPEMARK],
        &["bw", "--runs", "2", "--time", "2ms", "--place", program::placement(), "--benchmark-json", "-"],
    );
    let benchmarks = ended.measured();
    for benchmark in benchmarks.as_array().unwrap() {
        assert!(benchmark["name"].is_string() && benchmark["unit"].is_string(), "{benchmark}");
        assert!(benchmark["value"].as_f64().unwrap() > 0.0 && benchmark["range"].is_string(), "{benchmark}");
    }
    assert_eq!(benchmarks.as_array().unwrap().len(), 2);
}

/// The samples of OpenMetrics, read by both of Prometheus's parsers in Python; `None` if they aren't here.
fn samples(file: &std::path::Path) -> Option<Vec<Value>> {
    let script = "import json, sys\n\
                  from prometheus_client.openmetrics.parser import text_string_to_metric_families as strict\n\
                  from prometheus_client.parser import text_string_to_metric_families as old\n\
                  text = open(sys.argv[1]).read()\n\
                  families = list(strict(text))\n\
                  count = lambda families: sum(len(family.samples) for family in families)\n\
                  assert count(families) == count(old(text))\n\
                  print(json.dumps([[s.name, s.labels, s.value] for f in families for s in f.samples]))";
    let output = Command::new(python()?).args(["-c", script]).arg(file).output().unwrap();
    Some(serde_json::from_str(&text(&output)).unwrap())
}

#[test]
fn a_watched_pipeline_is_read_by_prometheus_s_own_parsers() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pipemark.prom");
    let socket = directory.path().join("pipemark.sock");
    let copy = directory.path().join("copy");
    let is_whole = |text: &str| text.contains("name=\"gzip\"") && text.ends_with("# EOF\n");
    // Watches a pipeline that runs until `read` has found its figures.
    let watch = |target: &str, read: &dyn Fn() -> bool| {
        let (input, mut output) = std::io::pipe().unwrap();
        let mut command = Command::new(PIPEMARK);
        let words = ["watch", "--interval", "200ms", "--openmetrics", target, "cat | gzip >/dev/null"];
        command.args(words).stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        // It has the reading end of the pipe.
        drop(command);
        program::eventually(target, || {
            output.write_all(&[b'x'; 50_000]).unwrap();
            read()
        });
        drop(output);
        let ended = child.wait_with_output().unwrap();
        assert!(ended.status.success() && ended.stdout.is_empty(), "no lines beside the figures: {ended:?}");
    };
    watch(file.to_str().unwrap(), &|| {
        let text = fs::read_to_string(&file).unwrap_or_default();
        is_whole(&text) && fs::write(&copy, text).is_ok()
    });
    assert!(fs::read_to_string(&file).unwrap().contains("pipemark_watch_running{} 0\n"));
    let from_file = samples(&copy);
    watch(&format!("unix:{}", socket.display()), &|| {
        let Ok(mut client) = std::os::unix::net::UnixStream::connect(&socket) else { return false };
        let mut answer = String::new();
        client.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        client.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text;"), "{head}");
        is_whole(body) && fs::write(&copy, body).is_ok()
    });
    assert!(!socket.exists());
    let from_socket = samples(&copy);
    let (Some(from_file), Some(from_socket)) = (from_file, from_socket) else {
        report_skip("OpenMetrics of watch as Prometheus reads it", "prometheus_client is not here");
        return;
    };
    for samples in [from_file, from_socket] {
        let of = |name: &str| samples.iter().filter(|sample| sample[0] == name).collect::<Vec<_>>();
        let busy = of("pipemark_stage_busy_ratio");
        assert_eq!(busy.len(), 2, "{samples:?}");
        assert_eq!(busy[1][1]["name"], "gzip");
        assert_eq!(busy[1][1]["pipeline"], "cat | gzip");
        assert_eq!(of("pipemark_pipe_writer_waits_ratio")[0][1]["to"], "2");
        assert_eq!(of("pipemark_bottleneck").len(), 1);
        assert_eq!(of("pipemark_watch_running")[0][2], 1.0);
    }
}

/// What is in these files when this is printed.
struct Written<'p>([&'p std::path::PathBuf; 2]);

impl fmt::Display for Written<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|path| writeln!(out, "{}", fs::read_to_string(path).unwrap_or_default()))
    }
}

#[test]
#[ignore = "long"]
fn long_the_next_run_of_a_pipeline_is_published_too() {
    let directory = tempfile::tempdir().unwrap();
    let [file, messages] = ["pipemark.prom", "messages"].map(|name| directory.path().join(name));
    // A name that no other test uses.
    let name = format!("pub{}", std::process::id());
    fs::copy("/bin/gzip", directory.path().join(&name)).unwrap();
    let words = ["watch", "--name", &name, "--interval", "100ms", "--openmetrics", file.to_str().unwrap()];
    let mut command = Command::new(PIPEMARK);
    let stderr = fs::File::create(&messages).unwrap();
    let watch = command.args(words).stdout(Stdio::piped()).stderr(stderr).spawn().unwrap();
    let published = |what: &str, phrase: &str| {
        let state = Written([&file, &messages]);
        program::eventually(format_args!("{what}: {state}"), || {
            fs::read_to_string(&file).is_ok_and(|text| text.contains(phrase))
        });
    };
    for _ in 0..2 {
        published("nothing is watched", "pipemark_watch_running{} 0\n");
        let mut filter = Command::new(directory.path().join(&name));
        let zero = fs::File::open("/dev/zero").unwrap();
        let mut filter = filter.stdin(zero).stdout(Stdio::null()).spawn().unwrap();
        published("it is watched", &format!("name=\"{name}\""));
        filter.kill().unwrap();
        filter.wait().unwrap();
    }
    published("nothing is watched at the end", "pipemark_watch_running{} 0\n");
    rustix::process::kill_process(rustix::process::Pid::from_child(&watch), rustix::process::Signal::INT).unwrap();
    let ended = watch.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130));
}
