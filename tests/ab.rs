//! `pipemark ab`: pipelines of the person's own, started by a real shell.

use std::time::{Duration, Instant};

use crate::program::{Ended, Started, pipemark};
use rustix::process::Signal;

fn ab(words: &[&str]) -> Ended {
    pipemark(&[&["ab"], words].concat())
}

#[test]
fn two_pipelines_are_run_in_turns_and_compared() {
    let ended = ab(&["--runs", "6", "--json", "-", "--", "seq 9 | cat", "--", "seq 9; sleep 0.05"]);
    let outcome = ended.measured();
    assert_eq!(outcome["schema"], "pipemark-ab/1");
    assert_eq!(outcome["output"], 18);
    assert_eq!(outcome["a"]["nanoseconds"].as_array().unwrap().len(), 6);
    assert_eq!(outcome["comparison"]["pairing"], "rounds");
    // B sleeps longer than this in every run: no timing, but what sleep(1) promises.
    assert!(outcome["b"]["time"]["min"].as_f64().unwrap() >= 50e6);
}

#[test]
fn without_a_number_there_are_runs_until_a_change_would_be_seen() {
    let runs = |words: &[&str]| {
        let results = ab(&[&["--json", "-"], words].concat()).measured();
        let seen = results["resolution"].as_f64();
        assert_eq!(seen, results["comparison"]["smallest_change"].as_f64());
        (results["a"]["nanoseconds"].as_array().unwrap().len(), seen)
    };
    // A millionth is never seen.
    assert_eq!(runs(&["--threshold", "0.0001%", "--", "true", "--", "true"]).0, 40);
    // So large a change is told from none at once, although what is certainly past the threshold is larger still.
    let (runs, seen) = runs(&["--threshold", "90%", "--", "sleep 0.2", "--", "sleep 0.2"]);
    assert!(runs < 40 && seen.unwrap() > 0.9, "{runs} {seen:?}");
}

#[test]
fn verdicts_have_codes_when_asked_for() {
    let slow = "sleep 0.3";
    let words = ["--runs", "6", "--fail-on", "worse", "--threshold", "5%", "--", "true", "--", slow];
    let ended = ab(&words);
    assert_eq!(ended.code(), Some(10), "{}{}", ended.stdout, ended.stderr);
    let last = ended.stdout.lines().last().unwrap();
    assert!(
        last.starts_with("A ran ") && last.contains("× as fast as B (") && last.ends_with(": B is worse"),
        "{last}"
    );
    assert_eq!(ab(&["--runs", "6", "--fail-on", "better", "--", slow, "--", "true"]).code(), Some(13));
    assert_eq!(ab(&["--runs", "2", "--fail-on", "cant-tell", "--", "true", "--", "true"]).code(), Some(12));
}

/// Each session warms both up again, with an environment of another size, and counts once.
#[test]
fn sessions_are_fresh_starts_and_are_what_is_compared() {
    let script = "echo start ${#PIPEMARK_PADDING} >&2; sleep 0.01";
    let words = ["--runs", "1", "--sessions", "5", "--json", "-", "--", script, "--", "sleep 0.4"];
    let ended = ab(&[&["--fail-on", "worse"], &words[..]].concat());
    assert_eq!(ended.code(), Some(10), "{}", ended.stderr);
    let starts: Vec<&str> = ended.stderr.lines().filter_map(|line| line.strip_prefix("start ")).collect();
    assert_eq!(starts, ["0", "0", "272", "272", "544", "544", "816", "816", "1088", "1088"]);
    let outcome: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let comparison = &outcome["comparison"];
    assert_eq!((&comparison["base_sessions"], &comparison["base_runs"]), (&5.into(), &5.into()));
    assert_eq!((&comparison["pairing"], &outcome["sessions"]), (&"rounds".into(), &5.into()));

    let ended =
        ab(&["--runs", "1", "--sessions", "4", "--fail-on", "worse,cant-tell", "--", "true", "--", "sleep 0.2"]);
    assert_eq!(ended.code(), Some(12), "{}", ended.stdout);
    assert!(ended.stdout.contains("too few sessions; use --sessions 5 or more"), "{}", ended.stdout);
}

#[test]
fn the_capacity_is_that_of_the_pipes_between_the_stages() {
    // Each stage says what its standard input is.
    let script = "import fcntl, sys; sys.stdin.read(); print(fcntl.fcntl(0, 1032))";
    let pipeline = format!("seq 3 | python3 -c '{script}' >&2");
    let ended = ab(&["--runs", "1", "--capacity", "8k,256k", "--json", "-", "--", &pipeline]);
    let outcome = ended.measured();
    assert_eq!(outcome["a"]["capacity_granted"], 8192);
    assert_eq!(outcome["b"]["capacity_granted"], 262_144);
    // A, B to warm up; then B, A.
    assert_eq!(ended.stderr.split_whitespace().collect::<Vec<_>>(), ["8192", "262144", "262144", "8192"]);
}

#[test]
fn outputs_that_differ_are_not_compared() {
    let ended = ab(&["--", "seq 9", "--", "seq 10"]);
    assert_eq!(ended.code(), Some(3), "{}", ended.stdout);
    assert!(ended.stderr.contains("B wrote 21 bytes and the first run of A 18"), "{}", ended.stderr);
    assert_eq!(ended.stdout, "");
}

