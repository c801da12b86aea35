//! Reads the known processes of a pipeline and their descendants.

use std::collections::{BTreeMap, HashMap, HashSet};

use pipemark_proc::process::{self, Process};

use super::extent::ScanExtent;
use crate::pipeline::WatchedPipeline;
use crate::subject::Subject;

/// The known processes that still exist, and all descendants of these processes and of the root. Those outside the
/// extent are as last read.
pub fn family(pipeline: &WatchedPipeline, extent: ScanExtent<'_>) -> Vec<Process> {
    let mut found: BTreeMap<u32, Process> = BTreeMap::new();
    let mut waiting: Vec<u32> = pipeline.known.keys().chain(pipeline.orphans.keys()).copied().collect();
    if let Subject::Child(root) = pipeline.subject {
        waiting.push(root);
    }
    let own = std::process::id();
    while let Some(pid) = waiting.pop() {
        if pid == own || found.contains_key(&pid) {
            continue;
        }
        if let Some(known) = pipeline.known.get(&pid).filter(|_| !extent.includes(pid)) {
            found.insert(pid, known.process.clone());
            continue;
        }
        let Some(process) = Process::read(pid) else { continue };
        // The pid was reused by another process.
        let start = pipeline.known.get(&pid).map(|known| known.process.start).or(pipeline.orphans.get(&pid).copied());
        if start.is_some_and(|start| start != process.start) {
            continue;
        }
        match process::children(pid, &process.thread_ids()) {
            Some(children) => waiting.extend(children),
            None => return family_of_all(pipeline),
        }
        found.insert(pid, process);
    }
    found.into_values().collect()
}

/// Like `family`, for kernels that do not list children.
fn family_of_all(pipeline: &WatchedPipeline) -> Vec<Process> {
    let mut all = process::all();
    let is_orphan = |process: &&Process| pipeline.orphans.get(&process.pid) == Some(&process.start);
    let orphans = all.iter().filter(is_orphan).map(|process| process.pid);
    let mut kept: HashSet<u32> = pipeline.known.keys().copied().chain(orphans).collect();
    if let Subject::Child(root) = pipeline.subject {
        kept.insert(root);
    }
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    all.iter().for_each(|process| children.entry(process.parent).or_default().push(process.pid));
    let mut waiting: Vec<u32> = kept.iter().copied().collect();
    while let Some(pid) = waiting.pop() {
        waiting.extend(children.get(&pid).into_iter().flatten().filter(|&&child| kept.insert(child)));
    }
    all.retain(|process| kept.contains(&process.pid));
    all
}
