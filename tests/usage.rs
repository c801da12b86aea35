//! The command line: help and invalid usage, with the exit code and the output stream of each.

use crate::program::PIPEMARK;
use std::fs;
use std::io::Write;
use std::process::{Command, Output};

fn pipemark(words: &[&str]) -> Output {
    Command::new(PIPEMARK).args(words).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("output is UTF-8")
}

#[test]
fn help_teaches_by_example() {
    for words in [&["--help"][..], &["run", "--help"], &["bw", "--help"], &["relay", "--help"], &["compare", "--help"]]
    {
        let output = pipemark(words);
        assert_eq!(output.status.code(), Some(0), "{words:?}");
        assert!(text(&output.stdout).contains("EXAMPLES"), "{words:?}");
        assert!(output.stderr.is_empty());
    }
    for group in ["Your own pipelines:\n", "Measure pipes:\n", "Results:\n", "Tools:\n", "Information:\n"] {
        assert!(text(&pipemark(&["--help"]).stdout).contains(group), "{group}");
    }
    let short = text(&pipemark(&["-h"]).stdout);
    assert!(!short.contains("EXAMPLES") && short.lines().count() <= 40, "{short}");
}

#[test]
fn running_without_arguments_shows_three_questions() {
    let output = pipemark(&[]);
    let shown = text(&output.stdout);
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
    assert_eq!(shown.lines().filter(|line| line.starts_with("    pipemark ")).count(), 3, "{shown}");
    assert!(shown.lines().nth(1).unwrap().starts_with("    pipemark why '") && shown.lines().count() <= 10, "{shown}");
}

