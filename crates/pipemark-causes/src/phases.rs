//! Divides a pipeline's time into phases, each with a verdict.

use crate::evidence::PipelineEvidence;
use crate::figures::PipelineFigures;
use crate::interval::Interval;
use crate::report::Phase;
use crate::verdict::verdict;

/// The shortest phase, in seconds.
/// Multiplied by 0.5 it changes 2, by 0.8 it changes 2 of 118 recorded verdicts (bench/thresholds.py).
const MIN_SECONDS: f64 = 1.0;
/// The shortest phase, as a share of the whole time.
/// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
const MIN_SHARE: f64 = 0.1;
/// Two neighbouring phases differ if the busiest stage of each phase is busier in it than in the other phase, by more
/// than this share of the time.
/// Multiplied by 0.5 it changes 3 of 118 recorded verdicts (bench/thresholds.py).
const MIN_CHANGE: f64 = 0.3;

/// The phases. The busiest stage changes from each phase to the next.
pub fn phases(evidence: &PipelineEvidence) -> Vec<Phase> {
    let whole = evidence.timeline.total();
    let shortest = MIN_SECONDS.max(whole.seconds * MIN_SHARE);
    let mut stretches: Vec<Interval> = Vec::new();
    for interval in evidence.timeline.intervals.iter().filter(|interval| interval.samples > 0) {
        match stretches.last_mut() {
            Some(last) if leader(last) == leader(interval) || last.seconds < shortest => last.add(interval),
            _ => stretches.push(interval.clone()),
        }
    }
    // Merges a last phase that is too short, and neighbours that hardly differ.
    let mut place = 1;
    while place < stretches.len() {
        let next = &stretches[place];
        if next.seconds < shortest || !differ(&stretches[place - 1], next) {
            let next = stretches.remove(place);
            stretches[place - 1].add(&next);
            place = place.saturating_sub(1).max(1);
        } else {
            place += 1;
        }
    }
    let all = PipelineFigures::of(evidence, &whole);
    let phase = |interval: &Interval| {
        let verdict = verdict(&PipelineFigures::of_part(evidence, interval, &all));
        Phase { begin: interval.begin, end: interval.begin + interval.seconds, verdict }
    };
    stretches.iter().map(phase).collect()
}

/// The index of the stage with the largest busy share; `None` without stages.
fn leader(interval: &Interval) -> Option<usize> {
    (0..interval.stages.len()).max_by(|&a, &b| interval.busy(a).total_cmp(&interval.busy(b)))
}

fn differ(a: &Interval, b: &Interval) -> bool {
    let (Some(first), Some(second)) = (leader(a), leader(b)) else { return false };
    first != second && a.busy(first) - b.busy(first) > MIN_CHANGE && b.busy(second) - a.busy(second) > MIN_CHANGE
}

#[cfg(test)]
mod tests {
    use super::*;
    use pipemark_proc::state::ThreadState;

    use crate::evidence::{PipeEvidence, StageEvidence};
    use crate::interval::{PipeCounts, StageCounts};
    use crate::report::PipelineReport;

    /// A pipeline of `stages` stages, without samples.
    fn watched(stages: usize) -> PipelineEvidence {
        let stage = |n: usize| StageEvidence {
            name: format!("stage{n}"),
            command: "c".repeat(200),
            reads_pipe: n > 0,
            writes_pipe: n + 1 < stages,
            ..StageEvidence::default()
        };
        let pipe = |from: usize| PipeEvidence { from, to: from + 1, id: (0, from as u64), ..PipeEvidence::default() };
        PipelineEvidence {
            stages: (0..stages).map(stage).collect(),
            pipes: (0..stages - 1).map(pipe).collect(),
            ..PipelineEvidence::default()
        }
    }

