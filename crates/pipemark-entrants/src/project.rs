//! Entrants that share a directory of sources: detects their tools, and builds them if sources, commands or tools have
//! changed since the last build.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

use rustix::fs::{FlockOperation, flock};

use pipemark_host::child::RunError;

use crate::Rebuild;
use crate::against::AgainstProgram;
use crate::contract;
use crate::form::{EntrantFile, EntrantProgram, Tool};
use crate::link_file::LinkFile;
use crate::tool::{self, FoundTool};

/// The time limit of a build command. A cold Zig or Rust build takes half a minute on a slow machine.
const LIMIT: Duration = Duration::from_secs(600);
/// The number of bytes quoted from the end of a failed build's output, where compilers print their summary.
const MAX_QUOTE: u64 = 1500;
/// The depth to which directories are searched for sources. pipemark's own sources are one directory deep.
const MAX_DEPTH: u32 = 4;
/// The name of the program that may have substitutes.
const TUNED: &str = "tuned";
/// The placeholder for the build directory in commands.
const OUT: &str = "{out}";
/// The placeholder for the directory with the reference code of outside links.
const CONTRACT: &str = "{contract}";

/// Programs that are built together, with their tools and their state.
pub struct Project {
    /// The project's name for users.
    pub name: String,
    /// The programs, by their names in trials.
    pub programs: BTreeMap<String, EntrantProgram>,
    /// Substitutes for the tuned program, in order of preference.
    alternatives: Vec<EntrantProgram>,
    /// For each program that doesn't work with the tools found, why the tools are too old or too new.
    unsupported: BTreeMap<String, String>,
    tools: Vec<Tool>,
    commands: Vec<Vec<String>>,
    /// The directory of the sources, or the reason why it is missing.
    directory: Result<PathBuf, String>,
    out: PathBuf,
    /// The directory for the reference code of outside links; `None` for other programs.
    contract: Option<PathBuf>,
    /// The tools found, or why the project cannot be run; `None` before the project is prepared.
    state: Option<Result<Vec<FoundTool>, RunError>>,
}

/// A program that can be started.
#[derive(Debug, Clone)]
pub struct Runnable {
    /// The program's name in output. A language's programs repeat it in their answers.
    pub name: String,
    /// The command and its arguments.
    pub words: Vec<String>,
    /// The directory of the program's description.
    pub directory: PathBuf,
    /// Whether the program compares each block with the expected block, instead of summing the block's words.
    pub compares: bool,
    /// What the program prints in place of an answer; `None` if it follows the contract.
    pub prints: Option<Prints>,
}

/// The output of a program that does not follow the contract.
#[derive(Debug, Clone)]
pub enum Prints {
    /// A rate, and perhaps the number of bytes.
    Rate {
        /// The unit of the rate.
        unit: String,
        /// The word after the number of bytes; `None` if the program moves the requested total.
        bytes: Option<String>,
    },
    /// Output of a program that the user added, as the user describes it.
    Custom(AgainstProgram),
}

impl Project {
    /// The projects described by `form`, a file from `directory`. They are built in `out`. A filter that needs no
    /// building becomes a project of its own, with only the tools that it needs.
    pub fn from_file(form: EntrantFile, directory: Result<PathBuf, String>, out: PathBuf) -> Vec<Project> {
        let all_tools = form.filter.is_empty();
        let language = [("idiomatic", form.idiomatic), ("tuned", form.tuned)];
        let language = language.into_iter().filter_map(|(name, program)| Some((name.to_owned(), program?)));
        let mut groups: Vec<BTreeMap<String, EntrantProgram>> = vec![BTreeMap::from_iter(language)];
        for (name, program) in form.filter {
            let program = (name.to_string(), program);
            match program.1.run.iter().any(|word| word.contains(OUT)) {
                true => groups[0].extend([program]),
                false => groups.push(BTreeMap::from_iter([program])),
            }
        }
        let project = |(index, programs): (usize, BTreeMap<String, EntrantProgram>)| {
            let commands = if index == 0 { form.build.commands.clone() } else { Vec::new() };
            let needed = |tool: &&Tool| {
                let mut words = commands.iter().chain(programs.values().map(|program| &program.run)).flatten();
                all_tools || words.any(|word| *word == format!("{{{}}}", tool.name))
            };
            let tools = form.tools.iter().filter(needed).cloned().collect();
            let (directory, out) = (directory.clone(), out.clone());
            let alternatives = if index == 0 { form.tuned_else.clone() } else { Vec::new() };
            let (name, unsupported) = (form.name.clone(), BTreeMap::new());
            Project {
                name,
                programs,
                alternatives,
                unsupported,
                tools,
                commands,
                directory,
                out,
                contract: None,
                state: None,
            }
        };
        groups.into_iter().enumerate().filter(|(_, group)| !group.is_empty()).map(project).collect()
    }

