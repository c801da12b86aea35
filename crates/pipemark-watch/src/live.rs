//! Lists the pipelines running now, and explains why a process can't be sampled.

use std::fmt::Display;

use pipemark_console::ExitError;
use pipemark_proc::process::{self, Process};
use pipemark_proc::topology;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

/// A live pipeline of this user.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct LivePipeline {
    /// One of its processes, which identifies it.
    pub pid: u32,
    /// The names of the stages, in the order of the data.
    pub stages: Vec<String>,
}

/// The live pipelines whose processes may be sampled: stages joined by standard input and output.
pub fn live_pipelines() -> Vec<LivePipeline> {
    let mut processes = process::all();
    for ends in processes.iter_mut().filter_map(|process| process.ends.as_mut()) {
        ends.retain(|end| end.fd < 2);
    }
    let pids: Vec<u32> = processes.iter().map(|process| process.pid).collect();
    let mut left = topology::stages(&processes, &pids, topology::Reach::Given);
    left.retain(|shape| !shape.ins.is_empty() || !shape.outs.is_empty());
    let mut found = Vec::new();
    while !left.is_empty() {
        let mut one = vec![left.remove(0)];
        let joined = |one: &[topology::StageShape], shape: &topology::StageShape| {
            let of = |shape: &topology::StageShape| shape.ins.iter().chain(&shape.outs).copied().collect::<Vec<_>>();
            one.iter().flat_map(of).any(|pipe| of(shape).contains(&pipe))
        };
        while let Some(place) = left.iter().position(|shape| joined(&one, shape)) {
            one.push(left.remove(place));
        }
        let stage = |shape: &topology::StageShape| {
            processes
                .iter()
                .find(|process| process.pid == shape.pids[0])
                .map(|process| process.command(&process.words()))
                .unwrap_or_default()
        };
        found.push(LivePipeline { pid: one[0].pids[0], stages: one.iter().map(stage).collect() });
    }
    found
}

/// The processes with this name.
pub fn processes_named(name: &str) -> Vec<u32> {
    let processes = process::all();
    let called = |process: &&Process| process.comm == name.chars().take(15).collect::<String>();
    processes.iter().filter(called).map(|process| process.pid).collect()
}

/// The error for a pid that no process has.
pub fn no_process(number: impl Display) -> ExitError {
    ExitError::usage(format_args!("there is no process {number}; 'pipemark why' lists running pipelines"))
}

/// The error for a process that can't be sampled; `None` if it can be.
pub fn refusal(pid: u32) -> Option<ExitError> {
    // The process exists, but /proc hides it.
    let hidden = || Pid::from_raw(pid.cast_signed()).map(test_kill_process) == Some(Err(Errno::PERM));
    match Process::read(pid) {
        Some(Process { of_kernel: true, comm, .. }) => Some(ExitError::failed(format_args!(
            "process {pid} is a kernel thread ({comm}), which has no pipes; 'pipemark why' lists running pipelines"
        ))),
        Some(process) if process.state != 'Z' => None,
        _ if hidden() => Some(ExitError::failed(format_args!(
            "process {pid} belongs to another user and is hidden here (hidepid); run pipemark as that user, or as root"
        ))),
        _ => Some(no_process(pid)),
    }
}
