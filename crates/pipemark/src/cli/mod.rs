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
mod watch;
mod why;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

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
    /// Measure a pipe as you ask, or a matrix of pipes
    #[command(after_long_help = examples!("bw"))]
    Bw(Box<bw::BwOptions>),
    /// Stream the same bytes with programs of nine languages
    Languages(languages::LanguagesOptions),
    /// Compare two measurements: better, worse, the same, or can't tell
    #[command(after_long_help = examples!("compare"))]
    Compare(Box<compare::CompareOptions>),
    /// Run two pipelines of yours in turns: which is faster?
    #[command(after_long_help = examples!("ab"))]
    Ab(ab::AbOptions),
    /// See what was measured before, and how it changed
    #[command(after_long_help = examples!("history"))]
    History(history::HistoryOptions),
    /// Filter lines from standard input to standard output
    #[command(after_long_help = examples!("lines"))]
    Lines(lines::LinesOptions),
    /// Write lines or bytes to standard output: a pipeline's source
    #[command(after_long_help = examples!("gen"))]
    Gen(r#gen::GenOptions),
    /// Take, measure and check standard input: a pipeline's end
    #[command(after_long_help = examples!("sink"))]
    Sink(sink::SinkOptions),
    /// Measure chains of processes: what one more costs
    #[command(after_long_help = examples!("chain"))]
    Chain(Box<chain::ChainOptions>),
    /// Find out what holds your pipeline back
    #[command(after_long_help = examples!("why"))]
    Why(why::WhyOptions),
    /// Show a running pipeline on a live screen
    #[command(after_long_help = examples!("watch"))]
    Watch(watch::WatchOptions),
    /// Show results as a page to mail, or as charts in the terminal
    #[command(after_long_help = examples!("report"))]
    Report(report::ReportOptions),
    /// List senders, receivers and suites, and what is missing here
    List(list::ListOptions),
    /// Pass standard input to standard output as fast as the system can
    #[command(after_long_help = examples!("relay"))]
    Relay(relay::RelayOptions),
    /// Show what matters about this machine
    Host(host::HostOptions),
    /// Explain a verb or a topic, such as method, units or findings
    Help(help::HelpOptions),
    /// Print shell completions
    #[command(after_long_help = examples!("completions"))]
    Completions(completions::CompletionsOptions),
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
    let own_failure =
        words.get(1).is_some_and(|verb| verb == "why" || verb == "watch").then_some(i32::from(why::FAILED));
    let Cli { verb } = Cli::try_parse_from(words).unwrap_or_else(|error| {
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
        Verb::Bw(options) => bw::run(&options),
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
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn short_help_is_short() {
        let lines = Cli::command().render_help().to_string().lines().count();
        assert!(lines <= 30, "{lines} lines");
    }
}
