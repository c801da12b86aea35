//! What verbs share: how they end ([`Stop`], [`exit`]), where their output goes ([`ExportOptions`], [`Destination`]),
//! what they say meanwhile ([`say`], [`Progress`]), how they are asked for verdicts ([`verdict`]), and
//! what a job on GitHub shows ([`github`]).
#![forbid(unsafe_code)]

mod destination;
mod ending;
pub mod github;
mod json_lines;
mod output;
mod progress;
mod values;
pub mod verdict;

pub use destination::{Destination, OutputError};
pub use ending::{Ending, Stop, catch_interrupts, check_stdout, end, exit, say, say_error};
pub use json_lines::JsonLines;
pub use output::{ExportOptions, Format, FormatOption, Targets, destination, terminal, terminal_of};
pub use progress::Progress;
pub use values::{WordChoice, count, one_of};
