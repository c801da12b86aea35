//! Programs that run the program named in their arguments, such as `timeout` and `env`.

use crate::syntax::Word;

/// How a wrapper's arguments are read.
struct Form {
    name: &'static str,
    /// The letters of options with an argument.
    with_argument: &'static str,
    /// The letters of options without one.
    alone: &'static str,
    /// Arguments before the program, such as `timeout`'s duration.
    arguments: usize,
    /// Whether assignments may stand before the program.
    assigns: bool,
}

const fn form(name: &'static str, with_argument: &'static str, alone: &'static str, arguments: usize) -> Form {
    Form { name, with_argument, alone, arguments, assigns: false }
}

const FORMS: [Form; 19] = [
    form("nice", "n", "", 0),
    form("ionice", "cn", "t", 0),
    form("nohup", "", "", 0),
    form("setsid", "", "cfw", 0),
    form("stdbuf", "ioe", "", 0),
    form("unbuffer", "", "p", 0),
    form("timeout", "ks", "fpv", 1),
    form("time", "fo", "apv", 0),
    Form { assigns: true, ..form("env", "uC", "i0v", 0) },
    Form { assigns: true, ..form("sudo", "ugpChrtUTDR", "AbEHnPSk", 0) },
    form("doas", "uC", "n", 0),
    form("chrt", "TPD", "abfior", 1),
    form("taskset", "", "ac", 1),
    form("command", "", "p", 0),
    form("exec", "a", "cl", 0),
    form("busybox", "", "", 0),
    form("cpulimit", "l", "imq", 0),
    form("flock", "wE", "sexunFo", 1),
    form("strace", "aeoOpsuEIPSX", "cCdfhiknqrtTvVwxyYzZ", 0),
];

/// A wrapper in a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrapper {
    pub name: String,
    /// The index of its word, and of the first word after its own arguments.
    pub words: std::ops::Range<usize>,
}

/// A path's last part.
pub(crate) fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The index of the program that a command runs in the end, and the wrappers before it. `None` if the program isn't
/// known before the command is run.
pub fn program_after_wrappers(words: &[Word]) -> Option<(usize, Vec<Wrapper>)> {
    let (mut at, mut wrappers) = (0, Vec::new());
    loop {
        let name = base(words.get(at)?.as_str()?);
        let Some(form) = FORMS.iter().find(|form| form.name == name) else { return Some((at, wrappers)) };
        match after(form, words, at + 1) {
            Some(next) => {
                wrappers.push(Wrapper { name: name.to_owned(), words: at..next });
                at = next;
            }
            // Without a program, the wrapper itself is the program, as in `env` or `nice`.
            None if words[at..].iter().all(|word| word.value.is_some()) => return Some((at, wrappers)),
            None => return None,
        }
    }
}

/// The index of the program after a wrapper's options and arguments, which begin at `at`.
fn after(form: &Form, words: &[Word], mut at: usize) -> Option<usize> {
    loop {
        let word = words.get(at)?.as_str()?;
        if word == "--" {
            at += 1;
            break;
        }
        if let Some(long) = word.strip_prefix("--") {
            // The argument of a long option is known to belong to it only after =.
            if !long.contains('=')
                && !["foreground", "preserve-status", "verbose", "wait", "fork", "ignore-environment"].contains(&long)
            {
                return None;
            }
            at += 1;
            continue;
        }
        let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) else { break };
        // nice -10
        if form.name == "nice" && letters.bytes().all(|byte| byte.is_ascii_digit()) {
            at += 1;
            continue;
        }
        let known = |letter: char| form.alone.contains(letter) || form.with_argument.contains(letter);
        let taking = letters.find(|letter| form.with_argument.contains(letter));
        if !letters[..taking.map_or(letters.len(), |at| at + 1)].chars().all(known) {
            return None;
        }
        at += match taking {
            Some(last) if last + 1 == letters.len() => {
                words.get(at + 1)?.as_str()?;
                2
            }
            _ => 1,
        };
    }
    if form.assigns {
        while words.get(at)?.as_str()?.contains('=') {
            at += 1;
        }
    }
    let next = at + form.arguments;
    words.get(at..next)?.iter().all(|word| word.value.is_some()).then_some(())?;
    words.get(next)?.as_str()?;
    Some(next)
}
