//! Watches a pipeline: samples it again and again, scans it, and reads its counters, within the budget.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use pipemark_causes::interval::{Interval, StageCounts};
use pipemark_causes::timeline::MAX_COUNTS;
use pipemark_causes::{MachineLimits, PipelineEvidence, StageEvidence, Timeline};
use pipemark_causes::{environment, proof};
use pipemark_proc::identity::found_by_shell;
use pipemark_proc::process;
use pipemark_proc::state::ThreadState;
use pipemark_proc::table::ProcessTable;
use pipemark_proc::thread::{ProcFile, Thread};
use pipemark_profile::Profile;

use crate::budget::{Budget, FEW_STAGES, PaidWork, own_time};
use crate::counters::Counters;
use crate::moment;
use crate::pipeline::WatchedPipeline;
use crate::pipeline::moment::Moment;
use crate::pipeline::stage::WatchedStage;
use crate::profiling::Profiling;
use crate::program_details::ProgramDetails;
use crate::scan::Scanner;
use crate::states::{self, StageStates};
use crate::subject::{SamplingOptions, Subject};
use crate::waits::Waits;
use crate::waits::scene::WaitScene;
use crate::{capacities, evidence};

/// The time for which a pipeline of up to [`FEW_STAGES`] stages is sampled at the full rate.
const AT_FULL_RATE: Duration = Duration::from_millis(500);

/// The number of samples over which the cost of a sample is averaged. One sample in ten is followed by a scan.
const SMOOTHED: u32 = 64;

/// One sample in this many also covers the other threads of a running stage.
const SAMPLES_PER_HUNGER_CHECK: u32 = 4;

/// One sample in this many also checks stages of several processes for file locks.
const SAMPLES_PER_LOCK_CHECK: u32 = 8;

/// The age up to which a stage's counters are read at each check for changes.
const YOUNG: Duration = Duration::from_secs(1);

/// CPU time in which the kernel frees the memory of one process in the list of all processes, when the program ends.
const FREEING: Duration = Duration::from_nanos(400);

/// About the CPU time of the report at the end, and of reading the counts of one stage in one interval for it.
const REPORT: Duration = Duration::from_millis(8);
const REPORT_PER_COUNTS: Duration = Duration::from_nanos(3500);

/// The threads of a stage with more are read once in the first scan.
const MANY_THREADS: usize = 64;

/// The shortest interval.
pub const INTERVAL: Duration = Duration::from_millis(500);

/// The longest time without reacting to a user.
const MAX_PAUSE: Duration = Duration::from_millis(250);

/// Counters that are not read for this many intervals are late, and a note says so.
const LATE: u32 = 4;

/// Watches a pipeline.
pub struct Watcher {
    pub(super) pipeline: WatchedPipeline,
    interval: Interval,
    /// All processes of the machine, if the pipeline or another process is looked for among them.
    table: ProcessTable,
    scanner: Scanner,
    /// By place.
    states: Vec<StageStates>,
    counters: Counters,
    programs: ProgramDetails,
    waits: Waits,
    /// `None` if it wasn't asked for, or after it has ended.
    profiling: Option<Profiling>,
    /// What stages executed, by place, once profiling has ended.
    profiles: BTreeMap<usize, Profile>,
    /// Why no stage could be profiled.
    unprofiled: Option<String>,
    budget: Budget,
    /// CPU time of reading the counters within an interval.
    counters_cost: Duration,
    next_sample: Instant,
    /// When to ask next whether any process exists.
    next_check: Instant,
    /// When the current interval began.
    interval_began: Instant,
    /// The number of intervals so far.
    intervals: usize,
    /// Whether counters were read much later than at the end of an interval, or not at the end.
    counts_late: bool,
    /// Smoothed CPU time per sample.
    cost: Duration,
    /// The number of samples averaged in `cost`, up to [`SMOOTHED`].
    taken: u32,
    random: u64,
    limits: MachineLimits,
}

