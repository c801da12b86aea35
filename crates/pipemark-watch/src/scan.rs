//! Scans for the processes, threads and pipes of a pipeline, and matches them with those of the last scan.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::io::Read as _;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Resource, getrlimit};
use rustix::thread::sched_getaffinity;

use pipemark_causes::{MachineLimits, naming, programs};
use pipemark_host::ControlGroups;
use pipemark_proc::call;
use pipemark_proc::process::{self, Direction, PipeId, Process};
use pipemark_proc::state::WaitTarget;
use pipemark_proc::thread::Thread;
use pipemark_proc::topology::{self, Reach, StageShape};
use pipemark_proc::watched::WatchedProcess;
use pipemark_proc::{capacity, connections, language};

use crate::budget::{FEW_STAGES, PaidWork, own_time};
use crate::counters::Totals;
use crate::sampler::{Subject, WatchedPipe, WatchedStage, Watcher};

/// The interval of checks for changes, except at the start of a pipeline.
const CHECK: Duration = Duration::from_millis(100);
/// The interval of checks for changes during [`STARTING`].
const CHECK_STARTING: Duration = Duration::from_millis(20);
/// How long after its start a pipeline is checked more often.
const STARTING: Duration = Duration::from_millis(300);
/// The age up to which a stage's counters are read at each check for changes.
const YOUNG: Duration = Duration::from_secs(1);
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
/// A younger pipe isn't opened to read its capacity, because the pipeline may be short and about to end.
const MIN_AGE_TO_OPEN: Duration = Duration::from_millis(200);
/// Beyond this number of known processes, a change of one leads to a scan of that one only.
const MAX_KNOWN_IF_SMALL: usize = 64;
/// The maximum number of stages. Later stages, such as more iterations of a loop, are counted with the last stage.
const MAX_STAGES: usize = 400;

/// The result of the last scan, and the times of the last and the next scans.
#[derive(Debug)]
pub(super) struct ScanState {
    shapes: Vec<StageShape>,
    /// Whether the last two results were equal.
    same: bool,
    /// Whether a thread waits for an unknown descriptor.
    pub strange: bool,
    pub next: Instant,
    /// The earliest time of the next scan, which limits the CPU time of scans while processes exit often.
    earliest: Instant,
    last_full: Instant,
    next_full: Instant,
    next_search: Instant,
    /// CPU time of a scan of all known processes.
    cost: Duration,
    /// The process with which the next check for changes begins.
    check_from: u32,
}

/// The processes that a scan reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScanExtent<'c> {
    /// All known processes and their descendants.
    Known,
    /// Those that have changed and their descendants.
    Changed(&'c BTreeSet<u32>),
}

impl ScanExtent<'_> {
    fn includes(self, pid: u32) -> bool {
        match self {
            ScanExtent::Known => true,
            ScanExtent::Changed(changed) => changed.contains(&pid),
        }
    }
}

/// The maximum number of threads of a process that a scan reads for what they wait for.
const MAX_THREADS: usize = 16;
/// The maximum number of processes of a stage whose other files are examined.
const MAX_PROCESSES_FOR_FILES: usize = 32;
/// The maximum number of pipes that are opened at once to read their capacities.
const MAX_OPENED: usize = 16;

impl ScanState {
    pub fn nothing(now: Instant) -> ScanState {
        let (next, earliest, last_full, next_full, next_search) = (now, now, now, now, now);
        let (cost, check_from) = (Duration::ZERO, 0);
        let (shapes, same, strange) = (Vec::new(), false, false);
        ScanState { shapes, same, strange, next, earliest, last_full, next_full, next_search, cost, check_from }
    }

    /// Makes the next scan a full one.
    pub fn rescan(&mut self) {
        self.same = false;
    }

    /// Scans sooner, because a process has exited and its successor may start soon.
    pub fn scan_soon(&mut self, now: Instant) {
        self.next = self.next.min((now + CHECK_STARTING).max(self.earliest));
    }
}

/// This machine's limits for pipes.
pub(super) fn limits() -> MachineLimits {
    /// The default capacity of a pipe, on pages of 4 KiB.
    const DEFAULT: usize = 64 << 10;
    let largest = std::fs::read_to_string("/proc/sys/fs/pipe-max-size").ok().and_then(|text| text.trim().parse().ok());
    let pipe = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).ok();
    let granted = pipe.and_then(|(reader, _writer)| rustix::pipe::fcntl_getpipe_size(&reader).ok());
    MachineLimits {
        largest_pipe: largest.unwrap_or(1 << 20),
        pipes_exhausted: granted.is_some_and(|bytes| bytes < DEFAULT),
        page: rustix::param::page_size() as u64,
        cpus: std::thread::available_parallelism().map_or(0, usize::from),
        ..MachineLimits::default()
    }
}

