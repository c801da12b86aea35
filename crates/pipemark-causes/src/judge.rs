//! Chooses among the hypotheses. First come the causes of [`PRECEDENCE`], which make the comparison of speeds moot or
//! explain it as a whole. Then the place is chosen by gain, and inside it the most specific cause that explains most of
//! the place's time. If two places can't be distinguished, both are named.

use crate::cause::{Activity, Cause, PartOf};
use crate::causes::small_pipe::bursting;
use crate::causes::work::ALSO;
use crate::causes::{calls, work};
use crate::figures::PipelineFigures;
use crate::hypothesis::{Hypothesis, Scene};
use crate::model::{BALANCED, busy, working_share};
use crate::report::{Certainty, Quality};
use crate::stage_figures::StageFigures;

/// A cause that explains at least this share of its place's time is preferred to a less specific one.
/// Multiplied by 2 it changes 26 of 118 recorded verdicts (bench/thresholds.py).
pub const EXPLAINS: f64 = 0.8;
/// A stage that is busy for more than this share of the time is not held back by bursts.
/// Multiplied by 0.5 it changes 7, by 0.8 it changes 2 of 118 recorded verdicts (bench/thresholds.py).
pub const BUSY: f64 = 0.85;
/// The minimum number of samples that distinguish stages that are nearly equally busy.
/// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
const FEW_SAMPLES: u32 = 60;
/// If the busiest stage is busy for more than this share, a faster stage may gain more than a larger pipe.
/// Multiplied by 1.25 it changes 1, by 2 it changes 1 of 118 recorded verdicts (bench/thresholds.py).
const MOSTLY_BUSY: f64 = 0.70;
/// A buffer for bursts gains at most the inverse of the busiest stage's busy share: 1.3 times at this share.
/// Multiplied by 0.5 it changes 5, by 0.8 it changes 2, by 1.25 it changes 1, by 2 it changes 1 of 118 recorded verdicts (bench/thresholds.py).
const TOO_BUSY_FOR_A_BUFFER: f64 = 0.77;
/// Both a faster stage and a larger pipe are named if their gains differ by less than this.
/// Multiplied by 2 it changes 1 of 118 recorded verdicts (bench/thresholds.py).
const EITHER: f64 = 0.05;
/// The minimum number of samples in which each end must wait, for a verdict on the pipe. With few samples, `BOTH_WAIT`
/// alone would accept two.
/// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
const MIN_WAITS: f64 = 10.0;

/// A rule of precedence: its causes come before all others that follow, if the condition holds.
pub struct Precedence {
    /// For the documentation.
    pub name: &'static str,
    pub why: &'static str,
    causes: fn(Cause) -> bool,
    holds: fn(&Scene, &Hypothesis) -> bool,
    /// Whether the rule concerns the whole script, even if that has several pipelines.
    pub of_whole: bool,
}

/// The precedences, all that there are.
pub const PRECEDENCE: [Precedence; 6] = [
    Precedence {
        name: "deadlock, frozen",
        why: "nothing moves, so no stage is slow",
        causes: |cause| matches!(cause, Cause::Deadlock(_) | Cause::Frozen),
        holds: |_, _| true,
        of_whole: true,
    },
    Precedence {
        name: "traced, stopped, CPU limit",
        why: "another program stops the stage that all wait for",
        causes: |cause| matches!(cause, Cause::Traced | Cause::StopSignals | Cause::Stopped | Cause::CpuQuota),
        holds: |scene, found| {
            let stage = found.stage.map(|number| &scene.figures.stages[number - 1]);
            let named = matches!(found.cause, Cause::Traced | Cause::StopSignals);
            !named || stage.is_some_and(|stage| scene.model.is_near_top(stage, BALANCED))
        },
        of_whole: true,
    },
    Precedence {
        name: "CPUs",
        why: "stages that wait for CPUs say little about their work; small calls and process starts come first, because they use the CPUs",
        causes: |cause| matches!(cause, Cause::CpusTaken | Cause::CpusShared | Cause::CopiesUseCpus),
        holds: |_, _| true,
        of_whole: true,
    },
    Precedence {
        name: "hidden, outside",
        why: "what limits the pipeline isn't one of the stages that can be seen",
        causes: |cause| {
            matches!(cause, Cause::Unsampled | Cause::Outside(_) | Cause::UnseenInput | Cause::UnseenOutput)
        },
        holds: |scene, found| {
            let busiest = scene.model.order[0];
            found.cause == Cause::Unsampled || found.explains > busiest.busy * busiest.present + BALANCED
        },
        of_whole: false,
    },
    Precedence {
        name: "held, idle",
        why: "no output appears, whatever the speed",
        causes: |cause| matches!(cause, Cause::Held(_) | Cause::Idle),
        holds: |_, _| true,
        of_whole: false,
    },
    Precedence {
        name: "on purpose, locks",
        why: "the longest wait of the slowest stage has a known reason, which looks like bursts to its neighbours",
        causes: |cause| matches!(cause, Cause::RateLimit(_)) || is_known_wait(cause),
        holds: |scene, found| found.stage == Some(scene.model.order[0].number),
        of_whole: false,
    },
];

