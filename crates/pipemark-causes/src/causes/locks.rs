//! Locks on files: the processes of a stage wait for each other's lock, or a stage waits for another program's.

use crate::cause::Cause;
use crate::hypothesis::{Hypothesis, Scene};
use crate::report::{Quality, StageFigures};

/// The minimum share of time for which the processes of a stage wait for each other's lock.
const MIN_QUEUED: f64 = 0.4;
/// The minimum share of time for which a stage waits for a lock.
const MIN_LOCKED: f64 = 0.5;

/// The stages that wait for file locks.
pub fn assess(scene: &Scene) -> Vec<Hypothesis> {
    let stages = || scene.model.order.iter();
    let claim = |cause: Cause, stage: &StageFigures, share: f64, quality: Quality| {
        let gain = Some(scene.model.without_share(stage, share));
        Hypothesis { gain, ..Hypothesis::of_stage(cause, stage.number, quality) }
    };
    let queued = stages().filter(|stage| stage.queued >= MIN_QUEUED);
    let queued = queued.map(|stage| claim(Cause::LockQueue, stage, stage.queued, Quality::Proved));
    let locked = |stage: &&&StageFigures| {
        let works = stage.computing + stage.waiting_for_cpu;
        stage.locked_by.is_some() && stage.lock >= MIN_LOCKED && stage.lock >= 2.0 * works
    };
    let locked = stages().filter(locked);
    let locked = locked.map(|stage| claim(Cause::FileLock, stage, stage.lock, Quality::Proved));
    queued.chain(locked).collect()
}
