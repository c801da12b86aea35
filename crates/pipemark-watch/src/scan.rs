//! Scans for the processes, threads and pipes of a pipeline, and matches them with those of the last scan.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read as _;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Resource, getrlimit};
use rustix::thread::sched_getaffinity;

use pipemark_causes::{MachineLimits, programs, typed};
use pipemark_host::ControlGroups;
use pipemark_proc::process::{self, Direction, PipeEnd, PipeId, Process};
use pipemark_proc::state::{self, WaitTarget};
use pipemark_proc::thread::Thread;
use pipemark_proc::topology::{self, Reach, StageShape};
use pipemark_proc::watched::WatchedProcess;
use pipemark_proc::{capacity, connections, language};

use crate::counters::Totals;
use crate::sampler::{FEW_STAGES, Subject, WatchedPipe, WatchedStage, Watcher, own_time};

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
}

impl ScanState {
    pub fn nothing(now: Instant) -> ScanState {
        let (next, earliest, last_full, next_full, next_search) = (now, now, now, now, now);
        ScanState { shapes: Vec::new(), same: false, strange: false, next, earliest, last_full, next_full, next_search }
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

/// The pipeline as typed: the argument of the shell that runs it; `None` if no shell runs it.
pub(super) fn typed_text(subject: &Subject) -> Option<String> {
    const STEPS: usize = 4;
    let (mut pid, steps) = match subject {
        Subject::Child(root) => (*root, 1),
        Subject::Processes(pids) => (*pids.first()?, STEPS),
    };
    for _ in 0..steps {
        let process = Process::read(pid)?;
        let words = process.words();
        if let [shell, flag, text, ..] = &words[..]
            && SHELLS.contains(&programs::base(shell))
            && flag.starts_with('-')
            && flag.ends_with('c')
        {
            return Some(text.clone());
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
        let changed = self.known.values_mut().filter_map(|known| known.has_changed().then_some(())).count() > 0;
        let strange = std::mem::take(&mut self.found.strange) && began >= self.found.last_full + FULL_SCAN_STRANGE;
        if changed || strange || !self.found.same || began >= self.found.next_full {
            self.scan_fully(began);
        }
        self.finish_scan(began, cpu, false);
    }

    /// Makes the first scan, and reads all counters.
    pub(super) fn scan_first(&mut self) {
        let (began, cpu) = (Instant::now(), own_time());
        self.scan_fully(began);
        self.finish_scan(began, cpu, true);
    }

    /// Reads counters, all of them if this is the first scan, and sets the time of the next scan.
    fn finish_scan(&mut self, began: Instant, cpu: Duration, is_first: bool) {
        // The counters of a process that exits before the interval ends would be lost.
        let young = |stage: &WatchedStage| stage.alive && stage.since.is_some_and(|since| began < since + YOUNG);
        if is_first || self.stages.iter().any(young) {
            self.count(is_first);
            self.find_languages();
            if self.stages.iter().any(|stage| young(stage) && stage.peer.is_none()) {
                self.find_peers_of_sockets();
            }
        }
        let starting = matches!(self.subject, Subject::Child(_)) && began < self.begin + STARTING;
        let pause = self.scan_pause();
        let spent = own_time().saturating_sub(cpu);
        self.found.earliest = began + if starting { Duration::ZERO } else { spent * pause / 2 };
        self.found.next = began + if starting { CHECK_STARTING.max(spent * 4) } else { CHECK.max(spent * pause) };
    }

    /// The pause after a scan, as a multiple of the scan's CPU time.
    fn scan_pause(&self) -> u32 {
        SCAN_PAUSES[usize::from(self.stages.len() > FEW_STAGES)]
    }

    fn scan_fully(&mut self, began: Instant) {
        let cpu = own_time();
        let search = matches!(self.subject, Subject::Processes(_)) && began >= self.found.next_search;
        let mut processes = if search { process::all() } else { self.family() };
        let hidden: Vec<u32> =
            processes.iter().filter(|process| process.ends.is_none()).map(|process| process.pid).collect();
        topology::fill_gaps(&mut processes);
        self.note_socket_uses(&processes);
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
                let lives = |pid: &&u32| {
                    let now = processes.iter().find(|process| process.pid == **pid && process.state != 'Z');
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
        self.adopt(processes, &shapes, &hidden);
        let pause = self.scan_pause();
        let found = &mut self.found;
        found.same = found.shapes == shapes && !shapes.is_empty();
        found.shapes = shapes;
        let spent = own_time().saturating_sub(cpu);
        (found.last_full, found.next_full) = (began, began + FULL_SCAN.max(spent * pause));
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
    fn note_socket_uses(&mut self, processes: &[Process]) {
        let is_ours = |process: &&Process| {
            let ours =
                |pid: u32| self.known.contains_key(&pid) || matches!(self.subject, Subject::Child(root) if root == pid);
            ours(process.pid) || ours(process.parent)
        };
        for process in processes.iter().filter(is_ours) {
            let sockets: Vec<(u32, u64)> = process.others.sockets.iter().filter(|(fd, _)| *fd > 2).copied().collect();
            if sockets.is_empty() {
                continue;
            }
            let waits = process.thread_ids().into_iter().filter_map(|id| state::transfer_of(process.pid, id));
            let uses = waits.filter_map(|(fd, direction)| {
                let (_, inode) = sockets.iter().find(|(own, _)| u64::from(*own) == fd)?;
                Some((process.pid, *inode, direction))
            });
            self.socket_uses.extend(uses);
        }
    }

    /// The known processes that still exist, and all descendants of these processes and of the root.
    fn family(&self) -> Vec<Process> {
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
        let mut kept: Vec<u32> = self.known.keys().copied().chain(orphans).collect();
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

    /// Merges this scan with the last one. Matches each stage with an earlier stage, or adds it.
    fn adopt(&mut self, processes: Vec<Process>, shapes: &[StageShape], hidden: &[u32]) {
        // Each thread and each process opens up to four files. Together they may use half of the available descriptors.
        let most = getrlimit(Resource::Nofile).current.unwrap_or(1024).min(8192) / 16;
        let mut open = self.known.values().map(|known| known.threads.len() as u64).sum::<u64>();
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
            let mut known = old.unwrap_or_else(|| WatchedProcess::new(process.clone(), open < most));
            let ids: BTreeSet<u32> = process.thread_ids().into_iter().collect();
            let count = known.threads.len();
            known.threads.retain(|thread| ids.contains(&thread.id));
            if known.threads.len() < count
                && let Some(stage) = self.stages.iter_mut().find(|stage| stage.pids.contains(&pid))
            {
                stage.changed = true;
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
        let same = |stage: &WatchedStage, shape: &StageShape| stage.alive && stage.pids.first() == shape.pids.first();
        let kept: Vec<Option<usize>> =
            shapes.iter().map(|shape| self.stages.iter().position(|stage| same(stage, shape))).collect();
        kept.iter().flatten().for_each(|&place| taken[place] = true);
        let mut places = Vec::new();
        for (shape, kept) in shapes.iter().zip(kept) {
            let place = kept.unwrap_or_else(|| self.place_of(shape, &taken));
            taken.resize(self.stages.len(), false);
            taken[place] = true;
            self.update(place, shape);
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
        let shares = |stage: &WatchedStage| stage.alive && stage.pids.iter().any(|pid| shape.pids.contains(pid));
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
        typed::name_of(&naming.comm, &naming.words(), self.typed.as_deref())
    }

    fn update(&mut self, place: usize, shape: &StageShape) {
        let (naming, old) = (self.naming_process(shape), &self.stages[place]);
        let words = naming.words();
        let name = typed::name_of(&naming.comm, &words, self.typed.as_deref());
        // A process keeps its pid when it executes another program.
        if old.command.is_empty() || old.name != name || old.pids.first() != shape.pids.first() {
            let (pid, command) = (naming.pid, naming.command(&words));
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
        if stage.pids != shape.pids {
            stage.cpus = sched_getaffinity(Pid::from_raw(first.pid.cast_signed()))
                .map(|set| (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
                .unwrap_or_default();
            // A process that became a separate stage took its CPU time with it.
            stage.changed |= stage.pids.iter().any(|pid| !shape.pids.contains(pid) && !self.known.contains_key(pid));
            stage.pids.clone_from(&shape.pids);
        }
        // A process may move to another group after it has started.
        let name = process::control_groups(first.pid);
        let known = self.groups.iter().position(|(known, _)| *known == name);
        let group = Some(known.unwrap_or(self.groups.len()));
        if known.is_none() {
            self.groups.push((name, ControlGroups::of_process(first.pid)));
        }
        if stage.group != group {
            (stage.group, stage.totals.throttled) = (group, None);
        }
        stage.processes = stage.processes.max(shape.pids.len());
        stage.threads = stage.threads.max(threads);
        stage.ins.clone_from(&shape.ins);
        stage.outs.clone_from(&shape.outs);
        let known = shape.pids.iter().filter_map(|pid| self.known.get(pid));
        let ends: Vec<PipeEnd> = known.flat_map(|known| known.process.ends.clone().unwrap_or_default()).collect();
        let held = |end: &PipeEnd, direction: Direction| {
            ends.iter().any(|own| own.pipe == end.pipe && own.direction != direction)
        };
        let leads = |end: &PipeEnd| shape.ins.contains(&end.pipe) || shape.outs.contains(&end.pipe);
        let (inner, outer): (Vec<_>, Vec<_>) =
            ends.iter().partition(|end| !leads(end) && held(end, Direction::In) && held(end, Direction::Out));
        let processes = shape.pids.iter().filter_map(|pid| self.known.get(pid)).map(|known| &known.process);
        stage.has_eventfd = processes.clone().any(|process| process.others.eventfd);
        (stage.reads_others, stage.writes_others) = processes.fold((false, false), |(reads, writes), process| {
            let socket = !process.others.sockets.is_empty();
            let (files_in, files_out) = process.others.directions(process.pid);
            (reads || socket || files_in, writes || socket || files_out)
        });
        let pipes = |ends: Vec<&PipeEnd>| BTreeSet::from_iter(ends.into_iter().map(|end| end.pipe));
        (stage.inner, stage.outer) = (pipes(inner), pipes(outer));
        for pid in &shape.pids {
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
        for (writer, &from) in shapes.iter().zip(places) {
            for &id in &writer.outs {
                let readers = shapes.iter().zip(places).filter(|(reader, _)| reader.ins.contains(&id));
                for (_, &to) in readers.filter(|&(_, &to)| to != from) {
                    let same = |pipe: &&mut WatchedPipe| pipe.from == from && pipe.to == to;
                    let current = |pipe: &WatchedPipe| pipe.id == id || !writer.outs.contains(&pipe.id);
                    match self.pipes.iter_mut().filter(same).find(|pipe| current(pipe)) {
                        Some(pipe) if pipe.id == id => {}
                        Some(pipe) => (pipe.id, pipe.unread_since) = (id, now),
                        None => self.pipes.push(WatchedPipe::new(from, to, id, now)),
                    }
                }
            }
        }
    }

    /// Reads the capacities of pipes that have existed for a while, each once.
    pub(super) fn read_capacities(&mut self, now: Instant) {
        let due = |pipe: &&mut WatchedPipe| pipe.unread_since.is_some_and(|since| now >= since + MIN_AGE_TO_OPEN);
        for pipe in self.pipes.iter_mut().filter(due).filter(|pipe| self.options.touch && pipe.capacity.is_none()) {
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
