//! Derives from a command line how a program buffers, and whether it reads all input before writing. The facts are rows
//! of programs.toml.

use std::sync::LazyLock;

use serde::Deserialize;

/// The program's name, without its directory.
pub fn program(words: &[String]) -> &str {
    const INTERPRETERS: [&str; 6] = ["perl", "python", "ruby", "node", "sh", "bash"];
    let first = words.first().map_or("", |word| base(word));
    // An installed script, such as /usr/bin/parallel.
    let script = words.get(1).filter(|word| word.starts_with('/') && word.contains("/bin/"));
    match script {
        Some(script) if INTERPRETERS.iter().any(|like| is_called(first, like)) => base(script),
        _ => first,
    }
}

/// The last part of a path; a login shell's name without its dash.
pub fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word).trim_start_matches('-')
}

/// Whether `name` is this program, possibly with a version if it is one of those that have versions in their names, such
/// as python3.11.
pub fn is_called(name: &str, like: &str) -> bool {
    const WITH_VERSION: [&str; 14] = [
        "python", "pypy", "perl", "ruby", "php", "lua", "luajit", "tclsh", "node", "gcc", "g++", "clang", "ghc", "java",
    ];
    let Some(rest) = name.strip_prefix(like) else { return false };
    rest.is_empty() || WITH_VERSION.contains(&like) && rest.chars().all(|c| c.is_ascii_digit() || c == '.')
}

/// Whether the command line has one of these options. Short options may be combined behind one dash, and long options
/// may have a value.
pub fn has_option(words: &[String], options: &[&str]) -> bool {
    let is = |word: &str, option: &str| match option.strip_prefix('-').filter(|rest| rest.len() == 1) {
        // A compression level: -1 is neither -11 nor -T1.
        Some(digit) if digit.starts_with(|c: char| c.is_ascii_digit()) => {
            let level = word.strip_prefix('-').unwrap_or_default();
            level.trim_start_matches(|c: char| c.is_ascii_digit()).len() + 1 == level.len() && level.starts_with(digit)
        }
        Some(letter) => word.starts_with('-') && !word.starts_with("--") && word[1..].contains(letter),
        None if option.starts_with("--") => word == option || word.starts_with(&format!("{option}=")),
        None => word.contains(option),
    };
    words.iter().skip(1).any(|word| options.iter().any(|option| is(word, option)))
}

/// Whether a word may be an abbreviation of a long option, such as `--dec` of `--decompress`.
pub fn has_abbreviation(words: &[String], options: &[&str]) -> bool {
    let may_be = |word: &str| {
        let name = word.split('=').next().unwrap_or(word);
        name.len() > 2 && name.starts_with("--") && options.iter().any(|option| option.starts_with(name))
    };
    words.iter().skip(1).any(|word| may_be(word))
}

/// What is known about a program, from its command line. The rows are in programs.toml.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Fact {
    NeedsEnd,
    MayNeedEnd,
    Compresses,
    StoresInput,
    FillsFirst,
    ProbesInput,
    Follows,
    BuffersOutput,
    WritesAtOnce,
    LimitsRate,
    Filters,
    Selects,
}

/// A row of the table; see the head of programs.toml.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProgramRow {
    fact: Fact,
    program: Vec<String>,
    #[serde(default)]
    has: Vec<String>,
    #[serde(default)]
    lacks: Vec<String>,
    #[serde(default)]
    word: Vec<String>,
    #[serde(default)]
    value: Vec<String>,
    #[serde(default)]
    words: bool,
    #[serde(default)]
    alone: bool,
}

#[derive(Debug, Deserialize)]
struct ProgramTable {
    row: Vec<ProgramRow>,
}

static TABLE: LazyLock<Vec<ProgramRow>> = LazyLock::new(|| {
    toml::from_str::<ProgramTable>(include_str!("programs.toml")).expect("a test reads the table").row
});

