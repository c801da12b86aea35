//! Reads which descriptors the threads of a pipeline wait for, if no data moves or a stage waits for a socket.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Instant;

use pipemark_causes::PeerFigures;
use pipemark_causes::causes::deadlock::{WaitingProcess, cycle};
use pipemark_causes::evidence::FileLock;
use pipemark_causes::interval::StageCounts;
use pipemark_proc::connections::{self, SocketState};
use pipemark_proc::locks::{self, LockedFile, Locks};
use pipemark_proc::process::{self, Direction, PipeEnd, PipeId, Process};
use pipemark_proc::state::{self, Descriptors, ThreadState};
use pipemark_proc::thread::opened_fifo;
use pipemark_proc::watched::WatchedProcess;

use crate::sampler::{Subject, WatchedStage, Watcher};

/// The other end of a socket or pipe is searched for if a stage waits for it in at least this share of an interval's
/// samples.
const MIN_WAITS: f64 = 0.3;
/// A stage's tracer is read if the stage is stopped in at least this share of an interval's samples.
const MIN_STOPPED: f64 = 0.05;
/// A stage may be polling for a lock if it sleeps in at least this share of an interval's samples.
const MIN_SLEEP_IF_POLLING: f64 = 0.9;
/// The holder of a lock is searched for if a stage sleeps or waits for a lock in at least this share of an interval's
/// samples.
const MIN_WAITS_FOR_LOCK: f64 = 0.5;
/// The maximum number of stages per interval whose lock holders are searched for. Each search lists the stage's
/// descriptors.
const MAX_LOCK_SEARCHES: usize = 8;
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
                self.stages[at].tracer = self.stages[at].pids.iter().find_map(|&pid| process::tracer(pid));
            }
        }
    }

    /// If no stage runs, reads whether stages are frozen. A frozen thread still shows the system call that it was in.
    fn find_frozen(&mut self) {
        let runs = (0..self.stages.len()).any(|at| self.share_of(at, &[ThreadState::Running]) > MAX_WORK_IF_STUCK);
        for stage in &mut self.stages {
            stage.frozen = !runs && stage.alive && stage.pids.iter().any(|&pid| process::is_frozen(pid));
        }
    }

    /// Finds the programs outside the pipeline that hold a lock on a file of a stage which waits for locks, or sleeps and
    /// may try to get a lock again and again.
    fn find_lock_holders(&mut self) {
        let waits = |at: &usize| {
            self.stages[*at].alive && self.share_of(*at, &[ThreadState::Sleep, ThreadState::Lock]) >= MIN_WAITS_FOR_LOCK
        };
        // Each search begins with a different stage, so that all stages have their turn.
        let first = self.random_stage();
        let chosen = (first..self.stages.len()).chain(0..first).filter(waits).take(MAX_LOCK_SEARCHES);
        let chosen: Vec<usize> = chosen.collect();
        if chosen.is_empty() {
            return;
        }
        let Some(locks) = Locks::read() else { return };
        for at in chosen {
            let outside = |(path, pid): (String, u32)| {
                let process = Process::read(pid).filter(|_| !self.known.contains_key(&pid))?;
                Some((pipemark_model::neutral(&path), pid, pipemark_model::neutral(&process.comm)))
            };
            let holder = self.stages[at].pids.iter().find_map(|&pid| locks.held_by_other(pid)).and_then(outside);
            if holder.is_some() {
                self.stages[at].locked_by = holder;
            }
        }
    }

    fn find_cycle(&mut self) {
        const WORK: [ThreadState; 4] =
            [ThreadState::Running, ThreadState::Disk, ThreadState::Network, ThreadState::Terminal];
        let of = |stage: &StageCounts, states: &[ThreadState]| -> u32 {
            states.iter().map(|&state| stage.states[state as usize]).sum()
        };
        let all: u32 = self.current.stages.iter().flat_map(|stage| stage.states).sum();
        let works: u32 = self.current.stages.iter().map(|stage| of(stage, &WORK)).sum();
        // A stage that sleeps nearly all the time may be trying again and again to get a lock.
        let polls = |at: usize| self.share_of(at, &[ThreadState::Sleep]) >= MIN_SLEEP_IF_POLLING;
        let (polling, others): (Vec<usize>, Vec<usize>) = (0..self.stages.len()).partition(|&at| polls(at));
        let sleeps = |at: usize| self.current.stages.get(at).map_or(0, |stage| of(stage, &[ThreadState::Sleep]));
        let works = works + others.into_iter().map(sleeps).sum::<u32>();
        let moves = all == 0 || f64::from(works) > f64::from(all) * MAX_WORK_IF_STUCK;
        if moves && self.suspected.is_none() {
            return;
        }
        // An exiting process no longer shows what it waited for, so the earlier result is kept.
        if self.known.keys().any(|&pid| state::descriptors_of(pid, pid).is_none()) {
            return;
        }
        let polling = polling.iter().flat_map(|&at| self.stages[at].pids.iter().copied()).collect();
        let found = if moves { None } else { cycle(&self.waiting_processes(&polling)) };
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
        // Reading the descriptors of all processes costs as much as a hundred samples.
        let others = || process::all().into_iter().filter(|process| !own.contains(&process.pid)).collect::<Vec<_>>();
        let others = LazyCell::new(others);
        let mut found = Vec::new();
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
            let joined = |pipe: &PipeId| self.pipes.iter().any(|one| one.id == *pipe);
            let ends = stage.pids.iter().filter_map(|pid| self.known.get(pid)?.process.ends.as_ref()).flatten();
            let outer: Vec<PipeId> =
                ends.filter(|end| end.direction == directions[0] && !joined(&end.pipe)).map(|end| end.pipe).collect();
            if !outer.is_empty() {
                let held = |pipe: &PipeId| Some((*pipe, process::holder_of_pipe(&others, *pipe, directions[1])?));
                let holder = outer.iter().find_map(held);
                found.push((at, holder, directions[0] == Direction::Out));
            }
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

    fn waiting_processes(&mut self, polling: &BTreeSet<u32>) -> Vec<WaitingProcess> {
        let mut found: Vec<WaitingProcess> = self.known.values_mut().map(waiting).collect();
        if let Subject::Child(root) = self.subject
            && !self.known.contains_key(&root)
            && let Some(process) = Process::read(root)
        {
            found.push(waiting(&mut WatchedProcess::of(process)));
        }
        add_locks(&mut found, polling);
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
            let stage = &mut self.stages[at];
            if stage.socket.inode != inode {
                stage.socket = SocketWait { inode, first: state.clone(), arrived: SocketArrivals::default() };
                stage.peer = None;
            }
            let received = state.tcp.as_ref().map_or(0, |tcp| tcp.received.saturating_sub(state.receive_queue));
            stage.socket.arrived.note(stage.silent_since, received);
            let before = stage.peer.take();
            stage.peer = Some(peer(state, &stage.socket.first, sends, before));
        }
    }
}

