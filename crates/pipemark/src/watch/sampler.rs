//! Looks at a pipeline again and again, and counts what it saw.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::thread::sched_getaffinity;

use super::figures::{Counts, Interval, PipeCounts};
use super::process::{self, PipeId, Process, Way};
use super::state::{State, Target, Wait};
use super::thread::{Access, Thread, targets};
use super::topology::{self, Reach, Shape};
use crate::host::ControlGroups;

/// How often processes, threads and pipes are looked for anew.
const SCAN: Duration = Duration::from_millis(100);
/// The same where the last look found nothing new.
const QUIET_SCAN: Duration = Duration::from_millis(400);
/// How often while a pipeline is being started.
const FIRST_SCANS: Duration = Duration::from_millis(20);
/// Of one CPU, to look at states, where there is more to see than fits into the usual rate.
const SHARE: f64 = 0.01;
/// Descriptors of /proc that are kept open.
const OPEN: usize = 200;
/// Stages that are told apart. What comes after, such as more rounds of a loop, counts with the last.
const MOST_STAGES: usize = 400;

/// What to watch.
#[derive(Debug, Clone)]
pub enum Subject {
    /// This process, its children and what is joined to them among these.
    Child(u32),
    /// The pipelines that these processes are in.
    Processes(Vec<u32>),
}

/// How to watch.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    /// Open a pipe once to ask for its capacity.
    pub touch: bool,
    /// The best that is used of what may be read.
    pub access: Access,
    /// The usual time between two samples.
    pub period: Duration,
}

/// A process that is watched.
#[derive(Debug)]
struct Known {
    process: Process,
    ends: BTreeMap<u32, Target>,
    threads: Vec<Thread>,
}

/// A stage, as long as it is remembered.
#[derive(Debug, Clone)]
pub struct Stage {
    pub name: String,
    pub command: String,
    pub pids: Vec<u32>,
    pub ins: Vec<PipeId>,
    pub outs: Vec<PipeId>,
    /// How many processes and threads at most at once.
    pub processes: usize,
    pub threads: usize,
    /// It was seen in calls that no counter of bytes counts.
    pub uncounted: bool,
    /// Its processes' files may not be looked at.
    pub hidden: bool,
    pub alive: bool,
    /// Which CPUs it may use.
    pub cpus: Vec<usize>,
    /// Position in and size of the file that it reads.
    pub progress: Option<(u64, u64)>,
    parent: u32,
    changed: bool,
    totals: Totals,
    groups: Option<std::rc::Rc<ControlGroups>>,
}

/// A pipe from one stage to another.
#[derive(Debug, Clone)]
pub struct Pipe {
    pub from: usize,
    pub to: usize,
    pub id: PipeId,
    pub capacity: Option<u64>,
    scans: u32,
}

/// Sums over the processes of a stage.
#[derive(Debug, Clone, Copy, Default)]
struct Totals {
    ticks: Option<u64>,
    reaped: u64,
    bytes: Option<(u64, u64)>,
    switches: Option<u64>,
    throttled: Option<Duration>,
}

/// A pipeline that is being watched.
pub struct Watcher {
    subject: Subject,
    manner: Manner,
    begin: Instant,
    known: BTreeMap<u32, Known>,
    /// As they were found at the last scan.
    shapes: Vec<Shape>,
    pub stages: Vec<Stage>,
    pub pipes: Vec<Pipe>,
    current: Interval,
    next_scan: Instant,
    next_search: Instant,
    cost: Duration,
    random: u64,
    born_after: u64,
}

/// What a stage was seen in at one moment.
#[derive(Default)]
struct Moment {
    state: Option<State>,
    ins: Vec<Option<PipeId>>,
    outs: Vec<Option<PipeId>>,
    unsure: Option<(bool, bool, State)>,
}

