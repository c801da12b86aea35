//! `pipemark ab`: timing and comparing real commands, which a real shell starts.

use crate::program::{ProgramOutput, RunningProgram, eventually, pipemark};
use rustix::process::Signal;

fn ab(words: &[&str]) -> ProgramOutput {
    pipemark(&[&["ab"], words].concat())
}

#[test]
fn two_pipelines_are_interleaved_and_compared() {
    let ended = ab(&["--runs", "6", "--json", "-", "--", "seq 9 | cat", "--", "seq 9; sleep 0.05"]);
    let outcome = ended.measured();
    assert_eq!(outcome["schema"], "pipemark-ab/2");
    let [a, b] = [0, 1].map(|at| &outcome["commands"][at]);
    assert_eq!((&a["output"], &a["runs"].as_array().unwrap().len()), (&18.into(), &6));
    assert_eq!(b["figures"]["time"]["comparison"]["pairing"], "rounds");
    assert!(a["figures"]["time"]["comparison"].is_null(), "it is the reference");
    // sleep(1) never ends early, so this assertion holds on a busy machine too.
    assert!(b["runs"].as_array().unwrap().iter().all(|run| run["time"].as_f64().unwrap() >= 50e6));
}

#[test]
fn without_a_number_runs_are_added_until_a_change_is_detectable() {
    let runs = |words: &[&str]| {
        let results = ab(&[&["--json", "-", "--budget", "4s"], words].concat()).measured();
        let seen = results["commands"][1]["figures"]["time"]["comparison"]["smallest_change"].as_f64();
        (results["commands"][0]["runs"].as_array().unwrap().len(), seen)
    };
    // A change of a millionth is never detected, so the budget ends the measurement.
    let (most, _) = runs(&["--threshold", "0.0001%", "--", "sleep 0.02", "--", "sleep 0.02"]);
    // A difference beyond a threshold of 90 % is detected after a few runs. The whole interval must be beyond 90 %, so
    // the commands differ by more than that.
    let (few, seen) = runs(&["--threshold", "90%", "--", "sleep 0.02", "--", "sleep 0.02"]);
    assert!(10 <= few && few < most && seen.unwrap() > 0.9, "{few} {most} {seen:?}");
}

#[test]
fn verdicts_have_codes_when_asked_for() {
    // The commands are long enough that delays on a busy machine hardly matter.
    let (fast, slow) = ("sleep 0.05", "sleep 0.7");
    let words = ["--runs", "6", "--fail-on", "worse", "--threshold", "5%", "--", fast, "--", slow];
    let ended = ab(&words);
    assert_eq!(ended.code(), Some(10), "{}{}", ended.stdout, ended.stderr);
    let last = ended.stdout.lines().last().unwrap();
    assert!(
        last.starts_with("A ran ") && last.contains("× as fast as B (") && last.ends_with(": B is worse"),
        "{last}"
    );
    let ended = ab(&["--runs", "6", "--fail-on", "better,no-verdict", "--", slow, "--", fast]);
    assert_eq!(ended.code(), Some(13), "{}{}", ended.stdout, ended.stderr);
    for (word, code) in
        [("inconclusive", 12), ("cant-tell", 12), ("no-verdict", 15), ("same,inconclusive,no-verdict", 15)]
    {
        let ended = ab(&["--runs", "2", "--fail-on", word, "--", "true", "--", "true"]);
        assert_eq!(ended.code(), Some(code), "{word}: {}{}", ended.stdout, ended.stderr);
        assert!(ended.stdout.contains("too few rounds (2); use --runs 10"), "{}", ended.stdout);
    }
}

/// Each session repeats the warm-up of both commands, in an environment of a different size. A session counts as one
/// observation.
#[test]
fn sessions_start_afresh_and_are_compared_by_session() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let script = format!("echo ${{#PIPEMARK_PADDING}} >>{}; sleep 0.01", file.path().display());
    let words = ["--runs", "1", "--sessions", "5", "--json", "-", "--", &script, "--", "sleep 0.4"];
    let ended = ab(&[&["--fail-on", "worse"], &words[..]].concat());
    assert_eq!(ended.code(), Some(10), "{}", ended.stderr);
    let starts = std::fs::read_to_string(file.path()).unwrap();
    let starts: Vec<&str> = starts.lines().collect();
    assert_eq!(starts, ["0", "0", "272", "272", "544", "544", "816", "816", "1088", "1088"]);
    let outcome: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let comparison = &outcome["commands"][1]["figures"]["time"]["comparison"];
    assert_eq!((&comparison["base_sessions"], &comparison["base_runs"]), (&5.into(), &5.into()));
    assert_eq!((&comparison["pairing"], &outcome["sessions"]), (&"rounds".into(), &5.into()));

    let ended =
        ab(&["--runs", "1", "--sessions", "4", "--fail-on", "worse,inconclusive", "--", "true", "--", "sleep 0.2"]);
    assert_eq!(ended.code(), Some(12), "{}", ended.stdout);
    assert!(ended.stdout.contains("too few sessions (4); use --sessions 5 or more"), "{}", ended.stdout);
}

