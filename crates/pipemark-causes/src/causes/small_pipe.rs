//! Verdicts on pipes that are too small for bursts, or that hold only two pages. Pure: no clock and no I/O.

use crate::cause::Cause;
use crate::causes::burst;
use crate::figures::PipelineFigures;
use crate::hypothesis::{Hypothesis, Scene};
use crate::model::{MAX_BOUND, OFTEN_SWITCHED};
use crate::pipe_figures::PipeFigures;
use crate::programs;
use crate::report::{Certainty, GainRange, Quality};
use crate::stage_figures::StageFigures;

/// A pipe is too small only if each of its two ends waits for at least this share of the time.
/// Multiplied by 2 it changes 3 of 118 recorded verdicts (bench/thresholds.py).
pub const BOTH_WAIT: f64 = 0.12;
/// A pipe has bursts if the waits of its two ends alternate at least this many times.
/// Multiplied by 2 it changes 1 of 118 recorded verdicts (bench/thresholds.py).
const MIN_TURNS: u32 = 3;

/// Whether a pipe is so small that its ends spend their time waking each other. Samples show that time as work.
pub fn is_tiny(figures: &PipelineFigures, pipe: &PipeFigures) -> bool {
    /// The capacity in bytes of a new pipe if its user is over the limit for pipes: two pages.
    /// Multiplied by 0.5 it changes 1, by 0.8 it changes 1 of 118 recorded verdicts (bench/thresholds.py).
    const TINY: u64 = 8192;
    /// The minimum time of a context switch in seconds.
    /// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
    const SWITCH: f64 = 5e-6;
    /// The share of a CPU above which context switches matter.
    /// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
    const MATTERS: f64 = 0.1;
    let switches = |number: usize| figures.stages[number - 1].switches_per_second.unwrap_or(0.0);
    let tiny = !pipe.is_socket && pipe.capacity.is_some_and(|capacity| capacity <= TINY);
    tiny && (switches(pipe.from) + switches(pipe.to)) * SWITCH >= MATTERS
}

/// Pipes of two pages, and pipes that are too small for bursts, the one whose ends wait longest first.
pub fn assess(scene: &Scene) -> Vec<Hypothesis> {
    let figures = scene.figures;
    let waits = |pipe: &&PipeFigures| pipe.writer_waits + pipe.reader_waits;
    let tiny = figures.pipes.iter().filter(|pipe| is_tiny(figures, pipe));
    let tiny = tiny.max_by(|a, b| waits(a).total_cmp(&waits(b)));
    // Its ends' switches are saved, too, so the gain has no upper end.
    let gain = |both: f64| scene.model.with_buffer(both);
    let mut found: Vec<Hypothesis> = tiny
        .map(|pipe| {
            let gain = Some(GainRange { high: None, ..gain(pipe.writer_waits.min(pipe.reader_waits)) });
            Hypothesis { gain, ..Hypothesis::of_pipe(Cause::TinyPipe, pipe.number, Quality::Measured) }
        })
        .into_iter()
        .collect();
    let Some((worst, both)) = bursting(figures) else { return found };
    let busiest = scene.model.order[0];
    let claim = |cause: Cause| Hypothesis {
        gain: Some(gain(both)),
        explains: both,
        ..Hypothesis::of_pipe(cause, worst.number, Quality::Inferred)
    };
    if burst::beyond_pipes(figures, worst).is_some() {
        found.push(Hypothesis { stage: Some(worst.to), ..claim(Cause::Bursts) });
    }
    if !is_read_by_sort(figures, worst) {
        let unclear = burst::near_pipe_size(figures, worst).is_some();
        found.push(Hypothesis {
            sure: if unclear { Certainty::Unsure } else { Certainty::Sure },
            bound: bound(figures, worst, busiest),
            next: Some(busiest.number),
            ..claim(Cause::SmallPipe)
        });
    }
    found
}

/// Whether a pipe's reader is sort. While sort orders what fills its memory, it reads nothing, for longer than a pipe
/// could bridge.
pub fn is_read_by_sort(figures: &PipelineFigures, pipe: &PipeFigures) -> bool {
    programs::program(&figures.stages[pipe.to - 1].words) == "sort"
}

/// The pipe whose two ends both wait longest, with the smaller of the two ends' shares; `None` if that share is too
/// small to matter.
pub fn bursting(figures: &PipelineFigures) -> Option<(&PipeFigures, f64)> {
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
pub fn bound(figures: &PipelineFigures, pipe: &PipeFigures, busiest: &StageFigures) -> Option<f64> {
    let switches = |number: usize| figures.stages[number - 1].switches_per_second.unwrap_or(0.0);
    let often = switches(pipe.from).max(switches(pipe.to)) > OFTEN_SWITCHED;
    Some(1.0 / busiest.busy.max(0.05)).filter(|&bound| bound < MAX_BOUND && !often)
}
