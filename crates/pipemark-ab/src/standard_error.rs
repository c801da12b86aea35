//! The text that commands write to standard error. Each text is printed once, however many runs write it.

use std::borrow::Cow;
use std::io::{Write, stderr};

use sha2::{Digest, Sha256};

use pipemark_console::{Progress, say};
use pipemark_model::{counted, neutral};

use crate::commands::{CommandEntry, stages};
use crate::drain::MAX_SHOWN;
use crate::shell::Shell;

/// The maximum number of texts printed per command. Some commands write a different text in each run.
const MAX_TEXTS: usize = 10;

/// The texts of all commands.
#[derive(Debug, Default)]
pub struct Messages {
    commands: Vec<CommandMessages>,
}

#[derive(Debug, Default, Clone)]
struct CommandMessages {
    printed: Vec<Message>,
    /// The number of runs with a text that wasn't printed.
    others: u32,
}

/// A text that was printed.
#[derive(Debug, Clone)]
struct Message {
    hash: [u8; 32],
    first_line: String,
    runs: u32,
}

impl CommandMessages {
    /// Counts the text of a run; returns whether to print it.
    fn add(&mut self, text: &[u8]) -> bool {
        let hash = Sha256::digest(text).into();
        if let Some(known) = self.printed.iter_mut().find(|message| message.hash == hash) {
            known.runs += 1;
            return false;
        }
        if self.printed.len() == MAX_TEXTS {
            self.others += 1;
            return false;
        }
        let first_line = String::from_utf8_lossy(text).lines().next().unwrap_or_default().to_owned();
        self.printed.push(Message { hash, first_line, runs: 1 });
        true
    }

    /// Sentences about the runs whose text wasn't printed.
    fn repetitions(&self) -> Vec<String> {
        let again = self.printed.iter().filter(|message| message.runs > 1);
        let mut sentences: Vec<String> = again
            .map(|Message { first_line, runs, .. }| {
                let times = if *runs == 2 { "once".to_owned() } else { format!("{} times", runs - 1) };
                format!("repeated {times} on standard error: {}", neutral(first_line))
            })
            .collect();
        if self.others > 0 {
            sentences.push(format!(
                "{} wrote other text to standard error, not shown",
                counted(self.others as usize, "run")
            ));
        }
        sentences
    }
}

impl Messages {
    /// A collection without texts, for this number of commands.
    pub fn new(commands: usize) -> Messages {
        Messages { commands: vec![CommandMessages::default(); commands] }
    }

    /// Prints the text of a run of the command, unless an earlier run wrote the same text.
    pub fn add(&mut self, at: usize, text: &[u8], progress: &mut Progress) {
        if !text.is_empty() && self.commands[at].add(text) {
            progress.clear();
            // The user's program may write anything to the user's terminal. If standard error is closed, there is
            // nothing to do.
            let mut out = stderr().lock();
            let _ = out.write_all(&shortened(text));
            if !text.ends_with(b"\n") {
                let _ = out.write_all(b"\n");
            }
        }
    }

    /// Prints how often each text was repeated, and a note if the shell may have hidden a failure.
    pub fn finish(&self, entries: &[CommandEntry], shell: Shell) {
        for (messages, entry) in self.commands.iter().zip(entries) {
            for sentence in messages.repetitions() {
                say(format_args!("{}: {sentence}", entry.label));
            }
            if !messages.printed.is_empty() && hides_failures(entry, shell) {
                say(format_args!(
                    "{}: the shell reports only a failure of the pipeline's last command; use --capacity default to detect a failure of any command",
                    entry.label
                ));
            }
        }
    }
}

/// The text, without the middle of a text of more than twice [`MAX_SHOWN`] bytes. Figures are read from much longer
/// texts than anyone reads.
fn shortened(text: &[u8]) -> Cow<'_, [u8]> {
    let omitted = text.len().saturating_sub(2 * MAX_SHOWN);
    if omitted == 0 {
        return text.into();
    }
    let (beginning, rest) = text.split_at(MAX_SHOWN);
    let note = format!("\n[{omitted} bytes omitted]\n");
    [beginning, note.as_bytes(), &rest[omitted..]].concat().into()
}

/// Whether the shell runs a pipeline that could be split, and no option in it (such as pipefail) reports the failure of
/// each stage.
fn hides_failures(entry: &CommandEntry, shell: Shell) -> bool {
    let is_pipeline = stages(&entry.text, shell).is_ok_and(|stages| stages.len() > 1);
    shell != Shell::None && entry.command.stages.len() == 1 && is_pipeline
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_is_printed_once_and_not_more_than_ten() {
        let mut messages = CommandMessages::default();
        assert_eq!([messages.add(b"a\nb"), messages.add(b"a\nb"), messages.add(b"a\nb")], [true, false, false]);
        let printed = (0..20).filter(|text: &i32| messages.add(text.to_string().as_bytes())).count();
        assert_eq!(printed, MAX_TEXTS - 1);
        let expected =
            ["repeated 2 times on standard error: a", "11 runs wrote other text to standard error, not shown"];
        assert_eq!(messages.repetitions(), expected);
    }
}
