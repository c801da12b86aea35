//! Verdicts on pipes that are too small for bursts, or that hold only two pages. Pure: no clock and no I/O.

use pipemark_model::ByteSize;

use crate::figures::PipelineFigures;
use crate::report::{Certainty, PipeFigures, PipelineVerdict, StageFigures, VerdictKind};
use crate::verdict::{BUSY, MAX_BOUND, OFTEN_SWITCHED, name, percent};
use crate::{burst, programs};

/// If the busiest stage is busy for more than this share, a faster stage may gain more than a larger pipe.
pub(crate) const MOSTLY_BUSY: f64 = 0.70;
/// A buffer for bursts gains at most the inverse of the busiest stage's busy share: 1.3 times at this share.
const TOO_BUSY_FOR_A_BUFFER: f64 = 0.77;
/// Both a faster stage and a larger pipe are named if their gains differ by less than this.
const EITHER: f64 = 0.05;
/// A pipe is too small only if each of its two ends waits for at least this share of the time.
pub(crate) const BOTH_WAIT: f64 = 0.12;
/// The minimum number of samples in which each end must wait, for a verdict on the pipe. With few samples, `BOTH_WAIT`
/// alone would accept two.
const MIN_WAITS: f64 = 10.0;
/// A pipe has bursts if the waits of its two ends alternate at least this many times.
const MIN_TURNS: u32 = 3;

/// Whether a pipe is so small that its ends spend their time waking each other. Samples show that time as work.
pub(crate) fn is_tiny(figures: &PipelineFigures, pipe: &PipeFigures) -> bool {
    /// The capacity in bytes of a new pipe if its user is over the limit for pipes: two pages.
    const TINY: u64 = 8192;
    /// The minimum time of a context switch in seconds.
    const SWITCH: f64 = 5e-6;
    /// The share of a CPU above which context switches matter.
    const MATTERS: f64 = 0.1;
    let switches = |number: usize| figures.stages[number - 1].switches_per_second.unwrap_or(0.0);
    let tiny = !pipe.is_socket && pipe.capacity.is_some_and(|capacity| capacity <= TINY);
    tiny && (switches(pipe.from) + switches(pipe.to)) * SWITCH >= MATTERS
}

/// The verdict on the tiny pipe whose ends wait longest; `None` if no pipe is tiny.
pub(crate) fn tiny_pipe(figures: &PipelineFigures) -> Option<PipelineVerdict> {
    let waits = |pipe: &&PipeFigures| pipe.writer_waits + pipe.reader_waits;
    let tiny = figures.pipes.iter().filter(|pipe| is_tiny(figures, pipe));
    let pipe = tiny.max_by(|a, b| waits(a).total_cmp(&waits(b)))?;
    let switches = |number: usize| figures.stages[number - 1].switches_per_second.unwrap_or(0.0);
    let text = format!(
        "The pipe from {} to {} holds only {}: its writer and reader wake each other {:.0} times per second.",
        name(figures, pipe.from),
        name(figures, pipe.to),
        ByteSize(pipe.capacity.unwrap_or(0)),
        switches(pipe.from).min(switches(pipe.to))
    );
    let verdict = PipelineVerdict::new(VerdictKind::Pipe, "small pipe", text);
    Some(PipelineVerdict { pipe: Some(pipe.number), cause: "pipe too small: two pages".to_owned(), ..verdict })
}

