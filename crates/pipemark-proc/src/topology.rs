//! Determines which processes form a pipeline, and which of them form one stage, from data that was already read. Pure:
//! no clock and no I/O.
//!
//! Standard input and output are followed to the holders of the other end. Other descriptors are followed only between
//! processes of one group or family, because descriptors of a shell or a terminal would lead to the whole session.
//! Standard error is followed only to the standard input of a process of the same group, and only if the process writes
//! to no other pipe, as in 'a 2>&1 >file | b'.

use std::collections::{BTreeMap, BTreeSet};

use crate::process::{Direction, PipeEnd, PipeId, Process};

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

/// How a process was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum LinkSide {
    Seed,
    Upstream,
    Downstream,
    /// Through a descriptor other than standard input and output, as for a program that started a pipeline and feeds
    /// it. `true` if the process was found downstream.
    Outer(bool),
}

/// All processes, with the ends by which they may be joined.
struct PipeGraph<'p> {
    processes: BTreeMap<u32, &'p Process>,
    /// The ends of each process that may lead to other stages, by pid.
    ends: BTreeMap<u32, Vec<PipeEnd>>,
}

impl<'p> PipeGraph<'p> {
    /// A process, its parent, and so on up. The number of steps is limited, because reused pids may form a cycle.
    fn ancestry(&self, pid: u32) -> impl Iterator<Item = &'p Process> {
        let parent = |process: &&Process| self.processes.get(&process.parent).copied();
        std::iter::successors(self.processes.get(&pid).copied(), parent).take(65)
    }

    fn is_ancestor(&self, ancestor: u32, of: u32) -> bool {
        self.ancestry(of).skip(1).any(|process| process.pid == ancestor)
    }

    fn related(&self, a: u32, b: u32) -> bool {
        self.processes[&a].group == self.processes[&b].group || self.is_ancestor(a, b) || self.is_ancestor(b, a)
    }

    /// The holders of the other end of a pipe. For each, `true` if the end counts as the holder's standard input or
    /// output.
    fn opposite(&self, pid: u32, end: PipeEnd) -> impl Iterator<Item = (u32, bool)> {
        let holders = self.ends.iter().filter(move |(other, _)| **other != pid);
        holders.filter_map(move |(&other, ends)| {
            let mut joints = ends.iter().filter(|theirs| theirs.pipe == end.pipe && theirs.direction != end.direction);
            let standard = joints.clone().any(|theirs| theirs.fd < 2);
            joints.next()?;
            ((end.fd < 2 && standard) || self.related(pid, other)).then_some((other, standard))
        })
    }
}

/// The ends of a process that may lead to other stages.
fn ends_to_stages(process: &Process) -> Vec<PipeEnd> {
    let ends = process.ends.as_deref().unwrap_or_default();
    let both = |pipe: PipeId| {
        let directions = |direction| ends.iter().any(|end| end.pipe == pipe && end.direction == direction);
        directions(Direction::Both) || (directions(Direction::In) && directions(Direction::Out))
    };
    let wrong_way = |end: &PipeEnd| {
        (end.fd == 0 && end.direction == Direction::Out) || (end.fd == 1 && end.direction == Direction::In)
    };
    let writes = ends.iter().any(|end| end.fd != 2 && end.direction == Direction::Out);
    let mut seen = BTreeSet::new();
    let ends = ends.iter().filter(|end| (end.fd != 2 || !writes) && !both(end.pipe) && !wrong_way(end));
    ends.filter(|end| seen.insert(end.pipe)).copied().collect()
}

fn pipe_graph(processes: &[Process]) -> PipeGraph<'_> {
    let mut graph = PipeGraph {
        processes: BTreeMap::from_iter(processes.iter().map(|process| (process.pid, process))),
        ends: BTreeMap::new(),
    };
    let all = BTreeMap::from_iter(processes.iter().map(|process| (process.pid, ends_to_stages(process))));
    for (&pid, ends) in &all {
        // Removes inherited ends that another process uses, such as /dev/fd/63 of another process substitution.
        let inherited = |end: &PipeEnd| {
            let holds = |process: &Process| process.ends.as_ref().is_some_and(|theirs| theirs.contains(end));
            let uses =
                |other: u32| all[&other].iter().any(|own| own.pipe == end.pipe && own.direction == end.direction);
            let mut others = processes.iter().filter(|process| holds(process));
            end.fd > 2 && others.any(|other| uses(other.pid) && graph.is_ancestor(other.pid, pid))
        };
        let read_as_input = |end: &PipeEnd| {
            let reads =
                |theirs: &PipeEnd| theirs.fd == 0 && theirs.direction == Direction::In && theirs.pipe == end.pipe;
            let group = |other: &Process| other.group == graph.processes[&pid].group;
            processes.iter().any(|other| group(other) && all[&other.pid].iter().any(reads))
        };
        let kept = ends.iter().filter(|end| !inherited(end) && (end.fd != 2 || read_as_input(end))).copied().collect();
        graph.ends.insert(pid, kept);
    }
    graph
}