impl Watcher {
    /// Begins to watch. Nothing is opened but files of /proc.
    pub fn new(subject: Subject, manner: Manner) -> Watcher {
        let now = Instant::now();
        let own = Process::read(std::process::id());
        let mut watcher = Watcher {
            subject,
            manner,
            begin: now,
            known: BTreeMap::new(),
            shapes: Vec::new(),
            stages: Vec::new(),
            pipes: Vec::new(),
            current: Interval::default(),
            next_scan: now,
            next_search: now,
            cost: Duration::ZERO,
            random: u64::from(std::process::id()) | 1 << 40,
            born_after: own.map_or(0, |own| own.start),
        };
        watcher.scan();
        watcher.count();
        watcher.current = Interval::default();
        watcher
    }

    /// For how long it has been watched.
    pub fn elapsed(&self) -> Duration {
        self.begin.elapsed()
    }

    /// Whether any of it still lives.
    pub fn is_alive(&self) -> bool {
        self.stages.iter().any(|stage| stage.alive)
    }

    /// The worst access to a thread, and whether processes are hidden altogether.
    pub fn access(&self) -> Access {
        let threads = self.known.values().flat_map(|known| &known.threads);
        threads.map(Thread::access).max().unwrap_or(self.manner.access)
    }

    /// Gives a pipe another capacity, at the end that its reader holds: the one that it has then, in bytes. `None` when
    /// nobody reads it any more.
    pub fn resize(&self, id: PipeId, bytes: u64) -> Option<Result<u64, Errno>> {
        let bytes = usize::try_from(bytes).ok()?;
        let resize = |end: &OwnedFd| rustix::pipe::fcntl_setpipe_size(end, bytes).map(|size| size as u64);
        self.known.values().find_map(|known| at_end(&known.process, id, resize))
    }

    /// How long to wait until the next sample: about the usual period, never in step with what is watched.
    pub fn pause(&mut self) -> Duration {
        // xorshift: any will do.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let jitter = 0.5 + (self.random >> 11) as f64 / (1u64 << 53) as f64;
        let period = self.manner.period.max(self.cost.div_f64(SHARE).min(Duration::from_millis(50))).max(self.cost * 4);
        period.mul_f64(jitter)
    }

    /// Looks once.
    pub fn sample(&mut self) {
        let now = Instant::now();
        if now >= self.next_scan {
            self.scan();
        }
        let begin = own_time();
        let mut moments: Vec<Moment> = Vec::new();
        moments.resize_with(self.stages.len(), Moment::default);
        // In another order each time: to look at the first may wake the next.
        let first = self.random as usize % self.stages.len().max(1);
        for place in (first..self.stages.len()).chain(0..first) {
            if self.stages[place].alive {
                look(&mut self.stages[place], &mut self.known, &mut moments[place]);
            }
        }
        // One that has ended makes room for the next.
        let ended =
            |(stage, moment): (&Stage, &Moment)| stage.alive && moment.state.is_none() && moment.unsure.is_none();
        if self.stages.iter().zip(&moments).any(ended) {
            self.next_scan = self.next_scan.min(now + FIRST_SCANS);
        }
        self.resolve(&mut moments);
        self.record(&moments);
        // Smoothed: one interruption is not the price of a look.
        self.cost = (self.cost * 7 + own_time().saturating_sub(begin)) / 8;
    }