/// Shells whose -c argument is a pipeline as typed.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "zsh", "ksh", "busybox"];

/// A pipeline as typed, and the shell that runs it.
pub(super) struct TypedText {
    /// What the shell is called.
    pub shell: String,
    /// Its argument; `None` if it isn't UTF-8.
    pub text: Option<String>,
    /// Whether another process than one of this call has it. Its text may be anybody's.
    pub elsewhere: bool,
}

/// The pipeline as typed: the argument of the shell that runs it; `None` if no shell runs it.
pub(super) fn typed_text(subject: &Subject) -> Option<TypedText> {
    const STEPS: usize = 4;
    let (mut pid, steps) = match subject {
        Subject::Child(root) => (*root, 1),
        Subject::Processes(pids) => (*pids.first()?, STEPS),
    };
    let elsewhere = matches!(subject, Subject::Processes(_));
    for _ in 0..steps {
        let process = Process::read(pid)?;
        let words = process.arguments();
        if let [shell, flag, text, ..] = &words[..]
            && let Ok(shell) = std::str::from_utf8(shell)
            && SHELLS.contains(&programs::base(shell))
            && flag.starts_with(b"-")
            && flag.ends_with(b"c")
        {
            let text = String::from_utf8(text.clone()).ok();
            return Some(TypedText { shell: shell.to_owned(), text, elsewhere });
        }
        pid = process.parent;
    }
    None
}

/// Whether a program compares text by locale rules. `environment` is the content of /proc/PID/environ.
fn collates(program: &str, environment: &[u8]) -> bool {
    const BY_ORDER: [&str; 5] = ["sort", "join", "comm", "uniq", "ls"];
    let value = |name: &str| {
        let mut all = environment.split(|&byte| byte == 0).filter_map(|one| std::str::from_utf8(one).ok());
        all.find_map(|one| one.strip_prefix(name)?.strip_prefix('=')).filter(|value| !value.is_empty())
    };
    let category = if BY_ORDER.contains(&program) { "LC_COLLATE" } else { "LC_CTYPE" };
    let language = value("LC_ALL").or_else(|| value(category)).or_else(|| value("LANG"));
    language.is_some_and(|language| !["C", "POSIX"].contains(&language))
}

/// The environment of a process when it started. If it is unreadable and this program started the process, returns this
/// program's own environment, which the process inherited.
fn environment(pid: u32, is_child: bool) -> Vec<u8> {
    // More than most environments have. Without a capacity, the kernel would be asked for a few bytes at a time.
    let mut bytes = Vec::with_capacity(16 << 10);
    let read = File::open(format!("/proc/{pid}/environ")).and_then(|mut file| file.read_to_end(&mut bytes));
    read.map(|_| bytes).unwrap_or_else(|_| {
        let own = std::env::vars_os().filter(|_| is_child);
        own.flat_map(|(name, value)| [name.as_encoded_bytes(), b"=", value.as_encoded_bytes(), b"\0"].concat())
            .collect()
    })
}

/// Whether a process uses the files of a locale. `maps` is the content of /proc/PID/maps. A locale that isn't installed
/// counts as C.
fn has_locale(maps: &str) -> bool {
    maps.lines()
        .any(|line| line.contains("/locale-archive") || line.contains("/LC_COLLATE") || line.contains("/LC_CTYPE"))
}

