//! Sums of samples and counters between two moments, for each stage and pipe. Pure: no clock and no I/O.

use pipemark_proc::state::ThreadState;

use crate::recorded::recorded;

/// Limits of the counts in an interval: of samples, and of anything else. The sum of all intervals doesn't overflow.
pub const MAX_SAMPLES: u32 = 4_000_000 / ThreadState::COUNT as u32;
pub const MAX_COUNT: u64 = 1 << 53;

/// How a count of one interval and that of the next add up.
pub trait AddUp {
    fn add_up(&mut self, next: &Self);

    /// Whether the count is within the limits, so that it can be added up.
    fn is_within_limits(&self) -> bool;
}

impl AddUp for u32 {
    fn add_up(&mut self, next: &u32) {
        *self += next;
    }

    fn is_within_limits(&self) -> bool {
        *self <= MAX_SAMPLES
    }
}

impl AddUp for u64 {
    fn add_up(&mut self, next: &u64) {
        *self += next;
    }

    fn is_within_limits(&self) -> bool {
        *self <= MAX_COUNT
    }
}

/// Whether something ever happened.
impl AddUp for bool {
    fn add_up(&mut self, next: &bool) {
        *self |= next;
    }

    fn is_within_limits(&self) -> bool {
        true
    }
}

/// A count that may be unknown in one of two intervals is the other's.
impl<T: AddUp + Copy> AddUp for Option<T> {
    fn add_up(&mut self, next: &Option<T>) {
        match (self.as_mut(), next) {
            (Some(own), Some(next)) => own.add_up(next),
            (None, next) => *self = *next,
            (Some(_), None) => {}
        }
    }

    fn is_within_limits(&self) -> bool {
        self.as_ref().is_none_or(T::is_within_limits)
    }
}

impl<T: AddUp, const N: usize> AddUp for [T; N] {
    fn add_up(&mut self, next: &[T; N]) {
        self.iter_mut().zip(next).for_each(|(own, next)| own.add_up(next));
    }

    fn is_within_limits(&self) -> bool {
        self.iter().all(T::is_within_limits)
    }
}

