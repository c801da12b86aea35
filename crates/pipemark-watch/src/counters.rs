//! The kernel's counters of a pipeline, and their increase over time.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use pipemark_causes::interval::{Interval, StageCounts, sum};
use pipemark_host::ControlGroups;
use pipemark_proc::process::{self, IoCounts, MachineCounts, Process};

use crate::pipeline::WatchedPipeline;
use crate::reaped::{ForeignChildren, Spent};
use crate::subject::Subject;

/// A clock tick in nanoseconds: USER_HZ is 100 wherever Linux runs.
const TICK: u64 = 10_000_000;

/// The time after its start in which a program may read its own libraries, which aren't input of the pipeline.
const LIBRARY_LOAD_TIME: Duration = Duration::from_millis(15);

/// In a process with more threads, the threads' times are read only if the process's ticks have changed.
const MANY_THREADS: usize = 64;

/// The number of processes of a stage that are searched for a file which the stage reads.
const MAX_PROCESSES: usize = 16;

/// The minimum number of writes in an interval in which a stage writes its output.
const MIN_WRITES: u64 = 200;

/// The minimum number of page faults that a process causes by starting and exiting.
const MIN_FAULTS: u64 = 50;

/// Sums over the processes of a stage.
#[derive(Debug, Clone, Copy, Default)]
struct Totals {
    ticks: Option<u64>,
    kernel_ticks: u64,
    children_ticks: u64,
    reaped: u64,
    io: Option<IoCounts>,
    /// Nanoseconds in which a CPU limit throttled the control group; `None` if unknown.
    throttled: Option<u64>,
}

/// What the counters show of a stage, besides the counts of an interval.
#[derive(Debug, Clone, Default)]
pub struct StageCounters {
    /// When the stage stopped writing; `None` if it writes.
    pub silent_since: Option<Instant>,
    /// The time from `silent_since` to the last reading of the counters. Later writes are unknown.
    pub silent: Option<Duration>,
    /// The bytes read since `silent_since`; `None` if unknown.
    pub held_bytes: Option<u64>,
    /// The mean size of earlier writes, in bytes; `None` if unknown.
    pub wrote_before: Option<f64>,
    /// The position in the file that the stage reads, and the file's size, in bytes; `None` if it reads no file.
    pub progress: Option<(u64, u64)>,
    /// Whether there were threads or children whose time isn't known.
    changed: bool,
    totals: Totals,
    /// What reaped children that belonged to other stages had spent, since `totals` were read.
    reaped_of_others: Spent,
    /// The number of the interval's samples when the counters were last read.
    samples_counted: u32,
    /// The stage's restarts, losses and control group when the counters were last read.
    restarts: u32,
    losses: u32,
    group: Option<usize>,
}

/// What was read of the counters before.
#[derive(Debug)]
pub struct Counters {
    /// By place.
    pub stages: Vec<StageCounters>,
    /// The start time of this process, in ticks. Later processes used no time before sampling began.
    born_after: u64,
    /// The machine's counters at the first reading.
    machine_at_first: Option<MachineCounts>,
    /// The machine's counters at the last reading.
    machine: Option<MachineCounts>,
    /// The number of idle CPUs since the first reading; `None` if unknown.
    pub idle_cpus: Option<f64>,
    /// Processes whose time is counted for their stage, and later for that of their parent too.
    foreign_children: ForeignChildren,
}

impl Counters {
    pub fn new() -> Counters {
        let own = Process::read(std::process::id());
        Counters {
            stages: Vec::new(),
            born_after: own.map_or(0, |own| own.start),
            machine_at_first: None,
            machine: None,
            idle_cpus: None,
            foreign_children: ForeignChildren::default(),
        }
    }

    /// Begins an interval.
    pub fn begin_interval(&mut self) {
        self.stages.iter_mut().for_each(|own| own.samples_counted = 0);
    }

    /// Notes that a stage has threads that no scan has found yet.
    pub fn note_new_threads(&mut self, place: usize) {
        let count = self.stages.len().max(place + 1);
        self.stages.resize(count, StageCounters::default());
        self.stages[place].changed = true;
    }

