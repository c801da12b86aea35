//! Whether a remedy's command is known to do what the command as typed does. Pure.

use pipemark_shell::{FoundCommand, Script, Word, program_after_wrappers};

use crate::cause::CauseName;
use crate::environment::{self, with_variables};
use crate::figures::PipelineFigures;
use crate::options::{TO_STDOUT, arguments};
use crate::programs::has_option;
use crate::remedy_row::{RemedyRow, ScriptKind, TABLE};
use crate::report::StageFigures;
use crate::scripts;

/// Directories whose programs are known by their names.
const SYSTEM_DIRECTORIES: [&str; 5] = ["/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/", "/usr/sbin/"];

/// Wrappers that find a program as the shell does.
const NEUTRAL_WRAPPERS: [&str; 11] =
    ["nice", "ionice", "nohup", "setsid", "stdbuf", "timeout", "time", "chrt", "taskset", "command", "cpulimit"];

/// Variables with options of programs that remedies put in place of others.
const OF_NEW_PROGRAMS: [&str; 3] = ["PIGZ", "LBZIP2", "MAWK_LONG_OPTIONS"];

/// Programs that may limit the memory of what they start.
const LIMITING: [&str; 4] = ["ulimit", "prlimit", "systemd-run", "cgexec"];

/// Options of sort that need input which is sorted in the same way.
const NEED_ORDER: [&str; 6] = ["-c", "-C", "-m", "--check", "--merge", "--files0-from"];

/// The functions that bash takes from an environment, of the names of these stages and of the programs that remedies
/// start.
pub fn functions<'s>(stages: impl Iterator<Item = &'s str>, environment: &[u8]) -> Vec<String> {
    environment::functions(stages.chain(TABLE.iter().flat_map(RemedyRow::new_programs)), environment)
}

impl RemedyRow {
    /// Whether the row's command is known to do the same with the options and operands of a stage.
    pub(crate) fn is_proved_for(&self, stage: &StageFigures, figures: &PipelineFigures) -> bool {
        let Some(allowed) = &self.options else { return false };
        let words = with_variables(&stage.words, &stage.variables);
        let is_set = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            environment::set(&stage.variables, &names).is_some()
        };
        // With this variable, options may not follow operands.
        let appends = self.command.starts_with("{program} {args} ");
        if self.memory && figures.limits.memory_limited
            || appends && is_set(&["POSIXLY_CORRECT"])
            || self.replaces_program() && (is_set(&OF_NEW_PROGRAMS) || words.iter().skip(1).any(|word| is_number(word)))
        {
            return false;
        }
        let is_follower = |one: &StageFigures| {
            self.followers.contains(&one.name) && !(one.name == "sort" && has_option(&one.words, &NEED_ORDER))
        };
        let mut later = figures.stages.iter().filter(|one| one.number > stage.number);
        if !self.followers.is_empty() && !later.all(is_follower) {
            return false;
        }
        if allowed.iter().any(|option| option == "*") {
            return true;
        }
        let Some(found) = arguments(&words, allowed) else { return false };
        let operands = &found.operands;
        let is_allowed = |operand: &&str| self.operands.iter().any(|entry| fits(operand, entry));
        let writes =
            operands.is_empty() || has_option(&words, &TO_STDOUT) && (operands.len() == 1 || !self.operands.is_empty());
        let scripts = || {
            let given: Vec<&str> = found
                .values
                .iter()
                .filter(|(option, _)| ["-e", "--expression"].contains(option))
                .map(|(_, script)| *script)
                .collect();
            if given.is_empty() { operands.first().copied().into_iter().collect() } else { given }
        };
        (self.operands.is_empty() || operands.iter().all(is_allowed))
            && (self.first.is_empty()
                || operands.first().is_some_and(|first| self.first.iter().any(|one| one == first)))
            && (!self.filter || writes)
            && self.script.is_none_or(|kind| kind.holds(&scripts()))
    }

    /// Whether the text makes sure that the row's command runs the programs that it names.
    pub(crate) fn is_proved_in(&self, script: &Script, found: &FoundCommand<'_>, functions: &[String]) -> bool {
        let FoundCommand { simple, program, .. } = *found;
        let Some(name) = simple.words[program].as_str() else { return false };
        let of_system = |directory: &&str| name.strip_prefix(*directory).is_some_and(|rest| !rest.contains('/'));
        if name.contains('/') && !SYSTEM_DIRECTORIES.iter().any(of_system) {
            return false;
        }
        // A command in a loop runs with other words each time, and one in a function whenever it is called.
        if found.is_repeated(script) {
            return false;
        }
        let wrappers = program_after_wrappers(&simple.words).map_or_else(Vec::new, |(_, wrappers)| wrappers);
        // What a killed program holds in its buffer is lost, and with pipefail a writer's signal is the exit code.
        let is_killed = wrappers.iter().any(|wrapper| wrapper.name == "timeout");
        let has_pipefail = script.text().windows(8).any(|bytes| bytes == b"pipefail");
        if self.changes_calls() && (is_killed || has_pipefail) {
            return false;
        }
        if self.memory && script.program_names().iter().any(|name| LIMITING.contains(name)) {
            return false;
        }
        let mut new = self.new_programs().peekable();
        if new.peek().is_none() {
            return true;
        }
        let sets_path = script.text().windows(5).any(|bytes| bytes == b"PATH=");
        !sets_path
            && wrappers.iter().all(|wrapper| NEUTRAL_WRAPPERS.contains(&wrapper.name.as_str()))
            && new
                .all(|name| !script.may_redefine(name.as_bytes()) && functions.iter().all(|function| function != name))
    }

    /// Whether the row changes how much a stage reads or writes at once.
    pub(crate) fn changes_calls(&self) -> bool {
        self.cause.iter().any(|name| name.is_of_calls() || *name == CauseName::Buffering)
    }

    /// The number of words, the program's included, before the first operand; `None` if options may follow operands.
    pub(crate) fn end_of_options(&self, words: &[Word]) -> Option<usize> {
        let allowed = self.options.as_ref().filter(|allowed| allowed.iter().any(|option| option == "+"))?;
        let words: Vec<String> = words.iter().map(|word| word.as_str().unwrap_or("$").to_owned()).collect();
        Some(arguments(&words, allowed).map_or(1, |found| found.first))
    }

    /// Whether the command runs another program instead of the row's.
    pub(crate) fn replaces_program(&self) -> bool {
        self.command.strip_suffix(" {args}").is_some_and(|name| !name.starts_with("{program}"))
    }

    /// The names of the programs that the row's command starts and that the user may not have typed.
    fn new_programs(&self) -> impl Iterator<Item = &str> {
        let first = self.command.split(' ').next().filter(|first| !first.is_empty() && !first.contains(['{', '=']));
        let nproc = self.command.contains("$(nproc)").then_some("nproc");
        first.into_iter().chain(nproc)
    }
}