impl Watcher {
    /// Starts sampling. Opens only files of /proc.
    pub fn new(subject: Subject, options: SamplingOptions) -> Watcher {
        let now = Instant::now();
        let mut watcher = Watcher {
            pipeline: WatchedPipeline::new(subject, options, now),
            interval: Interval::default(),
            table: ProcessTable::default(),
            scanner: Scanner::new(now),
            states: Vec::new(),
            counters: Counters::new(),
            programs: ProgramDetails::default(),
            waits: Waits::default(),
            profiling: None,
            profiles: BTreeMap::new(),
            unprofiled: None,
            budget: Budget::of_first_scan(),
            counters_cost: Duration::ZERO,
            next_sample: now,
            next_check: now,
            interval_began: now,
            intervals: 0,
            counts_late: false,
            cost: Duration::ZERO,
            taken: 0,
            random: u64::from(std::process::id()) | 1 << 40,
            limits: capacities::limits(),
        };
        let counters_cost = watcher.scan_first();
        let begin = watcher.elapsed().as_secs_f64();
        watcher.interval = Interval { begin, ..Interval::default() };
        watcher.interval_began = Instant::now();
        watcher.counters_cost = counters_cost;
        watcher.budget = Budget::start(watcher.pipeline.stages.len());
        watcher.budget.note(PaidWork::Counters, watcher.interval_began, counters_cost);
        // What is known of a process of the pipeline takes about twice as much memory as its entry in the list.
        let entries = watcher.table.len() + watcher.pipeline.known.len() * 2;
        watcher.budget.set_aside(FREEING * u32::try_from(entries).unwrap_or(u32::MAX));
        watcher.profiling = options.profile.then(Profiling::start);
        watcher
    }

    /// The time since sampling began.
    pub fn elapsed(&self) -> Duration {
        self.pipeline.begin.elapsed()
    }

    /// Whether any of the pipeline's processes still exists. Asks the kernel from time to time, because after an expensive
    /// scan the next one may come much later than the end of the pipeline.
    pub fn is_alive(&mut self) -> bool {
        let now = Instant::now();
        if self.pipeline.is_alive() && now >= self.next_check {
            self.next_check = now + MAX_PAUSE;
            if !self.pipeline.has_process() {
                self.scanner.scan_now(&mut self.pipeline, &mut self.table, &mut self.budget, now);
            }
        }
        self.pipeline.is_alive()
    }

    /// Whether any process writes to a terminal, or has opened one.
    pub fn uses_terminal(&self) -> bool {
        let pids = self.pipeline.stages.iter().filter(|stage| stage.alive).flat_map(|stage| &stage.pids);
        pids.copied().any(process::uses_terminal)
    }

    /// Whether a stage was observed waiting for the terminal.
    pub fn waits_for_terminal(&self, timeline: &Timeline) -> bool {
        let stages = timeline.intervals.iter().flat_map(|interval| &interval.stages);
        stages.into_iter().any(|stage| stage.states[ThreadState::Terminal as usize] > 0)
    }

    /// The least detailed file from which a thread is read; the requested file until a thread is known.
    pub fn access(&self) -> ProcFile {
        let threads = self.pipeline.known.values().flat_map(|known| &known.threads);
        threads.map(Thread::access).max().unwrap_or(self.pipeline.options.access)
    }

