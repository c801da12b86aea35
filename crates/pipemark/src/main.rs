//! pipemark: parse, dispatch, exit code.
#![forbid(unsafe_code)]

fn main() {}
