//! The other ends of sockets that stages wait for.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Instant;

use pipemark_causes::PeerFigures;
use pipemark_proc::connections::{self, SocketState};
use pipemark_proc::process::{self, Direction};
use pipemark_proc::state::ThreadState;
use pipemark_proc::watched::WatchedProcess;

use super::arrivals::SocketArrivals;
use super::scene::WaitScene;
use crate::budget::{PaidWork, own_time};
use crate::pipeline::stage::WatchedStage;
use crate::search;

/// The other end of a socket is searched for if a stage waits for it in at least this share of an interval's samples.
const MIN_WAITS: f64 = 0.3;
/// The maximum number of processes of a stage, and of threads of each, that are read.
const MAX_PROCESSES: usize = 32;

/// What was observed of the sockets of a stage.
#[derive(Debug, Clone, Default)]
pub struct StageSockets {
    /// The other end of the socket that the stage waits for; `None` if it waits for none.
    pub peer: Option<PeerFigures>,
    /// Whether the stage waits for clients to connect.
    pub listens: bool,
    /// What the socket has received since the stage's last write.
    pub arrived: SocketArrivals,
    /// The inode of the socket, and its state when first read.
    inode: u64,
    first: SocketState,
}

/// Looks for the other ends of sockets that stages wait for. Returns what was observed of those, by place, with what had
/// been observed `before`. Also called within an interval, because a pipeline may end before its first interval does.
pub fn find(scene: &mut WaitScene<'_>, before: impl Fn(usize) -> StageSockets) -> Vec<(usize, StageSockets)> {
    let pipeline = scene.pipeline;
    let waits = |place: usize| scene.share(place, &[ThreadState::Network, ThreadState::Other]) >= MIN_WAITS;
    let places = (0..pipeline.stages.len()).filter(|&at| pipeline.stages[at].alive && waits(at));
    let waiting: Vec<(usize, Vec<(u64, bool)>)> = places
        .map(|at| (at, sockets_of(&pipeline.stages[at], &pipeline.known)))
        .filter(|(_, found)| !found.is_empty())
        .collect();
    let began = Instant::now();
    // Reading all sockets of a busy server takes milliseconds.
    let budget = &mut *scene.budget;
    let is_cheap = budget.last_cost(PaidWork::Sockets) <= budget.portion() / 10;
    if waiting.is_empty() || !is_cheap && !budget.allows(PaidWork::Sockets, None, began) {
        return Vec::new();
    }
    let cpu = own_time();
    let sockets = connections::all_sockets(true);
    budget.note(PaidWork::Sockets, began, own_time().saturating_sub(cpu));
    let mut observed = Vec::new();
    for (at, found) in waiting {
        let own: BTreeSet<u64> = own_sockets(&pipeline.stages[at], &pipeline.known);
        let leads = |inode: u64| sockets.get(&inode).filter(|state| state.peer.is_none_or(|peer| !own.contains(&peer)));
        // A socket that listens leads to nobody.
        let listens = |state: &SocketState| state.tcp.as_ref().is_some_and(|tcp| tcp.remote.port() == 0);
        // If the stage also holds a socket's peer, the socket only wakes the stage itself.
        let mut known = found.iter().filter_map(|&(inode, sends)| Some((inode, sends, leads(inode)?)));
        let mut stage = before(at);
        stage.listens |= known.clone().all(|(_, _, state)| listens(state)) && known.clone().next().is_some();
        if let Some((inode, sends, state)) = known.find(|(_, _, state)| !listens(state)) {
            if stage.inode != inode {
                stage = StageSockets { inode, first: state.clone(), listens: stage.listens, ..StageSockets::default() };
            }
            let is_unknown = stage.peer.as_ref().is_none_or(|peer| peer.pid.is_none());
            let other = state.peer.filter(|_| is_unknown && search::refresh(scene.table, scene.budget));
            let holder = other.and_then(|peer| scene.table.holder_of_socket(peer));
            let received = state.tcp.as_ref().map_or(0, |tcp| tcp.received.saturating_sub(state.receive_queue));
            stage.arrived.note(scene.silent_since(at), received);
            stage.peer = Some(peer(state, &stage.first, sends, stage.peer.take(), holder));
        }
        observed.push((at, stage));
    }
    observed
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