    /// The time until the next call of [`Watcher::sample`]: about the default period, randomized so that samples never run
    /// in step with the pipeline. If the next sample is due much later, that call does nothing, so that the caller reacts
    /// to a user.
    pub fn pause(&mut self) -> Duration {
        // xorshift: the quality of the randomness doesn't matter.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let jitter = 0.5 + (self.random >> 11) as f64 / (1u64 << 53) as f64;
        let now = Instant::now();
        if now < self.next_sample {
            return (self.next_sample - now).min(MAX_PAUSE);
        }
        // A short pipeline needs all samples for a verdict.
        let is_cheap = self.pipeline.stages.len() <= FEW_STAGES && self.cost <= self.budget.portion() / 20;
        let is_short = is_cheap && self.elapsed() < AT_FULL_RATE;
        let period = self.pipeline.options.period;
        let period = if is_short { period.max(self.cost * 4) } else { self.budget.period(self.cost, period) };
        let period = period.mul_f64(jitter);
        self.next_sample = now + period;
        period.min(MAX_PAUSE)
    }

    /// Whether the current interval is over. If reading the counters takes long, intervals are longer.
    pub fn is_interval_over(&mut self) -> bool {
        let now = Instant::now();
        let is_over = now >= self.interval_began + INTERVAL && self.budget.allows(PaidWork::Counters, None, now);
        self.counts_late |= !is_over && now >= self.interval_began + INTERVAL * LATE;
        is_over
    }

    /// Shows what was seen so far, if the budget allows it. With hundreds of stages, a verdict takes milliseconds.
    pub fn show(&mut self, show: impl FnOnce(&Watcher)) {
        let (now, cost) = (Instant::now(), self.budget.last_cost(PaidWork::View));
        let is_cheap = cost <= self.budget.portion() / 4 && self.budget.affords(cost);
        if is_cheap || self.budget.allows(PaidWork::View, None, now) {
            let cpu = own_time();
            show(self);
            // Not every call draws a frame.
            self.budget.note(PaidWork::View, now, own_time().saturating_sub(cpu).max(cost / 2));
        }
    }

    /// The share of one CPU that sampling used since the first scan.
    fn own_cpu(&self) -> f64 {
        self.budget.used()
    }

    /// The largest share of one CPU that sampling uses, if samples are much rarer because of it; `None` otherwise.
    fn ceiling_that_limits(&self) -> Option<f64> {
        let period = self.pipeline.options.period;
        (self.budget.period(self.cost, period) > period * 5).then(|| self.budget.promised())
    }

    /// The index of a stage, another one after each pause; 0 if there are no stages.
    fn random_stage(&self) -> usize {
        self.random as usize % self.pipeline.stages.len().max(1)
    }

    /// Takes a sample, unless it is due later.
    pub fn sample(&mut self) {
        if Instant::now() < self.next_sample {
            return;
        }
        self.budget.update(self.pipeline.stages.len());
        let begin = own_time();
        let mut moments = self.read_states();
        // If a process has exited, its successor may start soon.
        let now = Instant::now();
        let ended = |(stage, moment): (&WatchedStage, &Moment)| {
            stage.alive && moment.state.is_none() && moment.unsure.is_none()
        };
        if self.pipeline.stages.iter().zip(&moments).any(ended) {
            self.scanner.scan_soon(now);
        }
        moment::resolve(&self.pipeline.pipes, &mut moments);
        moment::record(&mut self.pipeline, &moments, &mut self.interval);
        self.taken = (self.taken + 1).min(SMOOTHED);
        self.cost = (self.cost * (self.taken - 1) + own_time().saturating_sub(begin)) / self.taken;
        // The scan comes last, because a process that wakes on this CPU during the scan would seem to run.
        if now >= self.scanner.next {
            self.scan();
        }
        capacities::read_capacities(&mut self.pipeline, now);
        if let Some(profiling) = &mut self.profiling
            && profiling.is_due(now)
            && self.budget.allows(PaidWork::Profiling, None, now)
        {
            let cpu = own_time();
            profiling.read(&self.pipeline, now, self.budget.portion());
            self.budget.note(PaidWork::Profiling, now, own_time().saturating_sub(cpu));
        }
    }

