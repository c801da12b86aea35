//! Scans for the processes, threads and pipes of a pipeline, as far as the budget allows.

mod adoption;
mod extent;
mod family;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant};

use pipemark_proc::process::Process;
use pipemark_proc::table::ProcessTable;
use pipemark_proc::topology::{self, Reach, StageShape};
use pipemark_proc::watched::WatchedProcess;
use pipemark_proc::{call, connections};

use self::extent::ScanExtent;
use crate::budget::{Budget, FEW_STAGES, PaidWork, own_time};
use crate::pipeline::WatchedPipeline;
use crate::pipeline::stage::WatchedStage;
use crate::subject::Subject;

/// The interval of checks for changes, except at the start of a pipeline.
const CHECK: Duration = Duration::from_millis(100);
/// The interval of checks for changes during [`STARTING`].
const CHECK_STARTING: Duration = Duration::from_millis(20);
/// How long after its start a pipeline is checked more often.
const STARTING: Duration = Duration::from_millis(300);
/// The interval of full scans without a change.
const FULL_SCAN: Duration = Duration::from_secs(2);
/// The interval of full scans while a thread waits for an unknown descriptor.
const FULL_SCAN_STRANGE: Duration = Duration::from_millis(400);
/// The interval of scans of all processes of the machine, shortly after a change.
const SEARCH: Duration = Duration::from_secs(1);
/// The pause after a check or a full scan, as a multiple of its CPU time: with up to [`FEW_STAGES`] stages, and with
/// more.
const SCAN_PAUSES: [u32; 2] = [200, 500];
/// The interval of scans of all processes of the machine, long after a change.
const SEARCH_QUIET: Duration = Duration::from_secs(4);
/// Beyond this number of known processes, a change of one leads to a scan of that one only.
const MAX_KNOWN_IF_SMALL: usize = 64;
/// The maximum number of threads of a process that a scan reads for what they wait for.
const MAX_THREADS: usize = 16;

/// Beyond this number of sockets that processes waited for, those of processes that have ended are forgotten.
const MAX_SOCKET_USES: usize = 4096;

/// Decides when to scan and what. Keeps the result of the last scan, and the times of the last and the next scans.
#[derive(Debug)]
pub struct Scanner {
    shapes: Vec<StageShape>,
    /// Whether the last two results were equal.
    same: bool,
    /// Whether a thread waits for an unknown descriptor.
    pub strange: bool,
    /// When the next scan is due.
    pub next: Instant,
    /// The earliest time of the next scan, which limits the CPU time of scans while processes exit often.
    earliest: Instant,
    last_full: Instant,
    next_full: Instant,
    next_search: Instant,
    /// CPU time of a scan of all known processes.
    cost: Duration,
    /// CPU time of comparing a scan with the last one.
    compare_cost: Duration,
    /// CPU time of reading a process, in seconds per unit of its size.
    unit_cost: f64,
    /// CPU time of a check for changes.
    check_cost: Duration,
    /// The process with which the next check for changes begins.
    check_from: u32,
}

impl Scanner {
    pub fn new(now: Instant) -> Scanner {
        let (next, earliest, last_full, next_full, next_search) = (now, now, now, now, now);
        let (cost, compare_cost, check_cost, check_from) = (Duration::ZERO, Duration::ZERO, Duration::ZERO, 0);
        let (shapes, same, strange) = (Vec::new(), false, false);
        Scanner {
            shapes,
            same,
            strange,
            next,
            earliest,
            last_full,
            next_full,
            next_search,
            cost,
            compare_cost,
            unit_cost: 0.0,
            check_cost,
            check_from,
        }
    }

    /// Makes the next scan a full one.
    pub fn rescan(&mut self) {
        self.same = false;
    }

    /// Scans sooner, because a process has exited and its successor may start soon.
    pub fn scan_soon(&mut self, now: Instant) {
        self.next = self.next.min((now + CHECK_STARTING).max(self.earliest));
    }

