//! What was probably meant by wrong calls.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Stands in [`HINTS`] for a call without a required argument.
const NOTHING: &str = "";
/// Stands in [`HINTS`] for an argument, not an option, that the verb doesn't take.
const ARGUMENT: &str = "ARGUMENT";

/// Stands in [`HINTS`] for a number.
const NUMBER: &str = "NUMBER";
const OUTPUT: &str = "results are written by --json FILE, --csv FILE and --markdown FILE";

/// What was probably meant by wrong calls: the verb, the words that clap didn't understand, and the answer.
const HINTS: &[(&str, &[&str], &str)] = &[
    ("run", &["--quick"], "'pipemark run quick' runs the suite quick; 'pipemark list suites' lists all"),
    ("run", &["--list", "-l"], "'pipemark list suites' lists them"),
    ("run", &["--time", "--duration", "-t"], "the time for the whole suite is --budget, as in --budget 10s"),
    ("run", &["--verbose", "-v"], "all tables are --all"),
    ("run", &["--output", "-o"], OUTPUT),
    ("run", &["--suite", "-s"], "name the suite without an option, as in 'pipemark run quick'"),
    ("gen", &["--size", "-s"], "the size is an argument, as in 'pipemark gen 1g', or --total"),
    ("gen", &["--output", "-o", ARGUMENT], "gen writes to standard output, as in 'pipemark gen 1g >file'"),
    ("gen", &["--random", "--zero"], "the content is an argument, as in 'pipemark gen random --total 1g'"),
    ("gen", &["[CONTENT]"], "for a size, write a number with k, m or g, as in 'pipemark gen 1g'"),
    ("sink", &["--verify"], "an example: pipemark gen log:7 --total 1g | pipemark sink --verify log:7 --total 1g"),
    ("sink", &["--size", "-s"], "the expected number of bytes is --total"),
    ("sink", &[ARGUMENT], "sink reads standard input, as in 'pipemark sink <file'"),
    ("ab", &[NOTHING], "an example: pipemark ab -- 'sort -u access.log' -- 'sort access.log | uniq'"),
    (
        "compare",
        &[NOTHING],
        "an example: pipemark run quick --label before; pipemark run quick --label after; pipemark compare before after",
    ),
    (
        "bw",
        &["--size", "-s", "-n"],
        "the volume is --total, as in --total 1g; the block size is --block, as in --block 64k",
    ),
    ("bw", &["--block-size", "--blocksize", "--bs", "-b", ARGUMENT], "the block size is --block, as in --block 64k,1m"),
    ("bw", &["--cpu", "--cpus", "--cores", "--pin"], "CPUs of writer and reader are --place, as in --place 0:1"),
    ("bw", &["--threads", "--jobs", "-j", "-t"], "several writer-reader pairs are --pairs, as in --pairs 4"),
    ("bw", &["--pipe-size", "--buffer-size"], "the size of the pipe is --capacity, as in --capacity 1m"),
    ("bw", &["--duration", "--seconds"], "the time of a run is --time, as in --time 200ms; of all runs --budget"),
    ("bw", &["--iterations", "--repeat", "--count", "-r"], "the number of runs is --runs, as in --runs 20"),
    ("bw", &["--verbose", "-v"], "all tables are --all"),
    ("bw", &["--output", "-o"], OUTPUT),
    ("bw", &["--by"], "settings are compared with one of them by --baseline, as in --baseline block=64k"),
    ("bw", &["--zero-copy", "--splice"], "the ways to send and receive are --send and --recv, as in --send vmsplice"),
    ("latency", &["--duration", "--seconds"], "the time of a run is --time, as in --time 200ms; of all runs --budget"),
    ("latency", &["--iterations", "--repeat", "--count", "-n"], "the number of runs is --runs, as in --runs 20"),
    ("latency", &["--verbose", "-v"], "all tables are --all"),
    ("latency", &["--output", "-o"], OUTPUT),
    ("latency", &["--size", "-s", "--message", ARGUMENT], "the message size is --block, as in --block 64"),
    ("latency", &["--cpu", "--cpus", "--cores", "--pin"], "CPUs of the two processes are --place, as in --place 0:1"),
    (
        "chain",
        &["-n", "--n", "--processes", "--cats", ARGUMENT],
        "the number of processes is --length, as in --length 64; their command is --stage, as in --stage cat",
    ),
    (
        "relay",
        &["--bs", "--block-size"],
        "relay chooses the block size; the pipe's size is --capacity, a buffer's --buffer",
    ),
    ("lines", &["--pattern", "-e", "-v"], "lines passes on or changes every line; to select lines, use grep"),
    ("lines", &["--output", "-o"], "lines writes to standard output; use >FILE"),
    ("report", &["--open", "--browser"], "'pipemark report -o page.html' writes the page; open it with your browser"),
    ("report", &["--pdf", "--format"], "report writes HTML, or with --terminal text"),
    ("report", &["--html", "--file"], "the page's file is -o, as in 'pipemark report -o page.html'"),
    ("history", &["clear", "remove", "rm", "--delete", "--clear"], "'pipemark history delete 1 2' deletes these runs"),
    (
        "history",
        &["--show", "-s", NUMBER],
        "'pipemark history show 1' shows a run, and 'pipemark history show' the newest",
    ),
    ("history", &["--last", "-n"], "'pipemark history show' shows the newest; --limit N lists fewer"),
    ("compare", &["--threshold-percent", "-t"], "the threshold is --threshold, as in --threshold 5%"),
    ("why", &["--pid", "-p"], "the PID is an argument, as in 'pipemark why 4711'"),
    ("watch", &["--pid", "-p"], "the PID is an argument, as in 'pipemark watch 4711'"),
    ("tune", &["--pid", "-p"], "the PID is an argument, as in 'pipemark tune 4711'"),
    ("why", &["--time", "--duration", "-t"], "the time is --for, as in --for 10s"),
    ("watch", &["--time", "--duration", "-t"], "the time is --for, as in --for 10s"),
    ("why", &["--verbose", "-v"], "all causes that were considered are --explain, functions --functions"),
    ("tune", &["--runs", "-r", "--for", "--time", "-t"], "the time for all runs is --budget, as in --budget 30s"),
    ("tune", &["--dry-run", "-n"], "tune runs the pipeline; 'pipemark why' samples a running one"),
    ("ab", &["--iterations", "--repeat", "--count"], "the number of runs is --runs, as in --runs 20"),
    ("ab", &["--time", "--duration", "-t"], "the time for all runs is --budget, as in --budget 30s"),
    ("compare", &["--output", "-o"], OUTPUT),
];

