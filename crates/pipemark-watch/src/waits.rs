//! Reads what samples don't show: why stages wait, and for which processes outside the pipeline. Each file observes one
//! kind of wait and returns what it has seen.

mod arrivals;
mod cycles;
mod lock_holders;
mod pipe_peers;
pub mod scene;
mod socket_peers;
mod stops;

use pipemark_causes::PeerFigures;
use pipemark_causes::evidence::WaitCycle;

use lock_holders::LockHolder;
use pipe_peers::PipePeers;
use scene::WaitScene;
use socket_peers::StageSockets;

/// The maximum number of searches for the process at the other end of a stage's pipe.
const MAX_PIPE_SEARCHES: u32 = 3;

/// What was observed of the waits of a stage.
#[derive(Debug, Clone, Default)]
pub struct StageWaits {
    pub sockets: StageSockets,
    /// The name of the program that traces the stage.
    pub tracer: Option<String>,
    /// Whether the stage's control group was frozen when last checked.
    pub frozen: bool,
    /// Another program that holds a lock on a file which the stage has open.
    pub locked_by: Option<LockHolder>,
    /// A process outside the pipeline at the other end of a pipe that the stage waits for.
    pipe_peer: Option<PeerFigures>,
    /// The number of searches for it.
    pipe_searches: u32,
}

impl StageWaits {
    /// The other end of a socket or pipe that the stage waits for; `None` if it waits for none.
    pub fn peer(&self) -> Option<&PeerFigures> {
        self.sockets.peer.as_ref().or(self.pipe_peer.as_ref())
    }
}

/// The observer of waits. Some searches take several intervals.
#[derive(Debug, Default)]
pub struct Waits {
    /// By place.
    pub stages: Vec<StageWaits>,
    cycles: cycles::CycleSearch,
    locks: lock_holders::LockSearch,
}

impl Waits {
    /// Reads cycles of waits, tracers, frozen stages, holders of locks, and the other ends of sockets and pipes. Called
    /// at the end of an interval. Searches for locks begin with stage `first`. Returns the processes that were found to
    /// belong to the pipeline, with their start times, so that a scan is needed.
    pub fn read(&mut self, scene: &mut WaitScene<'_>, first: usize) -> Vec<(u32, u64)> {
        if scene.interval.samples == 0 || !scene.pipeline.is_alive() {
            return Vec::new();
        }
        self.cycles.find(scene);
        self.stages.resize(scene.pipeline.stages.len(), StageWaits::default());
        for (at, tracer) in stops::tracers(scene, |at| self.stages[at].tracer.is_some()) {
            self.stages[at].tracer = Some(tracer);
        }
        let frozen = stops::frozen(scene).unwrap_or_default();
        self.stages.iter_mut().zip(frozen).for_each(|(stage, frozen)| stage.frozen = frozen);
        for (at, holder) in self.locks.find(scene, |at| self.stages[at].locked_by.is_some(), first) {
            self.stages[at].locked_by = Some(holder);
        }
        self.read_sockets(scene);
        let is_searched = |at: usize| {
            let stage: &StageWaits = &self.stages[at];
            stage.peer().is_some() || stage.pipe_searches >= MAX_PIPE_SEARCHES
        };
        let PipePeers { peers, orphans } = pipe_peers::find(scene, is_searched);
        for (at, peer) in peers {
            self.stages[at].pipe_searches += 1;
            self.stages[at].pipe_peer = peer;
        }
        orphans
    }

    /// Reads the sockets for which stages wait.
    pub fn read_sockets(&mut self, scene: &mut WaitScene<'_>) {
        self.stages.resize(scene.pipeline.stages.len(), StageWaits::default());
        for (at, found) in socket_peers::find(scene, |at| self.stages[at].sockets.clone()) {
            self.stages[at].sockets = found;
        }
    }

    /// The cycle of waits found at the ends of both of the last two intervals.
    pub fn cycle(&self) -> Option<&WaitCycle> {
        self.cycles.confirmed.as_ref()
    }
}