/// What a process waits for, in all of its threads.
fn waiting(known: &mut WatchedProcess) -> WaitingProcess {
    let process = &known.process;
    let ends = process.ends.clone().unwrap_or_default();
    let name = pipemark_model::neutral(&process.comm);
    let mut found =
        WaitingProcess { pid: process.pid, parent: process.parent, name, ends, ..WaitingProcess::default() };
    let mut stopped = matches!(process.state, 'Z' | 'X' | 'T');
    for id in process.thread_ids() {
        match state::descriptors_of(process.pid, id) {
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
            Some(Descriptors::Open(address, flags)) => match opened_fifo(process.pid, address, flags) {
                Some((name, direction)) => found.opens = Some((pipemark_model::neutral(&name), direction)),
                None => found.free = true,
            },
            Some(Descriptors::Lock) => {}
            Some(Descriptors::Else) => found.free = true,
            None => stopped = true,
        }
    }
    found.free |= stopped;
    found
}

/// Adds the locks on files that processes wait for, if another of these processes holds the lock. `polling` has the
/// processes that sleep nearly all the time.
fn add_locks(all: &mut [WaitingProcess], polling: &BTreeSet<u32>) {
    let candidates = |process: &WaitingProcess| process.free == polling.contains(&process.pid);
    if !all.iter().any(|process| candidates(process) && process.waits.is_empty()) {
        return;
    }
    let held: Vec<_> = all.iter().map(|process| (process.pid, locks::held_by(process.pid))).collect();
    for process in all {
        let (pid, polled) = (process.pid, polling.contains(&process.pid));
        let wanted = if polled { None } else { locks::waited_for(pid) };
        let others = held.iter().filter(|(other, _)| *other != pid);
        // A process that inherited a lock's descriptor holds the lock too.
        let own = held.iter().find(|(holder, _)| *holder == pid).map(|(_, files)| files);
        let fits = |file: &&LockedFile| match &wanted {
            Some(wanted) => *file == wanted,
            None => polled && (file.of_process || own.is_none_or(|own| !own.contains(file))),
        };
        let mut locked = others.flat_map(|(_, files)| files).filter(fits);
        let found = locked.find_map(|file| Some((file, locks::path_of(pid, file)?)));
        if let Some((file, path)) = found {
            let holds = |(other, files): &(u32, BTreeSet<_>)| *other != pid && files.contains(file);
            let holders = held.iter().filter(|one| holds(one)).map(|(other, _)| *other).collect();
            process.lock = Some(FileLock { path: pipemark_model::neutral(&path), holders, polled });
            process.free &= !polled;
        }
    }
}

/// The sockets that a stage was last observed waiting for. For each, `true` if the stage waits to send. Sockets with
/// `true` come first.
fn sockets_of(stage: &WatchedStage, known: &BTreeMap<u32, WatchedProcess>) -> Vec<(u64, bool)> {
    let mut found: Vec<(u64, bool)> = Vec::new();
    for known in stage.pids.iter().filter_map(|pid| known.get(pid)) {
        let pid = known.process.pid;
        let inode = |fd: u64| u32::try_from(fd).ok().and_then(|fd| process::socket_of(pid, fd));
        for thread in &known.threads {
            let files = thread.waited_outside_for(pid).into_iter();
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
    let now = known.filter_map(|known| Process::read(known.process.pid));
    now.flat_map(|process| process.others.sockets).map(|(_, inode)| inode).collect()
}

/// The port of name servers.
const DNS: u16 = 53;

/// The other end of a socket. TCP's shares are of its busy time since the first reading.
fn peer(state: &SocketState, first: &SocketState, sends: bool, before: Option<PeerFigures>) -> PeerFigures {
    let known = before.as_ref().and_then(|peer| peer.pid.map(|pid| (pid, peer.name.clone())));
    let process = known.or_else(|| state.peer.and_then(process::holder_of_socket));
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
