//! All processes of the machine, with an index from each pipe and socket to its holders. The first reading is complete.
//! Later readings add and remove processes, and read others again only as time allows.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use crate::process::{self, Direction, PipeId, Process};

/// The processes as last read.
#[derive(Debug, Default)]
pub struct ProcessTable {
    processes: BTreeMap<u32, Process>,
    /// Kernel threads, which are read once.
    of_kernel: HashSet<u32>,
    /// The process after which reading again continues.
    last: u32,
    /// Whether all processes that existed at the last refresh have been read.
    complete: bool,
    holders: HashMap<PipeId, HashSet<u32>>,
    holders_of_sockets: HashMap<u64, HashSet<u32>>,
}

impl ProcessTable {
    /// Adds the processes that are new and removes those that have exited. Then reads processes again, each in its turn.
    /// Stops when this much CPU time has passed, by `clock`; without a limit, reads all processes.
    pub fn refresh(&mut self, limit: Option<Duration>, clock: impl Fn() -> Duration) {
        let begin = clock();
        let is_over = || limit.is_some_and(|limit| clock().saturating_sub(begin) >= limit);
        let own = std::process::id();
        let pids: HashSet<u32> = process::pids().into_iter().filter(|&pid| pid != own).collect();
        let gone: Vec<u32> = self.processes.keys().copied().filter(|pid| !pids.contains(pid)).collect();
        gone.into_iter().for_each(|pid| self.remove(pid));
        self.of_kernel.retain(|pid| pids.contains(pid));
        let mut new: Vec<u32> = pids.into_iter().filter(|pid| !self.is_known(*pid)).collect();
        new.sort_unstable();
        self.complete = true;
        for pid in new {
            if is_over() {
                self.complete = false;
                return;
            }
            self.read(pid);
        }
        // Reading old processes again takes a part of the time only.
        let limit = limit.map(|limit| limit / 8);
        let begin = clock();
        let is_over = || limit.is_some_and(|limit| clock().saturating_sub(begin) >= limit);
        let known: Vec<u32> = self
            .processes
            .range(self.last + 1..)
            .chain(self.processes.range(..=self.last))
            .map(|(&pid, _)| pid)
            .collect();
        for pid in known {
            if limit.is_none() || is_over() {
                return;
            }
            self.read(pid);
            self.last = pid;
        }
    }

    fn is_known(&self, pid: u32) -> bool {
        self.processes.contains_key(&pid) || self.of_kernel.contains(&pid)
    }

    fn read(&mut self, pid: u32) {
        match Process::read_stat(pid) {
            Some(process) if process.of_kernel => drop(self.of_kernel.insert(pid)),
            Some(process) => self.insert(process.with_ends()),
            None => self.remove(pid),
        }
    }

    /// Replaces a process by a later reading of it.
    pub fn insert(&mut self, process: Process) {
        self.remove(process.pid);
        for end in process.ends.iter().flatten() {
            self.holders.entry(end.pipe).or_default().insert(process.pid);
        }
        for (_, inode) in &process.others.sockets {
            self.holders_of_sockets.entry(*inode).or_default().insert(process.pid);
        }
        self.processes.insert(process.pid, process);
    }

    fn remove(&mut self, pid: u32) {
        let Some(old) = self.processes.remove(&pid) else { return };
        for end in old.ends.iter().flatten() {
            if let Some(holders) = self.holders.get_mut(&end.pipe) {
                holders.remove(&pid);
                if holders.is_empty() {
                    self.holders.remove(&end.pipe);
                }
            }
        }
        for (_, inode) in &old.others.sockets {
            if let Some(holders) = self.holders_of_sockets.get_mut(inode) {
                holders.remove(&pid);
                if holders.is_empty() {
                    self.holders_of_sockets.remove(inode);
                }
            }
        }
    }