    /// Decides what could not be told of a stage alone by what its neighbours do.
    fn resolve(&self, moments: &mut [Moment]) {
        let state = |moments: &[Moment], stage: usize| moments[stage].state;
        for stage in 0..moments.len() {
            let Some((ins, outs, otherwise)) = moments[stage].unsure else { continue };
            let readers: Vec<usize> = self.pipes.iter().filter(|pipe| pipe.from == stage).map(|pipe| pipe.to).collect();
            let writers: Vec<usize> = self.pipes.iter().filter(|pipe| pipe.to == stage).map(|pipe| pipe.from).collect();
            let outs = outs && !readers.is_empty();
            let ins = ins && !writers.is_empty();
            let blocked = outs && readers.iter().any(|&reader| state(moments, reader) != Some(State::Starved));
            let starved = ins && writers.iter().any(|&writer| state(moments, writer) != Some(State::Blocked));
            let decided = match (starved, blocked) {
                (true, false) => State::Starved,
                (false, true) => State::Blocked,
                (false, false) => otherwise,
                (true, true) if self.runs_beyond(moments, stage, |pipe| (pipe.from, pipe.to)) => State::Blocked,
                (true, true) if self.runs_beyond(moments, stage, |pipe| (pipe.to, pipe.from)) => State::Starved,
                (true, true) => otherwise,
            };
            // What one thread does for certain counts if it comes first.
            let moment = &mut moments[stage];
            moment.state = Some(moment.state.map_or(decided, |known| known.min(decided)));
            match decided {
                State::Starved => moment.ins.push(None),
                State::Blocked => moment.outs.push(None),
                _ => {}
            }
        }
    }

    /// Whether a stage beyond this one, on the side that `step` leads to, works.
    fn runs_beyond(&self, moments: &[Moment], stage: usize, step: fn(&Pipe) -> (usize, usize)) -> bool {
        let (mut seen, mut waiting) = (vec![false; moments.len()], vec![stage]);
        while let Some(at) = waiting.pop() {
            if std::mem::replace(&mut seen[at], true) {
                continue;
            }
            let works = |state| !matches!(state, State::Starved | State::Blocked | State::Unknown);
            if at != stage && moments[at].unsure.is_none() && moments[at].state.is_some_and(works) {
                return true;
            }
            waiting.extend(self.pipes.iter().map(step).filter(|&(from, _)| from == at).map(|(_, to)| to));
        }
        false
    }

    fn record(&mut self, moments: &[Moment]) {
        self.current.samples += 1;
        self.current.stages.resize(self.stages.len(), Counts::default());
        self.current.pipes.resize(self.pipes.len(), PipeCounts::default());
        for (moment, counts) in moments.iter().zip(&mut self.current.stages) {
            if let Some(state) = moment.state {
                counts.states[state as usize] += 1;
            }
        }
        for (pipe, counts) in self.pipes.iter().zip(&mut self.current.pipes) {
            let waits = |stage: usize, state: State, on: fn(&Moment) -> &Vec<Option<PipeId>>| {
                let moment = &moments[stage];
                moment.state == Some(state) && on(moment).iter().any(|id| id.is_none_or(|id| id == pipe.id))
            };
            counts.writer_waits += u32::from(waits(pipe.from, State::Blocked, |moment| &moment.outs));
            counts.reader_waits += u32::from(waits(pipe.to, State::Starved, |moment| &moment.ins));
            counts.samples += u32::from(moments[pipe.from].state.is_some() || moments[pipe.to].state.is_some());
        }
    }

    /// Ends an interval and gives what was counted in it.
    pub fn close_interval(&mut self) -> Interval {
        self.count();
        let end = self.begin.elapsed().as_secs_f64();
        let next = Interval { begin: end, ..Interval::default() };
        let mut closed = std::mem::replace(&mut self.current, next);
        closed.seconds = end - closed.begin;
        closed
    }

