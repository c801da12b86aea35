//! Entrants: the programs in several languages, and the line filters, that are compared with each other. This crate
//! reads their descriptions, detects their tools, builds them, and checks the answers of the languages' programs.
//! entrants/README.md is the contract that they follow. The crate pipemark-run runs them. Nothing in this crate names a
//! particular language or filter.
#![forbid(unsafe_code)]

mod against;
mod answer;
mod byte_stream;
pub mod contract;
mod form;
mod link_file;
mod links;
mod printed;
mod project;
mod tool;
mod version;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use form::{EntrantFile, EntrantProgram};

use pipemark_host::child::RunError;
use pipemark_model::{Filter, Language, Program, did_you_mean};

pub use against::{AgainstFigure, AgainstProgram};
pub use answer::{ProgramAnswer, parse_answer, quoted};
pub use byte_stream::ByteStream;
pub use form::{FilterTask, FindingForm};
pub use link_file::{Boundaries, Broker, FirstEnd, LinkFile};
pub use links::{Links, RunnableLink};
pub use printed::PrintedFigure;
pub use project::{Prints, Project, Runnable};
pub use tool::on_path;

/// The default directory of entrants.
const DIRECTORY: &str = "entrants";

/// The bundled filters, by directory name in the source tree.
const EMBEDDED: [(&str, &str); 3] = [
    ("tools", include_str!("../entrants/tools.toml")),
    ("lines", include_str!("../entrants/lines.toml")),
    ("spark", include_str!("../entrants/spark.toml")),
];

/// Properties of the bundled filters.
pub static FILTERS: LazyLock<Vec<(Filter, EntrantProgram)>> = LazyLock::new(|| {
    let forms = EMBEDDED.iter().map(|(directory, text)| EntrantFile::parse(directory, text).expect("a test reads it"));
    forms.flat_map(|form| form.filter).collect()
});

/// The expected output of a filter.
pub fn filter_task(filter: &Filter) -> FilterTask {
    FILTERS.iter().find(|(name, _)| name == filter).map_or(FilterTask::Transform, |(_, form)| form.does)
}

/// The entrants found, and the result of preparing each.
#[derive(Default)]
pub struct Entrants {
    languages: BTreeMap<Language, Project>,
    filters: Vec<Project>,
    /// Programs that the user added, by the names of their rows.
    against: BTreeMap<Language, AgainstProgram>,
    /// Links by other programs.
    pub links: Links,
    /// The directory that was searched; `None` if it doesn't exist.
    root: Option<PathBuf>,
}

