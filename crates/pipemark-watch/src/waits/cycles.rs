//! Cycles of waits: processes that wait for each other.

use std::time::Duration;

use pipemark_causes::evidence::{FileLock, WaitCycle};
use pipemark_causes::interval::StageCounts;
use pipemark_causes::wait_graph::{WaitingProcess, cycle};
use pipemark_proc::call::{self, opened_fifo};
use pipemark_proc::locks::Locks;
use pipemark_proc::process::{self, Direction, PipeEnd, Process};
use pipemark_proc::state::{Descriptors, ThreadState};

use super::scene::WaitScene;
use crate::pipeline::WatchedPipeline;
use crate::subject::Subject;

/// A pipeline doesn't move if at most this share of the samples found a stage working.
const MAX_WORK_IF_STUCK: f64 = 0.02;

/// Approximate CPU time of reading what a thread waits for.
const PER_THREAD: Duration = Duration::from_micros(20);

/// The cycle of waits in the last intervals.
#[derive(Debug, Default)]
pub struct CycleSearch {
    /// The cycle found at the end of the last interval.
    suspected: Option<WaitCycle>,
    /// The cycle found at the ends of both of the last two intervals.
    pub confirmed: Option<WaitCycle>,
}

impl CycleSearch {
    /// Looks for a cycle at the end of an interval.
    pub fn find(&mut self, scene: &mut WaitScene<'_>) {
        let WaitScene { pipeline, interval, .. } = *scene;
        // A stage that sleeps goes on by itself.
        const WORK: [ThreadState; 5] =
            [ThreadState::Running, ThreadState::Disk, ThreadState::Network, ThreadState::Terminal, ThreadState::Sleep];
        let of = |stage: &StageCounts, states: &[ThreadState]| -> u32 {
            states.iter().map(|&state| stage.states[state as usize]).sum()
        };
        let all: u32 = interval.stages.iter().flat_map(|stage| stage.states).sum();
        let works: u32 = interval.stages.iter().map(|stage| of(stage, &WORK)).sum();
        let moves = all == 0 || f64::from(works) > f64::from(all) * MAX_WORK_IF_STUCK;
        if moves && self.suspected.is_none() {
            return;
        }
        let threads: usize = pipeline.known.values().map(|known| 1 + known.threads.len()).sum();
        if !scene.budget.affords(PER_THREAD * u32::try_from(threads).unwrap_or(u32::MAX)) {
            return;
        }
        // An exiting process no longer shows what it waited for, so the earlier result is kept.
        if pipeline
            .known
            .values()
            .any(|known| call::descriptors_of(known.process.pid, known.process.files_of).is_none())
        {
            return;
        }
        let found = if moves { None } else { cycle(&waiting_processes(pipeline)) };
        // A cycle counts if it is found twice, half a second apart.
        let before = std::mem::replace(&mut self.suspected, found);
        self.confirmed = self.suspected.clone().filter(|_| self.suspected == before);
        if let Some(cycle) = &mut self.confirmed {
            cycle.may_have_alarm = process::alarms_may_be_set();
        }
    }
}

fn waiting_processes(pipeline: &WatchedPipeline) -> Vec<WaitingProcess> {
    let mut processes: Vec<Process> = pipeline.known.values().map(|known| known.process.clone()).collect();
    if let Subject::Child(root) = pipeline.subject
        && !pipeline.known.contains_key(&root)
    {
        processes.extend(Process::read(root));
    }
    let mut found: Vec<WaitingProcess> = processes.iter().map(waiting).collect();
    add_locks(&mut found, &processes);
    found
}

/// What a process waits for, in all of its threads.
fn waiting(process: &Process) -> WaitingProcess {
    let ends = process.ends.clone().unwrap_or_default();
    let name = pipemark_model::neutral(&process.comm);
    let mut found =
        WaitingProcess { pid: process.pid, parent: process.parent, name, ends, ..WaitingProcess::default() };
    let mut stopped = matches!(process.state, 'Z' | 'X' | 'T');
    for id in process.thread_ids() {
        match call::descriptors_of(process.pid, id) {
            Some(Descriptors::Files(files)) => {
                for (fd, direction) in files {
                    let end = found.ends.iter().find(|end| u64::from(end.fd) == fd);
                    // A descriptor other than a pipe may wake the process.
                    let Some(end) = end.copied() else {
                        found.free = true;
                        continue;
                    };
                    if end.direction == direction || end.direction == Direction::Both {
                        found.waits.push(PipeEnd { direction, ..end });
                    }
                }
            }
            Some(Descriptors::Children) => found.for_children = true,
            Some(Descriptors::Open(address, flags)) => match opened_fifo(process.files_of, address, flags) {
                Some((name, direction)) => found.opens = Some((pipemark_model::neutral(&name), direction)),
                None => found.free = true,
            },
            Some(Descriptors::Lock) => {}
            Some(Descriptors::Else) => found.free = true,
            None => stopped = true,
        }
    }
    // A signal or a timer may end the wait.
    found.free |= stopped || process::may_be_interrupted(process);
    found
}

/// Adds the file locks that processes wait for, with those of these processes that hold them.
fn add_locks(all: &mut [WaitingProcess], processes: &[Process]) {
    let may_wait = |process: &WaitingProcess| !process.free && process.waits.is_empty();
    if !all.iter().any(may_wait) {
        return;
    }
    let Some(locks) = Locks::read().filter(Locks::has_waits) else { return };
    for (waiting, process) in all.iter_mut().zip(processes).filter(|(waiting, _)| may_wait(waiting)) {
        let Some(lock) = locks.awaited_by(process) else { continue };
        let holders = processes.iter().filter(|other| lock.is_held_by(other)).map(|other| other.pid).collect();
        waiting.lock = Some(FileLock { path: pipemark_model::neutral(&lock.path), holders });
    }
}
