//! The options of the manuals, and calls as with other programs.

use super::tables::LOOK;
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
        ("ab -S sh a", "ab -S sh a"),
        ("ab -i --shell=bash --env A=1 a", "ab -i --shell=bash --env A=1 a"),
        ("ab a -- -N", "ab a -- -N"),
        ("relay -pterb", "relay --progress=text"),
        ("relay -qL 20m", "relay --limit=20m"),
        ("relay -qL20m", "relay --limit=20m"),
        ("relay -s 1g -i 0.5 log", "relay --size=1g --interval=0.5s log"),
        ("relay --progress -B 1m -C", "relay --progress=text --buffer=1m --method=read-write"),
        ("relay --progress a -t", "relay --progress=text a"),
        ("relay --progress json a", "relay --progress json a"),
        ("relay --interval 0.5 --progress=json -p", "relay --interval=0.5s --progress=json"),
        ("relay --interval 500ms -cN a -l", "relay --interval 500ms --progress=text --name=a --lines=newline"),
        ("relay -N in", "relay --name=in"),
        ("relay -q -L 20m -C", "relay --limit=20m --method=read-write"),
        ("relay -qm1g a", "relay --buffer=1g a"),
        ("relay -q -m 1g -P 80", "relay --buffer=1g --start-at=80"),
    ] {
        assert_eq!(translated(typed).as_deref(), Ok(ours), "{typed}");
    }
}

/// The section of a man page on the options of other programs that a verb understands; `None` if it understands none.
pub(in crate::cli) fn man_section(verb: &str) -> Option<String> {
    let programs: &[ForeignProgram] = match verb {
        "ab" => &[HYPERFINE],
        "relay" => &[PV, MBUFFER_ONLY],
        _ => return None,
    };
    let mut text = format!(".SH \"OPTIONS OF {}\"\n", programs[0].program.to_uppercase());
    if let [first, second] = programs {
        text = format!(".SH \"OPTIONS OF {} AND {}\"\n", first.program, second.program).to_uppercase();
    }
    text.push_str(
        "These are accepted too. Any other option of such a program is an error that says what to use instead.\n",
    );
    let roff = |text: &str| text.replace('-', "\\-").replace('\'', "\\(aq");
    for option in programs.iter().flat_map(|program| program.options) {
        let ours = match option.meaning {
            Is(words) | If(_, words, _) => words.join(" ").replace("{1}={2}", "NAME=VALUES").replace("{}", "VALUE"),
            Scan => "--parameter=NAME=MIN..MAX".to_owned(),
            Step => "--parameter=NAME=MIN..MAX:VALUE".to_owned(),
            Nothing => "no effect".to_owned(),
            Use(_) | Unless(..) => continue,
        };
        let dashed = |name: &&str| if name.len() == 1 { format!("-{name}") } else { format!("--{name}") };
        let names: Vec<String> =
            option.names.iter().map(dashed).map(|name| format!("\\fB{}\\fR", roff(&name))).collect();
        text.push_str(&format!(".TP\n{}\n{}\n", names.join(", "), roff(&ours)));
    }
    Some(text)
}