impl Watcher {
    /// Scans for processes, threads and pipes, if they seem to have changed.
    pub(super) fn scan(&mut self) {
        // The cost is measured as CPU time. With the elapsed time, waiting for a CPU on a busy machine would delay the
        // next scan, and a short pipeline would be missed.
        let (began, cpu) = (Instant::now(), own_time());
        let changed = self.find_changed(cpu);
        let strange = std::mem::take(&mut self.found.strange) && began >= self.found.last_full + FULL_SCAN_STRANGE;
        if !changed.is_empty() || strange || !self.found.same || began >= self.found.next_full {
            // Reading many processes or descriptors again takes long. In between, only those that have changed are read.
            let is_small = self.found.cost <= self.budget.portion() && self.known.len() <= MAX_KNOWN_IF_SMALL;
            let is_hidden = self.stages.iter().any(|stage| stage.hidden);
            if is_small || self.budget.allows(PaidWork::Scan, Some(self.found.cost), began) {
                self.scan_processes(began, ScanExtent::Known);
                self.budget.note(PaidWork::Scan, began, self.found.cost);
            } else if !changed.is_empty() && !is_hidden {
                self.scan_processes(began, ScanExtent::Changed(&changed));
            }
        }
        self.read_young(began);
        self.schedule_scan(began, own_time().saturating_sub(cpu));
    }

    /// The known processes that have changed since the last check. If there are many, only some are checked each time.
    fn find_changed(&mut self, cpu: Duration) -> BTreeSet<u32> {
        const AT_ONCE: usize = 16;
        let (from, most) = (self.found.check_from, self.budget.portion() / 2);
        let pids = self.known.range(from..).chain(self.known.range(..from)).map(|(&pid, _)| pid);
        let pids: Vec<u32> = pids.collect();
        let mut changed = BTreeSet::new();
        for some in pids.chunks(AT_ONCE) {
            self.found.check_from = some[0];
            if own_time().saturating_sub(cpu) > most {
                break;
            }
            changed.extend(some.iter().filter(|pid| self.known.get_mut(pid).is_some_and(WatchedProcess::has_changed)));
        }
        changed
    }

    /// Makes the first scan, and reads all counters.
    pub(super) fn scan_first(&mut self) {
        let (began, cpu) = (Instant::now(), own_time());
        self.scan_processes(began, ScanExtent::Known);
        self.count(true);
        self.find_languages();
        self.find_peers_of_sockets();
        let spent = own_time().saturating_sub(cpu);
        // If all processes of the machine were read, a scan of the known ones costs less.
        let weight = |process: &Process| 4 + process.descriptors() + process.threads as usize;
        let known: usize = self.known.values().map(|known| weight(&known.process)).sum();
        let all = self.table.processes().map(weight).sum::<usize>().max(known);
        self.found.cost = spent.mul_f64(known as f64 / all.max(1) as f64);
        let now = Instant::now();
        (self.found.last_full, self.found.next_full) = (now, now + FULL_SCAN.max(self.found.cost * self.scan_pause()));
        self.found.next_search = now + SEARCH;
        self.schedule_scan(now, Duration::ZERO);
    }

    /// Reads counters of young stages: those of a process that exits before the interval ends would be lost.
    fn read_young(&mut self, now: Instant) {
        let young = |stage: &WatchedStage| stage.alive && stage.since.is_some_and(|since| now < since + YOUNG);
        if self.stages.iter().any(young) && self.counters_cost <= self.budget.portion() / 4 {
            let cpu = own_time();
            self.count(false);
            self.find_languages();
            if self.stages.iter().any(|stage| young(stage) && stage.peer.is_none()) {
                self.find_peers_of_sockets();
            }
            self.counters_cost = own_time().saturating_sub(cpu);
        }
    }

    /// Sets the time of the next scan. `spent` is the CPU time of this one.
    fn schedule_scan(&mut self, began: Instant, spent: Duration) {
        let starting = matches!(self.subject, Subject::Child(_)) && began < self.begin + STARTING;
        let pause = self.scan_pause();
        self.found.earliest = began + if starting { Duration::ZERO } else { spent * pause / 2 };
        self.found.next = began + if starting { CHECK_STARTING.max(spent * 4) } else { CHECK.max(spent * pause) };
    }

    /// The pause after a scan, as a multiple of the scan's CPU time.
    fn scan_pause(&self) -> u32 {
        SCAN_PAUSES[usize::from(self.stages.len() > FEW_STAGES)]
    }

