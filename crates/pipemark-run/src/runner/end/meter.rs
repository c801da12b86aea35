//! An end's measurements of itself: its calls, CPU time and CPUs during the window, and its speed without the link.

use std::collections::BTreeSet;
use std::hint::black_box;
use std::time::{Duration, Instant};

use pipemark_sys::usage::{Usage, migrations, monotonic_ns};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use pipemark_model::{Cpu, Delay, EndStats, Volume};

/// The maximum numbers of blocks and of bytes that an end moves between two checks whether the window is over. A larger
/// block is moved alone. They take a small fraction of any window, and reading the clock this rarely costs almost
/// nothing.
pub const BLOCKS_PER_ROUND: u32 = 16;
pub const BYTES_PER_ROUND: usize = 64 << 10;

/// Rounds of the loop between two checks of the current CPU. The checks are frequent enough to detect a migration, and
/// their cost is negligible.
const ROUNDS_PER_CPU_CHECK: u64 = 64;

/// An end's measurement of itself, from [`Meter::begin`] to [`Meter::stop`].
#[derive(Default)]
pub struct Meter {
    begun_ns: u64,
    before: Usage,
    migrations: Option<u64>,
    calls: u64,
    rounds: u64,
    cpus: BTreeSet<Cpu>,
}

impl Meter {
    /// Creates a meter. This takes time, so create it before the window.
    pub fn new() -> Meter {
        let mut meter = Meter { migrations: migrations(), ..Meter::default() };
        meter.record_cpu();
        meter
    }

    /// Begins the window now. Returns the time in monotonic nanoseconds.
    pub fn begin(&mut self) -> u64 {
        self.before = Usage::now();
        self.begun_ns = monotonic_ns();
        self.begun_ns
    }

    /// Begins the window at a time in the past, `ns` in monotonic nanoseconds.
    pub fn begin_at(&mut self, ns: u64) -> u64 {
        self.begin();
        self.begun_ns = ns;
        ns
    }

    fn record_cpu(&mut self) {
        self.cpus.insert(Cpu(u16::try_from(rustix::thread::sched_getcpu()).unwrap_or(u16::MAX)));
    }

    /// Counts a round of the loop and its system calls.
    #[inline]
    pub fn count(&mut self, calls: u32) {
        self.calls += u64::from(calls);
        self.rounds += 1;
        if self.rounds.is_multiple_of(ROUNDS_PER_CPU_CHECK) {
            self.record_cpu();
        }
    }

    /// Ends the window, in which `bytes` were moved. `own_ns` is the loop's overhead per round in nanoseconds.
    pub fn stop(mut self, bytes: u64, own_ns: f64, stats: EndStats) -> EndStats {
        let ns = monotonic_ns().saturating_sub(self.begun_ns);
        let used = Usage::now().since(&self.before);
        self.record_cpu();
        EndStats {
            bytes,
            ns,
            calls: self.calls,
            bytes_per_call: (self.calls > 0).then(|| bytes as f64 / self.calls as f64),
            own_ns: Some((own_ns * self.rounds as f64).round() as u64),
            user_ns: used.user_ns,
            sys_ns: used.sys_ns,
            voluntary_switches: used.voluntary_switches,
            involuntary_switches: used.involuntary_switches,
            minor_faults: used.minor_faults,
            major_faults: used.major_faults,
            migrations: migrations().zip(self.migrations).map(|(now, then)| now.saturating_sub(then)),
            cpus: self.cpus.into_iter().collect(),
            ..stats
        }
    }
}

/// Overhead of an end's loop per round, in nanoseconds: the lowest of several batches.
pub fn loop_overhead_ns(mut round: impl FnMut()) -> f64 {
    const ROUNDS: u32 = 256;
    let mut batch = || {
        let begin = monotonic_ns();
        (0..ROUNDS).for_each(|_| round());
        (monotonic_ns() - begin) as f64 / f64::from(ROUNDS)
    };
    batch();
    (0..8).map(|_| batch()).fold(f64::INFINITY, f64::min)
}

/// Whether a window that lasts for `volume` is over. `bytes` were moved in the window so far.
#[inline(always)]
pub fn is_over(volume: Volume, bytes: u64, begun_ns: u64, now: impl FnOnce() -> u64) -> bool {
    match volume {
        Volume::Total(total) => bytes >= total.0,
        Volume::Time(time) => now().saturating_sub(begun_ns) >= time.0,
    }
}

/// Simulated work: spins for a random time at each call.
pub struct SimulatedWork {
    mean: Duration,
    random: SplitMix64,
}

