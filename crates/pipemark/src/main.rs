//! The program: parses the command line, runs the verb, and exits with its code.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), no_main)]

mod cli;
mod store;

use pipemark_host::child::{self, guard};

#[global_allocator]
static ALLOCATOR: pipemark_sys::allocator::ExitOnFailure = pipemark_sys::allocator::ExitOnFailure;

#[cfg(not(test))]
pipemark_sys::start!(run_program);

/// Runs the program, and returns the exit code.
#[cfg_attr(test, expect(dead_code, reason = "a test program has a start of its own"))]
fn run_program() -> u8 {
    // A measurement starts this program thousands of times, as an end or a stage of a pipeline, so these cases are
    // checked first.
    let mut words = pipemark_sys::start::words().to_vec();
    match words.get(1) {
        Some(verb) if verb == pipemark_run::END_VERB => return pipemark_run::end(),
        Some(verb) if verb == pipemark_run::SUPERVISOR_VERB => return pipemark_run::supervisor(),
        Some(verb) if verb == pipemark_watch::WITNESS_VERB => return pipemark_watch::witness(),
        Some(verb) if verb == pipemark_tune::PART_VERB => return pipemark_tune::part(&words),
        Some(verb) if verb == guard::GUARD_VERB => return guard::main(&words, pipemark_run::remove_left),
        Some(verb) if verb == child::STAGE_VERB => match child::exec_program(&words) {
            Ok(own) => words = own,
            Err(code) => return code,
        },
        _ => {}
    }
    let code = cli::main(words);
    guard::kill_remaining();
    code
}
