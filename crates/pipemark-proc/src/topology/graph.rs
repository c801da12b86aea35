//! The ends of pipes by which processes may be joined, indexed by pipe. Each search follows an end at most once, so
//! that its time grows with the number of ends, not with the number of pairs of processes.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::process::{Direction, PipeEnd, PipeId, Process};

/// The maximum number of generations that are searched for an ancestor. Reused pids may form a cycle.
const MAX_GENERATIONS: usize = 65;

/// How a process was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum LinkSide {
    Seed,
    Upstream,
    Downstream,
    /// Through a descriptor other than standard input and output, as for a program that started a pipeline and feeds
    /// it. `true` if the process was found downstream.
    Outer(bool),
}

/// All processes, with the ends by which they may be joined.
pub(super) struct PipeGraph<'p> {
    pub processes: BTreeMap<u32, &'p Process>,
    /// The ends of each process that may lead to other stages, by pid. A process has at most one end of each pipe.
    pub ends: BTreeMap<u32, Vec<PipeEnd>>,
}

/// A process that holds an end of a pipe, and the descriptor.
type Holder = (u32, u32);

/// The processes that hold one end of a pipe.
#[derive(Default)]
struct Holders {
    all: Vec<Holder>,
    by_group: HashMap<u32, Vec<Holder>>,
    /// Holders by those of their ancestors that hold the pipe's other end.
    by_ancestor: HashMap<u32, Vec<Holder>>,
}

/// The other direction of a pipe.
pub(super) fn opposite(direction: Direction) -> Direction {
    if direction == Direction::In { Direction::Out } else { Direction::In }
}

/// The ends of a process that may lead to other stages.
pub(super) fn ends_to_stages(process: &Process) -> Vec<PipeEnd> {
    let ends = process.ends.as_deref().unwrap_or_default();
    let (mut reads, mut writes) = (HashSet::new(), HashSet::new());
    for end in ends {
        if end.direction != Direction::Out {
            reads.insert(end.pipe);
        }
        if end.direction != Direction::In {
            writes.insert(end.pipe);
        }
    }
    let both = |pipe: PipeId| reads.contains(&pipe) && writes.contains(&pipe);
    let wrong_way = |end: &PipeEnd| {
        (end.fd == 0 && end.direction == Direction::Out) || (end.fd == 1 && end.direction == Direction::In)
    };
    let writes_data = ends.iter().any(|end| end.fd != 2 && end.direction == Direction::Out);
    let mut seen = HashSet::new();
    let ends = ends.iter().filter(|end| (end.fd != 2 || !writes_data) && !both(end.pipe) && !wrong_way(end));
    ends.filter(|end| seen.insert(end.pipe)).copied().collect()
}

/// Whether a process has this end of a pipe at this descriptor.
fn has_end(process: &Process, end: &PipeEnd) -> bool {
    let ends = process.ends.as_deref().unwrap_or_default();
    let first = ends.partition_point(|own| own.fd < end.fd);
    ends[first..].iter().take_while(|own| own.fd == end.fd).any(|own| own == end)
}

impl<'p> PipeGraph<'p> {
    pub fn of(processes: &'p [Process]) -> PipeGraph<'p> {
        let mut graph = PipeGraph {
            processes: BTreeMap::from_iter(processes.iter().map(|process| (process.pid, process))),
            ends: BTreeMap::new(),
        };
        let all = BTreeMap::from_iter(processes.iter().map(|process| (process.pid, ends_to_stages(process))));
        let (mut used, mut inputs) = (HashSet::new(), HashSet::new());
        for (&pid, end) in all.iter().flat_map(|(pid, ends)| ends.iter().map(move |end| (pid, end))) {
            used.insert((pid, end.pipe, end.direction));
            if end.fd == 0 && end.direction == Direction::In {
                inputs.insert((graph.processes[&pid].group, end.pipe));
            }
        }
        for (&pid, ends) in &all {
            let group = graph.processes[&pid].group;
            // Removes inherited ends that another process uses, such as /dev/fd/63 of another process substitution.
            let is_used_by = |elder: &Process, end: &PipeEnd| {
                has_end(elder, end) && used.contains(&(elder.pid, end.pipe, end.direction))
            };
            // Standard error that is the parent's too, as of all commands of a script, was not redirected for this process.
            let inherited = |end: &PipeEnd| match end.fd {
                0 | 1 => false,
                2 => graph.ancestry(pid).skip(1).any(|elder| has_end(elder, end)),
                _ => graph.ancestry(pid).skip(1).any(|elder| is_used_by(elder, end)),
            };
            let read_as_input = |end: &PipeEnd| inputs.contains(&(group, end.pipe));
            let kept = ends.iter().filter(|end| !inherited(end) && (end.fd != 2 || read_as_input(end)));
            let kept = kept.copied().collect();
            graph.ends.insert(pid, kept);
        }
        graph
    }

    /// A process, its parent, and so on up.
    pub fn ancestry(&self, pid: u32) -> impl Iterator<Item = &'p Process> {
        let parent = |process: &&Process| self.processes.get(&process.parent).copied();
        std::iter::successors(self.processes.get(&pid).copied(), parent).take(MAX_GENERATIONS)
    }