/// Whether a process reads what its descendants write, or writes what they read. An end that a descendant holds too
/// doesn't count, because the process only passed it on, as a shell does.
pub fn uses_own_family(processes: &[Process], root: u32) -> bool {
    let parents = BTreeMap::from_iter(processes.iter().map(|process| (process.pid, process.parent)));
    let descends = |process: &&Process| {
        std::iter::successors(Some(process.parent), |pid| parents.get(pid).copied()).take(65).any(|pid| pid == root)
    };
    let family: Vec<Vec<PipeEnd>> = processes.iter().filter(descends).map(ends_to_stages).collect();
    let has = |pipe: PipeId, direction: Direction| {
        family.iter().flatten().any(|end| end.pipe == pipe && end.direction == direction)
    };
    let own = processes.iter().find(|process| process.pid == root).map(ends_to_stages).unwrap_or_default();
    own.iter().any(|end| {
        let opposite = if end.direction == Direction::In { Direction::Out } else { Direction::In };
        has(end.pipe, opposite) && !has(end.pipe, end.direction)
    })
}

/// If a group has one unreadable process, gives it the ends that the group lacks: ends of pipes that no other process
/// of the group reads or writes. With several unreadable processes, it isn't known which process has which end.
pub fn fill_gaps(processes: &mut [Process]) {
    let is_hidden = |process: &Process| process.ends.is_none() && process.state != 'Z';
    let hidden: Vec<(u32, u32)> = processes
        .iter()
        .filter(|process| is_hidden(process))
        // Processes started by a hidden one are not part of the group.
        .filter(|process| {
            let started = |parent: &Process| parent.pid == process.parent && parent.group == process.group;
            !processes.iter().any(|parent| started(parent) && is_hidden(parent))
        })
        .map(|process| (process.pid, process.group))
        .collect();
    for &(pid, group) in &hidden {
        if hidden.iter().filter(|&&(_, other)| other == group).count() > 1 {
            continue;
        }
        let held = |direction: Direction| {
            let ends =
                processes.iter().flat_map(|process| process.ends.iter().flatten().map(move |end| (process, end)));
            ends.filter(move |(_, end)| end.direction == direction && end.fd < 2)
                .map(|(process, end)| (process.group, end.pipe))
        };
        let lacking = |direction: Direction, other: Direction| {
            let all = BTreeSet::from_iter(held(other).map(|(_, pipe)| pipe));
            let own = held(direction).filter(|(of, pipe)| *of == group && !all.contains(pipe)).map(|(_, pipe)| pipe);
            BTreeSet::from_iter(own)
        };
        let (reads, writes) = (lacking(Direction::Out, Direction::In), lacking(Direction::In, Direction::Out));
        let end = |fd: u32, direction: Direction| move |pipe: PipeId| PipeEnd { fd, pipe, direction };
        let ends = reads
            .into_iter()
            .map(end(0, Direction::In))
            .chain(writes.into_iter().map(end(1, Direction::Out)))
            .collect();
        if let Some(process) = processes.iter_mut().find(|process| process.pid == pid) {
            process.ends = Some(ends);
        }
    }
}

/// The stages of the pipeline that contains `seeds`, each once, in the order of the data. A process without a pipe
/// belongs to the stage of its parent. Without any pipe, the seeds are one stage.
pub fn stages(processes: &[Process], seeds: &[u32], reach: Reach) -> Vec<StageShape> {
    let graph = pipe_graph(processes);
    let sides = find_joined(&graph, seeds, reach);
    let members: Vec<u32> = sides.keys().copied().collect();
    let inner = |pipe: PipeId| {
        let held = |direction| {
            members.iter().any(|pid| graph.ends[pid].iter().any(|end| end.pipe == pipe && end.direction == direction))
        };
        held(Direction::In) && held(Direction::Out)
    };
    let ends = members
        .iter()
        .map(|&pid| (pid, graph.ends[&pid].iter().filter(|end| inner(end.pipe)).copied().collect::<Vec<_>>()))
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
    let shapes: Vec<StageShape> = groups.values().map(|pids| shape(pids, &graph)).collect();
    let uses = |shape: &StageShape, pipe: &PipeId| shape.ins.contains(pipe) || shape.outs.contains(pipe);
    // A pipe within a stage is neither the stage's input nor its output.
    let leads = |pipe: &PipeId| shapes.iter().filter(|shape| uses(shape, pipe)).count() > 1;
    let leading = |pipes: &[PipeId]| pipes.iter().copied().filter(leads).collect();
    let outer =
        |one: &StageShape| StageShape { pids: one.pids.clone(), ins: leading(&one.ins), outs: leading(&one.outs) };
    let mut stages: Vec<StageShape> = shapes.iter().map(outer).collect();
    // If the data leaves the order open, stages are sorted by start time.
    stages.sort_by_key(|stage| graph.processes[&stage.pids[0]].start);
    upstream_first(stages, |from, to| from != to && from.outs.iter().any(|pipe| to.ins.contains(pipe)))
}

