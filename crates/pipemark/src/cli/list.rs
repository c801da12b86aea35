//! `pipemark list`: lists what can be measured, what isn't available here, and this machine's properties.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Args, Command};

use pipemark_console::{ExitError, FormatOption, VerbResult, WordChoice, one_of};
use pipemark_model::{Host, Job, Key, LinkKind, Place, Settings, Value};
use pipemark_run::available::missing;
use pipemark_run::plan::{EMBEDDED, Suite, VolumeScale, embedded};

use crate::cli::choices::{ListedChoice, choices};
use crate::cli::entrants::{self, EntrantOptions};
use crate::cli::links::{self, LinkOptions};
use crate::cli::machine::host as machine_sheet;
use crate::cli::{rehearsal, suite_file};

/// A part of the list, which can be requested by name.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Part {
    Suites,
    Choices(Key),
    Languages,
    Contract,
    Machine,
}

/// The parts by name.
const PARTS: [WordChoice<Part>; 10] = [
    ("suites", Part::Suites, "Predefined experiments"),
    ("links", Part::Choices(Key::Link), "Mechanisms between two processes"),
    ("senders", Part::Choices(Key::Send), "Ways to send"),
    ("receivers", Part::Choices(Key::Recv), "Ways to receive"),
    ("waits", Part::Choices(Key::Wait), "Wait policies"),
    ("pages", Part::Choices(Key::Pages), "Page sizes of the buffers"),
    ("placements", Part::Choices(Key::Place), "Placements on CPUs"),
    ("languages", Part::Languages, "Languages of 'pipemark run languages', with their tools"),
    ("contract", Part::Contract, "Reference code for links by other programs"),
    ("machine", Part::Machine, "CPUs, caches, pipe limits, permitted system calls, load"),
];

/// What to list.
#[derive(Debug, Clone, PartialEq)]
enum ListSubject {
    Part(Part),
    /// The trials of the suite with this name, or of the suite in this file.
    Trials(String),
}

/// Parses a [`ListSubject`]. Help and completions list the parts.
#[derive(Debug, Clone, Copy)]
struct SubjectParser;

impl TypedValueParser for SubjectParser {
    type Value = ListSubject;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<ListSubject, clap::Error> {
        let word = value.to_string_lossy();
        let is_part = PARTS.iter().any(|(name, ..)| *name == word);
        if !is_part && (word.contains('/') || word.ends_with(".toml") || embedded(&word).is_some()) {
            return Ok(ListSubject::Trials(word.into_owned()));
        }
        one_of(&PARTS).parse_ref(command, arg, value).map(ListSubject::Part)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(PARTS.iter().map(|&(name, _, help)| PossibleValue::new(name).help(help))))
    }
}

/// The parameters whose choices are listed.
const LISTED: [(Key, &str); 6] = [
    (Key::Link, "Links (--link)"),
    (Key::Send, "Senders (--send)"),
    (Key::Recv, "Receivers (--recv)"),
    (Key::Wait, "Wait policies (--wait)"),
    (Key::Pages, "Pages (--pages)"),
    (Key::Place, "Placements (--place)"),
];

/// The options of `list`.
#[derive(Debug, Clone, Args)]
pub struct ListOptions {
    /// What to list; a suite or suite file lists its trials [default: everything that can be measured]
    #[arg(value_name = "WHAT|SUITE|FILE", value_parser = SubjectParser)]
    subject: Option<ListSubject>,
    #[command(flatten)]
    entrants: EntrantOptions,
    #[command(flatten)]
    links: LinkOptions,
    /// Write the reference code to DIR; for 'list contract'
    #[arg(long, value_name = "DIR", help_heading = "Links by other programs")]
    write: Option<PathBuf>,
    #[command(flatten)]
    format: FormatOption,
}

