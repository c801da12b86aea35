//! Decides which stages may run again unasked: those whose program and options only read (purity.toml).

use std::sync::LazyLock;

use serde::Deserialize;

use pipemark_shell::RedirectionKind;

use crate::typed::{TypedCommand, TypedStage, TypedWord};
use pipemark_causes::scripts;

/// A row of purity.toml.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PurityRow {
    names: Vec<String>,
    values: String,
    effects: Vec<String>,
    needs: Vec<String>,
    operands: Option<usize>,
    script: Option<ScriptLanguage>,
    starts: bool,
    refuses: Vec<String>,
    actions: Vec<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ScriptLanguage {
    Sed,
    Awk,
}

#[derive(Debug, Deserialize)]
struct PurityTable {
    program: Vec<PurityRow>,
}

static TABLE: LazyLock<Vec<PurityRow>> = LazyLock::new(|| {
    toml::from_str::<PurityTable>(include_str!("purity.toml")).expect("a test reads the table").program
});

/// Directories whose programs are known by their names.
const SYSTEM_DIRECTORIES: [&str; 5] = ["/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/", "/usr/sbin/"];

/// Variables that only change how a program works, not what it writes to.
const HARMLESS_VARIABLES: [&str; 10] = [
    "LANG",
    "LANGUAGE",
    "TZ",
    "POSIXLY_CORRECT",
    "COLUMNS",
    "GREP_COLORS",
    "TERM",
    "OMP_NUM_THREADS",
    "TMPDIR",
    "NO_COLOR",
];

/// Why a stage can't run again unasked, as a clause such as `tee writes out.txt`; `None` if it only reads.
pub fn concern(stage: &TypedStage) -> Option<String> {
    let Some(command) = &stage.command else {
        return Some(format!("what '{}' does can't be seen from its text", shortened(&stage.text)));
    };
    redirected(command).or_else(|| concern_of_command(command))
}

/// A target of a redirection that isn't the pipeline.
fn redirected(command: &TypedCommand) -> Option<String> {
    let elsewhere = command.redirections.iter().find(|one| {
        let to_descriptor = matches!(one.kind, RedirectionKind::DuplicateOutput | RedirectionKind::DuplicateInput);
        let reads = matches!(one.kind, RedirectionKind::Read | RedirectionKind::HereString);
        let known = to_descriptor && ["0", "1", "2"].contains(&one.target.value.as_str());
        !(known || reads || one.target.value == "/dev/null")
    })?;
    Some(format!("{} is redirected to {}", command.program(), elsewhere.target.text))
}

fn concern_of_command(command: &TypedCommand) -> Option<String> {
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
    row.concern(name, command.arguments())
}

/// The parts of a command line: its options and its operands, in order.
struct CommandParts<'a> {
    /// Each option as it would stand alone, such as `-n` or `--output`, with its value.
    options: Vec<(String, Option<&'a str>)>,
    operands: Vec<&'a TypedWord>,
}

impl PurityRow {
    /// Separates options from operands as getopt does. Words after the first operand are operands if `stops` is set.
    fn parts<'a>(&self, arguments: &'a [TypedWord], stops: bool) -> CommandParts<'a> {
        let mut parts = CommandParts { options: Vec::new(), operands: Vec::new() };
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let value = word.value.as_str();
            if value == "--" {
                parts.operands.extend(words);
                break;
            } else if let Some(long) = value.strip_prefix("--") {
                let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
                parts.options.push((format!("--{name}"), value));
            } else if value.len() > 1 && value.starts_with('-') {
                for (at, letter) in value.char_indices().skip(1) {
                    let rest = &value[at + letter.len_utf8()..];
                    if self.values.contains(letter) {
                        let value =
                            if rest.is_empty() { words.next().map(|word| word.value.as_str()) } else { Some(rest) };
                        parts.options.push((format!("-{letter}"), value));
                        break;
                    }
                    parts.options.push((format!("-{letter}"), None));
                }
                // Some programs have long options with one dash.
                parts.options.push((value.to_owned(), None));
            } else {
                parts.operands.push(word);
                if stops {
                    parts.operands.extend(words);
                    break;
                }
            }
        }
        parts
    }

    fn concern(&self, name: &str, arguments: &[TypedWord]) -> Option<String> {
        let parts = self.parts(arguments, self.starts);
        let is_free = self.effects.is_empty()
            && self.needs.is_empty()
            && self.operands.is_none()
            && self.script.is_none()
            && !self.starts
            && self.refuses.is_empty()
            && self.actions.is_empty();
        // An expanded word may turn out to be an option.
        let unknown = |word: &&TypedWord| word.expands && word.text.starts_with(['$', '"', '*', '?', '[', '{']);
        if let Some(word) = arguments.iter().take_while(|word| word.value != "--").find(unknown).filter(|_| !is_free) {
            return Some(format!("{name} gets {}, whose value isn't known", word.text));
        }
        // GNU programs accept abbreviations of long options.
        let effect = parts.options.iter().find(|(option, _)| {
            self.effects.iter().any(|effect| {
                effect == option || option.len() > 3 && option.starts_with("--") && effect.starts_with(option.as_str())
            })
        });
        if let Some((option, _)) = effect {
            return Some(format!("{name} has the option {option}"));
        }
        let needs = |option: &String| parts.options.iter().any(|(given, _)| given == option);
        if !self.needs.is_empty() && !parts.operands.is_empty() && !self.needs.iter().any(needs) {
            return Some(format!("{name} replaces {}", parts.operands[0].text));
        }
        if self.operands.is_some_and(|most| parts.operands.len() > most) {
            return Some(format!("{name} writes {}", parts.operands[parts.operands.len() - 1].text));
        }
        let refused = arguments.iter().find(|word| {
            let value = word.value.as_str();
            self.refuses
                .iter()
                .any(|refused| value == refused || refused.ends_with('=') && value.starts_with(refused.as_str()))
        });
        if let Some(word) = refused {
            return Some(format!("{name} has the argument {}", word.text));
        }
        let action = arguments.iter().find(|word| !word.value.starts_with("--")).map_or("", |word| word.value.as_str());
        if !self.actions.is_empty() && !self.actions.iter().any(|one| one == action) {
            return Some(format!("{name} {action} may write"));
        }
        if self.starts {
            return self.concern_of_started(name, &parts.operands);
        }
        let script = self.script?;
        let given: Vec<&str> = parts
            .options
            .iter()
            .filter(|(option, _)| ["-e", "--expression"].contains(&option.as_str()))
            .filter_map(|(_, value)| *value)
            .collect();
        let scripts = match (script, given.is_empty()) {
            (ScriptLanguage::Sed, false) => given,
            _ => parts.operands.first().map(|word| word.value.as_str()).into_iter().collect(),
        };
        let only_reads = |text: &&str| match script {
            ScriptLanguage::Sed => scripts::sed_only_reads(text),
            ScriptLanguage::Awk => scripts::awk_only_reads(text),
        };
        (scripts.is_empty() || !scripts.iter().all(only_reads)).then(|| format!("the script of {name} may write"))
    }

    /// The concern about the command that this program starts.
    fn concern_of_started(&self, name: &str, operands: &[&TypedWord]) -> Option<String> {
        let mut words: Vec<TypedWord> = operands.iter().map(|word| (*word).clone()).collect();
        let is_setting = |word: &TypedWord| word.value.split_once('=').is_some_and(|(name, _)| !name.contains('/'));
        let mut variables = Vec::new();
        match name {
            "env" => {
                while words.first().is_some_and(is_setting) {
                    let word = words.remove(0);
                    variables
                        .extend(word.value.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())));
                }
            }
            // Their first operand is a time, a mask or a priority.
            "timeout" | "taskset" | "chrt" if !words.is_empty() => {
                words.remove(0);
            }
            _ => {}
        }
        // Without a command, xargs starts echo, and the others print something.
        if words.is_empty() {
            return None;
        }
        concern_of_command(&TypedCommand { variables, words, redirections: Vec::new() })
    }
}