    /// Whether all processes that existed at the last refresh have been read.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    pub fn processes(&self) -> impl Iterator<Item = &Process> {
        self.processes.values()
    }

    pub fn len(&self) -> usize {
        self.processes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.processes.is_empty()
    }

    /// The process with the smallest pid that holds a socket: its pid and name.
    pub fn holder_of_socket(&self, inode: u64) -> Option<(u32, String)> {
        let pid = self.holders_of_sockets.get(&inode)?.iter().min()?;
        Some((*pid, self.processes.get(pid)?.comm.clone()))
    }

    /// A process that holds this end of a pipe and isn't excluded: its pid and name. Prefers a process that has the end
    /// as standard input or output.
    pub fn holder_of_pipe(
        &self,
        pipe: PipeId,
        direction: Direction,
        is_excluded: impl Fn(u32) -> bool,
    ) -> Option<(u32, String)> {
        let fd = if direction == Direction::Out { 1 } else { 0 };
        let end = |process: &Process| {
            let ends = process.ends.as_deref().unwrap_or_default().iter();
            ends.filter(|end| end.pipe == pipe && (end.direction == direction || end.direction == Direction::Both))
                .map(|end| end.fd != fd)
                .min()
        };
        let holders = self.holders.get(&pipe)?.iter().filter(|&&pid| !is_excluded(pid));
        let holders = holders.filter_map(|pid| self.processes.get(pid));
        let holders = holders.filter_map(|process| Some((end(process)?, process.pid, &process.comm)));
        holders.min().map(|(_, pid, name)| (pid, name.clone()))
    }

    /// The processes that pipes, sockets or parents join to these, directly or through others, with all processes of
    /// their groups. A superset of the pipeline, to which the search for stages is limited. `with_parents` has processes
    /// that a socket may join to their parents.
    pub fn joined_to(&self, seeds: &[u32], with_parents: &HashSet<u32>) -> Vec<Process> {
        /// The maximum number of generations above the seeds that are included.
        const MAX_GENERATIONS: usize = 65;
        let (mut children, mut groups) = (HashMap::<u32, Vec<u32>>::new(), HashMap::<u32, Vec<u32>>::new());
        for process in self.processes.values() {
            children.entry(process.parent).or_default().push(process.pid);
            groups.entry(process.group).or_default().push(process.pid);
        }
        let (mut found, mut pipes, mut seen) = (HashSet::new(), HashSet::new(), HashSet::new());
        let mut waiting = seeds.to_vec();
        while let Some(pid) = waiting.pop() {
            let Some(process) = self.processes.get(&pid).filter(|_| found.insert(pid)) else { continue };
            waiting.extend(children.get(&pid).into_iter().flatten());
            if seen.insert(process.group) {
                waiting.extend(groups.get(&process.group).into_iter().flatten());
            }
            if with_parents.contains(&pid) || process.others.sockets.iter().any(|(fd, _)| *fd < 3) {
                waiting.push(process.parent);
            }
            for end in process.ends.iter().flatten().filter(|end| pipes.insert(end.pipe)) {
                waiting.extend(self.holders.get(&end.pipe).into_iter().flatten());
            }
        }
        let mut elders = HashSet::new();
        for pid in &found {
            let parent = |pid: &u32| self.processes.get(pid).map(|process| process.parent);
            let above = std::iter::successors(parent(pid), parent).take(MAX_GENERATIONS);
            for elder in above.filter(|elder| !found.contains(elder)) {
                if !elders.insert(elder) {
                    break;
                }
            }
        }
        found.extend(elders);
        let mut pids: Vec<u32> = found.into_iter().collect();
        pids.sort_unstable();
        pids.iter().filter_map(|pid| self.processes.get(pid)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, parent: u32, group: u32, ends: &[(u32, u64, Direction)]) -> Process {
        let stat = format!("{pid} (p{pid}) S {parent} {group} 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {pid} 0 0");
        let end =
            |&(fd, pipe, direction): &(u32, u64, Direction)| process::PipeEnd { fd, pipe: PipeId(0, pipe), direction };
        Process { ends: Some(ends.iter().map(end).collect()), ..Process::parse(pid, &stat).unwrap() }
    }

    use Direction::{In, Out};

    #[test]
    fn holders_are_those_of_the_last_reading() {
        let mut table = ProcessTable::default();
        table.insert(process(10, 1, 10, &[(5, 100, Out)]));
        table.insert(process(11, 1, 11, &[(1, 100, Out)]));
        let holder = |table: &ProcessTable, not: u32| table.holder_of_pipe(PipeId(0, 100), Out, |pid| pid == not);
        assert_eq!(holder(&table, 0), Some((11, "p11".to_owned())), "as standard output");
        assert_eq!(holder(&table, 11), Some((10, "p10".to_owned())));
        table.insert(process(10, 1, 10, &[]));
        assert_eq!(holder(&table, 11), None);
        table.remove(11);
        assert_eq!((holder(&table, 0), table.holders.len(), table.len()), (None, 0, 1));
    }

    #[test]
    fn only_what_may_be_joined_is_searched() {
        let mut table = ProcessTable::default();
        table.insert(process(1, 0, 1, &[]));
        table.insert(process(5, 1, 5, &[]));
        table.insert(process(10, 5, 10, &[(1, 100, Out)]));
        table.insert(process(11, 5, 10, &[(0, 100, In)]));
        table.insert(process(12, 11, 12, &[]));
        table.insert(process(20, 5, 20, &[(1, 200, Out)]));
        let pids =
            |seed: u32| table.joined_to(&[seed], &HashSet::new()).iter().map(|process| process.pid).collect::<Vec<_>>();
        assert_eq!(pids(10), [1, 5, 10, 11, 12]);
        assert_eq!(pids(20), [1, 5, 20]);
    }

    #[test]
    fn a_process_that_starts_is_added_and_one_that_ends_is_removed() {
        let cpu = || Duration::ZERO;
        let mut table = ProcessTable::default();
        table.refresh(None, cpu);
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        assert!(table.is_complete() && !table.processes.contains_key(&child.id()));
        table.refresh(Some(Duration::MAX), cpu);
        assert!(table.processes.contains_key(&child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        table.refresh(Some(Duration::ZERO), cpu);
        assert!(!table.processes.contains_key(&child.id()));
        // Without time, a new process isn't read, and the table says so.
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        table.refresh(Some(Duration::ZERO), cpu);
        assert!(!table.is_complete());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
