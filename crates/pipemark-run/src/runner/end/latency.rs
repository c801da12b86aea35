//! Latency: the source repeatedly sends a block and waits until a block of the same size returns.

use std::io;
use std::num::NonZeroU64;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use pipeio_harness::pattern::{Checker, Pattern};
use pipeio_harness::recv::Receiver;
use pipeio_harness::send::{BlockContent, Sender};
use pipemark_sys::usage::monotonic_ns;

use pipemark_model::{Ends, Latency, MessagePace, Nanos, Verify};
use pipemark_stats::percentile;

use crate::link::{self, Handle, Link, stream};
use crate::runner::end::meter::{Meter, is_over, loop_overhead_ns};
use crate::runner::end::{Done, TrialEnd, early_end_error};

/// The shortest warm-up, in nanoseconds and in round trips.
const WARM_UP_NS: u64 = 2_000_000;
const WARM_UP_TRIPS: u32 = 16;

/// The duration of the back-to-back round trips before the window, in nanoseconds. They restore the steady alternation
/// of the ends, which the barrier has interrupted.
const RUN_IN_NS: u64 = 3_000_000;

/// The longest round trip recorded exactly, in nanoseconds. The time limit of a run is far shorter.
pub(in crate::runner) const MAX_NS: u64 = 3_600_000_000_000;

/// The source sleeps until this many nanoseconds before a message is due, and then polls the clock. Polling keeps the
/// source's wake-up time out of the measured time.
const POLL_NS: u64 = 100_000;

/// One side of a round trip: a link to the other side and one back.
struct LatencySide<S: ?Sized, R: ?Sized> {
    sender: Box<S>,
    receiver: Box<R>,
    block: usize,
    fresh: bool,
    ours: Pattern,
    theirs: Checker,
    check: bool,
    sent: u64,
    received: u64,
    /// Number of bytes newly written.
    written: u64,
    /// Number of bytes read.
    read: u64,
    calls: u32,
}

impl<S: Sender + ?Sized, R: Receiver + ?Sized> LatencySide<S, R> {
    fn new(end: &TrialEnd, (mut sender, receiver): (Box<S>, Box<R>), ours: u64, theirs: u64) -> io::Result<Self> {
        let ends = &end.ends;
        let ours = end.pattern(ours);
        let fresh = link::content(ends) == BlockContent::Fresh;
        if !fresh {
            sender.prepare(&mut |position, bytes| ours.fill(position, bytes))?;
        }
        Ok(LatencySide {
            sender,
            receiver,
            block: ends.block.as_usize(),
            fresh,
            ours,
            theirs: Checker::new(end.pattern(theirs)),
            check: ends.verify != Verify::None && ends.link.transfers(),
            sent: 0,
            received: 0,
            written: 0,
            read: 0,
            calls: 0,
        })
    }

    #[inline(always)]
    fn send(&mut self) -> io::Result<()> {
        if self.fresh {
            self.ours.fill(self.sent, self.sender.fresh(self.block)?);
            self.written += self.block as u64;
        }
        let moved = self.sender.send(self.block)?;
        self.sent += moved.bytes as u64;
        self.calls += moved.calls;
        Ok(())
    }

