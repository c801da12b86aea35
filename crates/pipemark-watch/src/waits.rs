//! Reads which descriptors the threads of a pipeline wait for, if no data moves or a stage waits for a socket.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::SocketAddr;
use std::time::Instant;

use pipemark_causes::PeerFigures;
use pipemark_causes::causes::deadlock::{WaitingProcess, cycle};
use pipemark_causes::evidence::FileLock;
use pipemark_causes::interval::StageCounts;
use pipemark_proc::call::{self, opened_fifo};
use pipemark_proc::connections::{self, SocketState};
use pipemark_proc::locks::{AwaitedLock, Locks};
use pipemark_proc::process::{self, Direction, PipeEnd, PipeId, Process};
use pipemark_proc::state::{Descriptors, ThreadState};
use pipemark_proc::watched::WatchedProcess;

use crate::budget::{PaidWork, own_time};
use crate::sampler::{Subject, WatchedStage, Watcher};

/// The other end of a socket or pipe is searched for if a stage waits for it in at least this share of an interval's
/// samples.
const MIN_WAITS: f64 = 0.3;
/// A stage's tracer is read if the stage is stopped in at least this share of an interval's samples.
const MIN_STOPPED: f64 = 0.05;
/// The holder of a lock is searched for if a stage waits for a lock in at least this share of an interval's samples.
const MIN_WAITS_FOR_LOCK: f64 = 0.5;
/// The maximum number of stages per interval whose lock holders are searched for. Each search lists the stage's
/// descriptors.
const MAX_LOCK_SEARCHES: usize = 8;
/// The maximum number of processes of a stage that are read for details that concern the whole stage.
const MAX_PROCESSES: usize = 32;
/// A pipeline doesn't move if at most this share of the samples found a stage working.
const MAX_WORK_IF_STUCK: f64 = 0.02;

/// Observations of the sockets that a stage waits for.
#[derive(Debug, Clone, Default)]
pub(super) struct SocketWait {
    inode: u64,
    /// The socket's state when first read.
    first: SocketState,
    /// What the stage has received since its last write.
    pub arrived: SocketArrivals,
}

/// What a TCP socket has received since the stage's last write. The kernel doesn't count bytes that a stage gets by recv
/// calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SocketArrivals {
    /// When the stage stopped writing.
    since: Option<Instant>,
    /// Bytes that the socket had received at the first reading after `since`, and at the last one.
    first: u64,
    last: u64,
    /// The number of readings since then that found more bytes than the one before.
    pub increases: u32,
    /// Bytes at the first of all readings, and the number of all readings that found more bytes.
    first_ever: u64,
    pub all_increases: u32,
}

impl SocketArrivals {
    /// Updates the arrivals with the number of bytes that the socket has received and that the stage has read.
    fn note(&mut self, silent_since: Option<Instant>, received: u64) {
        if *self == SocketArrivals::default() {
            (self.first_ever, self.last) = (received, received);
        }
        self.all_increases += u32::from(received > self.last);
        if self.since != silent_since || self.since.is_none() {
            (self.since, self.first, self.last, self.increases) = (silent_since, received, received, 0);
        }
        self.increases += u32::from(received > self.last);
        self.last = received.max(self.last);
    }

    /// The bytes received since the first reading.
    pub fn all_bytes(&self) -> u64 {
        self.last - self.first_ever
    }

    /// The bytes received since the stage's last write.
    pub fn bytes(&self) -> u64 {
        self.last - self.first
    }
}

impl Watcher {
    /// Reads what samples don't show: cycles of waits, tracers, frozen stages, and the other ends of sockets and pipes.
    /// Called at the end of an interval.
    pub(super) fn read_waits(&mut self) {
        if self.current.samples > 0 && self.is_alive() {
            self.find_cycle();
            self.find_tracers();
            self.find_frozen();
            self.find_lock_holders();
            self.find_peers_of_sockets();
            self.find_peers_of_pipes();
        }
    }

    /// The share of a stage's samples in this interval that found one of these states.
    fn share_of(&self, place: usize, states: &[ThreadState]) -> f64 {
        let counted = self.current.stages.get(place).map_or([0; ThreadState::COUNT], |counts| counts.states);
        let found: u32 = states.iter().map(|&state| counted[state as usize]).sum();
        f64::from(found) / f64::from(counted.iter().sum::<u32>().max(1))
    }

    /// Finds the tracers of stages that are stopped for part of the time.
    fn find_tracers(&mut self) {
        for at in 0..self.stages.len() {
            let stops = self.share_of(at, &[ThreadState::Stopped]) >= MIN_STOPPED;
            if stops && self.stages[at].tracer.is_none() {
                self.stages[at].tracer =
                    self.stages[at].pids.iter().take(MAX_PROCESSES).find_map(|&pid| process::tracer(pid));
            }
        }
    }

