//! Limits the CPU time of sampling. After the first scan, sampling uses at most [`Budget::promised`] of a CPU over ten
//! seconds, with the report at the end. Each piece of work is done only if the budget has room for its expected cost, so
//! samples, scans and readings of counters come less often if they are expensive.
//!
//! The budget is a level of CPU time. It rises as time passes, up to a reserve, and falls by the CPU time that this
//! process uses. Work may lower it below zero, down to a limit: the debt. So any ten seconds use at most the reserve, the
//! debt and what is earned in that time; the rest is left for the report, and for work that takes longer than expected.

use std::time::{Duration, Instant};

/// The largest share of one CPU that sampling uses, with up to [`FEW_STAGES`] stages and with more.
const CEILINGS: [f64; 2] = [0.01, 0.02];
pub const FEW_STAGES: usize = 10;
/// The part of the ceiling that is earned as time passes. The rest of what may be used in ten seconds is available at
/// the beginning, or after a time in which less was used: a short pipeline needs many samples soon.
const EARNED: f64 = 0.55;
/// What is available at the beginning, as the time in which the ceiling allows it.
const RESERVE: Duration = Duration::from_millis(2000);
/// How far the level may fall below zero, as the time in which the ceiling allows it. Without a debt, expensive work
/// would never be done, because samples use up what is earned.
const DEBT: Duration = Duration::from_millis(1200);
/// The time over which the limit is kept.
const WINDOW: Duration = Duration::from_secs(10);
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
    /// Readings of all sockets of the machine.
    Sockets,
    /// Verdicts that are shown before the end.
    View,
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
            PaidWork::Sockets => 0.1,
            PaidWork::View => 0.5,
            PaidWork::Counters => 0.25,
        }
    }
}