#[test]
fn the_capacity_is_that_of_the_pipes_between_the_stages() {
    // Each stage prints the capacity of its standard input (1032 is F_GETPIPE_SZ).
    let script = "import fcntl, sys; sys.stdin.read(); print(fcntl.fcntl(0, 1032))";
    let pipeline = format!("seq 3 | /usr/bin/python3 -c '{script}' >&2");
    let ended = ab(&["--runs", "1", "--capacity", "8k,256k", "--json", "-", "--", &pipeline]);
    let outcome = ended.measured();
    assert_eq!(outcome["commands"][0]["capacity_granted"], 8192);
    assert_eq!(outcome["commands"][1]["capacity_granted"], 262_144);
    // Both runs of each command print the same output.
    let lines: Vec<&str> = ended.stderr.lines().collect();
    let again = |label: &str, text: &str| format!("{label}: repeated once on standard error: {text}");
    assert_eq!(lines, ["8192", "262144", &again("A", "8192"), &again("B", "262144")]);
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
    assert!(ended.stderr.contains("each wrote 18 bytes, with different content"), "{}", ended.stderr);
    let results = ab(&[&["--ignore-output"], &words[..]].concat()).measured();
    assert_eq!(results["commands"][1]["same_output"], false);
    let same = ab(&["--runs", "2", "--json", "-", "--", "seq 9", "--", "seq 9 | cat"]).measured();
    assert_eq!(same["commands"][1]["same_output"], true);
    // Runs of one command that print different output are an error too.
    let longer = "echo >>\"$LONGER\"; cat \"$LONGER\"";
    let file = tempfile::NamedTempFile::new().unwrap();
    let one = |flags: &[&str]| {
        let words = [&["ab", "--runs", "2"], flags, &["--", longer]].concat();
        let variable = format!("LONGER={}", file.path().display());
        crate::program::run(&["env", &variable, crate::program::PIPEMARK], &words)
    };
    assert_eq!(one(&[]).code(), Some(3));
    assert!(one(&["--ignore-output"]).stdout.contains("The outputs differ, which --ignore-output allows."));
}

#[test]
fn one_pipeline_is_timed_with_the_time_of_its_processes() {
    // The command runs long enough for its CPU time to exceed one clock tick.
    let ended = ab(&["--runs", "3", "--json", "-", "--", "seq 400000 | sort -n | tail -1"]);
    let results = ended.measured();
    assert_eq!(results["commands"].as_array().unwrap().len(), 1);
    let command = &results["commands"][0];
    let [user, time] = ["user", "time"].map(|key| command["figures"][key]["estimate"]["median"].as_f64().unwrap());
    assert!(user > 0.0 && time > 0.0, "{results}");
    assert_eq!(command["output"], 7);
    let text = ab(&["--runs", "3", "--", "seq 9"]).stdout;
    assert!(text.contains("user") && text.contains("system") && text.contains("Each run wrote 18 bytes."), "{text}");
}

#[test]
fn a_stage_that_fails_is_an_error() {
    for (pipeline, expected) in [
        ("exit 7", "ended with exit code 7"),
        ("nosuchcommand", "not found"),
        ("kill -ABRT $$", "was ended by signal 6"),
    ] {
        let ended = ab(&["--runs", "1", "--", pipeline, "--", "true"]);
        assert_eq!(ended.code(), Some(1), "{pipeline}");
        assert!(ended.stderr.contains(expected), "{pipeline}: {}", ended.stderr);
    }
    // The shell makes these pipes, so only the last command's exit code counts.
    assert_eq!(ab(&["--runs", "1", "--", "false | cat", "--", "true"]).code(), Some(0));
    let stages = ["--runs", "1", "--capacity", "64k", "--", "false | cat", "--", "true | cat"];
    let ended = ab(&stages);
    assert_eq!(ended.code(), Some(1));
    assert!(ended.stderr.contains("'false' ended with exit code 1"), "{}", ended.stderr);
    assert_eq!(ab(&[&["--ignore-failure"], &stages[..]].concat()).code(), Some(0));
    // SIGPIPE doesn't count as a failure: it ends `yes` because `head` has read enough.
    let early = ab(&["--runs", "1", "--capacity", "default,64k", "--", "yes | head -1"]);
    assert_eq!(early.code(), Some(0), "{}", early.stderr);
}

#[test]
fn a_timed_out_command_is_killed_with_its_children() {
    // Waiting for one of these sleeps would exceed the time limit of tests.
    let ended = ab(&["--limit", "200ms", "--", "sleep 500 | cat", "--", "true"]);
    assert_eq!(ended.code(), Some(1));
    assert!(ended.stderr.contains("longer than --limit"), "{}", ended.stderr);
    // Background processes end with the run, even with standard error open.
    for background in ["sleep 500 >/dev/null 2>&1 & true", "sleep 500 >/dev/null & true"] {
        assert_eq!(ab(&["--runs", "1", "--", background, "--", "true"]).code(), Some(0), "{background}");
    }
    // The output ends only when the background process closes it, and the run waits for that.
    let late = ab(&["--runs", "1", "--json", "-", "--", "(sleep 0.1; echo late) & true"]).measured();
    assert_eq!(late["commands"][0]["output"], 5);
    let ended = ab(&["--limit", "200ms", "--", "sleep 500 & echo x"]);
    assert_eq!(ended.code(), Some(1));
    assert!(ended.stderr.contains("a background process kept its output open"), "{}", ended.stderr);
}

