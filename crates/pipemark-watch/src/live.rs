//! Lists the pipelines running now, and explains why a process can't be sampled.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;

use pipemark_console::ExitError;
use pipemark_model::neutral;
use pipemark_proc::control_group::{GroupName, GroupNames, Membership, processes_in};
use pipemark_proc::process::{self, Direction, PipeEnd, PipeId, Process};
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
    /// The unit of systemd that it belongs to; `None` for sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// The container that it runs in: its name, or the start of its ID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
}

/// The live pipelines whose processes may be sampled: stages joined by standard input and output.
pub fn live_pipelines() -> Vec<LivePipeline> {
    let processes = process::all_standard();
    let by_pid: HashMap<u32, &Process> = processes.iter().map(|process| (process.pid, process)).collect();
    let pids: Vec<u32> = processes.iter().map(|process| process.pid).collect();
    let mut stages = topology::stages(&processes, &pids, topology::Reach::Given);
    stages.retain(|shape| !shape.ins.is_empty() || !shape.outs.is_empty());
    // The stages that use each pipe, upstream first as in `stages`.
    let mut users: HashMap<PipeId, Vec<usize>> = HashMap::new();
    for (at, stage) in stages.iter().enumerate() {
        stage.ins.iter().chain(&stage.outs).for_each(|&pipe| users.entry(pipe).or_default().push(at));
    }
    let names = GroupNames::read();
    let mut is_taken = vec![false; stages.len()];
    let mut found = Vec::new();
    for first in 0..stages.len() {
        let (mut own, mut waiting) = (Vec::new(), vec![first]);
        while let Some(at) = waiting.pop() {
            if !std::mem::replace(&mut is_taken[at], true) {
                own.push(at);
                let pipes = stages[at].ins.iter().chain(&stages[at].outs);
                waiting.extend(pipes.filter_map(|pipe| users.remove(pipe)).flatten());
            }
        }
        own.sort_unstable();
        let command = |at: &usize| by_pid.get(&stages[*at].pids[0]).map(|process| process.command(&process.words()));
        if let Some(&first) = own.first() {
            let stages_of_it = own.iter().filter_map(command).collect();
            let pid = stages[first].pids[0];
            let Membership { unit, container } = names.of(pid);
            found.push(LivePipeline { pid, stages: stages_of_it, unit, container });
        }
    }
    found
}

/// The processes with this name.
pub fn processes_named(name: &str) -> Vec<u32> {
    let name: String = name.chars().take(15).collect();
    let own = std::process::id();
    // The newest first, because short-lived processes end while others are read.
    let mut pids = process::pids();
    pids.sort_unstable_by_key(|&pid| std::cmp::Reverse(pid));
    let processes = pids.into_iter().filter(|&pid| pid != own).filter_map(Process::read_stat);
    let named = processes.filter(|process| !process.of_kernel && process.state != 'Z' && process.comm == name);
    let mut found: Vec<u32> = named.map(|process| process.pid).collect();
    found.sort_unstable();
    found
}

/// The processes in a group that a pipe joins to another of the group; if there are none, those with a pipe to outside; or
/// all.
///
/// # Errors
/// If the group has no processes, or its name fits several groups.
pub fn processes_of(group: &GroupName) -> Result<Vec<u32>, ExitError> {
    let all = processes_in(group).map_err(|sentence| {
        ExitError::usage(format_args!("{}; 'pipemark why' lists running pipelines", neutral(&sentence)))
    })?;
    let ends_of = |&pid: &u32| Some((pid, Process::read_standard(pid)?.ends?));
    let processes: Vec<(u32, Vec<PipeEnd>)> = all.iter().filter_map(ends_of).collect();
    let ends = || processes.iter().flat_map(|(_, ends)| ends);
    let pipes = |excluded: Direction| -> HashSet<PipeId> {
        ends().filter(|end| end.direction != excluded).map(|end| end.pipe).collect()
    };
    // A shell in a container has a pipe to what runs the container, and only waits for its pipelines.
    let (written, read) = (pipes(Direction::In), pipes(Direction::Out));
    let with = |is_of_pipeline: &dyn Fn(&PipeEnd) -> bool| -> Vec<u32> {
        processes.iter().filter(|(_, ends)| ends.iter().any(is_of_pipeline)).map(|(pid, _)| *pid).collect()
    };
    let inside = with(&|end| written.contains(&end.pipe) && read.contains(&end.pipe));
    let joined = if inside.is_empty() { with(&|_| true) } else { inside };
    Ok(if joined.is_empty() { all } else { joined })
}

/// The error for a pid that no process has.
pub fn no_process(number: impl Display) -> ExitError {
    ExitError::usage(format_args!("there is no process {number}; 'pipemark why' lists running pipelines"))
}

/// The error for a process that can't be sampled; `None` if it can be.
pub fn refusal(pid: u32) -> Option<ExitError> {
    // The process exists, but /proc hides it.
    let hidden = || Pid::from_raw(pid.cast_signed()).map(test_kill_process) == Some(Err(Errno::PERM));
    match Process::read_stat(pid) {
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
