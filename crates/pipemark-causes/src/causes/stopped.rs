//! Stages are stopped: by signals, a tracer or a paused control group. Pure: no clock and no I/O.

use crate::cause::Cause;
use crate::hypothesis::{Hypothesis, Scene};
use crate::model::busy;
use crate::report::{GainRange, Quality};
use crate::stage_figures::StageFigures;

/// A stage counts as stopped if it is stopped for more than this share of the time.
/// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
pub const STOPPED: f64 = 0.5;
/// A CPU limit, a tracer or repeated stop signals limit a stage only if they stop it for at least this share of the
/// time.
/// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
pub const THROTTLED: f64 = 0.10;
/// From this many stops on, a program stops the stage, not a user who presses Ctrl-Z and types `fg`.
/// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
const MIN_STOPS: u32 = 4;
/// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
const MIN_STOPS_PER_SECOND: f64 = 1.0;

/// Stages that are frozen, traced, stopped again and again, or stopped.
pub fn assess(scene: &Scene) -> Vec<Hypothesis> {
    let all = |is: &dyn Fn(&StageFigures) -> bool| {
        scene.model.order.iter().filter(|stage| is(stage)).map(|stage| stage.number).collect::<Vec<_>>()
    };
    let first = |cause: Cause, stages: &[usize]| {
        stages.iter().min().map(|&stage| Hypothesis::of_stage(cause, stage, Quality::Proved))
    };
    let mut found: Vec<Hypothesis> = first(Cause::Frozen, &all(&|stage| stage.frozen)).into_iter().collect();
    let share = |stage: usize| {
        let stage = &scene.figures.stages[stage - 1];
        (stage.stopped / stage.busy.max(0.01)).min(1.0)
    };
    let of_each = |cause: Cause, stages: Vec<usize>| {
        stages.into_iter().map(move |stage| {
            let figures = &scene.figures.stages[stage - 1];
            let gain = scene.model.without_share(figures, figures.stopped);
            // A tracer also makes each call longer.
            let high = gain.high.filter(|_| cause != Cause::Traced);
            let gain = GainRange { high, ..gain };
            let explains = share(stage);
            Hypothesis { explains, gain: Some(gain), ..Hypothesis::of_stage(cause, stage, Quality::Proved) }
        })
    };
    let traced = |stage: &StageFigures| stage.stopped >= THROTTLED && stage.tracer.is_some();
    found.extend(of_each(Cause::Traced, all(&traced)));
    let is_limited = |stage: &StageFigures| {
        stage.stopped >= THROTTLED
            && stage.stops >= MIN_STOPS
            && stage.stops_per_second >= MIN_STOPS_PER_SECOND
            && stage.cpu.is_none_or(|cpu| cpu > 0.0)
            && busy(stage) > 0.0
    };
    found.extend(of_each(Cause::StopSignals, all(&is_limited)));
    let stopped = all(&|stage| stage.stopped > STOPPED);
    found.extend(first(Cause::Stopped, &stopped).filter(|_| stopped.len() > 1));
    found
}
