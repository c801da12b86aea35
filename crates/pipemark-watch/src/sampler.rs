//! Samples a pipeline repeatedly, and counts the states of its stages.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::time::{Duration, Instant};

use pipemark_causes::evidence::WaitCycle;
use pipemark_causes::interval::{Interval, PipeCounts, StageCounts};
use pipemark_causes::{MachineLimits, PeerFigures, Timeline};
use pipemark_host::ControlGroups;
use pipemark_proc::call;
use pipemark_proc::connections::SocketUse;
use pipemark_proc::process::{self, MachineCounts, PipeId, Process};
use pipemark_proc::state::{self, ThreadState, ThreadWait, WaitTarget};
use pipemark_proc::table::ProcessTable;
use pipemark_proc::thread::{ProcFile, Thread};
use pipemark_proc::watched::WatchedProcess;

use crate::budget::{Budget, FEW_STAGES, PaidWork, own_time};
use crate::counters::Totals;
use crate::scan::{self, ScanState};
use crate::waits::SocketWait;

/// The time for which a pipeline of up to [`FEW_STAGES`] stages is sampled at the full rate.
const AT_FULL_RATE: Duration = Duration::from_millis(500);

/// The number of samples over which the cost of a sample is averaged. One sample in ten is followed by a scan.
const SMOOTHED: u32 = 64;

/// One sample in this many also covers the other threads of a running stage.
const SAMPLES_PER_HUNGER_CHECK: u32 = 4;

/// One sample in this many also checks stages of several processes for file locks.
const SAMPLES_PER_LOCK_CHECK: u32 = 8;

/// The maximum number of processes of a stage that are checked for file locks.
const MAX_PROCESSES_FOR_LOCKS: usize = 64;

/// The maximum number of threads of a process, and of processes of a stage, whose details are read in each sample.
const MAX_THREADS: usize = 16;

/// A stage's threads that are read in each sample, if it has more: those last seen running, and others in turn. The
/// other threads count as last seen.
const THREADS_PER_SAMPLE: usize = 32;

/// With more pipes, an uninterrupted wait at a pipe's end may be several waits: see [`slices`].
const MAX_PIPES_FOR_SLICES: usize = 64;

/// The shortest interval.
pub const INTERVAL: Duration = Duration::from_millis(500);

/// What to watch.
#[derive(Debug, Clone)]
pub enum Subject {
    /// A command that this program started: its process and all descendants.
    Child(u32),
    /// The pipelines that these processes are in, with all processes that pipes join to them.
    Processes(Vec<u32>),
}

/// Options of sampling.
#[derive(Debug, Clone, Copy)]
pub struct SamplingOptions {
    /// Whether to open each pipe once to read its capacity.
    pub touch: bool,
    /// The most detailed file of /proc to read.
    pub access: ProcFile,
    /// The default time between two samples.
    pub period: Duration,
}

