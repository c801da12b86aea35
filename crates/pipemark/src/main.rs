//! pipemark: parse, dispatch, exit code.
#![forbid(unsafe_code)]

mod available;
mod child;
mod cli;
mod compare;
mod content;
mod entrant;
mod export;
mod findings;
mod host;
mod link;
mod model;
mod plan;
mod render;
mod run;
mod sheet;
mod stats;
mod store;
mod tui;
mod watch;

use std::ffi::OsString;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: pipeio_harness::memory::OrExit = pipeio_harness::memory::OrExit;

fn main() -> ExitCode {
    // Ends and stages of runs start thousands of times: nothing comes before them.
    let mut words: Vec<OsString> = std::env::args_os().collect();
    match words.get(1) {
        Some(verb) if verb == run::END_VERB => return run::end(),
        Some(verb) if verb == run::SUPERVISOR_VERB => return run::supervisor(),
        Some(verb) if verb == child::guard::GUARD_VERB => return child::guard::main(&words, run::remove_left),
        Some(verb) if verb == child::STAGE_VERB => match child::become_foreign(&words) {
            Ok(own) => words = own,
            Err(code) => return code,
        },
        _ => {}
    }
    let code = cli::main(words);
    child::guard::end_all();
    code
}
