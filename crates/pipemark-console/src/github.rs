//! Output for GitHub jobs. Writes the tables to the summary of the step, and annotates the job with the reason for a
//! failure. Outside GitHub, nothing is written.

use std::env::var_os;
use std::fs::File;
use std::io::{self, Write};

use pipemark_model::neutral;
use pipemark_show::{Sheet, markdown};

use crate::ending::{say, say_error};

/// Appends the sheet to the step's summary (GITHUB_STEP_SUMMARY). If `failed` names a verdict, also annotates the job
/// (GITHUB_ACTIONS). A summary that can't be written is reported, but changes no exit code.
pub fn report(verb: &str, sheet: &Sheet, failed: Option<&str>) {
    if let Some(path) = var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty()) {
        let text = markdown(sheet);
        let append = || -> io::Result<()> {
            File::options().append(true).create(true).open(&path)?.write_all(format!("{text}\n").as_bytes())
        };
        if let Err(error) = append() {
            say_error(format_args!("cannot write the step summary {}: {error}", path.display()));
        }
    }
    if let (Some(word), Some("true")) = (failed, var_os("GITHUB_ACTIONS").as_deref().and_then(|set| set.to_str())) {
        say(annotation(verb, word, sheet));
    }
}

/// A workflow command. GitHub accepts it on standard output and standard error.
fn annotation(verb: &str, word: &str, sheet: &Sheet) -> String {
    let last = sheet.blocks.iter().rev().find_map(|block| match block {
        pipemark_show::Block::Notes(notes) => notes.last().map(|note| note.text.clone()),
        _ => None,
    });
    let escaped = |text: &str| neutral(text).replace('%', "%25");
    format!("::error title=pipemark {verb}: {}::{}", escaped(word), escaped(&last.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use pipemark_show::Note;

    use super::*;

    #[test]
    fn an_annotation_is_one_line_of_its_own_form() {
        let mut sheet = Sheet::default();
        sheet.notes([Note::plain("first"), Note::plain("B is 12 % slower\n::warning::x")]);
        assert_eq!(
            annotation("ab", "worse", &sheet),
            "::error title=pipemark ab: worse::B is 12 %25 slower ::warning::x"
        );
    }
}
