//! What was seen of a stage in an interval, as shares and rates.

use pipemark_proc::state::ThreadState;

use crate::evidence::{PipelineEvidence, StageEvidence};
use crate::interval::{Interval, StageCounts};

/// With fewer checks of file locks than this, the share of time spent waiting for locks is not known.
/// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
const MIN_LOCK_SAMPLES: u32 = 4;

/// A stage that was sampled in an interval.
pub struct SeenStage<'e> {
    /// The stage's number, from 1 at the source.
    pub number: usize,
    pub stage: &'e StageEvidence,
    pub counts: &'e StageCounts,
    /// The number of samples in which any stage existed.
    pub alive: u32,
    /// The time in seconds that the counters cover. It is less than the interval if the stage has exited.
    pub seconds: f64,
    /// The time in seconds that the byte counters cover.
    seconds_counted: f64,
    /// The number of samples.
    samples: u32,
    /// The share of time in each state.
    shares: [f64; ThreadState::COUNT],
}

impl<'e> SeenStage<'e> {
    /// `None` if the stage didn't exist in this interval.
    pub fn of(
        evidence: &'e PipelineEvidence,
        interval: &'e Interval,
        place: usize,
        number: usize,
    ) -> Option<SeenStage<'e>> {
        let (stage, counts) = (&evidence.stages[place], interval.stages.get(place)?);
        let samples: u32 = counts.states.iter().sum();
        let time = |samples: u32| interval.seconds * f64::from(samples) / f64::from(interval.samples.max(1));
        let (seconds, seconds_counted) = (time(counts.counted), time(counts.counted_bytes));
        // `stage.threads` may include a forked child of the first process that hasn't executed its program yet. The mean
        // number doesn't include it.
        let threads =
            if counts.threads > 0 { counts.threads as f64 / f64::from(samples.max(1)) } else { stage.threads as f64 };
        let ends = (stage.reads_pipe, stage.writes_pipe);
        let shares = corrected_shares(counts, seconds, (threads, stage.cpus.len()), ends);
        let alive = interval.alive;
        (samples > 0).then_some(SeenStage { number, stage, counts, alive, seconds, seconds_counted, samples, shares })
    }

    /// The share of time in a state.
    pub fn share(&self, state: ThreadState) -> f64 {
        self.shares[state as usize]
    }

    /// The share of the whole time in which the stage existed.
    pub fn present(&self) -> f64 {
        f64::from(self.samples) / f64::from(self.alive.max(1))
    }

    /// The share of time in which the stage waits for a CPU.
    pub fn waiting_for_cpu(&self) -> f64 {
        waiting(self.counts, self.seconds, self.stage.cpus.len()) * self.share(ThreadState::Running)
    }

    pub fn per_second(&self, count: Option<u64>) -> Option<f64> {
        rate(count, self.seconds)
    }

    pub fn calls_per_second(&self, calls: Option<u64>) -> Option<f64> {
        rate(calls, self.seconds_counted)
    }

    /// `None` if there are none, or if the stage both splices and reads: the kernel then counts only a part of its bytes.
    pub fn bytes_per_second(&self, bytes: Option<u64>) -> Option<f64> {
        rate(bytes, self.seconds_counted).filter(|&rate| rate > 0.0 && !self.stage.uncounted)
    }

    pub fn per_call(&self, bytes: Option<u64>, calls: Option<u64>) -> Option<f64> {
        let (bytes, calls) = (bytes.filter(|_| !self.stage.uncounted)?, calls.filter(|&calls| calls > 0)?);
        Some(bytes as f64 / calls as f64)
    }

    /// The mean number of CPUs that were used for this number of nanoseconds. A child's CPU time is counted when the child
    /// is reaped, so it can exceed the CPU time available in this interval.
    pub fn cpus(&self, nanoseconds: Option<u64>) -> Option<f64> {
        let StageEvidence { cpus, threads, .. } = self.stage;
        let most = if cpus.is_empty() { f64::INFINITY } else { cpus.len() as f64 };
        let most = most.min((*threads).max(1) as f64);
        self.per_second(nanoseconds).map(|time| (time / 1e9).min(most))
    }

    /// The CPUs that the thread used which spent the most time in the kernel, in user mode and in the kernel.
    pub fn caller(&self) -> Option<[f64; 2]> {
        let cpus = || self.counts.caller.map(|nanoseconds| (nanoseconds as f64 / 1e9 / self.seconds).min(1.0));
        (self.counts.caller[1] > 0 && self.seconds > 0.0).then(cpus)
    }

    /// Mean per process that the stage started.
    pub fn per_start(&self, count: Option<u64>) -> Option<f64> {
        count.filter(|_| self.counts.starts > 0).map(|all| all as f64 / self.counts.starts as f64)
    }

    /// The share of time in which one of the stage's threads waits for input while others run.
    pub fn hungry(&self) -> f64 {
        let StageCounts { hungry, hunger_samples, .. } = self.counts;
        self.share(ThreadState::Running) * f64::from(*hungry) / f64::from((*hunger_samples).max(1))
    }

    /// The share of time in which processes of the stage wait for each other's file locks.
    pub fn queued(&self) -> f64 {
        let StageCounts { queued, lock_samples, .. } = self.counts;
        if *lock_samples < MIN_LOCK_SAMPLES { 0.0 } else { f64::from(*queued) / f64::from(*lock_samples) }
    }

    /// The position in the file that the stage reads, from 0 to 1.
    pub fn progress(&self) -> Option<f64> {
        self.stage.progress.map(|(position, size)| position as f64 / size.max(1) as f64)
    }

    /// Seconds until the end of that file, at the current rate.
    pub fn seconds_left(&self) -> Option<f64> {
        let rate = rate(self.counts.read, self.seconds_counted).filter(|&rate| rate > 0.0);
        let (position, size) = self.stage.progress?;
        Some((size - position) as f64 / rate?)
    }

    /// The difference between the share of running in samples and in the counters; `None` if the counters are missing, or
    /// include other processes.
    pub fn sampling_error(&self) -> Option<f64> {
        let is_alone = !self.counts.changed && self.stage.threads == 1 && self.stage.processes == 1;
        let counted = self.per_second(self.counts.cpu)? + self.per_second(self.counts.cpu_wait)?;
        let sampled = f64::from(self.counts.states[ThreadState::Running as usize]) / f64::from(self.samples.max(1));
        is_alone.then(|| (sampled - counted / 1e9).abs())
    }
}

