//! Reads the states of a stage's threads.

use std::collections::{BTreeMap, HashSet};

use pipemark_proc::call;
use pipemark_proc::process::{self, PipeId};
use pipemark_proc::state::{self, ThreadState, ThreadWait, WaitTarget};
use pipemark_proc::thread::{ProcFile, Thread};
use pipemark_proc::watched::WatchedProcess;

use crate::pipeline::moment::Moment;
use crate::pipeline::stage::WatchedStage;

/// The maximum number of processes of a stage that are checked for file locks.
pub const MAX_PROCESSES_FOR_LOCKS: usize = 64;

/// The maximum number of threads of a process, and of processes of a stage, whose details are read in each sample.
const MAX_THREADS: usize = 16;

/// A stage's threads that are read in each sample, if it has more: those last seen running, and others in turn. The
/// other threads count as last seen. As many that were never read are read too.
const THREADS_PER_SAMPLE: usize = 32;

/// In most samples of a stage with more processes, only some of these are considered. The others count as in the last
/// sample of all.
const HUGE: usize = 1024;

/// A huge stage of N processes is read whole once in about N / [`PROCESSES_PER_SAMPLE`] samples.
const PROCESSES_PER_SAMPLE: usize = 256;

/// What is kept of a stage from one sample to the next, and what samples show besides its states.
#[derive(Debug, Default)]
pub struct StageStates {
    /// Whether the stage was observed in calls that no byte counter counts.
    pub uncounted: bool,
    /// A description of what the stage waits for; `None` if a state covers it.
    pub waits_for: Option<&'static str>,
    /// The place of the next thread to be read, if not all are read in each sample.
    next_thread: usize,
    /// The place of the next process to be read for new children or threads.
    next_process: usize,
    /// The place of the next process to be sampled, if only some are.
    next_sampled: usize,
    /// The number of samples of some processes since the last one of all.
    partial_samples: usize,
    /// The processes last observed running, of a stage of which only some are sampled.
    running: Vec<u32>,
    /// The state of the others in the last sample of all; `None` before the first, and after a scan.
    others: Option<Moment>,
    /// The number of updates of the stage at the last sample.
    updates: u32,
}

impl StageStates {
    /// The processes of a large stage for the next sample: those last observed running, and `count` others in turn.
    /// `None` for all of them, once in about `pids.len() / per_sample` samples.
    fn next_processes(&mut self, pids: &[u32], count: usize, per_sample: usize) -> Option<Vec<u32>> {
        self.partial_samples += 1;
        if self.others.is_none() || self.partial_samples * per_sample > pids.len() {
            self.partial_samples = 0;
            return None;
        }
        let mut chosen = self.running.clone();
        let turn = (0..count).map(|nth| pids[(self.next_sampled + nth) % pids.len()]);
        chosen.extend(turn.filter(|pid| !self.running.contains(pid)));
        self.next_sampled = (self.next_sampled + count) % pids.len();
        Some(chosen)
    }
}

/// The threads of a stage whose turn it is, by their places among all of its threads.
struct Turn {
    first: usize,
    count: usize,
    all: usize,
}

impl Turn {
    fn of(all: usize, next_thread: usize) -> Turn {
        let count = if all <= 2 * THREADS_PER_SAMPLE { all } else { THREADS_PER_SAMPLE };
        Turn { first: next_thread % all.max(1), count, all }
    }

    fn includes(&self, nth: usize) -> bool {
        nth >= self.all || (nth + self.all - self.first) % self.all < self.count
    }

    /// The first place of the next turn.
    fn next(&self) -> usize {
        (self.first + self.count) % self.all.max(1)
    }
}

/// Adds a pipe that a thread waits for. Threads of a worker pool mostly wait for the same one.
fn add(pipes: &mut Vec<Option<PipeId>>, pipe: Option<PipeId>) {
    if pipes.last() != Some(&pipe) {
        pipes.push(pipe);
    }
}

