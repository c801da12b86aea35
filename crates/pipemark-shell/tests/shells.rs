//! The grammar against the shells: generated commands with all constructs, nested, are run as they are and as printed
//! with an edit. Each stage must get the same words but for the edit, and the output must be the same.

mod generator;
mod nasty;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use generator::{Generated, Generator};
use pipemark_shell::{Dialect, Edits, Script, ShellError, program_after_wrappers};

/// What each shell runs: `show` writes its words to a log, and passes on its input and its words. It leaves out the
/// options that edits insert, so that the output stays the same. No program but these functions can be started.
///
/// A reader may end before its writer, so a write into a closed pipe changes neither status nor output. At a terminal,
/// nothing is read.
const PRELUDE: &str = r#"
PATH=$HERE/bin; TIMEFORMAT=t; unset IFS; V=; W='w  w'; N=W; set -- p1 'p  2'; trap '' PIPE
nohup() { "$@"; }
nice() { shift 2; "$@"; }
env() { shift 2; "$@"; }
timeout() { case $1 in -s) shift 3;; *) shift;; esac; "$@"; }
read() { [ ! -t 0 ] && command read "$@"; }
show() {
    s_id=$1
    [ "$s_id" = -E ] && s_id=$2
    [ "$s_id" = -A=1 ] && s_id=$3
    printf '%s\0' "$#" "$@" >>"$LOG/$s_id"
    [ "$1" = -E ] && shift
    [ "$1" = -A=1 ] && shift
    while IFS= read -r s_in; do printf '%s\n' "$s_in"; done 2>/dev/null
    for s_word; do printf '[%s]' "$s_word"; done 2>/dev/null
    echo 2>/dev/null
    case $1 in s*7) return 1;; esac
}
"#;