    /// Waits for a whole message. Returns false at the end of the stream.
    #[inline(always)]
    fn receive(&mut self) -> io::Result<bool> {
        let mut arrived = 0;
        while arrived < self.block {
            let received = self.receiver.recv()?;
            if received.bytes == 0 {
                return if arrived == 0 { Ok(false) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
            }
            match received.data {
                Some(data) if self.check => {
                    self.read += data.len() as u64;
                    self.theirs.check(data);
                }
                _ => self.theirs.skip(received.bytes),
            }
            arrived += received.bytes;
            self.calls += received.calls;
        }
        self.received += arrived as u64;
        Ok(true)
    }

    // Inlined, because a context switch flushes the processor's return stack. Each function on the call stack at that
    // time then costs a mispredicted return.
    #[inline(always)]
    fn round_trip(&mut self) -> io::Result<()> {
        self.send()?;
        if self.receive()? {
            Ok(())
        } else {
            Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the return link ended before the run was over"))
        }
    }

    /// The byte counts, and the first fault.
    fn done(&self) -> Done {
        let fault = self.theirs.fault().map(|fault| fault.to_string());
        Done { fault, written: self.written, read: self.read, ..Done::default() }
    }

    /// Ends the warm-up. Unless verification is off, the bytes of the warm-up are compared at every level. This tests
    /// the path without slowing down the window.
    fn begin_window(&mut self, end: &TrialEnd) {
        self.check = end.ends.touched();
        self.calls = 0;
    }
}

const THERE: u64 = 0;
const BACK: u64 = 1 << 32;

/// Calls a function that is generic over the sender of `$to` and the receiver of `$from`. Plain reads and writes are
/// thus inlined down to the system calls.
macro_rules! with_ends {
    ($function:ident($end:expr $(, $more:expr)*), $link:expr, $to:expr, $from:expr) => {{
        let ends = &$end.ends;
        // A message is read whole, regardless of the configured read size.
        let whole = Ends { read_block: None, ..ends.clone() };
        if stream::is_plain($link, ends) {
            $function($end, (Box::new(stream::write($to, ends)?), Box::new(stream::read($from, &whole)?)) $(, $more)*)
        } else {
            $function($end, ($link.sender($to, ends)?, $link.receiver($from, &whole)?) $(, $more)*)
        }
    }};
}

/// Runs the source, which sends requests and measures the time.
pub(super) fn run_requester(
    end: &TrialEnd,
    pace: MessagePace,
    link: &dyn Link,
    there: Handle,
    back: Handle,
) -> io::Result<Done> {
    with_ends!(requester_loop(end, pace), link, there, back)
}

fn requester_loop<S: Sender + ?Sized, R: Receiver + ?Sized>(
    end: &TrialEnd,
    opened: (Box<S>, Box<R>),
    pace: MessagePace,
) -> io::Result<Done> {
    let mut side = LatencySide::new(end, opened, THERE, BACK)?;
    let ends = &end.ends;
    let mut busy = end.busy(ends.write_delay);
    // By default the kernel may wake a sleeper 50 µs late.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let mut trips = Histogram::<u64>::new_with_bounds(1, MAX_NS, 3).map_err(io::Error::other)?;

    end.control.wait_at_barrier(1)?;
    let begin = monotonic_ns();
    let mut warm = 1;
    while warm < WARM_UP_TRIPS || monotonic_ns() - begin < WARM_UP_NS {
        side.round_trip()?;
        warm += 1;
    }
    end.control.announce_warm_up(end.assignment.line, side.sent + ends.block.0);
    side.round_trip()?;
    let mut meter = Meter::new();
    let own_ns = requester_overhead_ns(end, pace)?;
    let released_ns = end.control.wait_at_barrier(2)?;

    // Messages with a pace aren't sent back to back, so they need no run-in.
    let run_in_ns = if pace == MessagePace::Gap(Nanos(0)) { RUN_IN_NS } else { 0 };
    let mut flows = false;
    while !end.control.begun() {
        if !flows && monotonic_ns() - released_ns >= run_in_ns {
            flows = true;
            end.control.report_flow(ends.pairs);
        }
        side.round_trip()?;
    }
    side.begin_window(end);
    let begun_ns = meter.begin();
    let before = side.sent;
    let mut timer = Timer::new(pace, begun_ns);
    loop {
        busy.work();
        let started_ns = timer.start();
        side.round_trip()?;
        let arrived_ns = monotonic_ns();
        trips.saturating_record(arrived_ns.saturating_sub(started_ns).max(1));
        timer.ended(arrived_ns);
        meter.count(std::mem::take(&mut side.calls));
        end.progress(side.sent);
        if is_over(ends.volume, side.sent - before, begun_ns, || arrived_ns) {
            break;
        }
    }
    let mut stats = meter.stop(side.sent - before, own_ns, end.stats(None));
    let due = timer.due(begun_ns + stats.ns);
    // The CPU time for polling the clock isn't a cost of the link.
    stats.user_ns = stats.user_ns.saturating_sub(timer.polled_ns);
    end.control.sink_done(ends.pairs);
    // The windows of other pairs may still be open.
    while !end.control.stopped() {
        side.round_trip()?;
    }
    stats.bytes_in_all = side.sent;
    if side.received != side.sent {
        return Err(io::Error::other(format!("{} bytes were sent and {} came back", side.sent, side.received)));
    }
    side.sender.finish()?;
    Ok(Done { stats, latency: Some(summary(&trips, due)?), ..side.done() })
}

/// Runs the sink, which returns each message.
pub(super) fn run_responder(end: &TrialEnd, link: &dyn Link, there: Handle, back: Handle) -> io::Result<Done> {
    with_ends!(responder_loop(end), link, back, there)
}

fn responder_loop<S: Sender + ?Sized, R: Receiver + ?Sized>(
    end: &TrialEnd,
    opened: (Box<S>, Box<R>),
) -> io::Result<Done> {
    let mut side = LatencySide::new(end, opened, BACK, THERE)?;
    let ends = &end.ends;
    let mut busy = end.busy(ends.read_delay);

    end.control.wait_at_barrier(1)?;
    while ends.link.transfers() && end.warm_up() != Some(side.received) {
        if !side.receive()? {
            return Err(early_end_error());
        }
        side.send()?;
    }
    let mut meter = Meter::new();
    end.control.wait_at_barrier(2)?;

    while ends.link.transfers() && !end.control.begun() && side.receive()? {
        side.send()?;
    }
    side.begin_window(end);
    meter.begin();
    let before = side.received;
    while !end.control.stopped() && side.receive()? {
        busy.work();
        side.send()?;
        meter.count(std::mem::take(&mut side.calls));
        end.progress(side.received);
    }
    let mut stats = meter.stop(side.received - before, 0.0, end.stats(None));
    while ends.link.transfers() && side.receive()? {
        side.send()?;
    }
    stats.bytes_in_all = side.received;
    Ok(Done { stats, ..side.done() })
}

/// The time per round trip spent outside the link, in nanoseconds: for reading the clock, updating the histogram and
/// counting.
fn requester_overhead_ns(end: &TrialEnd, pace: MessagePace) -> io::Result<f64> {
    let mut trips = Histogram::<u64>::new_with_bounds(1, MAX_NS, 3).map_err(io::Error::other)?;
    let mut meter = Meter::new();
    let mut timer = Timer::new(MessagePace::Gap(Nanos(0)), 0);
    let clock_reads = if pace == MessagePace::Gap(Nanos(0)) { 1 } else { 2 };
    Ok(loop_overhead_ns(|| {
        let started_ns = timer.start();
        let arrived_ns = (0..clock_reads).map(|_| monotonic_ns()).max().unwrap_or_default();
        trips.saturating_record(arrived_ns.saturating_sub(started_ns).max(1));
        timer.ended(arrived_ns);
        meter.count(1);
        end.progress(0);
        std::hint::black_box(is_over(end.ends.volume, 0, arrived_ns, || arrived_ns));
    }))
}

/// Decides when each message is sent.
struct Timer {
    pace: Pacing,
    /// Time spent polling the clock until a message was due, in nanoseconds.
    polled_ns: u64,
}

enum Pacing {
    /// As soon as the previous message has returned. The time of that return is also the start time of the next
    /// message, which saves one reading of the clock.
    Closed { next_ns: u64 },
    /// This long after the return of the previous message.
    Gap(Duration),
    /// At a fixed rate. Each message is timed from when it is due, so that stalls count.
    Open { interval: f64, first_ns: u64, nth: u64 },
}

impl Timer {
    fn new(pace: MessagePace, first_ns: u64) -> Timer {
        let pace = match pace {
            MessagePace::Rate(rate) => Pacing::Open { interval: 1e9 / f64::from(rate), first_ns, nth: 0 },
            MessagePace::Gap(gap) if gap.0 > 0 => Pacing::Gap(gap.into()),
            MessagePace::Gap(_) => Pacing::Closed { next_ns: monotonic_ns() },
        };
        Timer { pace, polled_ns: 0 }
    }