    /// Scans for processes, threads and pipes, if they seem to have changed. `cpu` is the CPU time at the beginning.
    pub fn scan(
        &mut self,
        pipeline: &mut WatchedPipeline,
        table: &mut ProcessTable,
        budget: &mut Budget,
        began: Instant,
        cpu: Duration,
    ) {
        if !budget.affords(self.check_cost) {
            return;
        }
        let changed = self.find_changed(pipeline, budget, cpu);
        self.check_cost = own_time().saturating_sub(cpu);
        let strange = std::mem::take(&mut self.strange) && began >= self.last_full + FULL_SCAN_STRANGE;
        if !changed.is_empty() || strange || !self.same || began >= self.next_full {
            // Reading many processes or descriptors again takes long. In between, only those that have changed are read.
            let is_small = self.cost <= budget.portion() && pipeline.known.len() <= MAX_KNOWN_IF_SMALL;
            let is_hidden = pipeline.stages.iter().any(|stage| stage.hidden);
            if is_small && budget.affords(self.cost) || budget.allows(PaidWork::Scan, Some(self.cost), began) {
                self.scan_processes(pipeline, table, budget, began, ScanExtent::Known);
                budget.note(PaidWork::Scan, began, self.cost);
            } else if !changed.is_empty() && !is_hidden && budget.affords(self.cost_of(pipeline, &changed)) {
                self.scan_processes(pipeline, table, budget, began, ScanExtent::Changed(&changed));
            }
        }
    }

    /// The known processes that have changed since the last check. If there are many, only some are checked each time.
    fn find_changed(&mut self, pipeline: &mut WatchedPipeline, budget: &Budget, cpu: Duration) -> BTreeSet<u32> {
        const AT_ONCE: usize = 16;
        let (from, most) = (self.check_from, budget.portion() / 2);
        let pids = pipeline.known.range(from..).chain(pipeline.known.range(..from)).map(|(&pid, _)| pid);
        let pids: Vec<u32> = pids.collect();
        let mut changed = BTreeSet::new();
        for some in pids.chunks(AT_ONCE) {
            self.check_from = some[0];
            if own_time().saturating_sub(cpu) > most {
                break;
            }
            changed
                .extend(some.iter().filter(|pid| pipeline.known.get_mut(pid).is_some_and(WatchedProcess::has_changed)));
        }
        changed
    }

    /// About the CPU time of a scan of these changed processes.
    fn cost_of(&self, pipeline: &WatchedPipeline, changed: &BTreeSet<u32>) -> Duration {
        let known = changed.iter().filter_map(|pid| pipeline.known.get(pid));
        let sizes: usize = known.map(|known| size(&known.process)).sum();
        self.compare_cost + Duration::from_secs_f64(self.unit_cost * sizes as f64)
    }

    /// Scans whatever it costs, because no process of the pipeline exists any more.
    pub fn scan_now(
        &mut self,
        pipeline: &mut WatchedPipeline,
        table: &mut ProcessTable,
        budget: &mut Budget,
        now: Instant,
    ) {
        self.scan_processes(pipeline, table, budget, now, ScanExtent::Known);
    }

    /// Makes the first scan.
    pub fn scan_first(&mut self, pipeline: &mut WatchedPipeline, table: &mut ProcessTable, budget: &mut Budget) {
        self.scan_processes(pipeline, table, budget, Instant::now(), ScanExtent::Known);
    }

    /// Sets the time of the second scan. `spent` is the CPU time of the first one, with what else was read.
    pub fn schedule_second(&mut self, pipeline: &WatchedPipeline, table: &ProcessTable, spent: Duration) {
        // If all processes of the machine were read, a scan of the known ones costs less.
        let known: usize = pipeline.known.values().map(|known| size(&known.process)).sum();
        let all = table.processes().map(size).sum::<usize>().max(known);
        self.unit_cost = spent.as_secs_f64() / all.max(1) as f64;
        self.cost = Duration::from_secs_f64(self.unit_cost * known as f64);
        let now = Instant::now();
        (self.last_full, self.next_full) = (now, now + FULL_SCAN.max(self.cost * scan_pause(pipeline)));
        self.next_search = now + SEARCH;
        self.schedule(pipeline, now, Duration::ZERO);
    }

