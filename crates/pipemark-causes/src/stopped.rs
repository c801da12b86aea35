//! Verdicts that stages are stopped: by signals, a tracer or a paused control group. Pure: no clock and no I/O.

use crate::figures::PipelineFigures;
use crate::report::{PipelineVerdict, StageFigures, VerdictKind};
use crate::verdict::{BALANCED, THROTTLED, busiest_first, busy, name, percent};

/// A stage counts as stopped if it is stopped for more than this share of the time.
pub(crate) const STOPPED: f64 = 0.5;

/// The verdict that stages are frozen because their control group is paused, for example by `docker pause`.
pub(crate) fn frozen(figures: &PipelineFigures) -> Option<PipelineVerdict> {
    let all: Vec<&StageFigures> = figures.stages.iter().filter(|stage| stage.frozen).collect();
    let names: Vec<String> = all.iter().map(|stage| name(figures, stage.number)).collect();
    let text = match &names[..] {
        [] => return None,
        [one] => format!("{one} is frozen: its control group is paused, and no data moves through it."),
        more => format!("These stages are frozen, because their control group is paused: {}.", more.join(", ")),
    };
    let verdict = PipelineVerdict::new(VerdictKind::Stage, "frozen", text);
    Some(PipelineVerdict { stage: Some(all[0].number), cause: "frozen control group".to_owned(), ..verdict })
}

/// The verdict that a tracer, such as strace, slows the busiest stage by stopping it.
pub(crate) fn traced(figures: &PipelineFigures) -> Option<PipelineVerdict> {
    let order = busiest_first(figures);
    let is_slowed = |stage: &&&StageFigures| stage.stopped >= THROTTLED && busy(stage) >= busy(order[0]) - BALANCED;
    let stage = order.iter().find(is_slowed)?;
    let tracer = stage.tracer.as_ref()?;
    let text = format!(
        "{tracer} traces {}, which is stopped for {} of the time.",
        name(figures, stage.number),
        percent(stage.stopped)
    );
    let verdict = PipelineVerdict::new(VerdictKind::Stage, "traced", text);
    Some(PipelineVerdict { stage: Some(stage.number), cause: format!("traced by {tracer}"), ..verdict })
}

/// The verdict that another program limits the busiest stage by stopping it repeatedly, as cpulimit does.
pub(crate) fn stopped_repeatedly(figures: &PipelineFigures) -> Option<PipelineVerdict> {
    /// From this many stops on, a program stops the stage, not a user who presses Ctrl-Z and types `fg`.
    const MIN_STOPS: u32 = 4;
    const MIN_STOPS_PER_SECOND: f64 = 1.0;
    let order = busiest_first(figures);
    let is_limited = |stage: &&&StageFigures| {
        stage.stopped >= THROTTLED
            && stage.stops >= MIN_STOPS
            && stage.stops_per_second >= MIN_STOPS_PER_SECOND
            && stage.cpu.is_none_or(|cpu| cpu > 0.0)
            && busy(stage) >= busy(order[0]) - BALANCED
    };
    let stage = order.iter().find(is_limited)?;
    let text = format!(
        "{} is stopped {} of the time: another program, such as cpulimit, stops and resumes it repeatedly.",
        name(figures, stage.number),
        percent(stage.stopped)
    );
    let verdict = PipelineVerdict::new(VerdictKind::Throttled, "stopped repeatedly", text);
    Some(PipelineVerdict { stage: Some(stage.number), cause: "CPU limit by stop signals".to_owned(), ..verdict })
}

/// The verdict that several stages are stopped. Ctrl-Z stops all of them.
pub(crate) fn stopped(figures: &PipelineFigures) -> Option<PipelineVerdict> {
    let all: Vec<&StageFigures> = figures.stages.iter().filter(|stage| stage.stopped > STOPPED).collect();
    let [first, _, ..] = all[..] else { return None };
    let names: Vec<String> = all.iter().map(|stage| name(figures, stage.number)).collect();
    let text =
        format!("These stages are stopped (Ctrl-Z or SIGSTOP): {}. No data moves through them.", names.join(", "));
    let verdict = PipelineVerdict::new(VerdictKind::Stage, "stopped", text);
    Some(PipelineVerdict { stage: Some(first.number), ..verdict })
}
