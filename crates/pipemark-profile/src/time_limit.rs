//! Limits the CPU time of reading files and finding names.

use std::time::Duration;

/// The bytes that are read per nanosecond, at least: 1 GB/s.
const BYTES_PER_NANOSECOND: u64 = 1;

/// CPU time that may still be used, by a clock of the caller.
pub struct TimeLimit<'c> {
    /// When the time is over; `None` for no limit.
    end: Option<Duration>,
    clock: &'c dyn Fn() -> Duration,
}

impl<'c> TimeLimit<'c> {
    /// A limit of this much time from now on.
    pub fn new(time: Duration, clock: &'c dyn Fn() -> Duration) -> TimeLimit<'c> {
        TimeLimit { end: Some(clock() + time), clock }
    }

    /// No limit.
    pub fn none() -> TimeLimit<'static> {
        TimeLimit { end: None, clock: &|| Duration::ZERO }
    }

    /// The time that is left.
    pub(crate) fn left(&self) -> Duration {
        self.end.map_or(Duration::MAX, |end| end.saturating_sub((self.clock)()))
    }

    pub(crate) fn is_over(&self) -> bool {
        self.left() == Duration::ZERO
    }

    /// Whether the time is over, checked for one call in `calls`: `nth` is the number of this one.
    pub(crate) fn is_over_at(&self, nth: usize, calls: usize) -> bool {
        nth.is_multiple_of(calls) && self.is_over()
    }

    /// The number of bytes that can be read in the time that is left.
    pub(crate) fn bytes(&self) -> u64 {
        u64::try_from(self.left().as_nanos()).unwrap_or(u64::MAX).saturating_mul(BYTES_PER_NANOSECOND)
    }
}
