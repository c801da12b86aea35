//! The kinds of work that a stage computes, from samples of its functions. Each is a part of the stage's work.

use crate::cause::Cause;
use crate::hypothesis::{Hypothesis, Scene};
use crate::model::busy;
use crate::report::Quality;
use crate::stage_figures::StageFigures;

/// Kinds of work with a smaller share of a stage's CPU time are not assessed.
/// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
const MIN_SHARE: f64 = 0.05;

/// The kinds of work of each stage.
pub fn assess(scene: &Scene) -> Vec<Hypothesis> {
    let of_stage = |stage: &&StageFigures| -> Vec<Hypothesis> {
        let stage = *stage;
        let Some(profile) = &stage.profile else { return Vec::new() };
        let kinds = profile.kinds.iter().filter(|kind| kind.share >= MIN_SHARE);
        let hypothesis = |kind: &pipemark_profile::WorkShare| {
            // Twice the standard error of a share.
            let error = 2.0 * (kind.share * (1.0 - kind.share) / f64::from(profile.samples.max(1))).sqrt();
            let saved = |share: f64| (share.clamp(0.0, 1.0) * stage.computing * stage.present).min(busy(stage));
            let saved = (stage.number, saved(kind.share - error), saved(kind.share + error));
            Hypothesis {
                explains: (kind.share * stage.computing / stage.busy.max(0.01)).min(1.0),
                gain: Some(scene.model.without(&[saved])),
                ..Hypothesis::of_stage(Cause::Work(kind.kind), stage.number, Quality::Measured)
            }
        };
        kinds.map(hypothesis).collect()
    };
    scene.model.order.iter().flat_map(of_stage).collect()
}
