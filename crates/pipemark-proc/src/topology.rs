//! Determines which processes form a pipeline, and which of them form one stage, from data that was already read. Pure:
//! no clock and no I/O.
//!
//! Standard input and output are followed to the holders of the other end. Other descriptors are followed only between
//! processes of one group or family, because descriptors of a shell or a terminal would lead to the whole session.
//! Standard error is followed only to the standard input of a process of the same group, and only if the process writes
//! to no other pipe, as in 'a 2>&1 >file | b'.

mod flow;
mod graph;
mod order;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::process::{Direction, PipeEnd, PipeId, Process};
use flow::DataFlow;
use graph::{PipeGraph, ends_to_stages, opposite};

pub use order::upstream_first;

/// A stage: processes that do one job, such as a shell loop and the commands it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageShape {
    /// The processes of the stage. The first one gives the stage its name.
    pub pids: Vec<u32>,
    pub ins: Vec<PipeId>,
    pub outs: Vec<PipeId>,
}

/// Which processes a search includes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The given processes and those joined to them by pipes.
    Joined,
    /// The given processes and no others.
    Given,
}

/// Whether a process reads what its descendants write, or writes what they read. An end that a descendant holds too
/// doesn't count, because the process only passed it on, as a shell does.
pub fn uses_own_family(processes: &[Process], root: u32) -> bool {
    let parents = BTreeMap::from_iter(processes.iter().map(|process| (process.pid, process.parent)));
    let descends = |process: &&Process| {
        std::iter::successors(Some(process.parent), |pid| parents.get(pid).copied()).take(65).any(|pid| pid == root)
    };
    let family = processes.iter().filter(descends).flat_map(ends_to_stages);
    let family: HashSet<(PipeId, Direction)> = family.map(|end| (end.pipe, end.direction)).collect();
    let own = processes.iter().find(|process| process.pid == root).map(ends_to_stages).unwrap_or_default();
    own.iter().any(|end| {
        family.contains(&(end.pipe, opposite(end.direction))) && !family.contains(&(end.pipe, end.direction))
    })
}

/// If a group has one unreadable process, gives it the ends that the group lacks: ends of pipes that no other process
/// of the group reads or writes. With several unreadable processes, it isn't known which process has which end.
pub fn fill_gaps(processes: &mut [Process]) {
    let is_hidden = |process: &Process| process.ends.is_none() && process.state != 'Z';
    let hidden = processes.iter().filter(|process| is_hidden(process));
    let group_of_hidden: HashMap<u32, u32> = hidden.map(|process| (process.pid, process.group)).collect();
    // Processes started by a hidden one are not part of the group.
    let (mut candidates, mut count) = (Vec::new(), HashMap::<u32, usize>::new());
    for (at, process) in processes.iter().enumerate().filter(|(_, process)| is_hidden(process)) {
        if group_of_hidden.get(&process.parent) != Some(&process.group) {
            candidates.push(at);
            *count.entry(process.group).or_default() += 1;
        }
    }
    if candidates.is_empty() {
        return;
    }
    // The pipes that standard input and output lead to, from all processes and by group.
    let mut held: HashSet<(PipeId, Direction)> = HashSet::new();
    let mut held_by_group: HashMap<u32, BTreeSet<(PipeId, bool)>> = HashMap::new();
    for process in processes.iter() {
        for end in process.ends.iter().flatten().filter(|end| end.fd < 2 && end.direction != Direction::Both) {
            held.insert((end.pipe, end.direction));
            let is_input = end.direction == Direction::In;
            held_by_group.entry(process.group).or_default().insert((end.pipe, is_input));
        }
    }
    for at in candidates {
        let group = processes[at].group;
        if count[&group] > 1 {
            continue;
        }
        let lacking = |is_input: bool, other: Direction| {
            let own = held_by_group.get(&group).into_iter().flatten().filter(move |(_, input)| *input == is_input);
            own.map(|(pipe, _)| *pipe).filter(|pipe| !held.contains(&(*pipe, other))).collect::<Vec<_>>()
        };
        let end = |fd: u32, direction: Direction| move |pipe: PipeId| PipeEnd { fd, pipe, direction };
        let (reads, writes) = (lacking(false, Direction::In), lacking(true, Direction::Out));
        let reads = reads.into_iter().map(end(0, Direction::In));
        let ends: Vec<PipeEnd> = reads.chain(writes.into_iter().map(end(1, Direction::Out))).collect();
        // With these ends, the groups of other hidden processes lack less.
        held.extend(ends.iter().map(|end| (end.pipe, end.direction)));
        let own = held_by_group.entry(group).or_default();
        own.extend(ends.iter().map(|end| (end.pipe, end.direction == Direction::In)));
        processes[at].ends = Some(ends);
    }
}

