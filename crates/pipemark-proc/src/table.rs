//! All processes of the machine, with an index from each pipe and socket to its holders. A reading stops when its time
//! is over, and the next one goes on.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::ReadDir;
use std::time::Duration;

use crate::process::{Direction, PipeId, Process};

/// The processes as last read.
#[derive(Debug, Default)]
pub struct ProcessTable {
    processes: BTreeMap<u32, Process>,
    /// Kernel threads, which are read once.
    of_kernel: HashSet<u32>,
    /// The pass over /proc that the last refresh began and didn't end.
    pass: Option<Pass>,
    /// Whether a pass has ended.
    has_passed: bool,
    /// The process after which reading again continues.
    last: u32,
    holders: HashMap<PipeId, BTreeSet<u32>>,
    holders_of_sockets: HashMap<u64, BTreeSet<u32>>,
    children: HashMap<u32, BTreeSet<u32>>,
    groups: HashMap<u32, BTreeSet<u32>>,
}

/// A pass over the list of all processes.
#[derive(Debug)]
struct Pass {
    entries: ReadDir,
    seen: HashSet<u32>,
}

impl ProcessTable {
    /// Adds the processes that are new and removes those that have exited, in a pass over all processes. Then reads
    /// processes again, each in its turn. Stops when this much CPU time has passed, by `clock`; the next call goes on.
    /// Without a limit, makes a whole pass. Returns whether a pass has ended, so that the table has all processes that
    /// existed when it began.
    pub fn refresh(&mut self, limit: Option<Duration>, clock: impl Fn() -> Duration) -> bool {
        /// The number of known processes in the list between two readings of the clock.
        const ENTRIES_PER_CHECK: usize = 32;
        let begin = clock();
        let is_over = |part: u32| limit.is_some_and(|limit| clock().saturating_sub(begin) >= limit / part);
        let own = std::process::id();
        let begun = self.pass.take().filter(|_| limit.is_some());
        let Some(mut pass) =
            begun.or_else(|| Some(Pass { entries: std::fs::read_dir("/proc").ok()?, seen: HashSet::new() }))
        else {
            return false;
        };
        let mut checked = 0;
        while let Some(entry) = pass.entries.next() {
            let pid = entry.ok().and_then(|entry| entry.file_name().to_str()?.parse().ok());
            let Some(pid) = pid.filter(|&pid| pid != own) else { continue };
            pass.seen.insert(pid);
            let is_new = !self.is_known(pid);
            if is_new {
                self.read(pid);
            }
            checked += 1;
            if (is_new || checked % ENTRIES_PER_CHECK == 0) && is_over(1) {
                self.pass = Some(pass);
                return false;
            }
        }
        let gone: Vec<u32> = self.processes.keys().copied().filter(|pid| !pass.seen.contains(pid)).collect();
        gone.into_iter().for_each(|pid| self.remove(pid));
        self.of_kernel.retain(|pid| pass.seen.contains(pid));
        self.has_passed = true;
        // Reading old processes again takes what is left of an eighth of the time. Those whose descriptors would take
        // longer than the limit aren't read again.
        while limit.is_some() && !is_over(8) {
            let next = self.processes.range(self.last + 1..).next();
            let Some((&pid, process)) = next else {
                self.last = 0;
                break;
            };
            self.last = pid;
            if limit.is_none_or(|limit| cost(process) <= limit) {
                self.read(pid);
            }
        }
        true
    }

    /// Whether a pass has ended, so that the table has all processes that existed when it began.
    pub fn has_passed(&self) -> bool {
        self.has_passed
    }

    /// Whether the last refresh has ended a pass.
    pub fn is_complete(&self) -> bool {
        self.has_passed && self.pass.is_none()
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
        self.children.entry(process.parent).or_default().insert(process.pid);
        self.groups.entry(process.group).or_default().insert(process.pid);
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
            remove_from(&mut self.holders, end.pipe, pid);
        }
        for (_, inode) in &old.others.sockets {
            remove_from(&mut self.holders_of_sockets, *inode, pid);
        }
        remove_from(&mut self.children, old.parent, pid);
        remove_from(&mut self.groups, old.group, pid);
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
        let pid = self.holders_of_sockets.get(&inode)?.first()?;
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
        let (mut found, mut pipes, mut seen) = (HashSet::new(), HashSet::new(), HashSet::new());
        let mut waiting = seeds.to_vec();
        while let Some(pid) = waiting.pop() {
            let Some(process) = self.processes.get(&pid).filter(|_| found.insert(pid)) else { continue };
            waiting.extend(self.children.get(&pid).into_iter().flatten());
            if seen.insert(process.group) {
                waiting.extend(self.groups.get(&process.group).into_iter().flatten());
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

/// About the CPU time that reading a process takes.
fn cost(process: &Process) -> Duration {
    const OF_DESCRIPTOR: Duration = Duration::from_micros(2);
    OF_DESCRIPTOR * u32::try_from(process.descriptors()).unwrap_or(u32::MAX)
}

/// Removes a process from the entry of this key.
fn remove_from<K: Eq + std::hash::Hash>(index: &mut HashMap<K, BTreeSet<u32>>, key: K, pid: u32) {
    if let Some(pids) = index.get_mut(&key) {
        pids.remove(&pid);
        if pids.is_empty() {
            index.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process;

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
        assert!(table.refresh(None, cpu));
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        assert!(!table.processes.contains_key(&child.id()));
        assert!(table.refresh(Some(Duration::MAX), cpu));
        assert!(table.processes.contains_key(&child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(table.refresh(Some(Duration::MAX), cpu));
        assert!(!table.processes.contains_key(&child.id()));
    }

    #[test]
    fn a_pass_over_all_processes_continues_where_its_time_was_over() {
        let mut children: Vec<_> =
            (0..100).map(|_| std::process::Command::new("sleep").arg("60").spawn().unwrap()).collect();
        let mut table = ProcessTable::default();
        // The clock advances by a second whenever it is read.
        let time = std::cell::Cell::new(0);
        let clock = || Duration::from_secs(time.replace(time.get() + 1));
        let mut calls = 1;
        while !table.refresh(Some(Duration::from_secs(10)), clock) {
            calls += 1;
        }
        let found = children.iter().filter(|child| table.processes.contains_key(&child.id())).count();
        children.iter_mut().for_each(|child| child.kill().and_then(|()| child.wait()).map(drop).unwrap());
        assert_eq!(found, 100);
        assert!(calls >= 10, "{calls} calls");
        // All have ended, and a whole pass finds that.
        while !table.refresh(Some(Duration::from_secs(10)), clock) {}
        assert!(children.iter().all(|child| !table.processes.contains_key(&child.id())));
        assert!(
            table
                .children
                .get(&std::process::id())
                .is_none_or(|own| children.iter().all(|child| !own.contains(&child.id())))
        );
    }
}
