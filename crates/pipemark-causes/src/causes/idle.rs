//! Nothing moves, and no cycle was found; or a stage can't be sampled.

use crate::cause::Cause;
use crate::hypothesis::{Hypothesis, Scene};
use crate::model::busy;
use crate::report::Quality;
use crate::stage_figures::StageFigures;

/// No data moves if the busy shares of all stages add up to less than this: while data moves, at least one stage is busy
/// at any moment.
/// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
const IDLE: f64 = 0.1;

/// The stages that can't be sampled and may be the bottleneck.
pub fn unsampled<'f>(scene: &'f Scene) -> impl Iterator<Item = &'f StageFigures> {
    let top = scene.model.order.first().map_or(0.0, |stage| busy(stage));
    scene.figures.stages.iter().filter(move |stage| stage.is_unsampled() && stage.unknown_share() * stage.present > top)
}

pub fn assess(scene: &Scene) -> Vec<Hypothesis> {
    let mut found = Vec::new();
    if unsampled(scene).next().is_some() {
        found.push(Hypothesis::of_whole(Cause::Unsampled, Quality::Inferred));
    }
    if scene.figures.stages.iter().map(|stage| stage.busy * stage.present).sum::<f64>() < IDLE {
        found.push(Hypothesis::of_whole(Cause::Idle, Quality::Measured));
    }
    found
}