    fn scan_processes(&mut self, began: Instant, extent: ScanExtent<'_>) {
        let cpu = own_time();
        let is_first = self.table.is_empty();
        // A list of all processes takes a few microseconds for each.
        let listing = Duration::from_micros(3) * u32::try_from(self.table.len()).unwrap_or(u32::MAX);
        let search = matches!(self.subject, Subject::Processes(_))
            && (is_first
                || began >= self.found.next_search && self.budget.allows(PaidWork::Search, Some(listing), began));
        let mut processes = self.family(extent);
        if search {
            self.table.refresh((!is_first).then(|| self.budget.portion() * 2), own_time);
            processes.into_iter().for_each(|process| self.table.insert(process));
            let seeds = if let Subject::Processes(seeds) = &self.subject { &seeds[..] } else { &[] };
            let seeds: Vec<u32> = seeds.iter().chain(self.known.keys()).copied().collect();
            let users = self.socket_uses.iter().map(|(pid, ..)| *pid).collect();
            processes = self.table.joined_to(&seeds, &users);
            if !is_first {
                self.budget.note(PaidWork::Search, began, own_time().saturating_sub(cpu));
            }
        }
        let hidden: HashSet<u32> =
            processes.iter().filter(|process| process.ends.is_none()).map(|process| process.pid).collect();
        topology::fill_gaps(&mut processes);
        self.note_socket_uses(&processes, extent);
        connections::join_socket_pairs(&mut processes, &self.socket_uses);
        let shapes = match &self.subject {
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
                if no_pipe && !self.pipes.is_empty() && !parts.is_empty() {
                    shapes = self.remaining(&parts);
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
                    let before = self.known.get(*pid).map(|known| known.process.start);
                    now.is_some_and(|now| before.is_none_or(|start| now.start == start))
                };
                let mut seeds: Vec<u32> = seeds.iter().filter(lives).copied().collect();
                // The requested processes have exited, so the remaining processes of the pipeline are sampled.
                if seeds.is_empty() {
                    seeds = self.known.keys().copied().collect();
                }
                topology::stages(&processes, &seeds, Reach::Joined)
            }
        };
        self.adopt(processes, &shapes, &hidden, extent);
        let pause = self.scan_pause();
        let found = &mut self.found;
        found.same = found.shapes == shapes && !shapes.is_empty();
        found.shapes = shapes;
        let spent = own_time().saturating_sub(cpu);
        if extent == ScanExtent::Known {
            (found.last_full, found.next_full) = (began, began + FULL_SCAN.max(spent * pause));
            found.cost = spent;
        }
        if search {
            found.next_search = began + if found.same { SEARCH_QUIET } else { SEARCH }.max(spent * pause);
        }
    }

    /// The stages of a pipeline that is ending, when no pipe joins them any more: the remaining processes of each
    /// stage, and stages of new processes.
    fn remaining(&self, parts: &[Process]) -> Vec<StageShape> {
        let lives = |pid: &u32| parts.iter().any(|process| process.pid == *pid && process.state != 'Z');
        let left = |stage: &WatchedStage| stage.pids.iter().copied().filter(lives).collect::<Vec<u32>>();
        let shape = |pids: Vec<u32>| StageShape { pids, ins: Vec::new(), outs: Vec::new() };
        let stages = self.stages.iter().filter(|stage| stage.alive).map(left).filter(|pids| !pids.is_empty());
        let mut shapes: Vec<StageShape> = stages.map(shape).collect();
        let known = |process: &&Process| shapes.iter().any(|shape| shape.pids.contains(&process.pid));
        let new: Vec<Process> = parts.iter().filter(|process| !known(process)).cloned().collect();
        let pids: Vec<u32> = new.iter().map(|process| process.pid).collect();
        shapes.extend(topology::stages(&new, &pids, Reach::Given));
        shapes
    }

    /// Notes which processes wait in a read or write on a socket. The socket may join them to other processes of their
    /// family.
    fn note_socket_uses(&mut self, processes: &[Process], extent: ScanExtent<'_>) {
        let is_ours = |process: &&Process| {
            let ours =
                |pid: u32| self.known.contains_key(&pid) || matches!(self.subject, Subject::Child(root) if root == pid);
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
            self.socket_uses.extend(uses);
        }
    }

    /// The known processes that still exist, and all descendants of these processes and of the root. Those outside the
    /// extent are as last read.
    fn family(&self, extent: ScanExtent<'_>) -> Vec<Process> {
        let mut found: BTreeMap<u32, Process> = BTreeMap::new();
        let mut waiting: Vec<u32> = self.known.keys().chain(self.orphans.keys()).copied().collect();
        if let Subject::Child(root) = self.subject {
            waiting.push(root);
        }
        let own = std::process::id();
        while let Some(pid) = waiting.pop() {
            if pid == own || found.contains_key(&pid) {
                continue;
            }
            if let Some(known) = self.known.get(&pid).filter(|_| !extent.includes(pid)) {
                found.insert(pid, known.process.clone());
                continue;
            }
            let Some(process) = Process::read(pid) else { continue };
            // The pid was reused by another process.
            let start = self.known.get(&pid).map(|known| known.process.start).or(self.orphans.get(&pid).copied());
            if start.is_some_and(|start| start != process.start) {
                continue;
            }
            match process::children(pid, &process.thread_ids()) {
                Some(children) => waiting.extend(children),
                None => return self.family_of_all(),
            }
            found.insert(pid, process);
        }
        found.into_values().collect()
    }

    /// Like `family`, for kernels that do not list children.
    fn family_of_all(&self) -> Vec<Process> {
        let mut all = process::all();
        let is_orphan = |process: &&Process| self.orphans.get(&process.pid) == Some(&process.start);
        let orphans = all.iter().filter(is_orphan).map(|process| process.pid);
        let mut kept: HashSet<u32> = self.known.keys().copied().chain(orphans).collect();
        if let Subject::Child(root) = self.subject {
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

    /// Merges this scan with the last one. Matches each stage with an earlier stage, or adds it.
    fn adopt(&mut self, processes: Vec<Process>, shapes: &[StageShape], hidden: &HashSet<u32>, extent: ScanExtent<'_>) {
        // Each thread and each process opens up to four files. Together they may use half of the available descriptors.
        let most = getrlimit(Resource::Nofile).current.unwrap_or(1024).min(8192) / 16;
        let mut open = self.known.values().map(|known| known.threads.len() as u64).sum::<u64>();
        let mut before = std::mem::take(&mut self.known);
        let mut wanted: HashSet<u32> = shapes.iter().flat_map(|shape| &shape.pids).copied().collect();
        if let Subject::Processes(seeds) = &self.subject {
            wanted.extend(seeds);
        }
        let stages = self.stages.iter().enumerate();
        let stage_of: HashMap<u32, usize> =
            stages.flat_map(|(at, stage)| stage.pids.iter().map(move |&pid| (pid, at))).collect();
        for process in processes {
            let pid = process.pid;
            if matches!(self.subject, Subject::Processes(_)) && !wanted.contains(&pid) {
                continue;
            }
            let mut old = before.remove(&pid).filter(|old| old.process.start == process.start);
            if let Some(mut old) = old.take_if(|_| !extent.includes(pid)) {
                old.update(process);
                self.known.insert(pid, old);
                continue;
            }
            let mut known = old.unwrap_or_else(|| WatchedProcess::new(process.clone(), open < most));
            let ids: BTreeSet<u32> = process.thread_ids().into_iter().collect();
            let count = known.threads.len();
            known.threads.retain(|thread| ids.contains(&thread.id));
            if known.threads.len() < count
                && let Some(&at) = stage_of.get(&pid)
            {
                self.stages[at].changed = true;
            }
            let known_ids: BTreeSet<u32> = known.threads.iter().map(|thread| thread.id).collect();
            for &id in ids.difference(&known_ids) {
                open += 1;
                known.threads.push(Thread::new(pid, id, self.options.access, open < most));
            }
            known.update(process);
            self.known.insert(pid, known);
        }
        let mut taken = vec![false; self.stages.len()];
        // Stages that still have their first process are matched first, because another of their processes may now
        // belong to another stage.
        let living = self.stages.iter().enumerate().rev().filter(|(_, stage)| stage.alive);
        let by_first: HashMap<u32, usize> = living.filter_map(|(at, stage)| Some((*stage.pids.first()?, at))).collect();
        let kept: Vec<Option<usize>> = shapes.iter().map(|shape| by_first.get(&shape.pids[0]).copied()).collect();
        kept.iter().flatten().for_each(|&place| taken[place] = true);
        let mut places = Vec::new();
        for (shape, kept) in shapes.iter().zip(kept) {
            let place = kept.unwrap_or_else(|| self.place_of(shape, &taken));
            taken.resize(self.stages.len(), false);
            taken[place] = true;
            let old = &self.stages[place];
            let is_same = old.alive && (&old.pids, &old.ins, &old.outs) == (&shape.pids, &shape.ins, &shape.outs);
            if !is_same || shape.pids.iter().any(|&pid| extent.includes(pid)) {
                self.update(place, shape);
            }
            self.mark_inner_pipes(place);
            self.stages[place].hidden = hidden.contains(&shape.pids[0]);
            places.push(place);
        }
        let now = Some(Instant::now());
        for (stage, &taken) in self.stages.iter_mut().zip(&taken) {
            if !(stage.alive && taken) {
                // The next iteration of a shell loop starts a new process, whose counters start at 0.
                (stage.since, stage.totals) = (now, Totals::default());
            }
            stage.alive = taken;
        }
        self.update_pipes(shapes, &places);
    }

    /// Checks once, when programs have set their locales, that these locales are installed.
    pub(super) fn check_locales(&mut self) {
        const SET: Duration = Duration::from_millis(200);
        for stage in self.stages.iter_mut().filter(|stage| stage.alive) {
            if stage.since.is_none_or(|since| since.elapsed() < SET) {
                continue;
            }
            if let Some(pid) = stage.locale_of.take()
                && let Ok(maps) = std::fs::read_to_string(format!("/proc/{pid}/maps"))
                && !maps.is_empty()
            {
                stage.collates = has_locale(&maps);
            }
        }
    }

    /// Reads the languages of programs that make small writes, each once. Reading takes a few milliseconds.
    pub(super) fn find_languages(&mut self) {
        const MIN_WRITES: u64 = 200;
        const MAX_BYTES_PER_WRITE: u64 = 2048;
        for (stage, counts) in self.stages.iter_mut().zip(&self.current.stages).filter(|(stage, _)| stage.alive) {
            let small = |(bytes, writes)| writes >= MIN_WRITES && bytes <= writes * MAX_BYTES_PER_WRITE;
            if counts.wrote.zip(counts.writes).is_some_and(small)
                && let Some(pid) = stage.language_of.take()
            {
                stage.language = language::language_of(pid);
            }
        }
    }

    /// The earlier stage that these processes continue, or a new one.
    fn place_of(&mut self, shape: &StageShape, taken: &[bool]) -> usize {
        let free = |place: &usize| !taken.get(*place).copied().unwrap_or(false);
        let parents = self.parents(shape.pids[0]);
        let name = self.name(shape);
        let own: HashSet<u32> = shape.pids.iter().copied().collect();
        let shares = |stage: &WatchedStage| stage.alive && stage.pids.iter().any(|pid| own.contains(pid));
        // The stage is the next iteration of a loop, or the next command that xargs runs.
        let related =
            |stage: &WatchedStage| stage.parents.iter().zip(parents).any(|(&old, new)| old == new && new.is_some());
        let lives = |stage: &WatchedStage| stage.pids.iter().any(|pid| self.known.contains_key(pid));
        let again = |stage: &WatchedStage| !lives(stage) && stage.name == name && related(stage);
        let find =
            |is: &dyn Fn(&WatchedStage) -> bool| (0..self.stages.len()).filter(free).find(|&at| is(&self.stages[at]));
        if let Some(place) = find(&shares).or_else(|| find(&again)) {
            return place;
        }
        if self.stages.len() < MAX_STAGES {
            self.stages.push(WatchedStage { name, parents, ..WatchedStage::default() });
        }
        self.stages.len() - 1
    }

    /// The parent of a process, and the parent's parent if it is watched too.
    fn parents(&self, pid: u32) -> [Option<u32>; 2] {
        let parent = |pid: u32| self.known.get(&pid).map(|known| known.process.parent);
        [parent(pid), parent(pid).and_then(parent)]
    }

    /// The process that names a stage: its first process, or the process that a shell or similar wrapper started to do
    /// its work.
    fn naming_process(&self, shape: &StageShape) -> &Process {
        const STARTERS: [&str; 14] = [
            "sh", "bash", "dash", "zsh", "ksh", "timeout", "time", "flock", "sudo", "su", "runuser", "doas", "unshare",
            "cpulimit",
        ];
        const AT_ONCE: u64 = 2;
        let first = &self.known[&shape.pids[0]].process;
        let known = shape.pids[1..].iter().filter_map(|pid| self.known.get(pid)).map(|known| &known.process);
        let mut children = known.filter(|process| process.parent == first.pid);
        let (Some(child), None) = (children.next(), children.next()) else { return first };
        let at_once = child.start <= first.start + AT_ONCE;
        if at_once && STARTERS.contains(&first.comm.as_str()) { child } else { first }
    }

    /// The name of a stage: the name of its first process, as typed.
    fn name(&self, shape: &StageShape) -> String {
        let naming = self.naming_process(shape);
        naming::name_of(&naming.comm, &naming.words(), self.typed.as_deref())
    }

    fn update(&mut self, place: usize, shape: &StageShape) {
        let (naming, old) = (self.naming_process(shape), &self.stages[place]);
        let words = naming.words();
        let name = naming::name_of(&naming.comm, &words, self.typed.as_deref());
        // A process keeps its pid when it executes another program.
        if old.command.is_empty() || old.name != name || old.pids.first() != shape.pids.first() {
            let (pid, command) = (naming.files_of, naming.command(&words));
            let is_child = matches!(self.subject, Subject::Child(_));
            let collates = collates(programs::program(&words), &environment(pid, is_child));
            let stage = &mut self.stages[place];
            (stage.name, stage.command, stage.since) = (name, command, Some(Instant::now()));
            (stage.words, stage.collates, stage.locale_of) = (words, collates, Some(pid).filter(|_| collates));
            (stage.language, stage.language_of, stage.low_priority) = (None, Some(pid), process::low_priority(pid));
        }
        let stage = &mut self.stages[place];
        let first = &self.known[&shape.pids[0]].process;
        let threads = shape.pids.iter().filter_map(|pid| self.known.get(pid)).map(|known| known.threads.len()).sum();
        stage.threads_now = threads;
        if stage.pids != shape.pids {
            stage.cpus = sched_getaffinity(Pid::from_raw(first.pid.cast_signed()))
                .map(|set| (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
                .unwrap_or_default();
            // A process that became a separate stage took its CPU time with it.
            let now: HashSet<u32> = shape.pids.iter().copied().collect();
            stage.changed |= stage.pids.iter().any(|pid| !now.contains(pid) && !self.known.contains_key(pid));
            stage.pids.clone_from(&shape.pids);
        }
        // A process may move to another group after it has started.
        let name = process::control_groups(first.files_of);
        let known = self.groups.iter().position(|(known, _)| *known == name);
        let group = Some(known.unwrap_or(self.groups.len()));
        if known.is_none() {
            self.groups.push((name, ControlGroups::of_process(first.files_of)));
        }
        if stage.group != group {
            (stage.group, stage.totals.throttled) = (group, None);
        }
        stage.processes = stage.processes.max(shape.pids.len());
        stage.threads = stage.threads.max(threads);
        stage.ins.clone_from(&shape.ins);
        stage.outs.clone_from(&shape.outs);
        let processes = || shape.pids.iter().filter_map(|pid| self.known.get(pid)).map(|known| &known.process);
        let ends = || processes().flat_map(|process| process.ends.iter().flatten());
        let held = |not: Direction| {
            ends().filter(move |end| end.direction != not).map(|end| end.pipe).collect::<HashSet<PipeId>>()
        };
        let (reads, writes) = (held(Direction::Out), held(Direction::In));
        let leads: HashSet<PipeId> = shape.ins.iter().chain(&shape.outs).copied().collect();
        let is_inner = |pipe: &PipeId| !leads.contains(pipe) && reads.contains(pipe) && writes.contains(pipe);
        let pipes = ends().map(|end| end.pipe).collect::<BTreeSet<PipeId>>();
        (stage.inner, stage.outer) = pipes.into_iter().partition(is_inner);
        stage.has_eventfd = processes().any(|process| process.others.eventfd);
        let sockets = processes().any(|process| !process.others.sockets.is_empty());
        (stage.reads_others, stage.writes_others) = (sockets, sockets);
        for process in processes().take(MAX_PROCESSES_FOR_FILES) {
            if stage.reads_others && stage.writes_others {
                break;
            }
            let (reads, writes) = process.file_directions();
            (stage.reads_others, stage.writes_others) = (stage.reads_others || reads, stage.writes_others || writes);
        }
    }

    /// Marks pipes within a stage as waits of the stage for itself.
    fn mark_inner_pipes(&mut self, place: usize) {
        let stage = &self.stages[place];
        for pid in stage.pids.iter().filter(|_| !stage.inner.is_empty()) {
            let targets = self.known.get_mut(pid).into_iter().flat_map(|known| known.ends.values_mut());
            for target in targets {
                if let WaitTarget::In(pipe) | WaitTarget::Out(pipe) = target
                    && stage.inner.contains(pipe)
                {
                    *target = WaitTarget::Own;
                }
            }
        }
    }

    /// Updates the pipes between the current stages. A pipe between the same two stages counts as the same pipe,
    /// whatever its inode.
    fn update_pipes(&mut self, shapes: &[StageShape], places: &[usize]) {
        let now = Some(Instant::now());
        // The stages that read each pipe, and the pipes between two stages. Shapes beyond the limit share a stage.
        let mut readers: HashMap<PipeId, BTreeSet<usize>> = HashMap::new();
        for (reader, &to) in shapes.iter().zip(places) {
            for &id in &reader.ins {
                readers.entry(id).or_default().insert(to);
            }
        }
        let mut between: HashMap<(usize, usize), Vec<usize>> = HashMap::new();
        for (at, pipe) in self.pipes.iter().enumerate() {
            between.entry((pipe.from, pipe.to)).or_default().push(at);
        }
        let mut seen: HashSet<(PipeId, usize)> = HashSet::new();
        for (writer, &from) in shapes.iter().zip(places) {
            let written: HashSet<PipeId> = writer.outs.iter().copied().collect();
            for &id in writer.outs.iter().filter(|&&id| seen.insert((id, from))) {
                for &to in readers.get(&id).into_iter().flatten().filter(|&&to| to != from) {
                    let same = between.entry((from, to)).or_default();
                    let current = |pipe: &WatchedPipe| pipe.id == id || !written.contains(&pipe.id);
                    match same.iter().copied().find(|&at| current(&self.pipes[at])) {
                        Some(at) if self.pipes[at].id == id => {}
                        Some(at) => (self.pipes[at].id, self.pipes[at].unread_since) = (id, now),
                        None => {
                            same.push(self.pipes.len());
                            self.pipes.push(WatchedPipe::new(from, to, id, now));
                        }
                    }
                }
            }
        }
    }

    /// Reads the capacities of pipes that have existed for a while, each once.
    pub(super) fn read_capacities(&mut self, now: Instant) {
        let due = |pipe: &&mut WatchedPipe| pipe.unread_since.is_some_and(|since| now >= since + MIN_AGE_TO_OPEN);
        let unread = self.pipes.iter_mut().filter(due).filter(|pipe| self.options.touch && pipe.capacity.is_none());
        for pipe in unread.take(MAX_OPENED) {
            pipe.unread_since = None;
            let holders = self.stages[pipe.to].pids.iter().filter_map(|pid| self.known.get(pid));
            pipe.capacity = holders.filter_map(|known| capacity::read(&known.process, pipe.id)).next();
        }
    }

    /// Sets the capacity of a pipe through its reader's end. Returns the new capacity in bytes; `None` if no process
    /// reads the pipe any more.
    pub fn resize(&self, id: PipeId, bytes: u64) -> Option<Result<u64, Errno>> {
        let bytes = usize::try_from(bytes).ok()?;
        self.known.values().find_map(|known| capacity::set(&known.process, id, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_text_is_that_of_the_environment() {
        let of = |program: &str, environment: &str| collates(program, environment.replace(' ', "\0").as_bytes());
        assert!(of("sort", "LANG=de_DE.UTF-8") && of("grep", "LANG=de_DE.UTF-8"));
        assert!(!of("sort", "LANG=de_DE.UTF-8 LC_ALL=C") && !of("sort", "LC_ALL=POSIX") && !of("sort", "A=B"));
        assert!(!of("sort", "LANG=de_DE.UTF-8 LC_COLLATE=C") && of("grep", "LANG=de_DE.UTF-8 LC_COLLATE=C"));
        assert!(of("sort", "LC_ALL= LANG=C.UTF-8") && !of("grep", "LC_CTYPE=C"));
    }

    #[test]
    fn a_locale_that_is_not_installed_is_not_in_memory() {
        let line = |path: &str| format!("7f00-7f10 r--p 00000000 fe:00 1 {path}\n");
        assert!(
            has_locale(&line("/usr/lib/locale/C.utf8/LC_CTYPE")) && has_locale(&line("/usr/lib/locale/locale-archive"))
        );
        assert!(!has_locale(&line("/usr/share/locale/de/LC_MESSAGES/coreutils.mo")));
    }

    #[test]
    fn the_environment_of_a_child_is_inherited() {
        let own = environment(u32::MAX, true);
        assert!(own.split(|&byte| byte == 0).any(|one| one.starts_with(b"PATH=")));
        assert!(environment(u32::MAX, false).is_empty());
    }
}
