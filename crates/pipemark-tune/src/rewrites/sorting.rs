//! Changes of stages that sort.

use super::site::{Locale, Rewrite, Site, one};
use crate::order::{Reordering, has_only, is_absorbed, is_filter, is_plain_sort};
use crate::typed::TypedCommand;

/// Whether a sort has no options that choose keys or another order, so that equal lines are identical.
fn sorts_whole_lines(command: &TypedCommand) -> bool {
    let mut words = command.arguments().iter();
    while let Some(word) = words.next() {
        let value = word.value.as_str();
        match value {
            "-S" | "-T" => _ = words.next(),
            "-r" => {}
            _ if value.starts_with("-S") || value.starts_with("-T") => {}
            _ if value.starts_with("--parallel=") || value.starts_with("--buffer-size=") => {}
            _ => return false,
        }
    }
    is_plain_sort(command)
}

/// `sort | uniq -c`: awk counts, and only the counted lines are sorted, or none if the order is lost later.
pub(super) fn count_without_sort(site: &Site<'_>) -> Vec<Rewrite> {
    let is_counted = |(sort, uniq): &(&TypedCommand, &TypedCommand)| {
        let plain = sort.redirections.is_empty() && uniq.redirections.is_empty();
        plain
            && sorts_whole_lines(sort)
            && uniq.program() == "uniq"
            && has_only(uniq, "c")
            && !uniq.arguments().is_empty()
    };
    let Some((sort, _)) = site.literal(0).zip(site.literal(1)).filter(is_counted) else { return Vec::new() };
    let awk = r#"awk '{ n[$0]++ } END { for (line in n) printf "%7d %s\n", n[line], line }'"#.to_owned();
    if is_absorbed(site.following(2), Reordering::Any) {
        return vec![site.rewrite("count-in-awk", 2, vec![awk], "awk counts the lines without sorting them")];
    }
    one(sorts_by_bytes(site, sort).then(|| {
        // Behind the count, which has no blank in it, each line begins with one.
        let sort = site.with_program(sort, &format!("{} -k2", sort.words[0].text));
        site.rewrite("count-before-sort", 2, vec![awk, sort], "awk counts the lines before they are sorted")
    }))
}

/// `sort -u` or `sort | uniq`: awk drops repeated lines, and only the others are sorted, or none if the order is lost
/// later.
pub(super) fn unique_without_sort(site: &Site<'_>) -> Vec<Rewrite> {
    let awk = || "awk '!seen[$0]++'".to_owned();
    let Some(sort) = site.literal(0).filter(|sort| sort.program() == "sort" && sort.redirections.is_empty()) else {
        return Vec::new();
    };
    let is_unique = has_only(sort, "ur") && sort.arguments().iter().any(|word| word.value.contains('u'));
    let uniq = site.literal(1).filter(|uniq| uniq.program() == "uniq" && uniq.arguments().is_empty());
    let stages = match uniq {
        _ if is_unique => 1,
        Some(uniq) if uniq.redirections.is_empty() && sorts_whole_lines(sort) => 2,
        _ => return Vec::new(),
    };
    if is_absorbed(site.following(stages), Reordering::Any) {
        let text = "awk drops repeated lines without sorting them";
        return vec![site.rewrite("unique-in-awk", stages, vec![awk()], text)];
    }
    one(sorts_by_bytes(site, sort).then(|| {
        let sort = site.pipeline.stages[site.at].text.trim().to_owned();
        let text = "awk drops repeated lines before they are sorted";
        site.rewrite("unique-before-sort", stages, vec![awk(), sort], text)
    }))
}

/// Whether a sort orders lines by their bytes, so that lines that compare equal are identical.
fn sorts_by_bytes(site: &Site<'_>, sort: &TypedCommand) -> bool {
    let own = sort.variables.iter().find(|(name, _)| name == "LC_ALL").map(|(_, value)| value.clone());
    let has_other =
        sort.variables.iter().any(|(name, _)| name.starts_with("LC_") && name != "LC_ALL" || name == "LANG");
    let locale = own.map_or(site.setting.locale, |value| Locale::of([Some(value)]));
    locale != Locale::Language && !has_other
}

/// `sort | uniq`: sort drops repeated lines itself.
pub(super) fn unique_in_sort(site: &Site<'_>) -> Vec<Rewrite> {
    let pair = site.literal(0).zip(site.literal(1));
    let found = pair.filter(|(sort, uniq)| {
        sorts_whole_lines(sort)
            && uniq.program() == "uniq"
            && uniq.arguments().is_empty()
            && uniq.redirections.is_empty()
    });
    one(found.map(|(sort, _)| {
        let sort = site.with_program(sort, &format!("{} -u", sort.words[0].text));
        site.rewrite("unique-in-sort", 2, vec![sort], "sort -u drops repeated lines itself")
    }))
}

/// `sort | grep`: the filter first, so that less is sorted. Not as the last stage, whose exit code says whether a line was
/// found.
pub(super) fn filter_before_sort(site: &Site<'_>) -> Vec<Rewrite> {
    let pair = site.literal(0).zip(site.literal(1));
    let found = pair.filter(|(sort, filter)| {
        is_plain_sort(sort)
            && matches!(filter.program(), "grep" | "egrep" | "fgrep")
            && is_filter(filter)
            && !site.following(2).is_empty()
    });
    one(found.map(|(_, filter)| {
        let with = [1, 0].map(|ahead| site.pipeline.stages[site.at + ahead].text.trim().to_owned()).to_vec();
        site.rewrite("filter-before-sort", 2, with, format!("{} before sort, so that less is sorted", filter.program()))
    }))
}
