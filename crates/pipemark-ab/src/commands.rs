//! The commands to measure: each command that the user typed, for each combination of parameters, with names and hooks.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use pipemark_model::{Capacity, counted, neutral};
use pipemark_shell::{Script, shown_command};

use crate::hooks::Hooks;
use crate::pipeline::TimedCommand;
use crate::placeholders::{self, Parameter, ParameterSetting, combinations, replaced, replaced_in_name};
use crate::shell::Shell;

/// A command to measure.
#[derive(Debug, Clone)]
pub struct CommandEntry {
    /// The command's label in tables and sentences: its name, or A, B, C, or its parameters.
    pub label: String,
    /// Whether the label is the name given with `--name`.
    pub named: bool,
    /// The command with its parameters.
    pub text: OsString,
    /// The values of its parameters.
    pub parameters: Vec<ParameterSetting>,
    /// The stages to run.
    pub command: TimedCommand,
    /// The hooks around its runs.
    pub hooks: Hooks,
}

impl CommandEntry {
    /// The command's bytes in hexadecimal, if it isn't UTF-8.
    pub fn hex(&self) -> Option<String> {
        let bytes = self.text.as_bytes();
        std::str::from_utf8(bytes).is_err().then(|| bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

/// The values given on the command line. A list of one value applies to all commands. Otherwise there is one value for
/// each command.
#[derive(Debug, Clone, Default)]
pub struct TypedCommands {
    /// The shell that runs them.
    pub shell: Shell,
    pub commands: Vec<OsString>,
    pub names: Vec<String>,
    pub parameters: Vec<Parameter>,
    pub capacities: Vec<Capacity>,
    pub setup: Vec<OsString>,
    pub prepare: Vec<OsString>,
    pub conclude: Vec<OsString>,
    pub cleanup: Vec<OsString>,
}

/// The largest number of commands that are measured without `--yes`.
pub const MAX_WITHOUT_YES: usize = 256;

/// All commands, each in all combinations of its parameters.
///
/// # Errors
/// A message, when the lengths of lists don't match, a parameter is unused, or a pipeline can't be split for
/// `--capacity`.
pub fn entries(typed: &TypedCommands) -> Result<Vec<CommandEntry>, String> {
    let mut commands = typed.commands.clone();
    // One command with several capacities becomes several.
    if let ([one], [_, _, ..]) = (commands.as_slice(), typed.capacities.as_slice()) {
        commands = vec![one.clone(); typed.capacities.len()];
    }
    let count = commands.len();
    let lists: [(&str, &[OsString]); 4] = [
        ("--setup", &typed.setup),
        ("--prepare", &typed.prepare),
        ("--conclude", &typed.conclude),
        ("--cleanup", &typed.cleanup),
    ];
    for (flag, given) in lists.iter().map(|(flag, list)| (*flag, list.len())) {
        if given > 1 && given != count {
            return Err(format!(
                "{flag} is given {given} times for {}; give one for all, or one for each",
                counted(count, "command")
            ));
        }
    }
    if !typed.names.is_empty() && typed.names.len() != count {
        return Err(format!(
            "--name is given {} for {}; give one for each",
            counted(typed.names.len(), "time"),
            counted(count, "command")
        ));
    }
    let capacities = typed.capacities.len();
    if capacities > 1 && capacities != count {
        return Err(format!(
            "--capacity has {capacities} values for {}; use one, or one for each",
            counted(count, "command")
        ));
    }
    let hooks = lists.iter().flat_map(|(_, list)| list.iter());
    let texts = commands.iter().chain(hooks).map(OsString::as_os_str);
    let texts: Vec<&OsStr> = texts.chain(typed.names.iter().map(OsStr::new)).collect();
    placeholders::check(&typed.parameters, &texts)?;
    let mut all: Vec<CommandEntry> = Vec::new();
    for settings in combinations(&typed.parameters) {
        for (at, text) in commands.iter().enumerate() {
            let of = |list: &[OsString]| list.get(at).or(list.first()).map(|text| replaced(text, &settings));
            let capacity = typed.capacities.get(at).or(typed.capacities.first()).copied();
            let text = replaced(text, &settings);
            all.push(CommandEntry {
                label: label(typed, at, count, &settings),
                named: !typed.names.is_empty(),
                command: TimedCommand { stages: split(&text, capacity, typed.shell)?, capacity },
                text,
                hooks: Hooks {
                    setup: of(&typed.setup),
                    prepare: of(&typed.prepare),
                    conclude: of(&typed.conclude),
                    cleanup: of(&typed.cleanup),
                },
                parameters: settings.clone(),
            });
        }
    }
    if all.iter().any(|entry| entry.label.is_empty()) {
        return Err("a --name is empty".to_owned());
    }
    let twice = all.iter().enumerate().find(|(at, entry)| all[..*at].iter().any(|other| other.label == entry.label));
    match twice {
        Some((_, entry)) => Err(format!(
            "two commands are called '{}'; add {{PARAMETER}} to --name to distinguish them",
            neutral(&entry.label)
        )),
        None => Ok(all),
    }
}

/// The command's label: its name, if it has one. Otherwise its letter, its parameter values such as `threads=2`, or
/// both, such as `A threads=2`.
fn label(typed: &TypedCommands, at: usize, count: usize, settings: &[ParameterSetting]) -> String {
    if let Some(name) = typed.names.get(at) {
        return replaced_in_name(name, settings);
    }
    let letter = u8::try_from(at).ok().filter(|at| *at < 26).map(|at| char::from(b'A' + at).to_string());
    let letter = letter.unwrap_or_else(|| (at + 1).to_string());
    let pairs: Vec<String> = settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
    match (pairs.is_empty(), count) {
        (true, _) => letter,
        (false, 1) => pairs.join(" "),
        (false, _) => format!("{letter} {}", pairs.join(" ")),
    }
}

/// The command's stages: the whole command without `capacity`, otherwise its parts between the pipes.
fn split(text: &OsStr, capacity: Option<Capacity>, shell: Shell) -> Result<Vec<OsString>, String> {
    let shown = || neutral(&shown_command(text.as_bytes()));
    match capacity {
        None => Ok(vec![text.to_owned()]),
        Some(Capacity::QUOTA) => Err("--capacity quota is for 'pipemark bw'; use a size".to_owned()),
        Some(_) => {
            let stages = stages(text, shell).map_err(|error| format!("'{}': {error}", shown()))?;
            match stages.len() {
                1 => Err(format!("'{}' has no pipe for --capacity; omit it", shown())),
                _ => Ok(stages),
            }
        }
    }
}

/// The maximum number of stages of a pipeline. Each stage takes a process and two descriptors.
const MAX_STAGES: usize = 64;

/// The stages of a pipeline, each a command for the shell, so that pipemark can create the pipes between them.
///
/// # Errors
/// A message, when it is not a single pipeline of such stages, or it can't be parsed.
pub fn stages(text: &OsStr, shell: Shell) -> Result<Vec<OsString>, String> {
    let wrap = |what: &dyn std::fmt::Display| {
        format!("{what} cannot be split into stages; put it in ( ) to make it one stage, or omit --capacity")
    };
    let script = Script::parse(text.as_bytes(), shell.dialect()).map_err(|error| error.to_string())?;
    let stages = script.separate_stages().map_err(|error| wrap(&error))?;
    if stages.len() > MAX_STAGES {
        return Err(format!("{} stages are too many; at most {MAX_STAGES} can be started", stages.len()));
    }
    Ok(stages.into_iter().map(|stage| OsString::from_vec(stage.to_vec())).collect())
}

/// The index of the command that `--reference` names, by number or by label.
///
/// # Errors
/// A message.
pub fn reference(entries: &[CommandEntry], wanted: &str) -> Result<usize, String> {
    let named = entries.iter().position(|entry| entry.label == wanted);
    let numbered = || wanted.parse::<usize>().ok().filter(|number| (1..=entries.len()).contains(number));
    named.or_else(|| numbered().map(|number| number - 1)).ok_or_else(|| {
        let labels: Vec<&str> = entries.iter().take(8).map(|entry| entry.label.as_str()).collect();
        let (count, labels) = (entries.len(), neutral(&labels.join(", ")));
        format!("--reference '{}' is not a command; use 1 to {count}, or a name: {labels}", neutral(wanted))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(commands: &[&str]) -> TypedCommands {
        TypedCommands { commands: commands.iter().map(OsString::from).collect(), ..TypedCommands::default() }
    }

    fn labels(typed: &TypedCommands) -> Vec<String> {
        entries(typed).unwrap().into_iter().map(|entry| entry.label).collect()
    }

    #[test]
    fn a_pipeline_is_split_at_its_bars() {
        let stages = |text: &str, shell| stages(OsStr::new(text), shell);
        let split = |text: &str| stages(text, Shell::Sh).unwrap();
        assert_eq!(split("seq 9|sort -r | wc -l"), ["seq 9", "sort -r", "wc -l"]);
        for (text, expected) in [
            ("grep 'a|b' x | wc", ["grep 'a|b' x", "wc"]),
            (r#"grep "a|\"|b" x | wc"#, [r#"grep "a|\"|b" x"#, "wc"]),
            ("echo $(seq 3 | wc; true) | wc", ["echo $(seq 3 | wc; true)", "wc"]),
            ("echo `seq 3 | wc` | wc", ["echo `seq 3 | wc`", "wc"]),
            ("(seq 3; seq 4 | wc) | wc", ["(seq 3; seq 4 | wc)", "wc"]),
            ("echo ${x:-a|b} | wc", ["echo ${x:-a|b}", "wc"]),
            ("seq 3 2>&1 | wc", ["seq 3 2>&1", "wc"]),
            ("seq 3 >|x | wc", ["seq 3 >|x", "wc"]),
            ("find . -name x -exec cat {} + | wc", ["find . -name x -exec cat {} +", "wc"]),
            ("while read x; do echo; done | wc", ["while read x; do echo; done", "wc"]),
        ] {
            assert_eq!(split(text), expected, "{text}");
        }
        for (text, word) in [
            ("", "no command"),
            ("seq 3 |", "missing"),
            ("| wc", "unexpected"),
            ("a; b | c", "list of commands"),
            ("a && b", "list of commands"),
            ("a &", "list of commands"),
            ("a |& b", "|&"),
            ("a # | b", "comment"),
            ("cat <<x | wc\nx\n", "here-document"),
            ("! a | b", "'!'"),
            ("a 'b", "' is missing"),
            ("(a", "missing"),
            ("a &> x | b", "&>"),
        ] {
            let error = stages(text, Shell::Sh).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
        assert!(stages("a &> x | b", Shell::Bash).is_ok());
        assert!(stages(&["a"; 65].join("|"), Shell::Sh).unwrap_err().contains("65 stages"));
    }

    #[test]
    fn labels_are_letters_parameter_values_or_names() {
        assert_eq!(labels(&typed(&["a", "b", "c"])), ["A", "B", "C"]);
        let threads = "threads=1,2".parse().unwrap();
        let one = TypedCommands { parameters: vec![threads], ..typed(&["make -j{threads}"]) };
        assert_eq!(labels(&one), ["threads=1", "threads=2"]);
        assert_eq!(entries(&one).unwrap()[1].text, "make -j2");
        let two = TypedCommands { commands: vec!["a {threads}".into(), "b".into()], ..one.clone() };
        assert_eq!(labels(&two), ["A threads=1", "B threads=1", "A threads=2", "B threads=2"]);
        let named = TypedCommands { names: vec!["jobs {threads}".into()], ..one.clone() };
        assert_eq!(labels(&named), ["jobs 1", "jobs 2"]);
        let alike = TypedCommands { names: vec!["jobs".into()], ..one };
        assert!(entries(&alike).unwrap_err().contains("two commands are called 'jobs'"));
        let empty = TypedCommands { names: vec![String::new()], ..typed(&["make"]) };
        assert!(entries(&empty).unwrap_err().contains("is empty"));
    }

    #[test]
    fn hooks_are_for_all_or_for_each() {
        let with = |setup: &[&str]| TypedCommands {
            setup: setup.iter().map(|text| (*text).into()).collect(),
            ..typed(&["a", "b"])
        };
        let setups = |typed: &TypedCommands| {
            entries(typed).unwrap().into_iter().map(|entry| entry.hooks.setup).collect::<Vec<_>>()
        };
        assert_eq!(setups(&with(&["x"])), [Some("x".into()), Some("x".into())]);
        assert_eq!(setups(&with(&["x", "y"])), [Some("x".into()), Some("y".into())]);
        assert!(entries(&with(&["x", "y", "z"])).unwrap_err().contains("3 times for 2 commands"));
    }

    #[test]
    fn hooks_have_parameters_too() {
        let setup = TypedCommands {
            setup: vec!["git checkout {branch}".into()],
            parameters: vec!["branch=main,next".parse().unwrap()],
            ..typed(&["make"])
        };
        assert_eq!(entries(&setup).unwrap()[1].hooks.setup.as_deref(), Some(OsStr::new("git checkout next")));
    }

    #[test]
    fn the_reference_is_a_number_or_a_name() {
        let all = entries(&TypedCommands { names: vec!["old".into(), "new".into()], ..typed(&["a", "b"]) }).unwrap();
        assert_eq!((reference(&all, "2"), reference(&all, "old")), (Ok(1), Ok(0)));
        for wrong in ["0", "3", "other"] {
            assert!(reference(&all, wrong).unwrap_err().contains("1 to 2"), "{wrong}");
        }
    }
}