    /// If no stage runs, reads whether stages are frozen. A frozen thread still shows the system call that it was in.
    fn find_frozen(&mut self) {
        let runs = (0..self.stages.len()).any(|at| self.share_of(at, &[ThreadState::Running]) > MAX_WORK_IF_STUCK);
        for stage in &mut self.stages {
            let frozen =
                |stage: &WatchedStage| stage.pids.iter().take(MAX_PROCESSES).any(|&pid| process::is_frozen(pid));
            stage.frozen = !runs && stage.alive && frozen(stage);
        }
    }

    /// Finds the programs outside the pipeline that hold a lock which a stage waits for. A stage that only sleeps may try
    /// to get a lock again and again, but nothing shows that.
    fn find_lock_holders(&mut self) {
        let waits = |at: &usize| {
            let stage = &self.stages[*at];
            stage.alive && stage.locked_by.is_none() && self.share_of(*at, &[ThreadState::Lock]) >= MIN_WAITS_FOR_LOCK
        };
        // Each search begins with a different stage, so that all stages have their turn.
        let first = self.random_stage();
        let chosen = (first..self.stages.len()).chain(0..first).filter(waits).take(MAX_LOCK_SEARCHES);
        let chosen: Vec<usize> = chosen.collect();
        if chosen.is_empty() {
            return;
        }
        let Some(locks) = Locks::read().filter(Locks::has_waits) else { return };
        for at in chosen {
            let known = self.stages[at].pids.iter().take(MAX_PROCESSES).filter_map(|pid| self.known.get(pid));
            let Some(lock) = known.filter_map(|known| locks.awaited_by(&known.process)).next() else { continue };
            let is_inside = |known: &WatchedProcess| lock.is_held_by(&known.process);
            if self.known.values().take(MAX_PROCESSES).any(is_inside) {
                continue;
            }
            if let Some(holder) = self.holder_outside(&lock) {
                let [path, name] = [&lock.path, &holder.comm].map(|text| pipemark_model::neutral(text));
                self.stages[at].locked_by = Some((path, holder.pid, name));
            }
        }
    }

    /// A process outside the pipeline that holds a lock: the one that took it, or else the eldest of those that have
    /// inherited it. `None` if none is found within the time for one search; the next one continues.
    fn holder_outside(&mut self, lock: &AwaitedLock) -> Option<Process> {
        const AT_ONCE: usize = 8;
        let taker = lock.taken_by.filter(|pid| !self.known.contains_key(pid)).and_then(Process::read);
        if let Some(taker) = taker.filter(|taker| lock.is_held_by(taker)) {
            return Some(taker);
        }
        let began = Instant::now();
        if !self.refresh_table() || !self.budget.allows(PaidWork::Locks, None, began) {
            return None;
        }
        let (cpu, most) = (own_time(), self.budget.portion());
        let all: Vec<&Process> =
            self.table.processes().filter(|process| !self.known.contains_key(&process.pid)).collect();
        let from = all.partition_point(|process| process.pid < self.lock_search_from);
        let mut found: Option<&Process> = None;
        self.lock_search_from = 0;
        for some in all[from..].chunks(AT_ONCE) {
            if own_time().saturating_sub(cpu) > most {
                self.lock_search_from = some[0].pid;
                break;
            }
            for process in some.iter().filter(|process| lock.is_held_by(process)) {
                found = found.filter(|eldest| eldest.start <= process.start).or(Some(process));
            }
        }
        let found = found.cloned();
        self.budget.note(PaidWork::Locks, began, own_time().saturating_sub(cpu));
        found
    }

    fn find_cycle(&mut self) {
        // A stage that sleeps goes on by itself.
        const WORK: [ThreadState; 5] =
            [ThreadState::Running, ThreadState::Disk, ThreadState::Network, ThreadState::Terminal, ThreadState::Sleep];
        let of = |stage: &StageCounts, states: &[ThreadState]| -> u32 {
            states.iter().map(|&state| stage.states[state as usize]).sum()
        };
        let all: u32 = self.current.stages.iter().flat_map(|stage| stage.states).sum();
        let works: u32 = self.current.stages.iter().map(|stage| of(stage, &WORK)).sum();
        let moves = all == 0 || f64::from(works) > f64::from(all) * MAX_WORK_IF_STUCK;
        if moves && self.suspected.is_none() {
            return;
        }
        // An exiting process no longer shows what it waited for, so the earlier result is kept.
        if self.known.values().any(|known| call::descriptors_of(known.process.pid, known.process.files_of).is_none()) {
            return;
        }
        let found = if moves { None } else { cycle(&self.waiting_processes()) };
        // A cycle counts if it is found twice, half a second apart.
        let before = std::mem::replace(&mut self.suspected, found);
        self.cycle = self.suspected.clone().filter(|_| self.suspected == before);
    }

