//! Code that all verbs share: exit codes ([`ExitError`], [`exit`]), output files ([`ExportOptions`], [`Destination`]),
//! messages and progress ([`say`], [`Progress`]), options for verdicts ([`verdict`]), and output for GitHub jobs
//! ([`github`]).
#![forbid(unsafe_code)]

mod destination;
mod ending;
pub mod github;
mod json_lines;
mod output;
pub mod progress;
mod values;
pub mod verdict;

pub use destination::{Destination, OutputError, create_file};
pub use ending::{ExitError, VerbResult, catch_interrupts, check_stdout, exit, finish, say, say_error};
pub use json_lines::JsonLines;
pub use output::{ExportOptions, Format, FormatOption, Targets, destination, terminal, terminal_of};
pub use progress::Progress;
pub use values::{WordChoice, count, one_of};
