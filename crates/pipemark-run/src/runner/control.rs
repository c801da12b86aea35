//! The page shared by all ends of a run. It contains the start barrier, the stop flag, and the progress of the ends.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use pipeio_harness::shared::Shared;
use pipemark_sys::usage::monotonic_ns;
use rustix::io::Errno;
use rustix::thread::futex;

/// Indices of the cache lines shared by the whole run. One line for each end follows them.
const GATE: usize = 0;
const STOP: usize = 1;
const ENDS: usize = 2;

// Indices of words in the barrier's line.
const ARRIVED: usize = 0;
const RELEASED_AT: usize = 1;
const FLOWING: usize = 2;
const BEGUN: usize = 3;

// Indices of words in the stop line.
const STOPPED: usize = 0;
const SINKS_DONE: usize = 1;

// Indices of words in an end's line.
const BYTES: usize = 0;
const WARM_UP: usize = 1;

/// The shared page of one run.
pub struct Control {
    lines: Shared,
    ends: u64,
}

impl Control {
    /// Creates a page for `ends` ends.
    pub fn create(ends: usize) -> io::Result<(OwnedFd, Control)> {
        let (fd, lines) = Shared::create(ENDS + ends)?;
        Ok((fd, Control { lines, ends: ends as u64 }))
    }

    /// Maps a page that the parent created.
    pub fn open(fd: impl AsFd) -> io::Result<Control> {
        let lines = Shared::open(fd)?;
        let ends = lines.len().checked_sub(ENDS).ok_or(io::ErrorKind::InvalidInput)? as u64;
        Ok(Control { lines, ends })
    }

    /// Waits at the barrier for the `nth` time (from 1) until all ends have arrived. Returns the time at which the last
    /// end arrived, in monotonic nanoseconds. There is no timeout, because the parent ends a run that hangs.
    pub fn wait_at_barrier(&self, nth: u32) -> io::Result<u64> {
        let line = &self.lines[GATE];
        if line.words[ARRIVED].fetch_add(1, SeqCst) + 1 == self.ends * u64::from(nth) {
            line.words[RELEASED_AT].store(monotonic_ns(), Release);
            line.gate.store(nth, Release);
            // The kernel reads the count as a signed number, so u32::MAX would wake only one end.
            futex::wake(&line.gate, futex::Flags::empty(), i32::MAX as u32)?;
        }
        loop {
            let now = line.gate.load(Acquire);
            if now >= nth {
                return Ok(line.words[RELEASED_AT].load(Acquire));
            }
            match futex::wait(&line.gate, futex::Flags::empty(), now, None) {
                Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The number of times that all ends have arrived at the barrier.
    pub fn barriers_passed(&self) -> u32 {
        self.lines[GATE].gate.load(Acquire)
    }

    /// Reports that bytes flow at an end that measures time. The measured windows begin once all `clocks` such ends
    /// have reported.
    pub fn report_flow(&self, clocks: u32) {
        let line = &self.lines[GATE];
        if line.words[FLOWING].fetch_add(1, SeqCst) + 1 == u64::from(clocks) {
            line.words[BEGUN].store(monotonic_ns(), Release);
        }
    }

    /// Whether the measured windows have begun.
    #[inline]
    pub fn begun(&self) -> bool {
        self.lines[GATE].words[BEGUN].load(Acquire) != 0
    }

    /// The time at which the measured windows began, in monotonic nanoseconds; `None` if they haven't begun.
    pub fn begun_at(&self) -> Option<u64> {
        Some(self.lines[GATE].words[BEGUN].load(Acquire)).filter(|&ns| ns != 0)
    }

    /// Reports that the measured window of a sink is over. After the last of `sinks` reports, the sources may stop.
    pub fn sink_done(&self, sinks: u32) {
        let line = &self.lines[STOP];
        if line.words[SINKS_DONE].fetch_add(1, SeqCst) + 1 == u64::from(sinks) {
            line.words[STOPPED].store(1, Release);
        }
    }

    /// Whether the measured windows of all sinks are over. This check is fast enough to make before every call, because
    /// the cache line changes only once.
    #[inline]
    pub fn stopped(&self) -> bool {
        self.lines[STOP].words[STOPPED].load(Relaxed) != 0
    }

    /// Publishes the number of bytes an end has moved, for the parent's report if the run hangs.
    #[inline]
    pub fn progress(&self, end: usize, bytes: u64) {
        self.lines[ENDS + end].words[BYTES].store(bytes, Relaxed);
    }

    /// Number of bytes an end has moved so far.
    pub fn bytes(&self, end: usize) -> u64 {
        self.lines[ENDS + end].words[BYTES].load(Relaxed)
    }

    /// Publishes the length of a source's warm-up in bytes, before the source sends the last block of the warm-up.
    pub fn announce_warm_up(&self, source: usize, bytes: u64) {
        self.lines[ENDS + source].words[WARM_UP].store(bytes, Release);
    }

    /// The length of a source's warm-up in bytes; `None` until it is known.
    pub fn warm_up(&self, source: usize) -> Option<u64> {
        Some(self.lines[ENDS + source].words[WARM_UP].load(Acquire)).filter(|&bytes| bytes != 0)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn no_process_passes_a_barrier_early() {
        let (fd, control) = Control::create(3).unwrap();
        thread::scope(|scope| {
            let early = [(); 2].map(|()| {
                let control = Control::open(&fd).unwrap();
                scope.spawn(move || (control.wait_at_barrier(1).unwrap(), control.wait_at_barrier(2).unwrap()))
            });
            thread::sleep(std::time::Duration::from_millis(20));
            assert_eq!(control.barriers_passed(), 0);
            let before = monotonic_ns();
            let first = control.wait_at_barrier(1).unwrap();
            assert!(first >= before);
            let second = control.wait_at_barrier(2).unwrap();
            for other in early {
                assert_eq!(other.join().unwrap(), (first, second), "all ends get the same release time");
            }
        });
    }

    #[test]
    fn the_last_sink_stops_the_load() {
        let (_fd, control) = Control::create(4).unwrap();
        control.sink_done(2);
        assert!(!control.stopped());
        control.sink_done(2);
        assert!(control.stopped());
    }
}
