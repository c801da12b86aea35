//! pipemark: parse, dispatch, exit code.
#![forbid(unsafe_code)]

mod cli;
mod model;
mod plan;

fn main() -> std::process::ExitCode {
    cli::main()
}
