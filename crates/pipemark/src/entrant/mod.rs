//! The same job in each language: finding the entrants' folders, detecting their tools, building them, and judging what
//! they answer. entrants/README.md is the contract. Running them is `run`'s part; nothing here knows a language.

mod answer;
mod command;
mod expected;
mod filters;
mod form;
mod tool;
mod workshop;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::model::{Filter, Language, Program};

pub use answer::{Answer, Fault, judge};
pub use expected::Stream;
use filters::Filters;
pub use filters::on_path;
use form::Form;
pub use tool::Found;
use workshop::Workshop;

/// Where entrants are looked for when nobody says where.
const FOLDER: &str = "entrants";

/// The entrants that were found, and what became of them.
#[derive(Default)]
pub struct Entrants {
    all: BTreeMap<Language, Entrant>,
    /// The document's four filters of lines, or why there are none.
    filters: Option<Result<Filters, String>>,
    /// Where they were looked for.
    root: PathBuf,
    /// Programs, with the kind of checksum, that have shown that they look at the bytes.
    proven: RefCell<BTreeSet<(Language, Program, String)>>,
}

/// One language's folder.
pub struct Entrant {
    form: Form,
    workshop: Workshop,
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
            let workshop = Workshop::new(&form.tools, &form.build, folder, build.join(name));
            all.insert(language, Entrant { form, workshop });
        }
        if all.is_empty() {
            return Err(format!("the folder {} holds no entrants: no FOLDER/entrant.toml", root.display()));
        }
        Ok(Entrants { all, filters: None, root, proven: RefCell::default() })
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
            match entrant.workshop.prepare(when) {
                Ok(built) => told(Step::Ready { language, built }),
                Err(absent) => told(Step::Absent(language, absent)),
            }
        }
    }

    /// Builds the document's filters of lines where that is due, from `folder` or the folder `entrants` of the working
    /// directory. What fails is kept: it is the outcome of the trials that want them.
    pub fn prepare_filters(&mut self, folder: Option<&Path>) {
        self.filters = Some(Filters::prepared(folder));
    }

    /// The command of a filter of lines.
    ///
    /// # Errors
    /// When it isn't here or could not be built.
    pub fn filter(&self, filter: Filter) -> Result<Vec<String>, Absent> {
        filters::words(filter, self.filters.as_ref())
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
        Ok(Runnable {
            name: entrant.form.name.clone(),
            words: entrant.workshop.command(&entrant.program(program).run)?,
            folder: entrant.workshop.folder().to_owned(),
        })
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
        self.workshop.detect()
    }

    fn program(&self, program: Program) -> &form::ProgramForm {
        match program {
            Program::Idiomatic => &self.form.idiomatic,
            Program::Tuned => &self.form.tuned,
        }
    }
}
