//! Verdicts that the stages lack CPU time: a limit, other programs or other stages use it. Pure: no clock and no I/O.

use crate::cause::Cause;
use crate::causes::stopped::THROTTLED;
use crate::figures::PipelineFigures;
use crate::hypothesis::{Hypothesis, Scene};
use crate::programs;
use crate::report::Quality;
use crate::stage_figures::StageFigures;

/// Stages are short of CPUs if they need more than this multiple of the CPUs that they may use.
/// Multiplied by 1.25 it changes 1, by 2 it changes 1 of 118 recorded verdicts (bench/thresholds.py).
const CPUS_WANTED: f64 = 1.25;
/// A stage competes for CPUs if it runs or waits for a CPU for at least this share of the time.
/// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
const RUNS: f64 = 0.15;

/// A CPU limit, other programs, or too few CPUs.
pub fn assess(scene: &Scene) -> Vec<Hypothesis> {
    let figures = scene.figures;
    let mut found: Vec<Hypothesis> = throttled(scene).into_iter().collect();
    let with_more = |cause: Cause| Hypothesis {
        gain: Some(scene.model.with_more_cpus()),
        ..Hypothesis::of_whole(cause, Quality::Measured)
    };
    found.extend(others_cpus(figures).map(|_| with_more(Cause::CpusTaken)));
    found.extend(cpus_wanted(figures).map(|_| with_more(Cause::CpusShared)));
    found.extend(copies(figures).map(|_| with_more(Cause::CopiesUseCpus)));
    found
}

/// The CPU limit of a control group slows a stage.
fn throttled(scene: &Scene) -> Option<Hypothesis> {
    let share = |stage: &StageFigures| stage.throttled.unwrap_or(0.0);
    let most = scene.figures.stages.iter().max_by(|a, b| share(a).total_cmp(&share(b)))?;
    let gain = Some(scene.model.without_stop(share(most)));
    let found = Hypothesis { gain, ..Hypothesis::of_stage(Cause::CpuQuota, most.number, Quality::Proved) };
    (share(most) >= THROTTLED).then_some(found)
}

/// The CPUs that other programs use, if the stages mostly wait for one.
pub struct OthersCpus {
    pub all: usize,
    pub by_others: f64,
    pub used: f64,
    pub waited: f64,
}

/// The CPUs that other programs use; `None` unless the stages mostly wait for one.
pub fn others_cpus(figures: &PipelineFigures) -> Option<OthersCpus> {
    /// The minimum number of CPUs that the stages wait for.
    /// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
    const WAITED: f64 = 0.5;
    /// The minimum ratio of the CPUs that the stages wait for to the CPUs that they use.
    /// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
    const MORE: f64 = 2.0;
    /// The minimum share of all CPUs that other programs use.
    /// No recorded verdict depends on it (bench/thresholds.py).
    const OTHERS: f64 = 0.5;
    let sum = |of: fn(&StageFigures) -> Option<f64>| {
        figures.stages.iter().filter_map(|stage| Some(of(stage)? * stage.present)).sum::<f64>()
    };
    let (used, waited) = (sum(|stage| stage.cpu), sum(|stage| stage.cpu_wait));
    let count = figures.stages.iter().map(|stage| stage.cpus.len()).max().filter(|&count| count > 0)?;
    let all = count as f64;
    let others = all - figures.limits.idle_cpus? - used;
    if waited < WAITED || waited < MORE * used || others < OTHERS * all {
        return None;
    }
    Some(OthersCpus { all: count, by_others: others, used, waited })
}

/// The CPUs that the stages may use, and those that they need together; `None` unless they need clearly more.
pub fn cpus_wanted(figures: &PipelineFigures) -> Option<(usize, f64)> {
    let running = |stage: &StageFigures| stage.computing + stage.waiting_for_cpu;
    let wanted = |stage: &StageFigures| match (stage.cpu, stage.cpu_wait) {
        (Some(run), Some(wait)) => (run + wait) * stage.present,
        _ => running(stage) * stage.present,
    };
    figures.stages.iter().filter(|stage| !stage.cpus.is_empty()).find_map(|stage| {
        let within =
            |other: &&StageFigures| !other.cpus.is_empty() && other.cpus.iter().all(|cpu| stage.cpus.contains(cpu));
        let rivals: Vec<&StageFigures> = figures.stages.iter().filter(within).collect();
        let sum: f64 = rivals.iter().map(|stage| wanted(stage)).sum();
        let several = rivals.iter().filter(|stage| running(stage) * stage.present >= RUNS).count() > 1;
        let several = several && more_cpus_gain_most(&rivals, stage.cpus.len() as f64);
        (several && sum > CPUS_WANTED * stage.cpus.len() as f64).then_some((stage.cpus.len(), sum))
    })
}