/// A stage. Each scan updates it.
#[derive(Debug, Clone, Default)]
pub struct WatchedStage {
    pub name: String,
    pub command: String,
    pub pids: Vec<u32>,
    pub ins: Vec<PipeId>,
    pub outs: Vec<PipeId>,
    /// Pipes that the stage both reads and writes, such as the queues of a worker pool.
    pub(super) inner: BTreeSet<PipeId>,
    /// All other pipes that the stage holds.
    pub(super) outer: BTreeSet<PipeId>,
    /// The maximum number of processes that the stage had at once.
    pub processes: usize,
    /// The maximum number of threads that the stage had at once.
    pub threads: usize,
    /// The number of threads at the last scan.
    pub(super) threads_now: usize,
    /// The place of the next thread to be read, if not all are read in each sample.
    pub(super) next_thread: usize,
    /// The place of the next process to be read for new children or threads.
    pub(super) next_process: usize,
    /// Whether the stage was observed in calls that no byte counter counts.
    pub uncounted: bool,
    /// Whether the files of the stage's processes are unreadable.
    pub hidden: bool,
    pub alive: bool,
    /// When the stage appeared.
    pub(super) since: Option<Instant>,
    /// A description of what the stage waits for; `None` if a state covers it.
    pub(super) waits_for: Option<&'static str>,
    /// The CPUs that the stage may use.
    pub cpus: Vec<usize>,
    /// The position in the file that the stage reads, and the file's size, in bytes; `None` if it reads no file.
    pub progress: Option<(u64, u64)>,
    /// The parent of the stage's first process, and the parent's parent.
    pub(super) parents: [Option<u32>; 2],
    pub(super) changed: bool,
    /// Whether the stage was stopped in the last sample.
    pub(super) stopped: bool,
    /// The name of the program that traces the stage.
    pub(super) tracer: Option<String>,
    /// Whether the stage's control group was frozen when last checked.
    pub(super) frozen: bool,
    pub(super) totals: Totals,
    /// The number of the interval's samples when the counters were last read.
    pub(super) samples_counted: u32,
    /// The stage's command line.
    pub(super) words: Vec<String>,
    /// Whether the stage compares text by locale rules.
    pub(super) collates: bool,
    /// The process whose locale is still to be checked; `None` if none is.
    pub(super) locale_of: Option<u32>,
    /// The language in which the stage's program is written; `None` if unknown.
    pub(super) language: Option<&'static str>,
    /// The process whose language is still to be read; `None` if none is.
    pub(super) language_of: Option<u32>,
    /// The low priority at which the stage runs; `None` if it runs at the default priority or above.
    pub(super) low_priority: Option<String>,
    /// Another program that holds a lock on a file which the stage has open: the file's path, and the pid and name of
    /// that program.
    pub(super) locked_by: Option<(String, u32, String)>,
    /// Whether the stage has files or sockets besides its pipes open for reading.
    pub(super) reads_others: bool,
    /// Whether the stage has files or sockets besides its pipes open for writing.
    pub(super) writes_others: bool,
    /// Whether the stage's threads have an eventfd to wake each other.
    pub(super) has_eventfd: bool,
    /// When the stage stopped writing; `None` if it writes.
    pub(super) silent_since: Option<Instant>,
    /// The time from `silent_since` to the last reading of the counters. Later writes are unknown.
    pub(super) silent: Option<Duration>,
    /// The bytes read since `silent_since`; `None` if unknown.
    pub(super) held_bytes: Option<u64>,
    /// The mean size of earlier writes, in bytes; `None` if unknown.
    pub(super) wrote_before: Option<f64>,
    /// The other end of a socket that the stage waits for; `None` if it waits for none.
    pub(super) peer: Option<PeerFigures>,
    /// The number of searches for the process at the other end of a pipe.
    pub(super) searches: u32,
    pub(super) socket: SocketWait,
    /// The index of the stage's control group in `Watcher::groups`.
    pub(super) group: Option<usize>,
}

/// A pipe from one stage to another.
#[derive(Debug, Clone)]
pub struct WatchedPipe {
    pub from: usize,
    pub to: usize,
    pub id: PipeId,
    pub capacity: Option<u64>,
    /// When the pipe appeared; `None` once its capacity has been read.
    pub(super) unread_since: Option<Instant>,
    /// For the pipe's writer and its reader: the number of consecutive samples in which this end has waited.
    pub(super) waiting: [u32; 2],
    /// For the pipe's writer and its reader: the number of time slices that this end had had when it last waited;
    /// `None` if that wasn't read.
    pub(super) slices: [Option<u64>; 2],
    /// Which end was last found waiting: `true` for the writer, `false` for the reader.
    pub(super) last: Option<bool>,
    /// The writer's waits for room, oldest first. For each wait: its length in samples, and how many of these samples
    /// have not yet been offset by waits of the reader.
    pub(super) ahead: VecDeque<(u32, u32)>,
}

impl WatchedPipe {
    pub(super) fn new(from: usize, to: usize, id: PipeId, since: Option<Instant>) -> WatchedPipe {
        WatchedPipe {
            from,
            to,
            id,
            capacity: None,
            unread_since: since,
            waiting: [0; 2],
            slices: [None; 2],
            last: None,
            ahead: VecDeque::new(),
        }
    }

    /// Records a sample in which the writer waits, after `before` samples of the same wait.
    fn record_wait(&mut self, before: u32) {
        const MAX_WAITS: usize = 1024;
        match self.ahead.back_mut() {
            Some((length, left)) if before > 0 => {
                *length += 1;
                *left += 1;
            }
            _ => self.ahead.push_back((1, 1)),
        }
        if self.ahead.len() > MAX_WAITS {
            self.ahead.pop_front();
        }
    }

    /// Offsets one sample of the writer's last wait that isn't fully offset yet. Returns the length of that wait in
    /// samples.
    fn absorb(&mut self) -> Option<u32> {
        let (length, left) = self.ahead.back_mut()?;
        let length = *length;
        *left -= 1;
        if *left == 0 {
            self.ahead.pop_back();
        }
        Some(length)
    }
}

