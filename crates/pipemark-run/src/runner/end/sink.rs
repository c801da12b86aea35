//! The sink: reads bytes from the link, verifies them, and measures the time that defines the throughput.

use std::io;

use pipeio_harness::buffer::{Buffer, Bytes};
use pipeio_harness::pattern::{Checker, Pattern};
use pipeio_harness::recv::{Received, ReceivedBlocks, Receiver};
use pipemark_sys::usage::{monotonic_ns, thread_cpu_ns};

use pipemark_model::{Ends, Verify, Volume};

use crate::link::{self, Handle, Link};
use crate::runner::end::meter::{
    BLOCKS_PER_ROUND, BYTES_PER_ROUND, Meter, SimulatedWork, ceiling, is_over, loop_overhead_ns,
};
use crate::runner::end::{Done, TrialEnd, early_end_error};

/// The time for which bytes flow before the window begins, in nanoseconds. The barrier has synchronized the ends, and
/// they need this time to get out of step.
const RUN_IN_NS: u64 = 10_000_000;
/// The same time for unpinned ends, for which the scheduler has to choose CPUs first.
const UNPINNED_RUN_IN_NS: u64 = 70_000_000;

struct SinkEnd {
    receiver: Box<dyn Receiver + Send>,
    verification: Verification,
    received: u64,
}

/// The verification of bytes that arrive.
struct Verification {
    checker: Checker,
    check: bool,
    xor: Option<u8>,
    /// Number of bytes that were read.
    read: u64,
}

impl Verification {
    fn new(pattern: Pattern, ends: &Ends) -> Verification {
        let xor = (ends.verify == Verify::Xor).then_some(0);
        Verification { checker: Checker::new(pattern), check: ends.touched() && xor.is_none(), xor, read: 0 }
    }

    /// Whether the bytes that arrive now are only counted.
    fn reads_nothing(&self) -> bool {
        !self.check && self.xor.is_none()
    }

    #[inline]
    fn verify<'a>(&mut self, bytes: usize, data: Option<impl Into<Bytes<'a>>>) {
        let data = data.map(Into::into);
        match data {
            Some(data) if self.check => {
                self.read += data.len() as u64;
                self.checker.check(data);
            }
            _ => self.checker.skip(bytes),
        }
        if let (Some(xor), Some(data)) = (&mut self.xor, data) {
            *xor ^= pipeio_harness::pattern::xor(data);
            self.read += if self.check { 0 } else { data.len() as u64 };
        }
    }
}

pub(super) fn run(end: &TrialEnd, link: &dyn Link, handle: Handle) -> io::Result<Done> {
    let ends = &end.ends;
    let observed = if let Handle::Fd(fd) = &handle { Some(fd.try_clone()?) } else { None };
    let capacity = || pipeio::pipe::capacity(observed.as_ref()?).ok().map(|bytes| bytes as u64);
    let receiver = link.receiver(handle, ends)?;
    let mut busy = end.busy(ends.read_delay);
    let stats = end.stats(speed_without_transfer(ends, end.pattern(0), &busy));
    let capacity_before = capacity();
    let mut sink = SinkEnd { receiver, verification: Verification::new(end.pattern(0), ends), received: 0 };
    let check = sink.verification.check;
    // Unless verification is off, the bytes of the warm-up are compared at every level. This tests the path without
    // slowing down the window.
    sink.verification.check = ends.verify != Verify::None && ends.link.transfers();

    end.control.wait_at_barrier(1)?;
    let chained = end.chained();
    let warmed_up = ends.link.transfers() && !chained;
    // Surplus bytes must not make this loop wait forever. The check below reports them.
    while warmed_up && end.warm_up().is_none_or(|bytes| sink.received < bytes) {
        if sink.take()?.ended {
            return Err(early_end_error());
        }
        end.progress(sink.received);
    }
    let unseen = sink.verification.check && ends.recv.touches() && sink.verification.read != sink.received;
    sink.verification.check = check;
    let mut meter = Meter::new();
    let own_ns = sink.loop_overhead_ns(end);
    let released_ns = end.control.wait_at_barrier(2)?;

    if warmed_up {
        sink.run_in(end, released_ns)?;
    }
    if !warmed_up {
        end.control.report_flow(ends.pairs);
    }
    // The stages of a chain start when the barrier is released, so the chain's window begins then too.
    let begun_ns = if chained { meter.begin_at(released_ns) } else { meter.begin() };
    let before = sink.received;
    let mut window_end = WindowEnd::new(ends, begun_ns);
    let mut last_ns = begun_ns;
    let several = sink.verification.reads_nothing()
        && busy.seconds() == 0.0
        && !chained
        && matches!(ends.volume, Volume::Time(_));
    loop {
        let taken = if several { sink.take_blocks(&window_end)? } else { sink.take()? };
        if taken.ended && chained {
            break;
        }
        if taken.ended {
            return Err(early_end_error());
        }
        meter.count(taken.calls);
        end.progress(sink.received);
        busy.work();
        if chained {
            last_ns = monotonic_ns();
        } else if window_end.reached(&taken, sink.received - before) {
            break;
        }
    }
    let mut stats = meter.stop(sink.received - before, own_ns, stats);
    if chained && stats.bytes > 0 {
        // The stream of a chain ends when its last process has exited, well after the last byte. If the stages output
        // nothing, only the time of the stream's end is known.
        stats.ns = last_ns - begun_ns;
    }
    end.control.sink_done(ends.pairs);
    // The windows of other pairs may still be open, so this sink reads until its source closes the link. A link without
    // a transfer never closes.
    while ends.link.transfers() || !end.control.stopped() {
        if sink.take()?.ended {
            break;
        }
        end.progress(sink.received);
        busy.work();
    }
    stats.ceiling =
        stats.ceiling.zip(speed_without_transfer(ends, end.pattern(0), &busy)).map(|(before, after)| before.max(after));
    stats.bytes_in_all = sink.received;
    stats.xor = sink.verification.xor;
    Ok(Done {
        stats,
        capacity: capacity_before.zip(capacity()),
        fault: match unseen {
            true => Some("the sink did not read the bytes of the warm-up".to_owned()),
            false => sink.verification.checker.fault().map(|fault| fault.to_string()),
        },
        read: sink.verification.read,
        huge_bytes: end.huge_bytes(),
        ..Done::default()
    })
}