/// What was probably meant by words that aren't verbs.
const VERB_HINTS: &[(&[&str], &str)] = &[
    (
        &["bench", "benchmark", "measure", "time", "hyperfine"],
        "to time commands: pipemark ab 'COMMAND'; to measure this machine's pipes: pipemark run",
    ),
    (&["speed", "throughput", "bandwidth", "pipe", "pipes", "test"], "to measure pipes: pipemark run, or pipemark bw"),
    (&["profile", "analyze", "analyse", "explain", "diagnose"], "to find the bottleneck: pipemark why 'A | B'"),
    (&["optimize", "optimise", "improve", "fix"], "to make a pipeline faster: pipemark tune 'A | B'"),
    (&["cat", "pv", "copy", "mbuffer", "buffer"], "to pass bytes on: pipemark relay"),
    (&["-v", "-version", "version"], "the version: pipemark --version"),
    (&["top", "monitor", "live"], "to show a running pipeline: pipemark watch PID"),
    (&["ps", "ls", "pipelines", "status"], "to list running pipelines: pipemark why"),
    (&["plot", "graph", "chart", "html", "page", "open"], "to write the last result as a page: pipemark report"),
    (&["diff", "cmp"], "to compare measurements: pipemark compare; commands: pipemark ab 'A' 'B'"),
    (&["results", "last", "log"], "stored results: pipemark history"),
    (&["dd", "yes", "generate", "write"], "to generate data: pipemark gen 1g"),
    (&["verify", "check", "read"], "to check data: pipemark sink --verify"),
    (&["info", "system", "cpu", "cpus"], "this machine: pipemark list machine"),
    (&["suites", "suite", "links", "languages"], "suites, links and languages: pipemark list"),
    (&["install", "update", "upgrade", "uninstall"], "to install another version, see docs/install.md"),
];

/// The hint for a wrong call; `None` if there is none.
pub(super) fn hint(error: &clap::Error, words: &[OsString]) -> Option<&'static str> {
    let verb = words.get(1)?.to_str()?;
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let unknown = match error.kind() {
        ErrorKind::MissingRequiredArgument | ErrorKind::TooFewValues => NOTHING,
        _ => text(ContextKind::InvalidArg).or(text(ContextKind::InvalidSubcommand))?,
    };
    // clap adds the form of the value to an option that it knows.
    let name = unknown.split([' ', '=']).next().unwrap_or_default();
    let of_verb = |(typed, names, _): &&(&str, &[&str], &str)| {
        let is = |one: &&str| match *one {
            ARGUMENT => !name.is_empty() && !name.starts_with(['-', '[', '<']),
            NUMBER => name.parse::<u64>().is_ok(),
            one => one == name,
        };
        *typed == verb && names.iter().any(is)
    };
    let hint = HINTS.iter().find(of_verb).map(|(.., answer)| *answer);
    hint.or_else(|| VERB_HINTS.iter().find(|(words, _)| words.contains(&verb)).map(|(_, answer)| *answer))
}

/// Without tips that mislead: to pass an unknown option as a value, or if there is a hint, an option with a similar name.
pub(super) fn without_tips(mut error: clap::Error, has_hint: bool) -> clap::Error {
    let is_as_value = |tip: &clap::builder::StyledStr| tip.to_string().contains("as a value");
    if let Some(ContextValue::StyledStrs(tips)) = error.get(ContextKind::Suggested)
        && (has_hint || tips.iter().any(is_as_value))
    {
        error.remove(ContextKind::Suggested);
    }
    if has_hint {
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::SuggestedSubcommand);
    }
    error
}

/// The answer to a command of `ab` without quotes whose options were taken for those of `ab`, as in `ab sort -rn file`.
pub(super) fn unquoted_command(words: &[OsString]) -> Option<&'static str> {
    let [_, verb, rest @ ..] = words else { return None };
    let is_option = |word: &OsString| word.as_bytes().starts_with(b"-");
    let is_letters = |word: &OsString| is_option(word) && !word.as_bytes().starts_with(b"--");
    let is_bare = |word: &OsString| !is_option(word) && !word.as_bytes().contains(&b' ');
    // A word behind an option may be its value.
    let is_command = |at: usize| is_bare(&rest[at]) && (at == 0 || !is_option(&rest[at - 1]));
    let is_unquoted = |at: usize| is_command(at) && rest.get(at + 1).is_some_and(is_letters);
    let has_end = words.iter().any(|word| word == "--");
    let found = verb == "ab" && !has_end && (0..rest.len()).any(is_unquoted);
    found.then_some("put each command in quotes, as in pipemark ab 'sort -u file'")
}
