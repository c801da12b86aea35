//! The command line: parses it and runs its verb. A file or directory for each verb, and files that several verbs share.

/// The end of a verb's long help.
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
mod cpu_pairs;
mod dialect;
mod entrants;
mod r#gen;
mod help;
mod hints;
mod history;
mod lines;
mod links;
mod list;
mod machine;
mod manual;
mod measure;
mod noise_floor;
mod output;
mod parameters;
mod read;
mod rehearsal;
mod relay;
mod report;
mod reporter;
mod run;
mod schedule_flags;
mod sink;
mod suite_file;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use clap::error::{ContextKind, ContextValue};
use clap::{Arg, Args, Command, CommandFactory, FromArgMatches, Parser, Subcommand, value_parser};
use pipemark_console::{Destination, ExitError, VerbResult, finish, say};
use pipemark_model::nearest;
use pipemark_shell::{Dialect, Script};

use completions::CompletedShell;
use hints::{hint, unquoted_command, without_tips};
use output::{SavedCommands, save_experiments, save_watched_report};

#[derive(Parser)]
#[command(
    name = "pipemark",
    version,
    author,
    about = "Find out what limits a pipeline, and how fast pipes are on this machine",
    long_about = "Find out what limits a pipeline, and measure the throughput of Unix pipes by mechanism, block size, \
                  capacity and CPU placement.",
    after_help = "'pipemark --help' shows examples, 'pipemark VERB --help' explains a verb, 'pipemark help' lists topics.",
    after_long_help = examples!("pipemark"),
    disable_help_subcommand = true,
    max_term_width = 80
)]
pub struct Cli {
    #[command(subcommand)]
    verb: Option<Verb>,
}