/// A directory that is removed at the end.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let path = std::env::temp_dir().join(format!("pipemark-shell-{name}-{}", std::process::id()));
        fs::create_dir_all(path.join("bin")).unwrap();
        Place(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A command to run, as typed and as printed with an edit.
struct Case {
    typed: Vec<u8>,
    printed: String,
    /// The id of the command with the edit.
    id: String,
    /// The words that the edit inserts before it.
    inserted: Vec<String>,
}

/// What edits may insert.
const INSERTED: [&str; 2] = ["-E", "-A=1"];

/// Makes a case of a generated text; `None` if it is refused.
fn case(generated: &Generated, dialect: Dialect) -> Option<Case> {
    edited(&generated.text, dialect, generated.choice, 1 + generated.choice % 2).ok()
}

/// A text with the first words of [`INSERTED`] in one of its commands.
fn edited(text: &[u8], dialect: Dialect, choice: usize, count: usize) -> Result<Case, ShellError> {
    let script = Script::parse(text, dialect)?;
    let commands = script.commands();
    let shows = commands.iter().filter_map(|command| {
        let (program, _) = program_after_wrappers(&command.words)?;
        let id = command.words.get(program + 1)?.as_str()?;
        let is_show = command.words[program].as_str() == Some("show") && !command.in_backquotes;
        is_show.then_some((command, program, id))
    });
    let shows: Vec<_> = shows.collect();
    let (command, program, id) = *shows.get(choice % shows.len().max(1)).ok_or(ShellError::Empty)?;
    let mut edits = Edits::new(&script);
    let inserted = &INSERTED[..count];
    inserted.iter().try_for_each(|word| edits.insert_options(command, program, &[word]))?;
    let printed = edits.apply()?.to_paste()?;
    let inserted = inserted.iter().map(|&word| word.to_owned()).collect();
    Ok(Case { typed: text.to_vec(), printed, id: id.as_bytes().escape_ascii().to_string(), inserted })
}

fn reason(generated: &Generated, dialect: Dialect) -> String {
    match Script::parse(&generated.text[..], dialect) {
        Err(error) => format!("parse: {error}"),
        Ok(script) => format!("paste: {:?}", script.to_paste().err()),
    }
}

/// The words of each call of `show`, sorted.
type Calls = Vec<Vec<String>>;

/// The calls in a directory of logs, one for each command, because shells write long calls in pieces. A log has for
/// each call the number of words, and these.
fn calls(directory: &Path) -> Calls {
    let mut calls = Calls::new();
    for log in fs::read_dir(directory).unwrap() {
        let log = fs::read(log.unwrap().path()).unwrap();
        let mut fields = log.split_inclusive(|&byte| byte == 0).map(|field| &field[..field.len() - 1]);
        while let Some(count) = fields.next() {
            let count =
                std::str::from_utf8(count).ok().and_then(|count| count.parse().ok()).expect("a number of words");
            let words: Vec<String> = fields.by_ref().take(count).map(|word| word.escape_ascii().to_string()).collect();
            assert_eq!(words.len(), count, "a call is logged whole");
            calls.push(words);
        }
    }
    calls.sort();
    calls
}

/// Makes a directory for the logs of a command, and one in which it runs. In the latter are its input and files that
/// patterns may match.
fn make_directories(place: &Path, number: usize) {
    for kind in ["log", "work"] {
        let directory = place.join(format!("{number}.{kind}"));
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir(directory).unwrap();
    }
    for (name, content) in [("in", "one\ntwo  words\n"), ("junk", ""), ("show", "")] {
        fs::write(place.join(format!("{number}.work/{name}")), content).unwrap();
    }
}

/// How many words an edit has inserted into a call.
fn inserted(call: &[String]) -> usize {
    call.iter().take_while(|word| INSERTED.contains(&word.as_str())).count()
}

/// What differs between the calls of a command as typed and as printed, but for the edit, which only the edited command
/// gets.
fn difference(case: &Case, typed: &Calls, printed: &Calls) -> Option<String> {
    let text = || format!("\n{}\nprinted as\n{}", pipemark_shell::readable(&case.typed), case.printed);
    let mut unedited: Calls = printed.iter().map(|call| call[inserted(call)..].to_vec()).collect();
    unedited.sort();
    if *typed != unedited {
        return Some(format!("the words of{}\n{typed:?}\nand\n{unedited:?}", text()));
    }
    printed.iter().find_map(|call| {
        let (edit, own) = call.split_at(inserted(call));
        let expected = if own.first() == Some(&case.id) { &case.inserted[..] } else { &[] };
        (edit != expected).then(|| format!("the edit of {own:?} is {edit:?} in{}", text()))
    })
}

/// How often a command is run again. Where stages write to one pipe at once, as in `{ a | b; } 2>&1`, the order of their
/// messages, and so the words of a command that takes them from `$(...)`, change from run to run.
const RUNS: usize = 20;

/// Runs texts in a shell, each in a subshell with this standard input, and returns their calls and outputs.
fn run(shell: &str, place: &Path, texts: &[&[u8]], input: &str) -> Vec<(Calls, Vec<u8>)> {
    // Processes that end after the shell, as those of <( ), keep descriptor 9 open.
    let mut script = format!("exec 9>&1\nHERE='{}'\n{PRELUDE}", place.display());
    for (number, text) in texts.iter().enumerate() {
        make_directories(place, number);
        // Messages of the shell have the same name for each text.
        fs::write(place.join(format!("{number}.work/.text")), text).unwrap();
        // A syntax error ends the subshell only.
        writeln!(
            script,
            "LOG=$HERE/{number}.log; cd $HERE/{number}.work; ( . ./.text ) <{input} >$HERE/{number}.out 2>/dev/null"
        )
        .unwrap();
    }
    let main = place.join("main");
    fs::write(&main, script).unwrap();
    let mut timeout = Command::new("timeout");
    let ended = timeout.args(["60", shell]).arg(&main).env("LC_ALL", "C.UTF-8").stdin(Stdio::null()).output().unwrap();
    assert!(ended.status.code().is_some_and(|code| code != 124), "{}", ended.status);
    let result = |number: usize| {
        let output = fs::read(place.join(format!("{number}.out"))).unwrap_or_default();
        (calls(&place.join(format!("{number}.log"))), output)
    };
    (0..texts.len()).map(result).collect()
}

/// Runs commands as typed and as printed, and checks them. Returns in how many the edited command ran.
fn check_cases(shell: &str, place: &Path, cases: &[Case]) -> usize {
    // Consecutive cases may have the same text.
    let mut texts: Vec<&[u8]> = cases.iter().map(|case| &case.typed[..]).collect();
    texts.dedup();
    let results = run(shell, place, &texts, "in");
    let result = |case: &Case| results[texts.iter().position(|text| *text == case.typed).unwrap()].clone();
    let typed: Vec<(Calls, Vec<u8>)> = cases.iter().map(result).collect();
    let printed = run(shell, place, &cases.iter().map(|case| case.printed.as_bytes()).collect::<Vec<_>>(), "in");
    for (case, (typed, printed)) in cases.iter().zip(typed.iter().zip(&printed)) {
        let Some(first) = difference_of_runs(shell, case, typed, printed) else { continue };
        let again = |text: &[u8]| run(shell, place, &[text; RUNS], "in");
        let (typed, printed) = (again(&case.typed), again(case.printed.as_bytes()));
        let one_is_equal = typed
            .iter()
            .any(|typed| printed.iter().any(|printed| difference_of_runs(shell, case, typed, printed).is_none()));
        assert!(one_is_equal, "{first}");
    }
    let ran = |(case, (calls, _)): &(&Case, &(Calls, Vec<u8>))| calls.iter().any(|call| call.first() == Some(&case.id));
    cases.iter().zip(&typed).filter(ran).count()
}

/// What differs between two runs, of a command as typed and of the same as printed.
fn difference_of_runs(
    shell: &str,
    case: &Case,
    typed: &(Calls, Vec<u8>),
    printed: &(Calls, Vec<u8>),
) -> Option<String> {
    let output = || {
        let start = |output: &[u8]| pipemark_shell::readable(&output[..output.len().min(2000)]);
        format!(
            "{shell}: the output of\n{}\nprinted as\n{}\n{}\nand\n{}",
            pipemark_shell::readable(&case.typed),
            case.printed,
            start(&typed.1),
            start(&printed.1)
        )
    };
    difference(case, &typed.0, &printed.0).or_else(|| (typed.1 != printed.1).then(output))
}

/// Runs `count` commands of a dialect, and checks them.
fn check(shell: &str, dialect: Dialect, count: usize, seed: u64) {
    const BATCH: usize = 250;
    let place = Place::new(&format!("{shell}-{seed}"));
    let mut generator = Generator::new(dialect, seed);
    let (mut accepted, mut refused, mut ran) = (0, 0, 0);
    while accepted < count {
        let mut cases = Vec::new();
        while cases.len() < BATCH.min(count - accepted) {
            let generated = generator.command();
            match case(&generated, dialect) {
                Some(case) => cases.push(case),
                None => {
                    refused += 1;
                    if std::env::var_os("SHOW_REFUSED").is_some() {
                        eprintln!("{:?}\n{}", reason(&generated, dialect), pipemark_shell::readable(&generated.text));
                    }
                }
            }
            assert!(refused < 2 * (accepted + cases.len()) + 200, "the grammar refuses too much");
        }
        accepted += cases.len();
        ran += check_cases(shell, &place.0, &cases);
    }
    assert!(ran * 10 > count * 7, "the edited command ran in {ran} of {count}");
    eprintln!(
        "{shell}, {dialect:?}: {accepted} commands without a difference, the edited one ran in {ran}, {refused} refused"
    );
}

#[test]
fn printed_commands_give_the_same_words_and_output_in_dash() {
    check("dash", Dialect::Posix, 700, 1);
}

#[test]
fn printed_commands_give_the_same_words_and_output_in_bash() {
    check("bash", Dialect::Bash, 1000, 2);
}

/// What is printed for sh means the same in bash.
#[test]
fn commands_printed_for_sh_give_the_same_words_and_output_in_bash() {
    check("bash", Dialect::Posix, 300, 3);
}

/// 10^5 commands, or a tenth of them, those of `PIPEMARK_SEED`.
fn soak(shell: &str, dialect: Dialect, count: usize, seeds: std::ops::Range<u64>) {
    let chosen: Option<u64> = std::env::var("PIPEMARK_SEED").ok().and_then(|seed| seed.parse().ok());
    seeds
        .clone()
        .filter(|seed| chosen.is_none_or(|chosen| seeds.start + chosen == *seed))
        .for_each(|seed| check(shell, dialect, count, seed));
}

#[test]
#[ignore = "soak"]
fn soak_printed_commands_give_the_same_words_and_output_in_dash() {
    soak("dash", Dialect::Posix, 4000, 10..20);
}

#[test]
#[ignore = "soak"]
fn soak_printed_commands_give_the_same_words_and_output_in_bash() {
    soak("bash", Dialect::Bash, 4000, 110..120);
}

#[test]
#[ignore = "soak"]
fn soak_commands_printed_for_sh_give_the_same_words_and_output_in_bash() {
    soak("bash", Dialect::Posix, 2000, 210..220);
}

/// Each command of the list, in each dialect that accepts it, with an edit of each of its commands.
fn nasty_cases(dialect: Dialect) -> Vec<Case> {
    let mut cases = Vec::new();
    for text in nasty::NASTY {
        let mut ids: Vec<String> = Vec::new();
        for choice in 0.. {
            match edited(text, dialect, choice, 1 + choice % 2) {
                Ok(case) if !ids.contains(&case.id) => {
                    ids.push(case.id.clone());
                    cases.push(case);
                }
                Err(error) if std::env::var_os("SHOW_REFUSED").is_some() => {
                    eprintln!("{dialect:?}: {error}: {}", pipemark_shell::readable(text));
                    break;
                }
                _ => break,
            }
        }
    }
    cases
}

fn check_nasty(shell: &str, dialect: Dialect) {
    let place = Place::new(&format!("nasty-{shell}-{dialect:?}"));
    let cases = nasty_cases(dialect);
    let ran = check_cases(shell, &place.0, &cases);
    eprintln!("{shell}, {dialect:?}: {} commands with an edit, which ran in {ran}", cases.len());
    assert!(ran > 200, "{ran}");
}

#[test]
fn commands_made_to_be_misread_are_refused_or_stay_the_same() {
    check_nasty("dash", Dialect::Posix);
    check_nasty("bash", Dialect::Bash);
}

#[test]
#[ignore = "long"]
fn long_commands_made_to_be_misread_by_sh_are_refused_or_stay_the_same_in_bash() {
    check_nasty("bash", Dialect::Posix);
}

#[test]
fn commands_made_to_be_misread_survive_pasting() {
    let for_bash = nasty_cases(Dialect::Bash);
    let mut for_sh = nasty_cases(Dialect::Posix);
    for_sh.retain(|case| for_bash.iter().all(|other| other.printed != case.printed));
    for (name, mut cases) in [("nasty-bash", for_bash), ("nasty-sh", for_sh)] {
        // Interactive shells expand aliases, and have other values of these.
        let has = |case: &Case, part: &[u8]| case.typed.windows(part.len()).any(|text| text == part);
        cases.retain(|case| ![&b"alias"[..], b"$-", b"$_", b"$!"].iter().any(|part| has(case, part)));
        check_pasting(name, cases);
    }
}

/// Pastes commands into an interactive bash, which expands `!`, completes at tabs, and reads line by line.
#[test]
fn commands_survive_pasting_into_an_interactive_shell() {
    check_pasting("bash", generated_cases(Dialect::Bash, 60, 77));
    check_pasting("sh", generated_cases(Dialect::Posix, 60, 78));
}

fn generated_cases(dialect: Dialect, count: usize, seed: u64) -> Vec<Case> {
    let mut generator = Generator::new(dialect, seed);
    let mut cases: Vec<Case> = Vec::new();
    while cases.len() < count {
        let mut generated = generator.command();
        // Every other command reads a file instead of the terminal.
        if cases.len().is_multiple_of(2) {
            generated.text = [b"{ ", &generated.text[..], b"\n} <in"].concat();
        }
        cases.extend(case(&generated, dialect));
    }
    cases
}

fn check_pasting(name: &str, cases: Vec<Case>) {
    let place = Place::new(&format!("paste-{name}"));
    let typed: Vec<&[u8]> = cases.iter().map(|case| &case.typed[..]).collect();
    let expected = run("bash", &place.0, &typed, "/dev/null");
    fs::create_dir_all(place.0.join("again/bin")).unwrap();
    (0..cases.len()).for_each(|number| make_directories(&place.0, number));
    let (rc, prelude) = (place.0.join("rc"), place.0.join("prelude"));
    fs::write(&rc, format!("HERE='{}'\nPS1= PS2= HISTFILE=\nexec 9>$HERE/fifo\n", place.0.display())).unwrap();
    fs::write(&prelude, PRELUDE).unwrap();
    let mut lines = String::new();
    // Evidence that this shell expands history: this line is discarded.
    lines.push_str("LOG=$HERE\n. $HERE/prelude\nshow raw a!nosuch\n");
    for (number, case) in cases.iter().enumerate() {
        // What the command before has defined is defined anew.
        writeln!(lines, "set +f; LOG=$HERE/{number}.log; cd $HERE/{number}.work\n. $HERE/prelude\n{}", case.printed)
            .unwrap();
    }
    lines.push_str("exit 0\n");
    // The shell doesn't wait for processes of <( ). They keep descriptor 9 open.
    let fifo = place.0.join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let (all_ended, end) = std::sync::mpsc::channel();
    std::thread::spawn(move || all_ended.send(fs::read(fifo)));
    paste(&rc, lines.into_bytes());
    assert!(end.recv_timeout(Duration::from_secs(10)).is_ok(), "a process didn't end");
    assert!(!place.0.join("raw").exists(), "history is expanded");
    for (number, (case, (typed, _))) in cases.iter().zip(&expected).enumerate() {
        let pasted = calls(&place.0.join(format!("{number}.log")));
        let Some(first) = difference(case, typed, &pasted) else { continue };
        let again = run("bash", &place.0.join("again"), &[&case.typed[..]; RUNS], "/dev/null");
        assert!(again.iter().any(|(typed, _)| difference(case, typed, &pasted).is_none()), "{first}");
    }
}

/// Types `text` into an interactive bash, and waits until it exits.
fn paste(rc: &Path, text: Vec<u8>) {
    let flags = rustix::pty::OpenptFlags::RDWR | rustix::pty::OpenptFlags::NOCTTY;
    let terminal = rustix::pty::openpt(flags).unwrap();
    rustix::pty::grantpt(&terminal).unwrap();
    rustix::pty::unlockpt(&terminal).unwrap();
    let name = rustix::pty::ptsname(&terminal, Vec::new()).unwrap();
    let end =
        fs::OpenOptions::new().read(true).write(true).open(Path::new(std::str::from_utf8(name.as_bytes()).unwrap()));
    let end = end.unwrap();
    let mut shell = Command::new("setsid")
        .args(["--ctty", "--wait", "bash", "--noprofile", "--rcfile"])
        .arg(rc)
        .arg("-i")
        .env("LC_ALL", "C.UTF-8")
        .env("TERM", "xterm")
        .stdin(end.try_clone().unwrap())
        .stdout(end.try_clone().unwrap())
        .stderr(end)
        .spawn()
        .unwrap();
    let mut terminal = fs::File::from(terminal);
    let mut output = terminal.try_clone().unwrap();
    // What the shell prints must be read, or it waits.
    std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
    let writer = std::thread::spawn(move || {
        for piece in text.chunks(512) {
            std::io::Write::write_all(&mut terminal, piece).unwrap();
        }
        terminal
    });
    let begin = Instant::now();
    while shell.try_wait().unwrap().is_none() {
        if begin.elapsed() > Duration::from_secs(60) {
            let _ = shell.kill();
            panic!("the shell didn't end");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(writer.join());
}