/// Samples the threads of a stage: of many, some, unless `all` is set.
pub fn sample_stage(
    stage: &WatchedStage,
    own: &mut StageStates,
    known: &mut BTreeMap<u32, WatchedProcess>,
    all: bool,
) -> Moment {
    let (mut moment, mut gone) = (Moment::default(), false);
    if std::mem::replace(&mut own.updates, stage.updates) != stage.updates {
        own.others = None;
    }
    let is_huge = !all && stage.pids.len() > HUGE;
    let chosen = if is_huge { own.next_processes(&stage.pids, THREADS_PER_SAMPLE, PROCESSES_PER_SAMPLE) } else { None };
    let no_turn = Turn { first: 0, count: 0, all: 0 };
    let turn = if chosen.is_some() { no_turn } else { Turn::of(stage.threads_now, own.next_thread) };
    let (mut nth, mut reread, mut new) = (0, 0, 0);
    let mut running = Vec::new();
    for pid in chosen.as_ref().unwrap_or(&stage.pids) {
        let Some(WatchedProcess { process, ends, threads, .. }) = known.get_mut(pid) else { continue };
        // A stopped thread still shows its system call, so the process state decides.
        if matches!(process.state, 'T' | 't') {
            moment.state = Some(moment.state.map_or(ThreadState::Stopped, |known| known.min(ThreadState::Stopped)));
            nth += threads.len();
            continue;
        }
        for place in 0..threads.len() {
            let thread = &mut threads[place];
            let runs = thread.last == Some(ThreadWait::Is(ThreadState::Running));
            reread += usize::from(runs);
            new += usize::from(thread.last.is_none());
            let is_new = thread.last.is_none() && (all || new <= THREADS_PER_SAMPLE);
            if turn.includes(nth) || is_new || runs && reread <= THREADS_PER_SAMPLE {
                thread.last = thread.wait(ends, &mut own.uncounted);
                gone |= thread.last.is_none();
            }
            nth += 1;
            moment.strange |= std::mem::take(&mut thread.strange);
            let Some(wait) = thread.last.clone() else { continue };
            let wait = stage.as_seen_by_others(wait);
            if matches!(
                wait,
                ThreadWait::Is(ThreadState::Other) | ThreadWait::Unsure { otherwise: ThreadState::Other, .. }
            ) && own.waits_for.is_none()
            {
                // The function is read once, because each reading would cost as much as the sample itself.
                let what = threads[place].function().as_deref().and_then(state::describe_wait);
                own.waits_for = what.or(Some("something else"));
            }
            if is_huge && wait == ThreadWait::Is(ThreadState::Running) {
                running.push(*pid);
                continue;
            }
            let state = match wait {
                ThreadWait::Is(state) => state,
                ThreadWait::In(pipe) => {
                    add(&mut moment.ins, pipe);
                    ThreadState::Starved
                }
                ThreadWait::Out(pipe) => {
                    add(&mut moment.outs, pipe);
                    ThreadState::Blocked
                }
                ThreadWait::Unsure { ins, outs, otherwise } => {
                    let (ins_before, outs_before, before) = moment.unsure.unwrap_or((false, false, otherwise));
                    moment.unsure = Some((ins || ins_before, outs || outs_before, otherwise.min(before)));
                    continue;
                }
            };
            moment.state = Some(moment.state.map_or(state, |known| known.min(state)));
            if state == ThreadState::Running && !all {
                // No state ranks before this one, so the other threads needn't be read. The same thread will probably
                // run at the next sample.
                moment.unsure = None;
                threads.swap(0, place);
                return moment;
            }
        }
    }
    if is_huge {
        match chosen {
            Some(_) => moment.add(own.others.clone().unwrap_or_default()),
            None => own.others = Some(moment.clone()),
        }
        running.truncate(THREADS_PER_SAMPLE);
        own.running = running;
        if !own.running.is_empty() {
            (moment.state, moment.unsure) = (Some(ThreadState::Running), None);
            return moment;
        }
    }
    if turn.all > 0 {
        own.next_thread = turn.next();
    }
    let count = stage.pids.len();
    let some = (0..count.min(MAX_THREADS)).map(|nth| stage.pids[(own.next_process + nth) % count]);
    let some: Vec<u32> = some.collect();
    // The stage may be waiting, possibly through a pipe, for a process that was started after the last full scan.
    if let Some(ThreadState::Children | ThreadState::Other) = moment.state {
        own.next_process = (own.next_process + some.len()) % count.max(1);
        let threads =
            |of: &WatchedProcess| of.threads.iter().take(MAX_THREADS).map(|thread| thread.id).collect::<Vec<_>>();
        let own = some.iter().filter_map(|pid| known.get(pid));
        let new = own.filter_map(|of| state_of_new_processes(stage, known, of.process.pid, &threads(of), 3)).min();
        moment.state = new.or(moment.state);
    }
    if moment.state == Some(ThreadState::Lock) {
        own.next_process = (own.next_process + some.len()) % count.max(1);
        let known = some.iter().filter_map(|pid| known.get(pid));
        let new = known.filter_map(|known| new_threads(stage, known, gone)).min();
        moment.has_new_threads = new.is_some();
        moment.state = new.or(moment.state);
    }
    if stage.hidden && moment.state.is_none() && moment.unsure.is_none() {
        moment.state = Some(ThreadState::Unknown);
    }
    moment
}

