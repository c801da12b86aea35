//! Limits the CPU time of sampling. After the first scan, sampling uses at most [`Budget::promised`] of a CPU over ten
//! seconds. The limit is kept by doing less: samples, scans and readings of counters come less often.

use std::time::{Duration, Instant};

/// The largest share of one CPU that sampling uses, with up to [`FEW_STAGES`] stages and with more.
const CEILINGS: [f64; 2] = [0.01, 0.02];
pub const FEW_STAGES: usize = 10;
/// The part of the ceiling that is earned as time passes. The rest of what may be used in ten seconds is available at
/// the beginning, or after a time in which less was used: a short pipeline needs many samples soon. A quarter is left
/// for the final report, and for work that takes longer than expected.
const EARNED: f64 = 0.55;
/// What is available at the beginning, as the time in which the ceiling allows it.
const RESERVE: Duration = Duration::from_millis(2000);
/// A reserve is used up over this time.
const HORIZON: f64 = 2.0;
/// Builds without optimization take several times as long for the same work, and tests run beside each other.
const SCALE: f64 = if cfg!(debug_assertions) { 25.0 } else { 1.0 };

/// Work other than samples, each with a part of the CPU time that is earned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaidWork {
    /// Scans of all known processes.
    Scan,
    /// Scans of all processes of the machine.
    Search,
    /// Searches for the process that holds a lock.
    Locks,
    /// Readings of what stages execute.
    Profiling,
    /// Readings of counters and waits, at the end of an interval.
    Counters,
}

impl PaidWork {
    const COUNT: usize = PaidWork::Counters as usize + 1;

    fn part(self) -> f64 {
        match self {
            PaidWork::Scan => 0.15,
            PaidWork::Search => 0.25,
            PaidWork::Locks => 0.1,
            PaidWork::Profiling => 0.15,
            PaidWork::Counters => 0.25,
        }
    }
}

/// CPU time that may be used, and that was used.
#[derive(Debug)]
pub struct Budget {
    is_large: bool,
    began: Instant,
    /// CPU time of this process when the first scan had ended.
    cpu_at_begin: Duration,
    /// CPU time that may be used now, in seconds. Negative after work that took longer than expected.
    level: f64,
    updated: (Instant, Duration),
    /// When each kind of work was last done, and the CPU time that it took.
    done: [Option<(Instant, Duration)>; PaidWork::COUNT],
}

/// CPU time of this process.
pub fn own_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

impl Budget {
    /// A budget from now on, for this number of stages.
    pub fn start(stages: usize) -> Budget {
        let (now, cpu) = (Instant::now(), own_time());
        let mut budget = Budget {
            is_large: stages > FEW_STAGES,
            began: now,
            cpu_at_begin: cpu,
            level: 0.0,
            updated: (now, cpu),
            done: [None; PaidWork::COUNT],
        };
        budget.level = budget.reserve();
        budget
    }

    /// The largest share of one CPU that sampling uses, in an optimized build.
    pub fn promised(&self) -> f64 {
        CEILINGS[usize::from(self.is_large)]
    }

    fn ceiling(&self) -> f64 {
        self.promised() * SCALE
    }

    fn earned(&self) -> f64 {
        self.ceiling() * EARNED
    }

    fn reserve(&self) -> f64 {
        self.ceiling() * RESERVE.as_secs_f64()
    }

    /// Keeps CPU time for work at the end, at most half of the reserve.
    pub fn set_aside(&mut self, time: Duration) {
        self.level -= time.as_secs_f64().min(self.reserve() / 2.0);
    }

    /// Adds what was earned and subtracts what was used since the last call.
    pub fn update(&mut self, stages: usize) {
        self.is_large = stages > FEW_STAGES;
        self.pass(Instant::now(), own_time());
    }

    fn pass(&mut self, now: Instant, cpu: Duration) {
        let (then, used) = self.updated;
        let earned = self.earned() * now.saturating_duration_since(then).as_secs_f64();
        self.level = (self.level + earned - cpu.saturating_sub(used).as_secs_f64()).min(self.reserve());
        self.updated = (now, cpu);
    }

    /// The time between samples that cost this much CPU time, and at least `shortest`.
    pub fn period(&self, cost: Duration, shortest: Duration) -> Duration {
        let rate = (self.earned() + self.level / HORIZON).max(self.earned() / 10.0);
        shortest.max(cost.div_f64(rate))
    }

