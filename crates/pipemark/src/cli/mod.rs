//! The command line: what can be typed, and which verb it goes to. One file per verb.

/// What the long help of a verb ends with.
macro_rules! examples {
    ($verb:literal) => {
        include_str!(concat!("help/", $verb, ".txt")).trim_end()
    };
}

mod bw;
mod chain;
mod choices;
mod compare;
mod completions;
mod entrants;
mod r#gen;
mod help;
mod history;
mod host;
mod lines;
mod list;
mod machine;
mod manual;
mod measure;
mod noise_floor;
mod output;
mod parameters;
mod read;
mod relay;
mod report;
mod reporter;
mod run;
mod schedule_flags;
mod sink;
mod suite_file;

use std::ffi::OsString;
use std::path::Path;

use clap::{Args, Command, CommandFactory, FromArgMatches, Parser, Subcommand};
use pipemark_console::{Ending, Stop, end, say};

use pipemark_model::hides;

use output::keep_watched;

#[derive(Parser)]
#[command(
    name = "pipemark",
    version,
    author,
    about = "Measures how fast bytes move through pipes, and says why",
    long_about = "Measures how fast bytes move through Unix pipes: by which mechanism, at which block size and capacity, \
                  on one core and across two, beside the machine's own copying speed. Finds out what holds your own \
                  pipelines back.",
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

macro_rules! verbs {
    ($($(#[$about:meta])+ $verb:ident($options:ty) $name:literal $help:expr, $run:expr;)*) => {
        #[derive(Subcommand)]
        enum Verb {
            $($(#[$about])+ #[command(after_long_help = $help)] $verb($options),)*
        }

        impl Verb {
            /// A command line with this verb alone, and without its texts.
            fn alone(name: &str) -> Option<Command> {
                let verb = match name {
                    $($name => <$options>::augment_args(Command::new($name)),)*
                    _ => return None,
                };
                Some(Command::new("pipemark").disable_help_subcommand(true).subcommand(verb))
            }

            fn run(&self) -> Ending {
                match self {
                    $(Verb::$verb(options) => ($run)(options),)*
                }
            }
        }
    };
}

// What it is for, what it takes, its examples, and what does it.
verbs! {
    /// Run suites: predefined experiments
    Run(run::RunOptions) "run" examples!("run"), run::run;
    /// Measure the throughput of a pipe, or of a matrix of pipes
    Bw(Box<bw::BwOptions<bw::BwKeys>>) "bw" examples!("bw"), bw::bw;
    /// Measure round trips: how long a block takes there and back
    Latency(Box<bw::BwOptions<bw::LatencyKeys>>) "latency" examples!("latency"), bw::latency;
    /// Compare two measurements: better, worse, the same, or can't tell
    Compare(Box<compare::CompareOptions>) "compare" examples!("compare"), compare::run;
    /// Time a pipeline of yours, or two in turns: which is faster?
    Ab(pipemark_ab::ab::AbOptions) "ab" pipemark_ab::ab::EXAMPLES, pipemark_ab::ab::run;
    /// Show what was measured before, and how it changed
    History(history::HistoryOptions) "history" examples!("history"), history::run;
    /// Put the number of spaces before each line, or apply another TRANSFORM, to files or standard input
    Lines(lines::LinesOptions) "lines" examples!("lines"), lines::run;
    /// Write lines or bytes to standard output: a pipeline's source
    Gen(r#gen::GenOptions) "gen" examples!("gen"), r#gen::run;
    /// Read standard input, measure its rate and check it: a pipeline's end
    Sink(sink::SinkOptions) "sink" examples!("sink"), sink::run;
    /// Measure what one more process in a pipeline costs
    Chain(Box<chain::ChainOptions>) "chain" examples!("chain"), chain::run;
    /// Find out what holds your pipeline back
    Why(pipemark_watch::verbs::why::WhyOptions) "why" pipemark_watch::verbs::why::EXAMPLES, |options| pipemark_watch::verbs::why::run(options, &keep_watched);
    /// Show a running pipeline on a live screen
    Watch(pipemark_watch::verbs::watch::WatchOptions) "watch" pipemark_watch::verbs::watch::EXAMPLES, |options| pipemark_watch::verbs::watch::run(options, &keep_watched);
    /// Try larger pipes in a running pipeline, and keep what helps
    Tune(pipemark_watch::verbs::tune::TuneOptions) "tune" pipemark_watch::verbs::tune::EXAMPLES, |options| pipemark_watch::verbs::tune::run(options, &keep_watched);
    /// Write results as an HTML page, or draw them in the terminal
    Report(report::ReportOptions) "report" examples!("report"), report::run;
    /// List suites, links, senders and receivers, and what is missing here
    List(list::ListOptions) "list" examples!("list"), list::run;
    /// Pass standard input to standard output as fast as the system can
    Relay(relay::RelayOptions) "relay" examples!("relay"), relay::run;
    /// Show what matters about this machine
    Host(host::HostOptions) "host" examples!("host"), host::run;
    /// Explain a verb or a topic, such as method, units or findings
    Help(help::HelpOptions) "help" examples!("help"), help::run;
    /// Print shell completions
    Completions(completions::CompletionsOptions) "completions" examples!("completions"), completions::completions;
}

/// What verbs are for: the order of help.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Measure", &["run", "bw", "latency", "chain"]),
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

/// Verbs of earlier versions, and what is typed instead.
const DROPPED: [(&str, &str); 1] =
    [("languages", "'pipemark run languages' (--build to build only), 'pipemark list languages' to list them")];

/// Reads the command line and does what it says.
pub fn main(words: Vec<OsString>) -> u8 {
    if let [_, verb, folder] = words.as_slice()
        && verb == MAN_VERB
    {
        return end(completions::man(Path::new(folder)));
    }
    if let Some(verb) = words.get(1)
        && let Some((name, now)) = DROPPED.iter().find(|(name, _)| verb == name)
    {
        return end(Err(Stop::usage(format_args!("'{name}' is no verb any more; use {now}"))));
    }
    // As a stage of a pipeline it should start as fast as cat, and to read even this command line takes 0.14 ms of 1.6.
    if let [_, verb] = words.as_slice()
        && verb == "relay"
    {
        return end(relay::run(&relay::RelayOptions::default()));
    }
    // clap prints help and version itself, and ends with code 2 on bad usage.
    let own_failure = words
        .get(1)
        .is_some_and(|verb| ["why", "watch", "tune"].iter().any(|own| verb == own))
        .then_some(i32::from(pipemark_watch::verbs::why::FAILED));
    // To describe all verbs takes nearly as long as cat takes to start: that is left for errors and help.
    let alone = words.get(1).and_then(|verb| Verb::alone(verb.to_str()?));
    let matches = alone.and_then(|verb| verb.try_get_matches_from(&words).ok());
    let matches = matches.map_or_else(|| command().try_get_matches_from(words), Ok);
    let Cli { verb } = matches.and_then(|matches| Cli::from_arg_matches(&matches)).unwrap_or_else(|error| {
        let code = own_failure.filter(|_| error.use_stderr()).unwrap_or(error.exit_code());
        let text = error.render().to_string();
        match text.contains(|c| c != '\n' && hides(c)) {
            true => say(text.trim_end()),
            false => drop(error.print()),
        }
        std::process::exit(code);
    });
    end(verb.run())
}