/// Whether at least two of these processes wait for file locks, and more wait than run.
pub fn is_queued(pids: &[u32]) -> bool {
    let found: Vec<bool> =
        pids.iter().take(MAX_PROCESSES_FOR_LOCKS).filter_map(|&pid| call::lock_or_run(pid)).collect();
    let waiting = found.iter().filter(|&&waits| waits).count();
    waiting >= 2 && waiting > found.len() - waiting
}

/// Whether a thread of a running stage waits for input, so that the stage could take more input. `None` if all of its
/// threads run.
pub fn is_hungry(
    stage: &WatchedStage,
    own: &mut StageStates,
    known: &mut BTreeMap<u32, WatchedProcess>,
) -> Option<bool> {
    let (mut hungry, mut count) = (false, 0);
    for pid in stage.pids.iter().take(MAX_THREADS) {
        let Some(WatchedProcess { ends, threads, .. }) = known.get_mut(pid) else { continue };
        for thread in threads.iter_mut().take(MAX_THREADS) {
            count += 1;
            let wait = thread.wait(ends, &mut own.uncounted);
            hungry |= matches!(wait, Some(ThreadWait::In(Some(pipe))) if stage.ins.contains(&pipe));
        }
    }
    (count > 1).then_some(hungry)
}

/// The state of processes that this process waits for and that the last scan didn't find, such as the next command of a
/// loop. Also checks their descendants, down to `levels` levels.
fn state_of_new_processes(
    stage: &WatchedStage,
    known: &BTreeMap<u32, WatchedProcess>,
    parent: u32,
    threads: &[u32],
    levels: u32,
) -> Option<ThreadState> {
    let own = std::process::id();
    let children = process::children(parent, &threads[..threads.len().min(MAX_THREADS)])?.into_iter();
    let children = children.filter(|pid| *pid != own && !known.contains_key(pid));
    let state = |pid: u32| match new_thread(stage, pid, pid, &BTreeMap::new())? {
        ThreadState::Children if levels > 0 => {
            state_of_new_processes(stage, known, pid, &[pid], levels - 1).or(Some(ThreadState::Children))
        }
        state => Some(state),
    };
    children.filter_map(state).min()
}

