//! The states of all stages at one moment: infers those that no thread shows, and counts them.

use std::collections::BTreeMap;

use pipemark_causes::interval::{Interval, PipeCounts, StageCounts};
use pipemark_proc::process::PipeId;
use pipemark_proc::state::ThreadState;
use pipemark_proc::watched::WatchedProcess;

use crate::pipeline::WatchedPipeline;
use crate::pipeline::moment::Moment;
use crate::pipeline::pipe::WatchedPipe;
use crate::pipeline::stage::WatchedStage;

/// With more pipes, an uninterrupted wait at a pipe's end may be several waits: see [`slices`].
const MAX_PIPES_FOR_SLICES: usize = 64;

/// Infers a stage's state from its neighbours if its own threads don't show it.
pub fn resolve(pipes: &[WatchedPipe], moments: &mut [Moment]) {
    if moments.iter().all(|moment| moment.unsure.is_none()) {
        return;
    }
    let (mut readers_of, mut writers_of) = (vec![Vec::new(); moments.len()], vec![Vec::new(); moments.len()]);
    for pipe in pipes {
        readers_of[pipe.from].push(pipe.to);
        writers_of[pipe.to].push(pipe.from);
    }
    let state = |moments: &[Moment], stage: usize| moments[stage].state;
    for stage in 0..moments.len() {
        let Some((ins, outs, otherwise)) = moments[stage].unsure else { continue };
        let (readers, writers) = (&readers_of[stage], &writers_of[stage]);
        let outs = outs && !readers.is_empty();
        let ins = ins && !writers.is_empty();
        let blocked = outs && readers.iter().any(|&reader| state(moments, reader) != Some(ThreadState::Starved));
        let starved = ins && writers.iter().any(|&writer| state(moments, writer) != Some(ThreadState::Blocked));
        let decided = match (starved, blocked) {
            (true, false) => ThreadState::Starved,
            (false, true) => ThreadState::Blocked,
            (false, false) => otherwise,
            (true, true) if a_stage_beyond_is_running(moments, stage, &readers_of) => ThreadState::Blocked,
            (true, true) if a_stage_beyond_is_running(moments, stage, &writers_of) => ThreadState::Starved,
            (true, true) => otherwise,
        };
        // A known state of another thread counts if it precedes the inferred state in the order of states.
        let moment = &mut moments[stage];
        moment.state = Some(moment.state.map_or(decided, |known| known.min(decided)));
        match decided {
            ThreadState::Starved => moment.ins.push(None),
            ThreadState::Blocked => moment.outs.push(None),
            _ => {}
        }
    }
}

/// Counts a sample.
pub fn record(pipeline: &mut WatchedPipeline, moments: &[Moment], interval: &mut Interval) {
    interval.samples += 1;
    interval.alive += u32::from(moments.iter().any(|moment| moment.state.is_some()));
    interval.stages.resize(pipeline.stages.len(), StageCounts::default());
    interval.pipes.resize(pipeline.pipes.len(), PipeCounts::default());
    for ((moment, counts), stage) in moments.iter().zip(&mut interval.stages).zip(&mut pipeline.stages) {
        if let Some(state) = moment.state {
            counts.states[state as usize] += 1;
            let before = std::mem::replace(&mut stage.stopped, state == ThreadState::Stopped);
            counts.stops += u32::from(stage.stopped && !before);
            counts.threads += stage.threads_now as u64;
        }
        counts.alone = Some(counts.alone.unwrap_or(0));
        if let Some(hungry) = moment.hungry {
            counts.hunger_samples += 1;
            counts.hungry += u32::from(hungry);
        }
        if let Some(queued) = moment.queued {
            counts.lock_samples += 1;
            counts.queued += u32::from(queued);
        }
    }
    let is_busy = |moment: &Moment| {
        moment.state.is_some_and(|state| !matches!(state, ThreadState::Starved | ThreadState::Blocked))
    };
    let mut busy = moments.iter().zip(&mut interval.stages).filter(|(moment, _)| is_busy(moment));
    if let (Some((_, counts)), None) = (busy.next(), busy.next()) {
        *counts.alone.get_or_insert(0) += 1;
    }
    let reads_slices = pipeline.pipes.len() <= MAX_PIPES_FOR_SLICES;
    for (pipe, counts) in pipeline.pipes.iter_mut().zip(&mut interval.pipes) {
        let waits = |stage: usize, state: ThreadState, on: fn(&Moment) -> &Vec<Option<PipeId>>| {
            let moment = &moments[stage];
            moment.state == Some(state) && on(moment).iter().any(|id| id.is_none_or(|id| id == pipe.id))
        };
        let blocked = waits(pipe.from, ThreadState::Blocked, |moment| &moment.outs);
        let starved = waits(pipe.to, ThreadState::Starved, |moment| &moment.ins);
        // An end that ran between two samples has begun a new wait, although both samples found it waiting.
        for (nth, (stage, waits)) in [(pipe.from, blocked), (pipe.to, starved)].into_iter().enumerate() {
            let now = if waits && reads_slices { slices(&pipeline.stages[stage], &mut pipeline.known) } else { None };
            let before = std::mem::replace(&mut pipe.slices[nth], now);
            if before.is_some() && now.is_some() && before != now {
                pipe.waiting[nth] = 0;
            }
        }
        if blocked != starved {
            counts.turns += u32::from(pipe.last.replace(blocked).is_some_and(|last| last != blocked));
        }
        let [writer, reader] = pipe.waiting;
        if blocked {
            pipe.record_wait(writer);
        }
        // A buffer would have taken the bytes that the writer had ready, and given them to the reader later.
        if starved && let Some(length) = pipe.absorb() {
            counts.absorbable += 1;
            counts.lengths[0] += u64::from(length);
            counts.lengths[1] += 2 * u64::from(reader) + 1;
        }
        pipe.waiting = [counts.writer.record(blocked, writer), counts.reader.record(starved, reader)];
        counts.samples += u32::from(moments[pipe.from].state.is_some() || moments[pipe.to].state.is_some());
    }
}