/// What becomes of an option of another program: these words of pipemark, or an error that contains this.
enum ExpectedTranslation {
    Words(&'static str),
    Error(&'static str),
}
use ExpectedTranslation::{Error, Words};

/// For each option: its first name, values to try, and what they become. Options that aren't here have the same name and
/// meaning.
const OF_HYPERFINE: &[(&str, &str, ExpectedTranslation)] = &[
    ("-m", "5", Error("use --runs N")),
    ("-M", "5", Error("use --runs N")),
    ("-s", "x", Words("--setup=x")),
    ("-p", "x", Words("--prepare=x")),
    ("-c", "x", Words("--cleanup=x")),
    ("-P", "n 1 3", Words("--parameter=n=1..3")),
    ("-D", "2 -P n 1 3", Words("--parameter=n=1..3:2")),
    ("-L", "n 1,2", Words("--parameter=n=1,2")),
    ("-C", "x", Words("--conclude=x")),
    ("-S", "", Error("hyperfine 2's -S")),
    ("-N", "", Words("--shell=none")),
    ("--style", "full", Error("NO_COLOR")),
    ("--sort", "mean-time", Error("order of the commands")),
    ("-u", "second", Error("--csv and --json are in nanoseconds")),
    ("--export-asciidoc", "f", Error("use --markdown")),
    ("--export-csv", "f", Error("use --csv")),
    ("--export-json", "f", Words("--hyperfine-json=f")),
    ("--export-markdown", "f", Words("--markdown=f")),
    ("--export-orgmode", "f", Error("use --markdown")),
    ("--show-output", "", Error("run the command by itself")),
    ("--output", "pipe", Error("use >FILE")),
    ("--metrics", "time_cpu", Error("--by FIGURE")),
    ("-n", "x", Words("--name=x")),
];

const OF_PV: &[(&str, &str, ExpectedTranslation)] = &[
    ("-p", "", Words("--progress=text")),
    ("-t", "", Words("--progress=text")),
    ("-e", "", Words("--progress=text")),
    ("-I", "", Error("shows the time left")),
    ("-r", "", Words("--progress=text")),
    ("-a", "", Words("--average=30s")),
    ("-b", "", Words("--progress=text")),
    ("-T", "", Error("--buffer SIZE")),
    ("-A", "10", Error(LOOK)),
    ("-F", "%t", Error("--progress json")),
    ("-n", "", Error("--progress json")),
    ("-q", "", Words("")),
    ("-8", "", Error(LOOK)),
    ("-k", "", Error(LOOK)),
    ("-W", "", Words("--wait")),
    ("-D", "0.5", Error("use --wait")),
    ("-s", "10M", Words("--size=10M")),
    ("-g", "", Error(LOOK)),
    ("-l", "", Words("--lines=newline")),
    ("-0", "", Words("--lines=null")),
    ("-i", "0.5", Words("--interval=0.5s")),
    ("-m", "10", Error("pv's -m SECONDS use --average TIME")),
    ("--average-rate-window", "10", Words("--average=10s")),
    ("-w", "80", Error(LOOK)),
    ("-H", "25", Error(LOOK)),
    ("-N", "in", Words("--name=in")),
    ("-u", "plain", Error(LOOK)),
    ("-x", "window", Error(LOOK)),
    ("-v", "", Words("--stats")),
    ("-f", "", Words("--progress=text")),
    ("-c", "", Words("--progress=text")),
    ("-o", "f", Error("use >FILE")),
    ("-L", "20K", Words("--limit=20K")),
    ("-B", "1M", Words("--buffer=1M")),
    ("-C", "", Words("--method=read-write")),
    ("-E", "", Error("ddrescue")),
    ("-Z", "4096", Error("ddrescue")),
    ("-S", "", Error("head -c SIZE")),
    ("-Y", "", Error("dd with")),
    ("-K", "", Error("dd with")),
    ("-O", "", Error("conv=sparse")),
    ("-X", "", Error("use >/dev/null")),
    ("-U", "f", Error("pipemark relay --progress FILE")),
    ("-d", "1", Error("pipemark why PID")),
    ("-R", "1", Error("--set PID limit=RATE")),
    ("-Q", "1", Error("by the relay itself")),
    ("-M", "in", Error("before COMMAND, behind it, or both")),
    ("-P", "f", Error("use $!")),
];

/// With -m, which shows that mbuffer is meant.
const OF_MBUFFER: &[(&str, &str, ExpectedTranslation)] = &[
    ("-i", "f", Error("use 'pipemark relay FILE'")),
    ("-I", "9000", Error("socat or nc")),
    ("-o", "f", Error("use >FILE")),
    ("-O", "host:9000", Error("socat or nc")),
    ("-b", "10", Error("the number of blocks times their size")),
    ("-s", "64k", Error("isn't needed")),
    ("-m", "1M", Words("--buffer=1M")),
    ("-L", "", Error("no equivalent")),
    ("-n", "2", Error("use mbuffer for tapes")),
    ("-t", "", Error("never in a file")),
    ("-T", "f", Error("never in a file")),
    ("-d", "", Error("use mbuffer for tapes")),
    ("-D", "1g", Error("use mbuffer for tapes")),
    ("-P", "80", Words("--start-at=80 --buffer=1M")),
    ("-p", "80", Error("use --stop-at PERCENT")),
    ("-l", "f", Error("use 2>FILE")),
    ("-u", "10", Error("no equivalent")),
    ("-r", "10m", Error("use --limit RATE")),
    ("-R", "10m", Error("use --limit RATE")),
    ("-A", "cmd", Error("use mbuffer for tapes")),
    ("-a", "10", Error("use mbuffer for tapes")),
    ("-f", "", Error("use >FILE")),
    ("-c", "", Error("no equivalent")),
    ("-v", "3", Error("--stats")),
    ("-q", "", Words("--buffer=1M")),
    ("-Q", "", Error("2>FILE")),
    ("--append", "", Error("use >>FILE")),
    ("--truncate", "", Error("use >FILE")),
    ("--tapeaware", "", Error("use mbuffer for tapes")),
    ("--tcptimeo", "10", Error("socat or nc")),
    ("-6", "", Error("socat or nc")),
    ("-4", "", Error("socat or nc")),
    ("-0", "", Error("socat or nc")),
    ("-H", "", Error("tee >(md5sum")),
    ("--hash", "md5", Error("tee >(md5sum")),
    ("--pid", "", Error("use $!")),
    ("-W", "60", Error("no equivalent")),
];

/// The options of a manual: the names of each, and whether it takes a value.
fn manual(text: &str) -> impl Iterator<Item = (Vec<&str>, bool)> {
    text.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let words = line.split(' ').map(|word| word.trim_end_matches(','));
        let (names, values): (Vec<_>, Vec<_>) = words.partition(|word| word.starts_with('-'));
        (names, !values.is_empty())
    })
}