/// The state of a thread that the last scan didn't find.
fn new_thread(stage: &WatchedStage, pid: u32, id: u32, ends: &BTreeMap<u32, WaitTarget>) -> Option<ThreadState> {
    match stage.as_seen_by_others(Thread::new(pid, id, ProcFile::Syscall, false).wait(ends, &mut false)?) {
        ThreadWait::Is(state) => Some(state),
        ThreadWait::In(_) => Some(ThreadState::Starved),
        ThreadWait::Out(_) => Some(ThreadState::Blocked),
        ThreadWait::Unsure { .. } => None,
    }
}

/// The state of threads that the last scan didn't find, if the threads of a process have changed. A program may start a
/// thread for each piece of work, and wait for it.
fn new_threads(stage: &WatchedStage, known: &WatchedProcess, gone: bool) -> Option<ThreadState> {
    let pid = known.process.pid;
    if !gone && process::thread_count(pid) == Some(known.threads.len()) {
        return None;
    }
    let old: HashSet<u32> = known.threads.iter().map(|old| old.id).collect();
    let new = process::threads(pid).into_iter().filter(|id| !old.contains(id));
    new.take(MAX_THREADS).filter_map(|id| new_thread(stage, pid, id, &known.ends)).min()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn all_threads_of_a_large_stage_have_their_turn() {
        let mut next = 0;
        let mut read = vec![0; 1000];
        for _ in 0..1000_usize.div_ceil(THREADS_PER_SAMPLE) {
            let turn = Turn::of(1000, next);
            read.iter_mut().enumerate().filter(|(nth, _)| turn.includes(*nth)).for_each(|(_, read)| *read += 1);
            next = turn.next();
        }
        assert!(read.iter().all(|read| (1..=2).contains(read)));
        let few = Turn::of(5, 3);
        assert!((0..7).all(|nth| few.includes(nth)), "also threads that were found meanwhile");
    }

    #[test]
    fn all_processes_of_a_huge_stage_have_their_turn() {
        let pids: Vec<u32> = (1..=2000).collect();
        let mut stage = StageStates::default();
        assert_eq!(stage.next_processes(&pids, 32, 256), None, "all at first");
        (stage.others, stage.running) = (Some(Moment::default()), vec![7, 2000]);
        let mut seen = HashSet::new();
        let mut all = 0;
        for _ in 0..80 {
            match stage.next_processes(&pids, 32, 256) {
                Some(chosen) => {
                    assert!(chosen.len() <= 34 && chosen.starts_with(&[7, 2000]), "{chosen:?}");
                    seen.extend(chosen);
                }
                None => all += 1,
            }
        }
        assert_eq!((seen.len(), all), (2000, 10));
    }

    #[test]
    fn processes_that_wait_for_a_file_lock_are_found() {
        let start = |command: &str, path: &str| {
            let mut started = std::process::Command::new("flock");
            started.args(["--no-fork", path]).args(command.split(' ')).spawn().unwrap()
        };
        let path = std::env::temp_dir().join(format!("pipemark-lock-{}", std::process::id()));
        let path = path.to_str().unwrap();
        let holder = start("sleep 60", path);
        let comm = format!("/proc/{}/comm", holder.id());
        let wait = |ready: &dyn Fn() -> bool| {
            let end = Instant::now() + Duration::from_secs(60);
            while !ready() {
                assert!(Instant::now() < end, "the programs did not start");
                std::thread::sleep(Duration::from_millis(2));
            }
        };
        wait(&|| std::fs::read_to_string(&comm).is_ok_and(|name| name.trim() == "sleep"));
        let waiting = [start("true", path), start("true", path)];
        let pids = [holder.id(), waiting[0].id(), waiting[1].id()];
        wait(&|| pids[1..].iter().all(|&pid| call::lock_or_run(pid) == Some(true)));
        let found = (is_queued(&pids), is_queued(&pids[..2]));
        for mut child in [holder].into_iter().chain(waiting) {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        std::fs::remove_file(path).unwrap();
        assert_eq!(found, (true, false), "one process that waits is no queue");
    }
}