impl ProgramRow {
    /// The option because of which the row holds, empty if it holds without one; `None` if it doesn't hold.
    fn holds(&self, words: &[String]) -> Option<&str> {
        let given =
            |option: &String| if self.words { words[1..].contains(option) } else { has_option(words, &[option]) };
        let name = program(words);
        let fits = self.program.iter().any(|like| is_called(name, like))
            && !self.lacks.iter().any(given)
            && (self.word.is_empty() || words.iter().skip(1).any(|word| self.word.contains(word)))
            && !(self.alone && words.len() > 1);
        let has_value = |option: &String| {
            self.value.is_empty() || words.windows(2).any(|two| two[0] == *option && self.value.contains(&two[1]))
        };
        let option = self.has.iter().find(|option| given(option) && has_value(option)).map(String::as_str);
        if self.has.is_empty() { Some("") } else { option }.filter(|_| fits)
    }
}

/// The option because of which a fact holds of a program, empty if it holds without one; `None` if it doesn't hold.
fn option_of(fact: Fact, words: &[String]) -> Option<&'static str> {
    TABLE.iter().filter(|row| row.fact == fact && !words.is_empty()).find_map(|row| row.holds(words))
}

fn holds(fact: Fact, words: &[String]) -> bool {
    option_of(fact, words).is_some()
}

/// The names of programs, and the options and other words, on which facts depend.
pub fn known_words() -> (impl Iterator<Item = &'static str>, impl Iterator<Item = &'static str>) {
    let names = TABLE.iter().flat_map(|row| &row.program).map(String::as_str);
    let options = TABLE
        .iter()
        .flat_map(|row| row.has.iter().chain(&row.lacks).chain(&row.word).chain(&row.value))
        .map(String::as_str);
    (names, options)
}

/// Whether the program outputs nothing before the end of its input, whatever the input is.
pub fn needs_end(words: &[String]) -> bool {
    holds(Fact::NeedsEnd, words)
}

/// Whether the program possibly outputs nothing before the end of its input.
pub fn collects(words: &[String]) -> bool {
    holds(Fact::MayNeedEnd, words) || needs_end(words)
}

/// Whether the program compresses its input in blocks, and writes nothing before a block is full.
pub fn compresses(words: &[String]) -> bool {
    holds(Fact::Compresses, words)
}

/// Whether the program copies its input unchanged, but writes nothing before the input ends.
pub fn stores_input(words: &[String]) -> bool {
    holds(Fact::StoresInput, words)
}

/// The option that makes a program fill its buffer before it writes; `None` if it wasn't given.
pub fn fills_first(words: &[String]) -> Option<&'static str> {
    option_of(Fact::FillsFirst, words)
}

/// Whether the program reads up to 5 seconds or 5 MB of a stream, to find out what it contains, before it writes.
pub fn probes_input(words: &[String]) -> bool {
    holds(Fact::ProbesInput, words)
}

/// Whether a program waits for more at the end of its data, so that its output has no end.
pub fn follows(words: &[String]) -> bool {
    holds(Fact::Follows, words)
}

/// Whether the program writes each line at once.
pub fn writes_at_once(words: &[String]) -> bool {
    holds(Fact::WritesAtOnce, words)
}

/// The option with which a program limits its rate on purpose; `None` if it has none.
pub fn rate_limit(words: &[String]) -> Option<&'static str> {
    option_of(Fact::LimitsRate, words)
}

/// Whether the program is known to fill a buffer before writing to a pipe.
pub fn buffers_output(words: &[String]) -> bool {
    holds(Fact::BuffersOutput, words)
}

/// Whether the program passes on all or part of its input, possibly changed, whenever its buffer is full.
pub fn filters(words: &[String]) -> bool {
    holds(Fact::Filters, words) && !collects(words)
}

/// Whether the program passes on only matching input.
pub fn selects(words: &[String]) -> bool {
    holds(Fact::Selects, words)
}

