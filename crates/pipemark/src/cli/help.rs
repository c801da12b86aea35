//! `pipemark help`: explains a verb or a topic. Topics are compiled in, so that they match the program's version.

use clap::{Args, CommandFactory, Parser};

use crate::cli::manual::manual;
use pipemark_console::{Destination, ExitError, VerbResult, check_stdout, terminal};
use pipemark_model::{nearest, neutral};
use pipemark_show::Terminal;

use crate::cli::{Cli, command};

/// A topic, which is a section of a page.
struct Topic {
    name: &'static str,
    about: &'static str,
    page: &'static str,
    /// The heading of the section.
    section: &'static str,
}

macro_rules! page {
    ($file:literal) => {
        include_str!(concat!("../../docs/", $file))
    };
}

const TOPICS: [Topic; 11] = [
    topic("method", "how pipemark measures", HELP_TOPICS, "Method"),
    topic("units", "sizes, times, columns and marks", page!("outputs.md"), "Units"),
    topic("outputs", "how a script reads a figure", page!("outputs.md"), "Reading a figure in a script"),
    topic("findings", "conclusions, and the rules behind them", page!("outputs.md"), "Findings"),
    topic("exit-codes", "exit codes of all verbs", page!("outputs.md"), "Exit codes"),
    topic("suites", "how to write your own experiments", HELP_TOPICS, "Suites"),
    topic("pipelines", "how 'pipemark why' finds a bottleneck", HELP_TOPICS, "Pipelines"),
    topic("ci", "how to fail a build on a slowdown", HELP_TOPICS, "CI"),
    topic("wakeups", "why small messages are expensive", page!("pipes.md"), "Wakeups"),
    topic("capacity", "what larger pipes gain, and their limits", page!("pipes.md"), "Capacity"),
    topic("zero-copy", "what vmsplice and splice save, and what they require", page!("pipes.md"), "Zero copy"),
];

/// The width of text in columns. Longer lines are harder to read.
const MAX_WIDTH: usize = 80;

/// The topics written only for help.
const HELP_TOPICS: &str = include_str!("help/topics.md");

const fn topic(name: &'static str, about: &'static str, page: &'static str, section: &'static str) -> Topic {
    Topic { name, about, page, section }
}

/// The options of `help`.
#[derive(Debug, Clone, Args)]
pub struct HelpOptions {
    /// A verb, such as bw or 'history show', or a topic, such as method [default: list them]
    #[arg(value_name = "VERB|TOPIC")]
    words: Vec<String>,
}

/// Explains a verb or a topic.
pub fn run(options: &HelpOptions) -> VerbResult {
    check_stdout()?;
    let print = |text: String| Ok(Destination::Stdout.write("help", Ok(text))?);
    let Some(first) = options.words.first() else { return print(overview()) };
    if let (Some(topic), [_]) = (TOPICS.iter().find(|topic| topic.name == first), &options.words[..]) {
        let terminal = Terminal { width: terminal().width.min(MAX_WIDTH), ..terminal() };
        return print(terminal.render(&manual(topic.page, Some(topic.section))));
    }
    if let Some(topic) = TOPICS.iter().find(|topic| topic.name == first) {
        return Err(ExitError::usage(format_args!("'{}' is a topic; name one topic at a time", topic.name)));
    }
    if Cli::command().find_subcommand(first).is_none() {
        let verbs = Cli::command();
        let verbs = verbs.get_subcommands().filter(|verb| !verb.is_hide_set()).map(|verb| verb.get_name());
        let hint = match nearest(first, TOPICS.iter().map(|topic| topic.name).chain(verbs)) {
            Some(word) => format!("did you mean {word}?"),
            None => "'pipemark help' lists verbs and topics".to_owned(),
        };
        return Err(ExitError::usage(format_args!("there is no verb or topic '{}'; {hint}", neutral(first))));
    }
    let mut verb = Cli::command();
    for word in &options.words {
        let Some(next) = verb.find_subcommand(word) else {
            let hint = format!("'pipemark help {first}' explains {first}");
            return Err(ExitError::usage(format_args!(
                "'{}' is not a verb of '{}'; {hint}",
                neutral(word),
                verb.get_name()
            )));
        };
        verb = next.clone();
    }
    // Only parsing prints clap's complete help, so this parses a command line with --help.
    let words = ["pipemark"].into_iter().chain(options.words.iter().map(String::as_str)).chain(["--help"]);
    match Cli::try_parse_from(words) {
        Err(help) => help.exit(),
        Ok(_) => Ok(()),
    }
}

fn overview() -> String {
    let topics = TOPICS.iter().map(|Topic { name, about, .. }| format!("  {name:<12}  {about}\n"));
    format!("{}\nTopics (pipemark help TOPIC):\n{}", command().render_help(), topics.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_topic_has_text_that_fits() {
        for topic in &TOPICS {
            let terminal = Terminal { width: MAX_WIDTH, ..terminal() };
            let text = terminal.render(&manual(topic.page, Some(topic.section)));
            let long = text.lines().find(|line| line.chars().count() > MAX_WIDTH);
            assert_eq!(long, None, "{}", topic.name);
            assert!((6..=50).contains(&text.lines().count()), "{}: {text}", topic.name);
            let verb = Cli::command().find_subcommand(topic.name).is_some();
            assert!(!verb, "{} is a verb, which has its own help", topic.name);
        }
    }
}