macro_rules! verbs {
    ($($(#[$about:meta])+ $verb:ident($options:ty) $name:literal $help:expr, $run:expr;)*) => {
        #[derive(Subcommand)]
        enum Verb {
            $($(#[$about])+ #[command(after_long_help = $help)] $verb($options),)*
        }

        impl Verb {
            /// A command line with this verb only, without help texts.
            fn single_verb_command(name: &str) -> Option<Command> {
                let verb = match name {
                    $($name => <$options>::augment_args(Command::new($name)),)*
                    _ => return None,
                };
                Some(Command::new("pipemark").disable_help_subcommand(true).subcommand(verb))
            }

            fn run(&self) -> VerbResult {
                match self {
                    $(Verb::$verb(options) => ($run)(options),)*
                }
            }
        }
    };
}

// Each verb: its purpose, its options, its examples, and its function.
verbs! {
    /// Run suites of predefined experiments
    Run(run::RunOptions) "run" examples!("run"), run::run;
    /// Measure pipe throughput, for one setting or a matrix of settings
    Bw(Box<bw::BwOptions<bw::BwKeys>>) "bw" examples!("bw"), bw::bw;
    /// Measure round-trip times
    Latency(Box<bw::BwOptions<bw::LatencyKeys>>) "latency" examples!("latency"), bw::latency;
    /// Compare two measurements: better, worse, same or inconclusive
    Compare(Box<compare::CompareOptions>) "compare" examples!("compare"), compare::run;
    /// Time commands and compare them: which is faster, and by how much?
    Ab(Box<pipemark_ab::ab::AbOptions>) "ab" pipemark_ab::ab::EXAMPLES, |options| pipemark_ab::ab::run(options, &SavedCommands);
    /// Show earlier measurements and their trends
    History(history::HistoryOptions) "history" examples!("history"), history::run;
    /// Transform lines: count spaces, number lines, cut fields
    Lines(lines::LinesOptions) "lines" examples!("lines"), lines::run;
    /// Generate lines or bytes, as the source of a pipeline
    Gen(r#gen::GenOptions) "gen" examples!("gen"), r#gen::run;
    /// Measure the rate of standard input and check its bytes, as the sink of a pipeline
    Sink(sink::SinkOptions) "sink" examples!("sink"), sink::run;
    /// Measure the cost of one more process in a pipeline
    Chain(Box<chain::ChainOptions>) "chain" examples!("chain"), chain::run;
    /// Find out what limits a pipeline
    Why(pipemark_watch::verbs::why::WhyOptions) "why" pipemark_watch::verbs::why::EXAMPLES, |options| pipemark_watch::verbs::why::run(options, &save_watched_report);
    /// Show a running pipeline on a live screen
    Watch(pipemark_watch::verbs::watch::WatchOptions) "watch" pipemark_watch::verbs::watch::EXAMPLES, |options| pipemark_watch::verbs::watch::run(options, &save_watched_report);
    /// Try changes of a pipeline, and print the fastest one; try larger pipes in a running pipeline
    Tune(Box<pipemark_tune::verb::TuneOptions>) "tune" pipemark_tune::verb::EXAMPLES, |options| pipemark_tune::verb::run(options, &save_watched_report, &save_experiments);
    /// Write results as an HTML page, or draw them in the terminal
    Report(report::ReportOptions) "report" examples!("report"), report::run;
    /// List suites, links, methods and this machine's properties
    List(list::ListOptions) "list" examples!("list"), list::run;
    /// Pass standard input to standard output like cat, without copying bytes where possible
    // Examples first, because users of pv, mbuffer and dd look for a command to copy.
    #[command(long_about = examples!("relay_first"))]
    Relay(relay::RelayOptions) "relay" examples!("relay"), relay::run;
    /// Explain a verb or a topic, such as method or units
    Help(help::HelpOptions) "help" examples!("help"), help::run;
}

/// Verbs by purpose, in the order of help.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Your own pipelines", &["why", "watch", "tune", "ab"]),
    ("Measure pipes", &["run", "bw", "latency", "chain"]),
    ("Results", &["compare", "history", "report"]),
    ("Tools", &["relay", "lines", "gen", "sink"]),
    ("Information", &["list", "help"]),
];

/// Verbs of earlier versions, and the verbs that replace them.
const DROPPED: [(&str, &str); 3] = [
    ("host", "'pipemark list machine'"),
    ("completions", "'pipemark --completions SHELL'"),
    ("languages", "'pipemark run languages' (--build to build only) or 'pipemark list languages'"),
];

/// The output of `pipemark` without arguments.
const START: &str = "\
Why is my pipeline slow?
    pipemark why 'zcat access.log.gz | grep -v bot | sort | uniq -c'
Which of two pipelines is faster?
    pipemark ab -- 'sort -u access.log' -- 'sort access.log | uniq'
How fast are pipes on this machine? (30 seconds)
    pipemark run

All verbs: pipemark --help
";

const COMPLETIONS: &str = "completions";

/// The command line with its verbs in groups, which clap supports only for flags.
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
    let shell = Arg::new(COMPLETIONS).long(COMPLETIONS).value_name("SHELL").value_parser(value_parser!(CompletedShell));
    let command = command.arg(shell.exclusive(true).help("Print completions for a shell"));
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{verbs}{{options}}{{after-help}}"
    ))
}

/// The options of a verb: each letter and long name, and whether it must have a value.
type OptionNames = BTreeMap<Vec<u8>, bool>;

fn own_options_of(single_verb: &Command) -> OptionNames {
    let mut names = OptionNames::new();
    for arg in single_verb.get_subcommands().flat_map(Command::get_arguments).filter(|arg| !arg.is_positional()) {
        let takes_value = match arg.get_num_args() {
            Some(values) => values.min_values() > 0,
            None => arg.get_action().takes_values(),
        };
        let long = arg.get_long_and_visible_aliases().unwrap_or_default();
        names.extend(long.into_iter().map(|name| (name.as_bytes().to_vec(), takes_value)));
        names.extend(arg.get_short().map(|letter| (letter.to_string().into_bytes(), takes_value)));
    }
    names
}

#[cfg(test)]
fn own_options(verb: &str) -> OptionNames {
    own_options_of(&Verb::single_verb_command(verb).expect("a verb"))
}

/// Adds `why` to a call that has a pipeline instead of a verb.
fn with_why(mut words: Vec<OsString>) -> Vec<OsString> {
    let is_pipeline = |word: &OsString| {
        let text = word.as_bytes();
        let script = text.contains(&b'|').then(|| Script::parse(text, Dialect::Bash));
        script.and_then(Result::ok).is_some_and(|script| script.pipeline().is_some_and(|one| one.stages.len() > 1))
    };
    if words.get(1).is_some_and(is_pipeline) {
        say("pipemark: no verb, so this is 'pipemark why'");
        words.insert(1, "why".into());
    }
    words
}

/// Adds the verb that was probably meant. clap makes no suggestion for words as short as `wy`.
fn with_nearest_verb(mut error: clap::Error, words: &[OsString]) -> clap::Error {
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) else { return error };
    let command = command();
    let mut parent = &command;
    for word in words {
        parent = parent.find_subcommand(word).unwrap_or(parent);
    }
    let verbs = parent.get_subcommands().filter(|verb| !verb.is_hide_set()).map(Command::get_name);
    if let Some(verb) = nearest(typed, verbs) {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![verb.to_owned()]));
    }
    error
}

