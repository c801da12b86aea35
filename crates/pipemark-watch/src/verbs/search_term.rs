//! What running processes are looked for by: a name, a unit, a container or a control group.

use std::time::{Duration, Instant};

use pipemark_console::ExitError;
use pipemark_model::neutral;
use pipemark_proc::control_group::GroupName;

use crate::live;

/// Running processes that are looked for by what they have in common.
#[derive(Debug, Clone)]
pub enum SearchTerm {
    /// The name of one of the pipeline's processes.
    Name(String),
    Group(GroupName),
}

impl SearchTerm {
    /// The processes that fit now. In a loop of short commands, the next one may be about to start.
    pub fn find(&self) -> Result<Vec<u32>, ExitError> {
        match self {
            SearchTerm::Name(name) => find_named(name),
            SearchTerm::Group(group) => live::processes_of(group),
        }
    }

    /// The error if all processes that were found have ended.
    pub fn ended(&self) -> ExitError {
        let which = match self {
            SearchTerm::Name(name) => format!("called '{}'", neutral(name)),
            SearchTerm::Group(GroupName::Unit(name)) => format!("of the unit {}", neutral(name)),
            SearchTerm::Group(GroupName::Container(name)) => format!("in the container {}", neutral(name)),
            SearchTerm::Group(GroupName::Path(path)) => format!("in the control group {}", neutral(path)),
        };
        ExitError::failed(format_args!(
            "all processes {which} ended before they could be sampled; give the PID of the shell that runs the pipeline"
        ))
    }
}

/// The living processes with this name. In a loop of short commands, the next one may be about to start.
fn find_named(name: &str) -> Result<Vec<u32>, ExitError> {
    const PATIENCE: Duration = Duration::from_secs(3);
    let end = Instant::now() + PATIENCE;
    loop {
        let found = live::processes_named(name);
        if !found.is_empty() {
            return Ok(found);
        }
        if Instant::now() >= end {
            return Err(ExitError::usage(format_args!(
                "there is no process called '{}'; 'pipemark why' lists running pipelines; to run one: pipemark why 'a | b'",
                neutral(name)
            )));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