    /// Waits until the next message may be sent. Returns the time from which its round trip is measured, in monotonic
    /// nanoseconds.
    #[inline]
    fn start(&mut self) -> u64 {
        match &mut self.pace {
            Pacing::Closed { next_ns } => *next_ns,
            Pacing::Gap(gap) => {
                std::thread::sleep(*gap);
                monotonic_ns()
            }
            Pacing::Open { interval, first_ns, nth } => {
                *nth += 1;
                let due = *first_ns + (*interval * *nth as f64) as u64;
                let now = monotonic_ns();
                if due > now + POLL_NS {
                    std::thread::sleep(Duration::from_nanos(due - now - POLL_NS));
                }
                let polled_from = monotonic_ns();
                let mut now = polled_from;
                while now < due {
                    std::hint::spin_loop();
                    now = monotonic_ns();
                }
                self.polled_ns += now - polled_from;
                due
            }
        }
    }

    #[inline]
    fn ended(&mut self, arrived_ns: u64) {
        if let Pacing::Closed { next_ns } = &mut self.pace {
            *next_ns = arrived_ns;
        }
    }

    /// The number of messages due by `until_ns`; `None` unless they are sent at a fixed rate.
    fn due(&self, until_ns: u64) -> Option<u64> {
        match self.pace {
            Pacing::Open { interval, first_ns, .. } => {
                Some((until_ns.saturating_sub(first_ns) as f64 / interval) as u64)
            }
            _ => None,
        }
    }
}

/// Summarizes a histogram of times in nanoseconds. `due` is the number of messages that were due; `None` without a
/// fixed rate.
pub(in crate::runner) fn summary(trips: &Histogram<u64>, due: Option<u64>) -> io::Result<Latency> {
    let at = |share: f64| trips.value_at_quantile(share);
    let count = usize::try_from(trips.len()).unwrap_or(usize::MAX);
    let supported = |share: f64| percentile::supports(count, share * 100.0).then(|| at(share));
    let mut bytes = Vec::new();
    V2DeflateSerializer::new().serialize(trips, &mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(Latency {
        round_trips: trips.len(),
        min: trips.min(),
        p50: at(0.5),
        p90: supported(0.9),
        p99: supported(0.99),
        p999: supported(0.999),
        max: trips.max(),
        histogram: BASE64_STANDARD.encode(bytes),
        due,
        held: None,
    })
}