/// Runs the command line; returns the exit code.
pub fn main(words: Vec<OsString>) -> u8 {
    // A stage of a pipeline should start as fast as cat. Parsing even this short command line would take 0.14 ms
    // of the 1.6 ms.
    if let [_, verb] = words.as_slice()
        && verb == "relay"
    {
        return finish(relay::run(&relay::RelayOptions::default()));
    }
    let first = words.get(1).and_then(|word| word.to_str());
    if let Some((name, replacement)) = DROPPED.iter().find(|(name, _)| first == Some(name)) {
        return finish(Err(ExitError::usage(format_args!("the verb '{name}' was removed; use {replacement}"))));
    }
    let words = with_why(words);
    let first = words.get(1).and_then(|word| word.to_str());
    let single_verb = first.and_then(Verb::single_verb_command);
    let own = single_verb.as_ref().map(own_options_of).unwrap_or_default();
    let words = match dialect::translate(words.clone(), &|name| own.get(name).copied()) {
        Ok(words) => words,
        Err(error) => {
            let code = finish(Err(error));
            unquoted_command(&words).inspect(|hint| say(hint));
            return code;
        }
    };
    // On bad usage, clap exits with code 2. For these verbs, code 2 would be mistaken for the pipeline's exit code.
    let own_failure = words
        .get(1)
        .is_some_and(|verb| ["why", "watch", "tune"].iter().any(|own| verb == own))
        .then_some(i32::from(pipemark_watch::verbs::target::FAILED));
    // Describing all verbs takes nearly as long as cat takes to start, so only errors and help describe all of them.
    let matches = single_verb.and_then(|verb| verb.try_get_matches_from(&words).ok());
    let all = || command().try_get_matches_from(&words).map_err(|error| with_nearest_verb(error, &words));
    let matches = matches.map_or_else(all, Ok);
    let parsed = matches.and_then(|matches| {
        let shell = matches.try_get_one::<CompletedShell>(COMPLETIONS).ok().flatten().copied();
        Ok((Cli::from_arg_matches(&matches)?.verb, shell))
    });
    let (verb, shell) = parsed.unwrap_or_else(|error| {
        let code = own_failure.filter(|_| error.use_stderr()).unwrap_or(error.exit_code());
        match error.use_stderr() {
            true => {
                let answer = hint(&error, &words).or_else(|| unquoted_command(&words));
                let error = without_tips(error, answer.is_some());
                let text = error.render().to_string().replacen("error: ", "pipemark: ", 1);
                match answer {
                    Some(answer) => say(format_args!("{}\n\n{answer}", text.trim_end())),
                    None => say(text.trim_end()),
                }
            }
            false => {
                if let Err(failure) = error.print() {
                    std::process::exit(finish(Err(failure.into())).into());
                }
            }
        }
        std::process::exit(code);
    });
    finish(match (verb, shell) {
        (Some(verb), _) => verb.run(),
        (None, Some(shell)) => completions::completions(shell),
        (None, None) => Destination::Stdout.write("help", Ok(START.to_owned())).map_err(ExitError::from),
    })
}