/// The first cause by precedence: of the rules about the whole script, or of the other ones.
pub fn first_by_precedence(scene: &Scene, all: &[Hypothesis], of_whole: bool) -> Option<Hypothesis> {
    let mut rules = PRECEDENCE.iter().filter(|rule| rule.of_whole == of_whole);
    rules.find_map(|rule| {
        let mut fits: Vec<&Hypothesis> =
            all.iter().filter(|found| (rule.causes)(found.cause) && (rule.holds)(scene, found)).collect();
        match of_whole {
            true => fits.sort_by_key(|found| found.cause),
            false => fits.sort_by_key(|found| found.cause != Cause::Unsampled),
        }
        let found = (*fits.first()?).clone();
        // Small pieces and process starts keep all stages busy with overhead.
        let is_overhead = matches!(found.cause, Cause::CpusShared | Cause::CopiesUseCpus);
        let overhead = |cause| matches!(cause, Cause::Calls(_) | Cause::Starts);
        Some(most_specific(scene, all, overhead).filter(|_| is_overhead).unwrap_or(found))
    })
}

fn is_known_wait(cause: Cause) -> bool {
    matches!(cause, Cause::Declared(facts) if facts.part == PartOf::Wait)
}

/// Whether a cause is a part of a stage's work, more specific than what the stage is busy with.
fn is_part_of_work(cause: Cause) -> bool {
    let is_general = matches!(
        cause,
        Cause::Activity(_)
            | Cause::Work(_)
            | Cause::Peer(_)
            | Cause::TinyPipe
            | Cause::Bursts
            | Cause::SmallPipe
            | Cause::StageOrPipe
            | Cause::FewSamples
            | Cause::BusyAlike
            | Cause::Balanced
            | Cause::TooShort
    );
    !is_general && !PRECEDENCE.iter().any(|rule| (rule.causes)(cause))
}

/// The most specific of these causes that explains most of one of the best places: small calls, then process starts, then
/// others.
fn most_specific(scene: &Scene, all: &[Hypothesis], is: fn(Cause) -> bool) -> Option<Hypothesis> {
    // Small pieces cost time at both ends of a pipe, because the writer wakes the reader.
    let margin = |found: &Hypothesis| match found.cause {
        Cause::Calls(_) if scene.model.top() < BUSY => 2.0 * BALANCED,
        _ => BALANCED,
    };
    let near = |found: &Hypothesis| {
        let payer = found.payer.map(|number| &scene.figures.stages[number - 1]);
        payer.is_some_and(|payer| scene.model.is_near_top(payer, margin(found))) && found.explains >= EXPLAINS
    };
    let rank = |cause: Cause| match cause {
        Cause::Calls(_) => 0,
        Cause::Starts => 1,
        _ => 2,
    };
    all.iter().filter(|found| is(found.cause) && near(found)).min_by_key(|found| rank(found.cause)).cloned()
}