    /// Reads the counters and adds what they grew by.
    fn count(&mut self) {
        self.current.stages.resize(self.stages.len(), Counts::default());
        for (stage, counts) in self.stages.iter_mut().zip(&mut self.current.stages) {
            if !stage.alive {
                continue;
            }
            let mut now = Totals::default();
            let add = |sum: &mut Option<u64>, value: Option<u64>| {
                *sum = value.map(|value| sum.unwrap_or(0) + value).or(*sum);
            };
            let (mut run, mut waited, mut seen) = (0, 0, false);
            for pid in &stage.pids {
                let Some(known) = self.known.get_mut(pid) else { continue };
                let late = known.process.start > self.born_after;
                for thread in &mut known.threads {
                    if let Some(times) = thread.read_times() {
                        let before = thread.times.replace(times).unwrap_or(if late { (0, 0) } else { times });
                        run += times.0.saturating_sub(before.0);
                        waited += times.1.saturating_sub(before.1);
                        seen = true;
                    }
                }
                if let Some(process) = Process::read_stat(*pid) {
                    add(&mut now.ticks, Some(process.ticks));
                    now.reaped += process.reaped;
                }
                add(&mut now.switches, process::switches(*pid));
                if let Some((read, wrote)) = process::bytes(*pid) {
                    let (sum_read, sum_wrote) = now.bytes.unwrap_or_default();
                    now.bytes = Some((sum_read + read, sum_wrote + wrote));
                }
            }
            now.throttled = stage.groups.as_ref().and_then(|groups| groups.throttled_now());
            let before = std::mem::replace(&mut stage.totals, now);
            let grown = |now: Option<u64>, before: Option<u64>| Some(now?.saturating_sub(before?));
            // Threads and children that came and went are in the ticks only, which are coarse.
            let ticks = grown(now.ticks, before.ticks).map(|ticks| ticks.saturating_sub(2) * TICK);
            if seen || ticks.is_some() {
                counts.cpu = Some(counts.cpu.unwrap_or(0) + run.max(ticks.unwrap_or(0)));
                counts.cpu_wait = Some(counts.cpu_wait.unwrap_or(0) + waited);
            }
            // What children read to start is in the bytes of whoever reaps them.
            let reaped = now.reaped != before.reaped;
            let now_bytes = now.bytes.filter(|_| !reaped);
            let bytes = |of: fn((u64, u64)) -> u64| grown(now_bytes.map(of), before.bytes.map(of));
            counts.read = bytes(|(read, _)| read);
            counts.wrote = bytes(|(_, wrote)| wrote);
            counts.changed = reaped || std::mem::take(&mut stage.changed);
            counts.switches = grown(now.switches, before.switches);
            counts.throttled = grown(
                now.throttled.map(|time| time.as_nanos() as u64),
                before.throttled.map(|time| time.as_nanos() as u64),
            );
            if stage.ins.is_empty() {
                stage.progress = stage.pids.iter().find_map(|&pid| process::progress(pid));
            }
        }
    }

    /// Looks for processes, threads and pipes.
    fn scan(&mut self) {
        let began = Instant::now();
        let starting = began.duration_since(self.begin) < Duration::from_millis(300);
        let search = matches!(self.subject, Subject::Processes(_)) && began >= self.next_search;
        let mut processes = if search { process::all() } else { self.family() };
        let hidden: Vec<u32> =
            processes.iter().filter(|process| process.ends.is_none()).map(|process| process.pid).collect();
        topology::fill_gaps(&mut processes);
        let shapes = match &self.subject {
            Subject::Child(root) => {
                let pids: Vec<u32> = processes.iter().map(|process| process.pid).filter(|pid| pid != root).collect();
                let mut shapes = topology::stages(&processes, &pids, Reach::Given);
                let no_pipe = shapes.iter().all(|shape| shape.ins.is_empty() && shape.outs.is_empty());
                if no_pipe {
                    let all: Vec<u32> = processes.iter().map(|process| process.pid).collect();
                    shapes = topology::stages(&processes, &all, Reach::Given);
                }
                shapes
            }
            Subject::Processes(seeds) => {
                let lives = |pid: &&u32| {
                    let now = processes.iter().find(|process| process.pid == **pid && process.state != 'Z');
                    let before = self.known.get(*pid).map(|known| known.process.start);
                    now.is_some_and(|now| before.is_none_or(|start| now.start == start))
                };
                let mut seeds: Vec<u32> = seeds.iter().filter(lives).copied().collect();
                // What it was named by has ended; the rest goes on.
                if seeds.is_empty() {
                    seeds = self.known.keys().copied().collect();
                }
                topology::stages(&processes, &seeds, Reach::Joined)
            }
        };
        let same = self.shapes == shapes && !shapes.is_empty();
        self.shapes.clone_from(&shapes);
        self.adopt(processes, &shapes, &hidden);
        let spent = began.elapsed();
        if search {
            self.next_search = began + Duration::from_secs(1).max(spent * 200);
        }
        self.next_scan = began
            + match (starting, same) {
                (true, _) => FIRST_SCANS,
                (false, true) => QUIET_SCAN.max(spent * 100),
                (false, false) => SCAN.max(spent * 100),
            };
    }

