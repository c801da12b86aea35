//! Fewer processes.

use super::site::{Rewrite, Site};
use crate::typed::{TypedWord, base};

/// Programs whose output for several files is the same as for each file alone, if they have no options. `file` aligns
/// columns.
const PER_FILE: [&str; 13] = [
    "md5sum",
    "sha1sum",
    "sha224sum",
    "sha256sum",
    "sha384sum",
    "sha512sum",
    "b2sum",
    "cksum",
    "cat",
    "stat",
    "zcat",
    "readlink",
    "xxhsum",
];

/// `xargs -n 1`: many arguments for each process.
pub(super) fn batch_xargs(site: &Site<'_>) -> Vec<Rewrite> {
    let Some(xargs) = site.literal(0).filter(|command| command.program() == "xargs") else { return Vec::new() };
    let words = xargs.arguments();
    let value = |word: &TypedWord| word.value.clone();
    let limit = words.iter().position(|word| ["-n", "-L", "-n1", "-L1"].contains(&value(word).as_str()));
    let Some(limit) = limit else { return Vec::new() };
    let joined = words[limit].value.len() > 2;
    let few =
        joined || words.get(limit + 1).is_some_and(|word| word.value.parse::<u32>().is_ok_and(|count| count < 50));
    let started = words.iter().position(|word| PER_FILE.contains(&base(&word.value)));
    let Some(started) = started.filter(|&started| few && started > limit) else { return Vec::new() };
    if words[started + 1..].iter().any(|word| word.value.starts_with('-')) {
        return Vec::new();
    }
    let typed = site.pipeline.stages[site.at].text.trim();
    let old =
        if joined { words[limit].text.clone() } else { format!("{} {}", words[limit].text, words[limit + 1].text) };
    let with = typed.replacen(&format!("{old} "), "", 1);
    if with == typed {
        return Vec::new();
    }
    vec![site.rewrite("xargs-batch", 1, vec![with], "xargs passes many files to each process")]
}
