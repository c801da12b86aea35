//! A stage's own work, or its waits: the cause that is left if no more specific one explains the stage's time.

use pipemark_model::total_order;

use crate::cause::{Activity, Cause};
use crate::causes::{calls, small_pipe, starts};
use crate::figures::PipelineFigures;
use crate::hypothesis::{Hypothesis, Scene};
use crate::model::{MAX_BOUND, Model, OFTEN_SWITCHED, busy, least_need};
use crate::programs;
use crate::report::{GainRange, Quality};
use crate::stage_figures::StageFigures;

/// Besides the longest state, a verdict names a state whose share of the time exceeds this.
/// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
pub const ALSO: f64 = 0.2;
/// A stage with at most this busy share waits nearly all the time.
/// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
pub const MOSTLY_WAITING: f64 = 0.1;
/// A stage that waits for a CPU for more than this share of the time gets faster when other stages use less CPU time.
/// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
const CPU_SHORT: f64 = 0.1;
/// If a stage waits for the disk for at least this share of the time, its kernel time counts as work for the disk.
/// Multiplied by 2 it changes 1 of 118 recorded verdicts (bench/thresholds.py).
const DISK_MATTERS: f64 = 0.3;

/// What a stage is busy with, and the share of time of each, largest first.
pub fn activities(stage: &StageFigures) -> Vec<(Activity, f64)> {
    let mut all = vec![
        (Activity::Computing, stage.computing),
        (Activity::WaitingForCpu, stage.waiting_for_cpu),
        (Activity::Disk, stage.disk),
        (Activity::Network, stage.network),
        (Activity::Terminal, stage.terminal),
        (Activity::Sleep, stage.sleep),
        (Activity::Children, stage.children),
        (Activity::Lock, stage.lock),
        (Activity::Stopped, stage.stopped),
        (Activity::Other, stage.other),
        (Activity::Hidden, stage.unknown),
    ];
    all.sort_by_cached_key(|(_, share)| total_order(-share));
    // If computing and waiting for a CPU together outweigh every other reason, the larger of the two comes first.
    let wants = stage.computing + stage.waiting_for_cpu;
    let on_cpu = |work: Activity| matches!(work, Activity::Computing | Activity::WaitingForCpu);
    let longest = all.iter().position(|&(work, _)| on_cpu(work));
    // A stage that submits disk requests spends much of its CPU time in the kernel. Fewer requests would save that
    // time.
    let kernel = stage.kernel.unwrap_or(0.0).min(stage.computing);
    let submits = stage.disk >= DISK_MATTERS
        && stage.disk + kernel > 2.0 * (stage.computing - kernel)
        && all.iter().all(|&(work, share)| on_cpu(work) || share <= stage.disk + kernel);
    if submits && let Some(at) = all.iter().position(|&(work, _)| work == Activity::Disk) {
        all[..=at].rotate_right(1);
        return all;
    }
    if let Some(at) = longest.filter(|_| all.iter().all(|&(work, share)| on_cpu(work) || share < wants)) {
        all[..=at].rotate_right(1);
    }
    all
}

/// Whether part of a stage's busy time is overhead of system calls, context switches or process starts. Faster
/// neighbours, larger pieces or larger pipes reduce this overhead, so the busy share doesn't bound the gain.
pub fn has_hidden_cost(stage: &StageFigures) -> bool {
    let switched = stage.switches_per_second.is_some_and(|switches| switches > OFTEN_SWITCHED);
    switched || calls::matter(stage) || starts::matter(stage)
}

/// What a faster stage gains at most, the stage that then is the bottleneck, and whether all other stages wait for the
/// stage nearly all the time.
pub fn bound(figures: &PipelineFigures, model: &Model, stage: &StageFigures) -> (Option<f64>, Option<usize>, bool) {
    let others = || model.order.iter().filter(|other| other.number != stage.number);
    let next = others().find(|next| next.present > 0.0);
    let needs = |next: &StageFigures| least_need(next, stage);
    let bound = next.map(|next| busy(stage) / needs(next).max(1e-9)).filter(|&bound| bound < MAX_BOUND);
    // A stage that waits for a CPU gets more CPU time when another stage uses less.
    let short = |stage: &StageFigures| stage.waiting_for_cpu > CPU_SHORT;
    let hides = |stage: &StageFigures| has_hidden_cost(stage) || short(stage);
    // The next stage's unknown waits may be for this stage.
    let unclear = |next: &StageFigures| next.other > ALSO;
    // Two stages that run the same program could become one, or exchange a cheaper format. Both would then be faster.
    let alike = |next: &StageFigures| {
        !next.words.is_empty() && programs::program(&next.words) == programs::program(&stage.words)
    };
    // Stages that work in turn don't hide each other's time.
    let alternate =
        small_pipe::bursting(figures).is_some_and(|(pipe, _)| pipe.to == stage.number || pipe.from == stage.number);
    let is_hidden = alternate || hides(stage) || next.is_some_and(|next| hides(next) || unclear(next) || alike(next));
    // A stage that is busy isn't waiting for this stage. So the share in the table counts here, with the time that this
    // stage causes, which the needs leave out. What a stage does unseen may be work.
    let may_work =
        |other: &StageFigures| busy(other).max(other.unknown_share() * other.present).max(other.busy * other.present);
    let all_wait = others().all(|other| may_work(other) <= MOSTLY_WAITING);
    let idle = all_wait && next.is_none_or(|next| needs(next) < busy(stage) / MAX_BOUND);
    (bound.filter(|_| !is_hidden), next.map(|next| next.number), idle)
}

/// The work of each stage.
pub fn assess(scene: &Scene) -> Vec<Hypothesis> {
    let of_stage = |stage: &&StageFigures| {
        let (work, share) = activities(stage)[0];
        let (bound, next, _) = bound(scene.figures, &scene.model, stage);
        let gain = scene.model.without_stage(stage);
        // The bound is what a sentence promises, so the range ends there.
        let high = bound.map(|bound| bound.max(gain.low)).or(gain.high.filter(|_| !has_hidden_cost(stage)));
        Hypothesis {
            next,
            bound,
            explains: (share / stage.busy.max(0.01)).min(1.0),
            gain: Some(GainRange { high, ..gain }),
            ..Hypothesis::of_stage(Cause::Activity(work), stage.number, Quality::Measured)
        }
    };
    scene.model.order.iter().filter(|stage| busy(stage) > 0.0).map(of_stage).collect()
}