/// The memory in bytes that -S or --buffer-size gives to `sort`; `None` without such an option, or if it gives a
/// percentage.
pub fn sort_memory(words: &[String]) -> Option<u64> {
    let mut rest = words.iter().skip(1).filter(|_| program(words) == "sort");
    let size = loop {
        let word = rest.next()?;
        match word.strip_prefix("--buffer-size=").or_else(|| word.strip_prefix("-S")) {
            None if word != "--buffer-size" => {}
            None | Some("") => break rest.next()?.as_str(),
            Some(size) => break size,
        }
    };
    let digits = size.trim_end_matches(|c: char| !c.is_ascii_digit());
    // Without a unit, sort counts in KiB.
    let unit = match &size[digits.len()..] {
        "b" => 0,
        "" | "k" | "K" => 10,
        "m" | "M" => 20,
        "g" | "G" => 30,
        "t" | "T" => 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn names_have_no_directory_and_may_have_a_version() {
        assert_eq!(program(&words("/usr/bin/grep x")), "grep");
        assert_eq!(program(&words("-bash")), "bash");
        assert!(is_called("python3.11", "python") && is_called("python", "python") && !is_called("pythonx", "python"));
    }

    #[test]
    fn options_are_found_alone_and_among_others() {
        assert!(has_option(&words("xz -9T0"), &["-T"]) && has_option(&words("sort --parallel=4"), &["--parallel"]));
        assert!(has_option(&words("gzip -1c"), &["-1"]) && !has_option(&words("zstd -11 -T1"), &["-1"]));
        assert!(
            !has_option(&words("grep --Terse"), &["-T"]) && !has_option(&words("sort --parallels"), &["--parallel"])
        );
    }

    #[test]
    fn the_memory_of_sort_is_read_from_its_option() {
        let of = |text: &str| sort_memory(&words(text));
        assert_eq!(
            (of("sort -S 256K -k2"), of("sort -S2M"), of("sort -S 7")),
            (Some(256 << 10), Some(2 << 20), Some(7168))
        );
        assert_eq!(
            (of("sort --buffer-size 1G"), of("sort -S 25%"), of("sort -k2"), of("cut -S 1")),
            (Some(1 << 30), None, None, None)
        );
    }

    #[test]
    fn deliberate_rate_limits_are_recognised_by_their_options() {
        assert_eq!(rate_limit(&words("pv -qL 20m")), Some("-L"));
        assert_eq!(rate_limit(&words("/usr/bin/curl -s --limit-rate 8M x")), Some("--limit-rate"));
        assert_eq!(rate_limit(&words("wget -qO- --limit-rate=8m x")), Some("--limit-rate"));
        assert_eq!(rate_limit(&words("ffmpeg -re -i x -")), Some("-re"));
        assert_eq!((rate_limit(&words("pv -q")), rate_limit(&words("ffmpeg -report -i x"))), (None, None));
    }

    #[test]
    fn programs_that_write_at_once_or_at_the_end_are_recognised() {
        assert!(writes_at_once(&words("grep --line-buffered x")) && !writes_at_once(&words("grep x")));
        assert!(writes_at_once(&words("python3 -u job.py")) && writes_at_once(&words("cat")));
        assert!(
            collects(&words("sort -u")) && collects(&words("awk {s+=$1}END{print(s)}")) && !collects(&words("cut -f1"))
        );
        assert!(needs_end(&words("tail -n 5")) && !needs_end(&words("tail -f log")) && !needs_end(&words("gzip")));
        assert!(follows(&words("tail -n0 -F log")) && follows(&words("kubectl logs -f pod")));
        assert!(
            !follows(&words("kubectl get -f pod"))
                && !follows(&words("ping -c 3 host"))
                && follows(&words("ping host"))
        );
        assert!(buffers_output(&words("python3.11 job.py")) && !buffers_output(&words("tail -f log")));
    }
}
