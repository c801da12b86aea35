//! Runs links that are made of programs other than pipemark: a sender, a receiver and, if the link needs one, a broker.
//! docs/outside-links.md is the contract that the programs follow; `pipemark-entrants` reads their descriptions and
//! builds them.
//!
//! [`run`] starts the programs, waits until they are ready, tells them when the measured window begins and ends, and
//! collects their reports. Times are absolute times of the monotonic clock, so nothing is exchanged during the window.
#![forbid(unsafe_code)]

mod assignment;
mod processes;
mod report;
mod run;
mod run_directory;

pub use assignment::{Pace, RunSettings};
pub use report::EndReport;
pub use run::{LinkRun, run};
pub use run_directory::{LEFTOVERS, remove};
