//! Composes what the observers saw of stages and pipes, as evidence.

use pipemark_causes::evidence::Arrivals;
use pipemark_causes::{PipeEvidence, StageEvidence};
use pipemark_model::neutral;
use pipemark_profile::Profile;

use crate::counters::StageCounters;
use crate::pipeline::pipe::WatchedPipe;
use crate::pipeline::stage::WatchedStage;
use crate::program_details::StageProgram;
use crate::states::StageStates;
use crate::waits::StageWaits;

/// What the observers saw of a stage.
#[derive(Default)]
pub struct StageObservations<'o> {
    pub states: Option<&'o StageStates>,
    pub counters: Option<&'o StageCounters>,
    pub program: Option<&'o StageProgram>,
    pub waits: Option<&'o StageWaits>,
    pub profile: Option<&'o Profile>,
}

/// A stage, as evidence. An observer that hasn't seen it yet says nothing.
pub fn stage(stage: &WatchedStage, seen: &StageObservations<'_>) -> StageEvidence {
    let StageObservations { states, counters, program, waits, profile } = *seen;
    let clients = waits.filter(|waits| waits.sockets.listens).map(|_| "clients to connect");
    let waits_for = clients.or_else(|| states?.waits_for);
    let arrived = waits.map(|waits| waits.sockets.arrived).unwrap_or_default();
    StageEvidence {
        name: neutral(&stage.name),
        command: stage.command.clone(),
        words: stage.words.clone(),
        arguments: stage.arguments.clone(),
        pids: stage.pids.clone(),
        processes: stage.processes,
        threads: stage.threads,
        reads_pipe: !stage.ins.is_empty(),
        writes_pipe: !stage.outs.is_empty(),
        uncounted: states.is_some_and(|states| states.uncounted),
        hidden: stage.hidden,
        waits_for: waits_for.map(str::to_owned),
        cpus: stage.cpus.clone(),
        progress: counters.and_then(|counters| counters.progress),
        tracer: waits.and_then(|waits| waits.tracer.as_deref()).map(neutral),
        frozen: waits.is_some_and(|waits| waits.frozen),
        collates: stage.collates && program.and_then(|program| program.has_locale) != Some(false),
        variables: stage.variables.clone(),
        language: program.and_then(|program| program.language).map(str::to_owned),
        low_priority: stage.low_priority.clone(),
        locked_by: waits.and_then(|waits| waits.locked_by.clone()),
        reads_others: stage.reads_others,
        writes_others: stage.writes_others,
        silent: counters.and_then(|counters| counters.silent).map(|silent| silent.as_secs_f64()),
        held_bytes: counters.and_then(|counters| counters.held_bytes),
        wrote_before: counters.and_then(|counters| counters.wrote_before),
        arrived: Arrivals { bytes: arrived.bytes(), increases: arrived.increases },
        arrived_ever: Arrivals { bytes: arrived.all_bytes(), increases: arrived.all_increases },
        peer: waits.and_then(StageWaits::peer).cloned(),
        profile: profile.cloned(),
    }
}

/// A pipe, as evidence.
pub fn pipe(pipe: &WatchedPipe) -> PipeEvidence {
    PipeEvidence {
        from: pipe.from,
        to: pipe.to,
        id: (pipe.id.0, pipe.id.1),
        is_socket: pipe.id.is_socket(),
        capacity: pipe.capacity,
    }
}