#[test]
fn the_same_number_of_other_bytes_is_a_difference() {
    let words = ["--runs", "2", "--json", "-", "--", "seq 9", "--", "seq 9 | tac"];
    let ended = ab(&words);
    assert_eq!(ended.code(), Some(3), "{}", ended.stdout);
    assert!(ended.stderr.contains("18 bytes, and not the same ones"), "{}", ended.stderr);
    let results = ab(&[&["--ignore-output"], &words[..]].concat()).measured();
    assert_eq!(results["same_output"], false);
    assert_eq!(ab(&["--runs", "2", "--json", "-", "--", "seq 9", "--", "seq 9 | cat"]).measured()["same_output"], true);
    // Nor is it said of one pipeline that each run wrote as much where they did not.
    let longer = "echo >>\"$LONGER\"; cat \"$LONGER\"";
    let file = tempfile::NamedTempFile::new().unwrap();
    let one = |flags: &[&str]| {
        let words = [&["ab", "--runs", "2"], flags, &["--", longer]].concat();
        let variable = format!("LONGER={}", file.path().display());
        crate::program::run(&["env", &variable, crate::program::PIPEMARK], &words)
    };
    assert_eq!(one(&[]).code(), Some(3));
    assert!(one(&["--ignore-output"]).stdout.contains("The outputs differ: --ignore-output."));
}

#[test]
fn one_pipeline_is_timed_with_the_time_of_its_processes() {
    // It computes for longer than the clock of CPU time ticks.
    let ended = ab(&["--runs", "3", "--json", "-", "--", "seq 400000 | sort -n | tail -1"]);
    let results = ended.measured();
    assert!(results["b"].is_null() && results["comparison"].is_null(), "{results}");
    let [user, time] = ["user", "time"].map(|key| results["a"][key]["median"].as_f64().unwrap());
    assert!(user > 0.0 && time > 0.0, "{results}");
    assert_eq!(results["output"], 7);
    let text = ab(&["--runs", "3", "--", "seq 9"]).stdout;
    assert!(text.contains("user") && text.contains("system") && text.contains("Each run wrote 18 bytes."), "{text}");
}

#[test]
fn a_stage_that_fails_is_an_error() {
    for (pipeline, expected) in [
        ("exit 7", "ended with exit code 7"),
        ("nosuchcommand", "the command was not found"),
        ("kill -ABRT $$", "was ended by signal 6"),
    ] {
        let ended = ab(&["--runs", "1", "--", pipeline, "--", "true"]);
        assert_eq!(ended.code(), Some(1), "{pipeline}");
        assert!(ended.stderr.contains(expected), "{pipeline}: {}", ended.stderr);
    }
    // The shell's own rule where the pipes are the shell's: the last command counts.
    assert_eq!(ab(&["--runs", "1", "--", "false | cat", "--", "true"]).code(), Some(0));
    let stages = ["--runs", "1", "--capacity", "64k", "--", "false | cat", "--", "true | cat"];
    let ended = ab(&stages);
    assert_eq!(ended.code(), Some(1));
    assert!(ended.stderr.contains("'false' ended with exit code 1"), "{}", ended.stderr);
    assert_eq!(ab(&[&["--ignore-failure"], &stages[..]].concat()).code(), Some(0));
    // Nobody reads the rest: that is no failure.
    let early = ab(&["--runs", "1", "--capacity", "default,64k", "--", "yes | head -1"]);
    assert_eq!(early.code(), Some(0), "{}", early.stderr);
}

#[test]
fn what_takes_too_long_is_ended_with_all_that_belongs_to_it() {
    let begin = Instant::now();
    let ended = ab(&["--limit", "200ms", "--", "sleep 50 | cat", "--", "true"]);
    assert_eq!(ended.code(), Some(1));
    assert!(ended.stderr.contains("longer than --limit"), "{}", ended.stderr);
    assert!(begin.elapsed() < Duration::from_secs(40), "it was waited for");
    // What was put into the background ends with the run.
    assert_eq!(ab(&["--runs", "1", "--", "sleep 50 >/dev/null 2>&1 & true", "--", "true"]).code(), Some(0));
}

#[test]
fn ctrl_c_ends_everything() {
    let started = Started::pipemark(&["ab", "--", "sleep 50 | cat", "--", "true"]);
    std::thread::sleep(Duration::from_millis(300));
    started.signal(Signal::INT);
    let (ended, left) = started.end();
    assert_eq!(ended.code(), Some(130), "{}", ended.stderr);
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn bad_usage_is_code_2() {
    for (words, expected) in [
        (&[][..], "required"),
        (&["--fail-on", "worse", "--", "true"], "are for two pipelines"),
        (&["--capacity", "1,2,3", "--", "seq 3 | cat"], "3 values"),
        (&["--capacity", "64k,1m", "--", "seq 3"], "no pipe"),
        (&["--capacity", "64k,1m", "--", "seq 3 | cat; true"], "put it in ( )"),
        (&["--capacity", "quota,1m", "--", "seq 3 | cat"], "use a size"),
        (&["--fail-on", "slower", "--", "true", "--", "true"], "not a verdict"),
        (&["--runs", "0", "--", "true", "--", "true"], "invalid value"),
    ] {
        let ended = ab(words);
        assert_eq!(ended.code(), Some(2), "{words:?}: {}", ended.stderr);
        assert!(
            ended.stderr.starts_with("pipemark: ") && ended.stderr.contains(expected),
            "{words:?}: {}",
            ended.stderr
        );
    }
}