/// The cause at the place that gains most.
pub fn by_gain(scene: &Scene, all: &[Hypothesis]) -> Hypothesis {
    let busiest = scene.model.order[0];
    let of = |cause: Cause| all.iter().find(|found| found.cause == cause).cloned();
    most_specific(scene, all, is_part_of_work)
        .or_else(|| of(Cause::TinyPipe))
        .or_else(|| pipe_or_stage(scene, all))
        .or_else(|| too_close(scene))
        .or_else(|| balanced(scene))
        .or_else(|| {
            let is_peer =
                |found: &&Hypothesis| matches!(found.cause, Cause::Peer(_)) && found.stage == Some(busiest.number);
            all.iter().find(is_peer).cloned()
        })
        .or_else(|| all.iter().find(|found| is_work_of(found, busiest)).cloned())
        .unwrap_or_else(|| {
            let (work, _) = work::activities(busiest)[0];
            let (bound, next, _) = work::bound(scene.figures, &scene.model, busiest);
            Hypothesis { bound, next, ..Hypothesis::of_stage(Cause::Activity(work), busiest.number, Quality::Measured) }
        })
}

fn is_work_of(found: &Hypothesis, stage: &StageFigures) -> bool {
    matches!(found.cause, Cause::Activity(_)) && found.stage == Some(stage.number)
}

/// Bursts, if a larger pipe or a buffer gains at least as much as a faster stage; both, if the gains are about equal.
fn pipe_or_stage(scene: &Scene, all: &[Hypothesis]) -> Option<Hypothesis> {
    let figures = scene.figures;
    let share = |nth: usize| scene.model.order.get(nth).map_or(0.0, |stage| stage.busy * stage.present);
    let busiest = scene.model.order[0];
    // With a larger pipe, the pipeline takes at least the busiest stage's time; with a faster stage, at least the next
    // one's, and the waits stay: their ratio to the time now is the busiest stage's share.
    let stage_gains = (share(0) - MOSTLY_BUSY).min(share(0) * share(0) - share(1));
    if share(0) >= BUSY {
        return None;
    }
    let (worst, both) = bursting(figures)?;
    // With bursts larger than any pipe, no two stages work at the same time. So the bursts are reported even if a
    // faster stage gains more.
    let bursts = all.iter().find(|found| found.cause == Cause::Bursts).filter(|_| share(0) < TOO_BUSY_FOR_A_BUFFER);
    if stage_gains > EITHER && bursts.is_none() {
        return None;
    }
    let seen = (both * f64::from(figures.samples)).round();
    if seen < MIN_WAITS {
        return Some(Hypothesis::of_pipe(Cause::TooShort, worst.number, Quality::Measured));
    }
    if let Some(bursts) = bursts {
        return Some(bursts.clone());
    }
    let small = all.iter().find(|found| found.cause == Cause::SmallPipe)?;
    if stage_gains <= -EITHER {
        return Some(small.clone());
    }
    let either = Hypothesis::of_pipe(Cause::StageOrPipe, worst.number, Quality::Measured);
    let gain = small.gain;
    Some(Hypothesis { stage: Some(busiest.number), gain, sure: Certainty::Unsure, ..either })
}

/// Two stages that too few samples, or too much overhead, make impossible to distinguish.
fn too_close(scene: &Scene) -> Option<Hypothesis> {
    let [first, second, ..] = scene.model.order[..] else { return None };
    let gap = busy(first) - busy(second);
    let few = scene.figures.samples < FEW_SAMPLES && gap > BALANCED && gap <= 2.5 * BALANCED && busy(first) < BUSY;
    // Part of their time may be overhead that one stage causes in the other.
    let costly = work::has_hidden_cost(first) || work::has_hidden_cost(second);
    let apart = working_share(first) - working_share(second) > 2.0 * BALANCED;
    let close = costly && gap > BALANCED && gap <= 2.0 * BALANCED && busy(second) >= MOSTLY_BUSY && !apart;
    let cause = if few { Cause::FewSamples } else { Cause::BusyAlike };
    let found = Hypothesis {
        next: Some(second.number),
        sure: Certainty::Unsure,
        gain: Some(scene.model.without_stage(first)),
        ..Hypothesis::of_stage(cause, first.number, Quality::Measured)
    };
    (few || close).then_some(found)
}

