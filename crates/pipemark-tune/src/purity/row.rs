//! A program whose effects are known, and what its options and operands may be.

use std::sync::LazyLock;

use serde::Deserialize;

use pipemark_causes::environment::{variables, with_variables};
use pipemark_causes::scripts;

use super::surroundings::{self, SYSTEM_DIRECTORIES, Surroundings};
use crate::typed::{TypedCommand, TypedWord};

/// A row of purity.toml.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct PurityRow {
    pub names: Vec<String>,
    any: bool,
    values: String,
    options: Vec<String>,
    whole: bool,
    needs: Vec<String>,
    tests: Vec<String>,
    operands: Option<usize>,
    begins: Vec<String>,
    script: Option<ScriptLanguage>,
    pub starts: bool,
    first: Option<FirstOperand>,
    refuses: Vec<String>,
    actions: Vec<String>,
    then: String,
    remote: Vec<String>,
    asks: Vec<String>,
    answers: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct PureProgramTable {
    program: Vec<PurityRow>,
}

/// The rows of purity.toml about programs.
pub(super) static TABLE: LazyLock<Vec<PurityRow>> = LazyLock::new(|| {
    toml::from_str::<PureProgramTable>(include_str!("../purity.toml")).expect("a test reads the table").program
});

/// Variables that only change how a program works, not what it writes to.
const HARMLESS_VARIABLES: [&str; 9] =
    ["LANG", "LANGUAGE", "TZ", "COLUMNS", "GREP_COLORS", "TERM", "OMP_NUM_THREADS", "TMPDIR", "NO_COLOR"];

/// The concern about a command; with `appended`, xargs adds words to it.
pub(super) fn concern_of_command(
    command: &TypedCommand,
    appended: bool,
    surroundings: &Surroundings,
) -> Option<String> {
    let name = command.program();
    let variable = command
        .variables
        .iter()
        .map(|(name, _)| name)
        .find(|name| !name.starts_with("LC_") && !HARMLESS_VARIABLES.contains(&name.as_str()));
    if let Some(variable) = variable {
        return Some(format!("{name} runs with the variable {variable}"));
    }
    let path = command.words.first().map_or("", |word| word.value.as_str());
    let known =
        !path.contains('/') || SYSTEM_DIRECTORIES.iter().any(|directory| path.strip_prefix(directory) == Some(name));
    let row = TABLE.iter().find(|row| known && row.names.iter().any(|one| one == name));
    let Some(row) = row else { return Some(format!("{} may do anything", if known { name } else { path })) };
    if let Some(concern) = surroundings.concern(path, name) {
        return Some(concern);
    }
    if let Some((word, once)) = read_once(command.arguments()) {
        return Some(format!("{name} gets {} ({once})", word.text));
    }
    let arguments = with_options_of_environment(command, &surroundings.environment);
    row.concern(name, &arguments, appended, surroundings)
}

/// The first word that names what can't be read again.
fn read_once(arguments: &[TypedWord]) -> Option<(&TypedWord, &'static str)> {
    let value = |word: &TypedWord| match word.value.split_once('=') {
        Some((_, value)) => surroundings::read_once(value).or_else(|| surroundings::read_once(&word.value)),
        None => surroundings::read_once(&word.value),
    };
    arguments.iter().filter(|word| !word.expands).find_map(|word| Some((word, value(word)?)))
}

/// The arguments, with those that variables of the environment such as TAR_OPTIONS put before them.
fn with_options_of_environment(command: &TypedCommand, environment: &[u8]) -> Vec<TypedWord> {
    let name = command.program();
    let typed: Vec<String> = command.words.iter().map(|word| word.value.clone()).collect();
    let all = with_variables(&typed, &variables(name, environment));
    let added = all.len() - typed.len();
    let option = |value: &String| TypedWord { value: value.clone(), text: value.clone(), ..TypedWord::default() };
    all[1..].iter().take(added).map(option).chain(command.arguments().iter().cloned()).collect()
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ScriptLanguage {
    Sed,
    Awk,
}

/// What stands before the command that a program starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum FirstOperand {
    /// Settings such as `LC_ALL=C`.
    Settings,
    /// A time, a mask or a priority.
    Number,
}