/// The stages of the pipeline that contains `seeds`, each once, in the order of the data. A process without a pipe
/// belongs to the stage of its parent. Without any pipe, the seeds are one stage.
pub fn stages(processes: &[Process], seeds: &[u32], reach: Reach) -> Vec<StageShape> {
    let graph = PipeGraph::of(processes);
    let members: Vec<u32> = match reach {
        Reach::Joined => graph.joined(seeds).into_keys().collect(),
        Reach::Given => {
            let given = seeds.iter().copied().filter(|pid| graph.processes.contains_key(pid));
            given.collect::<BTreeSet<u32>>().into_iter().collect()
        }
    };
    let held = members.iter().flat_map(|pid| &graph.ends[pid]).map(|end| (end.pipe, end.direction));
    let held: HashSet<(PipeId, Direction)> = held.collect();
    let inner = |end: &&PipeEnd| held.contains(&(end.pipe, opposite(end.direction)));
    let ends = members
        .iter()
        .map(|&pid| (pid, graph.ends[&pid].iter().filter(inner).copied().collect::<Vec<_>>()))
        .filter(|(_, ends)| !ends.is_empty());
    let ends = BTreeMap::from_iter(ends);
    if ends.is_empty() {
        let alone: Vec<u32> = members.into_iter().filter(|pid| graph.processes[pid].state != 'Z').collect();
        return if alone.is_empty() { Vec::new() } else { vec![shape(&alone, &graph)] };
    }
    let mut stage_of = stage_by_process(&graph, &ends);
    // Adds the other processes of the families, such as xargs and the processes it starts.
    for &pid in &members {
        if ends.contains_key(&pid) {
            continue;
        }
        if let Some(&stage) = graph.ancestry(pid).skip(1).find_map(|ancestor| stage_of.get(&ancestor.pid)) {
            stage_of.insert(pid, stage);
        }
    }
    let mut groups: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (pid, stage) in stage_of {
        groups.entry(stage).or_default().push(pid);
    }
    let graph = PipeGraph { ends, ..graph };
    let mut stages: Vec<StageShape> = groups.values().map(|pids| shape(pids, &graph)).collect();
    // A pipe within a stage is neither the stage's input nor its output.
    let mut uses: HashMap<PipeId, usize> = HashMap::new();
    for stage in &stages {
        let pipes: BTreeSet<PipeId> = stage.ins.iter().chain(&stage.outs).copied().collect();
        pipes.into_iter().for_each(|pipe| *uses.entry(pipe).or_default() += 1);
    }
    for stage in &mut stages {
        stage.ins.retain(|pipe| uses[pipe] > 1);
        stage.outs.retain(|pipe| uses[pipe] > 1);
    }
    // If the data leaves the order open, stages are sorted by start time.
    stages.sort_by_cached_key(|stage| graph.processes[&stage.pids[0]].start);
    let order = upstream_first(stages.len(), &feeds(&stages));
    let mut stages: Vec<Option<StageShape>> = stages.into_iter().map(Some).collect();
    order.into_iter().filter_map(|at| stages[at].take()).collect()
}

/// Pairs of a stage and one that reads what it writes. A pipe between many stages counts as a node of its own, with a
/// number after those of the stages.
fn feeds(stages: &[StageShape]) -> Vec<(usize, usize)> {
    const MAX_PAIRS: usize = 1024;
    let mut users: BTreeMap<PipeId, [Vec<usize>; 2]> = BTreeMap::new();
    for (at, stage) in stages.iter().enumerate() {
        stage.outs.iter().for_each(|&pipe| users.entry(pipe).or_default()[0].push(at));
        stage.ins.iter().for_each(|&pipe| users.entry(pipe).or_default()[1].push(at));
    }
    let (mut found, mut next) = (Vec::new(), stages.len());
    for [writers, readers] in users.values() {
        if writers.len() * readers.len() <= MAX_PAIRS {
            found.extend(writers.iter().flat_map(|&from| readers.iter().map(move |&to| (from, to))));
        } else {
            let writing: HashSet<usize> = writers.iter().copied().collect();
            found.extend(writers.iter().map(|&from| (from, next)));
            found.extend(readers.iter().filter(|to| !writing.contains(to)).map(|&to| (next, to)));
            next += 1;
        }
    }
    found
}

