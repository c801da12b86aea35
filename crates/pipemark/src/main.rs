//! pipemark: parse, dispatch, exit code.
#![forbid(unsafe_code)]

mod cli;
mod host;
mod model;
mod show;
mod stats;

fn main() {}
