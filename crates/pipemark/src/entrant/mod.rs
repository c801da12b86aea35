//! The same job in each language: finding the entrants' folders, detecting their tools, building them, and judging what
//! they answer. entrants/README.md is the contract. Running them is `run`'s part; nothing here knows a language.

mod answer;
mod build;
mod command;
mod expected;
mod form;
mod tool;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::model::{Language, Program};

pub use answer::{Answer, Fault, judge};
pub use expected::Stream;
use form::Form;
pub use tool::Found;

/// Where entrants are looked for when nobody says where.
const FOLDER: &str = "entrants";

/// The entrants that were found, and what became of them.
#[derive(Default)]
pub struct Entrants {
    all: BTreeMap<Language, Entrant>,
    /// Where they were looked for.
    root: PathBuf,
    /// Programs, with the kind of checksum, that have shown that they look at the bytes.
    proven: RefCell<BTreeSet<(Language, Program, String)>>,
}

/// One language's folder.
pub struct Entrant {
    form: Form,
    folder: PathBuf,
    out: PathBuf,
    state: State,
}

/// How far an entrant has come.
enum State {
    /// Only its form was read.
    Found,
    /// Its tools are not here: why, and what to do.
    Missing(String),
    /// Its tools are here, and it could not be built.
    Broken(String),
    /// It can be run with these tools.
    Ready(Vec<Found>),
}

/// Why an entrant cannot be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Absent {
    /// A toolchain or the folder isn't here: the trial is skipped.
    Missing(String),
    /// It is here and does not build: the trial failed.
    Broken(String),
}

/// A program that can be started.
#[derive(Debug, Clone)]
pub struct Runnable {
    /// The language's name as its answers have to give it.
    pub name: String,
    /// The command, without the options of the contract.
    pub words: Vec<String>,
    /// Where it is started.
    pub folder: PathBuf,
}

/// What became of one entrant's preparation, for whoever waits.
#[derive(Debug, Clone)]
pub enum Step<'a> {
    /// Its tools are being looked for, then its programs built.
    Begun(&'a Language),
    /// It is ready; whether anything had to be built.
    Ready { language: &'a Language, built: bool },
    /// It cannot be run.
    Absent(&'a Language, Absent),
}

/// When an entrant is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Build {
    /// Whatever was built before.
    Always,
    /// Where its sources, commands or tools have changed since.
    Stale,
}

impl Entrants {
    /// Reads the forms of all entrants in `folder`, or in the folder `entrants` of the working directory.
    ///
    /// # Errors
    /// A sentence, when there is no such folder or a form in it is wrong.
    pub fn find(folder: Option<&Path>) -> Result<Entrants, String> {
        let given = folder.unwrap_or(Path::new(FOLDER));
        let root = fs::canonicalize(given).map_err(|error| match folder {
            Some(folder) => format!("the entrants' folder {} cannot be used: {error}", folder.display()),
            None => format!(
                "there is no folder '{FOLDER}' here; start this in pipemark's source tree, or name the folder with --entrants"
            ),
        })?;
        let unreadable = |error| format!("the entrants' folder {} cannot be read: {error}", root.display());
        let build = root.parent().unwrap_or(&root).join("build").join(FOLDER);
        let mut all = BTreeMap::new();
        for entry in fs::read_dir(&root).map_err(unreadable)? {
            let folder = entry.map_err(unreadable)?.path();
            let file = folder.join("entrant.toml");
            if !file.is_file() {
                continue;
            }
            let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let language: Language = name.parse().map_err(|error| format!("{}: {error}", folder.display()))?;
            let form = Form::read(&file)?;
            all.insert(language, Entrant { form, folder, out: build.join(name), state: State::Found });
        }
        if all.is_empty() {
            return Err(format!("the folder {} holds no entrants: no FOLDER/entrant.toml", root.display()));
        }
        Ok(Entrants { all, root, proven: RefCell::default() })
    }

    /// The languages that have a folder, by its name.
    pub fn languages(&self) -> impl Iterator<Item = &Language> {
        self.all.keys()
    }

    /// The folder of `language`.
    pub fn get(&self, language: &Language) -> Option<&Entrant> {
        self.all.get(language)
    }

    /// Looks for the tools of `languages`, builds what has to be built, and says so to `told`. What fails is kept, not
    /// returned: it is the outcome of the trials that want it.
    pub fn prepare<'a>(
        &mut self,
        languages: impl IntoIterator<Item = &'a Language>,
        when: Build,
        mut told: impl FnMut(Step<'_>),
    ) {
        for language in languages {
            let Some(entrant) = self.all.get_mut(language) else { continue };
            told(Step::Begun(language));
            let tools = match entrant.detect() {
                Ok(tools) => tools,
                Err(reason) => {
                    entrant.state = State::Missing(reason.clone());
                    told(Step::Absent(language, Absent::Missing(reason)));
                    continue;
                }
            };
            match entrant.build(&tools, when) {
                Ok(built) => {
                    entrant.state = State::Ready(tools);
                    told(Step::Ready { language, built });
                }
                Err(reason) => {
                    entrant.state = State::Broken(reason.clone());
                    told(Step::Absent(language, Absent::Broken(reason)));
                }
            }
        }
    }

    /// How to start a program.
    ///
    /// # Errors
    /// When it isn't here or could not be built.
    pub fn runnable(&self, language: &Language, program: Program) -> Result<Runnable, Absent> {
        let Some(entrant) = self.all.get(language) else {
            let place = if self.root.as_os_str().is_empty() { FOLDER.into() } else { self.root.display().to_string() };
            return Err(Absent::Missing(format!("there is no entrant '{language}' in {place}")));
        };
        match &entrant.state {
            State::Found => Err(Absent::Missing(format!("the entrant '{language}' was not built"))),
            State::Missing(reason) => Err(Absent::Missing(reason.clone())),
            State::Broken(reason) => Err(Absent::Broken(reason.clone())),
            State::Ready(tools) => Ok(Runnable {
                name: entrant.form.name.clone(),
                words: entrant.expand(&entrant.program(program).run, tools),
                folder: entrant.folder.clone(),
            }),
        }
    }

    /// Whether this program has still to show that it looks at the bytes; asked once, then no more.
    pub fn to_be_proven(&self, language: &Language, program: Program, pattern: &str) -> bool {
        self.proven.borrow_mut().insert((language.clone(), program, pattern.to_owned()))
    }
}

impl Entrant {
    /// The language's name for people.
    pub fn name(&self) -> &str {
        &self.form.name
    }

    /// Half a sentence on how a program is written.
    pub fn about(&self, program: Program) -> &str {
        &self.program(program).about
    }

    /// The tools, each with the first way that works.
    ///
    /// # Errors
    /// Which tool is missing, why it is not accepted, and how to install it.
    pub fn detect(&self) -> Result<Vec<Found>, String> {
        self.form.tools.iter().map(|tool| tool.detect(&self.folder)).collect()
    }

    fn program(&self, program: Program) -> &form::ProgramForm {
        match program {
            Program::Idiomatic => &self.form.idiomatic,
            Program::Tuned => &self.form.tuned,
        }
    }

    /// A command with its tools and folder put in; a tool may be more than one word.
    fn expand(&self, words: &[String], tools: &[Found]) -> Vec<String> {
        let out = self.out.to_string_lossy();
        words
            .iter()
            .flat_map(|word| match tools.iter().find(|tool| *word == format!("{{{}}}", tool.name)) {
                Some(tool) => tool.words.clone(),
                None => vec![word.replace("{out}", &out)],
            })
            .collect()
    }
}
