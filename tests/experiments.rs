//! `pipemark tune 'A | B'` runs a pipeline in variants: what it refuses, that the fastest pipeline has the same output,
//! and that nothing is left.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::program::{PIPEMARK, ProgramOutput, RunningProgram, eventually, file, pipemark, report_skip, run};

const COUNT: &str = "cut -d' ' -f1 | sort | uniq -c | sort -rn | head";

/// Words in an uneven distribution, a line each.
fn words(lines: usize) -> tempfile::NamedTempFile {
    let line = |at: usize| format!("{} x\n", (at * 7919 % 1000) * (at * 104_729 % 7) % 613);
    file((0..lines).map(line).collect::<String>().as_bytes(), ".txt")
}

fn tune(pipeline: &str, flags: &[&str]) -> ProgramOutput {
    pipemark(&[&["tune", pipeline, "--json", "-"], flags].concat())
}

fn result(pipeline: &str, flags: &[&str]) -> Value {
    let ended = tune(pipeline, flags);
    assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
    ended.document()
}

fn output_of(pipeline: &str) -> String {
    // Commands to paste name the program as if it were installed.
    run(&["sh", "-c"], &[&pipeline.replace("| pipemark relay", &format!("| {PIPEMARK} relay"))]).stdout
}

#[test]
fn the_fastest_pipeline_has_the_same_output() {
    let input = words(30_000);
    let pipeline = format!("cat {} | {COUNT}", input.path().display());
    let result = result(&pipeline, &["--budget", "20s"]);
    let experiments = result["experiments"].as_array().unwrap();
    let of = |id: &str| experiments.iter().find(|one| one["id"] == id).unwrap_or_else(|| panic!("{id}: {result}"));
    assert_eq!(of("count-in-awk")["same_output"], true, "{result}");
    assert!(of("count-in-awk")["command"].as_str().unwrap().contains("| awk '{ n[$0]++ }"), "{result}");
    // Each stage was replaced by its recording, and the rest wrote the same.
    for stage in 1..=6 {
        assert_eq!(of(&format!("without-{stage}"))["same_output"], true, "{stage}: {result}");
    }
    let wrote: Vec<u64> =
        result["stages"].as_array().unwrap().iter().map(|stage| stage["wrote"].as_u64().unwrap()).collect();
    assert_eq!(wrote[0], fs::metadata(input.path()).unwrap().len(), "{result}");
    let expected = output_of(&pipeline);
    assert_eq!(result["output"], expected.len(), "{result}");
    let commands =
        experiments.iter().filter(|one| one["same_output"] == true).filter_map(|one| one["command"].as_str());
    for command in commands.chain(result["fastest"]["command"].as_str()) {
        assert_eq!(output_of(command), expected, "{command}");
    }
}

#[test]
fn the_budget_is_kept_and_what_was_not_tried_is_listed() {
    let input = words(200_000);
    let pipeline = format!("cat {} | {COUNT}", input.path().display());
    let begun = Instant::now();
    let short = result(&pipeline, &["--budget", "2s"]);
    // All experiments take much longer than this.
    assert!(short["seconds"].as_f64() < Some(10.0) && begun.elapsed() < Duration::from_secs(30), "{short}");
    assert!(!short["untried"].as_array().unwrap().is_empty(), "{short}");
    // A command before each run counts too.
    let prepared = result(&pipeline, &["--budget", "3s", "--prepare", "sleep 0.3"]);
    assert!(prepared["seconds"].as_f64() < Some(10.0) && prepared["runs"].as_u64() <= Some(20), "{prepared}");
    let ended = tune("sleep 30 | cat", &["--budget", "1s", "--yes", "--rerun-source"]);
    assert_eq!(ended.code(), Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("longer than 1") && ended.stderr.contains("--budget"), "{}", ended.stderr);
}

