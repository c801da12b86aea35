//! Finds the text of a pipeline as it was typed.

use pipemark_causes::exact_text::ExactText;
use pipemark_causes::programs;
use pipemark_proc::process::Process;

use crate::subject::Subject;

/// Shells whose -c argument is a pipeline as typed.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "zsh", "ksh", "busybox"];

/// A pipeline as typed, and the shell that runs it.
pub struct TypedText {
    /// What the shell is called.
    pub shell: String,
    /// Its argument.
    pub text: ExactText,
    /// Whether another process than one of this call has it. Its text may be anybody's.
    pub elsewhere: bool,
}

/// The pipeline as typed: the argument of the shell that runs it; `None` if no shell runs it.
pub fn typed_text(subject: &Subject) -> Option<TypedText> {
    const STEPS: usize = 4;
    let (mut pid, steps) = match subject {
        Subject::Child(root) => (*root, 1),
        Subject::Processes(pids) => (*pids.first()?, STEPS),
    };
    let elsewhere = matches!(subject, Subject::Processes(_));
    for _ in 0..steps {
        let process = Process::read(pid)?;
        let words = process.arguments();
        if let [shell, flag, text, ..] = &words[..]
            && let Ok(shell) = std::str::from_utf8(shell)
            && SHELLS.contains(&programs::base(shell))
            && flag.starts_with(b"-")
            && flag.ends_with(b"c")
        {
            return Some(TypedText { shell: shell.to_owned(), text: ExactText(text.clone()), elsewhere });
        }
        pid = process.parent;
    }
    None
}
