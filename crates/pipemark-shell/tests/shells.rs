//! The grammar against the shells: generated commands with all constructs, nested, are run as they are and as printed
//! with an edit. Each stage must get the same words but for the edit, and the output must be the same.

mod generator;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use generator::{Generated, Generator};
use pipemark_shell::{Dialect, Edits, Script, program_after_wrappers};

/// What each shell runs: `show` writes its words to a log, and passes on its input and its words. It leaves out the
/// option that edits insert, so that the output stays the same. No other program can be started.
const PRELUDE: &str = r#"
PATH=$HERE/bin; TIMEFORMAT=t; unset IFS; V=; W='w  w'; set -- p1 'p  2'
show() {
    s_line=
    for s_word; do s_line="$s_line<$s_word>"; done
    printf '%s\n' "$s_line" >>"$LOG"
    [ "$1" = -E ] && shift
    [ "$1" = -A=1 ] && shift
    [ -t 0 ] || while IFS= read -r s_in; do printf '%s\n' "$s_in"; done
    for s_word; do printf '[%s]' "$s_word"; done
    echo
}
"#;

/// A directory that is removed at the end.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let path = std::env::temp_dir().join(format!("pipemark-shell-{name}-{}", std::process::id()));
        fs::create_dir_all(path.join("bin")).unwrap();
        fs::create_dir_all(path.join("work")).unwrap();
        // Commands may expand patterns, so the files that others write exist from the beginning.
        for name in ["junk", "junk2", "junk3", "log2"] {
            fs::write(path.join("work").join(name), "").unwrap();
        }
        fs::write(path.join("work/in"), "one\ntwo  words\n").unwrap();
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
}

/// Makes a case of a generated text; `None` if it is refused.
fn case(generated: &Generated, dialect: Dialect) -> Option<Case> {
    let script = Script::parse(&generated.text[..], dialect).ok()?;
    let commands = script.commands();
    let shows = commands.iter().filter(|command| {
        let at = program_after_wrappers(&command.words).filter(|(at, _)| command.words[*at].as_str() == Some("show"));
        !command.in_backquotes
            && at.is_some_and(|(at, _)| command.words.get(at + 1).is_some_and(|id| id.as_str().is_some()))
    });
    let shows: Vec<_> = shows.collect();
    let chosen = shows.get(generated.choice % shows.len().max(1))?;
    let (program, _) = program_after_wrappers(&chosen.words)?;
    let id = chosen.words[program + 1].as_str()?.to_owned();
    let mut edits = Edits::new(&script);
    edits.insert_options(chosen, program, &["-E"]).ok()?;
    if generated.choice.is_multiple_of(2) {
        edits.insert_options(chosen, program, &["-A=1"]).ok()?;
    }
    let printed = edits.apply().ok()?.to_paste().ok()?;
    Some(Case { typed: generated.text.clone(), printed, id })
}

fn reason(generated: &Generated, dialect: Dialect) -> String {
    match Script::parse(&generated.text[..], dialect) {
        Err(error) => format!("parse: {error}"),
        Ok(script) => format!("paste: {:?}", script.to_paste().err()),
    }
}

/// Runs texts in a shell, each in a subshell, and returns their logs and outputs.
fn run(shell: &str, place: &Path, texts: &[Vec<u8>]) -> Vec<(Vec<String>, Vec<u8>)> {
    // Processes that end after the shell, as those of <( ), keep descriptor 9 open.
    let mut script = format!("exec 9>&1\nHERE='{}'\ncd \"$HERE/work\"\n{PRELUDE}", place.display());
    for (number, text) in texts.iter().enumerate() {
        fs::write(place.join(format!("{number}.text")), text).unwrap();
        let _ = fs::remove_file(place.join(format!("{number}.log")));
        // A syntax error ends the subshell only.
        writeln!(script, "LOG=$HERE/{number}.log; ( . $HERE/{number}.text ) <in >$HERE/{number}.out 2>/dev/null")
            .unwrap();
    }
    let main = place.join("main");
    fs::write(&main, script).unwrap();
    let ended = Command::new(shell).arg(&main).env("LC_ALL", "C.UTF-8").stdin(Stdio::null()).output().unwrap();
    assert!(ended.status.code().is_some(), "{}", ended.status);
    let result = |number: usize| {
        let log = fs::read(place.join(format!("{number}.log"))).unwrap_or_default();
        let mut lines: Vec<String> = log.split(|&byte| byte == b'\n').map(pipemark_shell::readable).collect();
        lines.sort();
        (lines, fs::read(place.join(format!("{number}.out"))).unwrap_or_default())
    };
    (0..texts.len()).map(result).collect()
}

