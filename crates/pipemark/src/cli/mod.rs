//! The command line: what can be typed, and which verb it goes to. One file per verb.

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
mod keep;
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

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use console::{Ending, Stop, end, exit};

#[derive(Parser)]
#[command(
    name = "pipemark",
    version,
    about = "Measures how fast bytes move through pipes, and says why",
    long_about = "Measures how fast bytes move through Unix pipes, by which means, at which block size and capacity, on \
                  one core and across two, against what the machine can copy at all.",
    after_help = "Start with 'pipemark run'. 'pipemark --help' shows examples, 'pipemark help VERB' explains a verb, \
                  'pipemark help' lists topics.",
    after_long_help = EXAMPLES,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    max_term_width = 100
)]
pub struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

const EXAMPLES: &str = "\
EXAMPLES
  How fast are this machine's pipes? About 30 seconds:
      pipemark run

  Write and read at three block sizes, across two cores and on one:
      pipemark bw --block 4k,64k,1m --place cross,same

  What is zero copy worth here?
      pipemark bw --send write,vmsplice --pages base,huge --recv splice --baseline send=write

  A published table, measured again at a tenth of its volume, kept as JSON:
      pipemark run block-size --scale 0.1 --json block-size.json

  Better or worse than before?
      pipemark compare before.json after.json
  What was measured before, and how one trial of it went since:
      pipemark history
      pipemark history trend block=64k send=write place=cross

  What can be used here, and where not, why not:
      pipemark list

  How it measures, what the figures mean, and what a script may rely on:
      pipemark help method
      pipemark help units
      pipemark help exit-codes

EXIT CODES
  0 all as asked    1 a trial failed    2 bad usage    3 data did not verify    130 interrupted
  10 to 14 the verdict that --fail-on of compare and ab asked for";

#[derive(Subcommand)]
enum Verb {
    /// Run suites: predefined experiments
    #[command(after_long_help = run::EXAMPLES)]
    Run(run::RunOptions),
    /// Measure a pipe as you ask, or a matrix of pipes
    #[command(after_long_help = bw::EXAMPLES)]
    Bw(Box<bw::BwOptions>),
    /// Stream the same bytes with programs of nine languages
    Languages(languages::LanguagesOptions),
    /// Compare two measurements: better, worse, the same, or can't tell
    #[command(after_long_help = compare::EXAMPLES)]
    Compare(Box<compare::CompareOptions>),
    /// Run two pipelines of yours in turns: which is faster?
    #[command(after_long_help = ab::EXAMPLES)]
    Ab(ab::AbOptions),
    /// See what was measured before, and how it changed
    #[command(after_long_help = history::EXAMPLES)]
    History(history::HistoryOptions),
    /// Filter lines from standard input to standard output
    #[command(after_long_help = lines::EXAMPLES)]
    Lines(lines::LinesOptions),
    /// Write lines or bytes to standard output: a pipeline's source
    #[command(after_long_help = r#gen::EXAMPLES)]
    Gen(r#gen::GenOptions),
    /// Take, measure and check standard input: a pipeline's end
    #[command(after_long_help = sink::EXAMPLES)]
    Sink(sink::SinkOptions),
    /// Measure chains of processes: what one more costs
    #[command(after_long_help = chain::EXAMPLES)]
    Chain(Box<chain::ChainOptions>),
    /// Show results as a page to mail, or as charts in the terminal
    #[command(after_long_help = report::EXAMPLES)]
    Report(report::ReportOptions),
    /// List senders, receivers and suites, and what is missing here
    List(list::ListOptions),
    /// Pass standard input to standard output as fast as the system can
    #[command(after_long_help = relay::EXAMPLES)]
    Relay(relay::RelayOptions),
    /// Show what matters about this machine
    Host(host::HostOptions),
    /// Explain a verb or a topic, such as method, units or findings
    Help(help::HelpOptions),
    /// Print shell completions
    #[command(after_long_help = completions::EXAMPLES)]
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
    end(match Cli::parse_from(words).verb {
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
        assert!(lines <= 28, "{lines} lines");
    }
}