/// Prints the list.
pub fn run(options: &ListOptions) -> VerbResult {
    let part = match &options.subject {
        Some(ListSubject::Trials(word)) => {
            let mut plan = suite_file::find(word)?.expand(VolumeScale::ONE).map_err(ExitError::usage)?;
            plan.prepend_memory_copy();
            return Ok(options.format.print(&rehearsal::sheet(&[plan], 1), None)?);
        }
        Some(ListSubject::Part(part)) => Some(*part),
        None => None,
    };
    if part == Some(Part::Languages) {
        return entrants::list(&options.entrants, &options.format);
    }
    match (&options.write, part == Some(Part::Contract)) {
        (Some(directory), true) => return links::write_contract(directory),
        (None, true) => return Err(ExitError::usage("'list contract' needs a directory: --write DIR")),
        (Some(_), false) => return Err(ExitError::usage("--write is for 'list contract'; omit it")),
        (None, false) => {}
    }
    let machine = pipemark_host::survey();
    if part == Some(Part::Machine) {
        let json = serde_json::to_string_pretty(&machine)?;
        return Ok(options.format.print(&machine_sheet(&machine), Some(&json))?);
    }
    let mut suites = Vec::new();
    for (name, text) in EMBEDDED {
        suites.push(choice(
            name,
            &Suite::parse(&format!("suites/{name}.toml"), text).map_err(ExitError::usage)?.title,
            None,
        ));
    }
    let mut sections = sections(&machine, suites);
    sections[1].1.extend(links::listed(&options.links).map_err(ExitError::usage)?);
    if let Some(part) = part {
        let parts = std::iter::once(Part::Suites).chain(LISTED.map(|(key, _)| Part::Choices(key)));
        let kept = parts.zip(sections).filter(|(own, _)| *own == part);
        sections = kept.map(|(_, section)| section).collect();
    }
    Ok(options.format.print(&choices(&sections), None)?)
}

fn choice(name: &str, about: &str, missing: Option<String>) -> ListedChoice {
    ListedChoice { name: name.to_owned(), about: about.to_owned(), missing }
}

/// All choices with their descriptions. A choice that can't be used on `host` has the reason.
fn sections(host: &Host, suites: Vec<ListedChoice>) -> Vec<(String, Vec<ListedChoice>)> {
    let section = |(key, heading): (Key, &str)| {
        let all = key.choices().into_iter();
        let all = all.map(|(name, about)| choice(name, about, missing_here(key, name, host)));
        let pinned = choice("W:R", "on the CPUs with these numbers, such as 0:1", None);
        (heading.to_owned(), all.chain((key == Key::Place).then_some(pinned)).collect())
    };
    std::iter::once(("Suites (pipemark run SUITE)".to_owned(), suites)).chain(LISTED.map(section)).collect()
}

/// Why a choice can't be used here; `None` if it can. The choice is checked with the first link that accepts it.
fn missing_here(key: Key, word: &str, host: &Host) -> Option<String> {
    let value = Value::parse(key, word).expect("a word of the parameter");
    let job = |link| Job::try_from(Settings::of([Value::Place(Place::Free), Value::Link(link), value.clone()])).ok();
    missing(&LinkKind::iter().find_map(job)?, host)
}

#[cfg(test)]
mod tests {
    use pipemark_model::Permission;
    use pipemark_show::{Characters, Colour, Terminal};

    use super::*;

    fn text(host: &Host, suites: &[(&str, &str)]) -> String {
        let suites = suites.iter().map(|(name, about)| choice(name, about, None)).collect();
        let sheet = choices(&sections(host, suites));
        Terminal { width: 80, colour: Colour::Never, characters: Characters::Unicode }.render(&sheet)
    }

    #[test]
    fn every_word_is_listed_within_80_columns() {
        let host = pipemark_host::survey();
        let text = text(&host, &[("quick", "pipes in half a minute"), ("block-size", &"long ".repeat(40))]);
        let words = LISTED.into_iter().flat_map(|(key, _)| key.choices()).map(|(word, _)| word);
        for word in words.chain(["quick", "block-size"]) {
            assert!(text.lines().any(|line| line.split_whitespace().next() == Some(word)), "{word} is not in\n{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn json_of_the_machine_reads_back() {
        let host = pipemark_host::survey();
        let json = serde_json::to_string_pretty(&host).unwrap();
        assert_eq!(serde_json::from_str::<Host>(&json).unwrap(), host);
    }

    #[test]
    fn unavailable_features_have_a_reason() {
        let mut host = pipemark_host::survey();
        host.permissions = vec![Permission { name: "vmsplice".to_owned(), missing: Some("refused".to_owned()) }];
        host.topology.truncate(1);
        host.huge_pages = Some("never".to_owned());
        let text = text(&host, &[]);
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        // Two senders and one receiver need vmsplice. The next checks are for huge pages and two CPUs.
        assert_eq!(words.matches("needs vmsplice: refused").count(), 3, "{text}");
        assert_eq!(words.matches("not available here: ").count(), 5, "{text}");
    }
}
