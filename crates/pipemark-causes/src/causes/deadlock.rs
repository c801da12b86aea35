//! Processes wait for each other in a cycle.

use pipemark_proc::process::Direction;

use crate::cause::{Cause, CycleKind};
use crate::evidence::{WaitCycle, WaitStep};
use crate::hypothesis::{Hypothesis, Scene};
use crate::report::Quality;

/// The kind of a cycle.
pub fn kind_of(cycle: &WaitCycle) -> CycleKind {
    let writes_errors = |step: &WaitStep| step.on.is_some_and(|end| end.fd == 2 && end.direction != Direction::In);
    match &cycle.steps[..] {
        steps if steps.iter().any(|step| step.opens.is_some()) => CycleKind::Fifos,
        steps if steps.iter().any(|step| step.lock.is_some()) => CycleKind::FileLock,
        steps if steps.iter().any(writes_errors) => CycleKind::StandardError,
        [only] if only.holder == only.pid => CycleKind::OwnWriteEnd,
        // Both processes wait to read: one has sent a request, and the other holds its answer back.
        [one, other] if [one, other].iter().all(|step| step.on.is_some_and(|end| end.direction == Direction::In)) => {
            CycleKind::Answers
        }
        steps if steps.iter().all(|step| step.on.is_none_or(|end| end.direction == Direction::In)) => {
            CycleKind::WriteEnd
        }
        _ => CycleKind::Other,
    }
}

/// The cycle that was found, if any.
pub fn assess(scene: &Scene) -> Vec<Hypothesis> {
    let Some(cycle) = &scene.figures.cycle else { return Vec::new() };
    let with = |pid: u32| scene.figures.stages.iter().find(|stage| stage.pids.contains(&pid)).map(|stage| stage.number);
    let stage = cycle.steps.iter().find_map(|step| with(step.pid));
    let quality = if cycle.may_have_alarm { Quality::Inferred } else { Quality::Proved };
    vec![Hypothesis { stage, ..Hypothesis::of_whole(Cause::Deadlock(kind_of(cycle)), quality) }]
}