impl SinkEnd {
    /// Reads until bytes flow steadily in all pairs. Because the barrier has synchronized the ends, the first blocks
    /// are faster or slower than later ones.
    fn run_in(&mut self, end: &TrialEnd, released_ns: u64) -> io::Result<()> {
        let mut flows = false;
        let run_in_ns = if end.pinned.is_some() { RUN_IN_NS } else { UNPINNED_RUN_IN_NS };
        while !end.control.begun() {
            if self.take()?.ended {
                return Err(early_end_error());
            }
            end.progress(self.received);
            if !flows && monotonic_ns() - released_ns >= run_in_ns {
                flows = true;
                end.control.report_flow(end.ends.pairs);
            }
        }
        Ok(())
    }

    /// Overhead of the loop per round, in nanoseconds, without receiving and reading bytes.
    fn loop_overhead_ns(&self, end: &TrialEnd) -> f64 {
        let (mut meter, mut window_end) = (Meter::new(), WindowEnd::new(&end.ends, u64::MAX));
        loop_overhead_ns(|| {
            meter.count(1);
            end.progress(self.received);
            let block = ReceivedBlocks { bytes: 1, blocks: 1, calls: 1, ended: false };
            std::hint::black_box(window_end.reached(&block, self.received));
        })
    }

    /// Receives a block, and verifies it.
    #[inline]
    fn take(&mut self) -> io::Result<ReceivedBlocks> {
        let Received { bytes, calls, data } = self.receiver.recv()?;
        self.verification.verify(bytes, data);
        self.received += bytes as u64;
        Ok(ReceivedBlocks { bytes, blocks: 1, calls, ended: bytes == 0 })
    }

    /// Receives the blocks until the next reading of the clock. No byte of them is read.
    fn take_blocks(&mut self, window_end: &WindowEnd) -> io::Result<ReceivedBlocks> {
        let taken = self.receiver.recv_blocks(BLOCKS_PER_ROUND, window_end.bytes_per_clock_read)?;
        self.verification.checker.skip(taken.bytes);
        self.received += taken.bytes as u64;
        Ok(taken)
    }
}

/// The speed of the sink without the transfer, in bytes per second; `None` if the sink neither reads bytes nor does
/// work.
fn speed_without_transfer(ends: &Ends, pattern: Pattern, busy: &SimulatedWork) -> Option<f64> {
    let (reads, block) = (ends.touched(), ends.read_block().as_usize());
    if !reads && busy.seconds() == 0.0 {
        return None;
    }
    // The buffer is aligned like a receiver's buffer. A `Vec` could begin in the middle of a cache line.
    let mut data = Buffer::new(if reads { block } else { 1 }, ends.align as usize, link::pages(ends.pages)).ok()?;
    pattern.fill(0, data.bytes_mut());
    let (mut verification, bytes) = (Verification::new(pattern, ends), data.bytes());
    let work = || {
        verification.checker.restart();
        verification.verify(block, Some(std::hint::black_box(bytes)));
        Ok::<usize, std::convert::Infallible>(block)
    };
    Some(ceiling(thread_cpu_ns, busy.seconds(), work).unwrap_or_else(|never| match never {}))
}

/// Decides when the window is over.
struct WindowEnd {
    volume: Volume,
    begun_ns: u64,
    blocks: u32,
    bytes: usize,
    bytes_per_clock_read: usize,
}

impl WindowEnd {
    fn new(ends: &Ends, begun_ns: u64) -> WindowEnd {
        // Without a transfer, reading the clock more often would dominate the measured time.
        let bytes_per_clock_read = if ends.link.transfers() { BYTES_PER_ROUND } else { usize::MAX };
        WindowEnd { volume: ends.volume, begun_ns, blocks: 0, bytes: 0, bytes_per_clock_read }
    }

    /// Updates the state after more blocks have arrived, `total` bytes in all. Returns whether the window is over.
    #[inline]
    fn reached(&mut self, taken: &ReceivedBlocks, total: u64) -> bool {
        if let Volume::Time(_) = self.volume {
            self.blocks += taken.blocks;
            self.bytes = self.bytes.saturating_add(taken.bytes);
            if self.blocks < BLOCKS_PER_ROUND && self.bytes < self.bytes_per_clock_read {
                return false;
            }
            (self.blocks, self.bytes) = (0, 0);
        }
        is_over(self.volume, total, self.begun_ns, monotonic_ns)
    }
}
