//! The sink: takes bytes out of the link, proves them, and keeps the clock that counts.

use std::io;

use pipeio::recv::Receiver;
use pipeio_harness::pattern::{Checker, Pattern};
use pipeio_harness::usage::monotonic_ns;

use super::meter::{Busy, Meter, ceiling, is_over};
use super::{Done, End, ended_early};
use crate::link::{Handle, Link};
use crate::model::{Verify, Volume};

/// Look at the clock after so many calls or bytes: a small fraction of any window, and not worth mentioning in time.
const CALLS_PER_LOOK: u32 = 16;
const BYTES_PER_LOOK: u64 = 64 << 10;

struct Sink {
    receiver: Box<dyn Receiver + Send>,
    proof: Proof,
    received: u64,
}

/// What becomes of the bytes that arrive.
struct Proof {
    checker: Checker,
    check: bool,
    xor: Option<u8>,
}

impl Proof {
    fn new(pattern: Pattern, verify: Verify) -> Proof {
        Proof {
            checker: Checker::new(pattern),
            check: verify == Verify::Full,
            xor: (verify == Verify::Xor).then_some(0),
        }
    }

    #[inline]
    fn absorb(&mut self, bytes: usize, data: Option<&[u8]>) {
        match data {
            Some(data) if self.check => self.checker.check(data),
            _ => self.checker.skip(bytes),
        }
        if let (Some(xor), Some(data)) = (&mut self.xor, data) {
            *xor ^= pipeio_harness::pattern::xor(data);
        }
    }
}

pub(super) fn run(end: &End, link: &dyn Link, handle: Handle) -> io::Result<Done> {
    let ends = &end.ends;
    let observed = if let Handle::Fd(fd) = &handle { Some(fd.try_clone()?) } else { None };
    let capacity = || pipeio::pipe::capacity(observed.as_ref()?).ok().map(|bytes| bytes as u64);
    let receiver = link.receiver(handle, ends)?;
    let mut busy = end.busy(ends.read_delay);
    let stats = end.stats(alone(ends.verify, ends.read_block().as_usize(), end.pattern(0), &busy));
    let capacity_before = capacity();
    let mut sink = Sink { receiver, proof: Proof::new(end.pattern(0), ends.verify), received: 0 };
    // The warm-up is always compared: that proves the path at no cost to the window.
    sink.proof.check = ends.verify != Verify::None && ends.link.transfers();

    end.control.meet(1)?;
    let chained = end.chained();
    let warmed_up = ends.link.transfers() && !chained;
    // More than was sent is no reason to wait for ever: it is found with the rest of what is wrong.
    while warmed_up && end.warm_up().is_none_or(|bytes| sink.received < bytes) {
        if sink.take()?.0 == 0 {
            return Err(ended_early());
        }
        end.progress(sink.received);
    }
    sink.proof.check = ends.verify == Verify::Full;
    let released_ns = end.control.meet(2)?;

    let mut meter = Meter::start(released_ns);
    let before = sink.received;
    let mut goal = Goal { volume: ends.volume, released_ns, calls: 0, bytes: 0 };
    let mut last_ns = released_ns;
    loop {
        let (bytes, calls) = sink.take()?;
        if bytes == 0 && chained {
            break;
        }
        if bytes == 0 {
            return Err(ended_early());
        }
        meter.count(calls);
        end.progress(sink.received);
        busy.work();
        if chained {
            last_ns = monotonic_ns();
        } else if goal.reached(bytes, sink.received - before) {
            break;
        }
    }
    let mut stats = meter.stop(sink.received - before, stats);
    if chained && stats.bytes > 0 {
        // The end of a chain's stream comes when the last process of it is gone, its last byte well before. Where stages
        // keep everything to themselves, the end is all there is.
        stats.ns = last_ns - released_ns;
    }
    end.control.sink_done(ends.pairs);
    // Other pairs may still be in their windows: this one keeps up the load until the source closes.
    // Without a transfer there is nothing to end.
    while ends.link.transfers() || !end.control.stopped() {
        let (bytes, _) = sink.take()?;
        if bytes == 0 {
            break;
        }
        end.progress(sink.received);
        busy.work();
    }
    stats.bytes_in_all = sink.received;
    stats.xor = sink.proof.xor;
    Ok(Done {
        stats,
        capacity: capacity_before.zip(capacity()),
        fault: sink.proof.checker.fault().map(|fault| fault.to_string()),
        huge_bytes: end.huge_bytes(),
        ..Done::default()
    })
}

impl Sink {
    /// Takes what is there; returns bytes and calls.
    #[inline]
    fn take(&mut self) -> io::Result<(usize, u32)> {
        let received = self.receiver.recv()?;
        self.proof.absorb(received.bytes, received.data);
        self.received += received.bytes as u64;
        Ok((received.bytes, received.calls))
    }
}

/// What the sink could do if the transfer cost nothing; `None` if it neither looks at bytes nor does work.
fn alone(verify: Verify, block: usize, pattern: Pattern, busy: &Busy) -> Option<f64> {
    let looks = matches!(verify, Verify::Xor | Verify::Full);
    if !looks && busy.seconds() == 0.0 {
        return None;
    }
    let mut data = vec![0; if looks { block } else { 0 }];
    pattern.fill(0, &mut data);
    let work = || {
        let mut proof = Proof::new(pattern, verify);
        proof.absorb(block, Some(&data));
        std::hint::black_box((proof.xor, proof.checker.fault()));
        Ok::<usize, std::convert::Infallible>(block)
    };
    Some(ceiling(busy.seconds(), work).unwrap_or_else(|never| match never {}))
}

/// When the window is over.
struct Goal {
    volume: Volume,
    released_ns: u64,
    calls: u32,
    bytes: u64,
}

impl Goal {
    /// Whether it is, after another `bytes` that make `total`.
    #[inline]
    fn reached(&mut self, bytes: usize, total: u64) -> bool {
        if let Volume::Time(_) = self.volume {
            self.calls += 1;
            self.bytes += bytes as u64;
            if self.calls < CALLS_PER_LOOK && self.bytes < BYTES_PER_LOOK {
                return false;
            }
            (self.calls, self.bytes) = (0, 0);
        }
        is_over(self.volume, total, self.released_ns, monotonic_ns)
    }
}
