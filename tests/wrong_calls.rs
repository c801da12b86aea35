//! Wrong calls, and their answers.

use crate::program::PIPEMARK;
use std::process::{Command, Output};

fn pipemark(words: &[&str]) -> Output {
    Command::new(PIPEMARK).args(words).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("output is UTF-8")
}

/// Wrong calls that end with exit code 2, and a part of their answers. clap names words that are misspelled.
#[test]
fn wrong_calls_of_beginners_are_answered() {
    for (words, answer) in [
        (&["run", "--quick"][..], "'pipemark run quick'"),
        (&["run", "--suite", "quick"], "'pipemark run quick'"),
        (&["run", "pipes"], "'pipes' is not a suite; use quick, "),
        (&["run", "--json"], "--json <FILE|->"),
        (&["gen", "--size", "1g"], "'pipemark gen 1g'"),
        (&["gen", "1gb"], "'pipemark gen 1g'"),
        (&["sink", "--verify"], "pipemark sink --verify log:7"),
        (&["sink", "--size", "1g"], "--total"),
        (&["sink", "file"], "'pipemark sink <file'"),
        (&["ab"], "an example: pipemark ab -- '"),
        (&["ab", "--runs", "10"], "an example: pipemark ab -- '"),
        (&["ab", "sort", "file"], "pipemark ab 'sort file'; if these are 2 commands, pipemark ab -- sort -- file"),
        (&["ab", "grep", "a b", "file"], "put each command in quotes: pipemark ab 'A'"),
        (&["ab", "sort", "-u", "file"], "put each command in quotes, as in pipemark ab 'sort -u file'"),
        (&["ab", "sort", "-rn", "file"], "put each command in quotes, as in pipemark ab 'sort -u file'"),
        (&["compare"], "pipemark compare before after"),
        (&["compare", "9991"], "name a second measurement"),
        (&["bw", "64k"], "--block 64k,1m"),
        (&["bw", "--block-size", "64k"], "--block 64k,1m"),
        (&["bw", "--size", "1g"], "--total 1g"),
        (&["bw", "--cpu", "0,1"], "--place 0:1"),
        (&["bw", "--place", "0,1"], "WRITER:READER such as 0:1"),
        (&["bw", "--threads", "4"], "--pairs 4"),
        (&["bw", "--pipe-size", "1m"], "--capacity 1m"),
        (&["bw", "--time", "5"], "a number with ns, us, ms, s or min"),
        (&["bw", "--link", "sockets"], "'sockets' is not a link; use pipe, "),
        (&["latency", "--size", "64"], "--block 64"),
        (&["chain", "64"], "--length 64"),
        (&["chain", "--processes", "64"], "--length 64"),
        (&["relay", "--bs", "1m"], "--capacity"),
        (&["lines", "-v", "x"], "use grep"),
        (&["report", "--html", "x.html"], "'pipemark report -o page.html'"),
        (&["history", "--last"], "'pipemark history show'"),
        (&["list", "link"], "a similar value exists: 'links'"),
        (&["help", "foo"], "'pipemark help' lists verbs and topics"),
        (&["bench", "sort file"], "pipemark ab 'COMMAND'"),
        (&["speed"], "pipemark run, or pipemark bw"),
        (&["profile", "x"], "pipemark why 'A | B'"),
        (&["optimize", "x"], "pipemark tune 'A | B'"),
        (&["pv", "file"], "pipemark relay"),
        (&["-v"], "pipemark --version"),
        (&["ab", "--min-runs", "5", "true"], "hyperfine's --min-runs: use --runs N"),
        (&["ab", "-m", "5", "true"], "hyperfine's -m: use --runs N"),
        (&["ab", "--export-csv", "x.csv", "true"], "hyperfine's --export-csv: use --csv"),
        (&["relay", "-S", "-s", "1m"], "pv's -S: put 'head -c SIZE'"),
        (&["relay", "-m", "1g", "-s", "64k"], "mbuffer's -s: a block size isn't needed"),
        (&["relay", "-o", "out"], "pv's -o: use >FILE"),
    ] {
        let output = pipemark(words);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{words:?}");
        assert!(text(&output.stderr).contains(answer), "{words:?}: {}", text(&output.stderr));
    }
    // Code 2 would be the pipeline's own, or means something else for these.
    for (words, code, answer) in [
        (&["why", "sort", "file"][..], 125, "put the pipeline in quotes"),
        (&["why", "--pid", "4711"], 125, "'pipemark why 4711'"),
        (&["why", "--time", "4"], 125, "--for 10s"),
        (&["why", "999999999"], 2, "'pipemark why' lists running pipelines"),
        (&["why", "grep"], 125, "use '--name grep' to sample a running grep"),
        (&["watch", "--pid", "4711"], 125, "'pipemark watch 4711'"),
        (&["tune", "sort", "file"], 125, "put the pipeline in quotes"),
        (&["relay", "--rate", "10m"], 1, "use --limit 10m"),
        (&["relay", "in", "out"], 1, "in could not be read"),
    ] {
        let output = pipemark(words);
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(code), 0), "{words:?}: {said}");
        assert!(said.contains(answer), "{words:?}: {said}");
    }
}