    /// The processes that pipes join to the seeds, with the seeds and with the children of all of these.
    pub fn joined(&self, seeds: &[u32]) -> BTreeMap<u32, LinkSide> {
        let mut holders: HashMap<(PipeId, Direction), Holders> = HashMap::new();
        for (&pid, ends) in &self.ends {
            for end in ends {
                let found = holders.entry((end.pipe, end.direction)).or_default();
                found.all.push((pid, end.fd));
                found.by_group.entry(self.processes[&pid].group).or_default().push((pid, end.fd));
            }
        }
        let holds: HashMap<(u32, PipeId, Direction), u32> = self
            .ends
            .iter()
            .flat_map(|(&pid, ends)| ends.iter().map(move |end| ((pid, end.pipe, end.direction), end.fd)))
            .collect();
        for (&(pipe, direction), found) in &mut holders {
            for &(pid, fd) in &found.all {
                let elders = self.ancestry(pid).skip(1).map(|elder| elder.pid);
                for elder in elders.filter(|&elder| holds.contains_key(&(elder, pipe, opposite(direction)))) {
                    found.by_ancestor.entry(elder).or_default().push((pid, fd));
                }
            }
        }
        let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
        self.processes.values().for_each(|process| children.entry(process.parent).or_default().push(process.pid));
        let mut sides: BTreeMap<u32, LinkSide> = BTreeMap::new();
        let mut waiting: Vec<(u32, LinkSide)> = seeds.iter().map(|&pid| (pid, LinkSide::Seed)).collect();
        // What was already followed: the ends of a pipe in a direction, of all holders and of those in a group.
        let mut followed: HashSet<(PipeId, LinkSide, Option<u32>)> = HashSet::new();
        while let Some((pid, side)) = waiting.pop() {
            if !self.processes.contains_key(&pid) || sides.get(&pid).is_some_and(|&known| known <= side) {
                continue;
            }
            sides.insert(pid, side);
            for end in &self.ends[&pid] {
                let next = if end.direction == Direction::In { LinkSide::Upstream } else { LinkSide::Downstream };
                let allowed = match side {
                    LinkSide::Seed => true,
                    LinkSide::Outer(down) => down == (next == LinkSide::Downstream),
                    _ => side == next,
                };
                let other = opposite(end.direction);
                let Some(found) = holders.get(&(end.pipe, other)).filter(|_| allowed) else { continue };
                let joint = |fd: u32| if fd < 2 { next } else { LinkSide::Outer(next == LinkSide::Downstream) };
                let joints = |found: &[Holder]| found.iter().map(|&(pid, fd)| (pid, joint(fd))).collect::<Vec<_>>();
                if end.fd < 2 && followed.insert((end.pipe, next, None)) {
                    waiting.extend(found.all.iter().filter(|(_, fd)| *fd < 2).map(|&(pid, _)| (pid, next)));
                }
                let group = self.processes[&pid].group;
                if followed.insert((end.pipe, next, Some(group))) {
                    waiting.extend(found.by_group.get(&group).map(|found| joints(found)).unwrap_or_default());
                }
                waiting.extend(found.by_ancestor.get(&pid).map(|found| joints(found)).unwrap_or_default());
                let elders = self.ancestry(pid).skip(1).map(|elder| elder.pid);
                waiting.extend(elders.filter_map(|elder| Some((elder, joint(*holds.get(&(elder, end.pipe, other))?)))));
            }
            if !matches!(side, LinkSide::Outer(_)) {
                waiting.extend(children.get(&pid).into_iter().flatten().map(|&child| (child, side)));
            }
        }
        sides
    }
}
