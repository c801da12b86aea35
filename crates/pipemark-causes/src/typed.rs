//! Parses a pipeline as typed, and finds the command of a stage in it. Pure: no clock and no I/O.

use crate::figures::PipelineFigures;
use crate::programs::{base, is_called};
use crate::report::StageFigures;

/// A command as typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Segment {
    /// The text before the program, such as `LC_ALL=C ` or `timeout 9 `.
    pub before: String,
    pub program: String,
    pub rest: String,
}

impl Segment {
    /// The text before a wrapper such as stdbuf; `None` if no wrapper runs the program.
    pub fn outside(&self, wrappers: &[String]) -> Option<&str> {
        let is_wrapper =
            |&(start, end): &(usize, usize)| wrappers.iter().any(|one| base(&self.before[start..end]) == one);
        words(&self.before).into_iter().find(is_wrapper).map(|(start, _)| &self.before[..start])
    }
}

/// Splits shell text at the operators that end a command, respecting quotes.
fn pieces(text: &str) -> Vec<String> {
    let (mut found, mut piece) = (Vec::new(), String::new());
    let (mut quoted, mut escaped) = (None, false);
    for c in text.chars() {
        let ends = quoted.is_none() && !escaped && matches!(c, '|' | ';' | '&' | '\n' | '(' | ')' | '{' | '}');
        // The & of 2>&1, >&2 and &> doesn't end a command.
        let is_redirection = c == '&' && piece.ends_with(['>', '<']);
        if ends && !is_redirection && !(c == '{' && piece.ends_with('$')) {
            found.push(std::mem::take(&mut piece));
            continue;
        }
        match (quoted, c) {
            _ if escaped => escaped = false,
            (None, '\\') | (Some('"'), '\\') => escaped = true,
            (None, '\'' | '"') => quoted = Some(c),
            (Some(open), c) if open == c => quoted = None,
            _ => {}
        }
        piece.push(c);
    }
    found.push(piece);
    found.iter().map(|piece| piece.trim().to_owned()).filter(|piece| !piece.is_empty()).collect()
}

/// The start and end of each word of a command, quotes included.
fn words(piece: &str) -> Vec<(usize, usize)> {
    let (mut found, mut start): (Vec<(usize, usize)>, Option<usize>) = (Vec::new(), None);
    let (mut quoted, mut escaped) = (None, false);
    for (at, c) in piece.char_indices() {
        if quoted.is_none() && !escaped && c.is_whitespace() {
            found.extend(start.take().map(|start| (start, at)));
            continue;
        }
        start = start.or(Some(at));
        match (quoted, c) {
            _ if escaped => escaped = false,
            (None, '\\') | (Some('"'), '\\') => escaped = true,
            (None, '\'' | '"') => quoted = Some(c),
            (Some(open), c) if open == c => quoted = None,
            _ => {}
        }
    }
    found.extend(start.map(|start| (start, piece.len())));
    found
}

/// The words of a command, with their quotes.
pub fn split(piece: &str) -> Vec<String> {
    words(piece).into_iter().map(|(start, end)| piece[start..end].to_owned()).collect()
}

/// The commands of a pipeline that run the program `name`.
fn commands(text: &str, name: &str) -> Vec<Segment> {
    let command = |piece: &String| {
        let (start, end) = words(piece).into_iter().find(|&(start, end)| {
            let word = piece[start..end].trim_matches(['\'', '"']);
            base(word) == name && !word.starts_with('-')
        })?;
        let (before, program) = (piece[..start].to_owned(), piece[start..end].to_owned());
        Some(Segment { before, program, rest: piece[end..].trim().to_owned() })
    };
    pieces(text).iter().filter_map(command).collect()
}

/// Whether a pipeline names this program.
pub fn names(text: &str, name: &str) -> bool {
    !commands(text, name).is_empty()
}

/// Whether a pipeline begins with this program, and names it only there.
pub fn begins_with(text: &str, name: &str) -> bool {
    let first = pieces(text).into_iter().next().unwrap_or_default();
    names(&first, name) && commands(text, name).len() == 1
}

/// The command of a stage as typed or, if that is unknown, as it runs.
pub fn segment(figures: &PipelineFigures, stage: &StageFigures) -> Segment {
    let program = stage.words.first().map_or(stage.name.as_str(), |word| base(word));
    if let Some(text) = &figures.typed {
        for name in [stage.name.as_str(), program] {
            let found = commands(text, name);
            let same = |other: &&StageFigures| other.name == stage.name && other.number < stage.number;
            let nth = figures.stages.iter().filter(same).count().max(stage.same_before);
            if let Some(segment) = found.get(nth).or_else(|| found.first()) {
                return segment.clone();
            }
        }
    }
    let rest: Vec<String> = stage.words.iter().skip(1).map(|word| quote(word)).collect();
    Segment { before: String::new(), program: program.to_owned(), rest: rest.join(" ") }
}

/// Quotes a word for a shell.
pub fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
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
pub fn name_of(comm: &str, words: &[String], typed: Option<&str>) -> String {
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
    fn commands_end_at_bars_outside_of_quotes() {
        let text = "LC_ALL=C timeout 9 grep 'a|b' f | awk \"{print \\\"x|\\\"}\" 2>&1 | (sort; cat)";
        assert_eq!(pieces(text).len(), 4);
        let grep = &commands(text, "grep")[0];
        assert_eq!(
            (grep.before.as_str(), grep.program.as_str(), grep.rest.as_str()),
            ("LC_ALL=C timeout 9 ", "grep", "'a|b' f")
        );
        assert_eq!(commands(text, "awk")[0].rest, "\"{print \\\"x|\\\"}\" 2>&1");
        assert!(names(text, "sort") && !names(text, "perl"));
        assert!(begins_with("python3 a.py | wc", "python3") && !begins_with("cat f | python3 a.py", "python3"));
        assert!(!begins_with("python3 a.py | python3 b.py", "python3"));
    }

    #[test]
    fn names_are_as_typed() {
        let zcat = list("gzip -cd a.gz");
        assert_eq!(name_of("gzip", &zcat, Some("zcat a.gz | gzip | wc")), "zcat");
        assert_eq!(name_of("gzip", &list("gzip"), Some("zcat a.gz | gzip | wc")), "gzip");
        assert_eq!(name_of("gzip", &zcat, Some("gzip -cd a.gz | wc")), "gzip");
        assert_eq!(name_of("gzip", &zcat, None), "gzip");
        assert_eq!(name_of("MainThread", &list("/usr/bin/node job.js"), None), "node");
        assert_eq!(name_of("a-long-program-", &list("/opt/a-long-program-name x"), None), "a-long-program-name");
        assert_eq!(name_of("job.py", &list("/usr/bin/python3 ./job.py"), None), "job.py");
    }

    #[test]
    fn words_are_quoted_where_a_shell_would_change_them() {
        assert_eq!((quote("a.gz"), quote("a b"), quote("it's")), ("a.gz".into(), "'a b'".into(), "'it'\\''s'".into()));
    }
}
