//! Options of hyperfine in `ab`, and of pv and mbuffer in `relay`. Where the meaning is the same, they are replaced by
//! pipemark's own; otherwise the error says what to use instead.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use pipemark_console::ExitError;

use Meaning::{Is, Means, Nothing, Scan, Step, Use};

/// What becomes of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    /// The same as these words; `{}` is the value.
    Is(&'static [&'static str]),
    /// The same as these words, but only if the value is a number.
    Means(&'static [&'static str], &'static str),
    /// It asks for what happens anyway.
    Nothing,
    /// An error, which says this.
    Use(&'static str),
    /// hyperfine's range NAME MIN MAX, and its step.
    Scan,
    Step,
}

/// An option of another program.
#[derive(Debug)]
struct ForeignOption {
    /// Its names, without dashes.
    names: &'static [&'static str],
    /// How many values it takes.
    values: usize,
    meaning: Meaning,
}

const fn option(names: &'static [&'static str], values: usize, meaning: Meaning) -> ForeignOption {
    ForeignOption { names, values, meaning }
}

/// The options of a program, for a verb.
struct ForeignProgram {
    program: &'static str,
    options: &'static [ForeignOption],
}

const HYPERFINE: ForeignProgram = ForeignProgram {
    program: "hyperfine",
    options: &[
        option(&["L", "parameter-list"], 2, Is(&["--parameter={1}={2}"])),
        option(&["P", "parameter-scan"], 3, Scan),
        option(&["D", "parameter-step-size"], 1, Step),
        option(&["p"], 1, Is(&["--prepare={}"])),
        option(&["s"], 1, Is(&["--setup={}"])),
        option(&["C"], 1, Is(&["--conclude={}"])),
        option(&["c"], 1, Is(&["--cleanup={}"])),
        option(&["N"], 0, Is(&["--shell=none"])),
        option(&["command-name"], 1, Is(&["--name={}"])),
        option(&["export-json"], 1, Is(&["--hyperfine-json={}"])),
        option(&["export-markdown"], 1, Is(&["--markdown={}"])),
        option(&["export-csv"], 1, Use("use --csv, which has other columns, or --export-json")),
        option(&["export-asciidoc", "export-orgmode"], 1, Use("use --markdown, --csv or --json")),
        option(&["m", "min-runs"], 1, Use("use --runs N for exactly N runs; the default is at least 10")),
        option(&["M", "max-runs"], 1, Use("use --runs N for exactly N runs, or --budget TIME for less time")),
        option(
            &["min-benchmarking-time"],
            1,
            Use("use --budget TIME; runs end when a change of --threshold is detectable"),
        ),
        option(&["metrics"], 1, Use("all figures are measured; --by FIGURE chooses the one that is judged")),
        option(&["u", "time-unit"], 1, Use("tables choose their units; --csv and --json are in nanoseconds")),
        option(
            &["style"],
            1,
            Use("colours are used on a terminal, unless NO_COLOR is set; use --quiet for less output"),
        ),
        option(&["sort"], 1, Use("the table keeps the order of the commands, and has their ranks")),
        option(&["show-output"], 0, Use("outputs are read to compare them; to see one, run the command by itself")),
        option(
            &["output"],
            1,
            Use("outputs are read to compare them, or with --ignore-output only counted; in the command, use >FILE"),
        ),
        option(&["reference-name"], 1, Use("use --name for each command")),
        option(&["metrics"], 1, Use("the table has memory and CPU time too; --by FIGURE ranks by one of them")),
    ],
};

const PROGRESS: &[&str] = &["--progress=text"];
const LOOK: &str = "the form of the progress line is fixed";

