//! What was seen of stages and pipes, as evidence.

use pipemark_causes::evidence::Arrivals;
use pipemark_causes::{PipeEvidence, StageEvidence};
use pipemark_model::neutral;

use crate::pipeline::pipe::WatchedPipe;
use crate::pipeline::stage::WatchedStage;

/// A stage, as evidence.
pub fn stage(stage: &WatchedStage) -> StageEvidence {
    let arrived = &stage.socket.arrived;
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
        uncounted: stage.uncounted,
        hidden: stage.hidden,
        waits_for: stage.waits_for.map(str::to_owned),
        cpus: stage.cpus.clone(),
        progress: stage.progress,
        tracer: stage.tracer.as_deref().map(neutral),
        frozen: stage.frozen,
        collates: stage.collates,
        variables: stage.variables.clone(),
        language: stage.language.map(str::to_owned),
        low_priority: stage.low_priority.clone(),
        locked_by: stage.locked_by.clone(),
        reads_others: stage.reads_others,
        writes_others: stage.writes_others,
        silent: stage.silent.map(|silent| silent.as_secs_f64()),
        held_bytes: stage.held_bytes,
        wrote_before: stage.wrote_before,
        arrived: Arrivals { bytes: arrived.bytes(), increases: arrived.increases },
        arrived_ever: Arrivals { bytes: arrived.all_bytes(), increases: arrived.all_increases },
        peer: stage.peer.clone(),
        profile: None,
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