/// A pipeline that is being watched.
pub struct Watcher {
    pub(super) subject: Subject,
    pub(super) options: SamplingOptions,
    pub(super) begin: Instant,
    pub(super) known: BTreeMap<u32, WatchedProcess>,
    pub stages: Vec<WatchedStage>,
    pub pipes: Vec<WatchedPipe>,
    /// The control groups of the stages, by their names in /proc.
    pub(super) groups: Vec<(String, ControlGroups)>,
    pub(super) current: Interval,
    pub(super) found: ScanState,
    /// All processes of the machine, if the pipeline is found among them.
    pub(super) table: ProcessTable,
    pub(super) budget: Budget,
    /// The process with which the search for the holder of a lock continues.
    pub(super) lock_search_from: u32,
    /// CPU time of reading the counters within an interval.
    pub(super) counters_cost: Duration,
    /// When the current interval began.
    interval_began: Instant,
    /// Smoothed CPU time per sample.
    cost: Duration,
    /// The number of samples averaged in `cost`, up to [`SMOOTHED`].
    taken: u32,
    random: u64,
    pub(super) born_after: u64,
    /// The cycle of waits found at the end of the last interval.
    pub(super) suspected: Option<WaitCycle>,
    /// The cycle of waits found at the ends of both of the last two intervals.
    pub(super) cycle: Option<WaitCycle>,
    pub(super) limits: MachineLimits,
    /// The pipeline as typed; `None` if unknown.
    pub(super) typed: Option<String>,
    /// Whether the text is that of a process which this call didn't start.
    pub(super) typed_elsewhere: bool,
    /// The shell that runs it, or the user's shell; empty if unknown.
    pub(super) shell: String,
    /// Orphans: processes of the command, such as background processes, whose parents had ended before the orphans were
    /// found. Maps their pids to their start times.
    pub(super) orphans: BTreeMap<u32, u64>,
    /// Sockets that processes were observed waiting for.
    pub(super) socket_uses: BTreeSet<SocketUse>,
    /// The machine's counters at the first reading.
    pub(super) machine_begin: Option<MachineCounts>,
    /// The machine's counters at the last reading.
    pub(super) machine: Option<MachineCounts>,
}

/// The states of a stage at one moment.
#[derive(Default)]
pub(super) struct Moment {
    pub state: Option<ThreadState>,
    pub ins: Vec<Option<PipeId>>,
    pub outs: Vec<Option<PipeId>>,
    pub unsure: Option<(bool, bool, ThreadState)>,
    /// Whether one of the stage's threads waits for input while another runs; `None` if that wasn't checked.
    pub hungry: Option<bool>,
    /// Whether at least two of the stage's processes wait for file locks, and more wait than run; `None` if that wasn't
    /// checked.
    pub queued: Option<bool>,
}

impl Watcher {
    /// Starts sampling. Opens only files of /proc.
    pub fn new(subject: Subject, options: SamplingOptions) -> Watcher {
        let now = Instant::now();
        let own = Process::read(std::process::id());
        let typed = scan::typed_text(&subject);
        let mut watcher = Watcher {
            subject,
            options,
            begin: now,
            known: BTreeMap::new(),
            stages: Vec::new(),
            pipes: Vec::new(),
            groups: Vec::new(),
            current: Interval::default(),
            found: ScanState::nothing(now),
            table: ProcessTable::default(),
            budget: Budget::start(0),
            lock_search_from: 0,
            counters_cost: Duration::ZERO,
            interval_began: now,
            cost: Duration::ZERO,
            taken: 0,
            random: u64::from(std::process::id()) | 1 << 40,
            born_after: own.map_or(0, |own| own.start),
            machine_begin: None,
            machine: None,
            suspected: None,
            cycle: None,
            limits: scan::limits(),
            typed_elsewhere: typed.as_ref().is_some_and(|typed| typed.elsewhere),
            shell: match &typed {
                Some(typed) if !typed.elsewhere => typed.shell.clone(),
                _ => std::env::var("SHELL").unwrap_or_default(),
            },
            typed: typed.and_then(|typed| typed.text),
            orphans: BTreeMap::new(),
            socket_uses: BTreeSet::new(),
        };
        watcher.scan_first();
        let begin = watcher.elapsed().as_secs_f64();
        watcher.current = Interval { begin, ..Interval::default() };
        watcher.interval_began = Instant::now();
        watcher.budget = Budget::start(watcher.stages.len());
        watcher
    }