/// The number of stages that run the same program side by side and use all CPUs, that program, and the number of CPUs.
pub fn copies(figures: &PipelineFigures) -> Option<(usize, &str, usize)> {
    /// The minimum number of CPUs that a copy uses.
    /// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
    const MIN_CPUS: f64 = 0.5;
    /// The minimum share of all CPUs that the copies use.
    /// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
    const MIN_SHARE: f64 = 0.75;
    /// The minimum share of all CPUs that all stages use or wait for.
    /// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
    const MIN_WANTED: f64 = 0.95;
    let wanted = |stage: &StageFigures| stage.cpu_wait.unwrap_or(0.0) * stage.present;
    let used = |stage: &StageFigures| stage.cpu.unwrap_or(stage.computing) * stage.present;
    let most = figures.stages.iter().max_by(|a, b| used(a).total_cmp(&used(b)))?;
    let program = Some(programs::program(&most.words)).filter(|program| !program.is_empty())?;
    let is_copy = |stage: &&StageFigures| programs::program(&stage.words) == program && used(stage) >= MIN_CPUS;
    let copies: Vec<&StageFigures> = figures.stages.iter().filter(is_copy).collect();
    let cpus = most.cpus.len();
    let full = |sum: f64, share: f64| sum >= share * cpus as f64;
    let all_used = full(copies.iter().map(|stage| used(stage)).sum(), MIN_SHARE)
        && full(figures.stages.iter().map(|stage| used(stage) + wanted(stage)).sum(), MIN_WANTED);
    let in_series = copies.iter().any(|one| copies.iter().any(|other| feeds(figures, one.number, other.number)));
    if cpus < 2 || copies.len() < 2 || !all_used || in_series {
        return None;
    }
    Some((copies.len(), &most.name, cpus))
}

/// Whether the output of one stage reaches another stage, directly or through other stages.
fn feeds(figures: &PipelineFigures, from: usize, to: usize) -> bool {
    let mut reached = vec![from];
    let mut at = 0;
    while let Some(&number) = reached.get(at) {
        let next = figures.pipes.iter().filter(|pipe| pipe.from == number).map(|pipe| pipe.to);
        let new: Vec<usize> = next.filter(|next| !reached.contains(next)).collect();
        reached.extend(new);
        at += 1;
    }
    reached[1..].contains(&to)
}

/// Whether stages that share CPUs gain more if each has a CPU of its own than if one of them needs half the CPU time.
fn more_cpus_gain_most(stages: &[&StageFigures], cpus: f64) -> bool {
    /// The minimum ratio of the gain from more CPUs to the gain from a faster stage.
    /// Multiplied by 1.25 it changes 1, by 2 it changes 1 of 118 recorded verdicts (bench/thresholds.py).
    const CLEARLY: f64 = 1.15;
    let used = |stage: &StageFigures| stage.cpu.unwrap_or(stage.computing) * stage.present;
    // The share of time for which a stage would be busy if each of its threads had a CPU.
    let needs = |stage: &StageFigures| {
        let alone = (stage.busy - stage.waiting_for_cpu) * stage.present;
        if stage.threads > 1 { alone.min(used(stage) / cpus.min(stage.threads as f64)) } else { alone }
    };
    let all: f64 = stages.iter().map(|stage| used(stage)).sum();
    let longest = |factor: &dyn Fn(usize) -> f64| {
        let needed = stages.iter().enumerate().map(|(at, stage)| needs(stage) * factor(at));
        needed.fold(0.0, f64::max)
    };
    let with_more = longest(&|_| 1.0);
    let faster = |at: usize| {
        let halved = longest(&|other| if other == at { 0.5 } else { 1.0 });
        halved.max((all - used(stages[at]) / 2.0) / cpus)
    };
    let with_faster = (0..stages.len()).map(faster).fold(f64::INFINITY, f64::min);
    with_more * CLEARLY < with_faster
}
