//! Experiments that make a pipeline faster: the verb `tune`. Start at [`verb`]: `typed` splits the pipeline, `purity`
//! decides whether it may run again, `engine` runs variants of it in a `lab` and makes a [`result`], and `sheet` shows
//! it. `rewrites` makes the variants that keep the output, and `guesses` those that may not, which run in a `sandbox`.
#![forbid(unsafe_code)]

mod engine;
mod guesses;
mod lab;
mod order;
mod parts;
mod purity;
mod recording;
pub mod result;
mod rewrites;
mod sandbox;
pub mod sheet;
mod typed;
pub mod verb;

pub use parts::PART_VERB;

/// Runs as a process between or instead of stages, or as the shell in a sandbox. Returns the exit code.
pub fn part(words: &[std::ffi::OsString]) -> u8 {
    match words.get(2) {
        Some(word) if word == sandbox::CONFINED => sandbox::main(&words[3..]),
        _ => parts::main(words),
    }
}