const PV: ForeignProgram = ForeignProgram {
    program: "pv",
    options: &[
        option(&["p", "t", "timer", "e", "eta", "r", "rate", "b", "bytes", "a", "average-rate"], 0, Is(PROGRESS)),
        option(&["I", "fineta"], 0, Is(PROGRESS)),
        option(&["T", "buffer-percent"], 0, Is(PROGRESS)),
        option(&["f", "force"], 0, Is(PROGRESS)),
        option(&["s"], 1, Is(&["--progress=text", "--size={}"])),
        option(&["L", "rate-limit"], 1, Is(&["--limit={}"])),
        option(&["B", "buffer-size"], 1, Is(&["--buffer={}"])),
        option(&["N"], 1, Is(&["--progress=text", "--name={}"])),
        option(&["C", "no-splice"], 0, Is(&["--method=read-write"])),
        option(
            &["i"],
            1,
            Means(&["--progress=text", "--interval={}s"], "for mbuffer's -i FILE use 'pipemark relay FILE'"),
        ),
        option(&["v"], 0, Is(&["--stats"])),
        option(&["q", "quiet"], 0, Nothing),
        option(&["n", "numeric", "F", "format"], 0, Use("use --progress json, which has all figures")),
        option(&["R", "remote"], 1, Use("use --set PID limit=RATE; for mbuffer's -R RATE use --limit RATE")),
        option(&["S", "stop-at-size"], 0, Use("put 'head -c SIZE' before the relay")),
        option(&["E", "skip-errors", "Z", "error-skip-block"], 0, Use("a failed read is an error; use ddrescue")),
        option(
            &["l", "line-mode", "0", "null"],
            0,
            Use("lines aren't counted; put 'tee >(wc -l >&2)' behind the relay"),
        ),
        option(&["o", "output"], 1, Use("use >FILE")),
        option(&["X", "discard"], 0, Use("use >/dev/null")),
        option(&["U", "store-and-forward"], 1, Use("use >FILE, then 'pipemark relay --progress FILE'")),
        option(
            &["K", "direct-io", "Y", "sync", "O", "sparse"],
            0,
            Use("use dd with iflag=direct, oflag=direct, oflag=dsync or conv=sparse"),
        ),
        option(&["P"], 1, Means(&["--start-at={}"], "for pv's -P FILE use $! after a pipeline with &")),
        option(&["pidfile"], 1, Use("use $! after a pipeline with &")),
        option(&["d", "watchfd"], 1, Use("'pipemark why PID' shows how far a program has read its file")),
        option(&["Q", "query"], 1, Use("progress is shown by the relay itself")),
        option(
            &["c", "cursor"],
            0,
            Use("several relays on one terminal can't keep their lines apart; name them with --name, and use 2>FILE"),
        ),
        option(&["W", "wait", "D", "delay-start"], 0, Use("progress is shown from the start")),
        option(
            &[
                "g",
                "gauge",
                "A",
                "last-written",
                "8",
                "bits",
                "k",
                "si",
                "u",
                "bar-style",
                "x",
                "extra-display",
                "w",
                "width",
                "H",
                "height",
                "average-rate-window",
            ],
            0,
            Use(LOOK),
        ),
    ],
};

/// The letters that mean something else in pv. They are errors if -m or -q, which go with a buffer, are given.
const CLASHES: ForeignProgram = ForeignProgram {
    program: "mbuffer",
    options: &[
        option(&["s"], 1, Use("a block size isn't needed: the relay passes on input of any size at once")),
        option(&["b"], 1, Use("use --buffer SIZE, the number of blocks times their size")),
        option(&["p"], 1, Use("use --stop-at PERCENT")),
        option(&["r"], 1, Use("use --limit RATE, which limits the output")),
        option(&["t"], 0, Use("the buffer is in memory, never in a file")),
    ],
};

/// Other letters of mbuffer, if -m shows that it is meant.
const MBUFFER: ForeignProgram = ForeignProgram {
    program: "mbuffer",
    options: &[
        option(&["T"], 1, Use("the buffer is in memory, never in a file")),
        option(&["I", "O", "0"], 0, Use("put socat or nc before or behind the relay")),
        option(&["f"], 0, Use("use >FILE, which overwrites")),
        option(&["e"], 0, Nothing),
        option(&["n", "A", "D", "d", "a"], 0, Use("use mbuffer for tapes and volumes")),
        option(&["c", "u", "W", "L"], 0, Use("it has no equivalent")),
        option(&["l", "Q", "v"], 0, Use("only --stats and --progress write to standard error; use 2>FILE")),
        option(&["H"], 0, Use("put 'tee >(md5sum >&2)' behind the relay")),
    ],
};