#[test]
fn the_runs_are_announced_before_they_begin() {
    let ended = tune("seq 1000 | sort -n | wc -l", &["--budget", "2s"]);
    let lines: Vec<&str> = ended.stderr.lines().filter(|line| line.starts_with("tune: ")).collect();
    assert!(lines[0].contains("many times") && lines[0].contains("at most 2"), "{}", ended.stderr);
    assert!(lines[1].contains("runs in at most 2 s"), "{}", ended.stderr);
}

#[test]
fn the_verdict_of_why_is_compared_with_the_experiments() {
    let shown = "(sleep 0.01; seq 1000000) | sort -rn | tail -n 1";
    let found = result(shown, &["--budget", "20s", "--yes", "--rerun-source"]);
    let prediction = &found["prediction"];
    assert!(prediction["text"].as_str().is_some_and(|text| !text.is_empty()), "{found}");
    let stages = found["stages"].as_array().unwrap();
    assert!(stages.iter().any(|stage| stage["predicted"]["low"].as_f64() >= Some(1.0)), "{found}");
}

#[test]
fn why_ends_with_the_call_of_tune() {
    let input = words(300_000);
    let pipeline = format!("cat {} | sort | uniq -c", input.path().display());
    let ended = pipemark(&["why", "--json", "-", &pipeline]);
    let report: Value = ended.stdout.lines().last().map(|line| serde_json::from_str(line).unwrap()).unwrap();
    let call = report["experiments"].as_str().unwrap_or_default();
    assert!(call.starts_with("pipemark tune") && call.contains("sort | uniq -c"), "{report}");
    let failed = pipemark(&["why", "--json", "-", "seq 1000000 | sort | grep nothing-of-that"]);
    let report: Value = failed.stdout.lines().last().map(|line| serde_json::from_str(line).unwrap()).unwrap();
    assert_eq!(report["experiments"], Value::Null, "a pipeline that failed isn't repeated: {report}");
}

#[test]
#[ignore = "long"]
fn long_a_remedy_that_changes_bytes_is_proposed_with_its_difference() {
    if Command::new("pigz").arg("--version").output().is_err() {
        return report_skip("compression by pigz", "pigz isn't installed");
    }
    let input = words(50_000);
    let found = result(&format!("cat {} | gzip -9", input.path().display()), &["--budget", "30s"]);
    let experiments = found["experiments"].as_array().unwrap();
    let pigz = experiments.iter().find(|one| one["id"] == "gzip-pigz").unwrap_or_else(|| panic!("{found}"));
    assert_eq!(pigz["same_output"], false, "{pigz}");
    // It is compared only if it is faster.
    if pigz["gain"].as_f64() > Some(1.05) {
        assert!(pigz["difference"].as_str().is_some_and(|text| text.contains("gzip -dc")), "{pigz}");
    }
}

#[test]
fn a_pipeline_that_may_change_something_is_not_run() {
    let directory = tempfile::tempdir().unwrap();
    let made = directory.path().join("made");
    let made = made.to_str().unwrap();
    for (pipeline, says) in [
        (format!("seq 9 | tee {made}"), "2 tee"),
        (format!("seq 9 | sort -o {made}"), "-o"),
        (format!("seq 9 | sort >{made}"), "redirected"),
        (format!("seq 9 | sed 'w {made}' | wc"), "the script of sed may write"),
        (format!("seq 9 | while read x; do echo $x >>{made}; done"), "can't be seen"),
        (format!("seq 9 | awk '{{ print > \"{made}\" }}'"), "the script of awk may write"),
    ] {
        let ended = tune(&pipeline, &[]);
        assert_eq!((ended.code(), ended.stdout.as_str()), (Some(2), ""), "{pipeline}: {}", ended.stderr);
        assert!(ended.stderr.contains(says) && ended.stderr.contains("--yes"), "{pipeline}: {}", ended.stderr);
        assert!(!Path::new(made).exists(), "{pipeline}");
    }
    let without = result(&format!("seq 9 | sort | tee {made}"), &["--without-last", "--budget", "1s"]);
    assert_eq!((&without["pipeline"], Path::new(made).exists()), (&"seq 9 | sort".into(), false));
    let prepared = result(
        &format!("seq 9 | tee {made}"),
        &["--prepare", &format!("test ! -e {made} || rm {made}"), "--budget", "1s"],
    );
    // The last run may be one without the work of tee.
    assert!(prepared["runs"].as_u64() > Some(3), "{prepared}");
}

