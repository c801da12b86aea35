//! Other programs and options that write the same.

use super::site::{Locale, Rewrite, Site, one};
use crate::order::{Reordering, is_absorbed, is_filter, is_plain_sort};
use crate::scripts::awk_is_plain;

/// Programs that decompress gzip faster.
pub(super) fn decompress_faster(site: &Site<'_>) -> Vec<Rewrite> {
    let Some(command) = site.command(0) else {
        return Vec::new();
    };
    let options: Vec<&str> =
        command.arguments().iter().map(|word| word.value.as_str()).filter(|word| word.starts_with('-')).collect();
    const TO_STDOUT: [&str; 5] = ["-dc", "-cd", "-d", "-c", "-f"];
    let is_plain = options.iter().all(|option| TO_STDOUT.contains(option));
    let decompresses = match command.program() {
        "zcat" | "gzcat" | "bzcat" | "xzcat" => is_plain,
        "gzip" | "bzip2" | "xz" => is_plain && options.iter().any(|option| option.contains('d')),
        "gunzip" | "bunzip2" | "unxz" => is_plain,
        _ => false,
    };
    if !decompresses {
        return Vec::new();
    }
    let operands: Vec<&str> =
        command.arguments().iter().filter(|word| !word.value.starts_with('-')).map(|word| word.text.as_str()).collect();
    let candidates: &[(&str, &str)] = match command.program() {
        "bzcat" | "bzip2" | "bunzip2" => &[("lbzip2", "lbzip2 -dc")],
        "xzcat" | "xz" | "unxz" => &[("xz", "xz -T0 -dc")],
        _ => &[("rapidgzip", "rapidgzip -d -c"), ("igzip", "igzip -dc"), ("pigz", "pigz -dc")],
    };
    let redirections: Vec<String> = command.redirections.iter().map(|one| one.text.clone()).collect();
    let make = |(program, words): &(&str, &str)| {
        let mut parts = vec![(*words).to_owned()];
        parts.extend(operands.iter().map(|word| (*word).to_owned()).chain(redirections.iter().cloned()));
        let text = format!("{program} decompresses the same format");
        Rewrite {
            needs: Some((*program).to_owned()),
            ..site.rewrite(&format!("decompress-{program}"), 1, vec![parts.join(" ")], text)
        }
    };
    if command.variables.is_empty() { candidates.iter().map(make).collect() } else { Vec::new() }
}

/// `sed -n 5p` and `awk 'NR==5'` read on after the line.
pub(super) fn quit_early(site: &Site<'_>) -> Vec<Rewrite> {
    let Some(command) = site.literal(0) else { return Vec::new() };
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

/// LC_ALL=C where bytes and characters give the same result.
pub(super) fn bytes_instead_of_characters(site: &Site<'_>) -> Vec<Rewrite> {
    let Some(command) = site.literal(0).filter(|_| site.setting.locale != Locale::Bytes) else { return Vec::new() };
    let has_locale = command.variables.iter().any(|(name, _)| name.starts_with("LC_") || name == "LANG");
    let is_ascii = command.words.iter().all(|word| word.value.is_ascii());
    let values: Vec<&str> = command.arguments().iter().map(|word| word.value.as_str()).collect();
    let any = |parts: &[&str]| values.iter().any(|value| parts.iter().any(|part| value.contains(part)));
    // Whether a character of several bytes could be matched or counted as one.
    let matches_characters = any(&[".", "[^", "[:", "\\w", "\\W", "\\b", "\\B", "\\s", "\\S"]);
    let useful = match command.program() {
        // Code points are in the order of their bytes.
        "sort" => {
            let by_bytes = site.setting.locale == Locale::CodePoints;
            let folds = values.iter().any(|value| {
                value.starts_with('-')
                    && !value.starts_with("--")
                    && value.contains(['f', 'd', 'i', 'M', 'h', 'g', 'n', 'V'])
            });
            (by_bytes || is_absorbed(site.following(1), Reordering::EqualLinesTogether))
                && is_plain_sort(command)
                && (!folds || by_bytes || !any(&["f", "d", "i"]))
        }
        "grep" | "egrep" | "fgrep" => is_ascii && !matches_characters && !any(&["-i", "-P", "-w"]),
        "awk" | "gawk" => {
            is_ascii
                && !matches_characters
                && !any(&["length", "substr", "index", "toupper", "tolower", "match", "%c", "FIELDWIDTHS"])
        }
        "sed" => is_ascii && !matches_characters && !any(&["y/", "\\u", "\\l", "\\U", "\\L"]),
        "join" | "comm" => site.setting.locale == Locale::CodePoints,
        _ => false,
    };
    let with = format!("LC_ALL=C {}", site.pipeline.stages[site.at].text.trim());
    one((useful && !has_locale).then(|| {
        let text = format!("{} treats text as bytes", command.program());
        site.rewrite("bytes", 1, vec![with], text)
    }))
}

/// mawk instead of GNU awk, for programs on which both agree.
pub(super) fn mawk(site: &Site<'_>) -> Vec<Rewrite> {
    let found = site.literal(0).filter(|command| {
        let is_gawk = command.program() == "gawk" || command.program() == "awk" && site.setting.awk_is_gawk;
        let program = command
            .arguments()
            .iter()
            .find(|word| !word.value.starts_with('-') && word.value.contains(['{', '/', '$', '!']));
        let options = command.arguments().iter().filter(|word| word.value.starts_with('-'));
        is_gawk
            && options.clone().all(|word| word.value.starts_with("-F") || word.value == "-v")
            && program.is_some_and(|word| awk_is_plain(&word.value))
    });
    one(found.map(|command| Rewrite {
        needs: Some("mawk".to_owned()),
        ..site.rewrite("mawk", 1, vec![site.with_program(command, "mawk")], "mawk runs this program faster")
    }))
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
        site.rewrite("count-in-grep", 2, vec![with], "grep -c counts the lines itself")
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