/// Options that pv lacks.
const MBUFFER_ONLY: ForeignProgram = ForeignProgram {
    program: "mbuffer",
    options: &[
        option(&["m"], 1, Is(&["--buffer={}"])),
        option(&["no-direct"], 0, Nothing),
        option(&["append"], 0, Use("use >>FILE")),
        option(&["truncate"], 0, Use("use >FILE")),
        option(&["pid"], 0, Use("use $! after a pipeline with &")),
        option(&["md5", "hash"], 0, Use("put 'tee >(md5sum >&2)' behind the relay")),
        option(&["direct", "tapeaware"], 0, Use("use mbuffer for tapes and direct I/O")),
        option(&["4", "6", "tcpbuffer", "tcptimeo"], 0, Use("put socat or nc behind the relay")),
    ],
};

fn dialects(verb: &OsStr, words: &[OsString]) -> &'static [ForeignProgram] {
    const OF_PV: [ForeignProgram; 2] = [PV, MBUFFER_ONLY];
    const QUIET: [ForeignProgram; 3] = [CLASHES, PV, MBUFFER_ONLY];
    const OF_MBUFFER: [ForeignProgram; 4] = [CLASHES, MBUFFER, PV, MBUFFER_ONLY];
    match verb.to_str() {
        Some("ab") => &[HYPERFINE],
        Some("relay") if has_letter(words, b'm') => &OF_MBUFFER,
        Some("relay") if has_letter(words, b'q') => &QUIET,
        Some("relay") => &OF_PV,
        _ => &[],
    }
}

/// Whether a word has this letter before one that takes the rest of the word as its value.
fn has_letter(words: &[OsString], letter: u8) -> bool {
    let takes_value = |letter: u8| {
        let named = |option: &&ForeignOption| option.names.iter().any(|name| name.as_bytes() == [letter]);
        PV.options.iter().find(named).is_some_and(|option| option.values > 0)
    };
    let of_word = |word: &OsString| {
        let letters =
            word.as_bytes().strip_prefix(b"-").filter(|letters| !letters.starts_with(b"-")).unwrap_or_default();
        let end = letters.iter().position(|&one| takes_value(one)).unwrap_or(letters.len());
        letters[..end].contains(&letter)
    };
    words.iter().take_while(|word| *word != "--").any(of_word)
}

/// The verb's own options, so that they aren't taken for those of another program: each letter or name, and whether it
/// takes a value.
type OwnOptions<'o> = &'o dyn Fn(&[u8]) -> Option<bool>;

/// The words of a call with pipemark's own options only.
///
/// # Errors
/// When an option has no equivalent. The sentence says what to use instead.
pub fn translate(words: Vec<OsString>, own: OwnOptions) -> Result<Vec<OsString>, ExitError> {
    let Some(verb) = words.get(1) else { return Ok(words) };
    let dialects = dialects(verb, &words[2..]);
    if dialects.is_empty() {
        return Ok(words);
    }
    let mut translation = Translation { dialects, rest: words[2..].iter(), done: words[..2].to_vec(), step: None };
    while let Some(word) = translation.rest.next() {
        let bytes = word.as_bytes();
        if bytes == b"--" {
            translation.done.push(word.clone());
            translation.done.extend(translation.rest.by_ref().cloned());
        } else if bytes == b"--progress" && !translation.has_form() {
            // Otherwise a file would be taken for the form.
            translation.done.push("--progress=text".into());
        } else if let Some(name) = bytes.strip_prefix(b"--") {
            translation.long(word, name, own)?;
        } else if bytes.len() > 1 && bytes[0] == b'-' {
            translation.letters(word, &bytes[1..], own)?;
        } else {
            translation.done.push(word.clone());
        }
    }
    translation.finish()
}

struct Translation<'w> {
    dialects: &'static [ForeignProgram],
    rest: std::slice::Iter<'w, OsString>,
    done: Vec<OsString>,
    /// The step of a range, which may come before or after the range.
    step: Option<OsString>,
}