    /// Ends the sampling of what stages execute, and finds the names, as far as the limit allows that. Later evidence has
    /// them.
    pub fn finish_profiling(&mut self) {
        let most = self.budget.left_at_end(self.report_cost());
        if let Some(profiling) = self.profiling.take() {
            let keeps_stacks = self.pipeline.options.keeps_stacks;
            (self.profiles, self.unprofiled) = profiling.finish(&self.pipeline.stages, keeps_stacks, most);
        }
    }

    /// About the CPU time of the report at the end.
    fn report_cost(&self) -> Duration {
        let counts = (self.intervals * self.pipeline.stages.len()).min(MAX_COUNTS);
        REPORT + REPORT_PER_COUNTS * u32::try_from(counts).unwrap_or(u32::MAX)
    }

    /// The states of all stages now, as far as their threads show them.
    fn read_states(&mut self) -> Vec<Moment> {
        let first = self.random_stage();
        let WatchedPipeline { stages, known, .. } = &mut self.pipeline;
        let mut moments = vec![Moment::default(); stages.len()];
        self.states.resize_with(stages.len(), StageStates::default);
        let several = 3..=states::MAX_PROCESSES_FOR_LOCKS;
        // Each sample begins with a different stage, because sampling one stage may wake the next.
        for place in (first..stages.len()).chain(0..first) {
            let (stage, own) = (&stages[place], &mut self.states[place]);
            if !stage.alive {
                continue;
            }
            let mut moment = states::sample_stage(stage, own, known, false);
            self.scanner.strange |= moment.strange;
            if moment.has_new_threads {
                self.counters.note_new_threads(place);
            }
            let is_turn = |samples: u32| self.interval.samples.is_multiple_of(samples);
            if is_turn(SAMPLES_PER_HUNGER_CHECK) && moment.state == Some(ThreadState::Running) {
                moment.hungry = states::is_hungry(stage, own, known);
            }
            if is_turn(SAMPLES_PER_LOCK_CHECK) && several.contains(&stage.pids.len()) {
                // Processes that have started since the last scan count too.
                moment.queued = Some(states::is_queued(&process::family(stage.pids[0])));
            }
            moments[place] = moment;
        }
        moments
    }

    /// Makes the first scan, and reads all counters. Returns the CPU time of reading the counters.
    fn scan_first(&mut self) -> Duration {
        let cpu = own_time();
        self.scanner.scan_first(&mut self.pipeline, &mut self.table, &mut self.budget);
        let counting = own_time();
        self.counters.read(&mut self.pipeline, &mut self.interval, true);
        let counters_cost = own_time().saturating_sub(counting);
        self.programs.find_languages(&self.pipeline.stages, &self.interval, &mut self.budget);
        self.read_sockets();
        // The first sample would be expensive, because no thread has been read yet.
        let WatchedPipeline { stages, known, .. } = &mut self.pipeline;
        self.states.resize_with(stages.len(), StageStates::default);
        for (stage, own) in stages.iter().zip(&mut self.states).filter(|(stage, _)| stage.threads_now > MANY_THREADS) {
            states::sample_stage(stage, own, known, true);
        }
        self.scanner.schedule_second(&self.pipeline, &self.table, own_time().saturating_sub(cpu));
        counters_cost
    }

    fn scan(&mut self) {
        // The cost is measured as CPU time. With the elapsed time, waiting for a CPU on a busy machine would delay the
        // next scan, and a short pipeline would be missed.
        let (began, cpu, spent) = (Instant::now(), own_time(), self.budget.spent());
        self.scanner.scan(&mut self.pipeline, &mut self.table, &mut self.budget, began, cpu);
        self.read_young(began);
        self.scanner.schedule(&self.pipeline, began, self.budget.spent().saturating_sub(spent));
    }