#[test]
fn dropped_verbs_name_their_replacement() {
    for (words, expected) in [
        (&["host"][..], "pipemark list machine"),
        (&["host", "--json", "-"], "pipemark list machine"),
        (&["completions", "bash"], "pipemark --completions SHELL"),
        (&["languages"], "pipemark run languages"),
        (&["languages", "--build"], "pipemark list languages"),
    ] {
        let output = pipemark(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(text(&output.stderr).contains(expected) && output.stdout.is_empty(), "{words:?}");
    }
}

/// -h lists common flags, --help lists all flags.
#[test]
fn rare_flags_are_in_the_long_help_only() {
    for (verb, common, rare) in
        [("bw", "--block", "--rseq"), ("latency", "--gap", "--align"), ("chain", "--length", "--exit")]
    {
        let (short, long) = (text(&pipemark(&[verb, "-h"]).stdout), text(&pipemark(&[verb, "--help"]).stdout));
        assert!(short.contains(common) && !short.contains(rare), "{verb}: {short}");
        assert!(long.contains(common) && long.contains(rare), "{verb}: {long}");
        assert!(short.lines().count() <= 60, "{verb}: {} lines", short.lines().count());
    }
}

/// Users of similar programs look for a command that they can copy.
#[test]
fn the_help_of_relay_begins_with_three_examples() {
    let help = text(&pipemark(&["relay", "--help"]).stdout);
    assert_eq!(text(&pipemark(&["help", "relay"]).stdout), help);
    let (examples, _) = help.split_once("Usage:").unwrap();
    let titles = examples.lines().filter(|line| line.starts_with("  ") && line.ends_with(':')).count();
    assert!(examples.contains("EXAMPLES") && titles == 3, "{examples}");
    assert!(!text(&pipemark(&["relay", "-h"]).stdout).contains("EXAMPLES"));
}

/// A terminal shows the end of a long text, and examples are what most users look for.
#[test]
fn every_help_text_ends_with_examples_within_80_columns() {
    let verbs = text(&pipemark(&["--completions", "bash"]).stdout);
    let verbs: Vec<&str> = verbs
        .lines()
        .find_map(|line| line.trim().strip_prefix("opts=\"-h -V --completions ")?.strip_suffix('"'))
        .expect("the completions of bash list the verbs")
        .split(' ')
        .filter(|word| !word.starts_with('-'))
        .collect();
    assert!(verbs.len() > 12 && verbs.contains(&"why"), "{verbs:?}");
    for verb in verbs {
        let help = text(&pipemark(&[verb, "--help"]).stdout);
        let is_title = |line: &&str| !line.starts_with(' ') && *line == line.to_uppercase() && !line.is_empty();
        let last = help.lines().rfind(is_title);
        assert!(matches!(last, Some("EXAMPLES" | "MORE EXAMPLES")), "{verb}: {last:?}");
        assert_eq!(help.lines().find(|line| line.chars().count() > 80), None, "{verb}");
        // A command that continues on the next line must say so, or a shell runs its first line.
        let lines: Vec<&str> = help.lines().collect();
        let continued = |pair: &&[&str]| pair[1].starts_with("          ") && pair[0].starts_with("      pipemark");
        let cut = lines.windows(2).find(|pair| continued(pair) && !pair[0].ends_with(['\\', '|']));
        assert_eq!(cut, None, "{verb}");
    }
}

/// Every flag in an example is explained in the same help text.
#[test]
fn every_flag_of_the_examples_is_listed() {
    for verb in ["lines", "gen", "sink", "relay", "why", "watch", "tune", "ab", "bw", "latency", "chain", "report"] {
        let help = text(&pipemark(&[verb, "--help"]).stdout);
        let (_, examples) = help.split_once("EXAMPLES").unwrap_or_else(|| panic!("{verb} has no examples"));
        let listed: Vec<&str> = help.lines().filter(|line| !line.contains("pipemark ")).collect();
        let of_verb = |line: &&str| line.contains(&format!("pipemark {verb} "));
        for line in examples.lines().filter(of_verb) {
            // The text from the verb to the end of its command.
            let own = line.split(&format!("pipemark {verb} ")).nth(1).unwrap().split(" -- ").next().unwrap();
            let own = own.split(" | ").next().unwrap();
            let flags = own.split([' ', '(', ')', '\'']).filter(|word| word.starts_with("--") && word.len() > 2);
            for flag in flags {
                assert!(listed.iter().any(|line| line.contains(flag)), "{verb}: {flag} is not listed: {line}");
            }
        }
    }
}

#[test]
fn the_version_is_the_package_s() {
    assert_eq!(text(&pipemark(&["--version"]).stdout), format!("pipemark {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn bad_usage_is_code_2_with_a_sentence() {
    for (words, expected) in [
        (&["fly"][..], "unrecognized subcommand"),
        (&["wy"], "exists: 'why'"),
        (&["bx", "--runs", "3"], "exists: 'bw'"),
        (&["histroy"], "exists: 'history'"),
        (&["history", "shwo", "1"], "exists: 'show'"),
        (&["run", "quik"], "did you mean quick?"),
        (&["run", "./nosuch.toml"], "no such file"),
        (&["run", "/"], "it is a directory"),
        (&["run", "quick", "quick"], "run them one at a time"),
        (&["run", "--scale", "0"], "not a scale"),
        (&["bw", "--block", "0"], "out of range"),
        (&["bw", "--block", "-5k"], "'-5k' is not a size"),
        (&["bw", "--block", "1.5"], "not a whole number of bytes"),
        (&["bw", "--block", "64kb"], "ambiguous"),
        (&["bw", "--block", "64k,,1k"], "block size"),
        (&["bw", "--block", "2g"], "use 1 B to 1 GiB"),
        (&["bw", "--total", "99999999999t"], "64 bits"),
        (&["bw", "--total", "1k", "--block", "1m"], "larger than the total"),
        (&["bw", "--time", "0"], "out of range"),
        (&["bw", "--time", "-1s"], "'-1s' is not a time"),
        (&["bw", "--time", "5"], "is not a time"),
        (&["bw", "--time", "1min", "--limit", "5s"], "raise --limit"),
        (&["bw", "--runs", "-3"], "is not a whole number from 1 to 10000"),
        (&["bw", "--runs", "3", "--budget", "3s"], "cannot be used with"),
        (&["bw", "--seed", "-1"], "is not a whole number from 0"),
        (&["bw", "--pairs", "1000"], "use 1 to 256"),
        (&["bw", "--align", "4096"], "4095"),
        (&["bw", "--capacity", "2g"], "1 GiB, default or quota"),
        (&["bw", "--read-delay", "-4"], "'-4' is not a"),
        (&["bw", "--place", "0:4096"], "WRITER:READER"),
        (&["bw", "--link", "wormhole"], "not a link"),
        (&["bw", "--send", "wriite"], "did you mean write?"),
        (&["bw", "--baseline", "sned=write"], "did you mean send?"),
        (&["bw", "--json", ""], "file name is empty"),
        (&["bw", "--recv", "splice", "--verify", "full"], "never reads the bytes"),
        (&["bw", "--send", "tee", "--verify", "full"], "over and over"),
        (&["bw", "--time", "1s", "--total", "1m"], "cannot be used with"),
        (&["bw", "--json", "-", "--markdown", "-"], "standard output"),
        (&["bw", "--block", "-1"], "is not a size"),
        (&["bw", "--block", "99999999999999999999"], "64 bits"),
        (&["bw", "--block", "64x"], "is not a size"),
        (&["bw", "--block", "64,"], "block size"),
        (&["bw", "--block", "64,64"], "block 64 B is given twice"),
        (&["bw", "--block", "1m", "--total", "64k"], "larger than the total"),
        (&["bw", "--total", "0"], "out of range"),
        (&["bw", "--time", "1s", "--limit", "1s"], "raise --limit"),
        (&["bw", "--runs", "0"], "is not a whole number from 1 to 10000"),
        (&["bw", "--runs", "3", "--budget", "1s"], "cannot be used with"),
        (&["bw", "--budget", "0"], "out of range"),
        (&["bw", "--place", "0:9999"], "placement"),
        (&["bw", "--pairs", "0"], "256"),
        (&["bw", "--recv", "read,splice", "--verify", "full"], "never reads the bytes"),
        (&["bw", "--baseline", "send"], "KEY=VALUE"),
        (&["bw", "--baseline", "send=write,send=tee"], "twice"),
        (&["bw", "--baseline", "recv=splice", "--verify", "full"], "never reads the bytes"),
        (&["bw", "--json", "-", "--csv", "-"], "standard output"),
        (&["bw", "--json", "x", "--csv", "x"], "file 'x'"),
        (&["chain", "--length", "5000"], "out of range"),
        (&["chain", "--to", "0"], "is not a whole number from 1 to 4096"),
        (&["chain", "--to", "8", "--length", "1"], "cannot be used with"),
        (&["chain", "--stage", ""], "is empty"),
        (&["chain", "--stage", "cat >x"], "no shell"),
        (&["chain", "--stage", "cat", "--stage", "cat"], "given twice"),
        (&["lines", "field", "0"], "is not the number of a field"),
        (&["history", "--limit", "x"], "is not a whole number from 0"),
        (&["compare", "--aa", "--rounds", "3"], "is not a whole number from 4 to 1000"),
    ] {
        let output = pipemark(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        let error = text(&output.stderr);
        assert!(error.starts_with("pipemark: ") && error.contains(expected), "{words:?}: {error}");
        for rust in ["..=", "non-zero type", "invalid digit", "cannot parse"] {
            assert!(!error.contains(rust), "{words:?}: {error}");
        }
        assert!(output.stdout.is_empty(), "{words:?} printed results");
    }
}

#[test]
fn an_invalid_number_lists_the_accepted_forms() {
    for words in [&["chain", "--length", "x"][..], &["bw", "--pairs", "x"], &["bw", "--rate", "1.5"]] {
        let output = pipemark(words);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {error}");
        assert!(error.contains("from 1 to ") || error.contains("from 0 to "), "{words:?}: {error}");
        assert!(!error.contains("invalid digit"), "{words:?}: {error}");
    }
}

#[test]
fn a_mistake_in_a_suite_is_shown_in_its_place() {
    let path = std::env::temp_dir().join(format!("pipemark-usage-{}.toml", std::process::id()));
    let suite =
        "name = \"x\"\ntitle = \"X\"\n[[experiment]]\nname = \"e\"\ntitle = \"E\"\nparams = { send = \"wriite\" }\n";
    fs::write(&path, suite).unwrap();
    let file = path.to_str().unwrap();
    let output = pipemark(&["run", file]);
    fs::remove_file(&path).unwrap();
    assert_eq!(output.status.code(), Some(2));
    let error = text(&output.stderr);
    assert!(
        error.starts_with(&format!("pipemark: {file}:6:19: 'wriite' is not a send method; use write, ")),
        "{error}"
    );
    assert!(error.ends_with("6 | params = { send = \"wriite\" }\n  |                   ^^^^^^^^\n"), "{error}");
}

/// None of these may take long, use much memory or crash the program.
#[test]
fn hostile_suites_are_refused_in_a_sentence() {
    let head = "name = \"x\"\ntitle = \"X\"\n[[experiment]]\nname = \"e\"\ntitle = \"E\"\n";
    let list = (1..=1000).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
    let many: String = (0..20_000).map(|n| format!("[[experiment]]\nname = \"e{n}\"\ntitle = \"E\"\n")).collect();
    for (text, expected) in [
        (String::new(), ":1:1: 'name' is missing"),
        ("name = \"x\"\ntitle = \"X\"\n".to_owned(), "'experiment' is missing"),
        (format!("{head}params = {{ block = {}{} }}\n", "[".repeat(5000), "]".repeat(5000)), ":6:"),
        (format!("{head}a{} = 1\n", ".a".repeat(20_000)), "recursion limit"),
        (head.replace("\"x\"", &format!("\"{}\"", "x".repeat(900_000))), "the limit is 40"),
        (format!("name = \"{}\"\n", "x".repeat(3 << 20)), "larger than 1 MiB"),
        (
            format!("{head}axes = {{ block = [{list}], read-block = [{list}], align = [{list}] }}\n"),
            "1,000,000,000 trials are too many; the limit is 10,000",
        ),
        (format!("name = \"x\"\ntitle = \"X\"\n{many}"), "20,000 trials"),
        (head.replace("\"E\"", "\"\\u001b[31mE\""), "control character"),
        (format!("{head}params = {{ recv = \"splice\", verify = \"full\" }}\n"), "never reads the bytes"),
        (format!("{head}params = {{ block = -5 }}\n"), ":6:20: block size"),
        (format!("{head}params = {{ block = 1.5 }}\n"), ":6:20: block size"),
        (format!("{head}params = {{ block = 9223372036854775807 }}\n"), ":6:20: block size"),
        (format!("{head}params = {{ blok = 5 }}\n"), "did you mean block?"),
        ("name = \"x\0\"\n".to_owned(), ":1:"),
    ] {
        let mut file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let output = pipemark(&["run", file.path().to_str().unwrap(), "--runs", "1"]);
        let error = self::text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{expected}: {error}");
        assert!(error.starts_with("pipemark: ") && error.contains(expected), "{expected}: {error}");
        assert!(
            error.contains(file.path().to_str().unwrap()) && error.len() < 1000,
            "{expected}: {} bytes",
            error.len()
        );
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn an_unreadable_suite_is_named() {
    for (path, expected) in [("/dev/zero", "not a regular file"), ("/proc/self/mem", "cannot read the suite")] {
        // A word with a slash is treated as a file name.
        let output = pipemark(&["run", path]);
        assert_eq!(output.status.code(), Some(2), "{path}");
        assert!(text(&output.stderr).contains(expected), "{path}: {}", text(&output.stderr));
    }
}

#[test]
fn a_pipeline_without_a_verb_is_explained_by_why() {
    let output = pipemark(&["seq 3000000 | sort -rn | tail -n 1"]);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(0), "1\n"));
    assert!(text(&output.stderr).starts_with("pipemark: no verb, so this is 'pipemark why'\n"));
    // A bar in quotes is no pipeline.
    assert_eq!(pipemark(&["grep 'a|b'"]).status.code(), Some(2));
}
