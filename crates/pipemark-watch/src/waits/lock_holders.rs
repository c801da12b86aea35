//! Programs outside the pipeline that hold a lock which a stage waits for.

use std::time::{Duration, Instant};

use pipemark_proc::locks::{AwaitedLock, Locks};
use pipemark_proc::process::Process;
use pipemark_proc::state::ThreadState;
use pipemark_proc::watched::WatchedProcess;

use super::scene::WaitScene;
use crate::budget::{PaidWork, own_time};
use crate::search;

/// The holder of a lock is searched for if a stage waits for a lock in at least this share of an interval's samples.
const MIN_WAITS_FOR_LOCK: f64 = 0.5;
/// The maximum number of stages per interval whose lock holders are searched for. Each search lists the stage's
/// descriptors.
const MAX_LOCK_SEARCHES: usize = 8;
/// The maximum number of processes that are searched for a lock's descriptor, in a stage and in the pipeline.
const MAX_PROCESSES: usize = 32;

/// Approximate CPU time of reading the locks of a descriptor.
const PER_DESCRIPTOR: Duration = Duration::from_micros(5);

/// The path of a locked file, and the pid and name of a program that holds the lock.
pub type LockHolder = (String, u32, String);

/// A search for the holder of a lock, which may take several intervals.
#[derive(Debug, Default)]
pub struct LockSearch {
    /// The process with which the search continues.
    from: u32,
}

impl LockSearch {
    /// Finds these programs: for each place, the file's path, and the program's pid and name. `known` says of which stages
    /// they are known already. The search begins with stage `first`. A stage that only sleeps may try to get a lock again
    /// and again, but nothing shows that.
    pub fn find(
        &mut self,
        scene: &mut WaitScene<'_>,
        known: impl Fn(usize) -> bool,
        first: usize,
    ) -> Vec<(usize, LockHolder)> {
        let pipeline = scene.pipeline;
        let waits = |at: &usize| {
            pipeline.stages[*at].alive && !known(*at) && scene.share(*at, &[ThreadState::Lock]) >= MIN_WAITS_FOR_LOCK
        };
        let chosen = (first..pipeline.stages.len()).chain(0..first).filter(waits).take(MAX_LOCK_SEARCHES);
        let chosen: Vec<usize> = chosen.collect();
        let mut found = Vec::new();
        if chosen.is_empty() {
            return found;
        }
        let Some(locks) = Locks::read().filter(Locks::has_waits) else { return found };
        for at in chosen {
            let known = pipeline.stages[at].pids.iter().take(MAX_PROCESSES).filter_map(|pid| pipeline.known.get(pid));
            let Some(lock) = known.filter_map(|known| locks.awaited_by(&known.process)).next() else { continue };
            let is_inside = |known: &WatchedProcess| lock.is_held_by(&known.process);
            let descriptors = pipeline.known.values().take(MAX_PROCESSES).map(|known| known.process.descriptors());
            if !scene.budget.affords(PER_DESCRIPTOR * u32::try_from(descriptors.sum::<usize>()).unwrap_or(u32::MAX)) {
                continue;
            }
            if pipeline.known.values().take(MAX_PROCESSES).any(is_inside) {
                continue;
            }
            if let Some(holder) = self.holder_outside(scene, &lock) {
                let [path, name] = [&lock.path, &holder.comm].map(|text| pipemark_model::neutral(text));
                found.push((at, (path, holder.pid, name)));
            }
        }
        found
    }

    /// A process outside the pipeline that holds a lock: the one that took it, or else the eldest of those that have
    /// inherited it. `None` if none is found within the time for one search; the next one continues.
    fn holder_outside(&mut self, scene: &mut WaitScene<'_>, lock: &AwaitedLock) -> Option<Process> {
        const AT_ONCE: usize = 8;
        let WaitScene { pipeline, table, budget, .. } = scene;
        let taker = lock.taken_by.filter(|pid| !pipeline.known.contains_key(pid)).and_then(Process::read);
        if let Some(taker) = taker.filter(|taker| lock.is_held_by(taker)) {
            return Some(taker);
        }
        let began = Instant::now();
        if !search::refresh(table, budget) || !budget.allows(PaidWork::Locks, None, began) {
            return None;
        }
        let (cpu, most) = (own_time(), budget.portion());
        let all: Vec<&Process> =
            table.processes().filter(|process| !pipeline.known.contains_key(&process.pid)).collect();
        let from = all.partition_point(|process| process.pid < self.from);
        let mut found: Option<&Process> = None;
        self.from = 0;
        for some in all[from..].chunks(AT_ONCE) {
            if own_time().saturating_sub(cpu) > most {
                self.from = some[0].pid;
                break;
            }
            for process in some.iter().filter(|process| lock.is_held_by(process)) {
                found = found.filter(|eldest| eldest.start <= process.start).or(Some(process));
            }
        }
        let found = found.cloned();
        budget.note(PaidWork::Locks, began, own_time().saturating_sub(cpu));
        found
    }
}
