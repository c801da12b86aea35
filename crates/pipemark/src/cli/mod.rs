//! The command line: what can be typed, and which verb it goes to. One file per verb.

/// What the long help of a verb ends with.
macro_rules! examples {
    ($verb:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/cli/help/", $verb, ".txt")).trim_end()
    };
}

mod ab;
mod bw;
mod chain;
mod compare;
mod completions;
mod console;
mod r#gen;
mod help;
mod history;
mod host;
mod languages;
mod lines;
mod list;
mod measure;
mod noise_floor;
mod output;
mod parameters;
mod read;
mod relay;
mod report;
mod run;
mod schedule;
mod sink;
mod suite_file;
mod tune;
mod watch;
mod why;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::{Command, CommandFactory, FromArgMatches, Parser, Subcommand};

use console::{Ending, Stop, end, exit, say};

use crate::sheet::hides;

#[derive(Parser)]
#[command(
    name = "pipemark",
    version,
    about = "Measures how fast bytes move through pipes, and says why",
    long_about = "Measures how fast bytes move through Unix pipes, by which means, at which block size and capacity, on \
                  one core and across two, against what the machine can copy at all.",
    after_help = "Start with 'pipemark run'. 'pipemark --help' shows examples, 'pipemark help VERB' explains a verb, \
                  'pipemark help' lists topics.",
    after_long_help = examples!("pipemark"),
    arg_required_else_help = true,
    disable_help_subcommand = true,
    max_term_width = 100
)]
pub struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Run suites: predefined experiments
    #[command(after_long_help = examples!("run"))]
    Run(run::RunOptions),
    /// Measure the throughput of a pipe, or of a matrix of pipes
    #[command(after_long_help = examples!("bw"))]
    Bw(Box<bw::BwOptions<bw::BwKeys>>),
    /// Measure round trips: how long a block takes there and back
    #[command(after_long_help = examples!("latency"))]
    Latency(Box<bw::BwOptions<bw::LatencyKeys>>),
    /// Compare programs of nine languages that stream the same bytes
    Languages(languages::LanguagesOptions),
    /// Compare two measurements: better, worse, the same, or can't tell
    #[command(after_long_help = examples!("compare"))]
    Compare(Box<compare::CompareOptions>),
    /// Time a pipeline of yours, or two in turns: which is faster?
    #[command(after_long_help = examples!("ab"))]
    Ab(ab::AbOptions),
    /// Show what was measured before, and how it changed
    #[command(after_long_help = examples!("history"))]
    History(history::HistoryOptions),
    /// Put the number of spaces before each line, or apply another TRANSFORM, to files or standard input
    #[command(after_long_help = examples!("lines"))]
    Lines(lines::LinesOptions),
    /// Write lines or bytes to standard output: a pipeline's source
    #[command(after_long_help = examples!("gen"))]
    Gen(r#gen::GenOptions),
    /// Read standard input, measure its rate and check it: a pipeline's end
    #[command(after_long_help = examples!("sink"))]
    Sink(sink::SinkOptions),
    /// Measure what one more process in a pipeline costs
    #[command(after_long_help = examples!("chain"))]
    Chain(Box<chain::ChainOptions>),
    /// Find out what holds your pipeline back
    #[command(after_long_help = examples!("why"))]
    Why(why::WhyOptions),
    /// Show a running pipeline on a live screen
    #[command(after_long_help = examples!("watch"))]
    Watch(watch::WatchOptions),
    /// Try larger pipes in a running pipeline, and keep what helps
    #[command(after_long_help = examples!("tune"))]
    Tune(tune::TuneOptions),
    /// Write results as an HTML page, or draw them in the terminal
    #[command(after_long_help = examples!("report"))]
    Report(report::ReportOptions),
    /// List suites, links, senders and receivers, and what is missing here
    #[command(after_long_help = examples!("list"))]
    List(list::ListOptions),
    /// Pass standard input to standard output as fast as the system can
    #[command(after_long_help = examples!("relay"))]
    Relay(relay::RelayOptions),
    /// Show what matters about this machine
    #[command(after_long_help = examples!("host"))]
    Host(host::HostOptions),
    /// Explain a verb or a topic, such as method, units or findings
    #[command(after_long_help = examples!("help"))]
    Help(help::HelpOptions),
    /// Print shell completions
    #[command(after_long_help = examples!("completions"))]
    Completions(completions::CompletionsOptions),
}

/// What verbs are for: the order of help.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Measure", &["run", "bw", "latency", "chain", "languages"]),
    ("Compare", &["compare", "history", "report"]),
    ("Your own pipelines", &["why", "watch", "tune", "ab"]),
    ("Tools", &["lines", "gen", "sink", "relay"]),
    ("Information", &["list", "host", "help", "completions"]),
];

