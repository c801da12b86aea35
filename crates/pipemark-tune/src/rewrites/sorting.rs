//! Changes of stages that sort.

use super::site::{Rewrite, Site, one};
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

/// `sort | uniq -c`, sorted again later: awk counts without sorting.
pub(super) fn count_without_sort(site: &Site<'_>) -> Vec<Rewrite> {
    let counted = |sort: &TypedCommand, uniq: &TypedCommand| {
        let plain = sort.redirections.is_empty() && uniq.redirections.is_empty();
        plain
            && sorts_whole_lines(sort)
            && uniq.program() == "uniq"
            && has_only(uniq, "c")
            && !uniq.arguments().is_empty()
            && is_absorbed(site.following(2), Reordering::Any)
    };
    let awk = r#"awk '{ n[$0]++ } END { for (line in n) printf "%7d %s\n", n[line], line }'"#;
    one(site
        .literal(0)
        .zip(site.literal(1))
        .filter(|(sort, uniq)| counted(sort, uniq))
        .map(|_| site.rewrite("count-in-awk", 2, vec![awk.to_owned()], "awk counts the lines without sorting them")))
}

/// `sort -u` or `sort | uniq`, sorted or counted later: awk drops repeated lines without sorting.
pub(super) fn unique_without_sort(site: &Site<'_>) -> Vec<Rewrite> {
    let awk = || vec!["awk '!seen[$0]++'".to_owned()];
    let text = "awk drops repeated lines without sorting them";
    let Some(sort) = site.literal(0).filter(|sort| sort.program() == "sort") else { return Vec::new() };
    let is_unique = sort.redirections.is_empty()
        && !sort.arguments().is_empty()
        && has_only(sort, "ur")
        && sort.arguments().iter().any(|word| word.value.contains('u'));
    if is_unique && is_absorbed(site.following(1), Reordering::Any) {
        return vec![site.rewrite("unique-in-awk", 1, awk(), text)];
    }
    let uniq = site.literal(1).filter(|uniq| uniq.program() == "uniq" && uniq.arguments().is_empty());
    let found = uniq.is_some() && sorts_whole_lines(sort) && is_absorbed(site.following(2), Reordering::Any);
    one(found.then(|| site.rewrite("unique-in-awk", 2, awk(), text)))
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

/// `sort | grep`: the filter first, so that less is sorted.
pub(super) fn filter_before_sort(site: &Site<'_>) -> Vec<Rewrite> {
    let pair = site.literal(0).zip(site.literal(1));
    let found = pair.filter(|(sort, filter)| {
        is_plain_sort(sort) && matches!(filter.program(), "grep" | "egrep" | "fgrep") && is_filter(filter)
    });
    one(found.map(|(_, filter)| {
        let with = [1, 0].map(|ahead| site.pipeline.stages[site.at + ahead].text.trim().to_owned()).to_vec();
        site.rewrite("filter-before-sort", 2, with, format!("{} before sort, so that less is sorted", filter.program()))
    }))
}