fn rate(count: Option<u64>, seconds: f64) -> Option<f64> {
    count.filter(|_| seconds > 0.0).map(|count| count as f64 / seconds)
}

/// Corrects the sampled shares by the exact CPU counters. A thread that wakes up during a sample waits for the CPU that
/// the sampler uses, so it seems to run. So if the sampled share of running is above the counted time of running and
/// waiting for a CPU, the excess is added to the waits. Conversely, a stage runs at least as long as its `threads` did
/// on average, so a deficit is taken from the waits.
fn corrected_shares(
    counts: &StageCounts,
    seconds: f64,
    (threads, cpus): (f64, usize),
    (reads, writes): (bool, bool),
) -> [f64; ThreadState::COUNT] {
    /// Above this number of context switches per second, waits are short, and count as waits for pipes.
    /// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
    const MANY_SWITCHES: f64 = 1000.0;
    let seen: u32 = counts.states.iter().sum();
    let mut shares = counts.states.map(|count| f64::from(count) / f64::from(seen.max(1)));
    let (Some(run), Some(wait)) = (counts.cpu, counts.cpu_wait) else { return shares };
    let share = |nanoseconds: u64| nanoseconds as f64 / 1e9 / seconds.max(1e-9);
    let most = share(run + wait);
    let running = shares[ThreadState::Running as usize];
    // A stage can't run on more CPUs at once than it may use.
    let at_once = if cpus > 0 { threads.min(cpus as f64) } else { threads };
    let mut least = (most / threads.max(1.0)).max(share(run) / at_once.max(1.0)).min(1.0);
    if counts.changed {
        // If threads and children came and went, only their time on a CPU is known, not their number.
        least = if cpus > 0 { (share(run) / cpus as f64).min(1.0) } else { 0.0 };
    }
    if running < least && running < 1.0 {
        shares = shares.map(|share| share * (1.0 - least) / (1.0 - running));
        shares[ThreadState::Running as usize] = least;
        return shares;
    }
    let excess = running - most;
    if excess <= 0.0 || seconds <= 0.0 || counts.changed {
        return shares;
    }
    shares[ThreadState::Running as usize] = most;
    let short = counts.switches.is_some_and(|switches| switches as f64 / seconds > MANY_SWITCHES);
    let pipes = |state: usize| state == ThreadState::Starved as usize || state == ThreadState::Blocked as usize;
    let takes = |state: usize| state != ThreadState::Running as usize && (!short || pipes(state));
    let seen_in: u32 = (0..ThreadState::COUNT).filter(|&state| takes(state)).map(|state| counts.states[state]).sum();
    if seen_in >= 3 {
        for state in (0..ThreadState::COUNT).filter(|&state| takes(state)) {
            shares[state] += excess * f64::from(counts.states[state]) / f64::from(seen_in);
        }
    } else {
        let state = match (reads, writes) {
            (true, _) => ThreadState::Starved,
            (false, true) => ThreadState::Blocked,
            (false, false) => ThreadState::Other,
        };
        shares[state as usize] += excess;
    }
    shares
}

