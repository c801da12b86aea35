//! Replaces what may be private in evidence by placeholders: arguments, names of files, hosts and unknown programs. Words
//! that the tables of programs and remedies know stay, so that the verdict stays the same.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use crate::evidence::{PipelineEvidence, StageEvidence};
use crate::exact_text::ExactText;
use crate::{programs, remedy_row};

/// Programs that aren't in the tables, but whose names tell nothing.
const COMMON: [&str; 24] = [
    "sh", "bash", "dash", "zsh", "ksh", "busybox", "env", "timeout", "time", "nice", "ionice", "taskset", "stdbuf",
    "sudo", "while", "do", "done", "read", "for", "in", "if", "then", "fi", "true",
];

/// The names of known programs, and the options that the tables look for.
static KNOWN: LazyLock<(BTreeSet<&'static str>, BTreeSet<&'static str>)> = LazyLock::new(|| {
    let ((names, options), (more_names, more_options)) = (programs::known_words(), remedy_row::known_words());
    (names.chain(more_names).chain(COMMON).collect(), options.chain(more_options).collect())
});

/// The placeholders given so far.
#[derive(Default)]
struct Placeholders(BTreeMap<String, String>);

impl Placeholders {
    fn of(&mut self, kind: &str, text: &str) -> String {
        let count = self.0.len() + 1;
        self.0.entry(text.to_owned()).or_insert_with(|| format!("{kind}{count}")).clone()
    }

    /// A program's name, if it is known, or a placeholder.
    fn program(&mut self, name: &str) -> String {
        let known = KNOWN.0.iter().any(|like| programs::is_called(name, like));
        if known { name.to_owned() } else { self.of("program", name) }
    }

    /// The part of an argument on which the tables depend, or a placeholder.
    fn argument(&mut self, word: &str) -> String {
        let base = programs::base(word);
        if KNOWN.0.iter().any(|like| programs::is_called(base, like)) {
            return base.to_owned();
        }
        if KNOWN.1.contains(word) || is_size(word) || word == "-" || word == "-c" {
            return word.to_owned();
        }
        if let Some(option) = word.strip_prefix("--") {
            let (name, value) = option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
            if KNOWN.1.contains(&format!("--{name}")[..]) {
                let kept = |value: &str| if is_size(value) { value.to_owned() } else { "word".to_owned() };
                return value.map_or_else(|| format!("--{name}"), |value| format!("--{name}={}", kept(value)));
            }
            return self.of("--option", word);
        }
        if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            let (first, rest) = letters.split_at(letters.chars().next().map_or(0, char::len_utf8));
            let flags = |rest: &str| rest.len() <= 3 && rest.chars().all(|c| KNOWN.1.contains(&format!("-{c}")[..]));
            return if is_size(letters) || is_size(rest) || flags(rest) {
                word.to_owned()
            } else {
                format!("-{first}")
            };
        }
        // A program in a language, such as awk's.
        let parts: Vec<&str> =
            KNOWN.1.iter().filter(|option| !option.starts_with('-') && word.contains(**option)).copied().collect();
        let placeholder = self.of("word", word);
        if parts.is_empty() { placeholder } else { format!("{placeholder} {}", parts.join(" ")) }
    }

    /// The words of a command line.
    fn words(&mut self, words: &[String]) -> Vec<String> {
        let mut found = Vec::new();
        for (at, word) in words.iter().enumerate() {
            found.push(if at == 0 { self.program(programs::base(word)) } else { self.argument(word) });
        }
        found
    }

    /// A pipeline as typed. Its operators stay.
    fn typed(&mut self, text: &str) -> String {
        let is_operator = |c: char| c.is_whitespace() || "|&;()<>{}$'\"`".contains(c);
        let mut found = String::new();
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let end = if is_operator(c) { c.len_utf8() } else { rest.find(is_operator).unwrap_or(rest.len()) };
            let (token, next) = rest.split_at(end);
            found.push_str(&if is_operator(c) { token.to_owned() } else { self.argument(token) });
            rest = next;
        }
        found
    }
}

/// Whether a word is a number, possibly with a unit.
fn is_size(word: &str) -> bool {
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '%');
    word.len() <= digits.len() + 2 && (1..=6).contains(&digits.len()) && digits.chars().all(|c| c.is_ascii_digit())
}

