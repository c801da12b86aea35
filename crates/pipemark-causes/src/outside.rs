//! The verdict that a process outside the pipeline is the bottleneck. Pure: no clock and no I/O.

use crate::figures::PipelineFigures;
use crate::peer;
use crate::report::{PipeFigures, PipelineVerdict, StageFigures, VerdictKind};
use crate::verdict::{BALANCED, name, percent};

/// The verdict that a process outside the pipeline is the bottleneck: a first stage waits for input, or a last stage
/// waits for room in its output pipe. `None` if there is no such wait.
pub(crate) fn outside_limit(figures: &PipelineFigures, busiest: &StageFigures) -> Option<PipelineVerdict> {
    let fed = |stage: &&StageFigures| figures.pipes.iter().any(|pipe| pipe.to == stage.number);
    let read = |stage: &&StageFigures| figures.pipes.iter().any(|pipe| pipe.from == stage.number);
    let most = |share: fn(&StageFigures) -> f64, ends: Vec<&StageFigures>| {
        ends.into_iter().map(|stage| (share(stage) * stage.present, stage.number)).max_by(|a, b| a.0.total_cmp(&b.0))
    };
    let input = most(|stage| stage.starved, figures.stages.iter().filter(|stage| !fed(stage)).collect());
    let output = most(|stage| stage.blocked, figures.stages.iter().filter(|stage| !read(stage)).collect());
    let longer = |(share, _): &(f64, usize)| *share > busiest.busy * busiest.present + BALANCED;
    let beyond = |(share, number): (f64, usize), what: &str| {
        let found = figures.stages[number - 1].peer.as_ref().filter(|peer| peer.pipe)?;
        let (waits, who) = (percent(share), peer::describe_peer(found));
        let text = format!(
            "{} waits {waits} of the time {what} {who}, a process outside this pipeline.",
            name(figures, number)
        );
        let verdict = PipelineVerdict::new(VerdictKind::Peer, "waiting for the other end of a pipe", text);
        let role = if found.sends { "receiver" } else { "sender" };
        Some(PipelineVerdict { stage: Some(number), cause: format!("peer: {role} ({})", found.name), ..verdict })
    };
    if let Some(verdict) = input.filter(longer).and_then(|input| beyond(input, "for data from")) {
        return Some(verdict);
    }
    // A stage in the middle may wait for a pipe that isn't part of the pipeline, such as a FIFO.
    let waited = |number: usize, end: fn(&PipeFigures) -> usize, share: fn(&PipeFigures) -> f64| {
        figures.pipes.iter().filter(|pipe| end(pipe) == number).map(share).fold(0.0, f64::max)
    };
    let elsewhere = |stage: &StageFigures| {
        let for_room = stage.blocked - waited(stage.number, |pipe| pipe.from, |pipe| pipe.writer_waits);
        let for_data = stage.starved - waited(stage.number, |pipe| pipe.to, |pipe| pipe.reader_waits);
        let sends = stage.peer.as_ref().is_some_and(|peer| peer.sends);
        (if sends { for_room } else { for_data } * stage.present, stage.number)
    };
    let inside = figures.stages.iter().filter(|stage| fed(stage) && read(stage)).map(elsewhere);
    let inside = inside.max_by(|a, b| a.0.total_cmp(&b.0)).filter(longer).filter(|(share, _)| *share >= 0.5);
    let sends = |number: usize| figures.stages[number - 1].peer.as_ref().is_some_and(|peer| peer.sends);
    let what = |number| if sends(number) { "for room in a pipe to" } else { "for data from" };
    if let Some(verdict) = inside.and_then(|(share, number)| beyond((share, number), what(number))) {
        return Some(verdict);
    }
    if let Some((share, number)) = input.filter(longer) {
        let text = format!(
            "The input holds the pipeline back: {} waits {} of the time for data from a pipe whose writer is not visible.",
            name(figures, number),
            percent(share)
        );
        return Some(PipelineVerdict { stage: Some(number), ..PipelineVerdict::unknown("input", text) });
    }
    let (share, number) = output.filter(longer)?;
    if let Some(verdict) = beyond((share, number), "for room in a pipe to") {
        return Some(verdict);
    }
    let text = format!(
        "The reader of the output holds the pipeline back: {} waits {} of the time for room in a pipe whose reader is not visible.",
        name(figures, number),
        percent(share)
    );
    Some(PipelineVerdict { stage: Some(number), ..PipelineVerdict::unknown("output", text) })
}