    /// The programs of the outside link `name`, described by `file` from `directory`. They are built in `out`, with the
    /// reference code in `contract`.
    pub(crate) fn of_link(name: &str, file: &LinkFile, directory: PathBuf, out: PathBuf, contract: PathBuf) -> Project {
        Project {
            name: name.to_owned(),
            programs: file.as_entrants(),
            alternatives: Vec::new(),
            unsupported: BTreeMap::new(),
            tools: file.tools.clone(),
            commands: file.build.commands.clone(),
            directory: Ok(directory),
            out,
            contract: Some(contract),
            state: None,
        }
    }

    /// Finds each tool with the first of its commands that works.
    ///
    /// # Errors
    /// The tool that is missing or not accepted, the reason, and how to install the tool.
    pub fn detect(&self) -> Result<Vec<FoundTool>, String> {
        let directory = self.directory.as_deref().unwrap_or(Path::new("."));
        self.tools.iter().map(|tool| tool.detect(directory)).collect()
    }

    /// Finds the tools on the path, without running them.
    ///
    /// # Errors
    /// The tool that is missing, and how to install it.
    pub fn locate(&self) -> Result<Vec<FoundTool>, String> {
        self.tools.iter().map(Tool::locate).collect()
    }

    /// Detects the tools and builds the programs that need building. Returns whether anything was built.
    ///
    /// # Errors
    /// What is missing, or why the build fails. [`command`](Self::command) then returns the same error.
    pub fn prepare(&mut self, when: Rebuild) -> Result<bool, RunError> {
        let ready = match &self.directory {
            Err(reason) if !self.build_commands().is_empty() => Err(RunError::NotHere(reason.clone())),
            _ => self.detect().map_err(RunError::NotHere),
        };
        if let Ok(tools) = &ready {
            self.choose_programs(tools);
        }
        let built = ready.and_then(|tools| Ok((self.build(&tools, when).map_err(RunError::Failed)?, tools)));
        let (built, tools) = (built.clone().map(|(built, _)| built), built.map(|(_, tools)| tools));
        self.state = Some(tools);
        built
    }

    /// Replaces the tuned program by a substitute if the tools are too old or too new for it. Then records which
    /// programs don't work with these tools, and why.
    fn choose_programs(&mut self, tools: &[FoundTool]) {
        if let Some(tuned) = self.programs.get_mut(TUNED)
            && tool::unsupported(&tuned.with, tools).is_some()
            && let Some(fit) = self.alternatives.iter().find(|own| tool::unsupported(&own.with, tools).is_none())
        {
            *tuned = fit.clone();
        }
        let reasons = |name: &str, own: &EntrantProgram| {
            let first = tool::unsupported(&own.with, tools)?;
            let others = self
                .alternatives
                .iter()
                .filter(|_| name == TUNED)
                .filter_map(|own| tool::unsupported(&own.with, tools));
            Some(std::iter::once(first).chain(others).collect::<Vec<_>>().join("; "))
        };
        let unsupported = self.programs.iter().filter_map(|(name, own)| Some((name.clone(), reasons(name, own)?)));
        self.unsupported = unsupported.collect();
    }

