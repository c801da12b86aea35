//! Guesses about threads: one, and as many as there are CPUs.

use super::change::{Guess, edited, guess, literal};
use super::options::typed_options;
use crate::typed::TypedPipeline;

/// The options by which programs get a number of threads or jobs.
const COUNTS: [&str; 12] =
    ["-j", "-J", "-T", "-P", "-p", "-t", "-@", "--threads", "--jobs", "--parallel", "--processes", "--max-procs"];

/// The option of programs that choose the number themselves.
const BY_PROGRAM: [(&str, &str); 9] = [
    ("sort", "--parallel="),
    ("xz", "-T"),
    ("unxz", "-T"),
    ("xzcat", "-T"),
    ("zstd", "-T"),
    ("pigz", "-p"),
    ("lbzip2", "-n"),
    ("pbzip2", "-p"),
    ("rg", "-j"),
];

/// Variables with the number of threads.
const VARIABLES: [&str; 6] = [
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "POLARS_MAX_THREADS",
    "GOMAXPROCS",
];

/// A stage with one thread, and with one for each CPU.
pub(super) fn counts(pipeline: &TypedPipeline, at: usize, cpus: usize) -> Vec<Guess> {
    let stage = &pipeline.stages[at];
    let Some(command) = literal(stage).filter(|_| cpus > 1) else { return Vec::new() };
    let name = command.program();
    let is_count = |value: &String| value.parse::<usize>().is_ok();
    let typed = typed_options(command)
        .into_iter()
        .find(|option| COUNTS.contains(&option.name.as_str()) && option.value.as_ref().is_some_and(is_count));
    let known = BY_PROGRAM.iter().find(|(program, _)| *program == name).map(|(_, option)| *option);
    let with = |count: usize| {
        let number = count.to_string();
        let text = match (&typed, known) {
            (Some(option), _) if option.value.as_ref() == Some(&number) => None,
            (Some(option), _) => edited(pipeline, stage, |edits, command| {
                let letters = option.rest.as_deref().unwrap_or("-");
                let word = match option.name.strip_prefix("--") {
                    Some(long) => format!("--{long}={number}"),
                    None => format!("{letters}{}{number}", &option.name[1..]),
                };
                edits.replace_words(command, option.words.clone(), &[word.as_str()])
            }),
            (None, Some(option)) => edited(pipeline, stage, |edits, command| {
                edits.insert_options(command, 0, &[format!("{option}{number}").as_str()])
            }),
            (None, None) => None,
        };
        let threads = if count == 1 { "one thread".to_owned() } else { format!("{count} threads") };
        Some(guess(pipeline, at, "threads", format!("{name} with {threads}"), text?))
    };
    [1, cpus].into_iter().filter_map(with).collect()
}

/// The pipeline with one thread for each program that reads a variable.
pub(super) fn variables(pipeline: &TypedPipeline, cpus: usize) -> Option<Guess> {
    let settings: Vec<String> = VARIABLES.iter().map(|name| format!("{name}=1")).collect();
    (cpus > 1).then(|| Guess {
        id: "thread-variables".to_owned(),
        changed: 0..pipeline.stages.len(),
        text: format!("one thread ({})", settings.join(" ")),
        before: format!("export {}\n", settings.join(" ")),
        pipeline: pipeline.clone(),
    })
}