    /// The time since sampling began.
    pub fn elapsed(&self) -> Duration {
        self.begin.elapsed()
    }

    /// Whether any of the pipeline's processes still exists.
    pub fn is_alive(&self) -> bool {
        self.stages.iter().any(|stage| stage.alive)
    }

    /// Whether any process writes to a terminal, or has opened one.
    pub fn uses_terminal(&self) -> bool {
        let pids = self.stages.iter().filter(|stage| stage.alive).flat_map(|stage| &stage.pids);
        pids.copied().any(process::uses_terminal)
    }

    /// Whether a stage was observed waiting for the terminal.
    pub fn waits_for_terminal(&self, timeline: &Timeline) -> bool {
        let stages = timeline.intervals.iter().flat_map(|interval| &interval.stages);
        stages.into_iter().any(|stage| stage.states[ThreadState::Terminal as usize] > 0)
    }

    /// The least detailed file from which a thread is read; the requested file until a thread is known.
    pub fn access(&self) -> ProcFile {
        let threads = self.known.values().flat_map(|known| &known.threads);
        threads.map(Thread::access).max().unwrap_or(self.options.access)
    }

    /// The time until the next sample: about the default period, randomized so that samples never run in step with the
    /// pipeline.
    pub fn pause(&mut self) -> Duration {
        // xorshift: the quality of the randomness doesn't matter.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let jitter = 0.5 + (self.random >> 11) as f64 / (1u64 << 53) as f64;
        // A short pipeline needs all samples for a verdict.
        let is_cheap = self.stages.len() <= FEW_STAGES && self.cost <= self.budget.portion() / 20;
        let is_short = is_cheap && self.elapsed() < AT_FULL_RATE;
        let period = self.options.period;
        let period = if is_short { period.max(self.cost * 4) } else { self.budget.period(self.cost, period) };
        period.mul_f64(jitter)
    }

    /// Whether the current interval is over. If reading the counters takes long, intervals are longer.
    pub fn is_interval_over(&self) -> bool {
        let now = Instant::now();
        now >= self.interval_began + INTERVAL && self.budget.allows(PaidWork::Counters, None, now)
    }

    /// The share of one CPU that sampling used since the first scan.
    pub fn own_cpu(&self) -> f64 {
        self.budget.used()
    }

    /// CPU time of the first scan, including that of starting this program.
    pub fn first_scan(&self) -> Duration {
        self.budget.first_scan()
    }

    /// The largest share of one CPU that sampling uses, if samples are much rarer because of it; `None` otherwise.
    pub fn ceiling_that_limits(&self) -> Option<f64> {
        let is_limited = self.budget.period(self.cost, self.options.period) > self.options.period * 5;
        is_limited.then(|| self.budget.promised())
    }

    /// The index of a stage, another one after each pause; 0 if there are no stages.
    pub(super) fn random_stage(&self) -> usize {
        self.random as usize % self.stages.len().max(1)
    }

    /// Takes a sample.
    pub fn sample(&mut self) {
        self.budget.update(self.stages.len());
        let begin = own_time();
        let mut moments: Vec<Moment> = Vec::new();
        moments.resize_with(self.stages.len(), Moment::default);
        let several = 3..=MAX_PROCESSES_FOR_LOCKS;
        // Each sample begins with a different stage, because sampling one stage may wake the next.
        let first = self.random_stage();
        for place in (first..self.stages.len()).chain(0..first) {
            if self.stages[place].alive {
                let (stage, moment) = (&mut self.stages[place], &mut moments[place]);
                self.found.strange |= sample_stage(stage, &mut self.known, moment);
                if self.current.samples.is_multiple_of(SAMPLES_PER_HUNGER_CHECK)
                    && moment.state == Some(ThreadState::Running)
                {
                    moment.hungry = is_hungry(stage, &mut self.known);
                }
                if self.current.samples.is_multiple_of(SAMPLES_PER_LOCK_CHECK) && several.contains(&stage.pids.len()) {
                    // Processes that have started since the last scan count too.
                    moment.queued = Some(is_queued(&process::family(stage.pids[0])));
                }
            }
        }
        // If a process has exited, its successor may start soon.
        let now = Instant::now();
        let ended = |(stage, moment): (&WatchedStage, &Moment)| {
            stage.alive && moment.state.is_none() && moment.unsure.is_none()
        };
        if self.stages.iter().zip(&moments).any(ended) {
            self.found.scan_soon(now);
        }
        self.resolve(&mut moments);
        self.record(&moments);
        self.taken = (self.taken + 1).min(SMOOTHED);
        self.cost = (self.cost * (self.taken - 1) + own_time().saturating_sub(begin)) / self.taken;
        // The scan comes last, because a process that wakes on this CPU during the scan would seem to run.
        if now >= self.found.next {
            self.scan();
        }
        self.read_capacities(now);
    }