/// Calls that others invented, to see if the answers of the first table are of a kind.
#[test]
fn other_wrong_calls_are_answered() {
    for (words, answer) in [
        (&["run", "--list"][..], "'pipemark list suites' lists them"),
        (&["run", "--time", "5s"], "--budget 10s"),
        (&["run", "all"], "'all' is not a suite; use quick, "),
        (&["run", "-o", "x.json"], "--json FILE"),
        (&["bw", "--duration", "5s"], "--time 200ms"),
        (&["bw", "--output", "out.json"], "--json FILE"),
        (&["bw", "--verbose"], "--all"),
        (&["bw", "--by", "block"], "--baseline block=64k"),
        (&["bw", "--count", "20"], "--runs 20"),
        (&["bw", "--splice"], "--send vmsplice"),
        (&["bw", "--recv", "write"], "'write' is not a receive method; use read, "),
        (&["bw", "--capacity", "2g"], "use 1 byte to 1 GiB"),
        (&["bw", "--total", "1g", "--time", "5s"], "cannot be used with '--time"),
        (&["latency", "64"], "--block 64"),
        (&["latency", "--count", "1000"], "--runs 20"),
        (&["latency", "--time", "10"], "a number with ns, us, ms, s or min"),
        (&["chain", "cat"], "--stage cat"),
        (&["chain", "--length", "0-8"], "'0-8' is not a whole number"),
        (&["gen", "1g", "file"], "'pipemark gen 1g >file'"),
        (&["gen", "--random"], "'pipemark gen random --total 1g'"),
        (&["sink", "1g"], "'pipemark sink <file'"),
        (&["relay", "--progress=bar"], "text, json"),
        (&["relay", "--limit", "10mb"], "write 10m"),
        (&["lines", "grep", "a"], "'grep' is neither a file nor a transform"),
        (&["lines", "-o", "x", "upper"], "use >FILE"),
        (&["ab", "sort file", "sort", "-u", "file"], "put each command in quotes"),
        (&["ab", "--catch", "10", "--", "true", "--", "true"], "use a percentage"),
        (&["ab", "--catch", "10%", "--", "true"], "-- 'BASE' -- 'NEW'"),
        (&["ab", "--time", "9s", "true"], "--budget 30s"),
        (&["ab", "--parameter", "n", "1,2", "sleep 0.{n}"], "NAME=VALUE"),
        (&["ab", "--by", "speed", "--", "true", "--", "true"], "use one of time, "),
        (&["compare", "old.json", "new.json"], "no run, label or file 'old.json'"),
        (&["compare", "1", "2", "-o", "x"], "--json FILE"),
        (&["report", "--open"], "open it with your browser"),
        (&["report", "--pdf"], "report writes HTML"),
        (&["history", "1"], "'pipemark history show 1'"),
        (&["history", "clear"], "'pipemark history delete 1 2'"),
        (&["list", "all"], "suites, links, "),
        (&["help", "bw", "block"], "'pipemark help bw' explains bw"),
        (&["ps"], "pipemark why"),
        (&["top"], "pipemark watch PID"),
        (&["plot"], "pipemark report"),
        (&["diff", "1", "2"], "pipemark compare"),
        (&["dd", "if=/dev/zero"], "pipemark gen 1g"),
        (&["info"], "pipemark list machine"),
        (&["--json", "bw"], "'bw --json' exists"),
    ] {
        let output = pipemark(words);
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{words:?}: {said}");
        assert!(said.contains(answer), "{words:?}: {said}");
        assert!(!said.contains("as a value"), "{words:?}: {said}");
    }
    for (words, answer) in [
        (&["why", "-v", "a | b"][..], "--explain"),
        (&["why", "--for", "10", "a | b"], "such as 200ms"),
        (&["watch", "--time", "10s", "4711"], "--for 10s"),
        (&["tune", "--runs", "5", "a | b"], "--budget 30s"),
        (&["tune", "file"], "use '--name file' to sample a running file"),
    ] {
        let output = pipemark(words);
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(125), 0), "{words:?}: {said}");
        assert!(said.contains(answer), "{words:?}: {said}");
    }
}
