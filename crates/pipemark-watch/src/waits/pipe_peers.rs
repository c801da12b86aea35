//! Processes outside the pipeline at the other ends of pipes and FIFOs.

use std::collections::{BTreeSet, HashSet};

use pipemark_causes::PeerFigures;
use pipemark_causes::interval::Interval;
use pipemark_proc::process::{Direction, PipeId, Process};
use pipemark_proc::state::ThreadState;

use crate::budget::Budget;
use crate::pipeline::WatchedPipeline;
use crate::pipeline::stage::share_of;
use crate::search;
use crate::subject::Subject;

/// The other end of a pipe is searched for if a stage waits for it in at least this share of an interval's samples.
const MIN_WAITS: f64 = 0.3;

/// Looks for processes outside the pipeline at the other ends of pipes and FIFOs that a stage waits for. Returns
/// whether one of them is an orphan of the command, which belongs to the pipeline.
pub fn find(pipeline: &mut WatchedPipeline, interval: &Interval, budget: &mut Budget) -> bool {
    /// The maximum number of searches per stage.
    const MAX_SEARCHES: u32 = 3;
    let share = |place: usize, state: ThreadState| share_of(interval, place, &[state]);
    // Processes that were lost are searched for too.
    let known = |pid: &u32| pipeline.known.contains_key(pid);
    let own: BTreeSet<u32> =
        pipeline.stages.iter().flat_map(|stage| stage.pids.iter().copied()).filter(known).collect();
    let joined: HashSet<PipeId> = pipeline.pipes.iter().map(|pipe| pipe.id).collect();
    let mut wanted = Vec::new();
    for (at, stage) in pipeline.stages.iter().enumerate() {
        let starved = share(at, ThreadState::Starved);
        let directions = if starved >= share(at, ThreadState::Blocked) {
            [Direction::In, Direction::Out]
        } else {
            [Direction::Out, Direction::In]
        };
        let waits = starved.max(share(at, ThreadState::Blocked)) >= MIN_WAITS;
        if !stage.alive || !waits || stage.peer.is_some() || stage.searches >= MAX_SEARCHES {
            continue;
        }
        let ends = stage.pids.iter().filter_map(|pid| pipeline.known.get(pid)?.process.ends.as_ref()).flatten();
        let ends = ends.filter(|end| end.direction == directions[0] && !joined.contains(&end.pipe));
        let outer: BTreeSet<PipeId> = ends.map(|end| end.pipe).collect();
        if !outer.is_empty() {
            wanted.push((at, outer, directions));
        }
    }
    // Without a list of all processes, the search continues at the end of a later interval.
    if wanted.is_empty() || !search::refresh(&mut pipeline.table, budget) {
        return false;
    }
    let mut found = Vec::new();
    for (at, outer, directions) in wanted {
        let holder = |pipe: &PipeId| {
            Some((*pipe, pipeline.table.holder_of_pipe(*pipe, directions[1], |pid| own.contains(&pid))?))
        };
        found.push((at, outer.iter().find_map(holder), directions[0] == Direction::Out));
    }
    let mut finds_orphan = false;
    for (at, holder, sends) in found {
        if let Some((pipe, (pid, _))) = holder
            && let Some(start) = orphan_start(pipeline, pid, pipe)
        {
            pipeline.orphans.insert(pid, start);
            finds_orphan = true;
            continue;
        }
        // A process that has started since the last pass may be found at the end of a later interval.
        if holder.is_none() && !pipeline.table.is_complete() {
            continue;
        }
        let stage = &mut pipeline.stages[at];
        stage.searches += 1;
        stage.peer = holder.map(|(_, (pid, name))| PeerFigures {
            name: pipemark_model::neutral(&name),
            pid: Some(pid),
            pipe: true,
            sends,
            ..PeerFigures::default()
        });
    }
    finds_orphan
}

/// The start time of a process that holds this pipe; `None` unless the process is an orphan of the command that
/// this program started. An unnamed pipe that isn't this program's own was created by that command.
fn orphan_start(pipeline: &WatchedPipeline, pid: u32, pipe: PipeId) -> Option<u64> {
    let started = matches!(pipeline.subject, Subject::Child(_)) && !pipeline.orphans.contains_key(&pid);
    if !started || pid == std::process::id() || !pipe.is_nameless() || pipe.is_own() {
        return None;
    }
    // A service that received the pipe over a socket is in another process group.
    let own = rustix::process::getpgrp().as_raw_nonzero().get().cast_unsigned();
    Process::read(pid).filter(|process| process.group == own).map(|process| process.start)
}
