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
    any: bool,
    values: String,
    options: Vec<String>,
    whole: bool,
    needs: Vec<String>,
    operands: Option<usize>,
    begins: Vec<String>,
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
const HARMLESS_VARIABLES: [&str; 9] =
    ["LANG", "LANGUAGE", "TZ", "COLUMNS", "GREP_COLORS", "TERM", "OMP_NUM_THREADS", "TMPDIR", "NO_COLOR"];

/// Why a stage can't run again unasked, as a clause such as `tee writes out.txt`; `None` if it only reads.
pub fn concern(stage: &TypedStage) -> Option<String> {
    let Some(command) = &stage.command else {
        return Some(format!("what '{}' does can't be seen from its text", shortened(&stage.text)));
    };
    redirected(command).or_else(|| concern_of_command(command, false))
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

/// The concern about a command; with `appended`, xargs adds words to it.
fn concern_of_command(command: &TypedCommand, appended: bool) -> Option<String> {
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
    row.concern(name, command.arguments(), appended)
}

/// How a program's options are written.
pub struct OptionSyntax {
    /// Letters of short options that take a value.
    pub values: String,
    /// Whether words after the first operand belong to another command.
    pub stops: bool,
}

/// How the options of a known program are written.
pub fn option_syntax(program: &str) -> Option<OptionSyntax> {
    let row = TABLE.iter().find(|row| row.names.iter().any(|name| name == program))?;
    let short = row.options.iter().filter_map(|option| option.strip_prefix('-')?.split_once('=').map(|(name, _)| name));
    let letters = short.filter(|name| !row.whole && name.chars().count() == 1).flat_map(str::chars);
    Some(OptionSyntax { values: row.values.chars().chain(letters).collect(), stops: row.starts })
}

/// The parts of a command line whose options are all known.
#[derive(Default)]
struct CommandParts<'a> {
    options: Vec<String>,
    /// The options that take a value, each with it and with the word that has it.
    values: Vec<(String, &'a str, &'a TypedWord)>,
    operands: Vec<&'a TypedWord>,
}

impl PurityRow {
    /// Whether an option is listed; if it takes a value, the only one that it may have, empty for any.
    fn listed(&self, option: &str) -> Option<Option<&str>> {
        self.options.iter().find_map(|entry| match entry.split_once('=') {
            Some((name, value)) => (name == option).then_some(Some(value)),
            None => (entry == option).then_some(None),
        })
    }