    /// Reads counters of young stages: those of a process that exits before the interval ends would be lost.
    fn read_young(&mut self, now: Instant) {
        let young = |stage: &WatchedStage| stage.alive && stage.since.is_some_and(|since| now < since + YOUNG);
        if self.pipeline.stages.iter().any(young)
            && self.counters_cost <= self.budget.portion() / 4
            && self.budget.affords(self.counters_cost)
        {
            let spent = self.budget.spent();
            self.counters.read(&mut self.pipeline, &mut self.interval, false);
            self.programs.find_languages(&self.pipeline.stages, &self.interval, &mut self.budget);
            let has_peer = |at: usize| self.waits.stages.get(at).is_some_and(|waits| waits.peer().is_some());
            if self.pipeline.stages.iter().enumerate().any(|(at, stage)| young(stage) && !has_peer(at)) {
                self.read_sockets();
            }
            self.counters_cost = self.budget.spent().saturating_sub(spent);
        }
    }

    /// The observer of waits, and what it reads.
    fn waits(&mut self) -> (&mut Waits, WaitScene<'_>) {
        let (pipeline, interval, counters) = (&self.pipeline, &self.interval, &self.counters.stages[..]);
        let (table, budget) = (&mut self.table, &mut self.budget);
        (&mut self.waits, WaitScene { pipeline, interval, counters, table, budget })
    }

    fn read_sockets(&mut self) {
        let (waits, mut scene) = self.waits();
        waits.read_sockets(&mut scene);
    }

    fn read_counters_and_waits(&mut self, now: Instant) {
        let spent = self.budget.spent();
        self.counters.read(&mut self.pipeline, &mut self.interval, true);
        self.programs.check_locales(&self.pipeline.stages, &mut self.budget);
        self.programs.find_languages(&self.pipeline.stages, &self.interval, &mut self.budget);
        let first = self.random_stage();
        let (waits, mut scene) = self.waits();
        let orphans = waits.read(&mut scene, first);
        if !orphans.is_empty() {
            self.pipeline.orphans.extend(orphans);
            self.scanner.rescan();
        }
        self.budget.note(PaidWork::Counters, now, self.budget.spent().saturating_sub(spent));
    }

    /// Ends an interval and returns its counts. At the end, counters that would exceed the limit aren't read.
    pub fn close_interval(&mut self) -> Interval {
        let now = Instant::now();
        self.intervals += 1;
        self.interval.stages.resize(self.pipeline.stages.len(), StageCounts::default());
        let cost = self.budget.last_cost(PaidWork::Counters);
        if self.budget.affords(cost) || cost <= self.budget.left_at_end(self.report_cost()) {
            self.read_counters_and_waits(now);
        } else {
            self.counts_late = true;
        }
        // If this interval was late, the next one ends in time.
        self.interval_began = (self.interval_began + INTERVAL).max(now - INTERVAL / 2);
        let end = self.elapsed().as_secs_f64();
        let next = Interval { begin: end, ..Interval::default() };
        let mut closed = std::mem::replace(&mut self.interval, next);
        self.counters.begin_interval();
        closed.seconds = end - closed.begin;
        if let Some(profiling) = &mut self.profiling {
            profiling.choose(&self.pipeline, &closed);
        }
        closed
    }

    /// The programs of the stages and of remedies whose names the environment may define as functions, and those that are
    /// names of a program of many names. `pipemark` too, if a shell doesn't find it.
    fn functions(&self) -> Vec<String> {
        let stages = self.pipeline.stages.iter().map(|stage| stage.name.as_str());
        let of_many = self.pipeline.stages.iter().filter(|stage| stage.has_many_names).map(|stage| stage.name.clone());
        let unfound = found_by_shell("pipemark").is_none().then(|| "pipemark".to_owned());
        proof::functions(stages, &environment::own()).into_iter().chain(of_many).chain(unfound).collect()
    }

