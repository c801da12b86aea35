//! A link.toml, which describes a link by programs other than pipemark: docs/outside-links.md specifies it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use pipemark_model::{ByteSize, OutsideLink, WaitPolicy, did_you_mean, parse_duration};

use crate::contract;
use crate::form::{Build, EntrantProgram, FilterTask, Tool};

/// The longest time for which bytes may flow before the window.
const MAX_WARM_UP: Duration = Duration::from_secs(10);

/// A file that describes a link.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LinkFile {
    /// The version of the contract that the programs follow.
    pub contract: u32,
    /// A phrase for lists that says what the link is.
    pub about: String,
    /// The page that documents the way in which the link uses its library; `None` for a link without a library.
    pub documentation: Option<String>,
    /// The tools needed to build and run.
    #[serde(default)]
    pub tools: Vec<Tool>,
    /// How programs are built.
    #[serde(default)]
    pub build: Build,
    /// The program that sends; `None` if `both` is given.
    pub sender: Option<LinkProgram>,
    /// The program that receives; `None` if `both` is given.
    pub receiver: Option<LinkProgram>,
    /// One program that starts both ends itself.
    pub both: Option<LinkProgram>,
    /// A process between sender and receiver.
    pub broker: Option<Broker>,
    /// The end that has to be there first, so that the other can connect to it.
    #[serde(default)]
    pub first: FirstEnd,
    /// Whether each block arrives as one message.
    #[serde(default)]
    pub boundaries: Boundaries,
    /// The largest number of senders to one receiver.
    #[serde(default = "one")]
    pub senders: u32,
    /// The largest number of receivers that each get every block.
    #[serde(default = "one")]
    pub receivers: u32,
    /// Whether the link can carry round trips.
    #[serde(default = "yes")]
    pub round_trips: bool,
    /// The ways to wait that the programs have.
    #[serde(default = "block")]
    pub wait: Vec<WaitPolicy>,
    /// How long bytes flow at least before the measured window, for programs that are compiled while they run; `None`
    /// for pipemark's default.
    pub warm_up: Option<String>,
    /// The smallest block; `None` for one byte, or eight if boundaries are kept.
    pub min_block: Option<String>,
    /// The largest block that the library accepts; `None` without a limit.
    pub max_block: Option<String>,
    /// The options with their values. The first value is the default.
    #[serde(default)]
    pub option: BTreeMap<String, Vec<String>>,
}

/// A program of a link.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkProgram {
    /// The command that runs the program.
    pub run: Vec<String>,
}

/// A process between sender and receiver.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Broker {
    /// The command that runs the broker. `{run}` is the directory of the run.
    pub run: Vec<String>,
    /// The file or socket that shows that the broker is ready.
    pub ready: String,
}

/// The end that starts first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FirstEnd {
    /// The receiver.
    #[default]
    Receiver,
    /// The sender.
    Sender,
}

/// What the link does with the boundaries between blocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Boundaries {
    /// Each block arrives as one message.
    #[default]
    Kept,
    /// The link is a stream of bytes, which ends with an end of file.
    Lost,
}

/// The option that makes the sender's reference code damage the stream, such as `fault=drop-5` for its block number 5. It
/// shows that damage is found. Every link has it.
const FAULT: &str = "fault";

/// The kinds of damage.
const FAULTS: [&str; 4] = ["flip", "drop", "repeat", "reorder"];

fn check_fault(value: &str) -> Result<(), String> {
    let (kind, block) = value.split_once('-').unwrap_or((value, ""));
    match FAULTS.contains(&kind) && block.parse::<u32>().is_ok() {
        true => Ok(()),
        false => {
            Err(format!("'{value}' is not a fault; use {} and the number of a block, as in drop-5", FAULTS.join(", ")))
        }
    }
}

fn one() -> u32 {
    1
}

fn yes() -> bool {
    true
}

fn block() -> Vec<WaitPolicy> {
    vec![WaitPolicy::Block]
}

impl LinkFile {
    /// Reads the text of a file called `name`.
    ///
    /// # Errors
    /// A message with the file and the line.
    pub fn parse(name: &str, text: &str) -> Result<LinkFile, String> {
        let form: LinkFile = crate::form::parse_toml(name, text)?;
        form.check().map_err(|sentence| format!("{name}: {sentence}"))?;
        Ok(form)
    }

    fn check(&self) -> Result<(), String> {
        if self.contract != contract::VERSION {
            return Err(format!("contract {} is not supported; use {}", self.contract, contract::VERSION));
        }
        for tool in &self.tools {
            tool.check()?;
        }
        if !matches!((&self.sender, &self.receiver, &self.both), (Some(_), Some(_), None) | (None, None, Some(_))) {
            return Err("the file needs either [sender] and [receiver], or [both]".to_owned());
        }
        if self.programs().iter().any(|(_, run)| run.is_empty()) || self.build.commands.iter().any(Vec::is_empty) {
            return Err("a command is empty".to_owned());
        }
        if self.wait.is_empty() || self.option.values().any(Vec::is_empty) {
            return Err("'wait' and options need at least one value".to_owned());
        }
        self.warm_up_time()?;
        for size in [&self.min_block, &self.max_block].into_iter().flatten() {
            size.parse::<ByteSize>().map_err(|_| format!("'{size}' isn't a size"))?;
        }
        Ok(())
    }