/// A step in preparing one entrant, for progress messages.
#[derive(Debug, Clone)]
pub enum Step<'a> {
    /// The entrant's tools are being detected. Then its programs are built.
    Begun(&'a str),
    /// The entrant can run. `built` says whether anything had to be built.
    Ready { name: &'a str, built: bool },
    /// The entrant cannot run, because a tool is missing or the build failed.
    Absent(&'a str, RunError),
}

/// When to build an entrant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rebuild {
    /// Always.
    Always,
    /// If its sources, commands or tools have changed since the last build.
    IfStale,
}

impl Entrants {
    /// Only links by other programs.
    pub fn of_links(links: Links) -> Entrants {
        Entrants { links, ..Entrants::default() }
    }

    /// Reads the descriptions of all entrants in `directory` (default: `entrants` in the working directory), and of the
    /// bundled filters.
    ///
    /// # Errors
    /// A message, if the named directory is unusable or a description is wrong.
    pub fn find(directory: Option<&Path>) -> Result<Entrants, String> {
        let root = match (fs::canonicalize(directory.unwrap_or(Path::new(DIRECTORY))), directory) {
            (Err(error), Some(directory)) => {
                return Err(format!("the entrants' directory {} cannot be used: {error}", directory.display()));
            }
            (root, _) => root.ok(),
        };
        let mut entrants = Entrants { root: root.clone(), ..Entrants::default() };
        let mut embedded = BTreeMap::from_iter(EMBEDDED);
        if let Some(root) = root {
            let unreadable = |error| format!("the entrants' directory {} cannot be read: {error}", root.display());
            for entry in fs::read_dir(&root).map_err(unreadable)? {
                let directory = entry.map_err(unreadable)?.path();
                for file in ["entrant.toml", "filters.toml"].map(|name| directory.join(name)) {
                    if file.is_file() {
                        let name = directory.file_name().unwrap_or_default().to_string_lossy();
                        embedded.remove(&*name);
                        entrants.add(&name, EntrantFile::read(&file)?, Ok(directory.clone()))?;
                    }
                }
            }
            if entrants.languages.is_empty() && entrants.filters.is_empty() {
                return Err(format!(
                    "the directory {} holds no entrants: no DIR/entrant.toml or DIR/filters.toml",
                    root.display()
                ));
            }
        }
        for (name, text) in embedded {
            let missing = match directory {
                Some(directory) => format!("there is no directory '{name}' in {}", directory.display()),
                None => no_directory(&format!("{DIRECTORY}/{name}")),
            };
            entrants.add(name, EntrantFile::parse(name, text)?, Err(missing))?;
        }
        Ok(entrants)
    }

    fn add(&mut self, name: &str, form: EntrantFile, directory: Result<PathBuf, String>) -> Result<(), String> {
        let top = directory.as_deref().ok().and_then(Path::parent).and_then(Path::parent).unwrap_or(Path::new("."));
        let out = top.join("build").join(DIRECTORY).join(name);
        if let Some(double) = form.filter.keys().find(|filter| self.project_of(filter).is_some()) {
            return Err(format!(
                "the filter '{double}' of the directory '{name}' exists already; rename one of the two"
            ));
        }
        let language = form.filter.is_empty();
        let mut projects = Project::from_file(form, directory, out);
        if language {
            let language: Language = name.parse().map_err(|error| format!("{DIRECTORY}/{name}: {error}"))?;
            self.languages.extend(projects.pop().map(|project| (language, project)));
        }
        self.filters.append(&mut projects);
        Ok(())
    }

    /// The languages that have a directory, by name.
    ///
    /// # Errors
    /// If there are none.
    pub fn languages(&self) -> Result<&BTreeMap<Language, Project>, String> {
        self.root.as_ref().map(|_| &self.languages).ok_or_else(|| no_directory(DIRECTORY))
    }

    /// Adds one of the user's own programs.
    pub fn add_against(&mut self, program: AgainstProgram) {
        self.against.insert(program.name.clone(), program);
    }

    /// The user's own program that is measured as this filter.
    fn against_filter(&self, filter: &Filter) -> Option<&AgainstProgram> {
        self.against.values().find(|own| own.name.as_str() == filter.as_str())
    }

    fn project_of(&self, filter: &Filter) -> Option<&Project> {
        self.filters.iter().find(|project| project.programs.contains_key(filter.as_str()))
    }

    /// Checks that entrants with these names exist.
    ///
    /// # Errors
    /// The first unknown name, with the closest known name.
    pub fn check<'a>(
        &self,
        languages: &[Language],
        filters: impl IntoIterator<Item = &'a Filter>,
    ) -> Result<(), String> {
        let all: Vec<&str> = self.languages.keys().map(Language::as_str).collect();
        for language in languages {
            check_known("entrant", language.as_str(), &all)?;
        }
        let all: Vec<&str> = self.filters.iter().flat_map(|shop| shop.programs.keys()).map(String::as_str).collect();
        let mut bundled = filters.into_iter().filter(|filter| self.against_filter(filter).is_none());
        bundled.try_for_each(|filter| check_known("filter", filter.as_str(), &all))
    }

    /// Detects the tools of these languages and filters, builds what needs building, and passes progress to `report`. A
    /// failure isn't returned but stored, and becomes the outcome of the trials that need the entrant.
    pub fn prepare(
        &mut self,
        languages: &BTreeSet<&Language>,
        filters: &BTreeSet<&Filter>,
        when: Rebuild,
        mut report: impl FnMut(Step<'_>),
    ) {
        let languages = self.languages.iter_mut().filter(|(name, _)| languages.contains(name));
        let named = languages.map(|(name, project)| (name.to_string(), project));
        let of_filters = self.filters.iter_mut().filter_map(|project| {
            let wanted = filters.iter().find(|filter| project.programs.contains_key(filter.as_str()))?;
            Some((wanted.to_string(), project))
        });
        for (name, project) in named.chain(of_filters) {
            report(Step::Begun(&name));
            match project.prepare(when) {
                Ok(built) => report(Step::Ready { name: &name, built }),
                Err(error) => report(Step::Absent(&name, error)),
            }
        }
    }

    /// The command that starts a language's program.
    ///
    /// # Errors
    /// If it is missing or could not be built.
    pub fn program(&self, language: &Language, program: Program) -> Result<Runnable, RunError> {
        if let Some(own) = self.against.get(language) {
            return runnable(own);
        }
        let Some(project) = self.languages.get(language) else {
            let place = self.root.as_ref().map_or_else(|| DIRECTORY.into(), |root| root.display().to_string());
            return Err(RunError::NotHere(format!("there is no entrant '{language}' in {place}")));
        };
        project.command(program.name())
    }

    /// The command that starts a line filter, and its expected output.
    ///
    /// # Errors
    /// If it is missing or could not be built.
    pub fn filter(&self, filter: &Filter) -> Result<(Runnable, FilterTask), RunError> {
        if let Some(own) = self.against_filter(filter) {
            return Ok((runnable(own)?, FilterTask::Transform));
        }
        let found = self.project_of(filter).and_then(|project| Some((project, project.programs.get(filter.as_str())?)));
        let (project, form) = found.ok_or_else(|| RunError::NotHere(format!("there is no filter '{filter}'")))?;
        Ok((project.command(filter.as_str())?, form.does))
    }
}

/// The command that starts a program of the user or of a suite.
fn runnable(own: &AgainstProgram) -> Result<Runnable, RunError> {
    if own.optional && on_path(&own.words[0]).is_none() {
        return Err(RunError::NotHere(format!("{}, which runs '{}', is not installed", own.words[0], own.name)));
    }
    let directory = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    let prints = Some(Prints::Custom(own.clone()));
    Ok(Runnable { name: own.words.join(" "), words: own.words.clone(), directory, compares: false, prints })
}

fn no_directory(name: &str) -> String {
    format!(
        "there is no directory '{name}' here; run this in pipemark's source tree, or name its directory \
         '{DIRECTORY}' with --entrants (packages have it in share/pipemark; copy it to where you may write)"
    )
}

fn check_known(what: &str, name: &str, all: &[&str]) -> Result<(), String> {
    if all.contains(&name) {
        return Ok(());
    }
    let hint = did_you_mean(name, all.iter().copied());
    Err(format!("there is no {what} '{name}'; available: {}{hint}", all.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundled_filters_have_their_tasks() {
        let filter_task = |name: &str| filter_task(&name.parse().unwrap());
        assert_eq!(
            ["sink", "pv", "streamer", "sed"].map(filter_task),
            [FilterTask::Count, FilterTask::Copy, FilterTask::Transform, FilterTask::Transform]
        );
        for form in FILTERS.iter().filter_map(|(_, form)| form.finding.as_ref()) {
            assert!(FILTERS.iter().any(|(name, _)| *name == form.to) && form.says.contains("{figures}"), "{form:?}");
        }
    }
}