impl Translation<'_> {
    fn find(&self, name: &[u8]) -> Option<(&'static str, &'static ForeignOption)> {
        let of = |dialect: &'static ForeignProgram| {
            let option = dialect.options.iter().find(|option| option.names.iter().any(|one| one.as_bytes() == name));
            option.map(|option| (dialect.program, option))
        };
        self.dialects.iter().find_map(of)
    }

    fn long(&mut self, word: &OsString, name: &[u8], own: OwnOptions) -> Result<(), ExitError> {
        let (name, value) = match name.iter().position(|&byte| byte == b'=') {
            Some(at) => (&name[..at], Some(&name[at + 1..])),
            None => (name, None),
        };
        match self.find(name).filter(|_| name.len() > 1 && own(name).is_none()) {
            Some((program, option)) => {
                let typed = format!("--{}", String::from_utf8_lossy(name));
                self.replace(program, option, &typed, value.map(OsStr::from_bytes))
            }
            None => {
                self.done.push(word.clone());
                // A value of an own option isn't an option.
                if own(name) == Some(true) && value.is_none() {
                    self.done.extend(self.rest.next().cloned());
                }
                Ok(())
            }
        }
    }

    fn letters(&mut self, word: &OsString, letters: &[u8], own: OwnOptions) -> Result<(), ExitError> {
        for (at, letter) in letters.iter().enumerate() {
            let (name, behind) = (&letters[at..=at], &letters[at + 1..]);
            let found = self.find(name);
            // An own option whose letter another program uses too: hyperfine's -P has three values.
            let is_own = own(name)
                .filter(|_| !matches!(found, Some((_, option)) if option.meaning == Scan && self.is_scan(behind)));
            match (is_own, found) {
                (Some(true), _) => {
                    self.done.push(OsString::from_vec([b"-", &letters[at..]].concat()));
                    if behind.is_empty() {
                        self.done.extend(self.rest.next().cloned());
                    }
                    return Ok(());
                }
                (Some(false), _) => self.done.push(OsString::from_vec([b"-", name].concat())),
                (None, Some((program, option))) => {
                    let typed = format!("-{}", char::from(*letter));
                    let takes_rest = option.values > 0 && !behind.is_empty();
                    let value = takes_rest.then(|| OsStr::from_bytes(behind));
                    self.replace(program, option, &typed, value)?;
                    if takes_rest {
                        return Ok(());
                    }
                }
                // clap says what is wrong with it.
                (None, None) if at == 0 => {
                    self.done.push(word.clone());
                    return Ok(());
                }
                (None, None) => {
                    self.done.push(OsString::from_vec([b"-", &letters[at..]].concat()));
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Whether the form of relay's --progress follows.
    fn has_form(&self) -> bool {
        self.rest.as_slice().first().is_some_and(|word| word == "json" || word == "text")
    }

    /// Whether the values that follow are those of a range: a name without `=`.
    fn is_scan(&self, behind: &[u8]) -> bool {
        let next = self.rest.as_slice().first().map(|word| word.as_bytes());
        let name = if behind.is_empty() { next } else { Some(behind) };
        name.is_some_and(|name| !name.contains(&b'='))
    }

    fn replace(
        &mut self,
        program: &str,
        option: &ForeignOption,
        typed: &str,
        value: Option<&OsStr>,
    ) -> Result<(), ExitError> {
        let says = |sentence: &str| ExitError::usage(format_args!("{program}'s {typed}: {sentence}"));
        // Before its values are taken: some options of this kind take one, and some don't.
        if let Use(sentence) = option.meaning {
            return Err(says(sentence));
        }
        let mut values: Vec<OsString> = value.map(OsStr::to_owned).into_iter().collect();
        while values.len() < option.values {
            let missing =
                || says(&format!("it takes {} value{}", option.values, if option.values == 1 { "" } else { "s" }));
            values.push(self.rest.next().ok_or_else(missing)?.clone());
        }
        match option.meaning {
            Is(words) => words.iter().for_each(|word| self.push(word, &values)),
            Means(words, _) if values[0].to_str().is_some_and(|value| value.parse::<f64>().is_ok()) => {
                words.iter().for_each(|word| self.push(word, &values));
            }
            Means(_, sentence) | Use(sentence) => return Err(says(sentence)),
            Nothing => {}
            Scan => self.push("--parameter={1}={2}..{3}", &values),
            Step => self.step = values.pop(),
        }
        Ok(())
    }

    /// Adds an own option with its values. A flag that was given already isn't given twice.
    fn push(&mut self, template: &str, values: &[OsString]) {
        let mut word = Vec::new();
        let mut rest = template;
        while let Some((before, behind)) = rest.split_once('{') {
            let (number, behind) = behind.split_once('}').unwrap_or((behind, ""));
            word.extend_from_slice(before.as_bytes());
            let at = number.parse().unwrap_or(1_usize) - 1;
            word.extend_from_slice(values.get(at).map_or(&[][..], |value| value.as_bytes()));
            rest = behind;
        }
        word.extend_from_slice(rest.as_bytes());
        let name = template.split('=').next().unwrap_or(template).as_bytes();
        let has_flag = |done: &OsString| done.as_bytes() == name || done.as_bytes() == word;
        let may_repeat = template.contains('{');
        if may_repeat || !self.done.iter().any(has_flag) {
            self.done.push(OsString::from_vec(word));
        }
    }

    fn finish(mut self) -> Result<Vec<OsString>, ExitError> {
        let Some(step) = self.step else { return Ok(self.done) };
        let is_range = |word: &&mut OsString| {
            let word = word.as_bytes();
            word.starts_with(b"--parameter=") && word.windows(2).any(|two| two == b"..")
        };
        match self.done.iter_mut().find(is_range) {
            Some(range) => {
                range.push(":");
                range.push(step);
                Ok(self.done)
            }
            None => Err(ExitError::usage("hyperfine's -D: it needs a range, as in -P NAME=1..10:STEP")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{command, own_options};

    fn translated(text: &str) -> Result<String, String> {
        let words: Vec<OsString> = std::iter::once("pipemark").chain(text.split(' ')).map(OsString::from).collect();
        let own = own_options(words[1].to_str().unwrap());
        let words = translate(words, &|name| own.get(name).copied()).map_err(|error| error.to_string())?;
        let text: Vec<String> = words[1..].iter().map(|word| word.to_string_lossy().into_owned()).collect();
        match command().try_get_matches_from(&words) {
            Ok(_) => Ok(text.join(" ")),
            Err(error) => panic!("{text:?}: {error}"),
        }
    }

    #[test]
    fn options_with_the_same_meaning_are_replaced() {
        for (typed, ours) in [
            ("ab -w 3 -N -L n 1,2 a", "ab -w 3 --shell=none --parameter=n=1,2 a"),
            ("ab -P threads 1 8 -D 2 a", "ab --parameter=threads=1..8:2 a"),
            ("ab --parameter-scan t 1 8 a", "ab --parameter=t=1..8 a"),
            ("ab -P n=1,2 a", "ab -P n=1,2 a"),
            ("ab -p x -s y -c z --export-json f a", "ab --prepare=x --setup=y --cleanup=z --hyperfine-json=f a"),
            ("ab -iN a", "ab -i --shell=none a"),
            ("ab a -- -N", "ab a -- -N"),
            ("relay -pterb", "relay --progress=text"),
            ("relay -qL 20m", "relay --limit=20m"),
            ("relay -qL20m", "relay --limit=20m"),
            ("relay -s 1g -i 0.5 log", "relay --progress=text --size=1g --interval=0.5s log"),
            ("relay --progress -B 1m -C", "relay --progress=text --buffer=1m --method=read-write"),
            ("relay --progress a -t", "relay --progress=text a"),
            ("relay --progress json a", "relay --progress json a"),
            ("relay -N in", "relay --progress=text --name=in"),
            ("relay -q -L 20m -C", "relay --limit=20m --method=read-write"),
            ("relay -qm1g a", "relay --buffer=1g a"),
            ("relay -q -m 1g -P 80", "relay --buffer=1g --start-at=80"),
        ] {
            assert_eq!(translated(typed).as_deref(), Ok(ours), "{typed}");
        }
    }

    /// Every option of the manuals of hyperfine 1.20 and 2.0, pv 1.10 and mbuffer 20230301.
    #[test]
    fn every_option_of_the_manuals_is_understood_or_translated() {
        const HYPERFINE: &str = "-w 1,--warmup 1,-m 1,--min-runs 1,-M 1,--max-runs 1,-r 2,--runs 2,-s x,--setup x,--reference 1,\
            --reference-name x,-p x,--prepare x,-C x,--conclude x,-c x,--cleanup x,-P a 1 2,--parameter-scan a 1 2,\
            -L a 1,--parameter-list a 1,-S sh,--shell sh,-N,-i,--ignore-failure,--style x,--sort x,-u x,--time-unit x,\
            --export-asciidoc x,--export-csv x,--export-json x,--export-markdown x,--export-orgmode x,--show-output,\
            --output x,--input x,-n x,--command-name x,--min-benchmarking-time 1,--metrics x,--env X=1";
        const PV: &str = "-p,--progress,-t,--timer,-e,--eta,-I,--fineta,-r,--rate,-a,--average-rate,-b,--bytes,-T,--buffer-percent,\
            -A 1,--last-written 1,-F x,--format x,-n,--numeric,-q,--quiet,-8,--bits,-k,--si,-W,--wait,-D 1,--delay-start 1,-s 1,\
            --size 1 --progress,-g,--gauge,-l,--line-mode,-0,--null,-i 1,--interval 1s --progress,-m 1,--average-rate-window 1,-w 1,\
            --width 1,-H 1,--height 1,-N x,--name x --progress,-u x,--bar-style x,-x x,--extra-display x,-f,--force,-c,--cursor,\
            -L 1,--rate-limit 1,-B 1,--buffer-size 1,-C,--no-splice,-E,--skip-errors,-Z 1,--error-skip-block 1,-S,\
            --stop-at-size,-Y,--sync,-K,--direct-io,-O,--sparse,-X,--discard,-U x,--store-and-forward x,-o x,--output x,-d 1,\
            --watchfd 1,-R 1,--remote 1,-Q 1,--query 1,-P x,--pidfile x,-v,--stats";
        const MBUFFER: &str = "-m 1m,-s 1k,-b 10,-p 10,-m 1m -P 80,-r 1m,-R 1m,-t,-T x,-i x,-o x,-I x,-O x,-f,-n 1,-A x,-d,-D 1,-l x,-L,-q,\
            -Q,-v 1,-a 1,-c,-u 1,-W 1,-0,-4,-6,-H,-e,--append,--truncate,--direct,--no-direct,--pid,--md5,--hash x,\
            --tapeaware,--tcpbuffer 1,--tcptimeo 1";
        let check = |verb: &str, program: &str, option: &str, rest: &str| match translated(&format!(
            "{verb} {}{rest}",
            option.trim()
        )) {
            Ok(_) => {}
            Err(error) => {
                let names = [program, "pv", "mbuffer"].map(|name| format!("{name}'s -"));
                assert!(names.iter().any(|name| error.contains(name)), "{option}: {error}");
            }
        };
        HYPERFINE.split(',').for_each(|option| check("ab", "hyperfine", option, " a"));
        PV.split(',').for_each(|option| check("relay", "pv", option, ""));
        MBUFFER.split(',').for_each(|option| {
            let rest = if option.trim().starts_with("-m ") { "" } else { " -m 1m" };
            check("relay", "mbuffer", option, rest);
        });
    }

    #[test]
    fn other_options_are_errors_that_translate() {
        for (typed, sentence) in [
            ("ab --min-runs 5 a", "hyperfine's --min-runs: use --runs N"),
            ("ab --export-csv f a", "hyperfine's --export-csv: use --csv"),
            ("relay -S -s 1m", "pv's -S: put 'head -c SIZE'"),
            ("relay -q -s 64k", "mbuffer's -s: a block size isn't needed"),
            ("relay -qm1g -s 64k", "mbuffer's -s: a block size isn't needed"),
            ("relay -m 1g -L", "mbuffer's -L: it has no equivalent"),
            ("relay -m 1g -p 80", "mbuffer's -p: use --stop-at PERCENT"),
            ("relay -m 1g -r 10m", "mbuffer's -r: use --limit RATE"),
            ("relay -i file", "pv's -i: for mbuffer's -i FILE"),
            ("relay -L", "pv's -L: it takes 1 value"),
        ] {
            let error = translated(typed).unwrap_err();
            assert!(error.contains(sentence), "{typed}: {error}");
        }
    }
}