/// Whether a stage beyond this one works. `next` has the stages next to each stage, in one direction.
fn a_stage_beyond_is_running(moments: &[Moment], stage: usize, next: &[Vec<usize>]) -> bool {
    let (mut seen, mut waiting) = (vec![false; moments.len()], vec![stage]);
    while let Some(at) = waiting.pop() {
        if std::mem::replace(&mut seen[at], true) {
            continue;
        }
        let works = |state| !matches!(state, ThreadState::Starved | ThreadState::Blocked | ThreadState::Unknown);
        if at != stage && moments[at].unsure.is_none() && moments[at].state.is_some_and(works) {
            return true;
        }
        waiting.extend(&next[at]);
    }
    false
}

/// The number of time slices that a stage of a single thread has had; `None` for other stages.
fn slices(stage: &WatchedStage, known: &mut BTreeMap<u32, WatchedProcess>) -> Option<u64> {
    let [pid] = stage.pids[..] else { return None };
    match &mut known.get_mut(&pid)?.threads[..] {
        [only] => only.read_times().map(|[_, _, slices]| slices),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use pipemark_proc::thread::ProcFile;

    use super::*;
    use crate::subject::{SamplingOptions, Subject};

    fn pipeline(stages: usize) -> WatchedPipeline {
        let options = SamplingOptions {
            touch: false,
            access: ProcFile::Syscall,
            profile: false,
            keeps_stacks: false,
            period: Duration::from_millis(10),
        };
        let stages = vec![WatchedStage::default(); stages];
        WatchedPipeline { stages, ..WatchedPipeline::new(Subject::Processes(Vec::new()), options, Instant::now()) }
    }

    #[test]
    fn each_time_that_a_stage_is_stopped_counts_once() {
        let (mut pipeline, mut interval) = (pipeline(1), Interval::default());
        for stopped in [false, true, true, false, true, false] {
            let state = if stopped { ThreadState::Stopped } else { ThreadState::Running };
            record(&mut pipeline, &[Moment { state: Some(state), ..Moment::default() }], &mut interval);
        }
        assert_eq!(interval.stages[0].stops, 2);
    }

    #[test]
    fn a_buffer_absorbs_waits_for_room_followed_by_waits_for_data() {
        let counts = |waits: &[(bool, usize)]| {
            let (mut pipeline, mut interval) = (pipeline(2), Interval::default());
            let id = PipeId(0, 1);
            pipeline.pipes = vec![WatchedPipe::new(0, 1, id, None)];
            for &(writer, count) in waits {
                let of = |waits: bool, state| Moment {
                    state: Some(if waits { state } else { ThreadState::Running }),
                    ins: vec![Some(id)],
                    outs: vec![Some(id)],
                    ..Moment::default()
                };
                let moments = [of(writer, ThreadState::Blocked), of(!writer, ThreadState::Starved)];
                (0..count).for_each(|_| record(&mut pipeline, &moments, &mut interval));
            }
            interval.pipes[0]
        };
        let absorbable = |waits: &[(bool, usize)]| counts(waits).absorbable;
        assert_eq!(absorbable(&[(false, 50), (true, 50)]), 0, "it reads everything and then computes");
        assert_eq!(absorbable(&[(true, 50), (false, 30)]), 30);
        let last = counts(&[(false, 50), (true, 5), (false, 5), (true, 50)]);
        assert_eq!((last.absorbable, last.lengths), (5, [25, 25]), "the long wait at the end is not of a burst");
        let short = counts(&[(true, 40), (false, 1), (true, 1), (false, 2), (true, 1), (false, 30)]);
        assert_eq!(
            (short.absorbable, short.lengths[0]),
            (33, 1 + 1 + 31 * 40),
            "short waits between are not the burst"
        );
    }
}
