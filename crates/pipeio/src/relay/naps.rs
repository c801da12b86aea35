//! Decides how long to nap while the output's pipe is full, so that its reader isn't interrupted.

use std::time::{Duration, Instant};

/// The shortest and the longest nap while a slow reader empties the output's pipe. The system adds about 50 µs.
const NAPS: [Duration; 2] = [Duration::from_micros(200), Duration::from_millis(2)];

/// Decides how long to nap while the output's pipe is full.
pub(super) struct Naps {
    capacity: usize,
    last: Instant,
    /// Since when the output's reader alone has delayed the bytes; `None` if it doesn't delay them.
    held: Option<Instant>,
    /// The bytes that the reader has taken since `held`.
    taken: usize,
}

impl Naps {
    pub(super) fn new(capacity: usize) -> Naps {
        Naps { capacity, last: Instant::now(), held: None, taken: 0 }
    }

    /// Records a move and returns how long to nap. `held` checks whether more bytes are waiting only because of the
    /// output's reader.
    pub(super) fn record_move(&mut self, moved: usize, now: Instant, held: impl FnOnce() -> bool) -> Option<Duration> {
        let took = now - std::mem::replace(&mut self.last, now);
        // The check accesses both pipes while other processes use them, so it is made only if it may lead to a nap.
        if self.held.is_none() && self.nap(moved, took) < NAPS[0] {
            return None;
        }
        if !held() {
            self.held = None;
            return None;
        }
        self.taken += moved;
        let Some(since) = self.held else {
            (self.held, self.taken) = (Some(now), 0);
            return None;
        };
        if now - since < NAPS[0] {
            return None;
        }
        let taken = std::mem::take(&mut self.taken);
        let nap = self.nap(taken, now - since);
        let slow = nap >= NAPS[0] && taken <= self.capacity / 2;
        self.held = slow.then_some(now);
        slow.then(|| nap.min(NAPS[1]))
    }

    /// The time in which a third of the pipe empties, if `taken` bytes were read in `time`.
    fn nap(&self, taken: usize, time: Duration) -> Duration {
        time.mul_f64(self.capacity as f64 / 3.0 / taken.max(1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The share of time spent napping during 1000 moves to a pipe of 1 MiB, and the most bytes read from it during one
    /// nap. The reader takes 64 KiB at a time, at `speed(move)` bytes per second.
    fn naps(speed: impl Fn(u32) -> f64) -> (f64, f64) {
        const CAPACITY: usize = 1 << 20;
        let mut naps = Naps::new(CAPACITY);
        let begin = Instant::now();
        let (mut now, mut nap, mut napped, mut most) = (begin, None, Duration::ZERO, 0.0_f64);
        for at in 0..1000 {
            let took = nap.unwrap_or_else(|| Duration::from_secs_f64(65536.0 / speed(at)));
            let taken = (took.as_secs_f64() * speed(at)).min(CAPACITY as f64);
            if let Some(nap) = nap {
                napped += nap;
                most = most.max(taken);
            }
            now += took;
            nap = naps.record_move(taken as usize, now, || true);
        }
        (napped.div_duration_f64(now - begin), most)
    }

    #[test]
    fn a_slow_reader_causes_naps_and_always_has_bytes() {
        for speed in [50e6, 200e6, 800e6] {
            let (share, most) = naps(|_| speed);
            assert!(share > 0.7 && most < 400e3, "{share} {most}");
        }
    }

    #[test]
    fn a_fast_reader_causes_no_naps() {
        assert_eq!(naps(|_| 3e9).0, 0.0);
        // No nap even after a pause.
        assert_eq!(naps(|at| if at == 500 { 65536.0 } else { 3e9 }).0, 0.0);
        // A slow reader that becomes fast waits only for the rest of one nap.
        let (share, _) = naps(|at| if at < 10 { 50e6 } else { 3e9 });
        assert!(share > 0.0 && share < 0.5, "{share}");
    }

    #[test]
    fn no_pause_without_more_to_pass_on() {
        let mut naps = Naps::new(1 << 20);
        let begin = Instant::now();
        // More bytes follow only every second move.
        for at in 0..1000 {
            assert_eq!(naps.record_move(4096, begin + NAPS[1] * at, || at % 2 == 0), None);
        }
    }
}
