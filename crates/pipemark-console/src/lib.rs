//! What verbs share: how they end ([`Stop`], [`exit`]), where their output goes ([`ExportOptions`], [`Destination`]),
//! what they say meanwhile ([`say`], [`Progress`]), and how they are asked for verdicts ([`verdict`]).
#![forbid(unsafe_code)]

mod destination;
mod ending;
mod output;
mod progress;
mod values;
pub mod verdict;

pub use destination::{Destination, OutputError};
pub use ending::{Ending, Stop, catch_interrupts, check_stdout, end, exit, say, say_error};
pub use output::{ExportOptions, Format, FormatOption, Targets, destination, terminal, terminal_of};
pub use progress::Progress;
pub use values::{WordChoice, count, one_of};