/// Options that every program has.
const OF_ALL: [&str; 2] = ["-h", "-V"];

fn check_manual(program: &str, text: &str, table: &[(&str, &str, ExpectedTranslation)], [verb, rest]: [&str; 2]) {
    let own = own_options(verb);
    let mut all_names = Vec::new();
    for (names, takes_value) in manual(text).filter(|(names, _)| !OF_ALL.contains(&names[0])) {
        all_names.extend(names.clone());
        let of = |name: &str| table.iter().find(|(one, ..)| *one == name);
        if of(names[0]).is_none() {
            for name in &names {
                let is_own = own.get(name.trim_start_matches('-').as_bytes());
                assert_eq!(is_own, Some(&takes_value), "{program}'s {name} is no option of {verb}");
            }
            continue;
        }
        for name in &names {
            let (_, values, expected) = of(name).or_else(|| of(names[0])).expect("the first name has a row");
            assert_eq!(takes_value, !values.is_empty(), "{names:?}");
            let rest = if rest.starts_with(name) { "" } else { rest };
            let typed = [verb, name, values, rest].iter().filter(|word| !word.is_empty()).copied().collect::<Vec<_>>();
            // A name that pipemark has too keeps pipemark's form.
            let is_own = own.contains_key(name.trim_start_matches('-').as_bytes());
            let (typed, said) = (typed.join(" "), translated(&typed.join(" ")));
            match (expected, said) {
                (Words(_), Ok(_)) if is_own => {}
                (Words(words), Ok(ours)) => {
                    let words: Vec<&str> = [verb, words].into_iter().filter(|word| !word.is_empty()).collect();
                    assert_eq!(ours.trim_end_matches(&format!(" {rest}")), words.join(" "), "{typed}");
                }
                (Error(sentence), Err(error)) => {
                    let says = ["pv", "mbuffer", "hyperfine"].map(|program| format!("{program}'s {name}: "));
                    assert!(says.iter().any(|start| error.contains(start)), "{typed}: {error}");
                    assert!(error.contains(sentence), "{typed}: {error}");
                }
                (_, said) => panic!("{typed}: {said:?}"),
            }
        }
    }
    let unknown = table.iter().find(|(name, ..)| !all_names.contains(name));
    assert!(unknown.is_none(), "the manual of {program} has no {:?}", unknown.map(|(name, ..)| name));
}

