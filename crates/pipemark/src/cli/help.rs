//! `pipemark help`: what a verb does, or a page of the documentation, which comes with the program so that both tell of the
//! same version.

use clap::{Args, CommandFactory, Parser};

use crate::cli::manual::manual;
use pipemark_console::{Destination, Ending, Stop, check_stdout, terminal};
use pipemark_model::{nearest, neutral};

use crate::cli::{Cli, command};

/// A page, or a section of one.
struct Topic {
    name: &'static str,
    about: &'static str,
    page: &'static str,
    /// The heading of the section; the whole page without.
    section: Option<&'static str>,
}

macro_rules! page {
    ($file:literal) => {
        include_str!(concat!("../../docs/", $file))
    };
}

const TOPICS: [Topic; 23] = [
    topic("method", "how it measures, and what can't be seen", page!("method.md"), None),
    topic("units", "sizes, times and what the columns mean", page!("outputs.md"), Some("Units")),
    topic("findings", "the conclusions drawn, and from what", page!("outputs.md"), Some("Findings")),
    topic("exit-codes", "what they tell a script", page!("outputs.md"), Some("Exit codes")),
    topic("outputs", "formats, OpenMetrics, continuous benchmarks", page!("outputs.md"), None),
    topic("trends", "the history: trends, where it is, what is in it", page!("history.md"), None),
    topic("ci", "a build that fails on a figure: in turns, or by session", page!("ci.md"), None),
    topic("suites", "how to write an experiment of your own", page!("suites.md"), None),
    topic("filters", "how 'pipemark lines' works, and the suite lines", page!("lines.md"), None),
    topic("pipelines", "what 'pipemark why' sees, and how it judges", page!("why.md"), None),
    topic("wakeups", "why small messages cost what they cost", page!("pipes.md"), Some("Wakeups")),
    topic("capacity", "what a larger pipe is worth, and who may have one", page!("pipes.md"), Some("Capacity")),
    topic("zero-copy", "what vmsplice and splice save, and what they ask for", page!("pipes.md"), Some("Zero copy")),
    topic("block-size", "what the size of a write costs", page!("block-size.md"), None),
    topic("links", "suite ipc: pipes against sockets, queues and shared memory", page!("links.md"), None),
    topic("chains", "suite pipe-speed: what one more process costs", page!("chains.md"), None),
    topic("large-pipe", "an experiment of 2002, repeated", page!("large-pipe.md"), None),
    topic("quick", "the suite that runs where none is named", page!("quick.md"), None),
    topic("languages", "suite languages: the same pipe in nine languages", page!("languages.md"), None),
    topic("spark", "lines on many machines, with Spark or Dask", page!("scale.md"), None),
    topic("claims", "what five documents conclude, and what a run here says to it", page!("suites.md"), Some("Claims")),
    topic("sources", "the five documents that are measured again", page!("sources.md"), None),
    topic("performance", "what pipemark itself promises, and keeps", page!("performance.md"), None),
];

/// The topic of a word: a suite's name leads to its page. `languages` and `lines` are verbs, whose help names the topic.
fn named(word: &str) -> Option<&'static Topic> {
    let name = match word {
        "ipc" => "links",
        "pipe-speed" => "chains",
        other => other,
    };
    TOPICS.iter().find(|topic| topic.name == name)
}

const fn topic(name: &'static str, about: &'static str, page: &'static str, section: Option<&'static str>) -> Topic {
    Topic { name, about, page, section }
}

/// What `help` takes.
#[derive(Debug, Clone, Args)]
pub struct HelpOptions {
    /// A verb, such as bw or 'history show', or a topic, such as method; lists all without
    #[arg(value_name = "VERB|TOPIC")]
    words: Vec<String>,
}

/// Explains what was asked for.
pub fn run(options: &HelpOptions) -> Ending {
    check_stdout()?;
    let print = |text: String| Ok(Destination::Stdout.write("help", Ok(text))?);
    let Some(first) = options.words.first() else { return print(overview()) };
    if let (Some(topic), [_]) = (named(first), &options.words[..]) {
        return print(terminal().render(&manual(topic.page, topic.section)));
    }
    if Cli::command().find_subcommand(first).is_none() {
        let verbs = Cli::command();
        let verbs = verbs.get_subcommands().filter(|verb| !verb.is_hide_set()).map(|verb| verb.get_name());
        let hint = match nearest(first, TOPICS.iter().map(|topic| topic.name).chain(verbs)) {
            Some(word) => format!("did you mean {word}?"),
            None => "'pipemark help' lists them".to_owned(),
        };
        return Err(Stop::usage(format_args!("there is no verb and no topic '{}'; {hint}", neutral(first))));
    }
    // clap shows help in the middle of its work, and nowhere else with all that belongs to it.
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
    fn every_suite_has_a_page() {
        for (suite, _) in pipemark_run::plan::EMBEDDED {
            let help = || Cli::command().find_subcommand_mut(suite).map(|verb| verb.render_long_help().to_string());
            let explained = help().is_some_and(|help| help.contains("pipemark help filters"));
            assert!(named(suite).is_some() || explained, "{suite}");
        }
    }

    #[test]
    fn every_topic_has_text_that_fits() {
        for topic in &TOPICS {
            let text = terminal().render(&manual(topic.page, topic.section));
            assert!(text.lines().count() > 5, "{}: {text}", topic.name);
            let verb = Cli::command().find_subcommand(topic.name).is_some();
            assert!(!verb, "{} is a verb, which has its own help", topic.name);
        }
    }
}