    /// What has been seen so far, with the counts of these intervals.
    pub fn evidence(&self, timeline: Timeline) -> PipelineEvidence {
        let typed_here = self.pipeline.typed.as_ref().filter(|typed| !typed.elsewhere);
        PipelineEvidence {
            pipeline: None,
            typed: self.pipeline.typed.as_ref().map(|typed| typed.text.clone()),
            typed_elsewhere: self.pipeline.typed.as_ref().is_some_and(|typed| typed.elsewhere),
            shell: typed_here.map_or_else(|| std::env::var("SHELL").unwrap_or_default(), |typed| typed.shell.clone()),
            functions: self.functions(),
            started: self.pipeline.is_child(),
            alive: self.pipeline.is_alive(),
            exit_code: None,
            elapsed: self.elapsed().as_secs_f64(),
            own_seconds: self.own_cpu() * self.elapsed().as_secs_f64(),
            first_scan: self.budget.first_scan().as_secs_f64(),
            sampled_less: self.ceiling_that_limits(),
            counted_less: self.counts_late.then(|| self.budget.promised()),
            access: self.access(),
            has_proc: std::path::Path::new("/proc/self/stat").exists(),
            limits: MachineLimits { idle_cpus: self.counters.idle_cpus, ..self.limits },
            stages: self.stages(),
            pipes: self.pipeline.pipes.iter().map(evidence::pipe).collect(),
            cycle: self.waits.cycle().cloned(),
            unprofiled: self.unprofiled.clone(),
            timeline,
        }
    }

    fn stages(&self) -> Vec<StageEvidence> {
        let stage = |(place, stage): (usize, &WatchedStage)| {
            let seen = evidence::StageObservations {
                states: self.states.get(place),
                counters: self.counters.stages.get(place),
                program: self.programs.stages.get(place),
                waits: self.waits.stages.get(place),
                profile: self.profiles.get(&place),
            };
            evidence::stage(stage, &seen)
        };
        self.pipeline.stages.iter().enumerate().map(stage).collect()
    }

    /// Sets the capacity of a pipe through its reader's end. Returns the new capacity in bytes; `None` if no process
    /// reads the pipe any more.
    pub fn resize(&self, id: process::PipeId, bytes: u64) -> Option<Result<u64, rustix::io::Errno>> {
        capacities::resize(&self.pipeline, id, bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::process::{Command, Stdio};

    use super::*;

    fn options(period: Duration) -> SamplingOptions {
        SamplingOptions { touch: false, access: ProcFile::Syscall, profile: false, keeps_stacks: false, period }
    }

    #[test]
    fn all_stages_have_their_turn() {
        let mut watcher = Watcher::new(Subject::Processes(Vec::new()), options(Duration::from_millis(10)));
        watcher.pipeline.stages = vec![WatchedStage::default(); 10];
        let chosen: BTreeSet<usize> = (0..1000)
            .map(|_| {
                watcher.pause();
                watcher.random_stage()
            })
            .collect();
        assert_eq!(chosen.len(), 10);
    }

    #[test]
    fn the_end_is_noticed_without_a_scan() {
        // The readers of this program's output and errors must not be a stage.
        let mut command = Command::new("sleep");
        let command = command.arg("60").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut watcher = Watcher::new(Subject::Processes(vec![child.id()]), options(Duration::from_millis(1)));
        watcher.scanner.next += Duration::from_secs(3600);
        assert!(watcher.is_alive());
        child.kill().unwrap();
        child.wait().unwrap();
        std::thread::sleep(MAX_PAUSE);
        assert!(!watcher.is_alive());
    }

    #[test]
    fn time_after_the_last_reading_of_the_counters_is_not_silence() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let mut watcher = Watcher::new(Subject::Processes(vec![child.id()]), options(Duration::from_millis(1)));
        (0..3).for_each(|_| watcher.sample());
        watcher.close_interval();
        child.kill().unwrap();
        child.wait().unwrap();
        let silence = || watcher.evidence(Timeline::default()).stages[0].silent;
        let before = silence();
        std::thread::sleep(Duration::from_millis(5));
        assert!(before.is_some() && silence() == before);
    }
}