    /// Infers a stage's state from its neighbours if its own threads don't show it.
    fn resolve(&self, moments: &mut [Moment]) {
        if moments.iter().all(|moment| moment.unsure.is_none()) {
            return;
        }
        let (mut readers_of, mut writers_of) = (vec![Vec::new(); moments.len()], vec![Vec::new(); moments.len()]);
        for pipe in &self.pipes {
            readers_of[pipe.from].push(pipe.to);
            writers_of[pipe.to].push(pipe.from);
        }
        let state = |moments: &[Moment], stage: usize| moments[stage].state;
        for stage in 0..moments.len() {
            let Some((ins, outs, otherwise)) = moments[stage].unsure else { continue };
            let (readers, writers) = (&readers_of[stage], &writers_of[stage]);
            let outs = outs && !readers.is_empty();
            let ins = ins && !writers.is_empty();
            let blocked = outs && readers.iter().any(|&reader| state(moments, reader) != Some(ThreadState::Starved));
            let starved = ins && writers.iter().any(|&writer| state(moments, writer) != Some(ThreadState::Blocked));
            let decided = match (starved, blocked) {
                (true, false) => ThreadState::Starved,
                (false, true) => ThreadState::Blocked,
                (false, false) => otherwise,
                (true, true) if a_stage_beyond_is_running(moments, stage, &readers_of) => ThreadState::Blocked,
                (true, true) if a_stage_beyond_is_running(moments, stage, &writers_of) => ThreadState::Starved,
                (true, true) => otherwise,
            };
            // A known state of another thread counts if it precedes the inferred state in the order of states.
            let moment = &mut moments[stage];
            moment.state = Some(moment.state.map_or(decided, |known| known.min(decided)));
            match decided {
                ThreadState::Starved => moment.ins.push(None),
                ThreadState::Blocked => moment.outs.push(None),
                _ => {}
            }
        }
    }

    pub(super) fn record(&mut self, moments: &[Moment]) {
        self.current.samples += 1;
        self.current.alive += u32::from(moments.iter().any(|moment| moment.state.is_some()));
        self.current.stages.resize(self.stages.len(), StageCounts::default());
        self.current.pipes.resize(self.pipes.len(), PipeCounts::default());
        for ((moment, counts), stage) in moments.iter().zip(&mut self.current.stages).zip(&mut self.stages) {
            if let Some(state) = moment.state {
                counts.states[state as usize] += 1;
                let before = std::mem::replace(&mut stage.stopped, state == ThreadState::Stopped);
                counts.stops += u32::from(stage.stopped && !before);
                counts.threads += stage.threads_now as u64;
            }
            counts.alone = Some(counts.alone.unwrap_or(0));
            if let Some(hungry) = moment.hungry {
                counts.hunger_samples += 1;
                counts.hungry += u32::from(hungry);
            }
            if let Some(queued) = moment.queued {
                counts.lock_samples += 1;
                counts.queued += u32::from(queued);
            }
        }
        let is_busy = |moment: &Moment| {
            moment.state.is_some_and(|state| !matches!(state, ThreadState::Starved | ThreadState::Blocked))
        };
        let mut busy = moments.iter().zip(&mut self.current.stages).filter(|(moment, _)| is_busy(moment));
        if let (Some((_, counts)), None) = (busy.next(), busy.next()) {
            *counts.alone.get_or_insert(0) += 1;
        }
        let reads_slices = self.pipes.len() <= MAX_PIPES_FOR_SLICES;
        for (pipe, counts) in self.pipes.iter_mut().zip(&mut self.current.pipes) {
            let waits = |stage: usize, state: ThreadState, on: fn(&Moment) -> &Vec<Option<PipeId>>| {
                let moment = &moments[stage];
                moment.state == Some(state) && on(moment).iter().any(|id| id.is_none_or(|id| id == pipe.id))
            };
            let blocked = waits(pipe.from, ThreadState::Blocked, |moment| &moment.outs);
            let starved = waits(pipe.to, ThreadState::Starved, |moment| &moment.ins);
            // An end that ran between two samples has begun a new wait, although both samples found it waiting.
            for (nth, (stage, waits)) in [(pipe.from, blocked), (pipe.to, starved)].into_iter().enumerate() {
                let now = if waits && reads_slices { slices(&self.stages[stage], &mut self.known) } else { None };
                let before = std::mem::replace(&mut pipe.slices[nth], now);
                if before.is_some() && now.is_some() && before != now {
                    pipe.waiting[nth] = 0;
                }
            }
            if blocked != starved {
                counts.turns += u32::from(pipe.last.replace(blocked).is_some_and(|last| last != blocked));
            }
            let [writer, reader] = pipe.waiting;
            if blocked {
                pipe.record_wait(writer);
            }
            // A buffer would have taken the bytes that the writer had ready, and given them to the reader later.
            if starved && let Some(length) = pipe.absorb() {
                counts.absorbable += 1;
                counts.lengths[0] += u64::from(length);
                counts.lengths[1] += 2 * u64::from(reader) + 1;
            }
            pipe.waiting = [counts.writer.record(blocked, writer), counts.reader.record(starved, reader)];
            counts.samples += u32::from(moments[pipe.from].state.is_some() || moments[pipe.to].state.is_some());
        }
    }

