//! A stage limits its rate on purpose. Such a stage may wait in any system call.

use crate::cause::Cause;
use crate::causes::work::activities;
use crate::hypothesis::{Hypothesis, Scene};
use crate::programs;
use crate::report::Quality;
use crate::stage_figures::StageFigures;

/// The share of time for which a stage waits in calls that a limit may cause.
pub fn limit_waits(stage: &StageFigures) -> f64 {
    stage.sleep + stage.network + stage.other + stage.lock
}

/// The stages with an option that limits their rate, if they mostly wait.
pub fn assess(scene: &Scene) -> Vec<Hypothesis> {
    let of_stage = |stage: &&StageFigures| {
        let waits = limit_waits(stage);
        programs::rate_limit(&stage.words)?;
        let mostly_waits = waits >= 0.5 && waits >= 2.0 * (stage.computing + stage.waiting_for_cpu);
        // While a program such as parallel waits for its limit, it may start another one again and again to check it.
        let checks = waits >= 0.3 && stage.seconds_silent.is_some_and(|seconds| seconds >= 1.0);
        let gain = Some(scene.model.without_share(stage, waits));
        let cause = Cause::RateLimit(activities(stage)[0].0);
        let found = Hypothesis { gain, ..Hypothesis::of_stage(cause, stage.number, Quality::Inferred) };
        (mostly_waits || checks).then_some(found)
    };
    scene.model.order.iter().filter_map(of_stage).collect()
}
