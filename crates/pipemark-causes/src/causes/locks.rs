//! Locks on files: the processes of a stage wait for each other's lock, or a stage waits for another program's.

use crate::cause::Cause;
use crate::hypothesis::{Hypothesis, Scene};
use crate::report::{Quality, StageFigures};

/// The minimum share of time for which the processes of a stage wait for each other's lock.
const MIN_QUEUED: f64 = 0.4;
/// The minimum share of time for which a stage waits for a lock, or sleeps and may try again and again.
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
        let share = stage.lock + stage.sleep;
        stage.locked_by.is_some() && share >= MIN_LOCKED && share >= 2.0 * (stage.computing + stage.waiting_for_cpu)
    };
    // A stage that sleeps may wait for the lock, or sleep for another reason.
    let quality = |stage: &StageFigures| if stage.lock >= MIN_LOCKED { Quality::Proved } else { Quality::Inferred };
    let locked = stages().filter(locked);
    let locked = locked.map(|stage| claim(Cause::FileLock, stage, stage.lock + stage.sleep, quality(stage)));
    queued.chain(locked).collect()
}