    /// Whether work may be done now. `expected` is the CPU time that it will take, as far as known.
    pub fn allows(&self, work: PaidWork, expected: Option<Duration>, now: Instant) -> bool {
        let rate = self.earned() * work.part();
        match self.done[work as usize] {
            Some((at, cost)) => now >= at + expected.unwrap_or(cost).div_f64(rate),
            None => expected.is_none_or(|expected| {
                expected.as_secs_f64() <= self.reserve() / 4.0 + rate * (now - self.began).as_secs_f64()
            }),
        }
    }

    /// Whether much of the reserve is left.
    pub fn has_reserve(&self) -> bool {
        self.level >= self.reserve() / 4.0
    }

    /// Records that work began at a moment and took this much CPU time.
    pub fn note(&mut self, work: PaidWork, began: Instant, cost: Duration) {
        self.done[work as usize] = Some((began, cost));
    }

    /// CPU time that work of a kind may take now, if it was never done: a quarter of the reserve.
    pub fn portion(&self) -> Duration {
        Duration::from_secs_f64(self.reserve() / 4.0)
    }

    /// Whether work at the end, of the same kind as before, is cheap or keeps the limit over the time since the first scan.
    pub fn affords_at_end(&self, work: PaidWork) -> bool {
        let Some((_, cost)) = self.done[work as usize] else { return true };
        let seconds = self.began.elapsed().max(RESERVE).as_secs_f64();
        let used = own_time().saturating_sub(self.cpu_at_begin);
        cost <= self.portion() || (used + cost).as_secs_f64() <= self.ceiling() * seconds
    }

    /// The share of one CPU used since the first scan.
    pub fn used(&self) -> f64 {
        let cpu = own_time().saturating_sub(self.cpu_at_begin);
        cpu.as_secs_f64() / self.began.elapsed().as_secs_f64().max(1e-3)
    }

    /// CPU time of the first scan, and of starting the program.
    pub fn first_scan(&self) -> Duration {
        self.cpu_at_begin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(1);

    /// CPU time used in each of these seconds by samples that cost `cost`, with other work of 30 ms at the beginning.
    fn used(cost: Duration, stages: usize, seconds: u32) -> Vec<f64> {
        let mut budget = Budget::start(stages);
        let (begin, cpu) = budget.updated;
        let (mut now, mut spent) = (begin, cpu + 30 * TICK);
        let mut found = Vec::new();
        for second in 1..=seconds {
            let before = spent;
            while now < begin + Duration::from_secs(second.into()) {
                budget.pass(now, spent);
                now += budget.period(cost, 10 * TICK);
                spent += cost;
            }
            found.push((spent - before).as_secs_f64() / SCALE);
        }
        found
    }

    #[test]
    fn ten_seconds_stay_below_the_ceiling_whatever_a_sample_costs() {
        for (stages, ceiling) in [(5, 0.01), (400, 0.02)] {
            for micros in [10, 100, 1_000, 5_000, 20_000] {
                let used = used(Duration::from_micros(micros), stages, 60);
                // One sample is taken before its cost is known.
                let most = ceiling * 10.0 + micros as f64 / 1e6 * 2.0;
                for ten in used.windows(10) {
                    let sum: f64 = ten.iter().sum();
                    assert!(sum <= most, "{stages} stages, {micros} µs: {sum}");
                }
            }
        }
    }

    #[test]
    fn cheap_samples_are_taken_at_the_full_rate() {
        let budget = Budget::start(5);
        assert_eq!(budget.period(Duration::from_micros(50), 10 * TICK), 10 * TICK);
        assert!(budget.period(100 * TICK, 10 * TICK) > 50 * TICK);
    }

    #[test]
    fn work_waits_until_it_is_paid_for() {
        let mut budget = Budget::start(5);
        let now = budget.began;
        assert!(budget.allows(PaidWork::Search, None, now) && budget.allows(PaidWork::Search, Some(TICK), now));
        let second = Duration::from_secs(1);
        assert!(!budget.allows(PaidWork::Search, Some(second), now + second), "a second of CPU time");
        budget.note(PaidWork::Search, now, second);
        assert!(!budget.allows(PaidWork::Search, None, now + 20 * second));
        assert!(budget.allows(PaidWork::Search, None, now + 2000 * second));
    }
}