/// A copy of the evidence without what may be private.
pub fn redact(evidence: &PipelineEvidence) -> PipelineEvidence {
    let mut known = Placeholders::default();
    let mut found = evidence.clone();
    // Each field is named, so that none is forgotten.
    let PipelineEvidence {
        pipeline,
        typed,
        functions,
        stages,
        cycle,
        typed_elsewhere: _,
        shell: _,
        started: _,
        alive: _,
        exit_code: _,
        elapsed: _,
        own_seconds: _,
        first_scan: _,
        sampled_less: _,
        counted_less: _,
        access: _,
        has_proc: _,
        limits: _,
        pipes: _,
        unprofiled: _,
        timeline: _,
    } = &mut found;
    stages.iter_mut().for_each(|stage| redact_stage(stage, &mut known));
    functions.iter_mut().for_each(|name| *name = known.program(name));
    for step in cycle.iter_mut().flat_map(|cycle| &mut cycle.steps) {
        (step.name, step.holder_name) = (known.program(&step.name), known.program(&step.holder_name));
        step.opens.iter_mut().for_each(|(path, _)| *path = known.of("file", path));
        step.lock.iter_mut().for_each(|lock| lock.path = known.of("file", &lock.path));
    }
    for text in [typed, pipeline].into_iter().flatten() {
        *text = ExactText::from(known.typed(&String::from_utf8_lossy(text)));
    }
    found
}

fn redact_stage(stage: &mut StageEvidence, known: &mut Placeholders) {
    let StageEvidence {
        name,
        command,
        words,
        arguments,
        tracer,
        variables,
        locked_by,
        peer,
        profile,
        pids: _,
        processes: _,
        threads: _,
        reads_pipe: _,
        writes_pipe: _,
        uncounted: _,
        hidden: _,
        waits_for: _,
        cpus: _,
        progress: _,
        frozen: _,
        collates: _,
        language: _,
        low_priority: _,
        reads_others: _,
        writes_others: _,
        silent: _,
        held_bytes: _,
        wrote_before: _,
        arrived: _,
        arrived_ever: _,
    } = stage;
    *words = known.words(words);
    *arguments = None;
    for entry in variables {
        let (name, value) = entry.split_once('=').unwrap_or((entry, ""));
        let values: Vec<String> = value.split_ascii_whitespace().map(str::to_owned).collect();
        *entry = format!("{name}={}", known.words(&values).join(" "));
    }
    *command = words.join(" ");
    *name = known.program(name);
    // The table names kinds of work and the functions that show them. Other functions may be the user's own.
    profile.iter_mut().for_each(|profile| profile.functions.clear());
    *tracer = tracer.as_ref().map(|name| known.program(name));
    if let Some((path, _, holder)) = locked_by {
        (*path, *holder) = (known.of("file", path), known.program(holder));
    }
    if let Some(peer) = peer {
        let server = peer.name.strip_prefix("name server ").map(str::to_owned);
        peer.name = match (server, peer.pid) {
            (Some(address), _) => format!("name server {}", known.of("host", &address)),
            (None, Some(_)) => known.program(&peer.name),
            (None, None) => known.of("host", &peer.name),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redacted(text: &str) -> String {
        let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        let stage = StageEvidence { name: words[0].clone(), words, ..StageEvidence::default() };
        let evidence =
            PipelineEvidence { stages: vec![stage], typed: Some(text.into()), ..PipelineEvidence::default() };
        let found = redact(&evidence);
        found.stages[0].words.join(" ")
    }

    #[test]
    fn words_that_the_tables_know_stay_and_others_go() {
        assert_eq!(redacted("sort -k2 -S256K --parallel=4 /home/me/secret.txt"), "sort -k2 -S256K --parallel=4 word1");
        assert_eq!(redacted("grep --line-buffered -i password"), "grep --line-buffered -i word1");
        assert_eq!(redacted("mysql -phunter2 customers"), "mysql -p word1");
        assert_eq!(redacted("payroll --account=abc"), "program1 --option2");
        assert_eq!(redacted("awk {print$2;fflush()}"), "awk word1 fflush flush()");
    }

    #[test]
    fn nothing_private_is_left_in_the_typed_pipeline() {
        let text =
            "zcat /srv/customers.gz | grep -e 'Jane Doe' | curl --data-binary @- https://example.org/upload?key=1";
        let evidence =
            PipelineEvidence { typed: Some(text.into()), pipeline: Some(text.into()), ..PipelineEvidence::default() };
        let found = redact(&evidence);
        let typed = String::from_utf8(found.typed.unwrap().0).unwrap();
        for secret in ["customers", "Jane", "Doe", "example", "upload"] {
            assert!(!typed.contains(secret), "{typed}");
        }
        assert!(typed.contains("zcat") && typed.contains("| grep -e '") && typed.contains("| curl"), "{typed}");
    }
}