    /// The known processes that still live, and all that descends from them or from the root.
    fn family(&self) -> Vec<Process> {
        let mut found: BTreeMap<u32, Process> = BTreeMap::new();
        let mut waiting: Vec<u32> = self.known.keys().copied().collect();
        if let Subject::Child(root) = self.subject {
            waiting.push(root);
        }
        let own = std::process::id();
        while let Some(pid) = waiting.pop() {
            if pid == own || found.contains_key(&pid) {
                continue;
            }
            let Some(process) = Process::read(pid) else { continue };
            // A number that is given again belongs to a stranger.
            if self.known.get(&pid).is_some_and(|known| known.process.start != process.start) {
                continue;
            }
            match process::children(pid, &process::numbers(&format!("/proc/{pid}/task"))) {
                Some(children) => waiting.extend(children),
                None => return self.family_of_all(),
            }
            found.insert(pid, process);
        }
        found.into_values().collect()
    }

    /// The same, where the kernel does not list children.
    fn family_of_all(&self) -> Vec<Process> {
        let mut all = process::all();
        let mut kept: Vec<u32> = self.known.keys().copied().collect();
        if let Subject::Child(root) = self.subject {
            kept.push(root);
        }
        loop {
            let more = |process: &&Process| kept.contains(&process.parent) && !kept.contains(&process.pid);
            let more: Vec<u32> = all.iter().filter(more).map(|process| process.pid).collect();
            if more.is_empty() {
                break;
            }
            kept.extend(more);
        }
        all.retain(|process| kept.contains(&process.pid));
        all
    }

    /// Makes what was found known: which stage of before each one is, or that it is new.
    fn adopt(&mut self, processes: Vec<Process>, shapes: &[Shape], hidden: &[u32]) {
        let mut open = self.known.values().map(|known| known.threads.len()).sum::<usize>();
        let mut before = std::mem::take(&mut self.known);
        for process in processes {
            let pid = process.pid;
            if let Subject::Processes(seeds) = &self.subject
                && !seeds.contains(&pid)
                && !shapes.iter().any(|shape| shape.pids.contains(&pid))
            {
                continue;
            }
            let old = before.remove(&pid).filter(|old| old.process.start == process.start);
            let mut threads = old.map(|old| old.threads).unwrap_or_default();
            let ids = process::numbers(&format!("/proc/{pid}/task"));
            let count = threads.len();
            threads.retain(|thread| ids.contains(&thread.id));
            if threads.len() < count
                && let Some(stage) = self.stages.iter_mut().find(|stage| stage.pids.contains(&pid))
            {
                stage.changed = true;
            }
            for id in ids {
                if !threads.iter().any(|thread| thread.id == id) {
                    open += 1;
                    threads.push(Thread::new(pid, id, self.manner.access, open * 4 < OPEN));
                }
            }
            let ends = targets(process.ends.as_deref().unwrap_or_default());
            self.known.insert(pid, Known { process, ends, threads });
        }
        let mut taken = vec![false; self.stages.len()];
        let mut places = Vec::new();
        for shape in shapes {
            let place = self.place_of(shape, &taken);
            taken.resize(self.stages.len(), false);
            taken[place] = true;
            self.update(place, shape);
            self.stages[place].hidden = hidden.contains(&shape.pids[0]);
            places.push(place);
        }
        for (stage, taken) in self.stages.iter_mut().zip(&taken) {
            stage.alive = *taken;
        }
        self.join(shapes, &places);
    }