#[test]
fn an_unknown_source_runs_once() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let pipeline = format!("(echo run >>{}; seq 20000; sleep 0.2; seq 10) | sort -n | uniq -c | md5sum", log.display());
    let count = || fs::read_to_string(&log).unwrap().lines().count();
    let once = result(&pipeline, &["--budget", "3s"]);
    assert_eq!(count(), 1, "{once}");
    // The recording has the pause of the source.
    assert!(once["time"]["min"].as_f64() >= Some(0.2), "{once}");
    assert!(once["notes"].to_string().contains("ran once"), "{once}");
    let again = result(&pipeline, &["--budget", "2s", "--rerun-source", "--yes"]);
    assert!(count() > 3, "{again}");
}

#[test]
fn a_source_without_an_end_is_cut() {
    let endless = result("while :; do echo 1234567; done | sort | uniq -c", &["--sample", "64k", "--budget", "6s"]);
    assert!(endless["notes"].to_string().contains("--sample"), "{endless}");
    let slow = result("(seq 100; sleep 600) | sort | uniq -c", &["--budget", "2s"]);
    assert!(slow["notes"].to_string().contains("--budget"), "{slow}");
}

#[test]
fn a_pipeline_whose_output_varies_is_refused_with_the_difference() {
    let ended = tune("seq 1000 | shuf | head -3", &[]);
    assert_eq!(ended.code(), Some(3), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("differs from run to run") && ended.stderr.contains("first difference at byte"),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_stage_that_leaves_early_is_replayed_as_such() {
    let early = result("yes 'a b' | cut -d' ' -f1 | head -n 20000 | wc -l", &["--budget", "20s"]);
    let experiments = early["experiments"].as_array().unwrap();
    let without: Vec<&Value> = experiments.iter().filter(|one| one["kind"] == "without").collect();
    assert!(without.len() >= 3 && without.iter().all(|one| one["same_output"] == true), "{early}");
}

#[test]
fn a_failing_pipeline_is_compared_with_its_exit_code() {
    let failing = result("seq 100000 | grep nothing-of-that", &["--budget", "2s"]);
    assert_eq!(failing["output"], 0, "{failing}");
    let ended = tune("seq 9 | sort --field-separator=ab", &["--budget", "2s"]);
    assert!(ended.stderr.is_empty() || ended.stdout.contains("multi-character"), "{} {}", ended.stdout, ended.stderr);
}

/// Processes that have this word in their command line.
fn processes_with(word: &str) -> usize {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let has = |path: std::path::PathBuf| fs::read_to_string(path.join("cmdline")).is_ok_and(|line| line.contains(word));
    all.filter(|entry| entry.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit()))
        .filter(|entry| has(entry.path()))
        .count()
}

#[test]
fn nothing_is_left_however_it_ends() {
    for (signal, code) in [(Signal::INT, Some(130)), (Signal::TERM, Some(130)), (Signal::KILL, None)] {
        let mark = format!("mark-{}-{}", std::process::id(), signal.as_raw());
        let pipeline = format!("seq 300000000 | grep -v {mark} | sort -n | tail -n 1");
        let running = RunningProgram::pipemark(&["tune", &pipeline]);
        eventually("the pipeline runs", || processes_with(&format!("-v\0{mark}")) > 0);
        running.signal(signal);
        let (ended, _) = running.end();
        assert_eq!(ended.code(), code, "{signal:?}: {}", ended.stderr);
        eventually("its processes have ended", || processes_with(&mark) == 0);
    }
}

#[test]
fn an_interrupt_leaves_what_is_known() {
    let directory = tempfile::tempdir().unwrap();
    let count = directory.path().join("count");
    // Each run adds a line, so that the test knows when some have ended.
    let pipeline = format!("(echo >>{}; seq 100000) | sort -n | md5sum", count.display());
    let running =
        RunningProgram::pipemark(&["tune", "--yes", "--rerun-source", "--json", "-", "--budget", "10min", &pipeline]);
    let runs = || fs::read_to_string(&count).map_or(0, |text| text.lines().count());
    eventually("some runs have ended", || runs() >= 6);
    running.signal(Signal::INT);
    let (ended, _) = running.end();
    assert_eq!(ended.code(), Some(130), "{}", ended.stderr);
    let known = ended.document();
    assert!(known["interrupted"] == true && known["runs"].as_u64() >= Some(4), "{known}");
}

#[test]
fn hostile_stages_do_no_harm() {
    // They leave a process behind, one in a session of its own too, read the terminal, ignore signals, write errors
    // without end, stop themselves, kill their parent, and kill all processes of the run.
    let stages = [
        "sh -c 'sleep 1000 & cat'",
        "sh -c 'setsid sleep 1000 & cat'",
        "sh -c 'cat; read x </dev/tty; true'",
        "sh -c 'trap \"\" INT TERM HUP; cat'",
        "sh -c 'yes x >&2 & cat'",
        "sh -c 'cat; kill -STOP $$'",
        "sh -c 'cat; kill -9 $PPID'",
        "sh -c 'cat; kill -9 0'",
    ];
    thread::scope(|scope| {
        for stage in stages {
            scope.spawn(move || {
                let ended = pipemark(&["tune", "--yes", "--budget", "2s", &format!("seq 1000 | {stage} | md5sum")]);
                assert!(ended.code().is_some_and(|code| code <= 3), "{stage}: {:?} {}", ended.code(), ended.stderr);
                assert!(ended.stdout.len() + ended.stderr.len() < 10_000, "{stage}: {:.200}", ended.stderr);
            });
        }
    });
    eventually("no process is left", || processes_with("sleep\x001000") == 0);
}

#[test]
fn a_stage_that_reads_the_terminal_ends_with_the_budget() {
    let terminal = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";
    let pipeline = "seq 1000 | sh -c 'cat; read x </dev/tty' | md5sum";
    let ended = run(&["python3", "-c", terminal, PIPEMARK], &["tune", "--yes", "--budget", "1s", pipeline]);
    assert_eq!(ended.code(), Some(1), "{}", ended.stdout);
    assert!(ended.stdout.contains("longer than 1"), "{}", ended.stdout);
    let waits = run(&["python3", "-c", terminal, PIPEMARK], &["tune", "sort | uniq -c"]);
    assert_eq!(waits.code(), Some(2), "{}", waits.stdout);
    assert!(waits.stdout.contains("waits for the terminal"), "{}", waits.stdout);
}

#[test]
fn a_command_before_runs_that_fails_or_hangs_ends_everything() {
    let tuned = |prepare: &str| tune("seq 9 | sort | wc -l", &["--budget", "1s", "--prepare", prepare]);
    let failed = tuned("echo out; exit 7");
    assert_eq!((failed.code(), failed.stdout.as_str()), (Some(1), ""), "{}", failed.stderr);
    assert!(failed.stderr.contains("--prepare") && failed.stderr.contains("exit code 7"), "{}", failed.stderr);
    let hung = tuned("sleep 60");
    assert_eq!((hung.code(), hung.stdout.as_str()), (Some(1), ""), "{}", hung.stderr);
    let started = RunningProgram::pipemark(&["tune", "--prepare", "touch begun; sleep 60", "seq 9 | sort | wc -l"]);
    eventually("the command runs", || started.directory().join("begun").exists());
    started.signal(Signal::INT);
    let (ended, left) = started.end();
    assert_eq!((ended.code(), left), (Some(130), Vec::<String>::new()), "{}", ended.stderr);
}

#[test]
fn without_room_for_recordings_the_rest_is_measured() {
    // No file may have more than 8 KiB.
    let limited = format!("ulimit -f 8; exec {PIPEMARK} \"$@\"");
    let words = ["tune", "--budget", "2s", "--json", "-", "seq 100000 | sort -n | tail -n 1"];
    let ended = run(&["bash", "-c", &limited, "bash"], &words);
    assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
    let found = ended.document();
    assert!(found["notes"].to_string().contains("no stage could be recorded"), "{found}");
    let source = "(seq 100000; true) | sort -n | tail -n 1";
    let recorded = run(&["bash", "-c", &limited, "bash"], &["tune", "--budget", "2s", "--json", "-", source]);
    assert!(
        recorded.code().is_some_and(|code| code <= 1) && !recorded.stderr.contains("panicked"),
        "{}",
        recorded.stderr
    );
}

#[test]
fn a_pipeline_without_an_end_and_a_full_disk_are_sentences() {
    let endless = tune("yes | cat", &["--budget", "2s"]);
    assert_eq!((endless.code(), endless.stdout.as_str()), (Some(1), ""), "{}", endless.stderr);
    assert!(endless.stderr.contains("longer than 2"), "{}", endless.stderr);
    let full = pipemark(&["tune", "seq 1000 | sort | wc -l", "--budget", "1s", "--json", "/dev/full"]);
    assert_eq!(full.code(), Some(1), "{}", full.stderr);
    assert!(full.stderr.contains("No space left"), "{}", full.stderr);
    // sort has no room for its temporary files.
    let sorted = "seq 300000 | sort -S 100k -T /proc | wc -l";
    let found = result(sorted, &["--budget", "2s"]);
    assert!(found["notes"].to_string().contains("writes to standard error: sort"), "{found}");
}

#[test]
fn full_descriptors_and_a_closed_output_are_sentences() {
    let ended = Command::new("sh")
        .args(["-c", &format!("ulimit -n 8; exec {PIPEMARK} tune --budget 2s 'seq 100 | sort | uniq | wc -l'")])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.code().is_some() && !errors.contains("panicked"), "{errors}");
}

