//! Stores a pipeline's counts by interval. Divides its time into phases, each with a verdict.

use crate::figures::PipelineFigures;
use crate::interval::Interval;
use crate::report::Phase;
use crate::sampler::Watcher;
use crate::verdict::verdict;

/// The maximum number of intervals kept. Beyond it, neighbouring intervals are merged in pairs.
const MAX_INTERVALS: usize = 720;
/// The largest number of stage counts in these intervals. Beyond it, intervals are merged too.
const MAX_COUNTS: usize = 72_000;
/// The shortest phase, in seconds.
const MIN_SECONDS: f64 = 1.0;
/// The shortest phase, as a share of the whole time.
const MIN_SHARE: f64 = 0.1;
/// Two neighbouring phases differ if the busiest stage of each phase is busier in it than in the other phase, by more
/// than this share of the time.
const MIN_CHANGE: f64 = 0.3;

/// Counts by interval, in bounded memory.
#[derive(Debug, Default)]
pub struct Timeline {
    pub intervals: Vec<Interval>,
    /// The number of added intervals that make up one kept interval.
    merged: usize,
    open: usize,
}

impl Timeline {
    /// Adds the counts of one interval.
    pub fn add(&mut self, interval: Interval) {
        self.merged = self.merged.max(1);
        match self.intervals.last_mut() {
            Some(last) if self.open > 0 && self.open < self.merged => last.add(&interval),
            _ => {
                self.open = 0;
                self.intervals.push(interval);
            }
        }
        self.open += 1;
        let stages = self.intervals.last().map_or(0, |last| last.stages.len()).max(1);
        if self.intervals.len() > MAX_INTERVALS.min(MAX_COUNTS / stages) {
            self.intervals = self.intervals.chunks(2).map(Interval::total).collect();
            self.merged *= 2;
        }
    }

    /// The last intervals.
    pub fn recent(&self, count: usize) -> Timeline {
        let from = self.intervals.len().saturating_sub(count);
        Timeline { intervals: self.intervals[from..].to_vec(), ..Timeline::default() }
    }

    /// All intervals merged into one.
    pub fn total(&self) -> Interval {
        Interval::total(&self.intervals)
    }

    /// The phases. The busiest stage changes from each phase to the next.
    pub fn phases(&self, watcher: &Watcher) -> Vec<Phase> {
        let whole = self.total();
        let shortest = MIN_SECONDS.max(whole.seconds * MIN_SHARE);
        let mut stretches: Vec<Interval> = Vec::new();
        for interval in self.intervals.iter().filter(|interval| interval.samples > 0) {
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
        let all = PipelineFigures::of(watcher, &whole);
        let phase = |interval: &Interval| {
            let verdict = verdict(&PipelineFigures::of_part(watcher, interval, &all));
            Phase { begin: interval.begin, end: interval.begin + interval.seconds, verdict }
        };
        stretches.iter().map(phase).collect()
    }
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
    use std::time::Duration;

    use super::*;
    use pipemark_proc::process::PipeId;
    use pipemark_proc::state::ThreadState;
    use pipemark_proc::thread::ProcFile;

    use crate::report::PipelineReport;
    use crate::sampler::{Moment, SamplingOptions, Subject, WatchedPipe, WatchedStage};

    const HALF_SECOND: Duration = Duration::from_millis(500);

    /// A pipeline of `stages` stages, without samples.
    fn watched(stages: usize) -> Watcher {
        let options = SamplingOptions { touch: false, access: ProcFile::Syscall, period: HALF_SECOND };
        let mut watcher = Watcher::new(Subject::Processes(Vec::new()), options);
        let stage =
            |n: usize| WatchedStage { name: format!("stage{n}"), command: "c".repeat(200), ..WatchedStage::default() };
        watcher.stages = (0..stages).map(|n| WatchedStage { alive: true, ..stage(n) }).collect();
        let pipe = |from| WatchedPipe::new(from, from + 1, PipeId(0, from as u64), None);
        watcher.pipes = (0..stages - 1).map(pipe).collect();
        watcher
    }

    /// Closes an interval of half a second with these samples.
    fn half_second(
        watcher: &mut Watcher,
        samples: usize,
        state: impl Fn(usize, usize) -> Option<ThreadState>,
    ) -> Interval {
        for sample in 0..samples {
            let moment = |stage: usize| Moment { state: state(sample, stage), ..Moment::default() };
            watcher.record(&(0..watcher.stages.len()).map(moment).collect::<Vec<Moment>>());
        }
        watcher.begin -= HALF_SECOND;
        watcher.close_interval()
    }

    #[test]
    fn phases_number_stages_as_the_whole_does() {
        let mut watcher = watched(4);
        let mut timeline = Timeline::default();
        for half in 0..12 {
            // The first two stages end while the third begins to compute.
            let early = half < 4;
            timeline.add(half_second(&mut watcher, 50, |_, stage| match stage {
                0 => early.then_some(ThreadState::Blocked),
                1 => early.then_some(ThreadState::Running),
                2 if !early => Some(ThreadState::Running),
                _ => Some(ThreadState::Starved),
            }));
        }
        let report = PipelineReport::of(&watcher, &timeline, Some("stage0 | stage1 | stage2 | stage3"));
        let stages: Vec<Option<usize>> = report.phases.iter().map(|phase| phase.verdict.stage).collect();
        assert_eq!(stages, [Some(2), Some(3)]);
        let last = report.verdict;
        assert_eq!((last.stage, last.next), (Some(3), Some(4)));
        assert!(last.text.starts_with("stage2 holds the pipeline back"), "{}", last.text);
    }

    /// Stores an hour of `stages` stages, with `samples` samples in each half second. Returns the report, the number of
    /// bytes that the timeline takes, and the largest number of intervals that it kept.
    fn an_hour(stages: usize, samples: usize) -> (PipelineReport, usize, usize) {
        const STATES: [ThreadState; 3] = [ThreadState::Running, ThreadState::Starved, ThreadState::Blocked];
        let mut watcher = watched(stages);
        let mut timeline = Timeline::default();
        let mut most = 0;
        for half in 0..7200 {
            let state = |sample: usize, stage: usize| Some(STATES[(stage + half * sample) % 3]);
            timeline.add(half_second(&mut watcher, samples, state));
            most = most.max(timeline.intervals.len());
        }
        let bytes = |interval: &Interval| {
            size_of_val(interval)
                + interval.stages.capacity() * size_of_val(&interval.stages[0])
                + interval.pipes.capacity() * size_of_val(&interval.pipes[0])
        };
        let bytes = timeline.intervals.iter().map(bytes).sum();
        let mut report = PipelineReport::of(&watcher, &timeline, None);
        report.add_moments(&timeline);
        (report, bytes, most)
    }

    #[test]
    fn an_hour_takes_little_memory() {
        for (stages, samples, most_kept) in [(5, 50, 720), (200, 9, 360)] {
            let (report, memory, most) = an_hour(stages, samples);
            assert_eq!(report.samples as usize, 7200 * samples);
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
