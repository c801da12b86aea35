//! `--against`: a program that the user adds. The program gets a row in the table, next to pipemark's own rows. Its
//! command may have placeholders for the numbers of blocks and bytes. Its figure is the rate or the time that it
//! prints, or otherwise its wall time.

use pipemark_model::{Better, Language, RATE_UNITS, Stages};

use crate::printed::PrintedFigure;

/// The placeholder for the number of stages of a chain.
const LENGTH: &str = "{length}";

/// The units of a printed time, in nanoseconds.
const TIME_UNITS: [(&str, f64); 4] = [("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0)];

/// A program and the figure that it prints.
#[derive(Debug, Clone)]
pub struct AgainstProgram {
    /// The name of its row.
    pub name: Language,
    /// The command, with the placeholders `{blocks}`, `{block}`, `{total}` and `{length}`.
    pub words: Vec<String>,
    /// The figure that the program prints. With `None`, the figure is the wall time, including the program's start.
    pub figure: Option<AgainstFigure>,
    /// Whether its trials are skipped if the program isn't installed. A program of the user then fails instead.
    pub optional: bool,
}

/// A rate or a time that a program prints.
#[derive(Debug, Clone)]
pub struct AgainstFigure {
    printed: PrintedFigure,
    /// The unit in bytes per second, or in nanoseconds.
    unit: f64,
}

impl PartialEq for AgainstProgram {
    fn eq(&self, other: &AgainstProgram) -> bool {
        let figure = |program: &AgainstProgram| program.figure.as_ref().map(|figure| figure.printed.to_string());
        let facts = |program: &AgainstProgram| (program.name.clone(), program.words.clone(), program.optional);
        facts(self) == facts(other) && figure(self) == figure(other)
    }
}

impl AgainstProgram {
    /// Parses a command and the figure that it prints: `rate,UNIT=REGEX` or `time,UNIT=REGEX`.
    ///
    /// # Errors
    /// A message, if either is invalid.
    pub fn parse(command: &str, figure: Option<&str>) -> Result<AgainstProgram, String> {
        let stages: Stages = command.parse().map_err(|error| format!("{error}"))?;
        if stages.count() > 1 {
            return Err(format!("'{command}' is more than one command; give one, or use sh -c '…'"));
        }
        let words = stages.at(0).words().to_vec();
        let stem = words[0].rsplit('/').next().unwrap_or_default().to_lowercase();
        let known = |c: char| if c.is_ascii_lowercase() || c.is_ascii_digit() || "+-_".contains(c) { c } else { '-' };
        let stem: String = stem.trim_start_matches(|c: char| !c.is_ascii_alphanumeric()).chars().map(known).collect();
        // The name is cut, because a row's name has at most 40 characters.
        let name = stem.chars().take(36).collect::<String>();
        let name = name.parse().map_err(|_| format!("'{command}': the program's name has no letter or digit, so the row can't be named after it; start the program through a symbolic link with another name"))?;
        let figure = figure.map(AgainstFigure::parse).transpose()?;
        Ok(AgainstProgram { name, words, figure, optional: false })
    }

    /// Whether the program runs a chain of a given number of stages.
    pub fn takes_length(&self) -> bool {
        self.words.iter().any(|word| word.contains(LENGTH))
    }

    /// Renames the program if another row has its name. If there is a language `c`, a program `c` becomes `c-against`.
    /// `pipemark` becomes `pipemark-against`.
    pub fn with_unique_name(mut self, languages: &[String]) -> AgainstProgram {
        let name = self.name.as_str();
        if name == "pipemark" || languages.iter().any(|language| language == name) {
            // The name is cut, because a row's name has at most 40 characters.
            let name = format!("{}-against", name.chars().take(32).collect::<String>());
            self.name = name.parse().expect("a name with more letters");
        }
        self
    }

    /// The command for `total` bytes and a chain of `length` stages, and the number of bytes that the program then
    /// moves. If the command contains `{blocks}`, that number is a whole number of blocks.
    pub fn command(&self, block: u64, total: u64, length: u32) -> (Vec<String>, u64) {
        let blocks = (total / block.max(1)).max(1);
        let of_blocks = self.words.iter().any(|word| word.contains("{blocks}"));
        let fill = |word: &String| {
            word.replace("{blocks}", &blocks.to_string())
                .replace("{block}", &block.to_string())
                .replace("{total}", &total.to_string())
                .replace(LENGTH, &length.to_string())
        };
        (self.words.iter().map(fill).collect(), if of_blocks { blocks * block } else { total })
    }
}

impl AgainstFigure {
    fn parse(text: &str) -> Result<AgainstFigure, String> {
        let mut printed: PrintedFigure = text.parse()?;
        let (rate, units): (bool, &[(&str, f64)]) = match printed.name.as_str() {
            "rate" => (true, &RATE_UNITS),
            "time" => (false, &TIME_UNITS),
            other => return Err(format!("'{other}' is neither rate nor time; use rate,MiB/s=REGEX or time,s=REGEX")),
        };
        let unit = printed.unit.as_str();
        let Some((_, factor)) = units.iter().find(|(word, _)| *word == unit) else {
            let all = units.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
            let name = &printed.name;
            return Err(match unit {
                "" => format!("{name} needs a unit: use {name},UNIT=REGEX, where UNIT is one of {all}"),
                _ => format!("'{unit}' isn't a unit of {name}; use {name},UNIT=REGEX, where UNIT is one of {all}"),
            });
        };
        printed.better = if rate { Better::Higher } else { Better::Lower };
        Ok(AgainstFigure { printed, unit: *factor })
    }

    /// The time in which the program moved `bytes`, according to its output, in nanoseconds.
    ///
    /// # Errors
    /// If the figure is missing, is not a number, or is not above 0.
    pub fn nanoseconds(&self, printed: [&[u8]; 2], bytes: u64) -> Result<u64, String> {
        let figure = self.printed.find(printed)?;
        if figure <= 0.0 {
            return Err(format!("it printed a {} of {figure}", self.printed.name));
        }
        let ns = match self.printed.better {
            Better::Higher => bytes as f64 / (figure * self.unit) * 1e9,
            _ => figure * self.unit,
        };
        if (1.0..1e18).contains(&ns) {
            Ok(ns as u64)
        } else {
            Err(format!("it printed an impossible {} of {figure}", self.printed.name))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(command: &str, figure: Option<&str>) -> Result<AgainstProgram, String> {
        AgainstProgram::parse(command, figure)
    }

    #[test]
    fn blocks_and_bytes_replace_placeholders() {
        let own = program("./pipe_bandwidth {blocks} {block}", None).unwrap();
        assert_eq!(own.name.as_str(), "pipe_bandwidth");
        let words = |words: [&str; 3]| words.map(str::to_owned).to_vec();
        assert_eq!(own.command(64, 1_664_000_000, 0), (words(["./pipe_bandwidth", "26000000", "64"]), 1_664_000_000));
        assert_eq!(own.command(1000, 4096, 0).1, 4000, "whole blocks");
        assert_eq!(program("x --bytes={total}", None).unwrap().command(1000, 4096, 0).1, 4096);
        let chain = program("sh chain.sh {length} {total}", None).unwrap();
        assert_eq!((chain.takes_length(), own.takes_length()), (true, false));
        assert_eq!(chain.command(1, 10, 3).0, ["sh", "chain.sh", "3", "10"]);
        assert_eq!(program("/a/Pipe.Test", None).unwrap().name.as_str(), "pipe-test");
    }

    #[test]
    fn a_name_already_in_use_gets_a_suffix() {
        let name = |command: &str| {
            let own = program(command, None).unwrap().with_unique_name(&["c".to_owned(), "a".repeat(36)]);
            own.name.as_str().to_owned()
        };
        assert_eq!(name("./c"), "c-against");
        assert_eq!(name("/usr/bin/pipemark {total}"), "pipemark-against");
        assert_eq!(name("./cc"), "cc");
        assert_eq!(name(&"a".repeat(50)), "a".repeat(32) + "-against");
    }

    #[test]
    fn rates_and_times_are_converted_from_their_units() {
        let ns = |figure: &str, text: &str| {
            program("x", Some(figure)).unwrap().figure.unwrap().nanoseconds([text.as_bytes(), b""], 1 << 20)
        };
        assert_eq!(ns("rate,MiB/s=Bandwidth: ([0-9.]+)", "Bandwidth: 2.00 MB/second"), Ok(500_000_000));
        assert_eq!(ns("time,ms=took ([0-9.]+)", "took 4641 ms"), Ok(4_641_000_000));
        assert!(ns("time,s=took ([0-9.]+)", "nothing").unwrap_err().contains("no match of --figure time"));
        assert!(ns("rate,MB/s=([0-9.]+)", "0").unwrap_err().contains("a rate of 0"));
        assert!(ns("time,s=(.*)", "-1").unwrap_err().contains("a time of -1"));
    }

    #[test]
    fn invalid_figures_and_commands_are_refused() {
        for (command, figure, words) in [
            ("x", Some("speed,MB/s=x"), "neither rate nor time"),
            ("x", Some("rate=x"), "rate needs a unit: use rate,UNIT=REGEX, where UNIT is one of B/s"),
            (
                "x",
                Some("time,MB/s=x"),
                "'MB/s' isn't a unit of time; use time,UNIT=REGEX, where UNIT is one of s, ms, us, ns",
            ),
            ("x | y", None, "more than one command"),
            ("", None, "is not a stage"),
            ("./...", None, "no letter or digit"),
        ] {
            let error = program(command, figure).unwrap_err();
            assert!(error.contains(words), "{command} {figure:?}: {error}");
        }
    }
}
