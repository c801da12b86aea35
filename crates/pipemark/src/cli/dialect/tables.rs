//! The options of other programs, and what becomes of them.

use std::ffi::OsStr;

use pipemark_model::ByteSize;

use Meaning::{If, Is, Nothing, Scan, Step, Unless, Use};
use ValueKind::{Any, Assignments, NoShell, Number, Size, WithUnit};

/// What becomes of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The same as these words; `{}` is the value.
    Is(&'static [&'static str]),
    /// The same as these words, but only with a value of this kind. Otherwise the sentence is the error.
    If(ValueKind, &'static [&'static str], &'static str),
    /// It asks for what happens anyway.
    Nothing,
    /// An error, which says this.
    Use(&'static str),
    /// An own option of the same name, except that this is an error with a value of this kind.
    Unless(ValueKind, &'static str),
    /// hyperfine's range NAME MIN MAX, and its step.
    Scan,
    Step,
}

/// A kind of value, by which options that share a letter are distinguished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueKind {
    Number,
    /// Anything but a number.
    WithUnit,
    Size,
    /// Anything but a shell that `ab` runs.
    NoShell,
    /// Several assignments, or one with quotes, as hyperfine 2 splits them.
    Assignments,
    /// Any value of an option that takes none in pipemark.
    Any,
}

impl ValueKind {
    pub(super) fn matches(self, value: &OsStr) -> bool {
        let text = value.to_str().unwrap_or_default();
        let is_number = text.parse::<f64>().is_ok();
        match self {
            Number => is_number,
            WithUnit => !is_number,
            Size => text.parse::<ByteSize>().is_ok(),
            NoShell => !["none", "sh", "bash"].contains(&text),
            Assignments => {
                let is_name = |name: &str| {
                    let is_letter = |letter: char| letter == '_' || letter.is_ascii_alphanumeric();
                    name.chars().all(is_letter) && name.starts_with(|first: char| !first.is_ascii_digit())
                };
                let assigns = |word: &str| word.split_once('=').is_some_and(|(name, _)| is_name(name));
                let value = text.split_once('=').map_or("", |(_, value)| value);
                value.starts_with(['"', '\'']) || text.split_whitespace().skip(1).any(assigns)
            }
            Any => true,
        }
    }
}

/// An option of another program.
#[derive(Debug)]
pub(super) struct ForeignOption {
    /// Its names, without dashes.
    pub(super) names: &'static [&'static str],
    /// How many values it takes.
    pub(super) values: usize,
    pub(super) meaning: Meaning,
}

const fn option(names: &'static [&'static str], values: usize, meaning: Meaning) -> ForeignOption {
    ForeignOption { names, values, meaning }
}

/// The options of a program, for a verb.
pub(super) struct ForeignProgram {
    pub(super) program: &'static str,
    pub(super) options: &'static [ForeignOption],
}

pub(super) const HYPERFINE: ForeignProgram = ForeignProgram {
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
        option(
            &["S", "shell"],
            1,
            Unless(
                NoShell,
                "ab runs commands by sh, which is hyperfine 2's -S, by bash or by none; for another shell, put it in \
                 the command, as in --shell none \"zsh -c '…'\"",
            ),
        ),
        option(&["env"], 1, Unless(Assignments, "use --env NAME=VALUE for each variable, without quotes in the value")),
        option(
            &["i", "ignore-failure"],
            0,
            Unless(Any, "-i ignores all nonzero exit codes; to ignore some, put '|| test $? = CODE' in the command"),
        ),
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
    ],
};

const PROGRESS: &[&str] = &["--progress=text"];
pub(super) const LOOK: &str = "the form of the progress line is fixed";