    /// Ends an interval and returns its counts.
    pub fn close_interval(&mut self) -> Interval {
        let (now, cpu) = (Instant::now(), own_time());
        self.count(true);
        self.check_locales();
        self.find_languages();
        self.read_waits();
        self.budget.note(PaidWork::Counters, now, own_time().saturating_sub(cpu));
        // If this interval was late, the next one ends in time.
        self.interval_began = (self.interval_began + INTERVAL).max(now - INTERVAL / 2);
        let end = self.begin.elapsed().as_secs_f64();
        let next = Interval { begin: end, ..Interval::default() };
        let mut closed = std::mem::replace(&mut self.current, next);
        self.stages.iter_mut().for_each(|stage| stage.samples_counted = 0);
        closed.seconds = end - closed.begin;
        closed
    }
}

/// Whether a stage beyond this one works. `next` has the stages next to each stage, in one direction.
fn a_stage_beyond_is_running(moments: &[Moment], stage: usize, next: &[Vec<usize>]) -> bool {
    let (mut seen, mut waiting) = (vec![false; moments.len()], vec![stage]);
    while let Some(at) = waiting.pop() {
        if std::mem::replace(&mut seen[at], true) {
            continue;
        }
        let works = |state| !matches!(state, ThreadState::Starved | ThreadState::Blocked | ThreadState::Unknown);
        if at != stage && moments[at].unsure.is_none() && moments[at].state.is_some_and(works) {
            return true;
        }
        waiting.extend(&next[at]);
    }
    false
}

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