/// The blocks of code in a part of a page, each with its language.
fn blocks(text: &str) -> Vec<(&str, &str)> {
    let fenced = text.split("\n```").skip(1).step_by(2);
    fenced.filter_map(|block| block.split_once('\n')).collect()
}

/// The printed pipelines of docs/tune.md, with the same data but fewer lines.
#[test]
fn the_fastest_pipelines_of_the_guide_write_the_same() {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tune.md")).unwrap();
    let section = page.split("\n## ").find(|section| section.starts_with("Five examples")).unwrap();
    let [(_, data), examples @ ..] = &blocks(section)[..] else { panic!("the data comes first") };
    let directory = tempfile::tempdir().unwrap();
    let sh = |script: &str| {
        let ended = Command::new("sh").args(["-c", script]).current_dir(directory.path()).output().unwrap();
        (ended.status.success(), String::from_utf8_lossy(&ended.stdout).into_owned())
    };
    let fewer = data.replace("lines=1000000", "lines=4000").replace("/ 2000", "/ 50");
    assert!(fewer != *data && sh(&fewer).0, "{fewer}");
    let mut checked = 0;
    for example in examples.chunks(2) {
        let [("sh", call), ("text", printed)] = example else { panic!("not a call and its output: {example:?}") };
        let typed = sh(&format!("pipemark() {{ printf %s \"$2\"; }}\n{call}")).1;
        let fastest = printed.lines().last().unwrap().trim();
        let missing = ["igzip", "mawk", "pigz"]
            .into_iter()
            .find(|name| fastest.split(' ').any(|word| word == *name) && !sh(&format!("command -v {name}")).0);
        if let Some(missing) = missing {
            report_skip(&format!("'{fastest}'"), format!("{missing} isn't installed"));
            continue;
        }
        let pasted = fastest.replace("| pipemark relay", &format!("| {PIPEMARK} relay"));
        let [(_, expected), (_, found)] = [typed.as_str(), &pasted].map(sh);
        assert!(!expected.is_empty() && printed.contains("the output is the same"), "{typed}");
        assert_eq!(found, expected, "{fastest}");
        checked += 1;
    }
    assert_eq!(examples.len(), 10, "five examples");
    assert!(checked > 0);
}
