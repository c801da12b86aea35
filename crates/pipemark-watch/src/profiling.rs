//! Observes what the busiest stages execute: samples of their threads, from which `pipemark-profile` names functions and
//! kinds of work.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use pipemark_causes::interval::Interval;
use pipemark_model::total_order;
use pipemark_profile::{Profile, Profiler, TimeLimit};

use crate::budget::own_time;
use crate::pipeline::WatchedPipeline;
use crate::pipeline::stage::WatchedStage;

/// The maximum number of stages that are profiled at once: the busiest ones.
const MAX_STAGES: usize = 2;
/// A pipeline of up to this number of stages is profiled before it is known which of them are busy.
const MAX_STAGES_AT_FIRST: usize = 4;
/// A stage that uses less of a CPU isn't profiled, because it would take too long to get enough samples.
const MIN_CPU: f64 = 0.1;
/// The maximum number of threads of a stage that are considered.
const MAX_THREADS: usize = 64;
/// The time after which samples are taken from the kernel. It holds those of about half a second.
const PERIOD: Duration = Duration::from_millis(200);

/// The observer of what stages execute.
pub struct Profiling {
    profiler: Profiler,
    /// The stages to profile; `None` until it is known which of them are busy.
    stages: Option<Vec<usize>>,
    next: Instant,
}

impl Profiling {
    /// Starts with all stages, if they are few.
    pub fn start() -> Profiling {
        Profiling { profiler: Profiler::default(), stages: None, next: Instant::now() }
    }

    /// Whether it is time to take the samples.
    pub fn is_due(&self, now: Instant) -> bool {
        now >= self.next
    }

    /// Takes the samples, and follows threads that have started since. If this is called late, the kernel keeps the
    /// samples of about half a second and drops the later ones. Takes about this much CPU time at most.
    pub fn read(&mut self, pipeline: &WatchedPipeline, now: Instant, most: Duration) {
        // The stages of a pipeline that has just been started appear within milliseconds.
        self.next = now + if self.stages.is_none() { PERIOD / 10 } else { PERIOD };
        self.follow(pipeline, most);
    }

    /// Chooses the stages that used most CPU time in an interval, from the next reading on.
    pub fn choose(&mut self, pipeline: &WatchedPipeline, interval: &Interval) {
        let used = |place: usize| {
            let counts = interval.stages.get(place).filter(|_| pipeline.stages[place].alive)?;
            let cpu = counts.cpu? as f64 / 1e9 / interval.seconds.max(1e-3);
            (cpu >= MIN_CPU).then_some((cpu, place))
        };
        let mut busiest: Vec<(f64, usize)> = (0..pipeline.stages.len()).filter_map(used).collect();
        busiest.sort_by_cached_key(|own| total_order(-own.0));
        self.stages = Some(busiest.into_iter().take(MAX_STAGES).map(|(_, place)| place).collect());
    }

    fn follow(&mut self, pipeline: &WatchedPipeline, most: Duration) {
        let threads = |&place: &usize| {
            let pids = pipeline.stages.get(place).map_or(&[][..], |stage| &stage.pids[..]);
            let known = pids.iter().filter_map(|pid| pipeline.known.get(pid));
            known.flat_map(|known| &known.threads).map(move |thread| (place, thread.id)).take(MAX_THREADS)
        };
        let all = if pipeline.stages.len() <= MAX_STAGES_AT_FIRST { 0..pipeline.stages.len() } else { 0..0 };
        let stages = self.stages.clone().unwrap_or_else(|| all.collect());
        let wanted: Vec<(usize, u32)> = stages.iter().flat_map(threads).collect();
        self.profiler.follow(&wanted, &TimeLimit::new(most, &own_time));
    }

    /// Finds the names of what was executed, as far as this CPU time suffices: each stage's profile by its place, and why
    /// nothing could be sampled.
    pub fn finish(
        self,
        stages: &[WatchedStage],
        keeps_stacks: bool,
        most: Duration,
    ) -> (BTreeMap<usize, Profile>, Option<String>) {
        let refusal = self.profiler.refusal().map(ToString::to_string);
        let name = |place: usize| stages.get(place).map_or_else(String::new, |stage| stage.name.clone());
        (self.profiler.finish(name, keeps_stacks, &TimeLimit::new(most, &own_time)), refusal)
    }
}