/// Runs `count` commands of a dialect, and checks them.
fn check(shell: &str, dialect: Dialect, count: usize, seed: u64) {
    const BATCH: usize = 250;
    let place = Place::new(&format!("{shell}-{seed}"));
    let mut generator = Generator::new(dialect, seed);
    let (mut accepted, mut refused, mut logged, mut unsteady) = (0, 0, 0, 0);
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
        let typed: Vec<Vec<u8>> = cases.iter().map(|case| case.typed.clone()).collect();
        let printed: Vec<Vec<u8>> = cases.iter().map(|case| case.printed.clone().into_bytes()).collect();
        // Commands that read one pipe at the same time may share its bytes differently in each run.
        let again = [run(shell, &place.0, &typed), run(shell, &place.0, &typed)];
        let typed = run(shell, &place.0, &typed);
        let printed = run(shell, &place.0, &printed);
        for (number, (case, (before, after))) in cases.iter().zip(typed.iter().zip(&printed)).enumerate() {
            let is_steady = again.iter().all(|other| other[number] == *before);
            unsteady += usize::from(!is_steady);
            let text = pipemark_shell::readable(&case.typed);
            let own = format!("<{}>", case.id);
            let unedited: Vec<String> = after.0.iter().map(|line| unedited(line)).collect();
            let mut unedited = unedited;
            unedited.sort();
            assert_eq!(before.0, unedited, "{shell}: the words of\n{text}\n{}", case.printed);
            assert_eq!(
                before.0.iter().filter(|line| line.starts_with(&own)).count(),
                after.0.iter().filter(|line| line.starts_with("<-E>") && line.contains(&own)).count(),
                "{shell}: the edit of\n{text}\n{}",
                case.printed
            );
            assert_eq!(
                after.0.iter().filter(|line| line.starts_with("<-E>") || line.starts_with("<-A=1>")).count(),
                after.0.iter().filter(|line| line.contains(&own)).count(),
                "{shell}: nothing else is edited in\n{text}\n{}",
                case.printed
            );
            assert!(!is_steady || before.1 == after.1, "{shell}: the output of\n{text}\n{}", case.printed);
            logged += usize::from(before.0.len() > 1);
        }
    }
    assert!(logged * 10 > count * 8, "{logged} of {count} commands ran");
    assert!(unsteady * 20 < count, "{unsteady} of {count} commands differ from run to run");
    eprintln!("{shell}: {accepted} commands, {logged} ran, {unsteady} differ from run to run, {refused} refused");
}

/// A line of the log without what edits insert.
fn unedited(line: &str) -> String {
    line.replacen("<-E>", "", 1).replacen("<-A=1>", "", 1)
}

#[test]
#[ignore = "unfinished: the last comparison counts edits wrongly"]
fn printed_commands_give_the_same_words_and_output() {
    check("dash", Dialect::Posix, 700, 1);
    check("bash", Dialect::Bash, 1000, 2);
    // What is printed for sh means the same in bash.
    check("bash", Dialect::Posix, 300, 3);
}

#[test]
#[ignore = "soak"]
fn soak_printed_commands_give_the_same_words_and_output() {
    for seed in 10..20 {
        check("dash", Dialect::Posix, 4000, seed);
        check("bash", Dialect::Bash, 6000, 100 + seed);
    }
}

/// Pastes commands into an interactive bash, which expands `!`, completes at tabs, and reads line by line.
#[test]
#[ignore = "unfinished: a command that reads the terminal differs"]
fn commands_survive_pasting_into_an_interactive_shell() {
    let place = Place::new("paste");
    let mut generator = Generator::new(Dialect::Bash, 77);
    let mut cases: Vec<Case> = Vec::new();
    while cases.len() < 100 {
        let generated = generator.command();
        // A loop that reads the terminal would read the commands that follow.
        let reads = generated.text.windows(10).any(|text| text == b"while read");
        cases.extend(case(&generated, Dialect::Bash).filter(|_| !reads));
    }
    let typed: Vec<Vec<u8>> = cases.iter().map(|case| case.typed.clone()).collect();
    let expected = run("bash", &place.0, &typed);
    for number in 0..cases.len() {
        let _ = fs::remove_file(place.0.join(format!("{number}.log")));
    }
    let rc = place.0.join("rc");
    fs::write(&rc, format!("HERE='{}'\ncd \"$HERE/work\"\n{PRELUDE}\nPS1= PS2= HISTFILE=\n", place.0.display()))
        .unwrap();
    let mut lines = String::new();
    // Evidence that this shell expands history: this line is discarded.
    lines.push_str("LOG=$HERE/raw.log\nshow raw a!nosuch\n");
    for (number, case) in cases.iter().enumerate() {
        writeln!(lines, "LOG=$HERE/{number}.log\n{}", case.printed).unwrap();
    }
    lines.push_str("exit 0\n");
    paste(&rc, lines.into_bytes());
    assert!(!place.0.join("raw.log").exists(), "history is expanded");
    for (number, (case, (words, _))) in cases.iter().zip(&expected).enumerate() {
        let log = fs::read(place.0.join(format!("{number}.log"))).unwrap_or_default();
        let mut lines: Vec<String> =
            log.split(|&byte| byte == b'\n').map(|line| unedited(&pipemark_shell::readable(line))).collect();
        lines.sort();
        assert_eq!(*words, lines, "pasted:\n{}", case.printed);
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
    let begin = std::time::Instant::now();
    while shell.try_wait().unwrap().is_none() {
        if begin.elapsed() > std::time::Duration::from_secs(60) {
            let _ = shell.kill();
            panic!("the shell didn't end");
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    drop(writer.join());
}
