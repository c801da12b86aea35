//! The names of stages, as the user typed them. Pure: no clock and no I/O.

use pipemark_shell::{Dialect, Script};

use crate::programs::{base, is_called};

/// The programs that a command line runs, in its order; none if it can't be parsed.
fn programs(text: &[u8]) -> Vec<String> {
    // For names, it doesn't matter which of the shells it was typed for.
    let script = [Dialect::Bash, Dialect::Posix].iter().find_map(|dialect| Script::parse(text, *dialect).ok());
    script.map(|script| script.program_names().into_iter().map(str::to_owned).collect()).unwrap_or_default()
}

/// Whether a pipeline runs this program.
pub fn names(text: &[u8], name: &str) -> bool {
    programs(text).iter().any(|program| program == name)
}

/// Whether a pipeline begins with this program, and runs it only there.
pub fn begins_with(text: &[u8], name: &str) -> bool {
    let programs = programs(text);
    programs.first().is_some_and(|first| first == name)
        && programs.iter().filter(|program| *program == name).count() == 1
}

/// Programs that execute another program of a different name: the name as typed, the name as run, and an option that
/// the executed program gets.
const WRAPPERS: [(&str, &str, &str); 9] = [
    ("zcat", "gzip", "-cd"),
    ("gunzip", "gzip", "-d"),
    ("bzcat", "bzip2", "-c"),
    ("bunzip2", "bzip2", "-d"),
    ("xzcat", "xz", "-c"),
    ("unxz", "xz", "-d"),
    ("zstdcat", "zstd", "-c"),
    ("zgrep", "grep", ""),
    ("zless", "less", ""),
];

/// The full name of the program that the kernel calls `comm`. If a script executed the program, this is the script's
/// name as typed. `comm` may be cut to 15 bytes, or set by one of the program's threads.
pub fn name_of(comm: &str, words: &[String], typed: Option<&[u8]>) -> String {
    let first = words.first().map_or("", |word| base(word));
    let starts = |word: &&String| comm.len() == 15 && base(word).starts_with(comm) && base(word).len() < 40;
    let full = words.iter().take(3).find(starts).map_or(comm, |word| base(word));
    // The first thread of node is called MainThread.
    let renamed = ["MainThread", "main", "Main"].contains(&comm) && !first.is_empty() && !first.contains(' ');
    let name = if renamed { first } else { full };
    let is_typed = |name: &str| typed.is_some_and(|typed| names(typed, name));
    let wrapper = WRAPPERS.iter().find(|(typed, run, option)| {
        let asked = option.is_empty() || words.iter().any(|word| word == option);
        is_called(name, run) && asked && is_typed(typed)
    });
    let exact = words.iter().any(|word| word == "-cd");
    match wrapper {
        Some((typed, run, _)) if exact || !is_typed(run) => (*typed).to_owned(),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn programs_of_a_pipeline_are_named() {
        let text = "LC_ALL=C timeout 9 grep 'a|b' f | awk \"{print \\\"x|\\\"}\" 2>&1 | (sort; cat)";
        let names = |text: &str, name| names(text.as_bytes(), name);
        let begins_with = |text: &str, name| begins_with(text.as_bytes(), name);
        assert!(names(text, "sort") && names(text, "grep") && !names(text, "perl") && !names("cat grep", "grep"));
        assert!(begins_with("python3 a.py | wc", "python3") && !begins_with("cat f | python3 a.py", "python3"));
        assert!(!begins_with("python3 a.py | python3 b.py", "python3"));
    }

    #[test]
    fn names_are_as_typed() {
        let zcat = list("gzip -cd a.gz");
        let name_of = |comm, words: &[String], typed: Option<&str>| name_of(comm, words, typed.map(str::as_bytes));
        assert_eq!(name_of("gzip", &zcat, Some("zcat a.gz | gzip | wc")), "zcat");
        assert_eq!(name_of("gzip", &list("gzip"), Some("zcat a.gz | gzip | wc")), "gzip");
        assert_eq!(name_of("gzip", &zcat, Some("gzip -cd a.gz | wc")), "gzip");
        assert_eq!(name_of("gzip", &zcat, None), "gzip");
        assert_eq!(name_of("MainThread", &list("/usr/bin/node job.js"), None), "node");
        assert_eq!(name_of("a-long-program-", &list("/opt/a-long-program-name x"), None), "a-long-program-name");
        assert_eq!(name_of("job.py", &list("/usr/bin/python3 ./job.py"), None), "job.py");
    }
}
