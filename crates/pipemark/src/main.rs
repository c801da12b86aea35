//! pipemark: parse, dispatch, exit code.
#![forbid(unsafe_code)]

mod cli;
mod compare;
mod content;
mod host;
mod link;
mod model;
mod plan;
mod run;
mod show;
mod stats;

use std::process::ExitCode;

fn main() -> ExitCode {
    // An end of a run starts thousands of times: nothing comes before it.
    if std::env::args_os().nth(1).is_some_and(|verb| verb == run::END_VERB) {
        return run::end();
    }
    if std::env::args_os().nth(1).is_some_and(|verb| verb == run::STAGE_VERB) {
        return run::stage();
    }
    cli::main()
}