/// The beginning of a text, on one line.
pub fn shortened(text: &str) -> String {
    const MOST: usize = 40;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn concern(text: &str) -> Option<String> {
        super::concern(&TypedStage::of(text.to_owned(), pipemark_shell::Dialect::Bash))
    }

    #[test]
    fn programs_that_only_read_are_known() {
        for text in [
            "zcat a.gz",
            "cat *.log",
            "grep -v bot",
            "cut -d' ' -f1",
            "sort -rn -k2,2 -t ,",
            "uniq -c",
            "head -n 5",
            "sort -to",
            "sort -k2o",
            "gzip -9",
            "gzip -dc a.gz",
            "LC_ALL=C sort",
            "awk '{c[$1]++} END {for (k in c) print c[k], k}'",
            "awk '$3 > 5 || $1 ~ /a|b/'",
            "sed -n 's/a/b/gp;5q'",
            "sed -e 's,a,b,' -e '/x/d'",
            "xargs -n 1 grep x",
            "find . -name '*.c'",
            "jq -r .path",
            "tr a-z A-Z <in",
            "sort 2>/dev/null",
            "git log --oneline",
            "dd bs=64k",
            "/usr/bin/sort",
            "env LC_ALL=C sort",
            "grep -- \"$x\" f",
            "tar cf - dir",
            "nice -n 5 sort",
        ] {
            assert_eq!(concern(text), None, "{text}");
        }
    }

    #[test]
    fn what_may_write_is_refused_with_its_reason() {
        for (text, reason) in [
            ("sed -i s/a/b/ f", "-i"),
            ("sed -ni s/a/b/ f", "-i"),
            ("sed 's/a/b/w out'", "script"),
            ("sed 's/x/y/e'", "script"),
            ("sort -uo f f", "-o"),
            ("sort --outp=f f", "--outp"),
            ("awk '{print > \"f\"}'", "script"),
            ("awk '{system(\"x\")}'", "script"),
            ("awk '{print | \"sort\"}'", "script"),
            ("tee f", "anything"),
            ("uniq a b", "writes b"),
            ("gzip f", "replaces f"),
            ("find . -delete", "-delete"),
            ("xargs rm", "rm may do anything"),
            ("tail -f log", "-f"),
            ("python3 x.py", "anything"),
            ("./sort", "./sort"),
            ("sort >out", "redirected to out"),
            ("sort >>out", "out"),
            ("while read x; do rm $x; done", "can't be seen"),
            ("dd of=f", "of=f"),
            ("sort $OPTIONS", "$OPTIONS"),
            ("git push", "git push"),
            ("LD_PRELOAD=x sort", "LD_PRELOAD"),
            ("env -i rm f", "rm"),
            ("awk -f x.awk", "-f"),
            ("tar xf a.tar", "tar xf"),
            ("curl http://a", "anything"),
            ("sort --compress-program=x", "--compress-program"),
        ] {
            let found = concern(text);
            assert!(found.as_ref().is_some_and(|found| found.contains(reason)), "{text}: {found:?}");
        }
    }

    #[test]
    fn each_name_has_one_row() {
        let mut names: Vec<&String> = TABLE.iter().flat_map(|row| &row.names).collect();
        names.sort();
        let twice = names.windows(2).find(|two| two[0] == two[1]);
        assert_eq!(twice, None);
    }
}
