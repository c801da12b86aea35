//! Stages that are stopped or frozen.

use std::time::Duration;

use pipemark_proc::process;
use pipemark_proc::state::ThreadState;

use super::scene::WaitScene;
use crate::pipeline::stage::WatchedStage;

/// A stage's tracer is read if the stage is stopped in at least this share of an interval's samples.
const MIN_STOPPED: f64 = 0.05;
/// No stage runs if at most this share of the samples found one running.
const MAX_RUNNING: f64 = 0.02;
/// The maximum number of processes of a stage that are read.
const MAX_PROCESSES: usize = 32;

/// Approximate CPU time of checking whether a process is frozen.
const PER_PROCESS: Duration = Duration::from_micros(30);

/// The tracers of stages that are stopped for part of the time, by place. `known` says whose tracer is known already.
pub fn tracers(scene: &WaitScene<'_>, known: impl Fn(usize) -> bool) -> Vec<(usize, String)> {
    let is_stopped = |at: usize| scene.share(at, &[ThreadState::Stopped]) >= MIN_STOPPED;
    let stopped = scene.pipeline.stages.iter().enumerate().filter(|&(at, _)| !known(at) && is_stopped(at));
    let tracer = |stage: &WatchedStage| stage.pids.iter().take(MAX_PROCESSES).find_map(|&pid| process::tracer(pid));
    stopped.filter_map(|(at, stage)| Some((at, tracer(stage)?))).collect()
}

/// Whether each stage is frozen, if no stage runs; `None` if that can't be read now. A frozen thread still shows the system
/// call that it was in.
pub fn frozen(scene: &mut WaitScene<'_>) -> Option<Vec<bool>> {
    let stages = &scene.pipeline.stages;
    let runs = (0..stages.len()).any(|at| scene.share(at, &[ThreadState::Running]) > MAX_RUNNING);
    let processes: usize = stages.iter().map(|stage| stage.pids.len().min(MAX_PROCESSES)).sum();
    if !runs && !scene.budget.affords(PER_PROCESS * u32::try_from(processes).unwrap_or(u32::MAX)) {
        return None;
    }
    let frozen = |stage: &WatchedStage| stage.pids.iter().take(MAX_PROCESSES).any(|&pid| process::is_frozen(pid));
    Some(stages.iter().map(|stage| !runs && stage.alive && frozen(stage)).collect())
}
