//! The files that describe entrants, as specified in entrants/README.md. An entrant.toml describes one language with
//! its two programs. A filters.toml describes any number of line filters.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use serde::Deserialize;

use pipemark_model::Filter;

/// The largest file that is read, in bytes: ten times the size that any description needs.
const MAX_BYTES: u64 = 64 << 10;

/// A file that describes entrants.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EntrantFile {
    /// The entrant's name in output. A language's programs repeat this name in their answers.
    pub name: String,
    /// The tools needed to build and run.
    #[serde(default)]
    pub tools: Vec<Tool>,
    /// How programs are built.
    #[serde(default)]
    pub build: Build,
    /// The program of a language as most programmers would write it.
    pub idiomatic: Option<EntrantProgram>,
    /// The program of a language, as fast as possible.
    pub tuned: Option<EntrantProgram>,
    /// Substitutes for `tuned` if it needs other versions of the tools. The first substitute that works with the tools
    /// is used.
    #[serde(default)]
    pub tuned_else: Vec<EntrantProgram>,
    /// Line filters.
    #[serde(default)]
    pub filter: BTreeMap<Filter, EntrantProgram>,
}

/// A tool, and the commands that show whether it is installed.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// The tool's name. In braces, it is the tool's placeholder in commands.
    pub name: String,
    /// Commands that call the tool. They are tried in this order.
    #[serde(rename = "try")]
    pub ways: Vec<Vec<String>>,
    /// The arguments that make the tool print its version. With `None`, the tool only has to be on the path.
    pub version: Option<Vec<String>>,
    /// The lowest version that is accepted; `None` for any.
    pub at_least: Option<String>,
    /// The lowest version that is too new; `None` if none is.
    pub below: Option<String>,
    /// How to install the tool.
    pub install: String,
}

/// The versions of a tool that a program accepts.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolVersions {
    /// The lowest version that is accepted; `None` for any.
    pub at_least: Option<String>,
    /// The lowest version that is too new; `None` if none is.
    pub below: Option<String>,
}

/// How programs are built.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Build {
    /// The commands, in order.
    pub commands: Vec<Vec<String>>,
}

/// A program of a language, or a filter.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EntrantProgram {
    /// The command that runs the program.
    pub run: Vec<String>,
    /// A phrase for lists that says how the program is written.
    pub about: String,
    /// The accepted versions of each tool of which this program accepts fewer versions than the other programs.
    #[serde(default)]
    pub with: BTreeMap<String, ToolVersions>,
    /// Build commands for this program, in addition to those for all programs.
    #[serde(default)]
    pub build: Vec<Vec<String>>,
    /// The expected output of a filter.
    #[serde(default)]
    pub does: FilterTask,
    /// Whether the program compares each block with the expected block, instead of summing the block's words.
    #[serde(default)]
    pub compares: bool,
    /// The unit of the rate that a third-party benchmark prints; `None` for other programs. A third-party benchmark
    /// does not follow the contract, and its bytes are not checked.
    pub prints: Option<String>,
    /// The word after the number of bytes that such a benchmark prints; `None` if it moves the requested total.
    pub prints_bytes: Option<String>,
    /// The finding that compares this filter with another bundled one; `None` for no finding.
    pub finding: Option<FindingForm>,
}

/// What a filter does with its lines. Its output is checked accordingly before the filter is timed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FilterTask {
    /// Prefixes each line with its number of spaces.
    #[default]
    Transform,
    /// Passes lines on unchanged. Its rate is an upper bound.
    Copy,
    /// Reads lines and prints the number of bytes. Its rate is the upper bound that other filters are compared with.
    Count,
}

/// A comparison of two filters that is reported as a finding.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FindingForm {
    /// The finding's name.
    pub rule: String,
    /// The other filter.
    pub to: Filter,
    /// The sentence, with the placeholders `{feed}` and `{figures}`.
    pub says: String,
}

/// Reads a description.
///
/// # Errors
/// A message with the file.
pub(crate) fn read_text(file: &Path) -> Result<String, String> {
    let mut text = String::new();
    let opened =
        pipemark_host::open_input(file).and_then(|opened| opened.take(MAX_BYTES + 1).read_to_string(&mut text));
    opened.map_err(|error| format!("{} cannot be read: {error}", file.display()))?;
    if text.len() as u64 > MAX_BYTES {
        return Err(format!("{} is larger than 64 KiB, the limit for a description", file.display()));
    }
    Ok(text)
}