impl ScriptKind {
    fn holds(self, scripts: &[&str]) -> bool {
        let holds = match self {
            ScriptKind::Sed => scripts::sed_only_reads,
            ScriptKind::Awk => scripts::awk_only_reads,
            ScriptKind::PlainAwk => scripts::awk_is_plain,
        };
        !scripts.is_empty() && scripts.iter().all(|script| holds(script))
    }
}

/// Whether an operand is the entry, begins with an entry that ends with : or =, or ends as an entry that begins with *.
/// Devices may treat blocks as records.
fn fits(operand: &str, entry: &str) -> bool {
    let begins =
        entry.ends_with([':', '=']) && operand.strip_prefix(entry).is_some_and(|rest| !rest.starts_with("/dev/"));
    operand == entry || begins || entry.strip_prefix('*').is_some_and(|end| operand.ends_with(end))
}

/// Whether an option is a number of several digits: gzip takes the last digit as its level, and pigz all of them.
fn is_number(word: &str) -> bool {
    let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-')).unwrap_or_default();
    letters.bytes().filter(u8::is_ascii_digit).count() > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_the_environment_are_found() {
        let of = |environment: &[u8]| functions(std::iter::once("sort"), environment);
        assert_eq!(of(b"BASH_FUNC_igzip%%=() { :\n}\0BASH_FUNC_x%%=() { :\n}\0BASH_ENV="), ["igzip"]);
        assert_eq!(of(b"BASH_FUNC_sort%%=() { :\n}"), ["sort"]);
        let all = of(b"BASH_ENV=/etc/rc");
        for name in ["awk", "env", "igzip", "lbzip2", "mawk", "nproc", "pigz", "sort", "stdbuf"] {
            assert!(all.iter().any(|one| one == name), "{name}");
        }
    }
}
