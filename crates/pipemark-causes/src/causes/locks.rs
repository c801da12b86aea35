//! Locks on files: the processes of a stage wait for each other's lock, or a stage waits for another program's.

use crate::cause::{Cause, CauseFacts, CauseName, PartOf};
use crate::declaration::Declaration;
use crate::figures::percent;
use crate::hypothesis::{Hypothesis, Scene};
use crate::report::{Quality, VerdictKind};
use crate::stage_figures::StageFigures;

/// The minimum share of time for which the processes of a stage wait for each other's lock.
/// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
const MIN_QUEUED: f64 = 0.4;
/// The minimum share of time for which a stage waits for a lock.
/// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
const MIN_LOCKED: f64 = 0.5;

/// The processes of a stage wait for each other's file lock.
pub static QUEUE: Declaration =
    Declaration { facts: LOCK, assess: queues, sentence: sentence_on_queue, remedies: |_, _| Vec::new() };

/// A stage waits for a file lock that another program holds.
pub static OF_OTHERS: Declaration =
    Declaration { facts: LOCK, assess: locks_of_others, sentence: sentence_on_lock, remedies: |_, _| Vec::new() };

const LOCK: CauseFacts = CauseFacts {
    words: "waiting for a file lock",
    reason: "waiting for a lock",
    kind: VerdictKind::Stage,
    names: &[CauseName::FileLock, CauseName::Waiting],
    part: PartOf::Wait,
};

fn claim(scene: &Scene, facts: &'static CauseFacts, stage: &StageFigures, share: f64) -> Hypothesis {
    let gain = Some(scene.model.without_share(stage, share));
    Hypothesis { gain, ..Hypothesis::of_stage(Cause::Declared(facts), stage.number, Quality::Proved) }
}

fn queues(scene: &Scene) -> Vec<Hypothesis> {
    let queued = scene.model.order.iter().filter(|stage| stage.queued >= MIN_QUEUED);
    queued.map(|stage| claim(scene, &QUEUE.facts, stage, stage.queued)).collect()
}

fn locks_of_others(scene: &Scene) -> Vec<Hypothesis> {
    let is_locked = |stage: &&&StageFigures| {
        let works = stage.computing + stage.waiting_for_cpu;
        stage.locked_by.is_some() && stage.lock >= MIN_LOCKED && stage.lock >= 2.0 * works
    };
    let locked = scene.model.order.iter().filter(is_locked);
    locked.map(|stage| claim(scene, &OF_OTHERS.facts, stage, stage.lock)).collect()
}

fn sentence_on_queue(scene: &Scene, found: &Hypothesis) -> String {
    let stage = scene.stage(found);
    format!(
        "{} holds the pipeline back: for {} of the time, more of its processes are waiting for a file lock than are running.",
        scene.figures.name_of(stage.number),
        percent(stage.queued)
    )
}

fn sentence_on_lock(scene: &Scene, found: &Hypothesis) -> String {
    let stage = scene.stage(found);
    let (own, share) = (scene.figures.name_of(stage.number), percent(stage.lock));
    let (path, pid, holder) = stage.locked_by.clone().unwrap_or_default();
    format!("{own} waits {share} of the time for a lock on {path}, which {holder} (PID {pid}) holds.")
}
