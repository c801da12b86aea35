//! Detects a tool by running its version command.

use std::collections::BTreeMap;
use std::env;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{Access, access};

use pipemark_host::child::{Child, ProcessGroup};

use crate::form::{Tool, ToolVersions};
use crate::version::{version_in, version_numbers};

/// The time limit of a version command. Compilers that first unpack themselves take seconds, but less than a minute.
const LIMIT: Duration = Duration::from_secs(60);
/// The number of bytes that are read of a version command's output.
const MAX_OUTPUT: u64 = 16 << 10;

/// A tool that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundTool {
    /// The tool's name in the description.
    pub name: String,
    /// The command that calls the tool, as words.
    pub words: Vec<String>,
    /// The tool's version; empty if it is not checked.
    pub version: String,
}

impl Tool {
    /// Tries each command that calls this tool, with `directory` as the working directory, and returns the first that
    /// works.
    ///
    /// # Errors
    /// Why each command doesn't work, and how to install the tool.
    pub fn detect(&self, directory: &Path) -> Result<FoundTool, String> {
        let mut reasons = Vec::new();
        for words in &self.ways {
            match self.detect_version(words, directory) {
                Ok(version) => return Ok(FoundTool { name: self.name.clone(), words: words.clone(), version }),
                Err(reason) => reasons.push(reason),
            }
        }
        Err(format!("{} is missing ({}); to install it: {}", self.name, reasons.join("; "), self.install))
    }

    /// Returns the first command whose program is on the path, without running it.
    ///
    /// # Errors
    /// The commands that were not found, and how to install the tool.
    pub fn locate(&self) -> Result<FoundTool, String> {
        let found = self.ways.iter().find(|words| words.first().is_some_and(|program| on_path(program).is_some()));
        let tool =
            |words: &Vec<String>| FoundTool { name: self.name.clone(), words: words.clone(), version: String::new() };
        found.map(tool).ok_or_else(|| {
            let calls: Vec<String> = self.ways.iter().map(|words| format!("{}: not found", words.join(" "))).collect();
            format!("{} is missing ({}); to install it: {}", self.name, calls.join("; "), self.install)
        })
    }

    fn detect_version(&self, words: &[String], directory: &Path) -> Result<String, String> {
        let call = words.join(" ");
        let Some(question) = &self.version else {
            return on_path(&words[0]).map(|_| String::new()).ok_or_else(|| format!("{call}: not found"));
        };
        let command: Vec<String> = words.iter().chain(question).cloned().collect();
        let text = output_of(&command, directory).map_err(|reason| format!("{call}: {reason}"))?;
        let version = version_in(&text).ok_or_else(|| format!("{call} prints no version"))?;
        match version_problem(&call, &version, &self.at_least, &self.below) {
            Some(reason) => Err(reason),
            None => Ok(version),
        }
    }
}

/// Why a version is not accepted, as a sentence; `None` if it is.
fn version_problem(call: &str, version: &str, at_least: &Option<String>, below: &Option<String>) -> Option<String> {
    let bound = |bound: &Option<String>| bound.as_deref().map(version_numbers);
    if bound(at_least).is_some_and(|least| version_numbers(version) < least) {
        return Some(format!("{call} is {version}, older than {}", at_least.as_deref().unwrap_or_default()));
    }
    if bound(below).is_some_and(|limit| version_numbers(version) >= limit) {
        return Some(format!("{call} is {version}; it must be below {}", below.as_deref().unwrap_or_default()));
    }
    None
}

/// Why a program that needs these versions doesn't work with the tools found; `None` if it does.
pub(super) fn unsupported(with: &BTreeMap<String, ToolVersions>, tools: &[FoundTool]) -> Option<String> {
    with.iter().find_map(|(name, versions)| {
        let tool = tools.iter().find(|tool| tool.name == *name)?;
        version_problem(&tool.words.join(" "), &tool.version, &versions.at_least, &versions.below)
    })
}

fn output_of(command: &[String], directory: &Path) -> Result<String, String> {
    let in_words = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => "not found".to_owned(),
        _ => error.to_string(),
    };
    let mut file: File = tempfile::tempfile().map_err(in_words)?;
    let status = run(command, directory, &file, LIMIT).map_err(in_words)?;
    let mut bytes = Vec::new();
    file.rewind().map_err(in_words)?;
    file.take(MAX_OUTPUT).read_to_end(&mut bytes).map_err(in_words)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    if status.success() {
        return Ok(text);
    }
    let first_line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("no message");
    Err(format!("{status}: {first_line}"))
}

/// Runs a command in `directory` until it ends. Writes its standard output and standard error to `output`. For versions
/// and builds, not for measuring.
///
/// # Errors
/// If the command cannot be started, or has not ended within `limit`. In the second case, all its processes are killed.
pub(super) fn run(words: &[String], directory: &Path, output: &File, limit: Duration) -> io::Result<ExitStatus> {
    let [program, arguments @ ..] = words else { return Err(io::ErrorKind::InvalidInput.into()) };
    let mut command = Command::new(program);
    command.args(arguments).current_dir(directory);
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output.try_clone()?);
    let mut child = Child::start(program, &mut command, ProcessGroup::Own)?;
    child.wait(Instant::now() + limit, None).map_err(io::Error::other)?;
    let late = || io::Error::new(io::ErrorKind::TimedOut, format!("it did not end within {limit:?}"));
    child.end().map(|(status, _)| status).ok_or_else(late)
}

/// The path where a shell would find `program`; `None` if it is not on the path.
pub fn on_path(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        // A file that isn't executable is returned too, because starting it gives a better error.
        return Some(PathBuf::from(program)).filter(|file| file.exists());
    }
    let here = |file: &PathBuf| file.is_file() && access(file, Access::EXEC_OK).is_ok();
    env::split_paths(&env::var_os("PATH")?).map(|directory| directory.join(program)).find(here)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(ways: &[&[&str]], at_least: Option<&str>, below: Option<&str>) -> Tool {
        Tool {
            name: "tool".to_owned(),
            ways: ways.iter().map(|way| way.iter().map(|&word| word.to_owned()).collect()).collect(),
            version: Some(Vec::new()),
            at_least: at_least.map(str::to_owned),
            below: below.map(str::to_owned),
            install: "apt install tool".to_owned(),
        }
    }

    #[test]
    fn the_first_command_that_works_is_used() {
        let here = Path::new("/");
        let ways: &[&[&str]] = &[&["/no/such/tool"], &["false"], &["echo", "v2.5"], &["echo", "v3"]];
        let found = tool(ways, Some("2"), Some("3")).detect(here).unwrap();
        assert_eq!((found.words.join(" "), &*found.version), ("echo v2.5".to_owned(), "2.5"));
        for (at_least, below, words) in [
            (Some("2.6"), None, "older than 2.6"),
            (None, Some("2.5"), "must be below 2.5"),
            (Some("9"), None, "not found"),
        ] {
            let error = tool(&ways[..3], at_least, below).detect(here).unwrap_err();
            assert!(error.contains(words) && error.ends_with("to install it: apt install tool"), "{error}");
        }
    }

    #[test]
    fn a_tool_that_hangs_is_killed() {
        let directory = Path::new("/");
        let file = tempfile::tempfile().unwrap();
        let words: Vec<String> = ["sh", "-c", "sleep 1000 & sleep 1000"].map(str::to_owned).into();
        let error = run(&words, directory, &file, Duration::from_millis(100)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