#[test]
fn ctrl_c_ends_everything() {
    let started = RunningProgram::pipemark(&["ab", "--", "touch begun; sleep 50 | cat", "--", "true"]);
    eventually("the first run begins", || started.directory().join("begun").exists());
    started.signal(Signal::INT);
    let (ended, left) = started.end();
    assert_eq!(ended.code(), Some(130), "{}", ended.stderr);
    assert_eq!(left, Vec::<String>::new());
}

/// Ctrl-C in the setup is followed by the cleanup, in a run also by --conclude. In the cleanup, it keeps the results.
#[test]
fn ctrl_c_is_followed_by_the_remaining_hooks() {
    let interrupted = |words: &[&str]| {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().display().to_string();
        let lines = || std::fs::read_to_string(file.path()).unwrap();
        let words: Vec<String> = words.iter().map(|word| word.replace("LOG", &path)).collect();
        let words: Vec<&str> = ["ab"].into_iter().chain(words.iter().map(String::as_str)).collect();
        let started = RunningProgram::pipemark(&words);
        eventually("it hangs", || lines().contains("now"));
        started.signal(Signal::INT);
        let (ended, left) = started.end();
        assert_eq!((ended.code(), left), (Some(130), Vec::<String>::new()), "{}", ended.stderr);
        (ended.stdout, lines().split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    };
    let hang = "echo now >>LOG; sleep 50";
    let hooks = ["--conclude", "echo conclude >>LOG", "--cleanup", "echo cleanup >>LOG"];
    let (_, lines) = interrupted(&[&hooks[..], &["--setup", hang, "--", "true"]].concat());
    assert_eq!(lines, ["now", "cleanup"]);
    let (_, lines) = interrupted(&[&hooks[..], &["--", hang]].concat());
    assert_eq!(lines, ["now", "conclude", "cleanup"]);
    let (text, _) = interrupted(&["--runs", "2", "--json", "-", "--cleanup", hang, "--", "true"]);
    let result: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&result["interrupted"], result["commands"][0]["runs"].as_array().unwrap().len()), (&true.into(), 2));
}

#[test]
fn a_fifo_is_no_input_and_ctrl_c_ends_a_wait_for_its_reader() {
    let directory = tempfile::tempdir().unwrap();
    let fifo = directory.path().join("fifo").display().to_string();
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    for flag in ["--input", "--cold"] {
        let ended = ab(&["--runs", "1", flag, &fifo, "--", "cat"]);
        assert!(ended.code() == Some(1) && ended.stderr.contains("it is a pipe"), "{flag}: {}", ended.stderr);
    }
    let words = ["ab", "--runs", "1", "--cleanup", "touch done", "--json", &fifo, "--", "true"];
    let mut started = RunningProgram::pipemark(&words);
    eventually("the runs are over", || started.directory().join("done").exists());
    // The first Ctrl-C may still interrupt the cleanup.
    eventually("Ctrl-C ends it", || {
        started.signal(Signal::INT);
        started.is_over()
    });
    let (ended, left) = started.end();
    assert_eq!((ended.code(), left), (Some(130), Vec::<String>::new()), "{}", ended.stderr);
}

/// An interrupted measurement reports its complete rounds and still runs --cleanup.
#[test]
fn ctrl_c_keeps_whole_rounds_and_cleans_up() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().display().to_string();
    let script = format!("echo run >>{path}; test $(grep -c run {path}) -lt 4 || sleep 50");
    let cleanup = format!("sleep 0.1; echo cleaned >>{path}");
    let words = ["ab", "--cleanup", &cleanup, "--json", "-", "--", &script];
    let started = RunningProgram::pipemark(&words);
    let lines = || std::fs::read_to_string(file.path()).unwrap();
    eventually("the fourth run begins", || lines().lines().count() >= 4);
    started.signal(Signal::INT);
    let (ended, left) = started.end();
    assert_eq!((ended.code(), left), (Some(130), Vec::<String>::new()), "{}", ended.stderr);
    let result: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(result["interrupted"], true);
    assert_eq!(result["commands"][0]["runs"].as_array().unwrap().len(), 2, "after one to warm up: {result}");
    assert!(lines().ends_with("cleaned\n"), "{}", lines());
}