/// The verdict that bursts don't fit into a pipe, or `Inconclusive` if a slow stage is as likely.
pub(crate) fn small_pipe(figures: &PipelineFigures, order: &[&StageFigures]) -> Option<PipelineVerdict> {
    let busy = |nth: usize| order.get(nth).map_or(0.0, |stage| stage.busy * stage.present);
    let busiest = order[0];
    // The gain from a larger pipe is at most the inverse of the busiest stage's busy share. The gain from a faster
    // stage is at most its busy share divided by the next stage's.
    let stage_gains = (busy(0) - MOSTLY_BUSY).min(busy(0) * busy(0) - busy(1));
    if busy(0) >= BUSY {
        return None;
    }
    let (worst, both) = bursting(figures)?;
    // With bursts larger than any pipe, no two stages work at the same time. So the bursts are reported even if a
    // faster stage gains more.
    let size = burst::beyond_pipes(figures, worst).filter(|_| busy(0) < TOO_BUSY_FOR_A_BUFFER);
    if stage_gains > EITHER && size.is_none() {
        return None;
    }
    let (from, to) = (name(figures, worst.from), name(figures, worst.to));
    let seen = (both * f64::from(figures.samples)).round();
    if seen < MIN_WAITS {
        let text = format!(
            "Too short for a verdict: the ends of the pipe from {from} to {to} each waited in {seen} samples; at least {MIN_WAITS} are needed."
        );
        return Some(PipelineVerdict::unknown("short", text));
    }
    if let Some(size) = size {
        let text = format!(
            "{from} sends bursts of about {} to {to}, more than a pipe can hold: {from} waits for room {} of the time, {to} waits for data {}.",
            burst::mebibytes(size),
            percent(worst.writer_waits),
            percent(worst.reader_waits)
        );
        let verdict = PipelineVerdict::new(VerdictKind::Burst, "bursts", text);
        let (pipe, stage) = (Some(worst.number), Some(worst.to));
        return Some(PipelineVerdict { pipe, stage, cause: "bursts larger than a pipe".to_owned(), ..verdict });
    }
    if is_read_by_sort(figures, worst) {
        return None;
    }
    let waits = format!(
        "its writer waits for room {} of the time, its reader waits for data {}",
        percent(worst.writer_waits),
        percent(worst.reader_waits)
    );
    let pipe = Some(worst.number);
    if stage_gains > -EITHER {
        let text = format!(
            "Inconclusive: either {} (busy {}) or the pipe from {from} to {to} ({waits}) holds the pipeline back.",
            name(figures, busiest.number),
            percent(busy(0))
        );
        let verdict = PipelineVerdict::new(VerdictKind::Inconclusive, "stage or pipe", text);
        return Some(PipelineVerdict { stage: Some(busiest.number), pipe, sure: Certainty::Unsure, ..verdict });
    }
    let mut text = format!("The pipe from {from} to {to} is too small to absorb bursts: {waits}.");
    let unclear = burst::near_pipe_size(figures, worst);
    if let Some(size) = unclear {
        text.push_str(&format!(
            " The bursts are about {}; even the largest pipe may not hold them.",
            burst::mebibytes(size)
        ));
    }
    let sure = if unclear.is_some() { Certainty::Unsure } else { Certainty::Sure };
    let verdict = PipelineVerdict::new(VerdictKind::Pipe, "bursts", text);
    let bound = gain(figures, worst, busiest);
    let cause = "pipe too small for bursts".to_owned();
    Some(PipelineVerdict { pipe, bound, next: Some(busiest.number), cause, sure, ..verdict })
}

/// Whether a pipe's reader is sort. While sort orders what fills its memory, it reads nothing, for longer than a pipe
/// could bridge.
pub(crate) fn is_read_by_sort(figures: &PipelineFigures, pipe: &PipeFigures) -> bool {
    programs::program(&figures.stages[pipe.to - 1].words) == "sort"
}

/// The pipe whose two ends both wait longest, with the smaller of the two ends' shares; `None` if that share is too
/// small to matter.
pub(crate) fn bursting(figures: &PipelineFigures) -> Option<(&PipeFigures, f64)> {
    // As with stages, the shares of a pipe that existed only briefly count for less.
    let present = |pipe: &PipeFigures| figures.stages[pipe.from - 1].present.max(figures.stages[pipe.to - 1].present);
    let absorbable = |pipe: &PipeFigures| pipe.absorbable.unwrap_or(1.0);
    let both = |pipe: &PipeFigures| pipe.writer_waits.min(pipe.reader_waits) * absorbable(pipe) * present(pipe);
    // If one end waits first and the other one afterwards, these are phases, not bursts.
    let alternates = |pipe: &&PipeFigures| pipe.turns.is_none_or(|turns| turns >= MIN_TURNS);
    let worst = figures.pipes.iter().filter(alternates).max_by(|a, b| both(a).total_cmp(&both(b)))?;
    Some((worst, both(worst))).filter(|(_, both)| *both >= BOTH_WAIT)
}

/// The largest speed-up that a larger pipe can give: the inverse of the busiest stage's busy share. `None` if the
/// stages at the pipe's ends have many context switches, because a larger pipe also saves some of these.
pub(crate) fn gain(figures: &PipelineFigures, pipe: &PipeFigures, busiest: &StageFigures) -> Option<f64> {
    let switches = |number: usize| figures.stages[number - 1].switches_per_second.unwrap_or(0.0);
    let often = switches(pipe.from).max(switches(pipe.to)) > OFTEN_SWITCHED;
    Some(1.0 / busiest.busy.max(0.05)).filter(|&bound| bound < MAX_BOUND && !often)
}