impl SimulatedWork {
    /// Work with the mean time `delay`, drawn from `seed`.
    pub fn new(delay: Delay, seed: u64) -> SimulatedWork {
        SimulatedWork { mean: delay.0.into(), random: SplitMix64::seed_from_u64(seed) }
    }

    /// Works for a random time, uniformly distributed from 0.5 to 1.5 times the mean.
    #[inline]
    pub fn work(&mut self) {
        if !self.mean.is_zero() {
            let begin = Instant::now();
            let length = self.next();
            while begin.elapsed() < length {
                std::hint::spin_loop();
            }
        }
    }

    /// The duration of the next call's work.
    fn next(&mut self) -> Duration {
        let share = 0.5 + self.random.next_u64() as f64 / u64::MAX as f64;
        self.mean.mul_f64(share)
    }

    /// Mean time of the work per call, in seconds.
    pub fn seconds(&self) -> f64 {
        self.mean.as_secs_f64()
    }
}

/// The rate of `block` in bytes per second, with `extra` seconds added to each call of `block`. `block` is called
/// repeatedly for about 2 ms of CPU time, in several batches. The fastest batch counts, because an interruption only
/// slows a batch down. `now` returns CPU time, because the other end may be measuring itself on the same CPU. Reading
/// the CPU clock takes longer than a small block, so the clock is read once per batch.
///
/// # Errors
/// The first error of `block`.
pub fn ceiling<E>(now: impl Fn() -> u64, extra: f64, mut block: impl FnMut() -> Result<usize, E>) -> Result<f64, E> {
    const ENOUGH_NS: u64 = 250_000;
    const BATCHES: u64 = 4;
    // A block without any work may never take enough time.
    const MAX_ROUNDS: u32 = 1 << 22;
    let (mut rounds, mut spent_long, mut best) = (1u32, 0, 0.0f64);
    // The first access to memory is slower than later ones.
    block()?;
    while spent_long < BATCHES * ENOUGH_NS {
        let begin = now();
        let mut bytes = 0;
        for _ in 0..rounds {
            // Otherwise the compiler may compute the sum of blocks without work at once, whatever the number of rounds.
            bytes += black_box(block()?);
        }
        let spent = now() - begin;
        if spent >= ENOUGH_NS || rounds >= MAX_ROUNDS {
            spent_long += spent.max(ENOUGH_NS);
            best = best.max(bytes as f64 / (spent as f64 / 1e9 + extra * f64::from(rounds)));
        } else {
            rounds *= 2;
        }
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::convert::Infallible;

    use pipemark_model::Nanos;

    use super::*;

    #[test]
    fn a_block_without_work_has_a_ceiling() {
        let Ok(ceiling) = ceiling(|| 0, 1e-6, || Ok::<usize, Infallible>(1000));
        assert!((ceiling / 1e9 - 1.0).abs() < 1e-9, "{ceiling}");
    }

    #[test]
    fn a_slow_batch_does_not_lower_the_ceiling() {
        for slow in [0..0, 2_000_000..2_600_000, 2_900_000..3_300_000] {
            let clock = Cell::new(0);
            let block = || {
                let takes = match clock.get() {
                    0 => 2_000_000,
                    at if slow.contains(&at) => 5_000,
                    _ => 1_000,
                };
                clock.set(clock.get() + takes);
                Ok::<usize, Infallible>(4096)
            };
            let Ok(ceiling) = ceiling(|| clock.get(), 1e-6, block);
            assert!((ceiling / 2.048e9 - 1.0).abs() < 1e-9, "{slow:?}: {ceiling}");
        }
    }

    #[test]
    fn delays_are_uniform_and_determined_by_the_seed() {
        let lengths = |seed| {
            let mut busy = SimulatedWork::new(Delay(Nanos(500_000)), seed);
            (0..10_000).map(|_| busy.next().as_nanos() as f64 / 1e3).collect::<Vec<f64>>()
        };
        let drawn = lengths(2002);
        assert!(drawn.iter().all(|&us| (250.0..=750.0).contains(&us)));
        // Each tenth of the range has a tenth of the delays, to within five standard deviations.
        for tenth in 0..10 {
            let low = 250.0 + 50.0 * f64::from(tenth);
            let count = drawn.iter().filter(|&&us| (low..low + 50.0).contains(&us)).count();
            assert!((850..=1150).contains(&count), "{count} from {low} us on");
        }
        assert_eq!(drawn, lengths(2002));
        assert_ne!(drawn, lengths(2003));
    }
}