#[test]
fn every_option_of_the_manuals_is_understood_or_translated() {
    check_manual("hyperfine", include_str!("manuals/hyperfine.txt"), OF_HYPERFINE, ["ab", "a"]);
    check_manual("pv", include_str!("manuals/pv.txt"), OF_PV, ["relay", ""]);
    check_manual("mbuffer", include_str!("manuals/mbuffer.txt"), OF_MBUFFER, ["relay", "-m 1M"]);
}

#[test]
fn the_documentation_names_every_option_of_the_manuals() {
    let pages = [
        ("hyperfine", include_str!("manuals/hyperfine.txt"), include_str!("../../../docs/compare.md")),
        ("pv", include_str!("manuals/pv.txt"), include_str!("../../../docs/pipes.md")),
        ("mbuffer", include_str!("manuals/mbuffer.txt"), include_str!("../../../docs/pipes.md")),
    ];
    for (program, options, page) in pages {
        let of_program = |line: &&str| line.starts_with('|') || line.contains(program);
        let page: Vec<&str> = page.lines().filter(of_program).collect();
        let words: Vec<&str> = page.iter().flat_map(|line| line.split([' ', '`', ',', '=', '|'])).collect();
        for (names, _) in manual(options).filter(|(names, _)| !OF_ALL.contains(&names[0])) {
            assert!(names.iter().any(|name| words.contains(name)), "{program}'s {names:?}");
        }
    }
}

/// hyperfine 2 splits a value of --env into several assignments; ab doesn't.
#[test]
fn values_that_mean_something_else_are_errors() {
    for (value, is_error) in [
        ("A=1", false),
        ("A=1 B=2", true),
        ("A=", false),
        ("CFLAGS=-O3 -DB=2", false),
        ("CFLAGS='-O3'", true),
        ("A=a=b", false),
    ] {
        let words = ["pipemark", "ab", "--env", value, "true"].map(OsString::from).to_vec();
        let own = own_options("ab");
        assert_eq!(translate(words, &|name| own.get(name).copied()).is_err(), is_error, "{value}");
    }
}

#[test]
fn other_options_are_errors_that_translate() {
    for (typed, sentence) in [
        ("ab --min-runs 5 a", "hyperfine's --min-runs: use --runs N"),
        ("ab --export-csv f a", "hyperfine's --export-csv: use --csv"),
        ("ab -S a b", "hyperfine's -S: ab runs commands by sh, which is hyperfine 2's -S"),
        ("ab --shell zsh a", "--shell none \"zsh -c"),
        ("ab --shell=fish a", "hyperfine's --shell: "),
        ("ab --ignore-failure=1,2 a", "hyperfine's --ignore-failure: -i ignores all"),
        ("ab -i=1 a", "hyperfine's -i: -i ignores all"),
        ("ab --env A=\"x\" a", "hyperfine's --env: use --env NAME=VALUE for each"),
        ("relay -S -s 1m", "pv's -S: put 'head -c SIZE'"),
        ("relay -q -s 64k", "mbuffer's -s: a block size isn't needed"),
        ("relay -qm1g -s 64k", "mbuffer's -s: a block size isn't needed"),
        ("relay -m 1g -L", "mbuffer's -L: it has no equivalent"),
        ("relay -m 1g -p 80", "mbuffer's -p: use --stop-at PERCENT"),
        ("relay -m 1g -r 10m", "mbuffer's -r: use --limit RATE"),
        ("relay -i file", "for mbuffer's -i FILE use 'pipemark relay FILE'"),
        ("relay -s @file", "stat -c %s FILE"),
        ("relay -m 60", "for pv's -m SECONDS use --average TIME"),
        ("relay -L", "pv's -L: it takes 1 value"),
    ] {
        let error = translated(typed).unwrap_err();
        assert!(error.contains(sentence), "{typed}: {error}");
    }
}
