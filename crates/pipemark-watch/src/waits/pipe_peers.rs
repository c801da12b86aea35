//! Processes outside the pipeline at the other ends of pipes and FIFOs.

use std::collections::{BTreeSet, HashSet};

use pipemark_causes::PeerFigures;
use pipemark_proc::process::{Direction, PipeId, Process};
use pipemark_proc::state::ThreadState;

use super::scene::WaitScene;
use crate::pipeline::WatchedPipeline;
use crate::search;
use crate::subject::Subject;

/// The other end of a pipe is searched for if a stage waits for it in at least this share of an interval's samples.
const MIN_WAITS: f64 = 0.3;

/// What a search has found.
#[derive(Debug, Default)]
pub struct PipePeers {
    /// For each place that was searched for: a process outside the pipeline at the other end of the stage's pipe, or `None`
    /// if there is none.
    pub peers: Vec<(usize, Option<PeerFigures>)>,
    /// Orphans of the command, which belong to the pipeline, with their start times.
    pub orphans: Vec<(u32, u64)>,
}

/// Looks for processes outside the pipeline at the other ends of pipes and FIFOs that a stage waits for. `is_searched`
/// says for which stages that isn't needed.
pub fn find(scene: &mut WaitScene<'_>, is_searched: impl Fn(usize) -> bool) -> PipePeers {
    let pipeline = scene.pipeline;
    let share = |place: usize, state: ThreadState| scene.share(place, &[state]);
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
        if !stage.alive || !waits || is_searched(at) {
            continue;
        }
        let ends = stage.pids.iter().filter_map(|pid| pipeline.known.get(pid)?.process.ends.as_ref()).flatten();
        let ends = ends.filter(|end| end.direction == directions[0] && !joined.contains(&end.pipe));
        let outer: BTreeSet<PipeId> = ends.map(|end| end.pipe).collect();
        if !outer.is_empty() {
            wanted.push((at, outer, directions));
        }
    }
    let mut found = PipePeers::default();
    // Without a list of all processes, the search continues at the end of a later interval.
    if wanted.is_empty() || !search::refresh(scene.table, scene.budget) {
        return found;
    }
    let table = &*scene.table;
    for (at, outer, directions) in wanted {
        let holder =
            |pipe: &PipeId| Some((*pipe, table.holder_of_pipe(*pipe, directions[1], |pid| own.contains(&pid))?));
        let holder = outer.iter().find_map(holder);
        if let Some((pipe, (pid, _))) = holder
            && let Some(start) = orphan_start(pipeline, pid, pipe)
        {
            found.orphans.push((pid, start));
            continue;
        }
        // A process that has started since the last pass may be found at the end of a later interval.
        if holder.is_none() && !table.is_complete() {
            continue;
        }
        let peer = holder.map(|(_, (pid, name))| PeerFigures {
            name: pipemark_model::neutral(&name),
            pid: Some(pid),
            pipe: true,
            sends: directions[0] == Direction::Out,
            ..PeerFigures::default()
        });
        found.peers.push((at, peer));
    }
    found
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
