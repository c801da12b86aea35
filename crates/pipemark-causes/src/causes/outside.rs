//! A process outside the pipeline holds the other end of a pipe that a stage waits for: a first stage waits for input, a
//! last one for room in its output, or a stage in between for a pipe that isn't part of the pipeline, such as a FIFO.

use crate::cause::{Cause, PeerRole};
use crate::hypothesis::{Hypothesis, Scene};
use crate::pipe_figures::PipeFigures;
use crate::report::Quality;
use crate::stage_figures::StageFigures;

/// A first or last stage waits outside the pipeline for at least this share of the time.
/// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
const MIN_WAITS: f64 = 0.1;
/// A stage in the middle waits elsewhere for at least this share of the time.
/// Multiplied by 2 it changes 1 of 118 recorded verdicts (bench/thresholds.py).
const MIN_WAITS_ELSEWHERE: f64 = 0.5;

/// What a stage waits for outside the pipeline, and the share of the whole time. The first stage's input comes first.
pub fn assess(scene: &Scene) -> Vec<Hypothesis> {
    let figures = scene.figures;
    let fed = |stage: &StageFigures| figures.pipes.iter().any(|pipe| pipe.to == stage.number);
    let read = |stage: &StageFigures| figures.pipes.iter().any(|pipe| pipe.from == stage.number);
    let most = |share: &dyn Fn(&StageFigures) -> f64, is: &dyn Fn(&StageFigures) -> bool| {
        let all = figures.stages.iter().filter(|stage| is(stage));
        all.map(|stage| (share(stage) * stage.present, stage)).max_by(|a, b| a.0.total_cmp(&b.0))
    };
    let waited = |number: usize, end: fn(&PipeFigures) -> usize, share: fn(&PipeFigures) -> f64| {
        figures.pipes.iter().filter(|pipe| end(pipe) == number).map(share).fold(0.0, f64::max)
    };
    let elsewhere = |stage: &StageFigures| {
        let for_room = stage.blocked - waited(stage.number, |pipe| pipe.from, |pipe| pipe.writer_waits);
        let for_data = stage.starved - waited(stage.number, |pipe| pipe.to, |pipe| pipe.reader_waits);
        if stage.peer.as_ref().is_some_and(|peer| peer.sends) { for_room } else { for_data }
    };
    let input = most(&|stage| stage.starved, &|stage| !fed(stage));
    let inside = most(&elsewhere, &|stage| fed(stage) && read(stage));
    let output = most(&|stage| stage.blocked, &|stage| !read(stage));
    let claim = |cause: Cause, quality: Quality, share: f64, stage: &StageFigures| {
        let gain = Some(scene.model.without_wait(share));
        Hypothesis { gain, explains: share, ..Hypothesis::of_stage(cause, stage.number, quality) }
    };
    let known = |(share, stage): (f64, &StageFigures)| {
        let peer = stage.peer.as_ref().filter(|peer| peer.pipe)?;
        let role = if peer.sends { PeerRole::Receiver } else { PeerRole::Sender };
        Some(claim(Cause::Outside(role), Quality::Proved, share, stage))
    };
    let mut found: Vec<Hypothesis> = input.and_then(known).into_iter().collect();
    found.extend(inside.filter(|(share, _)| *share >= MIN_WAITS_ELSEWHERE).and_then(known));
    let unseen = |cause: Cause, (share, stage): (f64, &StageFigures)| claim(cause, Quality::Inferred, share, stage);
    if input.is_some_and(|input| known(input).is_none()) {
        found.extend(input.map(|input| unseen(Cause::UnseenInput, input)));
    }
    found.extend(output.and_then(|output| known(output).or_else(|| Some(unseen(Cause::UnseenOutput, output)))));
    found.retain(|found| found.explains >= MIN_WAITS);
    found
}
