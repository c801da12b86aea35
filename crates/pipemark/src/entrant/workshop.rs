//! A folder of sources with the tools that make programs of them: whether those are here, and building, when sources,
//! commands or tools are not those that it was last built from.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use rustix::fs::{FlockOperation, flock};

use super::form::{BuildForm, ToolForm};
use super::tool::Found;
use super::{Absent, Build, command};

/// A cold Zig or Rust build takes half a minute on a slow machine.
const LIMIT: Duration = Duration::from_secs(600);
/// As much of a failed build's output as is quoted: its end, where compilers sum up.
const MAX_QUOTE: u64 = 1500;
/// Sources deeper than this are not looked at; ours are one folder deep.
const MAX_DEPTH: u32 = 4;

/// A folder of sources and what became of it.
pub(super) struct Workshop {
    tools: Vec<ToolForm>,
    commands: Vec<Vec<String>>,
    folder: PathBuf,
    out: PathBuf,
    state: State,
}

/// How far it has come.
enum State {
    /// Only its form was read.
    Found,
    /// It cannot be used: why, and what to do.
    Absent(Absent),
    /// Its programs can be run with these tools.
    Ready(Vec<Found>),
}

impl Workshop {
    /// The sources in `folder`, of which programs are to be made in `out`.
    pub(super) fn new(tools: &[ToolForm], build: &BuildForm, folder: PathBuf, out: PathBuf) -> Workshop {
        Workshop { tools: tools.to_vec(), commands: build.commands.clone(), folder, out, state: State::Found }
    }

    /// Where the sources are.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The tools, each with the first way that works.
    ///
    /// # Errors
    /// Which tool is missing, why it is not accepted, and how to install it.
    pub(super) fn detect(&self) -> Result<Vec<Found>, String> {
        self.tools.iter().map(|tool| tool.detect(&self.folder)).collect()
    }

    /// Looks for the tools and builds what has to be built; returns whether anything had to be.
    ///
    /// # Errors
    /// What is missing, or why it does not build; [`command`](Self::command) says so again.
    pub(super) fn prepare(&mut self, when: Build) -> Result<bool, Absent> {
        let ready = self
            .detect()
            .map_err(Absent::Missing)
            .and_then(|tools| self.build(&tools, when).map(|built| (tools, built)).map_err(Absent::Broken));
        match ready {
            Ok((tools, built)) => {
                self.state = State::Ready(tools);
                Ok(built)
            }
            Err(absent) => {
                self.state = State::Absent(absent.clone());
                Err(absent)
            }
        }
    }

    /// A command with its tools and folder put in.
    ///
    /// # Errors
    /// When it isn't here or could not be built.
    pub(super) fn command(&self, words: &[String]) -> Result<Vec<String>, Absent> {
        match &self.state {
            State::Found => Err(Absent::Missing(format!("{} was not built", self.folder.display()))),
            State::Absent(absent) => Err(absent.clone()),
            State::Ready(tools) => Ok(self.expand(words, tools)),
        }
    }

    /// A tool may be more than one word.
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

    /// Builds it if that is due; returns whether it was.
    ///
    /// # Errors
    /// Which command failed, with the end of its output.
    fn build(&self, tools: &[Found], when: Build) -> Result<bool, String> {
        let failed = |error: io::Error| format!("{} cannot be written: {error}", self.out.display());
        fs::create_dir_all(&self.out).map_err(failed)?;
        // Two builds into one folder would find each other's half-written files.
        let log = File::options().read(true).write(true).create(true).truncate(false).open(self.out.join("build.log"));
        let mut log = log.map_err(failed)?;
        flock(&log, FlockOperation::LockExclusive).map_err(|error| failed(error.into()))?;
        let stamp_file = self.out.join("built-from");
        let stamp = self.stamp(tools).map_err(|error| format!("{} cannot be read: {error}", self.folder.display()))?;
        if when == Build::Stale && fs::read_to_string(&stamp_file).is_ok_and(|old| old == stamp) {
            return Ok(false);
        }
        let _ = fs::remove_file(&stamp_file);
        log.set_len(0).and_then(|()| log.rewind()).map_err(failed)?;
        for words in &self.commands {
            let words = self.expand(words, tools);
            let ended = command::run(&words, &self.folder, &log, LIMIT);
            let trouble = match ended {
                Ok(status) if status.success() => continue,
                Ok(status) => status.to_string(),
                Err(error) => error.to_string(),
            };
            let quote = end_of(&mut log).unwrap_or_default();
            return Err(format!(
                "it does not build: '{}': {trouble}; all of its output is in {}; the end of it: {quote}",
                words.join(" "),
                self.out.join("build.log").display()
            ));
        }
        fs::write(&stamp_file, stamp).map_err(failed)?;
        Ok(!self.commands.is_empty())
    }

    /// Everything that a build depends on, as text.
    fn stamp(&self, tools: &[Found]) -> io::Result<String> {
        let mut stamp = format!("{}\n", env!("CARGO_PKG_VERSION"));
        for tool in tools {
            stamp.push_str(&format!("{} {:?} {}\n", tool.name, tool.words, tool.version));
        }
        stamp.push_str(&format!("{:?}\n", self.commands));
        sources(&self.folder, 0, &mut stamp)?;
        Ok(stamp)
    }
}

/// Path, size and time of change of every file below `folder`.
fn sources(folder: &Path, depth: u32, stamp: &mut String) -> io::Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::path);
    for entry in entries {
        let (path, about) = (entry.path(), entry.metadata()?);
        if about.is_dir() && depth < MAX_DEPTH && entry.file_name() != "__pycache__" && entry.file_name() != "target" {
            sources(&path, depth + 1, stamp)?;
        } else if about.is_file() {
            let changed = about.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
            stamp.push_str(&format!("{} {} {}\n", path.display(), about.len(), changed.as_nanos()));
        }
    }
    Ok(())
}

fn end_of(log: &mut File) -> io::Result<String> {
    let length = log.metadata()?.len();
    log.seek(SeekFrom::Start(length.saturating_sub(MAX_QUOTE)))?;
    let mut bytes = Vec::new();
    log.take(MAX_QUOTE).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
}
