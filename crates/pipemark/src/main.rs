//! pipemark: parse, dispatch, exit code.
#![forbid(unsafe_code)]

// Nothing calls the statistics yet.
#[allow(dead_code)]
mod stats;

fn main() {}