    /// The command that starts a program, with tools and directories filled in.
    ///
    /// # Errors
    /// If it is missing or could not be built.
    pub fn command(&self, program: &str) -> Result<Runnable, RunError> {
        let directory = self.directory.clone().unwrap_or_else(|_| PathBuf::from("."));
        let tools = match &self.state {
            None => return Err(RunError::NotHere(format!("{program} in {} was not built", directory.display()))),
            Some(state) => state.as_ref().map_err(RunError::clone)?,
        };
        if let Some(reason) = self.unsupported.get(program) {
            return Err(RunError::NotHere(format!(
                "the {program} program of {} needs another version: {reason}",
                self.name
            )));
        }
        let program = self.programs.get(program);
        let program = program.ok_or_else(|| RunError::NotHere(format!("{} has no such program", self.name)))?;
        let words = self.expand(&program.run, tools);
        let bytes = program.prints_bytes.clone();
        let prints = program.prints.clone().map(|unit| Prints::Rate { unit, bytes });
        Ok(Runnable { name: self.name.clone(), words, directory, compares: program.compares, prints })
    }

    /// Replaces placeholders. The placeholder of a tool may become several words.
    fn expand(&self, words: &[String], tools: &[FoundTool]) -> Vec<String> {
        let directory = self.directory.as_ref().map_or_else(|_| ".".into(), |directory| directory.to_string_lossy());
        let expanded = |word: &String| match tools.iter().find(|tool| *word == format!("{{{}}}", tool.name)) {
            Some(tool) => tool.words.clone(),
            // Every process of a run is a copy of this program until it executes another program, so this path is valid
            // in all of them.
            None if word == "{pipemark}" => vec!["/proc/self/exe".to_owned()],
            None if word == "{cpus}" => vec![thread::available_parallelism().map_or(1, usize::from).to_string()],
            // Files written for 0.1.0 call it {folder}.
            None => {
                let contract = self.contract.as_ref().map_or_else(|| CONTRACT.into(), |path| path.to_string_lossy());
                let word = word.replace(OUT, &self.out.to_string_lossy()).replace(CONTRACT, &contract);
                vec![word.replace("{directory}", &directory).replace("{folder}", &directory)]
            }
        };
        words.iter().flat_map(expanded).collect()
    }

    /// Builds the programs if needed. Returns whether they were built.
    ///
    /// # Errors
    /// The command that failed, with the end of its output.
    fn build(&self, tools: &[FoundTool], when: Rebuild) -> Result<bool, String> {
        let failed = |error: io::Error| format!("{} cannot be written: {error}", self.out.display());
        if let Some(directory) = &self.contract {
            contract::write(directory).map_err(failed)?;
        }
        let directory = match &self.directory {
            Ok(directory) if !self.build_commands().is_empty() => directory,
            _ => return Ok(false),
        };
        fs::create_dir_all(&self.out).map_err(failed)?;
        // The log is also a lock, because two builds into one directory would read each other's half-written files.
        let log = File::options().read(true).write(true).create(true).truncate(false).open(self.out.join("build.log"));
        let mut log = log.map_err(failed)?;
        flock(&log, FlockOperation::LockExclusive).map_err(|error| failed(error.into()))?;
        let stamp_file = self.out.join("built-from");
        let stamp =
            self.stamp(directory, tools).map_err(|error| format!("{} cannot be read: {error}", directory.display()))?;
        if when == Rebuild::IfStale && fs::read_to_string(&stamp_file).is_ok_and(|old| old == stamp) {
            return Ok(false);
        }
        let _ = fs::remove_file(&stamp_file);
        log.set_len(0).and_then(|()| log.rewind()).map_err(failed)?;
        for words in self.build_commands() {
            let words = self.expand(&words, tools);
            let trouble = match tool::run(&words, directory, &log, LIMIT) {
                Ok(status) if status.success() => continue,
                Ok(status) => status.to_string(),
                Err(error) => error.to_string(),
            };
            let quote = last_lines(&mut log).unwrap_or_default();
            return Err(format!(
                "it does not build: '{}': {trouble}; its output is in {} and ends with: {quote}",
                words.join(" "),
                self.out.join("build.log").display()
            ));
        }
        fs::write(&stamp_file, stamp).map_err(failed)?;
        Ok(true)
    }

    /// The build commands in order: those for all programs, then those of each program that works with these tools.
    fn build_commands(&self) -> Vec<Vec<String>> {
        let own = self.programs.iter().filter(|(name, _)| !self.unsupported.contains_key(*name));
        self.commands.iter().chain(own.flat_map(|(_, program)| &program.build)).cloned().collect()
    }