/// Samples the threads of a stage. Returns whether one of them waits for an unknown descriptor.
fn sample_stage(stage: &mut WatchedStage, known: &mut BTreeMap<u32, WatchedProcess>, moment: &mut Moment) -> bool {
    let (mut strange, mut gone) = (false, false);
    let turn = Turn::of(stage);
    let (mut nth, mut reread) = (0, 0);
    for pid in &stage.pids {
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
            if turn.includes(nth) || thread.last.is_none() || runs && reread <= THREADS_PER_SAMPLE {
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
            if state == ThreadState::Running {
                // No state ranks before this one, so the other threads needn't be read. The same thread will probably
                // run at the next sample.
                moment.unsure = None;
                threads.swap(0, place);
                return strange;
            }
        }
    }
    stage.next_thread = turn.next();
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

/// The number of time slices that a stage of a single thread has had; `None` for other stages.
fn slices(stage: &WatchedStage, known: &mut BTreeMap<u32, WatchedProcess>) -> Option<u64> {
    let [pid] = stage.pids[..] else { return None };
    match &mut known.get_mut(&pid)?.threads[..] {
        [only] => only.read_times().map(|[_, _, slices]| slices),
        _ => None,
    }
}

/// Whether at least two of these processes wait for file locks, and more wait than run.
fn is_queued(pids: &[u32]) -> bool {
    let found: Vec<bool> =
        pids.iter().take(MAX_PROCESSES_FOR_LOCKS).filter_map(|&pid| call::lock_or_run(pid)).collect();
    let waiting = found.iter().filter(|&&waits| waits).count();
    waiting >= 2 && waiting > found.len() - waiting
}

/// Whether a thread of a running stage waits for input, so that the stage could take more input. `None` if all of its
/// threads run.
fn is_hungry(stage: &mut WatchedStage, known: &mut BTreeMap<u32, WatchedProcess>) -> Option<bool> {
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

impl WatchedStage {
    /// A thread's wait as seen from other stages. A pipe within the stage leads to no other stage.
    fn as_seen_by_others(&self, wait: ThreadWait) -> ThreadWait {
        match wait {
            ThreadWait::In(Some(pipe)) | ThreadWait::Out(Some(pipe)) if self.inner.contains(&pipe) => {
                ThreadWait::Is(ThreadState::Other)
            }
            // The pipe was opened since the last full scan, probably to a process that has just started.
            ThreadWait::In(Some(pipe)) | ThreadWait::Out(Some(pipe)) if !self.outer.contains(&pipe) => {
                ThreadWait::Is(ThreadState::Children)
            }
            // The pipe is unknown, so the stage's neighbours decide.
            ThreadWait::In(None) if !self.inner.is_empty() => {
                ThreadWait::Unsure { ins: true, outs: false, otherwise: ThreadState::Other }
            }
            ThreadWait::Out(None) if !self.inner.is_empty() => {
                ThreadWait::Unsure { ins: false, outs: true, otherwise: ThreadState::Other }
            }
            wait => wait,
        }
    }
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
    use super::*;

    fn watcher() -> Watcher {
        let options = SamplingOptions { touch: false, access: ProcFile::Syscall, period: Duration::from_millis(10) };
        Watcher::new(Subject::Processes(Vec::new()), options)
    }

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
    fn all_stages_have_their_turn() {
        let mut watcher = watcher();
        watcher.stages = vec![WatchedStage::default(); 10];
        let chosen: BTreeSet<usize> = (0..1000)
            .map(|_| {
                watcher.pause();
                watcher.random_stage()
            })
            .collect();
        assert_eq!(chosen.len(), 10);
    }

    #[test]
    fn each_time_that_a_stage_is_stopped_counts_once() {
        let mut watcher = watcher();
        watcher.stages = vec![WatchedStage::default()];
        for stopped in [false, true, true, false, true, false] {
            let state = if stopped { ThreadState::Stopped } else { ThreadState::Running };
            watcher.record(&[Moment { state: Some(state), ..Moment::default() }]);
        }
        assert_eq!(watcher.current.stages[0].stops, 2);
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

    #[test]
    fn a_buffer_absorbs_waits_for_room_followed_by_waits_for_data() {
        let counts = |waits: &[(bool, usize)]| {
            let mut watcher = watcher();
            watcher.stages = vec![WatchedStage::default(), WatchedStage::default()];
            let id = PipeId(0, 1);
            watcher.pipes = vec![WatchedPipe::new(0, 1, id, None)];
            for &(writer, count) in waits {
                let of = |waits: bool, state| Moment {
                    state: Some(if waits { state } else { ThreadState::Running }),
                    ins: vec![Some(id)],
                    outs: vec![Some(id)],
                    ..Moment::default()
                };
                let moments = [of(writer, ThreadState::Blocked), of(!writer, ThreadState::Starved)];
                (0..count).for_each(|_| watcher.record(&moments));
            }
            watcher.current.pipes[0]
        };
        let absorbable = |waits: &[(bool, usize)]| counts(waits).absorbable;
        assert_eq!(absorbable(&[(false, 50), (true, 50)]), 0, "it reads everything and then computes");
        assert_eq!(absorbable(&[(true, 50), (false, 30)]), 30);
        let last = counts(&[(false, 50), (true, 5), (false, 5), (true, 50)]);
        assert_eq!((last.absorbable, last.lengths), (5, [25, 25]), "the long wait at the end is not of a burst");
        let short = counts(&[(true, 40), (false, 1), (true, 1), (false, 2), (true, 1), (false, 30)]);
        assert_eq!(
            (short.absorbable, short.lengths[0]),
            (33, 1 + 1 + 31 * 40),
            "short waits between are not the burst"
        );
    }
}