    fn programs(&self) -> Vec<(&'static str, &Vec<String>)> {
        let own = [("sender", &self.sender), ("receiver", &self.receiver), ("both", &self.both)];
        let own = own.into_iter().filter_map(|(name, program)| Some((name, &program.as_ref()?.run)));
        own.chain(self.broker.as_ref().map(|broker| ("broker", &broker.run))).collect()
    }

    /// The programs in the form of entrants, by role.
    pub(crate) fn as_entrants(&self) -> BTreeMap<String, EntrantProgram> {
        let entrant = |run: &Vec<String>| EntrantProgram {
            run: run.clone(),
            about: self.about.clone(),
            with: BTreeMap::new(),
            build: Vec::new(),
            does: FilterTask::default(),
            compares: false,
            prints: None,
            prints_bytes: None,
            finding: None,
        };
        self.programs().into_iter().map(|(name, run)| (name.to_owned(), entrant(run))).collect()
    }

    /// How long bytes flow at least before the window; 0 by default.
    ///
    /// # Errors
    /// If it isn't a duration, or too long.
    pub fn warm_up_time(&self) -> Result<Duration, String> {
        match self.warm_up.as_deref().map(parse_duration).transpose() {
            Ok(time) if time.unwrap_or_default() <= MAX_WARM_UP => Ok(time.unwrap_or_default()),
            Ok(_) => Err("'warm-up' is at most 10s".to_owned()),
            Err(error) => Err(format!("'warm-up': {error}")),
        }
    }

    /// The smallest and the largest block in bytes.
    pub fn block_limits(&self) -> (u64, u64) {
        let size = |text: &Option<String>| text.as_ref().and_then(|text| Some(text.parse::<ByteSize>().ok()?.0));
        let least = if self.boundaries == Boundaries::Kept { 8 } else { 1 };
        (size(&self.min_block).unwrap_or(least), size(&self.max_block).unwrap_or(u64::MAX))
    }

    /// All options of the link with the values that `link` gives them, or their defaults.
    ///
    /// # Errors
    /// If the link has no such option or value.
    pub fn options(&self, link: OutsideLink) -> Result<Vec<(String, String)>, String> {
        let name = link.name();
        let mut options: BTreeMap<&str, &str> =
            self.option.iter().map(|(key, values)| (key.as_str(), values[0].as_str())).collect();
        for (key, value) in link.options() {
            if key == FAULT {
                check_fault(value)?;
                options.insert(key, value);
                continue;
            }
            let Some(values) = self.option.get(key) else {
                let all: Vec<&str> = self.option.keys().map(String::as_str).collect();
                let known = if all.is_empty() { "it has none".to_owned() } else { format!("use {}", all.join(", ")) };
                return Err(format!("--link {name} has no option '{key}'; {known}"));
            };
            // A number stands for any number.
            let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
            let fits = |known: &String| known == value || (is_number(known) && is_number(value));
            if !values.iter().any(fits) {
                let hint = did_you_mean(value, values.iter().map(String::as_str));
                return Err(format!("--link {name}:{key} can't be {value}; use {}{hint}", values.join(", ")));
            }
            options.insert(key, value);
        }
        Ok(options.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPLETE_FILE: &str = r#"
        contract = 1
        about = "a link"
        wait = ["block", "spin"]
        max-block = "8m"
        [sender]
        run = ["{out}/x", "sender"]
        [receiver]
        run = ["{out}/x", "receiver"]
        [option]
        transport = ["ipc", "tcp"]
        queue = ["1000"]
    "#;

    #[test]
    fn errors_name_the_mistake() {
        LinkFile::parse("x.toml", COMPLETE_FILE).unwrap();
        for (from, to, words) in [
            ("about", "abuot", ":3: unknown field `abuot`"),
            ("contract = 1", "contract = 9", "contract 9 is not supported; use 1"),
            ("[receiver]", "[both]", "either [sender] and [receiver], or [both]"),
            ("\"8m\"", "\"much\"", "'much' isn't a size"),
            ("max-block", "warm-up = \"1min\"\nmax-block", "'warm-up' is at most 10s"),
            ("[\"ipc\", \"tcp\"]", "[]", "at least one value"),
        ] {
            let error = LinkFile::parse("x.toml", &COMPLETE_FILE.replacen(from, to, 1)).expect_err(words);
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn options_have_defaults_and_known_values() {
        let file = LinkFile::parse("x.toml", COMPLETE_FILE).unwrap();
        let options = |text: &str| file.options(text.parse().unwrap());
        let pairs = |queue: &str, transport: &str| {
            vec![("queue".to_owned(), queue.to_owned()), ("transport".to_owned(), transport.to_owned())]
        };
        assert_eq!(options("x"), Ok(pairs("1000", "ipc")));
        assert_eq!(options("x:transport=tcp:queue=7"), Ok(pairs("7", "tcp")));
        assert!(options("x:transport=tcpp").unwrap_err().contains("did you mean tcp?"));
        assert!(options("x:size=7").unwrap_err().contains("has no option 'size'; use queue, transport"));
        assert_eq!(file.block_limits(), (8, 8 << 20));
    }
}