/// The part of a stage's running time spent waiting for a CPU, from the kernel's nanosecond counters. Waits for CPUs
/// that the stage's own threads fill do not count.
fn waiting(counts: &StageCounts, seconds: f64, cpus: usize) -> f64 {
    match (counts.cpu, counts.cpu_wait) {
        (Some(run), Some(wait)) if run + wait > 0 => {
            let others = if cpus > 0 && seconds > 0.0 { 1.0 - run as f64 / 1e9 / seconds / cpus as f64 } else { 1.0 };
            (wait as f64 / (run + wait) as f64).min(others.max(0.0))
        }
        _ => 0.0,
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// The counts of a stage that was seen so often in each state, and used 0.2 s of CPU time.
    pub fn counts(running: u32, starved: u32, sleeping: u32) -> StageCounts {
        let mut counts =
            StageCounts { cpu: Some(200_000_000), cpu_wait: Some(0), switches: Some(0), ..StageCounts::default() };
        counts.states[ThreadState::Running as usize] = running;
        counts.states[ThreadState::Starved as usize] = starved;
        counts.states[ThreadState::Sleep as usize] = sleeping;
        counts
    }

    fn shares(counts: &StageCounts, ends: (bool, bool)) -> [f64; 4] {
        let shares = corrected_shares(counts, 1.0, (1.0, 2), ends);
        [ThreadState::Running, ThreadState::Starved, ThreadState::Blocked, ThreadState::Sleep]
            .map(|state| (shares[state as usize] * 100.0).round())
    }

    #[test]
    fn threads_that_wait_for_each_other_do_not_wait_for_a_cpu() {
        let part = |run: u64, wait: u64, cpus: usize| {
            let second = 1_000_000_000_u64;
            let counts = StageCounts {
                cpu: Some(run * second / 10),
                cpu_wait: Some(wait * second / 10),
                ..StageCounts::default()
            };
            (waiting(&counts, 1.0, cpus) * 100.0).round()
        };
        // Eight threads fill two CPUs. In the next case, other programs keep one thread off its CPU half of the time.
        assert_eq!(part(18, 60, 2), 10.0);
        assert_eq!(part(5, 5, 1), 50.0);
        assert_eq!(part(5, 5, 2), 50.0);
        assert_eq!(part(10, 0, 0), 0.0);
    }

    #[test]
    fn no_stage_runs_for_longer_than_the_kernel_counts() {
        assert_eq!(shares(&counts(20, 80, 0), (true, true)), [20.0, 80.0, 0.0, 0.0]);
        assert_eq!(shares(&counts(60, 20, 20), (true, true)), [20.0, 40.0, 0.0, 40.0]);
        // With many switches, waits are short.
        let fast = StageCounts { switches: Some(30_000), ..counts(60, 20, 20) };
        assert_eq!(shares(&fast, (true, true)), [20.0, 60.0, 0.0, 20.0]);
        // The stage was never observed to wait, so the kinds of its ends decide.
        assert_eq!(shares(&counts(100, 0, 0), (true, false)), [20.0, 80.0, 0.0, 0.0]);
        assert_eq!(shares(&counts(100, 0, 0), (false, true)), [20.0, 0.0, 80.0, 0.0]);
        // The stage runs for at least as long as its threads did on average.
        assert_eq!(shares(&counts(0, 60, 40), (true, true)), [20.0, 48.0, 0.0, 32.0]);
        assert_eq!(
            (corrected_shares(&counts(0, 100, 0), 1.0, (2.0, 2), (true, true))[ThreadState::Running as usize] * 100.0)
                .round(),
            10.0
        );
        // Three threads use 0.9 of two CPUs, so the stage runs for at least 45 % of the time, even if threads came and
        // went.
        for changed in [false, true] {
            let three = StageCounts { cpu: Some(900_000_000), changed, ..counts(20, 80, 0) };
            let running = corrected_shares(&three, 1.0, (3.0, 2), (true, true))[ThreadState::Running as usize];
            assert!((running - 0.45).abs() < 1e-9, "{running}");
        }
        // If children started and ended, some of their time is unknown.
        let changed = StageCounts { changed: true, ..counts(100, 0, 0) };
        assert_eq!(shares(&changed, (true, true)), [100.0, 0.0, 0.0, 0.0]);
    }
}