    /// Looks for processes outside the pipeline at the other ends of pipes and FIFOs that a stage waits for.
    fn find_peers_of_pipes(&mut self) {
        /// The maximum number of searches per stage.
        const MAX_SEARCHES: u32 = 3;
        let share = |place: usize, state: ThreadState| {
            let states = self.current.stages.get(place).map_or([0; ThreadState::COUNT], |counts| counts.states);
            f64::from(states[state as usize]) / f64::from(states.iter().sum::<u32>().max(1))
        };
        // Processes that were lost are searched for too.
        let known = |pid: &u32| self.known.contains_key(pid);
        let own: BTreeSet<u32> =
            self.stages.iter().flat_map(|stage| stage.pids.iter().copied()).filter(known).collect();
        let joined: HashSet<PipeId> = self.pipes.iter().map(|pipe| pipe.id).collect();
        let mut wanted = Vec::new();
        for (at, stage) in self.stages.iter().enumerate() {
            let starved = share(at, ThreadState::Starved);
            let directions = if starved >= share(at, ThreadState::Blocked) {
                [Direction::In, Direction::Out]
            } else {
                [Direction::Out, Direction::In]
            };
            let waits = starved.max(share(at, ThreadState::Blocked)) >= MIN_WAITS;
            if !stage.alive || !waits || stage.peer.is_some() || stage.searches >= MAX_SEARCHES {
                continue;
            }
            let ends = stage.pids.iter().filter_map(|pid| self.known.get(pid)?.process.ends.as_ref()).flatten();
            let ends = ends.filter(|end| end.direction == directions[0] && !joined.contains(&end.pipe));
            let outer: BTreeSet<PipeId> = ends.map(|end| end.pipe).collect();
            if !outer.is_empty() {
                wanted.push((at, outer, directions));
            }
        }
        // Without a list of all processes, the search continues at the end of a later interval.
        if wanted.is_empty() || !self.refresh_table() {
            return;
        }
        let mut found = Vec::new();
        for (at, outer, directions) in wanted {
            let holder = |pipe: &PipeId| {
                Some((*pipe, self.table.holder_of_pipe(*pipe, directions[1], |pid| own.contains(&pid))?))
            };
            found.push((at, outer.iter().find_map(holder), directions[0] == Direction::Out));
        }
        for (at, holder, sends) in found {
            if let Some((pipe, (pid, _))) = holder
                && let Some(start) = self.orphan_start(pid, pipe)
            {
                self.orphans.insert(pid, start);
                self.found.rescan();
                continue;
            }
            let stage = &mut self.stages[at];
            stage.searches += 1;
            stage.peer = holder.map(|(_, (pid, name))| PeerFigures {
                name: pipemark_model::neutral(&name),
                pid: Some(pid),
                pipe: true,
                sends,
                ..PeerFigures::default()
            });
        }
    }

    /// Brings the list of all processes up to date. On a machine with many processes, that takes several intervals.
    /// Returns whether the list is complete.
    fn refresh_table(&mut self) -> bool {
        let (now, cpu) = (Instant::now(), own_time());
        if self.table.is_empty() || self.budget.has_reserve() || self.budget.allows(PaidWork::Search, None, now) {
            self.table.refresh(Some(self.budget.portion() * 2), own_time);
            self.budget.note(PaidWork::Search, now, own_time().saturating_sub(cpu));
        }
        self.table.is_complete()
    }

    /// The start time of a process that holds this pipe; `None` unless the process is an orphan of the command that
    /// this program started. An unnamed pipe that isn't this program's own was created by that command.
    fn orphan_start(&self, pid: u32, pipe: PipeId) -> Option<u64> {
        let started = matches!(self.subject, Subject::Child(_)) && !self.orphans.contains_key(&pid);
        if !started || pid == std::process::id() || !pipe.is_nameless() || pipe.is_own() {
            return None;
        }
        // A service that received the pipe over a socket is in another process group.
        let own = rustix::process::getpgrp().as_raw_nonzero().get().cast_unsigned();
        Process::read(pid).filter(|process| process.group == own).map(|process| process.start)
    }