fn find_joined(graph: &PipeGraph<'_>, seeds: &[u32], reach: Reach) -> BTreeMap<u32, LinkSide> {
    let mut sides: BTreeMap<u32, LinkSide> = BTreeMap::new();
    let mut waiting: Vec<(u32, LinkSide)> = seeds.iter().map(|&pid| (pid, LinkSide::Seed)).collect();
    while let Some((pid, side)) = waiting.pop() {
        if !graph.processes.contains_key(&pid) || sides.get(&pid).is_some_and(|&known| known <= side) {
            continue;
        }
        sides.insert(pid, side);
        if reach == Reach::Given {
            continue;
        }
        for &end in &graph.ends[&pid] {
            let next = if end.direction == Direction::In { LinkSide::Upstream } else { LinkSide::Downstream };
            let allowed = match side {
                LinkSide::Seed => true,
                LinkSide::Outer(down) => down == (next == LinkSide::Downstream),
                _ => side == next,
            };
            if allowed {
                let joint = |standard| if standard { next } else { LinkSide::Outer(next == LinkSide::Downstream) };
                waiting.extend(graph.opposite(pid, end).map(|(other, standard)| (other, joint(standard))));
            }
        }
        if !matches!(side, LinkSide::Outer(_)) {
            let children = graph.processes.values().filter(|process| process.parent == pid);
            waiting.extend(children.map(|process| (process.pid, side)));
        }
    }
    sides
}

/// Maps each process that holds a pipe to its stage, identified by one of its processes.
fn stage_by_process(graph: &PipeGraph<'_>, ends: &BTreeMap<u32, Vec<PipeEnd>>) -> BTreeMap<u32, u32> {
    let next = |pid: u32| {
        let outs = ends[&pid].iter().filter(|end| end.direction == Direction::Out);
        outs.flat_map(|out| {
            let reads = move |end: &PipeEnd| end.pipe == out.pipe && end.direction == Direction::In;
            ends.iter().filter(move |(_, ends)| ends.iter().any(reads)).map(|(&pid, _)| pid)
        })
    };
    let leads_to = |from: u32, to: u32, without: u32| {
        let (mut seen, mut waiting) = (BTreeSet::from_iter([without]), vec![from]);
        while let Some(pid) = waiting.pop() {
            if seen.insert(pid) {
                if pid != from && pid == to {
                    return true;
                }
                waiting.extend(next(pid));
            }
        }
        false
    };
    let mut stage_of = BTreeMap::from_iter(ends.keys().map(|&pid| (pid, pid)));
    for &elder in ends.keys() {
        let shares = |pid: u32| {
            ends[&pid]
                .iter()
                .any(|end| ends[&elder].iter().any(|own| own.pipe == end.pipe && own.direction == end.direction))
        };
        // Whether the standard input or output of `pid` or `elder` is a pipe to the other process. Other pipes between
        // the two, such as the queues of a worker pool, are within the stage.
        let is_piped_to_elder = |pid: u32| {
            let joint = |end: &PipeEnd, own: &PipeEnd| {
                own.pipe == end.pipe && own.direction != end.direction && end.fd.min(own.fd) < 2
            };
            ends[&pid].iter().any(|end| ends[&elder].iter().any(|own| joint(end, own)))
        };
        let family = ends.keys().copied().filter(|&pid| pid != elder && graph.is_ancestor(elder, pid));
        let family: Vec<u32> = family.filter(|&pid| shares(pid) && !is_piped_to_elder(pid)).collect();
        // A shell that only waits for the pipeline it was asked to run is not a stage.
        if family.iter().any(|&from| family.iter().any(|&to| from != to && leads_to(from, to, elder))) {
            stage_of.remove(&elder);
            continue;
        }
        for pid in family {
            let (Some(&old), Some(&new)) = (stage_of.get(&pid), stage_of.get(&elder)) else { continue };
            stage_of.values_mut().filter(|stage| **stage == old).for_each(|stage| *stage = new);
        }
    }
    stage_of
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

/// Sorts stages in the order of the data. If the data allows several orders, or flows in a cycle, keeps the given
/// order.
pub fn upstream_first<T>(mut left: Vec<T>, feeds: impl Fn(&T, &T) -> bool) -> Vec<T> {
    let mut done = Vec::new();
    while !left.is_empty() {
        let is_first = |stage: &T| !left.iter().any(|other| feeds(other, stage));
        let next = left.iter().position(is_first).unwrap_or(0);
        done.push(left.remove(next));
    }
    done
}

#[cfg(test)]
mod tests;
