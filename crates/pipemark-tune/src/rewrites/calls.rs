//! Fewer and larger calls, and fewer processes.

use super::site::{Rewrite, Site, one};
use crate::order::{Reordering, is_absorbed};
use crate::typed::{TypedWord, base};

/// Programs whose output for several files is the same as for each file alone.
const PER_FILE: [&str; 14] = [
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
    "file",
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
    if !few || started.is_none_or(|started| started <= limit) {
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

/// `xargs`, sorted or counted later: several processes at a time.
pub(super) fn parallel_xargs(site: &Site<'_>) -> Vec<Rewrite> {
    let found = site.literal(0).filter(|xargs| {
        let several =
            xargs.arguments().iter().any(|word| word.value.starts_with("-P") || word.value.starts_with("--max-procs"));
        xargs.program() == "xargs"
            && !several
            && site.setting.cpus > 1
            && is_absorbed(site.following(1), Reordering::Any)
    });
    one(found.map(|xargs| {
        let with = site.with_program(xargs, &format!("{} -P $(nproc)", xargs.words[0].text));
        site.rewrite("xargs-parallel", 1, vec![with], "xargs starts a process for each CPU")
    }))
}

/// `dd` with small blocks.
pub(super) fn larger_blocks(site: &Site<'_>) -> Vec<Rewrite> {
    let Some(dd) = site.literal(0).filter(|command| command.program() == "dd") else { return Vec::new() };
    const COUNTED: [&str; 8] = ["count=", "skip=", "seek=", "iseek=", "oseek=", "conv=", "cbs=", "iflag="];
    let is_free = dd.arguments().iter().all(|word| !COUNTED.iter().any(|begin| word.value.starts_with(begin)));
    let kept =
        dd.arguments().iter().filter(|word| !["bs=", "ibs=", "obs="].iter().any(|begin| word.value.starts_with(begin)));
    let kept: Vec<&str> = kept.map(|word| word.text.as_str()).collect();
    let redirected = !dd.redirections.is_empty();
    let with = [&["dd", "bs=64k"], kept.as_slice()].concat().join(" ");
    one((is_free && !redirected)
        .then(|| site.rewrite("dd-blocks", 1, vec![with], "dd reads and writes 64 KiB at a time")))
}

/// Options and wrappers that make a program write each line by itself.
pub(super) fn omit_unbuffering(site: &Site<'_>) -> Vec<Rewrite> {
    let Some(command) = site.literal(0) else { return Vec::new() };
    let option = |names: &[&str]| command.arguments().iter().find(|word| names.contains(&word.value.as_str()));
    let (word, text) = match command.program() {
        "grep" | "egrep" | "fgrep" => {
            (option(&["--line-buffered"]), "without --line-buffered, grep writes full buffers")
        }
        "sed" => (option(&["-u", "--unbuffered"]), "without -u, sed reads and writes full buffers"),
        "jq" => (option(&["--unbuffered"]), "without --unbuffered, jq writes full buffers"),
        "stdbuf" | "unbuffer" => {
            let plain = command.arguments().iter().position(|word| !word.value.starts_with('-'));
            let rest = plain.map(|at| &command.arguments()[at..]).filter(|_| command.program() == "stdbuf");
            let rest = rest.map(|words| words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" "));
            let rest = rest.filter(|_| command.redirections.is_empty() && command.variables.is_empty());
            return one(rest.map(|with| {
                site.rewrite("omit-stdbuf", 1, vec![with], "without stdbuf, the program reads and writes full buffers")
            }));
        }
        _ => (None, ""),
    };
    one(word.map(|word| site.rewrite("omit-unbuffering", 1, vec![site.without_word(word)], text)))
}