    /// Everything that a build depends on, as text.
    fn stamp(&self, directory: &Path, tools: &[FoundTool]) -> io::Result<String> {
        let mut stamp = format!("{}\n", env!("CARGO_PKG_VERSION"));
        for tool in tools {
            stamp.push_str(&format!("{} {:?} {}\n", tool.name, tool.words, tool.version));
        }
        stamp.push_str(&format!("{:?}\n", self.build_commands()));
        stamp_sources(directory, 0, &mut stamp)?;
        self.contract.iter().try_for_each(|directory| stamp_sources(directory, 0, &mut stamp))?;
        Ok(stamp)
    }
}

/// Adds the path, size and modification time of every file below `directory`.
fn stamp_sources(directory: &Path, depth: u32, stamp: &mut String) -> io::Result<()> {
    let mut entries = fs::read_dir(directory)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::path);
    for entry in entries {
        let (path, about) = (entry.path(), entry.metadata()?);
        if about.is_dir() && depth < MAX_DEPTH && entry.file_name() != "__pycache__" && entry.file_name() != "target" {
            stamp_sources(&path, depth + 1, stamp)?;
        } else if about.is_file() {
            let changed = about.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
            stamp.push_str(&format!("{} {} {}\n", path.display(), about.len(), changed.as_nanos()));
        }
    }
    Ok(())
}

fn last_lines(log: &mut File) -> io::Result<String> {
    let length = log.metadata()?.len();
    log.seek(SeekFrom::Start(length.saturating_sub(MAX_QUOTE)))?;
    let mut bytes = Vec::new();
    log.take(MAX_QUOTE).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(version: &str) -> Project {
        let form = format!(
            "name = \"X\"\n[[tools]]\nname = \"x\"\ntry = [[\"echo\"]]\nversion = [\"v{version}\"]\ninstall = \"x\"\n\
             [build]\ncommands = []\n[idiomatic]\nrun = [\"plain\"]\nabout = \"plain\"\n\
             [tuned]\nwith = {{ x = {{ at_least = \"22\" }} }}\nrun = [\"new\"]\nabout = \"fast\"\n\
             [[tuned_else]]\nwith = {{ x = {{ at_least = \"17\", below = \"18\" }} }}\nrun = [\"old\"]\nabout = \"fast\"\n"
        );
        let form = EntrantFile::parse("x.toml", &form).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let mut project = Project::from_file(form, Ok(directory.path().into()), directory.path().join("out")).remove(0);
        project.prepare(Rebuild::IfStale).unwrap();
        project
    }

    #[test]
    fn the_program_for_the_installed_version_is_used() {
        for (version, run) in [("17.0.15", "old"), ("22", "new"), ("25.0.3", "new")] {
            assert_eq!(project(version).command("tuned").unwrap().words, [run], "{version}");
        }
        for (version, reasons) in
            [("11.0.24", ["older than 22", "older than 17"]), ("21.0.13", ["older than 22", "must be below 18"])]
        {
            let project = project(version);
            assert_eq!(project.command("idiomatic").unwrap().words, ["plain"], "{version}");
            let Err(RunError::NotHere(reason)) = project.command("tuned") else { panic!("{version}") };
            assert!(reasons.iter().all(|words| reason.contains(words)), "{reason}");
        }
    }

    #[test]
    fn both_placeholders_of_the_directory_are_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let form = "name = \"X\"\n[[tools]]\nname = \"x\"\ntry = [[\"echo\"]]\nversion = [\"v1\"]\ninstall = \"x\"\n\
                    [build]\ncommands = []\n[idiomatic]\nrun = [\"plain\", \"{directory}/a\", \"{folder}/a\"]\nabout = \"plain\"\n\
                    [tuned]\nrun = [\"new\"]\nabout = \"fast\"\n";
        let form = EntrantFile::parse("x.toml", form).unwrap();
        let mut project = Project::from_file(form, Ok(directory.path().into()), directory.path().join("out")).remove(0);
        project.prepare(Rebuild::IfStale).unwrap();
        let path = directory.path().join("a").to_string_lossy().into_owned();
        assert_eq!(project.command("idiomatic").unwrap().words, ["plain", &path, &path]);
    }
}