    fn waiting_processes(&self) -> Vec<WaitingProcess> {
        let mut processes: Vec<Process> = self.known.values().map(|known| known.process.clone()).collect();
        if let Subject::Child(root) = self.subject
            && !self.known.contains_key(&root)
        {
            processes.extend(Process::read(root));
        }
        let mut found: Vec<WaitingProcess> = processes.iter().map(waiting).collect();
        add_locks(&mut found, &processes);
        found
    }

    /// Looks for the other ends of sockets that stages wait for. Also called within an interval, because a pipeline may
    /// end before its first interval does.
    pub(super) fn find_peers_of_sockets(&mut self) {
        let waits = |place: usize| {
            let Some(counts) = self.current.stages.get(place) else { return false };
            let of = |state: ThreadState| f64::from(counts.states[state as usize]);
            let all = f64::from(counts.states.iter().sum::<u32>()).max(1.0);
            (of(ThreadState::Network) + of(ThreadState::Other)) / all >= MIN_WAITS
        };
        let places = (0..self.stages.len()).filter(|&at| self.stages[at].alive && waits(at));
        let waiting: Vec<(usize, Vec<(u64, bool)>)> = places
            .map(|at| (at, sockets_of(&self.stages[at], &self.known)))
            .filter(|(_, found)| !found.is_empty())
            .collect();
        if waiting.is_empty() {
            return;
        }
        let sockets = connections::all_sockets(true);
        for (at, found) in waiting {
            let own: BTreeSet<u64> = own_sockets(&self.stages[at], &self.known);
            let leads =
                |inode: u64| sockets.get(&inode).filter(|state| state.peer.is_none_or(|peer| !own.contains(&peer)));
            // A socket that listens leads to nobody.
            let listens = |state: &SocketState| state.tcp.as_ref().is_some_and(|tcp| tcp.remote.port() == 0);
            // If the stage also holds a socket's peer, the socket only wakes the stage itself.
            let mut known = found.iter().filter_map(|&(inode, sends)| Some((inode, sends, leads(inode)?)));
            if known.clone().all(|(_, _, state)| listens(state)) && known.clone().next().is_some() {
                self.stages[at].waits_for = Some("clients to connect");
            }
            let found = known.find(|(_, _, state)| !listens(state));
            let Some((inode, sends, state)) = found else { continue };
            let mut holder = None;
            let stage = &mut self.stages[at];
            if stage.socket.inode != inode {
                stage.socket = SocketWait { inode, first: state.clone(), arrived: SocketArrivals::default() };
                stage.peer = None;
            }
            if stage.peer.as_ref().is_none_or(|peer| peer.pid.is_none()) {
                holder = state.peer.filter(|_| self.refresh_table()).and_then(|peer| self.table.holder_of_socket(peer));
            }
            let stage = &mut self.stages[at];
            let received = state.tcp.as_ref().map_or(0, |tcp| tcp.received.saturating_sub(state.receive_queue));
            stage.socket.arrived.note(stage.silent_since, received);
            let before = stage.peer.take();
            stage.peer = Some(peer(state, &stage.socket.first, sends, before, holder));
        }
    }
}

/// What a process waits for, in all of its threads.
fn waiting(process: &Process) -> WaitingProcess {
    let ends = process.ends.clone().unwrap_or_default();
    let name = pipemark_model::neutral(&process.comm);
    let mut found =
        WaitingProcess { pid: process.pid, parent: process.parent, name, ends, ..WaitingProcess::default() };
    let mut stopped = matches!(process.state, 'Z' | 'X' | 'T');
    for id in process.thread_ids() {
        match call::descriptors_of(process.pid, id) {
            Some(Descriptors::Files(files)) => {
                for (fd, direction) in files {
                    let end = found.ends.iter().find(|end| u64::from(end.fd) == fd);
                    // A descriptor other than a pipe may wake the process.
                    let Some(end) = end.copied() else {
                        found.free = true;
                        continue;
                    };
                    if end.direction == direction || end.direction == Direction::Both {
                        found.waits.push(PipeEnd { direction, ..end });
                    }
                }
            }
            Some(Descriptors::Children) => found.for_children = true,
            Some(Descriptors::Open(address, flags)) => match opened_fifo(process.files_of, address, flags) {
                Some((name, direction)) => found.opens = Some((pipemark_model::neutral(&name), direction)),
                None => found.free = true,
            },
            Some(Descriptors::Lock) => {}
            Some(Descriptors::Else) => found.free = true,
            None => stopped = true,
        }
    }
    // A signal or a timer may end the wait.
    found.free |= stopped || process::may_be_interrupted(process);
    found
}

