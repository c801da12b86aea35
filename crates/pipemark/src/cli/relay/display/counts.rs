//! What has passed until a moment, and the rates between moments.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use pipeio::relay::{RelayHandle, unread};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The counts at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counts {
    pub at: Instant,
    pub read: u64,
    pub written: u64,
    /// Bytes that the reader has taken; `None` if the kernel doesn't report them.
    pub delivered: Option<u64>,
    /// Lines within the bytes that are [done](Self::done); `None` if lines aren't counted.
    pub lines: Option<u64>,
}

impl Default for Counts {
    fn default() -> Counts {
        Counts { at: Instant::now(), read: 0, written: 0, delivered: None, lines: None }
    }
}

impl Counts {
    pub fn now(handle: &RelayHandle, has_buffer: bool) -> Counts {
        // `written` is read before the fill level. Otherwise, bytes written between the two calls would count as
        // delivered although they are still in the pipe.
        let written = handle.written();
        let held = unread(rustix::stdio::stdout());
        let read = if has_buffer { handle.read() } else { written };
        let delivered = held.map(|held| written.saturating_sub(held));
        let lines = handle.lines_within(delivered.unwrap_or(written));
        Counts { at: Instant::now(), read, written, delivered, lines }
    }

    /// Bytes delivered, or written where the kernel doesn't report what is delivered.
    pub fn done(&self) -> u64 {
        self.delivered.unwrap_or(self.written)
    }

    /// Bytes written that the reader hasn't taken, as far as the kernel reports them.
    pub fn unread(&self) -> u64 {
        self.written.saturating_sub(self.done())
    }
}

/// Whether nobody can read the output any more.
pub fn reader_left() -> bool {
    let output = rustix::stdio::stdout();
    let mut polled = [PollFd::from_borrowed_fd(output, PollFlags::empty())];
    poll(&mut polled, Some(&Timespec::default())).is_ok()
        && polled[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
}

/// The rates until a moment, in bytes or lines per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatesNow {
    pub last: Counts,
    pub read: f64,
    pub done: f64,
    pub lines: Option<f64>,
    /// The rate from which the time left is computed, of lines if they are counted.
    pub to_extrapolate: f64,
}

/// Counts of the last intervals. Without a window, the rates are those of the last interval, and the time left is
/// computed from ten intervals.
pub struct Rates {
    window: Option<Duration>,
    kept: VecDeque<Counts>,
    /// The last counts, which `kept` needn't have.
    last: Counts,
}

impl Rates {
    const INTERVALS: usize = 10;
    /// The maximum number of counts that are kept for a window.
    const MAX_KEPT: u32 = 100;

    pub fn new(first: Counts, window: Option<Duration>) -> Rates {
        Rates { window, kept: VecDeque::from([first]), last: first }
    }

    /// Adds counts, and returns the rates.
    pub fn next(&mut self, mut counts: Counts) -> RatesNow {
        // The kernel's figure for a socket is rough, so `delivered` is kept from decreasing.
        counts.delivered = counts.delivered.map(|bytes| bytes.max(self.last.delivered.unwrap_or(0)));
        counts.lines = counts.lines.map(|lines| lines.max(self.last.lines.unwrap_or(0)));
        let rate = |from: u64, to: u64, since: Instant| {
            to.saturating_sub(from) as f64 / (counts.at - since).as_secs_f64().max(1e-9)
        };
        let lines_since = |first: &Counts| counts.lines.map(|lines| rate(first.lines.unwrap_or(0), lines, first.at));
        if let Some(window) = self.window {
            while self.kept.len() > 1 && counts.at - self.kept[1].at >= window {
                self.kept.pop_front();
            }
        }
        let oldest = self.kept[0];
        let shown = if self.window.is_some() { oldest } else { self.last };
        let rates = RatesNow {
            last: counts,
            read: rate(shown.read, counts.read, shown.at),
            done: rate(shown.done(), counts.done(), shown.at),
            lines: lines_since(&shown),
            to_extrapolate: lines_since(&oldest).unwrap_or_else(|| rate(oldest.done(), counts.done(), oldest.at)),
        };
        self.keep(counts);
        rates
    }

    fn keep(&mut self, counts: Counts) {
        self.last = counts;
        match self.window {
            Some(window) if counts.at - self.kept[self.kept.len() - 1].at < window / Rates::MAX_KEPT => {}
            Some(_) => self.kept.push_back(counts),
            None => {
                self.kept.push_back(counts);
                if self.kept.len() > Rates::INTERVALS {
                    self.kept.pop_front();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_averages_over_its_time_and_keeps_few_counts() {
        let (begin, window) = (Instant::now(), Duration::from_secs(10));
        let at = |tenths: u32, written| Counts { at: begin + tenths * window / 100, written, ..Counts::default() };
        let mut rates = Rates::new(at(0, 0), Some(window));
        // A thousand bytes per second for 20 s, then nothing.
        let mut last = 0.0;
        for tenth in 1..=200 {
            last = rates.next(at(tenth, u64::from(tenth) * 100)).done;
        }
        assert!((last - 1000.0).abs() < 1.0, "{last}");
        for tenth in 201..=250 {
            last = rates.next(at(tenth, 20_000)).done;
        }
        assert!((last - 500.0).abs() < 20.0, "{last}");
        for step in 0..10_000 {
            rates.next(Counts { at: begin + Duration::from_secs(25) + Duration::from_millis(step), ..at(0, 20_000) });
        }
        assert!(rates.kept.len() <= Rates::MAX_KEPT as usize + 2, "{}", rates.kept.len());
    }

    #[test]
    fn without_a_window_the_rate_is_that_of_the_last_interval() {
        let begin = Instant::now();
        let at = |seconds, written| Counts { at: begin + Duration::from_secs(seconds), written, ..Counts::default() };
        let mut rates = Rates::new(at(0, 0), None);
        rates.next(at(1, 1000));
        let now = rates.next(at(2, 1100));
        assert_eq!((now.done, now.to_extrapolate), (100.0, 550.0));
    }
}