/// How two stages are alike.
pub fn alike(figures: &PipelineFigures, first: &StageFigures, second: &StageFigures) -> Option<bool> {
    /// Stages that work for less than this share of the time are not compared by their work.
    /// No recorded verdict depends on it (bench/thresholds.py).
    const MIN_WORK: f64 = 0.25;
    let apart = working_share(first) - working_share(second) > 2.0 * BALANCED;
    let busy_alike = !apart && busy(first) - busy(second) <= BALANCED;
    // If other programs use the CPUs, how long a stage waits for a CPU says nothing about its own work.
    let work_alike = first.waiting_for_cpu > ALSO
        && (working_share(first) - working_share(second)).abs() <= BALANCED / 2.0
        && working_share(second) >= MIN_WORK;
    // If stages work in turn, making only one of them faster does help.
    let alternate = bursting(figures).is_some();
    let other = alternate || calls::matter(first) || calls::matter(second);
    ((busy_alike || work_alike) && !other).then_some(busy_alike)
}

/// Two stages of which neither gains much alone.
fn balanced(scene: &Scene) -> Option<Hypothesis> {
    let [first, second, ..] = scene.model.order[..] else { return None };
    alike(scene.figures, first, second)?;
    Some(Hypothesis {
        next: Some(second.number),
        gain: Some(scene.model.without_stage(first)),
        ..Hypothesis::of_stage(Cause::Balanced, first.number, Quality::Measured)
    })
}

/// Why a hypothesis wasn't chosen, in a few words.
pub fn why_not(scene: &Scene, chosen: &Hypothesis, found: &Hypothesis) -> &'static str {
    let rank = |cause: Cause| PRECEDENCE.iter().position(|rule| (rule.causes)(cause)).unwrap_or(PRECEDENCE.len());
    let stage = found.payer.and_then(|number| scene.figures.stages.get(number - 1));
    if rank(chosen.cause) < rank(found.cause) {
        return PRECEDENCE[rank(chosen.cause)].name;
    }
    if rank(found.cause) < PRECEDENCE.len() {
        return "another stage works for longer";
    }
    match (found.cause, stage) {
        (_, Some(_)) if matches!(chosen.cause, Cause::Bursts | Cause::SmallPipe) => "works in turn with the other end",
        (Cause::Work(_), Some(_)) if found.payer == chosen.payer && found.payer.is_some() => "part of it",
        (Cause::Activity(_), Some(_)) if found.payer == chosen.payer && found.payer.is_some() => "less specific",
        (Cause::Calls(_) | Cause::Starts | Cause::Peer(_) | Cause::Declared(_), _) if found.explains < EXPLAINS => {
            "explains too little"
        }
        (_, Some(stage)) if !scene.model.is_near_top(stage, BALANCED) => "gains less",
        (Cause::Bursts | Cause::SmallPipe | Cause::TinyPipe, _) => "a faster stage gains more",
        (Cause::Activity(Activity::Hidden), _) => "can't be sampled",
        _ => "gains no more",
    }
}

/// The samples in which both ends of the burstiest pipe waited, and the number needed for a verdict.
pub fn samples_of_bursts(figures: &PipelineFigures) -> (f64, f64) {
    let both = bursting(figures).map_or(0.0, |(_, both)| both);
    ((both * f64::from(figures.samples)).round(), MIN_WAITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_precedences() {
        let page = include_str!("../../../docs/why.md");
        let rows = PRECEDENCE.iter().map(|rule| format!("| {} | {} |\n", rule.name, rule.why));
        assert!(PRECEDENCE.len() <= 6 && page.contains(&rows.collect::<String>()), "the table in docs/why.md");
    }
}