    /// Sets the time of the next scan. `spent` is the CPU time of this one.
    pub fn schedule(&mut self, pipeline: &WatchedPipeline, began: Instant, spent: Duration) {
        let starting = matches!(pipeline.subject, Subject::Child(_)) && began < pipeline.begin + STARTING;
        let pause = scan_pause(pipeline);
        self.earliest = began + if starting { Duration::ZERO } else { spent * pause / 2 };
        self.next = began + if starting { CHECK_STARTING.max(spent * 4) } else { CHECK.max(spent * pause) };
    }

    fn scan_processes(
        &mut self,
        pipeline: &mut WatchedPipeline,
        table: &mut ProcessTable,
        budget: &mut Budget,
        began: Instant,
        extent: ScanExtent<'_>,
    ) {
        let cpu = own_time();
        let is_first = table.is_empty();
        let search = matches!(pipeline.subject, Subject::Processes(_))
            && (is_first
                || began >= self.next_search
                    && budget.allows(PaidWork::Search, None, began)
                    && budget.affords(budget.portion() * 2));
        let mut processes = family::family(pipeline, extent);
        if search {
            table.refresh((!is_first).then(|| budget.portion() * 2), own_time);
            processes.into_iter().for_each(|process| table.insert(process));
            let seeds = if let Subject::Processes(seeds) = &pipeline.subject { &seeds[..] } else { &[] };
            let seeds: Vec<u32> = seeds.iter().chain(pipeline.known.keys()).copied().collect();
            let users = pipeline.socket_uses.iter().map(|(pid, ..)| *pid).collect();
            processes = table.joined_to(&seeds, &users);
            if !is_first {
                budget.note(PaidWork::Search, began, own_time().saturating_sub(cpu));
            }
        }
        let compared = own_time();
        let hidden: HashSet<u32> =
            processes.iter().filter(|process| process.ends.is_none()).map(|process| process.pid).collect();
        topology::fill_gaps(&mut processes);
        note_socket_uses(pipeline, &processes, extent);
        connections::join_socket_pairs(&mut processes, &pipeline.socket_uses);
        let shapes = match &pipeline.subject {
            Subject::Child(root) => {
                // A process that only starts others and waits for them is not a stage. A process that reads their
                // output or feeds them is a stage.
                let is_part = topology::uses_own_family(&processes, *root);
                let parts = processes.iter().filter(|process| process.pid != *root || is_part);
                let parts: Vec<Process> = parts.cloned().collect();
                let pids: Vec<u32> = parts.iter().map(|process| process.pid).collect();
                // If a process only passed an end of a pipe to its child, the end counts as the child's.
                let mut shapes = topology::stages(&parts, &pids, Reach::Given);
                let no_pipe = shapes.iter().all(|shape| shape.ins.is_empty() && shape.outs.is_empty());
                if no_pipe && !pipeline.pipes.is_empty() && !parts.is_empty() {
                    shapes = remaining(pipeline, &parts);
                } else if no_pipe {
                    let all: Vec<u32> = processes.iter().map(|process| process.pid).collect();
                    shapes = topology::stages(&processes, &all, Reach::Given);
                }
                shapes
            }
            Subject::Processes(seeds) => {
                let living = processes.iter().filter(|process| process.state != 'Z');
                let living: HashMap<u32, &Process> = living.map(|process| (process.pid, process)).collect();
                let lives = |pid: &&u32| {
                    let now = living.get(*pid);
                    let before = pipeline.known.get(*pid).map(|known| known.process.start);
                    now.is_some_and(|now| before.is_none_or(|start| now.start == start))
                };
                let mut seeds: Vec<u32> = seeds.iter().filter(lives).copied().collect();
                // The requested processes have exited, so the remaining processes of the pipeline are sampled.
                if seeds.is_empty() {
                    seeds = pipeline.known.keys().copied().collect();
                }
                topology::stages(&processes, &seeds, Reach::Joined)
            }
        };
        adoption::adopt(pipeline, processes, &shapes, &hidden, extent);
        let pause = scan_pause(pipeline);
        let found = self;
        found.same = found.shapes == shapes && !shapes.is_empty();
        found.shapes = shapes;
        let ended = own_time();
        let spent = ended.saturating_sub(cpu);
        found.compare_cost = ended.saturating_sub(compared);
        if extent == ScanExtent::Known {
            (found.last_full, found.next_full) = (began, began + FULL_SCAN.max(spent * pause));
            found.cost = spent;
        }
        if search {
            found.next_search = began + if found.same { SEARCH_QUIET } else { SEARCH }.max(spent * pause);
        }
    }
}

