//! Remedies of the table that `why` uses (remedies.toml of pipemark-causes). Those that change the output in some cases
//! are tried only where the rules here show that they don't.

use pipemark_causes::typed_remedies::{CommandAsTyped, TypedRemedy, typed_remedies};

use super::site::{Locale, Rewrite, Site};
use crate::order::{Reordering, is_absorbed, is_plain_sort};
use crate::typed::TypedCommand;
use pipemark_causes::scripts::awk_is_plain;

/// The rows that fit a stage.
pub(super) fn remedies_of_table(site: &Site<'_>) -> Vec<Rewrite> {
    let text = site.pipeline.stages[site.at].text.trim();
    let command = CommandAsTyped {
        text,
        dialect: site.pipeline.dialect(),
        is_fed: site.at > 0,
        collates: site.setting.locale != Locale::Bytes,
        cpus: site.setting.cpus,
        memory_limited: site.setting.memory_limited,
        environment: &site.setting.environment,
    };
    let is_kept = |remedy: &TypedRemedy| {
        remedy.changes.is_none()
            || remedy.compare.is_some()
            || site.literal(0).is_some_and(|one| keeps(site, one, remedy))
    };
    let found = typed_remedies(&command).into_iter().filter(is_kept);
    found
        .map(|remedy| {
            let is_kept = site.literal(0).is_some_and(|one| keeps(site, one, &remedy));
            let compare = remedy.compare.filter(|_| !is_kept && site.following(1).is_empty());
            Rewrite {
                needs: remedy.programs,
                changes: remedy.changes.or_else(|| Some("the bytes differ".to_owned())).filter(|_| compare.is_some()),
                compare,
                ..site.rewrite(&remedy.id, 1, vec![remedy.command.clone()], remedy.command)
            }
        })
        .collect()
}

/// Whether a remedy that changes the output in some cases keeps it here.
fn keeps(site: &Site<'_>, command: &TypedCommand, remedy: &TypedRemedy) -> bool {
    match remedy.id.as_str() {
        // The output as a whole is the same.
        "stdbuf-left-out" => true,
        "xargs-p" | "xargs-p-batches" => is_absorbed(site.following(1), Reordering::Any),
        "awk-mawk" => is_for_mawk(site, command),
        id if id.ends_with("-lc-all-c") => treats_bytes_as_characters(site, command),
        _ => false,
    }
}

/// Whether a program of awk means the same to gawk and mawk.
fn is_for_mawk(site: &Site<'_>, command: &TypedCommand) -> bool {
    let is_gawk = command.program() == "gawk" || site.setting.awk_is_gawk;
    let program = command
        .arguments()
        .iter()
        .find(|word| !word.value.starts_with('-') && word.value.contains(['{', '/', '$', '!']));
    let mut options = command.arguments().iter().filter(|word| word.value.starts_with('-'));
    is_gawk
        && options.all(|word| word.value.starts_with("-F") || word.value == "-v")
        && program.is_some_and(|word| awk_is_plain(&word.value))
}

/// Whether a command writes the same with LC_ALL=C: its patterns have only ASCII characters and match no character of
/// several bytes, or its order is lost later.
fn treats_bytes_as_characters(site: &Site<'_>, command: &TypedCommand) -> bool {
    if command.variables.iter().any(|(name, _)| name.starts_with("LC_") || name == "LANG") {
        return false;
    }
    let is_ascii = command.words.iter().all(|word| word.value.is_ascii());
    let values: Vec<&str> = command.arguments().iter().map(|word| word.value.as_str()).collect();
    let any = |parts: &[&str]| values.iter().any(|value| parts.iter().any(|part| value.contains(part)));
    // Code points are in the order of their bytes, and a range of ASCII letters has no others.
    let by_bytes = site.setting.locale == Locale::CodePoints;
    let matches_characters =
        any(&[".", "[^", "[:", "\\w", "\\W", "\\b", "\\B", "\\s", "\\S"]) || !by_bytes && any(&["["]);
    let has_letter = |letters: &[char]| {
        values.iter().any(|value| value.starts_with('-') && !value.starts_with("--") && value.contains(letters))
    };
    match command.program() {
        "sort" => {
            let folds = values.iter().any(|value| {
                value.starts_with('-')
                    && !value.starts_with("--")
                    && value.contains(['f', 'd', 'i', 'M', 'h', 'g', 'n', 'V'])
            });
            (by_bytes || is_absorbed(site.following(1), Reordering::EqualLinesTogether))
                && is_plain_sort(command)
                && (!folds || by_bytes || !any(&["f", "d", "i"]))
        }
        "grep" | "egrep" | "fgrep" => {
            is_ascii
                && !matches_characters
                && !has_letter(&['i', 'y', 'P', 'w'])
                && !any(&["--ignore", "--word", "--perl"])
        }
        "awk" | "gawk" => {
            is_ascii
                && !matches_characters
                && !any(&["length", "substr", "index", "toupper", "tolower", "match", "%c", "FIELDWIDTHS"])
        }
        "sed" => is_ascii && !matches_characters && !any(&["y/", "\\u", "\\l", "\\U", "\\L", "I"]),
        "join" | "comm" | "uniq" => by_bytes,
        _ => false,
    }
}