#[test]
fn bad_usage_is_code_2() {
    for (words, expected) in [
        (&[][..], "required"),
        (&["--fail-on", "worse", "--", "true"], "need at least two commands"),
        (&["--capacity", "1,2,3", "--", "seq 3 | cat", "--", "seq 3 | cat"], "3 values for 2 commands"),
        (&["--capacity", "64k,1m", "--", "seq 3"], "no pipe"),
        (&["--capacity", "64k,1m", "--", "seq 3 | cat; true"], "put it in ( )"),
        (&["--capacity", "quota,1m", "--", "seq 3 | cat"], "use a size"),
        (&["--sessions", "4", "--fail-on", "worse", "--", "true", "--", "true"], "use --sessions 5 or more"),
        (&["--runs", "2", "--fail-on", "worse,better", "--", "true", "--", "true"], "use --runs 10"),
        (&["--fail-on", "slower", "--", "true", "--", "true"], "not a verdict"),
        (&["--runs", "0", "--", "true", "--", "true"], "invalid value"),
        (&["--parameter", "n=1..4:0", "--", "seq {n}"], "the step is 0"),
        (&["--parameter", "n=4..1", "--", "seq {n}"], "the range is empty"),
        (&["--parameter", "n=1,2", "--", "seq {m}"], "there is {m}"),
        (&["--parameter", "n=1..300", "--", "seq {n}"], "use --yes"),
        (&["--parameter", "n=1..99", "--parameter", "m=1..99", "--", "seq {n} {m}"], "9801 commands are too many"),
        (&["--reference", "3", "--", "true", "--", "true"], "1 to 2, or a name: A, B"),
        (&["--name", "x", "--", "true", "--", "true"], "one for each"),
        (&["--name", "", "--", "true"], "--name is empty"),
        (&["--setup", "a", "--setup", "b", "--", "true"], "2 times for 1 command;"),
        (&["--by", "memry", "--", "true", "--", "true"], "did you mean memory?"),
        (&["--figure", "x=(", "--", "true"], "not a regular expression"),
        (&["--cpus", "1000", "--", "true"], "CPU 1000"),
        (&["--env", "X", "--", "true"], "NAME=VALUE"),
        (&["--json", "-", "--json-lines", "-", "--", "true"], "standard output"),
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

#[test]
fn a_text_on_standard_error_is_printed_once() {
    let ended = ab(&["--runs", "4", "--", "nosuchcommand | wc -c"]);
    assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
    assert_eq!(ended.stderr.matches("nosuchcommand: not found").count(), 2, "{}", ended.stderr);
    assert!(ended.stderr.contains("A: repeated 4 times on standard error: "), "{}", ended.stderr);
    // The advised flag reports the failure.
    assert!(ended.stderr.contains("use --capacity default to detect a failure"), "{}", ended.stderr);
    let ended = ab(&["--runs", "1", "--capacity", "default", "--", "nosuchcommand | wc -c"]);
    assert_eq!(ended.code(), Some(1));
    assert!(ended.stderr.contains("'nosuchcommand' ended with exit code 127"), "{}", ended.stderr);

    // The error output of a run that fails or takes too long is printed too. The middle of a long output is omitted.
    let ended = ab(&["--limit", "300ms", "--", "echo password: >&2; sleep 50"]);
    assert!(ended.code() == Some(1) && ended.stderr.contains("password:"), "{}", ended.stderr);
    let ended = ab(&["--runs", "1", "--", "echo first >&2; seq 100000 >&2; echo last >&2"]);
    assert!(ended.code() == Some(0) && ended.stderr.len() < 200_000, "{} bytes", ended.stderr.len());
    for part in ["first\n", "bytes omitted", "\nlast\n"] {
        assert!(ended.stderr.contains(part), "{part}");
    }
}

/// Runs `pipemark ab FLAGS -- SCRIPT` with `LOG` set to an empty file; also returns the lines of that file.
fn log(script: &str, flags: &[&str]) -> (ProgramOutput, Vec<String>) {
    let file = tempfile::NamedTempFile::new().unwrap();
    let variable = format!("LOG={}", file.path().display());
    let words = [&["ab", "--env", &variable], flags, &["--", script]].concat();
    let ended = pipemark(&words);
    let lines = std::fs::read_to_string(file.path()).unwrap().lines().map(str::to_owned).collect();
    (ended, lines)
}

/// Commands that take different times, two of them the same.
const RANKED: [&str; 7] = ["sleep 0.8", "--", "sleep 0.25", "--", "sleep 0.25; true", "--", "sleep 0.02"];

#[test]
fn several_commands_are_ranked() {
    let words = ["--runs", "6", "--reference", "2", "--json", "-", "--"];
    let result = ab(&[&words[..], &RANKED].concat()).measured();
    let of = |key: &str| -> Vec<serde_json::Value> {
        result["commands"].as_array().unwrap().iter().map(|command| command[key].clone()).collect()
    };
    assert_eq!(of("label"), ["A", "B", "C", "D"]);
    let ranks: Vec<u64> = of("rank").iter().map(|rank| rank.as_u64().unwrap()).collect();
    // On a busy machine, one slow run may make any two commands tie. The tests of pipemark-stats check the ranks for
    // given times.
    let middle = [ranks[1], ranks[2]];
    assert!(ranks[3] == 1 && middle.iter().all(|rank| (ranks[3]..=ranks[0]).contains(rank)), "{ranks:?}");
    let verdict = |at: usize| result["commands"][at]["figures"]["time"]["verdict"].clone();
    assert_eq!(verdict(1), serde_json::Value::Null, "the reference");
    assert!(["worse", "inconclusive"].contains(&verdict(0).as_str().unwrap()), "{result}");
    assert!(["better", "inconclusive"].contains(&verdict(3).as_str().unwrap()), "{result}");
    assert_eq!(result["reference"], "B");
}

#[test]
#[ignore = "long"]
fn long_ranked_commands_are_listed_best_first() {
    let text = ab(&[&["--runs", "6", "--"], &RANKED[..]].concat()).stdout;
    let rows: Vec<&str> = text.lines().filter(|line| line.contains("sleep")).collect();
    assert!(rows[0].contains("sleep 0.02") && rows[3].contains("sleep 0.8"), "the best first: {text}");
    assert!(text.lines().last().unwrap().contains(": better"), "{text}");
}

#[test]
fn parameters_make_a_row_each_and_one_that_fails_is_a_row_with_its_reason() {
    let script = "test {n} != 3 && printf %s '{x} ${n}' | awk '{print}' >>\"$LOG\"; test {n} != 3";
    let flags = ["--parameter", "n=1..4", "--runs", "2", "--warmup", "0", "--json", "-"];
    let (ended, lines) = log(script, &flags);
    assert_eq!(ended.code(), Some(1), "{}", ended.stderr);
    assert!(lines.iter().all(|line| line == "{x} ${n}") && lines.len() == 6, "{lines:?}");
    let result: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let commands = result["commands"].as_array().unwrap();
    assert_eq!(
        commands.iter().map(|one| one["label"].as_str().unwrap()).collect::<Vec<_>>(),
        ["n=1", "n=2", "n=3", "n=4"]
    );
    assert!(commands[2]["failed"].as_str().unwrap().contains("exit code 1"), "{}", commands[2]["failed"]);
    assert_eq!(commands[3]["runs"].as_array().unwrap().len(), 2, "the rest goes on");
    assert!(ended.stderr.contains("4 commands, each 2 times"), "{}", ended.stderr);
    assert!(ended.stderr.contains("pipemark: n=3: "), "{}", ended.stderr);
    let text = ab(&["--runs", "1", "--", "true", "--", "false", "--", "false"]).stdout;
    assert!(!text.contains("is best"), "nothing is left to compare with: {text}");
    let text = ab(&["--runs", "1", "--by", "instructions", "--", "true"]);
    assert!(text.code() == Some(0) || text.stderr.contains("is not available here"), "{}", text.stderr);
    let text = ab(&["--parameter", "n=1..4", "--runs", "6", "--", "sleep 0.0{n}"]).stdout;
    assert!(text.contains("time by n"), "a chart over the parameter: {text}");
}

#[test]
fn hooks_are_run_around_the_runs_in_their_order() {
    let say = |what: &str| format!("echo {what} >>\"$LOG\"");
    let [setup, prepare, conclude, cleanup] = ["setup", "prepare", "conclude", "cleanup"].map(say);
    let flags =
        ["--runs", "2", "--setup", &setup, "--prepare", &prepare, "--conclude", &conclude, "--cleanup", &cleanup];
    let (ended, lines) = log(&say("run"), &flags);
    assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
    let once = ["prepare", "run", "conclude"];
    assert_eq!(lines, [&["setup"][..], &once, &once, &once, &["cleanup"]].concat());
    // --conclude and --cleanup run even if a run fails.
    let (ended, lines) = log("exit 3", &flags);
    assert_eq!(
        (ended.code(), lines),
        (Some(1), ["setup", "prepare", "conclude", "cleanup"].map(str::to_owned).to_vec())
    );
    // After a failed setup, the commands whose setup was started are cleaned up.
    let failing = format!("{setup}; exit 4");
    let flags = ["--setup", &failing, "--setup", "true", "--cleanup", &cleanup, "--cleanup", "echo other >>\"$LOG\""];
    let (ended, lines) = log("true", &[&flags[..], &["--", "true"]].concat());
    assert_eq!((ended.code(), lines), (Some(1), ["setup", "cleanup"].map(str::to_owned).to_vec()), "{}", ended.stderr);
    // A failed cleanup doesn't lose the results.
    let ended = ab(&["--runs", "2", "--cleanup", "exit 4", "--json", "-", "--", "true"]);
    assert!(ended.code() == Some(1) && ended.stderr.contains("--cleanup 'exit 4' ended with"), "{}", ended.stderr);
    assert!(ended.stdout.starts_with("{\"schema\""), "{}", ended.stdout);
    let ended = ab(&["--limit", "200ms", "--setup", "sleep 50", "--", "true"]);
    assert!(ended.stderr.contains("--setup 'sleep 50' took longer than --limit"), "{}", ended.stderr);
    let ended = ab(&["--prepare", "exit 4", "--", "true"]);
    assert!(
        ended.code() == Some(1) && ended.stderr.contains("--prepare 'exit 4' ended with exit code 4"),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_command_runs_under_the_conditions_asked_for() {
    let output = |flags: &[&str], command: &str| {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_str().unwrap();
        let script = format!("{command} >{path}");
        let ended = ab(&[&["--runs", "1", "--warmup", "0"], flags, &["--", &script]].concat());
        assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
        std::fs::read_to_string(file.path()).unwrap().trim().to_owned()
    };
    assert_eq!(output(&["--env", "X=a b"], "echo $X"), "a b");
    assert_eq!(output(&["--input", "/etc/hostname"], "cat"), std::fs::read_to_string("/etc/hostname").unwrap().trim());
    assert_eq!(output(&["--shell", "bash"], "echo ${BASH_VERSION:+bash}"), "bash");
    let allowed = std::fs::read_to_string("/proc/self/status").unwrap();
    let allowed = allowed.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim().to_owned();
    let first = allowed.split([',', '-']).next().unwrap();
    assert_eq!(output(&["--cpus", first], "grep Cpus_allowed_list /proc/self/status | cut -f2"), first);
    // Without a shell, no variables are expanded.
    let plain = ab(&["--shell", "none", "--runs", "1", "--json", "-", "--", "echo 'a  b' $X"]).measured();
    assert_eq!(plain["commands"][0]["output"], "a  b $X\n".len());
    assert!(ab(&["--shell", "none", "--", "nosuchcommand"]).stderr.contains("the command was not found"));
    let ended = ab(&["--shell", "bash", "--env", "PATH=/nonexistent", "--", "true"]);
    assert!(ended.stderr.contains("could not be started: bash was not found"), "{}", ended.stderr);
    // Without hashes, outputs of the same length are not reported as the same.
    for flags in [&["--concurrent", "2"][..], &["--warmup", "0"]] {
        let ended = ab(&[&["--runs", "1"], flags, &["--", "echo a", "--", "echo b"]].concat());
        assert!(
            ended.stdout.contains("Both commands wrote ") && !ended.stdout.contains("the same "),
            "{}",
            ended.stdout
        );
    }
    // The output of every copy is counted.
    let copies = ab(&["--concurrent", "3", "--runs", "1", "--json", "-", "--", "echo x"]).measured();
    assert_eq!((&copies["commands"][0]["output"], &copies["concurrent"]), (&6.into(), &3.into()));
}

#[test]
fn cold_files_are_dropped_and_what_stays_is_counted() {
    let file = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    std::fs::write(file.path(), vec![1; 1 << 20]).unwrap();
    let path = file.path().to_str().unwrap();
    let command = format!("cat {path}");
    let result = ab(&["--cold", path, "--runs", "2", "--json", "-", "--", &command]).measured();
    let pages = (1 << 20) / rustix::param::page_size();
    assert_eq!(result["cold"]["pages"], pages);
    assert!(result["cold"]["stayed"].as_u64().unwrap() <= pages as u64);
    for (path, words) in [("/nonexistent", "No such file"), ("/dev/null", "not a regular file"), ("/", "a directory")] {
        let ended = ab(&["--cold", path, "--", "true"]);
        let expected = format!("--cold {path}: ");
        assert!(ended.stderr.contains(&expected) && ended.stderr.contains(words), "{}", ended.stderr);
        assert_eq!(ended.code(), Some(1));
    }
}

#[test]
fn figures_that_the_command_prints_are_judged_and_a_run_without_one_has_failed() {
    let words = ["--runs", "6", "--figure", "speed,tok/s=speed ([0-9]+)", "--by", "speed"];
    let text = ab(&[&words[..], &["--", "echo speed 100", "--", "echo speed 99"]].concat());
    assert!(text.stdout.contains("The outputs differ, which --figure allows."), "{}{}", text.stdout, text.stderr);
    assert!(text.stdout.contains("B: speed -1.0 % (-1.0 … -1.0 %) compared with A: worse"), "{}", text.stdout);
    let words = [&words[..], &["--json", "-"]].concat();
    let result =
        ab(&[&words[..], &["--fail-on", "better", "--", "echo speed 100", "--", "echo speed 200 >&2"]].concat());
    assert_eq!(result.code(), Some(13), "more of what ends in /s is better: {}", result.stderr);
    let result: serde_json::Value = serde_json::from_str(&result.stdout).unwrap();
    let figure = &result["commands"][1]["figures"]["speed"];
    assert_eq!((&figure["estimate"]["median"], &figure["verdict"]), (&200.0.into(), &"better".into()));
    let ended = ab(&["--figure", "speed=speed ([0-9]+)", "--", "echo nothing"]);
    assert!(
        ended.code() == Some(1) && ended.stderr.contains("its output has no match of --figure speed"),
        "{}",
        ended.stderr
    );
}

#[test]
fn resource_usage_includes_all_descendants() {
    let script = "head -c 3000000 /dev/zero >/dev/null; /usr/bin/python3 -c 'x = bytearray(64 << 20)'";
    let result = ab(&["--runs", "2", "--json", "-", "--", script]).measured();
    let figure = |key: &str| result["commands"][0]["figures"][key]["estimate"]["min"].as_f64().unwrap();
    assert!(figure("memory") >= f64::from(64 << 20), "{result}");
    assert!(figure("read") >= 3e6 && figure("written") >= 3e6, "{result}");
    assert!(figure("faults") > 1000.0 && figure("switches") > 0.0 && figure("system") > 0.0, "{result}");
    // If all runs have the same figure, the verdict is `same`, even if the figure is 0.
    let words =
        ["--runs", "6", "--figure", "zero=zero ([0-9])", "--json", "-", "--", "echo zero 0", "--", "echo zero 0"];
    assert_eq!(ab(&words).measured()["commands"][1]["figures"]["zero"]["verdict"], "same");
}

#[test]
fn the_memory_of_all_processes_together_is_sampled_when_asked_for() {
    // The first stage opens the FIFO once the second has its memory, and keeps its own until the second ends. A sample is
    // taken every 5 ms.
    let stage = |then: &str| format!("/usr/bin/python3 -c 'x = bytearray(48 << 20); import time; {then}'");
    let [first, second] = [r#"open("fifo").read()"#, r#"f = open("fifo", "w"); time.sleep(0.5)"#].map(stage);
    let script = format!("mkfifo fifo && {first} | {second}");
    let words = ["--by", "pipeline-memory", "--warmup", "0", "--runs", "1", "--json", "-", "--", &script];
    let result = ab(&words).measured();
    let figure = |key: &str| result["commands"][0]["figures"][key]["estimate"]["median"].as_f64().unwrap();
    assert!(figure("pipeline-memory") >= f64::from(96 << 20), "{result}");
    assert!(figure("memory") < f64::from(96 << 20), "of one process: {result}");
    let result = ab(&["--runs", "1", "--json", "-", "--", "true"]).measured();
    assert!(result["commands"][0]["figures"]["pipeline-memory"].is_null(), "it is not sampled by itself: {result}");
}

#[test]
fn a_round_that_fills_the_budget_is_the_only_one_of_its_session() {
    let flags = ["--sessions", "5", "--warmup", "0", "--budget", "1s"];
    let (ended, lines) = log("echo run >>\"$LOG\"; sleep 0.2", &flags);
    assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
    assert_eq!(lines.len(), 5, "one run in each session");
}

#[test]
fn the_shells_own_start_is_measured_in_the_same_rounds() {
    let of = |flags: &[&str], command: &str| {
        ab(&[&["--runs", "8", "--json", "-"], flags, &["--", command]].concat()).measured()
    };
    let with = of(&[], "sleep 0.1");
    assert!(with["shell_start_taken_off"] == true && with["shell_start"]["median"].as_f64().unwrap() > 0.0, "{with}");
    let raw: Vec<f64> =
        with["commands"][0]["runs"].as_array().unwrap().iter().map(|run| run["time"].as_f64().unwrap()).collect();
    let least = raw.iter().copied().fold(f64::INFINITY, f64::min);
    assert!(with["commands"][0]["figures"]["time"]["estimate"]["min"].as_f64().unwrap() < least, "{with}");
    let without = of(&["--shell", "none"], "sleep 0.1");
    assert!(without["shell_start"].is_null() && without["shell_start_taken_off"] == false, "{without}");
    // `:` takes no longer than the shell itself.
    let short = ab(&["--runs", "8", "--", ":"]);
    let words: Vec<&str> = short.stdout.split_whitespace().collect();
    assert!(words.join(" ").contains("to subtract; use --shell none"), "{}", short.stdout);
}

#[test]
fn results_are_written_for_other_programs() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let [hyperfine, benchmark, bencher, csv, lines] = ["h", "b", "m", "c", "l"].map(path);
    let ended = ab(&[
        "--parameter",
        "n=1,2",
        "--runs",
        "5",
        "--hyperfine-json",
        &hyperfine,
        "--benchmark-json",
        &benchmark,
        "--bencher-json",
        &bencher,
        "--csv",
        &csv,
        "--json-lines",
        &lines,
        "--",
        "sleep 0.0{n}",
    ]);
    assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
    let read =
        |file: &str| -> serde_json::Value { serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap() };
    let one = &read(&hyperfine)["results"][1];
    assert_eq!((&one["command"], &one["parameters"]["n"]["value"]), (&"sleep 0.02".into(), &"2".into()));
    let time = &one["summary"]["time_wall_clock"];
    assert!(time["count"] == 5 && time["mean"].as_f64().unwrap() >= 0.015 && time["unit"] == "second", "{one}");
    let run = &one["measurements"][4];
    assert_eq!((&run["exit_code"], &run["memory_peak_resident"]["unit"]), (&0.into(), &"byte".into()));
    let keys = ["time_cpu", "time_user", "time_system"];
    assert!(keys.iter().all(|key| run[key]["value"].is_number() && one["summary"][key]["stddev"].is_number()), "{one}");
    let one = &read(&benchmark)[0];
    assert!(one["name"] == "n=1: time" && one["unit"] == "ms" && one["value"].as_f64().unwrap() >= 7.0, "{one}");
    assert!(read(&bencher)["n=2"]["latency"]["value"].as_f64().unwrap() >= 15e6);
    let flags = ["--ignore-failure", "--name", "three", "--runs", "2", "--hyperfine-json", &hyperfine];
    let flags = [&flags[..], &["--hyperfine-schema", "1"]].concat();
    assert_eq!(ab(&[&flags[..], &["--", "exit 3"]].concat()).code(), Some(0));
    let one = &read(&hyperfine)["results"][0];
    assert!(["mean", "stddev", "median", "user", "system", "min"].iter().all(|key| one[key].is_number()), "{one}");
    assert_eq!((&one["exit_codes"], &one["command"]), (&serde_json::json!([3, 3]), &"three".into()));
    let csv = std::fs::read_to_string(csv).unwrap();
    assert!(csv.starts_with("label,command,n,rank,figure,unit,median,"), "{csv}");
    assert!(csv.lines().filter(|line| line.contains(",time,ns,")).count() == 2, "{csv}");
    let csv = ab(&["--parameter", "rank=1", "--runs", "1", "--format", "csv", "--", "true {rank}"]).stdout;
    assert!(csv.starts_with("label,command,parameter_rank,rank,"), "{csv}");
    let lines: Vec<serde_json::Value> =
        std::fs::read_to_string(lines).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((lines.len(), lines.iter().filter(|line| line["warmup"] == true).count()), (12, 2));
    assert!(lines.iter().all(|line| line["time"].is_number() && line["parameter_n"].is_string()), "{lines:?}");
}

/// The line of a run is written before the next run begins. Here the second run hangs.
#[test]
fn lines_are_written_as_runs_end() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let flag = file.path().with_extension("flag");
    let script = format!("test -e {0} && sleep 50; touch {0}", flag.display());
    let path = file.path().to_str().unwrap().to_owned();
    let started = RunningProgram::pipemark(&["ab", "--json-lines", &path, "--", &script]);
    eventually("the first line is written", || std::fs::read_to_string(&path).unwrap().lines().count() > 0);
    started.signal(Signal::INT);
    assert_eq!(started.end().0.code(), Some(130));
    let _ = std::fs::remove_file(flag);
}

#[test]
fn a_job_on_github_has_a_summary_and_an_annotation() {
    let summary = tempfile::NamedTempFile::new().unwrap();
    let variable = format!("GITHUB_STEP_SUMMARY={}", summary.path().display());
    let launcher = ["env", &variable, "GITHUB_ACTIONS=true", crate::program::PIPEMARK];
    let words = ["ab", "--runs", "6", "--fail-on", "worse", "--", "sleep 0.02", "--", "sleep 0.5"];
    // The difference is large, because on a busy machine a sleep can take many times as long.
    let ended = crate::program::run(&launcher, &words);
    assert_eq!(ended.code(), Some(10));
    assert!(ended.stderr.contains("::error title=pipemark ab: worse::A ran "), "{}", ended.stderr);
    let text = std::fs::read_to_string(summary.path()).unwrap();
    assert!(text.contains("| sleep 0.5 |") && text.contains("worse"), "{text}");
    // A summary that can't be written doesn't hide the verdict.
    let launcher = ["env", "GITHUB_STEP_SUMMARY=/nonexistent/summary", "GITHUB_ACTIONS=true", crate::program::PIPEMARK];
    let ended = crate::program::run(&launcher, &words);
    assert_eq!(ended.code(), Some(10), "{}", ended.stderr);
    assert!(ended.stderr.contains("cannot write the step summary") && ended.stderr.contains("::error title="));
}

/// A command whose standard error is searched for a figure may write without end. Neither memory nor what is printed
/// grows with it.
#[test]
fn a_long_standard_error_with_figures_is_shortened() {
    let script = "echo begin >&2; head -c 60000000 /dev/zero | tr '\\0' x >&2; echo 'end: 7' >&2";
    let flags = ["--runs", "1", "--warmup", "0", "--figure", "n=end: (\\d+)", "--by", "n", "--json", "-", "--"];
    let ended = ab(&[&flags[..], &[script]].concat());
    assert_eq!(ended.code(), Some(0), "{:.300}", ended.stderr);
    let result: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(result["commands"][0]["figures"]["n"]["estimate"]["median"], 7.0);
    // Of a run that failed, standard error is shown.
    let failing = format!("{script}; exit 3");
    let ended = ab(&[&flags[..], &[&failing]].concat());
    assert_ne!(ended.code(), Some(0), "{:.300}", ended.stderr);
    let (text, shown) = (&ended.stderr, ended.stderr.len());
    assert!(text.contains("begin") && text.contains("end: 7") && text.contains("bytes omitted]"), "{text:.300}");
    assert!((1000..200_000).contains(&shown), "{shown} bytes are printed");
}

#[test]
fn an_endless_standard_error_with_figures_ends_at_the_time_limit() {
    for script in ["yes x >&2", "yes x >&2 & echo 'n 5' >&2"] {
        let flags = ["--runs", "1", "--warmup", "0", "--limit", "1s", "--figure", "n=n (\\d+)", "--"];
        let ended = ab(&[&flags[..], &[script]].concat());
        assert_eq!(ended.code(), Some(1), "{script}: {:.300}", ended.stderr);
        assert!(ended.stderr.len() < 200_000, "{script}: {} bytes are printed", ended.stderr.len());
    }
}

/// Kills pipemark at a random moment (SIGKILL): each complete line is whole JSON, whatever the moment.
fn kill_while_lines_are_written(tries: u64) {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let mut most = 0;
    for nth in 0..tries {
        let name = "n".repeat(3000 + 500 * (nth % 10) as usize);
        let words = ["ab", "--runs", "1000", "--shell", "none", "--name", &name, "--json-lines", path, "--", "true"];
        std::fs::write(path, "").unwrap();
        let mut child = std::process::Command::new(crate::program::PIPEMARK);
        let child = child.args(words).stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        let mut child = child.spawn().unwrap();
        eventually("a line is begun", || std::fs::metadata(path).unwrap().len() > 0);
        std::thread::sleep(std::time::Duration::from_micros(nth * 7919 % 60_000));
        child.kill().unwrap();
        child.wait().unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        for line in whole.lines() {
            serde_json::from_str::<serde_json::Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        }
        most = most.max(whole.lines().count());
    }
    assert!(most > 0, "no try reached a line");
}

#[test]
fn a_kill_leaves_whole_lines() {
    kill_while_lines_are_written(20);
}

#[test]
#[ignore = "soak"]
fn soak_a_kill_leaves_whole_lines() {
    kill_while_lines_are_written(2000);
}