    /// Reads the counters and adds their increase to `counted`. At the end of an interval, also reads the tick counters.
    pub fn read(&mut self, pipeline: &mut WatchedPipeline, counted: &mut Interval, is_end: bool) {
        let nanoseconds = |groups: &ControlGroups| Some(groups.throttled_now()?.as_nanos() as u64);
        let throttled: Vec<_> = pipeline.groups.iter().map(|(_, groups)| nanoseconds(groups)).collect();
        counted.stages.resize(pipeline.stages.len(), StageCounts::default());
        let stages = pipeline.stages.iter().enumerate();
        let stage_of: HashMap<u32, usize> =
            stages.flat_map(|(place, stage)| stage.pids.iter().map(move |&pid| (pid, place))).collect();
        self.stages.resize(pipeline.stages.len(), StageCounters::default());
        for (place, spent) in self.foreign_children.take_reaped(&stage_of) {
            self.stages[place].reaped_of_others.add(spent);
        }
        let mut faults = vec![0; pipeline.stages.len()];
        let known = &mut pipeline.known;
        let stages = pipeline.stages.iter().zip(&mut self.stages);
        for (((stage, own), counts), faults) in stages.zip(&mut counted.stages).zip(&mut faults) {
            if std::mem::replace(&mut own.restarts, stage.restarts) != stage.restarts {
                own.totals = Totals::default();
            }
            if std::mem::replace(&mut own.group, stage.group) != stage.group {
                own.totals.throttled = None;
            }
            own.changed |= std::mem::replace(&mut own.losses, stage.losses) != stage.losses;
            if !stage.alive {
                continue;
            }
            let mut now = Totals::default();
            let (mut deltas, mut caller) = ([0; 3], [0; 2]);
            let (mut seen, mut young, mut all_late) = (false, false, true);
            for pid in &stage.pids {
                let Some(known) = known.get_mut(pid) else { continue };
                // `late` means that the process used no time before sampling began. The start times of children aren't
                // compared, because they are known only to 10 ms.
                let late = matches!(pipeline.subject, Subject::Child(_)) || known.process.start > self.born_after;
                all_late &= late;
                young |= late && stage.since.is_some_and(|since| since.elapsed() < LIBRARY_LOAD_TIME);
                let several = known.threads.len() > 1;
                let process = known.read_stat();
                let ticks = process.as_ref().map(|process| process.ticks);
                // Reading the times of thousands of threads takes longer than a tick. If the ticks haven't changed,
                // all threads together have run for less than a tick, which a later reading includes.
                let idle = ticks.is_some()
                    && known.ticks_at_reading == ticks
                    && known.threads.len() > MANY_THREADS
                    && known.threads.iter().all(|thread| thread.times.is_some());
                seen |= idle;
                known.ticks_at_reading = ticks;
                for thread in known.threads.iter_mut().filter(|_| !idle) {
                    let times = thread.read_times();
                    thread.ran |= times.is_none() || thread.times.is_some_and(|before| Some(before) != times);
                    if is_end
                        && several
                        && std::mem::take(&mut thread.ran)
                        && let Some(ticks) = thread.read_ticks()
                    {
                        let before = thread.ticks.replace(ticks).or(late.then_some([0; 2])).unwrap_or(ticks);
                        let [user, kernel] = [0, 1].map(|nth: usize| ticks[nth].saturating_sub(before[nth]));
                        caller = if kernel > caller[1] { [user, kernel] } else { caller };
                    }
                    if let Some(times) = times {
                        let Some(before) = thread.times.replace(times).or(late.then_some([0; 3])) else { continue };
                        (0..3).for_each(|nth| deltas[nth] += times[nth].saturating_sub(before[nth]));
                        seen = true;
                    }
                }
                let io = known.read_io();
                if let Some(process) = process {
                    now.ticks = sum(now.ticks, Some(process.ticks));
                    now.kernel_ticks += process.kernel_ticks;
                    now.children_ticks += process.children_ticks;
                    now.reaped += process.reaped;
                    let moved = io.map_or(0, |io| io.read + io.wrote);
                    self.foreign_children.remember(&process, moved, &stage_of);
                }
                if let Some(io) = io {
                    now.io = Some(now.io.unwrap_or_default().plus(io));
                }
            }
            now.throttled = stage.group.and_then(|place| throttled[place]);
            let before = own.totals;
            own.totals = now;
            if !is_end && before.ticks.is_some() {
                // Within an interval, the tick counts from its start are kept, because part of an interval may be
                // shorter than a tick.
                let Totals { ticks, kernel_ticks, children_ticks, .. } = before;
                own.totals = Totals { ticks, kernel_ticks, children_ticks, ..now };
            }
            let [run, waited, switches] = deltas;
            let grown = |now: Option<u64>, before: Option<u64>| Some(now?.saturating_sub(before?));
            // What reaped children of other stages spent was counted for those stages.
            let of_others = own.reaped_of_others;
            let foreign = now.children_ticks.saturating_sub(before.children_ticks).min(of_others.ticks);
            let foreign_kernel = of_others.kernel_ticks.min(foreign);
            if is_end {
                own.reaped_of_others = Spent { moved: of_others.moved, ..Spent::default() };
            }
            // Threads and children that have ended are included only in the ticks, which are coarse.
            let ticks = grown(now.ticks, before.ticks).map(|ticks| ticks.saturating_sub(foreign + 2) * TICK);
            let samples = counts.states.iter().sum::<u32>();
            let since = samples - std::mem::replace(&mut own.samples_counted, samples);
            if seen || ticks.is_some() {
                counts.counted = samples;
                counts.run += run;
                counts.cpu = Some(counts.run.max(ticks.unwrap_or(0)));
                counts.cpu_wait = Some(counts.cpu_wait.unwrap_or(0) + waited);
            }
            // These ticks are counted within an interval too. A process may exit before the interval ends, and its
            // ticks would then be unreadable.
            if now.ticks.is_some() && (before.ticks.is_some() || all_late) {
                let time = |now: u64, before: u64, foreign| Some(now.saturating_sub(before + foreign) * TICK);
                counts.kernel = counts.kernel.max(time(now.kernel_ticks, before.kernel_ticks, foreign_kernel));
                counts.children = counts.children.max(time(now.children_ticks, before.children_ticks, foreign));
            }
            *faults = now.reaped.saturating_sub(if before.ticks.is_some() { before.reaped } else { now.reaped });
            counts.faults += *faults;
            // Bytes that a child reads while starting are counted for the process that reaps the child.
            let reaped = now.reaped != before.reaped;
            let now_io = now.io.filter(|_| !reaped);
            if let (true, Some(now), Some(before)) = (reaped, now.io, before.io) {
                let moved = |io: IoCounts| io.read + io.wrote;
                let foreign = std::mem::take(&mut own.reaped_of_others.moved);
                counts.reaped_bytes =
                    sum(counts.reaped_bytes, Some(moved(now).saturating_sub(moved(before) + foreign)));
            }
            if young {
                own.totals.io = None;
            }
            // Writes to a pipe of the pipeline are data, however small.
            let may_wake = stage.has_eventfd && stage.outs.is_empty();
            let is_data = |io: &IoCounts| !may_wake || !io.are_wakeups();
            let moved = now_io.zip(before.io).map(|(now, before)| now.since(before));
            let moved = moved.map(|io| if is_data(&io) { io } else { io.without_wakeups() });
            let io = |of: fn(IoCounts) -> u64| moved.map(of);
            counts.counted_bytes += if now_io.is_some() && before.io.is_some() { since } else { 0 };
            let (read, wrote) = (io(|io| io.read), io(|io| io.wrote));
            counts.read = sum(counts.read, read);
            counts.wrote = sum(counts.wrote, wrote);
            counts.reads = sum(counts.reads, io(|io| io.reads));
            counts.writes = sum(counts.writes, io(|io| io.writes));
            // Before its first writes, a program such as a virtual machine starts.
            if counts.writes.is_some_and(|writes| writes >= MIN_WRITES) {
                counts.caller = [0, 1].map(|nth: usize| counts.caller[nth] + caller[nth] * TICK);
            }
            if wrote.is_some_and(|wrote| wrote > 0) || own.silent_since.is_none() {
                (own.silent_since, own.held_bytes) = (Some(Instant::now()), read.map(|_| 0));
            } else {
                own.held_bytes = sum(own.held_bytes, read);
            }
            own.silent = own.silent_since.map(|since| since.elapsed());
            let all = now.io.filter(|io| io.writes > 0 && is_data(io));
            own.wrote_before = all.map(|io| io.wrote as f64 / io.writes as f64);
            counts.changed |= reaped || std::mem::take(&mut own.changed);
            counts.switches = sum(counts.switches, seen.then_some(switches));
            counts.throttled = sum(counts.throttled, grown(now.throttled, before.throttled));
            if stage.ins.is_empty() {
                own.progress = stage.pids.iter().take(MAX_PROCESSES).find_map(|pid| {
                    let process = &known.get(pid)?.process;
                    process::progress(process.files_of)
                });
            }
        }
        self.count_starts(pipeline, counted, &faults);
    }

    /// Divides the machine's process starts among the stages that reaped children, in proportion to their `faults`. The
    /// machine's count includes processes of other programs, so a stage gets at most as many starts as its faults
    /// allow.
    fn count_starts(&mut self, pipeline: &WatchedPipeline, counted: &mut Interval, faults: &[u64]) {
        let Some(now) = MachineCounts::read() else { return };
        let begin = *self.machine_at_first.get_or_insert(now);
        let ticks = pipeline.begin.elapsed().as_secs_f64() * 1e9 / TICK as f64;
        self.idle_cpus = (ticks > 20.0).then(|| now.idle.saturating_sub(begin.idle) as f64 / ticks);
        let Some(before) = self.machine.replace(now) else { return };
        let (now, before, all) = (now.starts, before.starts, faults.iter().sum::<u64>());
        for (&faults, counts) in faults.iter().zip(&mut counted.stages).filter(|(faults, _)| **faults > 0) {
            counts.starts += (now.saturating_sub(before) * faults / all).min(faults / MIN_FAULTS);
        }
    }
}