/// Adds the file locks that processes wait for, with those of these processes that hold them.
fn add_locks(all: &mut [WaitingProcess], processes: &[Process]) {
    let may_wait = |process: &WaitingProcess| !process.free && process.waits.is_empty();
    if !all.iter().any(may_wait) {
        return;
    }
    let Some(locks) = Locks::read().filter(Locks::has_waits) else { return };
    for (waiting, process) in all.iter_mut().zip(processes).filter(|(waiting, _)| may_wait(waiting)) {
        let Some(lock) = locks.awaited_by(process) else { continue };
        let holders = processes.iter().filter(|other| lock.is_held_by(other)).map(|other| other.pid).collect();
        waiting.lock = Some(FileLock { path: pipemark_model::neutral(&lock.path), holders });
    }
}

/// The sockets that a stage was last observed waiting for. For each, `true` if the stage waits to send. Sockets with
/// `true` come first.
fn sockets_of(stage: &WatchedStage, known: &BTreeMap<u32, WatchedProcess>) -> Vec<(u64, bool)> {
    let mut found: Vec<(u64, bool)> = Vec::new();
    for known in stage.pids.iter().take(MAX_PROCESSES).filter_map(|pid| known.get(pid)) {
        let thread = known.process.files_of;
        let inode = |fd: u64| u32::try_from(fd).ok().and_then(|fd| process::socket_of(thread, fd));
        for thread in known.threads.iter().take(MAX_PROCESSES) {
            let files = thread.waited_outside_for().into_iter();
            found.extend(files.filter_map(|(fd, direction)| Some((inode(fd)?, direction == Direction::Out))));
        }
    }
    // Waits to send come first, because a stage that waits to receive may only be idle.
    found.sort_by_key(|(_, sends)| !sends);
    found
}

/// All sockets that a stage holds.
fn own_sockets(stage: &WatchedStage, known: &BTreeMap<u32, WatchedProcess>) -> BTreeSet<u64> {
    let known = stage.pids.iter().filter_map(|pid| known.get(pid));
    known.flat_map(|known| &known.process.others.sockets).map(|(_, inode)| *inode).collect()
}

/// The port of name servers.
const DNS: u16 = 53;

/// The other end of a socket. TCP's shares are of its busy time since the first reading.
fn peer(
    state: &SocketState,
    first: &SocketState,
    sends: bool,
    before: Option<PeerFigures>,
    holder: Option<(u32, String)>,
) -> PeerFigures {
    let known = before.as_ref().and_then(|peer| peer.pid.map(|pid| (pid, peer.name.clone())));
    let process = known.or(holder);
    let of_udp = |remote: SocketAddr| match remote.port() {
        DNS => format!("name server {}", remote.ip()),
        _ => remote.to_string(),
    };
    let address = state.tcp.as_ref().map(|tcp| tcp.remote.to_string()).or(state.udp.map(of_udp));
    let name = process.as_ref().map(|(_, name)| name.clone()).or(address);
    let share = |of: fn(&connections::TcpState) -> u64| {
        let (now, then) = (state.tcp.as_ref()?, first.tcp.as_ref()?);
        let busy = now.busy.saturating_sub(then.busy);
        (busy > 10_000).then(|| (of(now).saturating_sub(of(then)) as f64 / busy as f64).min(1.0))
    };
    PeerFigures {
        name: pipemark_model::neutral(&name.unwrap_or_else(|| "a hidden process".to_owned())),
        pid: process.map(|(pid, _)| pid),
        tcp: state.tcp.is_some(),
        udp: state.udp.is_some(),
        pipe: false,
        // A stage that was observed waiting to send still counts as sending: what it receives later are answers.
        sends: sends || before.is_some_and(|before| before.sends),
        receive_queue: state.receive_queue,
        send_queue: state.send_queue,
        window_limited: share(|tcp| tcp.window_limited),
        buffer_limited: share(|tcp| tcp.buffer_limited),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrived_before_the_last_write_does_not_count() {
        let (write, later) = (Some(Instant::now()), Some(Instant::now() + std::time::Duration::from_secs(1)));
        let mut arrived = SocketArrivals::default();
        let mut note = |since, received| {
            arrived.note(since, received);
            (arrived.increases, arrived.bytes())
        };
        assert_eq!(note(write, 5000), (0, 0));
        assert_eq!((note(write, 5021), note(write, 5021), note(write, 5063)), ((1, 21), (1, 21), (2, 63)));
        assert_eq!((note(later, 5084), note(later, 5090)), ((0, 0), (1, 6)));
        assert_eq!((note(None, 6000), note(None, 7000)), ((0, 0), (0, 0)), "no write is known");
        assert_eq!((arrived.all_increases, arrived.all_bytes()), (6, 2000));
    }
}
