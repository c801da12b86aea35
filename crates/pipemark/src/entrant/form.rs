//! The form of an entrant.toml, as entrants/README.md describes it.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::Deserialize;

/// The largest form that is read: ten times what any needs.
const MAX_BYTES: u64 = 64 << 10;

/// An entrant.toml.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Form {
    pub name: String,
    pub tools: Vec<ToolForm>,
    pub build: BuildForm,
    pub idiomatic: ProgramForm,
    pub tuned: ProgramForm,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolForm {
    pub name: String,
    #[serde(rename = "try")]
    pub ways: Vec<Vec<String>>,
    pub version: Vec<String>,
    pub at_least: Option<String>,
    pub below: Option<String>,
    pub install: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BuildForm {
    pub commands: Vec<Vec<String>>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProgramForm {
    pub run: Vec<String>,
    pub about: String,
}

impl Form {
    /// Reads `file`.
    ///
    /// # Errors
    /// A sentence with the file and where in it.
    pub fn read(file: &Path) -> Result<Form, String> {
        let mut text = String::new();
        let opened = File::open(file).and_then(|opened| opened.take(MAX_BYTES + 1).read_to_string(&mut text));
        opened.map_err(|error| format!("{} cannot be read: {error}", file.display()))?;
        if text.len() as u64 > MAX_BYTES {
            return Err(format!("{} is larger than 64 KiB, the limit for an entrant.toml", file.display()));
        }
        let form: Form = toml::from_str(&text).map_err(|error| {
            let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
            format!("{}:{line}: {}", file.display(), error.message())
        })?;
        form.check().map_err(|sentence| format!("{}: {sentence}", file.display()))?;
        Ok(form)
    }

    fn check(&self) -> Result<(), String> {
        for tool in &self.tools {
            if tool.ways.iter().any(Vec::is_empty) || tool.ways.is_empty() {
                return Err(format!("the tool '{}' has no way to call it", tool.name));
            }
            for bound in [&tool.at_least, &tool.below].into_iter().flatten() {
                if super::tool::version_in(bound).as_deref() != Some(bound) {
                    return Err(format!("'{bound}' is not a version of the tool '{}'", tool.name));
                }
            }
        }
        if self.build.commands.iter().chain([&self.idiomatic.run, &self.tuned.run]).any(Vec::is_empty) {
            return Err("a command without words".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"
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

    fn error(text: &str) -> Option<String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        Form::read(file.path()).err()
    }

    #[test]
    fn mistakes_are_shown_in_their_place() {
        assert_eq!(error(WHOLE), None);
        for (from, to, words) in [
            ("name = \"X\"", "nmae = \"X\"", ":2: unknown field `nmae`"),
            ("[[\"x\"]]", "[]", "no way to call it"),
            ("[\"{x}\"]", "[]", "a command without words"),
            ("install = \"x\"", "install = \"x\"\nbelow = \"new\"", "'new' is not a version"),
            ("[tuned]", "[tunde]", "unknown field `tunde`"),
        ] {
            let error = error(&WHOLE.replacen(from, to, 1)).expect(words);
            assert!(error.contains(words), "{error}");
        }
        assert!(error(&"#".repeat(70_000)).unwrap().contains("64 KiB"));
    }
}