    /// The stage that a shape continues, or a new one.
    fn place_of(&mut self, shape: &Shape, taken: &[bool]) -> usize {
        let free = |place: &usize| !taken.get(*place).copied().unwrap_or(false);
        let first = &self.known[&shape.pids[0]];
        let (name, parent) = (first.process.comm.clone(), first.process.parent);
        let shares = |stage: &Stage| stage.alive && stage.pids.iter().any(|pid| shape.pids.contains(pid));
        if let Some(place) = (0..self.stages.len()).filter(free).find(|&place| shares(&self.stages[place])) {
            return place;
        }
        // The next round of a loop.
        let again = |stage: &Stage| !stage.alive && stage.parent == parent && stage.name == name;
        if let Some(place) = (0..self.stages.len()).filter(free).find(|&place| again(&self.stages[place])) {
            return place;
        }
        if self.stages.len() == MOST_STAGES {
            return MOST_STAGES - 1;
        }
        self.stages.push(Stage {
            name,
            command: String::new(),
            pids: Vec::new(),
            ins: Vec::new(),
            outs: Vec::new(),
            processes: 0,
            threads: 0,
            uncounted: false,
            hidden: false,
            alive: true,
            cpus: Vec::new(),
            progress: None,
            parent,
            changed: false,
            totals: Totals::default(),
            groups: None,
        });
        self.stages.len() - 1
    }