/// Maps each process that holds a pipe to its stage, identified by one of its processes.
fn stage_by_process(graph: &PipeGraph<'_>, ends: &BTreeMap<u32, Vec<PipeEnd>>) -> BTreeMap<u32, u32> {
    let mut flow = DataFlow::of(ends);
    let mut families: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for &pid in ends.keys() {
        for elder in graph.ancestry(pid).skip(1).filter(|elder| ends.contains_key(&elder.pid) && elder.pid != pid) {
            families.entry(elder.pid).or_default().push(pid);
        }
    }
    let mut sets = StageSets::of(ends.keys().copied());
    for (&elder, family) in &families {
        let own: HashMap<PipeId, &PipeEnd> = ends[&elder].iter().map(|end| (end.pipe, end)).collect();
        let joint = |end: &PipeEnd| own.get(&end.pipe).copied();
        let shares =
            |pid: u32| ends[&pid].iter().any(|end| joint(end).is_some_and(|own| own.direction == end.direction));
        // Whether the standard input or output of `pid` or `elder` is a pipe to the other process. Other pipes between
        // the two, such as the queues of a worker pool, are within the stage.
        let is_piped_to_elder = |pid: u32| {
            let piped = |end: &PipeEnd, own: &PipeEnd| own.direction != end.direction && end.fd.min(own.fd) < 2;
            ends[&pid].iter().any(|end| joint(end).is_some_and(|own| piped(end, own)))
        };
        let family: Vec<u32> = family.iter().copied().filter(|&pid| shares(pid) && !is_piped_to_elder(pid)).collect();
        // A shell that only waits for the pipeline it was asked to run is not a stage.
        if flow.joins_any(&family, elder) {
            sets.remove(elder);
        } else {
            family.into_iter().for_each(|pid| sets.join(pid, elder));
        }
    }
    sets.stage_by_process()
}

/// Sets of processes that form one stage each.
struct StageSets {
    /// Another process of the same stage, or the process itself; for each process.
    next: BTreeMap<u32, u32>,
    removed: BTreeSet<u32>,
}

impl StageSets {
    /// Each process is a stage of its own.
    fn of(pids: impl Iterator<Item = u32>) -> StageSets {
        StageSets { next: pids.map(|pid| (pid, pid)).collect(), removed: BTreeSet::new() }
    }

    /// The process that identifies the stage of this process.
    fn root(&mut self, pid: u32) -> u32 {
        let mut root = pid;
        while self.next[&root] != root {
            root = self.next[&root];
        }
        let mut at = pid;
        while at != root {
            at = self.next.insert(at, root).unwrap_or(root);
        }
        root
    }

    /// Joins the stage of `pid` to that of `elder`, unless one of the two was removed.
    fn join(&mut self, pid: u32, elder: u32) {
        if !self.removed.contains(&pid) && !self.removed.contains(&elder) {
            let (old, new) = (self.root(pid), self.root(elder));
            self.next.insert(old, new);
        }
    }

    fn remove(&mut self, pid: u32) {
        self.removed.insert(pid);
    }

    fn stage_by_process(mut self) -> BTreeMap<u32, u32> {
        let pids: Vec<u32> = self.next.keys().copied().filter(|pid| !self.removed.contains(pid)).collect();
        pids.into_iter().map(|pid| (pid, self.root(pid))).collect()
    }
}

fn shape(pids: &[u32], graph: &PipeGraph<'_>) -> StageShape {
    let mut pids = pids.to_vec();
    pids.sort_by_cached_key(|&pid| (graph.ancestry(pid).count(), graph.processes[&pid].start, pid));
    let of = |direction: Direction| {
        let ends = pids.iter().flat_map(|pid| graph.ends.get(pid).map(Vec::as_slice).unwrap_or_default());
        BTreeSet::from_iter(ends.filter(|end| end.direction == direction).map(|end| end.pipe))
            .into_iter()
            .collect::<Vec<_>>()
    };
    let (ins, outs) = (of(Direction::In), of(Direction::Out));
    StageShape { pids, ins, outs }
}

#[cfg(test)]
mod tests;
