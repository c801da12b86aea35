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

/// The threads of a stage whose turn it is, by their places among all of its threads.
struct Turn {
    first: usize,
    count: usize,
    all: usize,
}

impl Turn {
    fn of(stage: &WatchedStage) -> Turn {
        let all = stage.threads_now;
        let count = if all <= 2 * THREADS_PER_SAMPLE { all } else { THREADS_PER_SAMPLE };
        Turn { first: stage.next_thread % all.max(1), count, all }
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

/// Samples the threads of a stage: of many, some, unless `all` is set. Returns whether one of them waits for an unknown
/// descriptor.
pub fn sample_stage(
    stage: &mut WatchedStage,
    known: &mut BTreeMap<u32, WatchedProcess>,
    moment: &mut Moment,
    all: bool,
) -> bool {
    let (mut strange, mut gone) = (false, false);
    let is_huge = !all && stage.pids.len() > HUGE;
    let chosen = if is_huge { stage.next_processes(THREADS_PER_SAMPLE, PROCESSES_PER_SAMPLE) } else { None };
    let turn = if chosen.is_some() { Turn { first: 0, count: 0, all: 0 } } else { Turn::of(stage) };
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
                thread.last = thread.wait(ends, &mut stage.uncounted);
                gone |= thread.last.is_none();
            }
            nth += 1;
            strange |= std::mem::take(&mut thread.strange);
            let Some(wait) = thread.last.clone() else { continue };
            let wait = stage.as_seen_by_others(wait);
            if matches!(
                wait,
                ThreadWait::Is(ThreadState::Other) | ThreadWait::Unsure { otherwise: ThreadState::Other, .. }
            ) && stage.waits_for.is_none()
            {
                // The function is read once, because each reading would cost as much as the sample itself.
                let what = threads[place].function().as_deref().and_then(state::describe_wait);
                stage.waits_for = what.or(Some("something else"));
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
                return strange;
            }
        }
    }
    if is_huge {
        match chosen {
            Some(_) => moment.add(stage.others.clone().unwrap_or_default()),
            None => stage.others = Some(moment.clone()),
        }
        running.truncate(THREADS_PER_SAMPLE);
        stage.running = running;
        if !stage.running.is_empty() {
            (moment.state, moment.unsure) = (Some(ThreadState::Running), None);
            return strange;
        }
    }
    if turn.all > 0 {
        stage.next_thread = turn.next();
    }
    let count = stage.pids.len();
    let some = (0..count.min(MAX_THREADS)).map(|nth| stage.pids[(stage.next_process + nth) % count]);
    let some: Vec<u32> = some.collect();
    // The stage may be waiting, possibly through a pipe, for a process that was started after the last full scan.
    if let Some(ThreadState::Children | ThreadState::Other) = moment.state {
        stage.next_process = (stage.next_process + some.len()) % count.max(1);
        let threads =
            |of: &WatchedProcess| of.threads.iter().take(MAX_THREADS).map(|thread| thread.id).collect::<Vec<_>>();
        let own = some.iter().filter_map(|pid| known.get(pid));
        let new = own.filter_map(|of| state_of_new_processes(stage, known, of.process.pid, &threads(of), 3)).min();
        moment.state = new.or(moment.state);
    }
    if moment.state == Some(ThreadState::Lock) {
        stage.next_process = (stage.next_process + some.len()) % count.max(1);
        let known = some.iter().filter_map(|pid| known.get(pid));
        let new = known.filter_map(|known| new_threads(stage, known, gone)).min();
        // The time of new processes is not counted until the next scan finds them.
        stage.changed |= new.is_some();
        moment.state = new.or(moment.state);
    }
    if stage.hidden && moment.state.is_none() && moment.unsure.is_none() {
        moment.state = Some(ThreadState::Unknown);
    }
    strange
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
pub fn is_hungry(stage: &mut WatchedStage, known: &mut BTreeMap<u32, WatchedProcess>) -> Option<bool> {
    let (mut hungry, mut count) = (false, 0);
    for pid in stage.pids.iter().take(MAX_THREADS) {
        let Some(WatchedProcess { ends, threads, .. }) = known.get_mut(pid) else { continue };
        for thread in threads.iter_mut().take(MAX_THREADS) {
            count += 1;
            let wait = thread.wait(ends, &mut stage.uncounted);
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
        let mut stage = WatchedStage { threads_now: 1000, ..WatchedStage::default() };
        let mut read = vec![0; 1000];
        for _ in 0..1000_usize.div_ceil(THREADS_PER_SAMPLE) {
            let turn = Turn::of(&stage);
            read.iter_mut().enumerate().filter(|(nth, _)| turn.includes(*nth)).for_each(|(_, read)| *read += 1);
            stage.next_thread = turn.next();
        }
        assert!(read.iter().all(|read| (1..=2).contains(read)));
        let few = Turn::of(&WatchedStage { threads_now: 5, next_thread: 3, ..WatchedStage::default() });
        assert!((0..7).all(|nth| few.includes(nth)), "also threads that were found meanwhile");
    }

    #[test]
    fn all_processes_of_a_huge_stage_have_their_turn() {
        let mut stage = WatchedStage { pids: (1..=2000).collect(), ..WatchedStage::default() };
        assert_eq!(stage.next_processes(32, 256), None, "all at first");
        (stage.others, stage.running) = (Some(Moment::default()), vec![7, 2000]);
        let mut seen = HashSet::new();
        let mut all = 0;
        for _ in 0..80 {
            match stage.next_processes(32, 256) {
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