/// Defines counts. Each row is a field, and its type says how it adds up, so that no field is forgotten.
macro_rules! counts {
    (
        $(#[doc = $about:literal])*
        pub struct $name:ident in JSON $form:ident { $($(#[doc = $doc:literal])* pub $field:ident: $kind:ty,)* }
    ) => {
        recorded! {
            $(#[doc = $about])*
            #[derive(Debug, Clone, Copy, Default, PartialEq)]
            pub struct $name
            in JSON $form { $($(#[doc = $doc])* pub $field: $kind,)* }
        }

        impl AddUp for $name {
            fn add_up(&mut self, next: &$name) {
                $(self.$field.add_up(&next.$field);)*
            }

            fn is_within_limits(&self) -> bool {
                $(self.$field.is_within_limits())&&*
            }
        }
    };
}

counts! {
    /// Counts of one stage.
    pub struct StageCounts in JSON StageCountsTrace {
        /// Samples in each state.
        pub states: [u32; ThreadState::COUNT],
        /// How often samples found the stage newly stopped by a signal.
        pub stops: u32,
        /// Samples of a stage with several threads, taken while one of the threads ran.
        pub hunger_samples: u32,
        /// Those of `hunger_samples` in which another thread waited for input.
        pub hungry: u32,
        /// Samples of a stage with several processes in which file locks were checked.
        pub lock_samples: u32,
        /// Those of `lock_samples` in which at least two of the stage's processes waited for file locks, and more waited
        /// than ran.
        pub queued: u32,
        /// The stage's number of threads, summed over all samples.
        pub threads: u64,
        /// Nanoseconds that the stage's current threads spent on a CPU.
        pub run: u64,
        /// Nanoseconds on a CPU, including threads and children that have ended; `None` if unknown.
        pub cpu: Option<u64>,
        /// Nanoseconds waiting for a CPU; `None` if unknown.
        pub cpu_wait: Option<u64>,
        /// Bytes read; `None` if the kernel doesn't count them.
        pub read: Option<u64>,
        /// Bytes written; `None` if the kernel doesn't count them.
        pub wrote: Option<u64>,
        /// Calls that read; `None` if the kernel doesn't count them.
        pub reads: Option<u64>,
        /// Calls that wrote; `None` if the kernel doesn't count them.
        pub writes: Option<u64>,
        /// Nanoseconds on a CPU in the kernel, in steps of a clock tick.
        pub kernel: Option<u64>,
        /// Nanoseconds in user mode and in the kernel of the thread that spent the most time in the kernel, in steps of a
        /// clock tick, while the stage wrote; 0 if no process of the stage has several threads.
        pub caller: [u64; 2],
        /// Nanoseconds that reaped children spent on a CPU, in steps of a clock tick.
        pub children: Option<u64>,
        /// Processes that the stage started, as far as known.
        pub starts: u64,
        /// Page faults of the processes that the stage reaped.
        pub faults: u64,
        /// Bytes that the stage and its reaped processes read and wrote, in the periods in which the stage reaped any;
        /// `None` if unknown.
        pub reaped_bytes: Option<u64>,
        pub switches: Option<u64>,
        /// Whether threads or children have started or ended, so that some of their time is missing.
        pub changed: bool,
        /// Nanoseconds in which a CPU limit throttled the stage's control group; `None` if unknown.
        pub throttled: Option<u64>,
        /// The number of samples that the counters cover. Increases just before the stage's exit are unknown.
        pub counted: u32,
        /// The number of samples that the byte counters cover. Bytes are also unknown if the stage reaped a child.
        pub counted_bytes: u32,
        /// Samples in which this stage alone was busy: each other stage waited for input or for room, or was gone; `None`
        /// if not counted.
        pub alone: Option<u32>,
    }
}

counts! {
    /// How an end of a pipe waited: the number of samples in which it waited, the number of uninterrupted waits, and the
    /// sum of their squared lengths in samples.
    pub struct EndWaits in JSON EndWaitsTrace {
        pub samples: u32,
        pub waits: u32,
        pub squares: u64,
    }
}

impl EndWaits {
    /// Counts a sample. `before` is the number of consecutive samples in which the end has waited so far. Returns the
    /// new number.
    pub fn record(&mut self, waits: bool, before: u32) -> u32 {
        if !waits {
            return 0;
        }
        self.samples += 1;
        self.waits += u32::from(before == 0);
        // The first n odd numbers add up to n², so this adds up the squares of the lengths.
        self.squares += 2 * u64::from(before) + 1;
        before + 1
    }

    /// Mean length of the waits in seconds, weighted by length. `None` unless there are several waits, and these are
    /// clearly longer than the sampling step and than random waits would be. A stage that first only waits and then
    /// only works has phases, not bursts. `step` is the time between samples in seconds.
    pub fn seconds(&self, samples: u32, step: f64) -> Option<f64> {
        const MIN_SAMPLES_WAITING: u32 = 10;
        const MIN_EFFECTIVE: f64 = 1.5;
        let (waits, others) = (f64::from(self.samples), f64::from(samples.saturating_sub(self.samples)));
        // The number of uninterrupted waits expected by chance (Wald and Wolfowitz's runs test).
        let expected = waits * others / f64::from(samples.max(1));
        let clustered = f64::from(self.waits) <= 0.4 * expected.max(1.0);
        // The effective number of waits: this many waits of equal length would have the same sum and the same sum of
        // squares.
        let effective = waits * waits / (self.squares as f64).max(1.0);
        let several = self.samples >= MIN_SAMPLES_WAITING && others > 0.0 && effective >= MIN_EFFECTIVE;
        (several && clustered).then(|| self.squares as f64 / waits * step)
    }
}

counts! {
    /// Counts of one pipe.
    pub struct PipeCounts in JSON PipeCountsTrace {
        pub samples: u32,
        pub writer: EndWaits,
        pub reader: EndWaits,
        /// How often the waits of the two ends alternated.
        pub turns: u32,
        /// Samples in which the reader waited for bytes that the writer could have written during an earlier wait for room.
        pub absorbable: u32,
        /// Two sums over the samples in `absorbable`, each in samples: the lengths of the writer's earlier waits, and the
        /// lengths of the reader's waits.
        pub lengths: [u64; 2],
    }
}

recorded! {
    /// Counts of each stage and pipe from one moment to another. Stages and pipes are in the order in which they were
    /// found.
    #[derive(Debug, Clone, Default, PartialEq)]
    pub struct Interval
    in JSON IntervalTrace {
        /// Seconds since sampling began.
        pub begin: f64,
        pub seconds: f64,
        pub samples: u32,
        /// The number of samples in which any process of the pipeline existed.
        pub alive: u32,
        pub stages: Vec<StageCounts>,
        pub pipes: Vec<PipeCounts>,
    }
}

/// Adds two counts, of which one or both may be unknown.
pub fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    let mut sum = a;
    sum.add_up(&b);
    sum
}

impl Interval {
    /// Appends the next interval.
    pub fn add(&mut self, next: &Interval) {
        if self.samples == 0 && self.seconds == 0.0 {
            self.begin = next.begin;
        }
        self.seconds = next.begin + next.seconds - self.begin;
        self.samples += next.samples;
        self.alive += next.alive;
        self.stages.resize(self.stages.len().max(next.stages.len()), StageCounts::default());
        self.pipes.resize(self.pipes.len().max(next.pipes.len()), PipeCounts::default());
        self.stages.iter_mut().zip(&next.stages).for_each(|(own, next)| own.add_up(next));
        self.pipes.iter_mut().zip(&next.pipes).for_each(|(own, next)| own.add_up(next));
    }

    /// The busy share of a stage, from 0 to 1; 0 if the stage didn't exist.
    pub fn busy(&self, stage: usize) -> f64 {
        let Some(counts) = self.stages.get(stage) else { return 0.0 };
        let idle = [ThreadState::Starved, ThreadState::Blocked, ThreadState::Unknown];
        let idle: u32 = idle.iter().map(|&state| counts.states[state as usize]).sum();
        f64::from(counts.states.iter().sum::<u32>() - idle) / f64::from(self.alive.max(1))
    }

    /// Merges intervals into one.
    pub fn total<'i>(intervals: impl IntoIterator<Item = &'i Interval>) -> Interval {
        let mut total = Interval::default();
        intervals.into_iter().for_each(|interval| total.add(interval));
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_long_waits_are_stretches_and_one_is_a_phase() {
        let seconds = |waits: fn(u32) -> bool| {
            let (mut counts, mut row) = (EndWaits::default(), 0);
            (0..200).for_each(|sample| row = counts.record(waits(sample), row));
            counts.seconds(200, 0.01)
        };
        let alternating = seconds(|sample| sample / 25 % 2 == 0).unwrap();
        assert!((alternating - 0.25).abs() < 0.01, "{alternating}");
        assert_eq!(seconds(|sample| sample < 100), None);
        assert_eq!(seconds(|sample| sample % 2 == 0), None);
    }
}
