//! Plans trials and runs them: [`plan`] makes trials of suites and flags, [`available`] says which can run here,
//! [`link`] has the mechanisms, [`measure`] runs what was planned and returns the samples.
#![forbid(unsafe_code)]

pub mod available;
pub mod content;
pub mod demonstrations;
pub mod link;
pub mod plan;
mod runner;

pub use runner::{END_VERB, Observer, Passed, SUPERVISOR_VERB, end, measure, remove_left, supervisor, with_volumes};
