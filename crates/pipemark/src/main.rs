//! pipemark: parse, dispatch, exit code.
#![forbid(unsafe_code)]

mod model;
mod plan;

fn main() {}
