//! Whether a remedy's command is known to do what the command as typed does. Pure.

use pipemark_shell::{FoundCommand, Pipeline, Script, SimpleCommand, Word, program_after_wrappers};

use crate::cause::CauseName;
use crate::environment::{self, with_variables};
use crate::figures::PipelineFigures;
use crate::options::{TO_STDOUT, arguments};
use crate::programs::has_option;
use crate::remedy_row::{RemedyRow, ScriptKind, TABLE};
use crate::scripts;
use crate::stage_figures::StageFigures;

/// Directories whose programs are known by their names.
const SYSTEM_DIRECTORIES: [&str; 5] = ["/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/", "/usr/sbin/"];

/// Wrappers that find a program as the shell does.
const NEUTRAL_WRAPPERS: [&str; 11] =
    ["nice", "ionice", "nohup", "setsid", "stdbuf", "timeout", "time", "chrt", "taskset", "command", "cpulimit"];

/// Variables with options of programs that remedies put in place of others.
const OF_NEW_PROGRAMS: [&str; 3] = ["PIGZ", "LBZIP2", "MAWK_LONG_OPTIONS"];

/// Programs that may limit the memory of what they start.
const LIMITING: [&str; 4] = ["ulimit", "prlimit", "systemd-run", "cgexec"];

/// Programs that treat each piece that they read as a message.
const OF_MESSAGES: [&str; 5] = ["nc", "ncat", "netcat", "socat", "socat1"];

/// Operands of dd that don't depend on the sizes of the pieces that it reads.
const WITHOUT_COUNTS: [&str; 6] = ["bs=", "ibs=", "obs=", "if=", "of=", "status="];

/// Devices to and from which sizes of pieces don't matter; others may have records or messages, as /dev/udp has.
const PLAIN_DEVICES: [&str; 10] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/stdin",
    "/dev/stdout",
    "/dev/stderr",
    "/dev/fd/",
    "/dev/shm/",
];

/// Options of sort that need input which is sorted in the same way.
const NEED_ORDER: [&str; 6] = ["-c", "-C", "-m", "--check", "--merge", "--files0-from"];

/// The functions that bash takes from an environment, of the names of these stages and of the programs that remedies
/// start.
pub fn functions<'s>(stages: impl Iterator<Item = &'s str>, environment: &[u8]) -> Vec<String> {
    let of_remedies = TABLE.iter().flat_map(RemedyRow::new_programs).chain(std::iter::once("pipemark"));
    environment::functions(stages.chain(of_remedies), environment)
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
        // Programs that answer each other through a loop of pipes need each piece at once.
        if self.changes_calls() && is_in_loop(stage.number, figures) {
            return false;
        }
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
            && !(self.one_file && operands.len() > 1)
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
        // What a killed program holds in its buffer is lost.
        let is_killed = wrappers.iter().any(|wrapper| wrapper.name == "timeout");
        if self.changes_calls() && (is_killed || uses_exit_codes(script)) {
            return false;
        }
        if (self.changes_calls() || self.replaces_program()) && uses_devices(script) {
            return false;
        }
        if self.changes_calls() && pieces_count_after(script, found) {
            return false;
        }
        // Another pipeline may need what this one writes in the same order.
        if !self.followers.is_empty() && !is_all(script, found.pipeline) {
            return false;
        }
        if self.memory && script.program_names().iter().any(|name| LIMITING.contains(name)) {
            return false;
        }
        let mut new = self.new_programs().peekable();
        if new.peek().is_none() {
            return true;
        }
        let has = |text: &[u8]| contains(script, text);
        // With other separators of words, the number of CPUs may be several words.
        let splits = self.command.contains("$(nproc)") && has(b"IFS");
        !has(b"PATH")
            && !splits
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

/// Whether what a stage writes comes back to it through pipes.
fn is_in_loop(stage: usize, figures: &PipelineFigures) -> bool {
    let (mut reached, mut at) = (vec![stage], 0);
    while let Some(&from) = reached.get(at) {
        for pipe in figures.pipes.iter().filter(|pipe| pipe.from == from) {
            if pipe.to == stage {
                return true;
            }
            if !reached.contains(&pipe.to) {
                reached.push(pipe.to);
            }
        }
        at += 1;
    }
    false
}

fn contains(script: &Script, part: &[u8]) -> bool {
    script.text().windows(part.len()).any(|bytes| bytes == part)
}

/// Whether the exit codes of all stages count: a writer whose reader has left ends by a signal.
pub(crate) fn uses_exit_codes(script: &Script) -> bool {
    contains(script, b"pipefail") || contains(script, b"PIPESTATUS")
}

/// Whether the text consists of this pipeline.
fn is_all(script: &Script, pipeline: &Pipeline) -> bool {
    script.pipeline().is_some_and(|whole| std::ptr::eq(whole, pipeline))
}

/// Whether a redirection names a device that may have records or messages.
fn uses_devices(script: &Script) -> bool {
    let is_plain = |name: &str| {
        PLAIN_DEVICES.iter().any(|plain| name == *plain || plain.ends_with('/') && name.starts_with(plain))
    };
    let is_device = |target: &Word| target.as_str().is_some_and(|name| name.starts_with("/dev/") && !is_plain(name));
    let stages = script.stages().into_iter().map(|(pipeline, at)| &pipeline.stages[at]);
    stages.flat_map(|stage| &stage.redirections).any(|one| is_device(&one.target))
}

/// Whether a command behind another depends on the sizes of the pieces that it reads.
pub(crate) fn pieces_count_after(script: &Script, found: &FoundCommand<'_>) -> bool {
    let end = found.stage().span.end;
    script.commands().into_iter().filter(|command| command.span.start >= end).any(depends_on_pieces)
}

/// Whether what a command does depends on the sizes of the pieces that it reads.
fn depends_on_pieces(command: &SimpleCommand) -> bool {
    let Some((at, _)) = program_after_wrappers(&command.words) else { return false };
    let name = command.words[at].as_str().map_or("", crate::programs::base);
    let is_plain =
        |word: &Word| word.as_str().is_some_and(|word| WITHOUT_COUNTS.iter().any(|one| word.starts_with(one)));
    OF_MESSAGES.contains(&name) || name == "dd" && !command.words[at + 1..].iter().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_the_environment_are_found() {
        let of = |environment: &[u8]| functions(std::iter::once("sort"), environment);
        assert_eq!(of(b"BASH_FUNC_igzip%%=() { :\n}\0BASH_FUNC_x%%=() { :\n}\0BASH_ENV="), ["igzip"]);
        assert_eq!(of(b"BASH_FUNC_sort%%=() { :\n}"), ["sort"]);
        assert!(of(b"SHELLOPTS=braceexpand:hashall").is_empty());
        assert_eq!(of(b"SHELLOPTS=braceexpand:pipefail"), of(b"BASH_ENV=/etc/rc"));
        let all = of(b"BASH_ENV=/etc/rc");
        for name in ["awk", "env", "igzip", "lbzip2", "mawk", "nproc", "pigz", "sort", "stdbuf"] {
            assert!(all.iter().any(|one| one == name), "{name}");
        }
    }
}