    fn update(&mut self, place: usize, shape: &Shape) {
        let stage = &mut self.stages[place];
        let first = &self.known[&shape.pids[0]].process;
        // A program that becomes another keeps its number.
        if stage.command.is_empty() || stage.name != first.comm || stage.pids.first() != shape.pids.first() {
            stage.name = first.comm.clone();
            stage.command = first.command();
        }
        let threads = shape.pids.iter().filter_map(|pid| self.known.get(pid)).map(|known| known.threads.len()).sum();
        if stage.pids != shape.pids {
            stage.cpus = sched_getaffinity(rustix::process::Pid::from_raw(first.pid.cast_signed()))
                .map(|set| (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
                .unwrap_or_default();
            stage.groups = Some(std::rc::Rc::new(ControlGroups::of_process(first.pid)));
            stage.changed |= stage.pids.iter().any(|pid| !shape.pids.contains(pid));
            stage.pids.clone_from(&shape.pids);
        }
        stage.processes = stage.processes.max(shape.pids.len());
        stage.threads = stage.threads.max(threads);
        stage.ins.clone_from(&shape.ins);
        stage.outs.clone_from(&shape.outs);
    }

    /// The pipes between the stages of now. A pipe between the same two is the same, whatever its number.
    fn join(&mut self, shapes: &[Shape], places: &[usize]) {
        for (writer, &from) in shapes.iter().zip(places) {
            for &id in &writer.outs {
                let readers = shapes.iter().zip(places).filter(|(reader, _)| reader.ins.contains(&id));
                for (_, &to) in readers.filter(|&(_, &to)| to != from) {
                    let same = |pipe: &&mut Pipe| pipe.from == from && pipe.to == to;
                    let current = |pipe: &Pipe| pipe.id == id || !writer.outs.contains(&pipe.id);
                    match self.pipes.iter_mut().filter(same).find(|pipe| current(pipe)) {
                        Some(pipe) => {
                            pipe.scans = if pipe.id == id { pipe.scans + 1 } else { 0 };
                            pipe.id = id;
                        }
                        None => self.pipes.push(Pipe { from, to, id, capacity: None, scans: 0 }),
                    }
                }
            }
        }
        if self.manner.touch {
            // Not at once: a pipeline may be about to end.
            for pipe in self.pipes.iter_mut().filter(|pipe| pipe.capacity.is_none() && pipe.scans == 3) {
                let holders = self.stages[pipe.to].pids.iter().filter_map(|pid| self.known.get(pid));
                pipe.capacity = holders.filter_map(|known| capacity(&known.process, pipe.id)).next();
            }
        }
    }
}

/// CPU time of this process.
pub fn own_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// A clock tick in nanoseconds: USER_HZ is 100 wherever Linux runs.
const TICK: u64 = 10_000_000;

/// What the threads of a stage do now.
fn look(stage: &mut Stage, known: &mut BTreeMap<u32, Known>, moment: &mut Moment) {
    for pid in &stage.pids {
        let Some(Known { process, ends, threads }) = known.get_mut(pid) else { continue };
        // A stopped thread still shows the call that it was in.
        if matches!(process.state, 'T' | 't') {
            moment.state = Some(moment.state.map_or(State::Stopped, |known| known.min(State::Stopped)));
            continue;
        }
        for place in 0..threads.len() {
            let Some(wait) = threads[place].wait(*pid, ends, &mut stage.uncounted) else { continue };
            let state = match wait {
                Wait::Is(state) => state,
                Wait::In(pipe) => {
                    moment.ins.push(pipe);
                    State::Starved
                }
                Wait::Out(pipe) => {
                    moment.outs.push(pipe);
                    State::Blocked
                }
                Wait::Unsure { ins, outs, otherwise } => {
                    let (ins_before, outs_before, before) = moment.unsure.unwrap_or((false, false, otherwise));
                    moment.unsure = Some((ins || ins_before, outs || outs_before, otherwise.min(before)));
                    continue;
                }
            };
            moment.state = Some(moment.state.map_or(state, |known| known.min(state)));
            if state == State::Running {
                // Nothing can come before it. Likely the same thread will run at the next look.
                moment.unsure = None;
                threads.swap(0, place);
                return;
            }
        }
    }
    if moment.state == Some(State::Children) {
        moment.state = stage.pids.iter().filter_map(|pid| known.get(pid)).find_map(young).or(moment.state);
    }
    if stage.hidden && moment.state.is_none() && moment.unsure.is_none() {
        moment.state = Some(State::Unknown);
    }
}

/// What a process does that this one waits for and that isn't known yet, such as the next command of a loop.
fn young(parent: &Known) -> Option<State> {
    let threads: Vec<u32> = parent.threads.iter().map(|thread| thread.id).collect();
    let children = process::children(parent.process.pid, &threads)?;
    let state = |pid: u32| match Thread::new(pid, pid, Access::Syscall, false).wait(pid, &parent.ends, &mut false)? {
        Wait::Is(state) => Some(state),
        Wait::In(_) => Some(State::Starved),
        Wait::Out(_) => Some(State::Blocked),
        Wait::Unsure { .. } => None,
    };
    children.into_iter().filter_map(state).min()
}

/// The capacity of a pipe, asked at the end that a process reads.
fn capacity(process: &Process, id: PipeId) -> Option<u64> {
    at_end(process, id, |end| rustix::pipe::fcntl_getpipe_size(end).ok())?.map(|size| size as u64)
}

/// Does something at the end of a pipe that a process reads, which is open for some microseconds more by that.
fn at_end<T>(process: &Process, id: PipeId, act: impl FnOnce(&OwnedFd) -> T) -> Option<T> {
    let end = process.ends.as_ref()?.iter().find(|end| end.pipe == id && end.way == Way::In)?;
    let path = format!("/proc/{}/fd/{}", process.pid, end.fd);
    // A path holds no end. That it is the right pipe is known before one is opened.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let held = openat(CWD, &path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let inode = rustix::fs::fstat(&held).ok()?.st_ino;
    if inode != id.1 {
        return None;
    }
    let through = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&held));
    Some(act(&openat(CWD, &through, flags, Mode::empty()).ok()?))
}