/// Parses the text of a file called `name`.
///
/// # Errors
/// A message with the file and the line.
pub(crate) fn parse_toml<T: serde::de::DeserializeOwned>(name: &str, text: &str) -> Result<T, String> {
    toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        format!("{name}:{line}: {}", error.message())
    })
}

impl Tool {
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.ways.iter().any(Vec::is_empty) || self.ways.is_empty() {
            return Err(format!("the tool '{}' has no command that calls it", self.name));
        }
        check_bounds(&self.name, [&self.at_least, &self.below])
    }
}

impl EntrantFile {
    /// Reads `file`.
    ///
    /// # Errors
    /// A message with the file and the line.
    pub fn read(file: &Path) -> Result<EntrantFile, String> {
        EntrantFile::parse(&file.display().to_string(), &read_text(file)?)
    }

    /// Reads the text of a file called `name`.
    ///
    /// # Errors
    /// A message with the file and the line.
    pub fn parse(name: &str, text: &str) -> Result<EntrantFile, String> {
        let form: EntrantFile = parse_toml(name, text)?;
        form.check().map_err(|sentence| format!("{name}: {sentence}"))?;
        Ok(form)
    }

    fn check(&self) -> Result<(), String> {
        for tool in &self.tools {
            tool.check()?;
        }
        let programs = || self.filter.values().chain(&self.idiomatic).chain(&self.tuned).chain(&self.tuned_else);
        let commands = programs().flat_map(|program| program.build.iter().chain([&program.run]));
        if self.build.commands.iter().chain(commands).any(Vec::is_empty) {
            return Err("a command is empty".to_owned());
        }
        for (name, versions) in programs().flat_map(|program| &program.with) {
            if !self.tools.iter().any(|tool| tool.name == *name && tool.version.is_some()) {
                return Err(format!("'{name}' is not a tool with a version"));
            }
            check_bounds(name, [&versions.at_least, &versions.below])?;
        }
        if self.tuned.is_none() && !self.tuned_else.is_empty() {
            return Err("[[tuned_else]] replaces [tuned], which is missing".to_owned());
        }
        match (&self.idiomatic, &self.tuned, self.filter.is_empty()) {
            (Some(program), None, true) if program.prints.is_some() => Ok(()),
            (Some(_), Some(_), true) | (None, None, false) => Ok(()),
            _ => Err("the file needs either [idiomatic] and [tuned], or one or more [filter.NAME]".to_owned()),
        }
    }
}

fn check_bounds(tool: &str, bounds: [&Option<String>; 2]) -> Result<(), String> {
    for bound in bounds.into_iter().flatten() {
        if crate::version::version_in(bound).as_deref() != Some(bound) {
            return Err(format!("'{bound}' is not a version of the tool '{tool}'"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPLETE_FILE: &str = r#"
        name = "X"
        [[tools]]
        name = "x"
        try = [["x"]]
        version = ["--version"]
        install = "x"
        [build]
        commands = []
        [idiomatic]
        run = ["{x}"]
        about = "plain"
        [tuned]
        run = ["{x}"]
        about = "fast"
    "#;

    #[test]
    fn errors_name_the_mistake() {
        assert!(EntrantFile::parse("x.toml", COMPLETE_FILE).is_ok());
        for (from, to, words) in [
            ("name = \"X\"", "nmae = \"X\"", ":2: unknown field `nmae`"),
            ("[[\"x\"]]", "[]", "no command that calls it"),
            ("[\"{x}\"]", "[]", "a command is empty"),
            ("install = \"x\"", "install = \"x\"\nbelow = \"new\"", "'new' is not a version"),
            ("[tuned]", "[tunde]", "unknown field `tunde`"),
            ("[tuned]", "[filter.x]", "either [idiomatic] and [tuned]"),
            ("[tuned]", "[filter.X]", "'X' is not the name of a line filter"),
            ("[tuned]", "[tuned]\nwith = { y = { below = \"3\" } }", "'y' is not a tool with a version"),
            ("[tuned]", "[tuned]\nwith = { x = { below = \"new\" } }", "'new' is not a version"),
            ("[tuned]", "[[tuned_else]]", "[tuned], which is missing"),
        ] {
            let error = EntrantFile::parse("x.toml", &COMPLETE_FILE.replacen(from, to, 1)).expect_err(words);
            assert!(error.contains(words), "{error}");
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "#".repeat(70_000)).unwrap();
        assert!(EntrantFile::read(file.path()).unwrap_err().contains("64 KiB"));
    }
}