/// CPU time that may be used, and that was used.
#[derive(Debug)]
pub struct Budget {
    /// Whether CPU time is limited. That of the first scan isn't.
    limits: bool,
    is_large: bool,
    began: Instant,
    /// CPU time of this process when the first scan had ended.
    cpu_at_begin: Duration,
    /// CPU time that may be used now, in seconds, at least minus the debt unless work took longer than expected.
    level: f64,
    updated: (Instant, Duration),
    /// CPU time that is kept for the end of the program, so that the level stays lower by it.
    aside: f64,
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
            limits: true,
            is_large: stages > FEW_STAGES,
            began: now,
            cpu_at_begin: cpu,
            level: 0.0,
            aside: 0.0,
            updated: (now, cpu),
            done: [None; PaidWork::COUNT],
        };
        budget.level = budget.reserve();
        budget
    }

    /// A budget for the first scan, which isn't limited.
    pub fn of_first_scan() -> Budget {
        Budget { limits: false, ..Budget::start(0) }
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

    /// Keeps CPU time for the end of the program, at most half of the reserve.
    pub fn set_aside(&mut self, time: Duration) {
        self.aside = time.as_secs_f64().min(self.reserve() / 2.0);
        self.level -= self.aside;
    }

    /// Adds what was earned and subtracts what was used since the last call.
    pub fn update(&mut self, stages: usize) {
        self.is_large = stages > FEW_STAGES;
        self.pass(Instant::now(), own_time());
    }

    fn pass(&mut self, now: Instant, cpu: Duration) {
        let (then, used) = self.updated;
        let earned = self.earned() * now.saturating_duration_since(then).as_secs_f64();
        self.level = (self.level + earned - cpu.saturating_sub(used).as_secs_f64()).min(self.reserve() - self.aside);
        self.updated = (now, cpu);
    }

    /// The time between samples that cost this much CPU time, and at least `shortest`. While the level is below zero,
    /// half of what is earned pays the debt.
    pub fn period(&self, cost: Duration, shortest: Duration) -> Duration {
        let rate = (self.earned() + self.level / HORIZON).max(self.earned() / 2.0);
        let until_affordable = (cost.as_secs_f64() - self.most()) / self.earned();
        shortest.max(cost.div_f64(rate)).max(Duration::from_secs_f64(until_affordable.max(0.0)))
    }

    /// CPU time that one piece of work may take now, in seconds.
    fn most(&self) -> f64 {
        self.level + self.ceiling() * DEBT.as_secs_f64()
    }

    /// Whether there is room for work that takes this much CPU time.
    pub fn affords(&mut self, expected: Duration) -> bool {
        self.pass(Instant::now(), own_time());
        !self.limits || expected.as_secs_f64() <= self.most()
    }

    /// Whether work may be done now: its part of what was earned pays for it, and there is room for it. `expected` is the
    /// CPU time that it will take, as far as known.
    pub fn allows(&mut self, work: PaidWork, expected: Option<Duration>, now: Instant) -> bool {
        let known = expected.or(self.done[work as usize].map(|(_, cost)| cost));
        !self.limits || self.is_paid_for(work, expected, now) && self.affords(known.unwrap_or_default())
    }

    fn is_paid_for(&self, work: PaidWork, expected: Option<Duration>, now: Instant) -> bool {
        let rate = self.earned() * work.part();
        match self.done[work as usize] {
            Some((at, cost)) => now >= at + expected.unwrap_or(cost).div_f64(rate),
            None => expected.is_none_or(|expected| {
                expected.as_secs_f64() <= self.reserve() / 4.0 + rate * (now - self.began).as_secs_f64()
            }),
        }
    }

    /// Whether work was last done at least this long ago, or never.
    pub fn is_due(&self, work: PaidWork, interval: Duration, now: Instant) -> bool {
        self.done[work as usize].is_none_or(|(at, _)| now >= at + interval)
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

    /// The CPU time that work of this kind took when it was last done; zero if it never was.
    pub fn last_cost(&self, work: PaidWork) -> Duration {
        self.done[work as usize].map_or(Duration::ZERO, |(_, cost)| cost)
    }

    /// CPU time that may still be used if sampling ends now. `kept` is the time that is left for the report.
    pub fn left_at_end(&mut self, kept: Duration) -> Duration {
        let (now, cpu) = (Instant::now(), own_time());
        self.pass(now, cpu);
        let seconds = (now - self.began).min(WINDOW).as_secs_f64();
        // The most that the last ten seconds can have used, with this level at their end.
        let used = self.reserve() + self.earned() * seconds - self.level;
        let left = self.ceiling() * WINDOW.as_secs_f64() - used - kept.as_secs_f64();
        Duration::from_secs_f64(left.max(0.0))
    }

    /// Counts this much CPU time, which was used just now, as that of the first scan.
    pub fn count_as_first_scan(&mut self, time: Duration) {
        self.cpu_at_begin += time;
        self.updated.1 += time;
    }

    /// The share of one CPU used since the first scan.
    pub fn used(&self) -> f64 {
        self.spent().as_secs_f64() / self.began.elapsed().as_secs_f64().max(1e-3)
    }

    /// CPU time of this process without the first scan, of which parts may come later.
    pub fn spent(&self) -> Duration {
        own_time().saturating_sub(self.cpu_at_begin)
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
    fn each_minute_of_a_day_stays_below_the_ceiling() {
        const DAY: u32 = 86_400;
        for (stages, ceiling) in [(5, 0.01), (400, 0.02)] {
            let used = used(Duration::from_millis(5), stages, DAY);
            let (first, rest) = used.split_at(60);
            assert!(first.iter().sum::<f64>() <= ceiling * 70.0, "{stages} stages");
            for minute in rest.chunks(60) {
                let sum: f64 = minute.iter().sum();
                assert!(sum <= ceiling * 61.0, "{stages} stages: {sum}");
            }
        }
    }

    /// The most CPU time in any ten seconds of this many, if samples of a known cost are taken as often as they may be,
    /// and other work of many costs is done whenever there is room for it.
    fn most_in_ten_seconds(sample: Duration, stages: usize, seconds: u32) -> Duration {
        let mut budget = Budget::start(stages);
        let (begin, cpu) = budget.updated;
        let (mut now, mut spent, mut random) = (begin, cpu, 1_u64);
        let mut times = vec![(now, spent)];
        while now < begin + Duration::from_secs(seconds.into()) {
            spent += sample;
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let work = Duration::from_micros(random >> 40) * SCALE as u32;
            budget.pass(now, spent);
            if work.as_secs_f64() <= budget.most() {
                spent += work;
            }
            budget.pass(now, spent);
            times.push((now, spent));
            now += budget.period(sample, 10 * TICK);
        }
        let after = |first: usize| {
            let (from, before) = times[first];
            let last = times.partition_point(|(at, _)| *at <= from + WINDOW) - 1;
            times[last].1 - before
        };
        (0..times.len()).map(after).max().unwrap()
    }

    #[test]
    fn no_ten_seconds_exceed_the_limit_whatever_work_is_asked_for() {
        for (stages, ceiling) in [(5, 0.01), (400, 0.02)] {
            for micros in [10, 100, 1_000, 5_000] {
                let sample = Duration::from_micros(micros) * SCALE as u32;
                let most = most_in_ten_seconds(sample, stages, 60).as_secs_f64() / SCALE;
                let limit = ceiling * 10.0;
                assert!(most <= limit * 0.9, "{stages} stages, {micros} µs: {most} s");
                assert!(most >= limit * 0.5, "{stages} stages, {micros} µs: only {most} s");
            }
        }
    }

    #[test]
    fn what_is_left_at_the_end_is_what_was_not_used() {
        let mut budget = Budget::start(5);
        let all = budget.ceiling() * WINDOW.as_secs_f64();
        let left = budget.left_at_end(Duration::ZERO).as_secs_f64();
        assert!(left > all * 0.9 && left <= all, "{left} of {all}");
        let kept = Duration::from_secs_f64(all / 2.0);
        assert!(budget.left_at_end(kept).as_secs_f64() < all * 0.51);
        budget.level = -all;
        assert_eq!(budget.left_at_end(Duration::ZERO), Duration::ZERO);
    }

    #[test]
    fn the_first_scan_is_not_limited() {
        let mut budget = Budget::of_first_scan();
        budget.level = -1e9;
        assert!(budget.affords(Duration::from_secs(10)));
        budget.limits = true;
        assert!(!budget.affords(TICK));
        let before = (budget.first_scan(), budget.level);
        budget.count_as_first_scan(1000 * TICK);
        budget.update(5);
        assert_eq!(budget.first_scan(), before.0 + 1000 * TICK);
        assert!(budget.level >= before.1);
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
        assert!(!budget.is_paid_for(PaidWork::Search, None, now + 20 * second));
        assert!(budget.is_paid_for(PaidWork::Search, None, now + 2000 * second));
    }
}