    /// An interval of half a second with these samples.
    fn half_second(
        evidence: &PipelineEvidence,
        samples: u32,
        state: impl Fn(u32, usize) -> Option<ThreadState>,
    ) -> Interval {
        let begin = evidence.timeline.total().seconds;
        let mut stages = vec![StageCounts::default(); evidence.stages.len()];
        for (at, counts) in stages.iter_mut().enumerate() {
            (0..samples).filter_map(|sample| state(sample, at)).for_each(|state| counts.states[state as usize] += 1);
        }
        let pipes = vec![PipeCounts { samples, ..PipeCounts::default() }; evidence.pipes.len()];
        Interval { begin, seconds: 0.5, samples, alive: samples, stages, pipes }
    }

    #[test]
    fn phases_number_stages_as_the_whole_does() {
        let mut evidence =
            PipelineEvidence { pipeline: Some("stage0 | stage1 | stage2 | stage3".into()), ..watched(4) };
        for half in 0..12 {
            // The first two stages end while the third begins to compute.
            let early = half < 4;
            let next = half_second(&evidence, 50, |_, stage| match stage {
                0 => early.then_some(ThreadState::Blocked),
                1 => early.then_some(ThreadState::Running),
                2 if !early => Some(ThreadState::Running),
                _ => Some(ThreadState::Starved),
            });
            evidence.timeline.add(next);
        }
        let report = PipelineReport::of(&evidence);
        let stages: Vec<Option<usize>> = report.phases.iter().map(|phase| phase.verdict.stage).collect();
        assert_eq!(stages, [Some(2), Some(3)]);
        let last = report.verdict;
        assert_eq!((last.stage, last.next), (Some(3), Some(4)));
        assert!(last.text.starts_with("stage2 holds the pipeline back"), "{}", last.text);
    }

    /// Stores an hour of `stages` stages, with `samples` samples in each half second. Returns the report, the number of
    /// bytes that the timeline takes, and the largest number of intervals that it kept.
    fn an_hour(stages: usize, samples: u32) -> (PipelineReport, usize, usize) {
        const STATES: [ThreadState; 3] = [ThreadState::Running, ThreadState::Starved, ThreadState::Blocked];
        let mut evidence = watched(stages);
        let mut most = 0;
        let first = half_second(&evidence, samples, |sample, stage| Some(STATES[(stage + sample as usize) % 3]));
        for half in 0..7200 {
            evidence.timeline.add(Interval { begin: f64::from(half) / 2.0, ..first.clone() });
            most = most.max(evidence.timeline.intervals.len());
        }
        let bytes = |interval: &Interval| {
            size_of_val(interval)
                + interval.stages.capacity() * size_of_val(&interval.stages[0])
                + interval.pipes.capacity() * size_of_val(&interval.pipes[0])
        };
        let bytes = evidence.timeline.intervals.iter().map(bytes).sum();
        let mut report = PipelineReport::of(&evidence);
        report.add_moments(&evidence.timeline);
        (report, bytes, most)
    }

    #[test]
    fn an_hour_takes_little_memory() {
        for (stages, samples, most_kept) in [(5, 50, 720), (200, 9, 360)] {
            let (report, memory, most) = an_hour(stages, samples);
            assert_eq!(report.samples, 7200 * samples);
            assert!((report.seconds - 3600.0).abs() < 60.0, "{}", report.seconds);
            assert_eq!(report.stages.len(), stages);
            let moments = &report.stages[0].moments;
            assert!((most_kept / 2..=most_kept).contains(&moments.len()), "{}", moments.len());
            assert!(moments.last().unwrap().seconds > 3590.0, "to the end");
            assert!(most <= most_kept + 1, "{most}");
            assert!(memory < 20_000_000, "{stages} stages: {memory} bytes of memory");
            let size = serde_json::to_vec(&report).unwrap().len();
            assert!(size < 20_000_000, "{stages} stages: {size} bytes as JSON");
            println!("{stages} stages: {memory} bytes of memory, {size} as JSON");
        }
    }
}