/// The command line, with its verbs in groups, which clap has for flags only.
pub fn command() -> Command {
    let command = Cli::command();
    let mut verbs = String::new();
    for (group, names) in GROUPS {
        verbs.push_str(&format!("\x1b[1m\x1b[4m{group}:\x1b[0m\n"));
        for verb in names.iter().filter_map(|name| command.find_subcommand(name)) {
            let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
            verbs.push_str(&format!("  \x1b[1m{:<11}\x1b[0m  {about}\n", verb.get_name()));
        }
        verbs.push('\n');
    }
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{verbs}{{options}}{{after-help}}"
    ))
}

/// `pipemark __man FOLDER` writes man pages: for `make install`, and not for people, so help and completions know nothing
/// of it.
const MAN_VERB: &str = "__man";

/// Reads the command line and does what it says.
pub fn main(words: Vec<OsString>) -> ExitCode {
    if let [_, verb, folder] = words.as_slice()
        && verb == MAN_VERB
    {
        return end(completions::man(Path::new(folder)));
    }
    // clap prints help and version itself, and ends with code 2 on bad usage.
    let own_failure = words
        .get(1)
        .is_some_and(|verb| ["why", "watch", "tune"].iter().any(|own| verb == own))
        .then_some(i32::from(why::FAILED));
    let parsed = command().try_get_matches_from(words).and_then(|matches| Cli::from_arg_matches(&matches));
    let Cli { verb } = parsed.unwrap_or_else(|error| {
        let code = own_failure.filter(|_| error.use_stderr()).unwrap_or(error.exit_code());
        let text = error.render().to_string();
        match text.contains(|c| c != '\n' && hides(c)) {
            true => say(text.trim_end()),
            false => drop(error.print()),
        }
        std::process::exit(code);
    });
    end(match verb {
        Verb::Run(options) => run::run(&options),
        Verb::Bw(options) => bw::bw(&options),
        Verb::Latency(options) => bw::latency(&options),
        Verb::Languages(options) => languages::run(&options),
        Verb::Compare(options) => compare::run(&options),
        Verb::Ab(options) => ab::run(&options),
        Verb::History(options) => history::run(&options),
        Verb::Lines(options) => lines::run(&options),
        Verb::Gen(options) => r#gen::run(&options),
        Verb::Sink(options) => sink::run(&options),
        Verb::Chain(options) => chain::run(&options),
        Verb::Why(options) => why::run(&options),
        Verb::Watch(options) => watch::run(&options),
        Verb::Tune(options) => tune::run(&options),
        Verb::Report(options) => report::run(&options),
        Verb::List(options) => list::run(&options),
        Verb::Relay(options) => relay::run(&options),
        Verb::Host(options) => host::run(&options),
        Verb::Help(options) => help::run(&options),
        Verb::Completions(options) => completions::completions(&options),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn every_verb_is_in_one_group() {
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        for verb in Cli::command().get_subcommands() {
            assert_eq!(grouped.iter().filter(|name| **name == verb.get_name()).count(), 1, "{}", verb.get_name());
        }
    }

    /// The words of each call of this program in a line for a shell.
    fn calls(line: &str) -> Vec<Vec<String>> {
        let mut calls: Vec<Vec<String>> = vec![vec![String::new()]];
        let (mut quoted, mut skip) = (false, false);
        let mut chars = line.chars().peekable();
        while let Some(c) = chars.next() {
            let call = calls.last_mut().unwrap();
            match c {
                '\'' => quoted = !quoted,
                '|' | '&' | ';' | '(' | ')' if !quoted => calls.push(vec![String::new()]),
                '#' if !quoted && call.last().unwrap().is_empty() => break,
                '<' | '>' if !quoted => skip = true,
                ' ' if !quoted => {
                    if skip && !call.last().unwrap().is_empty() {
                        call.last_mut().unwrap().clear();
                        skip = false;
                    }
                    if !call.last().unwrap().is_empty() {
                        call.push(String::new());
                    }
                }
                c => call.last_mut().unwrap().push(c),
            }
            if chars.peek().is_none() && skip {
                calls.last_mut().unwrap().pop();
            }
        }
        calls.iter_mut().for_each(|call| call.retain(|word| !word.is_empty()));
        calls.retain(|call| call.first().is_some_and(|word| word == "pipemark"));
        calls
    }

    #[test]
    fn every_verb_has_examples_that_are_understood() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/cli/help");
        let mut examples = 0;
        for file in std::fs::read_dir(folder).unwrap() {
            let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
            for call in text.lines().filter(|line| line.starts_with("      ")).flat_map(calls) {
                if let Err(error) = command().try_get_matches_from(&call) {
                    assert!(error.exit_code() == 0, "{call:?}: {error}");
                }
                examples += 1;
            }
        }
        assert!(examples > 50, "{examples} examples");
        let mut command = command();
        command.build();
        for verb in command.get_subcommands() {
            let help = verb.get_after_long_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains(&format!("pipemark {}", verb.get_name())), "{} has no examples", verb.get_name());
        }
    }

    #[test]
    fn short_help_is_short() {
        let lines = command().render_help().to_string().lines().count();
        assert!(lines <= 40, "{lines} lines");
    }
}