pub(super) const PV: ForeignProgram = ForeignProgram {
    program: "pv",
    options: &[
        option(&["p", "t", "timer", "e", "eta", "r", "rate", "b", "bytes", "f", "force"], 0, Is(PROGRESS)),
        // Relays on one terminal keep their lines anyway.
        option(&["c", "cursor"], 0, Is(PROGRESS)),
        option(&["a", "average-rate"], 0, Is(&["--average=30s"])),
        option(&["average-rate-window"], 1, If(Number, &["--average={}s"], "use --average TIME, as in --average 30s")),
        option(&["W"], 0, Is(&["--wait"])),
        option(&["l", "line-mode"], 0, Is(&["--lines=newline"])),
        option(&["0", "null"], 0, Is(&["--lines=null"])),
        option(
            &["s"],
            1,
            If(
                Size,
                &["--size={}"],
                "use --size with a number, such as 10g; for the size of a file, --size \"$(stat -c %s FILE)\"",
            ),
        ),
        option(
            &["i", "interval"],
            1,
            If(
                Number,
                &["--interval={}s"],
                "use --interval TIME, as in --interval 500ms; for mbuffer's -i FILE use 'pipemark relay FILE'",
            ),
        ),
        option(&["N"], 1, Is(&["--name={}"])),
        option(&["L", "rate-limit"], 1, Is(&["--limit={}"])),
        option(&["B", "buffer-size"], 1, Is(&["--buffer={}"])),
        option(&["C", "no-splice"], 0, Is(&["--method=read-write"])),
        option(&["v"], 0, Is(&["--stats"])),
        option(&["q", "quiet"], 0, Nothing),
        option(&["I", "fineta"], 0, Use("use --progress, which shows the time left")),
        option(&["T", "buffer-percent"], 0, Use("use --progress and --buffer SIZE, which show the fill level")),
        option(&["n", "numeric", "F", "format"], 0, Use("use --progress json, which has all figures")),
        option(&["R", "remote"], 1, Use("use --set PID limit=RATE; for mbuffer's -R RATE use --limit RATE")),
        option(&["S", "stop-at-size"], 0, Use("put 'head -c SIZE' before the relay")),
        option(&["E", "skip-errors", "Z", "error-skip-block"], 0, Use("a failed read is an error; use ddrescue")),
        option(&["o", "output"], 1, Use("use >FILE")),
        option(&["X", "discard"], 0, Use("use >/dev/null")),
        option(&["U", "store-and-forward"], 1, Use("use >FILE, then 'pipemark relay --progress FILE'")),
        option(&["K", "direct-io", "Y", "sync"], 0, Use("use dd with iflag=direct, oflag=direct or oflag=dsync")),
        option(&["O", "sparse"], 0, Use("use dd with conv=sparse; for mbuffer's -O HOST:PORT put nc behind the relay")),
        option(&["P"], 1, If(Number, &["--start-at={}"], "for pv's -P FILE use $! after a pipeline with &")),
        option(&["pidfile"], 1, Use("use $! after a pipeline with &")),
        option(&["d", "watchfd"], 1, Use("'pipemark why PID' shows how far a program has read its file")),
        option(&["M", "monitor"], 1, Use("put a relay with --name before COMMAND, behind it, or both")),
        option(&["Q", "query"], 1, Use("progress is shown by the relay itself")),
        option(&["D", "delay-start"], 0, Use("use --wait, which shows progress from the first byte on")),
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
            ],
            0,
            Use(LOOK),
        ),
    ],
};

/// The letters that mean something else in pv. They are errors if -m or -q, which go with a buffer, are given.
pub(super) const CLASHES: ForeignProgram = ForeignProgram {
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
pub(super) const MBUFFER: ForeignProgram = ForeignProgram {
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
pub(super) const MBUFFER_ONLY: ForeignProgram = ForeignProgram {
    program: "mbuffer",
    options: &[
        option(
            &["m"],
            1,
            If(
                WithUnit,
                &["--buffer={}"],
                "use --buffer SIZE with a unit, as in --buffer 64m; for pv's -m SECONDS use --average TIME",
            ),
        ),
        option(&["no-direct"], 0, Nothing),
        option(&["append"], 0, Use("use >>FILE")),
        option(&["truncate"], 0, Use("use >FILE")),
        option(&["pid"], 0, Use("use $! after a pipeline with &")),
        option(&["md5", "hash"], 0, Use("put 'tee >(md5sum >&2)' behind the relay")),
        option(&["direct", "tapeaware"], 0, Use("use mbuffer for tapes and direct I/O")),
        option(&["4", "6", "tcpbuffer", "tcptimeo"], 0, Use("put socat or nc behind the relay")),
    ],
};
