//! Follows data from process to process through pipes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use crate::process::{Direction, PipeEnd, PipeId};

/// The maximum number of ends of pipes that are followed, for each end that exists. Wrappers nested thousands deep would
/// take time that grows by the square. Beyond the limit, data counts as not flowing, so that a wrapper and what it
/// wraps are one stage.
const MAX_STEPS_PER_END: usize = 256;

/// The pipes that each process writes, and the processes that read each pipe.
pub(super) struct DataFlow<'e> {
    ends: &'e BTreeMap<u32, Vec<PipeEnd>>,
    readers: HashMap<PipeId, Vec<u32>>,
    /// The processes that data in these pipes may reach.
    reached: HashMap<Vec<PipeId>, Rc<HashSet<u32>>>,
    steps_left: usize,
}

impl<'e> DataFlow<'e> {
    pub fn of(ends: &'e BTreeMap<u32, Vec<PipeEnd>>) -> DataFlow<'e> {
        let mut readers: HashMap<PipeId, Vec<u32>> = HashMap::new();
        for (&pid, ends) in ends {
            let ins = ends.iter().filter(|end| end.direction == Direction::In);
            ins.for_each(|end| readers.entry(end.pipe).or_default().push(pid));
        }
        let count: usize = ends.values().map(Vec::len).sum();
        let steps_left = (count + 1024) * MAX_STEPS_PER_END;
        DataFlow { ends, readers, reached: HashMap::new(), steps_left }
    }

    fn outs(&self, pid: u32) -> impl Iterator<Item = PipeId> + use<'e> {
        let ends: &'e [PipeEnd] = self.ends.get(&pid).map(Vec::as_slice).unwrap_or_default();
        ends.iter().filter(|end| end.direction == Direction::Out).map(|end| end.pipe)
    }

    /// Whether data that one of these processes writes reaches another of them, not through `elder`.
    pub fn joins_any(&mut self, family: &[u32], elder: u32) -> bool {
        if family.len() < 2 {
            return false;
        }
        let mut outs: Vec<PipeId> = family.iter().flat_map(|&pid| self.outs(pid)).collect();
        outs.sort_unstable();
        outs.dedup();
        // Processes side by side that write the same pipes have this in common.
        let reached = self.reached_from(outs);
        family.iter().any(|pid| reached.contains(pid)) && self.joins_two(family, elder)
    }

    fn reached_from(&mut self, outs: Vec<PipeId>) -> Rc<HashSet<u32>> {
        if let Some(known) = self.reached.get(&outs) {
            return Rc::clone(known);
        }
        let (mut reached, mut seen, mut waiting) = (HashSet::new(), HashSet::new(), outs.clone());
        while let Some(pipe) = waiting.pop() {
            if !seen.insert(pipe) {
                continue;
            }
            let readers = self.readers.get(&pipe).map(Vec::as_slice).unwrap_or_default();
            let Some(left) = self.steps_left.checked_sub(readers.len() + 1) else { break };
            self.steps_left = left;
            for &reader in readers {
                if reached.insert(reader) {
                    waiting.extend(self.outs(reader));
                }
            }
        }
        let reached = Rc::new(reached);
        self.reached.insert(outs, Rc::clone(&reached));
        reached
    }

    /// As [`DataFlow::joins_any`], exactly: data that returns to the process that wrote it doesn't count.
    fn joins_two(&mut self, family: &[u32], elder: u32) -> bool {
        let members: HashSet<u32> = family.iter().copied().collect();
        // Pipes with the writers whose data they carry. Two writers suffice, because a reader differs from one of them.
        let mut carried: HashMap<PipeId, Vec<u32>> = HashMap::new();
        let mut waiting: Vec<(u32, u32)> = family.iter().map(|&pid| (pid, pid)).collect();
        let mut seen = HashSet::new();
        while let Some((pid, source)) = waiting.pop() {
            if !seen.insert((pid, source)) {
                continue;
            }
            for pipe in self.outs(pid) {
                let sources = carried.entry(pipe).or_default();
                if sources.len() == 2 || sources.contains(&source) {
                    continue;
                }
                sources.push(source);
                let readers = self.readers.get(&pipe).map(Vec::as_slice).unwrap_or_default();
                let Some(left) = self.steps_left.checked_sub(readers.len() + 1) else { return false };
                self.steps_left = left;
                for &reader in readers.iter().filter(|&&reader| reader != elder) {
                    if !members.contains(&reader) {
                        waiting.push((reader, source));
                    } else if reader != source {
                        return true;
                    }
                }
            }
        }
        false
    }
}
