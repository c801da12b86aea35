//! `--thresholds FILE`: the smallest change that counts, by command and figure.
//!
//! ```toml
//! time = "5%"          # of every command
//!
//! [parse]              # of the command that --name calls parse
//! time = "3%"
//! memory = "10%"
//! ```

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use pipemark_console::verdict::threshold;
use pipemark_model::{did_you_mean, neutral};
use serde::Deserialize;

/// The largest file that is read.
const MAX_BYTES: u64 = 1 << 20;

/// The thresholds of a file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Thresholds {
    of_all: BTreeMap<String, f64>,
    of_commands: BTreeMap<String, BTreeMap<String, f64>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ThresholdEntry {
    Threshold(String),
    Command(BTreeMap<String, String>),
}

impl Thresholds {
    /// Reads a file. `figures` are the keys of all figures.
    ///
    /// # Errors
    /// A message, if the file can't be read or has another form.
    pub fn read(path: &Path, figures: &[&str]) -> Result<Thresholds, String> {
        let at = |error: &dyn std::fmt::Display| format!("{}: {}", path.display(), neutral(&error.to_string()));
        let mut text = String::new();
        let file = pipemark_host::open_input(path).map_err(|error| at(&error))?;
        // A device has no length, but no end either.
        let length = file.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(|error| at(&error))?;
        if length as u64 > MAX_BYTES {
            return Err(at(&"the file is larger than 1 MiB"));
        }
        Thresholds::parse(&text, figures).map_err(|error| at(&error))
    }

    fn parse(text: &str, figures: &[&str]) -> Result<Thresholds, String> {
        let entries: BTreeMap<String, ThresholdEntry> =
            toml::from_str(text).map_err(|error| error.to_string().trim_end().replace('\n', " "))?;
        let read = |figure: &str, text: &str| {
            if !figures.contains(&figure) {
                let hint = did_you_mean(figure, figures.iter().copied());
                return Err(format!("'{figure}' is not a figure{hint}; a command's thresholds are in a table, [NAME]"));
            }
            threshold(text)
        };
        let mut thresholds = Thresholds::default();
        for (name, entry) in entries {
            match entry {
                ThresholdEntry::Threshold(text) => {
                    thresholds.of_all.insert(name.clone(), read(&name, &text)?);
                }
                ThresholdEntry::Command(own) => {
                    let own = own.into_iter().map(|(figure, text)| Ok((figure.clone(), read(&figure, &text)?)));
                    thresholds.of_commands.insert(name, own.collect::<Result<_, String>>()?);
                }
            }
        }
        Ok(thresholds)
    }

    /// The threshold of a command's figure; `None` if the file has none.
    pub fn of(&self, command: &str, figure: &str) -> Option<f64> {
        let own = self.of_commands.get(command).and_then(|figures| figures.get(figure));
        own.or_else(|| self.of_all.get(figure)).copied()
    }

    /// The smallest threshold of a figure; `None` if the file has none.
    pub fn smallest(&self, figure: &str) -> Option<f64> {
        let all = self.of_commands.values().chain([&self.of_all]);
        all.filter_map(|figures| figures.get(figure)).copied().reduce(f64::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIGURES: [&str; 2] = ["time", "memory"];

    #[test]
    fn a_device_without_an_end_is_refused() {
        let error = Thresholds::read(Path::new("/dev/zero"), &FIGURES).unwrap_err();
        assert_eq!(error, "/dev/zero: the file is larger than 1 MiB");
    }

    #[test]
    fn a_command_has_thresholds_of_its_own_and_those_of_all() {
        let text = "time = \"5%\"\n[parse]\ntime = \"3%\"\nmemory = \"10%\"\n[\"a b\"]\nmemory = \"1%\"\n";
        let thresholds = Thresholds::parse(text, &FIGURES).unwrap();
        let of = |command: &str| FIGURES.map(|figure| thresholds.of(command, figure));
        assert_eq!(of("parse"), [Some(0.03), Some(0.1)]);
        assert_eq!(of("a b"), [Some(0.05), Some(0.01)]);
        assert_eq!(of("other"), [Some(0.05), None]);
        assert_eq!(FIGURES.map(|figure| thresholds.smallest(figure)), [Some(0.03), Some(0.01)]);
    }

    #[test]
    fn a_file_of_another_form_is_refused_with_the_reason() {
        for (text, reason) in [
            ("time = 5", "data did not match"),
            ("time = \"5\"", "'5' is not a threshold"),
            ("[parse]\nmemry = \"5%\"", "did you mean memory?"),
            ("parse = \"5%\"", "'parse' is not a figure"),
            ("[parse\n", "TOML parse error"),
        ] {
            let error = Thresholds::parse(text, &FIGURES).unwrap_err();
            assert!(error.contains(reason) && error.lines().count() == 1, "{text}: {error}");
        }
        assert!(Thresholds::read(Path::new("/nonexistent"), &FIGURES).is_err());
    }
}