    /// Separates options from operands as getopt does.
    ///
    /// # Errors
    /// An option that isn't listed.
    fn parts<'a>(&self, arguments: &[&'a TypedWord]) -> Result<CommandParts<'a>, String> {
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
            // Each option, and what is joined to it.
            let mut given: Vec<(String, Option<&'a str>)> = Vec::new();
            if self.whole {
                given.push((value.to_owned(), None));
            } else if value.starts_with("--") {
                let (name, joined) = value.split_once('=').map_or((value, None), |(name, joined)| (name, Some(joined)));
                given.push((name.to_owned(), joined));
            } else {
                for (at, letter) in value.char_indices().skip(1) {
                    let option = format!("-{letter}");
                    let rest = Some(&value[at + letter.len_utf8()..]).filter(|rest| !rest.is_empty());
                    let takes_value = matches!(self.listed(&option), Some(Some(_)));
                    given.push((option, rest.filter(|_| takes_value)));
                    if takes_value {
                        break;
                    }
                }
            }
            for (option, joined) in given {
                let Some(wanted) = self.listed(&option) else { return Err(option) };
                if let Some(wanted) = wanted {
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

    /// The concern about the action, such as `archive` of git. Removes it, and the file after it.
    fn concern_of_action(&self, name: &str, arguments: &mut Vec<&TypedWord>) -> Option<String> {
        let at = arguments.iter().position(|word| !word.value.starts_with("--"));
        let action = at.map_or("", |at| arguments[at].value.as_str());
        let entry = |entry: &&String| entry.split('=').next() == Some(action);
        let Some((at, entry)) = at.zip(self.actions.iter().find(entry)) else {
            return Some(format!("{name} {action} may write"));
        };
        arguments.remove(at);
        if let Some((_, wanted)) = entry.split_once('=') {
            let file = (at < arguments.len()).then(|| arguments.remove(at));
            if file.is_none_or(|file| !wanted.is_empty() && file.value != wanted) {
                return Some(format!("{name} writes {}", file.map_or("a file", |file| file.text.as_str())));
            }
        }
        None
    }

    fn concern(&self, name: &str, arguments: &[TypedWord], appended: bool) -> Option<String> {
        if self.any {
            return None;
        }
        if appended && !self.starts {
            return Some(format!("{name} gets words from xargs, and may replace files or take them for options"));
        }
        // An expanded word may turn out to be an option.
        let unknown = |word: &&TypedWord| {
            word.expands && word.text.starts_with(['$', '"', '\'', '`', '\\', '*', '?', '[', '{', '-'])
        };
        if let Some(word) = arguments.iter().take_while(|word| word.value != "--").find(unknown) {
            return Some(format!("{name} gets {}, whose value isn't known", word.text));
        }
        let mut arguments: Vec<&TypedWord> = arguments.iter().collect();
        if !self.actions.is_empty()
            && let Some(concern) = self.concern_of_action(name, &mut arguments)
        {
            return Some(concern);
        }
        let parts = match self.parts(&arguments) {
            Ok(parts) => parts,
            Err(option) => return Some(format!("{name} has the option {option}")),
        };
        let needs = |option: &String| parts.options.contains(option);
        if !self.needs.is_empty() && !parts.operands.is_empty() && !self.needs.iter().any(needs) {
            return Some(format!("{name} replaces {}", parts.operands[0].text));
        }
        if let Some(most) = self.operands {
            if parts.operands.len() > most {
                return Some(format!("{name} writes {}", parts.operands[parts.operands.len() - 1].text));
            }
            if let Some(several) = parts.operands.iter().find(|word| word.expands) {
                return Some(format!("{name} gets {}, whose value isn't known", several.text));
            }
        }
        let is_refused = |word: &&&TypedWord| {
            let begins = |begin: &String| word.value.starts_with(begin.as_str());
            self.refuses.contains(&word.value) || !self.begins.is_empty() && !self.begins.iter().any(begins)
        };
        if let Some(word) = parts.operands.iter().find(is_refused) {
            return Some(format!("{name} has the argument {}", word.text));
        }
        if self.starts {
            return self.concern_of_started(name, &parts.operands, appended);
        }
        let script = self.script?;
        let mut scripts: Vec<(&str, bool)> = parts
            .values
            .iter()
            .filter(|(option, _, _)| ["-e", "--expression"].contains(&option.as_str()))
            .map(|(_, script, word)| (*script, word.expands))
            .collect();
        if scripts.is_empty() {
            scripts.extend(parts.operands.first().map(|word| (word.value.as_str(), word.expands)));
        }
        let only_reads = |&(text, expands): &(&str, bool)| {
            !expands
                && match script {
                    ScriptLanguage::Sed => scripts::sed_only_reads(text),
                    ScriptLanguage::Awk => scripts::awk_only_reads(text),
                }
        };
        (scripts.is_empty() || !scripts.iter().all(only_reads)).then(|| format!("the script of {name} may write"))
    }

    /// The concern about the command that this program starts.
    fn concern_of_started(&self, name: &str, operands: &[&TypedWord], appended: bool) -> Option<String> {
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
            return appended.then(|| format!("{name} starts what xargs reads"));
        }
        concern_of_command(&TypedCommand { variables, words, redirections: Vec::new() }, appended || name == "xargs")
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
            "xargs cat",
            "xargs -n1 env LC_ALL=C grep x",
            "tar -cf - --exclude=x dir",
            "tar tf a.tar",
            "tail -20",
            "sed --expression p -n",
            "find . -type f '(' -name a -o -name b ')' -print0",
            "openssl enc -aes-256-ctr -k x",
            "awk '{ print ($1 + $2) / 2 }'",
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
            ("xargs gzip", "gzip gets words from xargs"),
            ("xargs -n2 uniq", "uniq gets words from xargs"),
            ("xargs sort", "sort gets words from xargs"),
            ("xargs nice", "nice starts what xargs reads"),
            ("uniq dir/*", "dir/*"),
            ("tar cf out.tar dir", "writes out.tar"),
            ("tar -c -f out.tar dir", "-f out.tar"),
            ("tar cf - --remove-file dir", "--remove-file"),
            ("tar cf - --checkpoint-action exec=x dir", "--checkpoint-action"),
            ("xz --files=list", "--files"),
            ("zstd --filelist=list", "--filelist"),
            ("fd -Hx rm", "-x"),
            ("openssl enc -out=x", "-out=x"),
            ("openssl enc --out x", "--out"),
            ("samtools view --unoutput f a.bam", "--unoutput"),
            ("mlr --prepipex x cat f", "--prepipex"),
            ("csvclean f", "anything"),
            ("xsv index f", "xsv index"),
            ("recode u8..l1 f", "anything"),
            ("file -C -m f", "-C"),
            ("sed -e p --expression 'w out'", "script"),
            ("sed ':a;w out'", "script"),
            ("sed \"s/a/$x/\"", "isn't known"),
            ("sed s/a/$x/", "script"),
            ("sort -$x", "isn't known"),
            ("mawk -W exec=f", "-W exec=f"),
            ("POSIXLY_CORRECT=1 gzip f -c", "POSIXLY_CORRECT"),
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