/// The parts of a command line whose options are all known.
#[derive(Default)]
struct CommandParts<'a> {
    options: Vec<String>,
    /// The options that take a value, each with it and with the word that has it.
    values: Vec<(String, &'a str, &'a TypedWord)>,
    operands: Vec<&'a TypedWord>,
}

/// Options that make a program that tests or lists files replace them.
const REPLACING: [&str; 5] = ["-d", "-z", "--decompress", "--uncompress", "--compress"];

/// The value of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OptionValue<'a> {
    None,
    /// A value in the same word, or none.
    Joined,
    /// A value, of which this is the only one that is allowed; empty for any.
    Any(&'a str),
}

impl PurityRow {
    /// Whether an option is listed, and the value that it takes.
    fn listed(&self, option: &str) -> Option<OptionValue<'_>> {
        self.options.iter().find_map(|entry| match (entry.strip_suffix('?'), entry.split_once('=')) {
            (Some(name), _) => (name == option).then_some(OptionValue::Joined),
            (_, Some((name, value))) => (name == option).then_some(OptionValue::Any(value)),
            _ => (entry == option).then_some(OptionValue::None),
        })
    }

    /// The letters of short options that take a value.
    pub fn letters_with_values(&self) -> String {
        let short = self.options.iter().filter_map(|option| {
            let (name, _) = option.strip_prefix('-')?.split_once(['=', '?'])?;
            (!self.whole && name.chars().count() == 1).then_some(name)
        });
        self.values.chars().chain(short.flat_map(str::chars)).collect()
    }

    /// The options in a word, each with what is joined to it.
    fn options_in<'a>(&self, value: &'a str) -> Vec<(String, Option<&'a str>)> {
        if self.whole {
            // A number may be joined, as in -c16.
            let digits = value.trim_start_matches(|c: char| !c.is_ascii_digit());
            let (name, number) = value.split_at(value.len() - digits.len());
            let is_joined = digits.bytes().all(|byte| byte.is_ascii_digit())
                && name.len() == 2
                && matches!(self.listed(name), Some(OptionValue::Any("")));
            let number = Some(number).filter(|number| is_joined && !number.is_empty());
            return vec![(number.map_or(value, |_| name).to_owned(), number)];
        }
        if value.starts_with("--") {
            let (name, joined) = value.split_once('=').map_or((value, None), |(name, joined)| (name, Some(joined)));
            return vec![(name.to_owned(), joined)];
        }
        let mut found = Vec::new();
        for (at, letter) in value.char_indices().skip(1) {
            let option = format!("-{letter}");
            let rest = Some(&value[at + letter.len_utf8()..]).filter(|rest| !rest.is_empty());
            let takes_value = matches!(self.listed(&option), Some(OptionValue::Joined | OptionValue::Any(_)));
            found.push((option, rest.filter(|_| takes_value)));
            if takes_value {
                break;
            }
        }
        found
    }

    /// Separates options from operands as getopt does.
    ///
    /// # Errors
    /// An option that isn't listed.
    fn parts<'a>(&self, arguments: &[&'a TypedWord], is_posix: bool) -> Result<CommandParts<'a>, String> {
        let mut parts = CommandParts::default();
        let mut words = arguments.iter().copied();
        while let Some(word) = words.next() {
            let value = word.value.as_str();
            if value == "--" && !self.whole {
                parts.operands.extend(words);
                break;
            }
            if value.len() < 2 || !value.starts_with('-') {
                parts.operands.push(word);
                if self.starts {
                    parts.operands.extend(words);
                    break;
                }
                continue;
            }
            // With POSIXLY_CORRECT, some programs take it for an operand.
            if is_posix && !parts.operands.is_empty() {
                return Err(format!("{value} after an operand, and POSIXLY_CORRECT is set"));
            }
            for (option, joined) in self.options_in(value) {
                let Some(wanted) = self.listed(&option) else { return Err(option) };
                if let OptionValue::Any(wanted) = wanted {
                    let (value, from) = match joined {
                        Some(joined) => (joined, word),
                        None => words.next().map(|word| (word.value.as_str(), word)).ok_or_else(|| option.clone())?,
                    };
                    if !wanted.is_empty() && value != wanted {
                        return Err(format!("{option} {value}"));
                    }
                    parts.values.push((option.clone(), value, from));
                }
                parts.options.push(option);
            }
        }
        Ok(parts)
    }

    /// The concern about the action, such as `archive` of git, and those after the word `then`. Removes the first, and
    /// the file after it.
    fn concern_of_action(&self, name: &str, arguments: &mut Vec<&TypedWord>) -> Option<String> {
        let at = arguments.iter().position(|word| !word.value.starts_with("--"));
        let action = at.map_or("", |at| arguments[at].value.as_str());
        let entry_of = |action: &str| self.actions.iter().find(|entry| entry.split('=').next() == Some(action));
        let before = &arguments[..at.unwrap_or(arguments.len())];
        let mut options = before.iter().flat_map(|word| self.options_in(&word.value)).map(|(option, _)| option);
        if let Some(option) = options.find(|option| self.listed(option).is_none()) {
            return Some(format!("{name} has the option {option}"));
        }
        let Some((at, entry)) = at.zip(entry_of(action)) else {
            return Some(format!("{name} {action} may write"));
        };
        arguments.remove(at);
        if let Some((_, wanted)) = entry.split_once('=') {
            let file = (at < arguments.len()).then(|| arguments.remove(at));
            if file.is_none_or(|file| !wanted.is_empty() && file.value != wanted) {
                return Some(format!("{name} writes {}", file.map_or("a file", |file| file.text.as_str())));
            }
            if let Some(file) = file.filter(|file| self.is_remote(&file.value)) {
                return Some(format!("{name} connects to {}", file.text));
            }
        }
        if self.then.is_empty() {
            return None;
        }
        let next = arguments.windows(2).filter(|two| two[0].value == self.then).map(|two| two[1].value.as_str());
        let unknown = next.into_iter().find(|next| entry_of(next).is_none())?;
        Some(format!("{name} {unknown} may write"))
    }

    /// Whether a word names another machine, or what is fetched from one.
    fn is_remote(&self, value: &str) -> bool {
        self.remote.iter().any(|mark| match mark.as_str() {
            "host:" => value.split('/').next().is_some_and(|first| first.contains(':')),
            "://" => value.split_once("://").is_some_and(|(scheme, _)| {
                !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte))
            }),
            suffix => value.ends_with(suffix),
        })
    }

    pub fn concern(
        &self,
        name: &str,
        arguments: &[TypedWord],
        appended: bool,
        surroundings: &Surroundings,
    ) -> Option<String> {
        // In these programs, options may follow operands.
        let takes_long = self.refuses.iter().any(|begin| begin.starts_with("--"));
        if appended && !self.starts && (!self.any || takes_long) {
            return Some(format!("{name} gets words from xargs, and may replace files or take them for options"));
        }
        let is_refused = |word: &&TypedWord| self.refuses.iter().any(|begin| word.value.starts_with(begin.as_str()));
        if let Some(word) = arguments.iter().find(is_refused) {
            return Some(format!("{name} has the argument {}", word.text));
        }
        if self.any && self.refuses.is_empty() {
            return None;
        }
        // An expanded word may turn out to be an option.
        let begins_unknown = |word: &&TypedWord| {
            word.expands && word.text.starts_with(['$', '"', '\'', '`', '\\', '*', '?', '[', '{', '-'])
        };
        let unknown = |word: &TypedWord| Some(format!("{name} gets {}, whose value isn't known", word.text));
        if let Some(word) = arguments.iter().take_while(|word| word.value != "--").find(begins_unknown) {
            return unknown(word);
        }
        if self.any {
            return None;
        }
        // It may also turn out to be several words.
        let splits = arguments.iter().find(|word| word.splits);
        let mut arguments: Vec<&TypedWord> = arguments.iter().collect();
        if !self.actions.is_empty()
            && let Some(concern) = self.concern_of_action(name, &mut arguments)
        {
            return Some(concern);
        }
        let parts = match self.parts(&arguments, surroundings.is_posix) {
            Ok(parts) => parts,
            Err(option) => return Some(format!("{name} has the option {option}")),
        };
        let has = |option: &String| parts.options.contains(option);
        let only_tests =
            self.tests.iter().any(has) && !parts.options.iter().any(|option| REPLACING.contains(&option.as_str()));
        if !self.needs.is_empty() && !parts.operands.is_empty() && !self.needs.iter().any(has) && !only_tests {
            return Some(format!("{name} replaces {}", parts.operands[0].text));
        }
        if let Some(most) = self.operands {
            if parts.operands.len() > most {
                return Some(format!("{name} writes {}", parts.operands[parts.operands.len() - 1].text));
            }
            if let Some(several) = parts.operands.iter().find(|word| word.expands) {
                return unknown(several);
            }
        }
        let is_other = |word: &&&TypedWord| !self.begins.iter().any(|begin| word.value.starts_with(begin.as_str()));
        if let Some(word) = parts.operands.iter().find(is_other).filter(|_| !self.begins.is_empty()) {
            return Some(format!("{name} has the argument {}", word.text));
        }
        let named = parts.operands.iter().map(|word| (word.value.as_str(), *word));
        let named = named.chain(parts.values.iter().map(|(_, value, word)| (*value, *word)));
        if let Some((_, word)) = named.into_iter().find(|(value, _)| self.is_remote(value)) {
            return Some(format!("{name} connects to another machine for {}", word.text));
        }
        if self.asks.iter().any(has) && !self.answers.iter().any(has) {
            return Some(format!("{name} asks for a password at the terminal"));
        }
        if let Some(concern) = self.concern_of_script(name, &parts) {
            return Some(concern);
        }
        if let Some(word) = splits {
            return unknown(word);
        }
        if self.starts { self.concern_of_started(name, &parts.operands, appended, surroundings) } else { None }
    }

    /// The concern about a script of sed or awk.
    fn concern_of_script(&self, name: &str, parts: &CommandParts<'_>) -> Option<String> {
        let script = self.script?;
        let mut scripts: Vec<(&str, bool)> = parts
            .values
            .iter()
            .filter(|(option, _, _)| ["-e", "--expression"].contains(&option.as_str()))
            .map(|(_, script, word)| (*script, word.expands))
            .collect();
        let mut files = &parts.operands[..];
        if scripts.is_empty()
            && let Some((first, rest)) = parts.operands.split_first()
        {
            scripts.push((first.value.as_str(), first.expands));
            files = rest;
        }
        let only_reads = |&(text, expands): &(&str, bool)| {
            !expands
                && match script {
                    ScriptLanguage::Sed => scripts::sed_only_reads(text),
                    ScriptLanguage::Awk => scripts::awk_only_reads(text),
                }
        };
        if scripts.is_empty() || !scripts.iter().all(only_reads) {
            return Some(format!("the script of {name} may write"));
        }
        // gawk connects to such files.
        let connects = |word: &&&TypedWord| matches!(script, ScriptLanguage::Awk) && word.value.starts_with("/inet");
        files.iter().find(connects).map(|word| format!("{name} connects to {}", word.text))
    }

    /// The concern about the command that this program starts.
    fn concern_of_started(
        &self,
        name: &str,
        operands: &[&TypedWord],
        appended: bool,
        surroundings: &Surroundings,
    ) -> Option<String> {
        let mut words: Vec<TypedWord> = operands.iter().map(|word| (*word).clone()).collect();
        let is_setting = |word: &TypedWord| word.value.split_once('=').is_some_and(|(name, _)| !name.contains('/'));
        let mut variables = Vec::new();
        match self.first {
            Some(FirstOperand::Settings) => {
                while words.first().is_some_and(is_setting) {
                    let word = words.remove(0);
                    variables
                        .extend(word.value.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())));
                }
            }
            Some(FirstOperand::Number) if !words.is_empty() => {
                let word = words.remove(0);
                if !word.value.starts_with(|c: char| c.is_ascii_hexdigit() || c == '.') || word.expands {
                    return Some(format!("{name} has the argument {}", word.text));
                }
            }
            _ => {}
        }
        // Without a command, xargs starts echo, and the others print something.
        if words.is_empty() {
            return appended.then(|| format!("{name} starts what xargs reads"));
        }
        let command = TypedCommand { variables, words, redirections: Vec::new() };
        concern_of_command(&command, appended || name == "xargs", surroundings)
    }
}
