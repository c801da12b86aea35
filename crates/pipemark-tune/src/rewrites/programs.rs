//! Fewer programs, and programs that end earlier.

use super::site::{Rewrite, Site, one};
use crate::order::is_filter;
use crate::purity::concern;

/// `sed -n 5p` and `awk 'NR==5'` read on after the line. What stands before them is then ended early, so it must not do
/// anything but write to the pipe.
pub(super) fn quit_early(site: &Site<'_>) -> Vec<Rewrite> {
    let only_writes = site.pipeline.stages[..site.at].iter().all(|stage| concern(stage).is_none());
    let Some(command) = site.literal(0).filter(|_| only_writes) else { return Vec::new() };
    let number = |text: &str| text.parse::<u64>().ok();
    let with = match (command.program(), command.arguments()) {
        ("sed", [option, script]) if option.value == "-n" => script
            .value
            .strip_suffix('p')
            .and_then(|range| number(range.rsplit(',').next()?))
            .filter(|_| script.value.trim_end_matches('p').chars().all(|c| c.is_ascii_digit() || c == ','))
            .map(|last| format!("sed -n '{};{last}q'", script.value)),
        ("awk" | "mawk" | "gawk", [script]) => {
            let line = script.value.replace(' ', "");
            let line = line.strip_prefix("NR==").and_then(number);
            line.map(|line| format!("{} 'NR == {line} {{ print; exit }}'", command.words[0].text))
        }
        _ => None,
    };
    let with = with.filter(|_| command.redirections.is_empty() && command.variables.is_empty());
    one(with
        .map(|with| site.rewrite("quit-early", 1, vec![with], format!("{} ends after the line", command.program()))))
}

/// `grep | wc -l`: grep counts itself.
pub(super) fn count_in_grep(site: &Site<'_>) -> Vec<Rewrite> {
    let pair = site.literal(0).zip(site.literal(1));
    let found = pair.filter(|(grep, wc)| {
        matches!(grep.program(), "grep" | "egrep" | "fgrep")
            && is_filter(grep)
            && wc.program() == "wc"
            && wc.arguments().iter().map(|word| word.value.as_str()).eq(["-l"])
            && wc.redirections.is_empty()
            && site.following(2).is_empty()
    });
    one(found.map(|(grep, _)| {
        let with = site.with_program(grep, &format!("{} -c", grep.words[0].text));
        let text = "grep -c counts the lines itself, and ends with exit code 1 if there are none";
        site.rewrite("count-in-grep", 2, vec![with], text)
    }))
}

/// `cat FILE | X`: X reads the file.
pub(super) fn file_instead_of_cat(site: &Site<'_>) -> Vec<Rewrite> {
    let Some(cat) = site.literal(0).filter(|command| command.program() == "cat" && site.at == 0) else {
        return Vec::new();
    };
    let [file] = cat.arguments() else { return Vec::new() };
    let reader = site.command(1).filter(|command| command.redirections.iter().all(|one| one.descriptor != 0));
    let plain = cat.redirections.is_empty() && cat.variables.is_empty() && !file.value.starts_with('-');
    one(reader.filter(|_| plain).map(|reader| {
        let with = format!("{} <{}", site.pipeline.stages[1].text.trim(), file.text);
        site.rewrite("file-instead-of-cat", 2, vec![with], format!("{} reads the file itself", reader.program()))
    }))
}

/// A pattern without special characters: grep -F.
pub(super) fn fixed_strings(site: &Site<'_>) -> Vec<Rewrite> {
    let Some(grep) =
        site.literal(0).filter(|command| ["grep", "egrep"].contains(&command.program()) && is_filter(command))
    else {
        return Vec::new();
    };
    let pattern = grep
        .arguments()
        .last()
        .filter(|word| word.value.chars().all(|c| c.is_ascii_alphanumeric() || " _-/,:=".contains(c)));
    let has =
        |letter: char| grep.arguments().iter().any(|word| word.value.starts_with('-') && word.value.contains(letter));
    let found = pattern.filter(|_| has('i') && !has('F') && !has('P') && !has('e'));
    one(found.map(|_| {
        let with = site.with_program(
            grep,
            &format!("{} -F", if grep.program() == "egrep" { "grep" } else { &grep.words[0].text }),
        );
        site.rewrite("fixed-strings", 1, vec![with], "grep -F looks for a fixed string")
    }))
}
