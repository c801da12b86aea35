//! Stages that are stopped or frozen.

use std::time::Duration;

use pipemark_causes::interval::Interval;
use pipemark_proc::process;
use pipemark_proc::state::ThreadState;

use crate::budget::Budget;
use crate::pipeline::stage::{WatchedStage, share_of};

/// A stage's tracer is read if the stage is stopped in at least this share of an interval's samples.
const MIN_STOPPED: f64 = 0.05;
/// No stage runs if at most this share of the samples found one running.
const MAX_RUNNING: f64 = 0.02;
/// The maximum number of processes of a stage that are read.
const MAX_PROCESSES: usize = 32;

/// Approximate CPU time of checking whether a process is frozen.
const PER_PROCESS: Duration = Duration::from_micros(30);

/// Finds the tracers of stages that are stopped for part of the time.
pub fn find_tracers(stages: &mut [WatchedStage], interval: &Interval) {
    for (at, stage) in stages.iter_mut().enumerate() {
        if stage.tracer.is_none() && share_of(interval, at, &[ThreadState::Stopped]) >= MIN_STOPPED {
            stage.tracer = stage.pids.iter().take(MAX_PROCESSES).find_map(|&pid| process::tracer(pid));
        }
    }
}

/// If no stage runs, reads whether stages are frozen. A frozen thread still shows the system call that it was in.
pub fn find_frozen(stages: &mut [WatchedStage], interval: &Interval, budget: &mut Budget) {
    let runs = (0..stages.len()).any(|at| share_of(interval, at, &[ThreadState::Running]) > MAX_RUNNING);
    let processes: usize = stages.iter().map(|stage| stage.pids.len().min(MAX_PROCESSES)).sum();
    if !runs && !budget.affords(PER_PROCESS * u32::try_from(processes).unwrap_or(u32::MAX)) {
        return;
    }
    for stage in stages {
        let frozen = |stage: &WatchedStage| stage.pids.iter().take(MAX_PROCESSES).any(|&pid| process::is_frozen(pid));
        stage.frozen = !runs && stage.alive && frozen(stage);
    }
}
