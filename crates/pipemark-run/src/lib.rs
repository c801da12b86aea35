//! Plans and runs trials. [`plan`] turns suites and flags into trials, [`available`] checks which trials can run here,
//! `link` implements the links, and [`measure`] runs the plan and returns the samples.
#![forbid(unsafe_code)]

pub mod available;
pub mod content;
mod link;
pub mod plan;
mod runner;

pub use runner::{
    END_VERB, IntervalProgress, Observer, SUPERVISOR_VERB, end, measure, remove_left, supervisor, with_volumes,
};