/// The size of a process, in proportion to the CPU time of reading it.
fn size(process: &Process) -> usize {
    4 + process.descriptors() + process.threads as usize
}

/// The pause after a scan, as a multiple of the scan's CPU time.
fn scan_pause(pipeline: &WatchedPipeline) -> u32 {
    SCAN_PAUSES[usize::from(pipeline.stages.len() > FEW_STAGES)]
}

/// The stages of a pipeline that is ending, when no pipe joins them any more: the remaining processes of each
/// stage, and stages of new processes.
fn remaining(pipeline: &WatchedPipeline, parts: &[Process]) -> Vec<StageShape> {
    let lives = |pid: &u32| parts.iter().any(|process| process.pid == *pid && process.state != 'Z');
    let left = |stage: &WatchedStage| stage.pids.iter().copied().filter(lives).collect::<Vec<u32>>();
    let shape = |pids: Vec<u32>| StageShape { pids, ins: Vec::new(), outs: Vec::new() };
    let stages = pipeline.stages.iter().filter(|stage| stage.alive).map(left).filter(|pids| !pids.is_empty());
    let mut shapes: Vec<StageShape> = stages.map(shape).collect();
    let known = |process: &&Process| shapes.iter().any(|shape| shape.pids.contains(&process.pid));
    let new: Vec<Process> = parts.iter().filter(|process| !known(process)).cloned().collect();
    let pids: Vec<u32> = new.iter().map(|process| process.pid).collect();
    shapes.extend(topology::stages(&new, &pids, Reach::Given));
    shapes
}

/// Notes which processes wait in a read or write on a socket. The socket may join them to other processes of their
/// family.
fn note_socket_uses(pipeline: &mut WatchedPipeline, processes: &[Process], extent: ScanExtent<'_>) {
    let is_ours = |process: &&Process| {
        let ours = |pid: u32| {
            pipeline.known.contains_key(&pid) || matches!(pipeline.subject, Subject::Child(root) if root == pid)
        };
        ours(process.pid) || ours(process.parent)
    };
    for process in processes.iter().filter(is_ours).filter(|process| extent.includes(process.pid)) {
        let sockets: Vec<(u32, u64)> = process.others.sockets.iter().filter(|(fd, _)| *fd > 2).copied().collect();
        if sockets.is_empty() {
            continue;
        }
        let waits =
            process.thread_ids().into_iter().take(MAX_THREADS).filter_map(|id| call::transfer_of(process.pid, id));
        let uses = waits.filter_map(|(fd, direction)| {
            let (_, inode) = sockets.iter().find(|(own, _)| u64::from(*own) == fd)?;
            Some((process.pid, *inode, direction))
        });
        pipeline.socket_uses.extend(uses);
    }
    // In a loop of short processes that runs for days, most have ended.
    if pipeline.socket_uses.len() > MAX_SOCKET_USES {
        pipeline.socket_uses.retain(|(pid, ..)| pipeline.known.contains_key(pid));
    }
}
