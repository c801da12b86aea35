//! From a pipe: large pieces are spliced, small ones read and written. In which strategy a fast writer of small pieces is waited for
//! is found by trying.
//!
//! A writer of 8 KiB or of single lines wakes this process at every write, if it waits for each. That can cost both more than
//! the bytes do: a pause lets the pipe fill meanwhile. Or it can be the fastest there is: on two CPUs, writer and reader in step
//! use the same two pages again and again, where a pipe that fills takes new ones. Only trying tells which.
//!
//! On one CPU, waking this process at a write can also mean that it takes the CPU from the writer at once. A process of the
//! scheduling policy SCHED_BATCH waits until the writer has filled the pipe or used up its time.
//!
//! /dev/null doesn't look at what it takes: there pages are moved however little is in them, so that no byte goes from the cache of
//! one CPU to that of the other.
//!
//! When the output is full, each read wakes this process, and the reader pays for that: with `gzip -1` on another CPU of a virtual
//! machine a tenth of its time. So it is left alone until about a third of the pipe is empty.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionread};
use rustix::param::page_size;
use rustix::pipe::{SpliceFlags, splice};

use super::ways::Kind;
use super::{BLOCK, BUFFER, Method, Passage, Stop, private_pipe};
use crate::memory::{Pages, Region};
use crate::wait::{LOOKS, look_for_more};

/// What is worth a move of pages. Less is copied, for pages with little in them take as much room in a pipe as full ones.
pub(super) const MANY: usize = 32 << 10;

/// A pipe that holds less than this is full before a pause is over.
const ROOM: usize = 256 << 10;

/// How long a pause is. The system adds some 50 µs.
const PAUSE: Duration = Duration::from_micros(50);

/// How long it is where many bytes come at a time, and how far these are apart at most. `gzip -d` writes 32 KiB every 90 µs, and to
/// wake this process for each takes 4 % of its time.
const LONG_PAUSE: Duration = Duration::from_micros(200);
const STEADY: Duration = Duration::from_millis(1);

/// A piece so long after the last comes alone: nothing is gained by looking for more, and to yield the CPU while others compute
/// would hold up the next one for as long as their share of time lasts.
pub(super) const ALONE: Duration = Duration::from_millis(2);

/// How often in a row more has to come soon before a pause is made.
const IN_A_ROW: u32 = 4;

/// How long a slow reader is left alone, at least and at most. The system adds some 50 µs.
const NAPS: [Duration; 2] = [Duration::from_micros(200), Duration::from_millis(2)];

/// How long it is watched how fast the bytes go in one strategy: this time, or this number of moves, the second number with pauses. On one
/// CPU, where pipes fill and empty by turns, as long as takes many turns.
const WINDOW: Duration = Duration::from_millis(1);
const MOVES: [u32; 2] = [64, 6];
const WINDOW_OF_TURNS: Duration = Duration::from_millis(8);

/// After a longer gap the window is discarded.
const IDLE: Duration = Duration::from_millis(100);

/// The fewest and the most windows before the other strategies are tried for one each.
const STAY: [u32; 2] = [64, 1024];

/// How much faster a strategy has to be than one that takes less CPU time: more with large pieces, because there the writer's own speed
/// varies.
const GAIN: f64 = 1.05;
const GAIN_OF_MANY: f64 = 1.25;

impl Passage<'_> {
    /// Passes on what comes out of a pipe, by `method` where that pays. Says by which way it went.
    pub(super) fn pass_pipe(&mut self, method: Method) -> Result<Method, Stop> {
        let between = if method == Method::SpliceThroughPipe { Some(private_pipe()?) } else { None };
        let mut buffer = Region::new(BUFFER, Pages::Base)?;
        let pauses = self.capacities.iter().flatten().all(|&room| room >= ROOM);
        let mut pace = Pace::new(self.one_cpu, self.capacities[0].filter(|_| pauses));
        let mut batch_policy = self.one_cpu.then(BatchPolicy::new);
        let discards = self.kinds[1] == Kind::Null;
        let (mut many, mut packets, mut used) = (false, !discards, Method::ReadWrite);
        let (mut looks, mut strategy) = (0, IdleStrategy::Sleep);
        loop {
            if let Some(batch_policy) = &mut batch_policy {
                batch_policy.set(strategy == IdleStrategy::Batch);
            }
            let moved = if (many || discards) && !packets {
                used = method;
                match &between {
                    Some(between) => self.pass_through(between, looks)?,
                    None => match self.look(self.output, looks)? {
                        Some(moved) => {
                            self.count(moved);
                            moved
                        }
                        None => {
                            let most = self.most;
                            self.between(|input, output| splice(input, None, output, None, most, BLOCK))?
                        }
                    },
                }
            } else {
                let got = self.copy_once(&mut buffer).map_err(Stop::Failed)?;
                // A packet is a page at most. Moved into another pipe it would stay one, whose rest is lost to a reader of
                // less.
                packets &= got <= page_size();
                got
            };
            if moved == 0 {
                return Ok(used);
            }
            looks = 0;
            many |= moved >= MANY;
            if many && self.nap(moved, self.input) {
                continue;
            }
            many = moved >= MANY;
            strategy = pace.after(moved, Instant::now());
            match strategy {
                IdleStrategy::Pause if moved >= MANY => pause(self.input, LONG_PAUSE),
                IdleStrategy::Pause => {
                    look_for_more(self.input);
                    pause(self.input, PAUSE);
                    many = true;
                }
                IdleStrategy::Poll if (many || discards) && !packets => looks = LOOKS,
                IdleStrategy::Poll => look_for_more(self.input),
                IdleStrategy::Sleep | IdleStrategy::Batch => {}
            }
        }
    }

    /// Tries so often to move what is in the input, a pipe, to `to` without sleeping. A pipe that has been polled would wake its
    /// reader at each write from then on, also where there is more in it already.
    pub(super) fn look(&mut self, to: BorrowedFd<'_>, times: u32) -> io::Result<Option<usize>> {
        for _ in 0..times {
            self.calls += 1;
            match splice(self.input, None, to, None, self.most, SpliceFlags::NONBLOCK) {
                Err(Errno::AGAIN | Errno::INTR) => thread::yield_now(),
                moved => return Ok(Some(moved?)),
            }
        }
        Ok(None)
    }

    /// Leaves the output's reader alone for a while if its pipe, to which `moved` bytes were passed on, is full, and there are
    /// more in `input`. Says whether it did.
    pub(super) fn nap(&mut self, moved: usize, input: BorrowedFd<'_>) -> bool {
        // The input is not polled: see `look_for_more`.
        self.nap_if(moved, || ioctl_fionread(input).is_ok_and(|bytes| bytes > 0))
    }

    /// The same where more are known to follow.
    pub(super) fn nap_before_more(&mut self, moved: usize) -> bool {
        self.nap_if(moved, || true)
    }

    fn nap_if(&mut self, moved: usize, more: impl FnOnce() -> bool) -> bool {
        let Some(naps) = &mut self.naps else { return false };
        let output = self.output;
        let nap = naps.after(moved, Instant::now(), || {
            let mut full = [PollFd::from_borrowed_fd(output, PollFlags::OUT)];
            poll(&mut full, Some(&Timespec::default())) == Ok(0) && more()
        });
        if let Some(nap) = nap {
            // It ends sooner if the reader is gone. A pipe has no such event, so no read ends it, but it shows `pipemark why`
            // what is waited for.
            if let Ok(nap) = Timespec::try_from(nap) {
                let _ = poll(&mut [PollFd::from_borrowed_fd(output, PollFlags::WRBAND)], Some(&nap));
            }
        }
        nap.is_some()
    }
}

/// Sleeps while the pipe fills. poll(2) passes over an inverted descriptor: a process in the pipe's queue would make every write
/// longer, by a tenth with single lines. But it shows `pipemark why` what is waited for.
fn pause(pipe: BorrowedFd<'_>, time: Duration) {
    let mut none = libc::pollfd { fd: !pipe.as_raw_fd(), events: libc::POLLRDBAND, revents: 0 };
    let time = libc::timespec { tv_sec: 0, tv_nsec: time.subsec_nanos().cast_signed().into() };
    // SAFETY: both are valid for the call, which writes to the first.
    unsafe { libc::ppoll(&mut none, 1, &time, ptr::null()) };
}

/// What to do before more is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IdleStrategy {
    /// Let the pipe fill.
    Pause,
    /// Ask at once, and sleep if there is nothing. The pipe's lock keeps reader and writer in step.
    Sleep,
    /// Poll for a while before sleeping.
    Poll,
    /// Sleep, and let the writer go on when it wakes this process.
    Batch,
}

/// What takes less CPU time comes first.
const STRATEGIES: &[IdleStrategy] = &[IdleStrategy::Pause, IdleStrategy::Sleep, IdleStrategy::Poll];
const STRATEGIES_ON_ONE_CPU: &[IdleStrategy] = &[IdleStrategy::Batch, IdleStrategy::Poll];

/// Decides in which strategy a fast writer of little is read: each is tried for a window, and what is fastest goes on for a while.
pub(super) struct Pace {
    /// Those that there are: without room in the pipes there are no pauses.
    strategies: &'static [IdleStrategy],
    one_cpu: bool,
    /// Half of the input's capacity.
    half: usize,
    last: Instant,
    paused: bool,
    in_a_row: u32,
    /// When the window began, and what has been moved since.
    begin: Instant,
    bytes: usize,
    moves: u32,
    /// The strategy of this window, and the fastest by what is known.
    strategy: IdleStrategy,
    best: IdleStrategy,
    /// The speeds that were seen, in bytes a second, by strategy.
    speeds: [f64; IdleStrategy::Batch as usize + 1],
    untried: &'static [IdleStrategy],
    /// Windows left before the others are tried again, and how many there will be after that.
    left: u32,
    stay: u32,
}

impl Pace {
    /// With the capacity of the input, if there are pauses.
    pub(super) fn new(one_cpu: bool, capacity: Option<usize>) -> Pace {
        let now = Instant::now();
        let strategies = match (one_cpu, capacity) {
            (true, _) => STRATEGIES_ON_ONE_CPU,
            (false, Some(_)) => STRATEGIES,
            (false, None) => &STRATEGIES[1..],
        };
        Pace {
            strategies,
            one_cpu,
            half: capacity.unwrap_or(MANY) / 2,
            last: now,
            paused: false,
            in_a_row: 0,
            begin: now,
            bytes: 0,
            moves: 0,
            strategy: strategies[0],
            best: strategies[0],
            speeds: [0.0; IdleStrategy::Batch as usize + 1],
            untried: &strategies[1..],
            left: 0,
            stay: STAY[0],
        }
    }

    /// After `moved` bytes were read from `pipe`: rests in the strategy that is fastest.
    pub(super) fn rest(&mut self, pipe: BorrowedFd<'_>, moved: usize, batch_policy: Option<&mut BatchPolicy>) {
        let strategy = self.after(moved, Instant::now());
        if let Some(batch_policy) = batch_policy {
            batch_policy.set(strategy == IdleStrategy::Batch);
        }
        match strategy {
            IdleStrategy::Pause if moved >= MANY => pause(pipe, LONG_PAUSE),
            IdleStrategy::Pause => {
                look_for_more(pipe);
                pause(pipe, PAUSE);
            }
            IdleStrategy::Poll => look_for_more(pipe),
            IdleStrategy::Sleep | IdleStrategy::Batch => {}
        }
    }

    /// Takes note of a move, after which everything has been passed on, and says what to do next.
    fn after(&mut self, moved: usize, now: Instant) -> IdleStrategy {
        let took = now - std::mem::replace(&mut self.last, now);
        let (large, paused) = (moved >= MANY, std::mem::take(&mut self.paused));
        let steady = if large { moved <= self.half && (PAUSE..=STEADY).contains(&took) } else { took < PAUSE };
        self.bytes += moved;
        self.moves += 1;
        if self.one_cpu {
            if now - self.begin >= WINDOW_OF_TURNS {
                // Where the pipe was filled each time there is nothing to gain, and where nothing came for long nothing to see.
                let filled = self.strategy == IdleStrategy::Batch && self.bytes / self.moves as usize >= self.half;
                if filled || took > IDLE {
                    self.begin_window(now);
                } else {
                    self.end_window(now, false);
                }
            }
            return if took > ALONE { IdleStrategy::Sleep } else { self.strategy };
        }
        if !paused && (steady || !large) {
            self.in_a_row = if steady { IN_A_ROW.min(self.in_a_row + 1) } else { 0 };
        }
        if self.in_a_row < IN_A_ROW {
            self.begin_window(now);
        } else if now - self.begin >= WINDOW || self.moves >= MOVES[usize::from(self.strategy == IdleStrategy::Pause)] {
            self.end_window(now, large);
        }
        if self.in_a_row < IN_A_ROW || (large && !steady) {
            return if took > ALONE { IdleStrategy::Sleep } else { IdleStrategy::Poll };
        }
        self.paused = self.strategy == IdleStrategy::Pause;
        self.strategy
    }

    fn begin_window(&mut self, now: Instant) {
        (self.begin, self.bytes, self.moves) = (now, 0, 0);
    }

    fn end_window(&mut self, now: Instant, large: bool) {
        let seen = self.bytes as f64 / (now - self.begin).as_secs_f64();
        let speed = &mut self.speeds[self.strategy as usize];
        *speed = if *speed == 0.0 { seen } else { (*speed + seen) / 2.0 };
        self.begin_window(now);
        if self.left > 0 {
            self.left -= 1;
            if self.left > 0 {
                return;
            }
            self.untried = self.strategies;
        }
        while let Some((&strategy, rest)) = self.untried.split_first() {
            self.untried = rest;
            if strategy != self.strategy {
                self.strategy = strategy;
                return;
            }
        }
        self.choose(if large { GAIN_OF_MANY } else { GAIN });
    }

    fn choose(&mut self, gain: f64) {
        let fastest = self.speeds.iter().copied().fold(0.0, f64::max);
        let good = |strategy: &IdleStrategy| self.speeds[*strategy as usize] * gain >= fastest;
        let best = self.strategies.iter().copied().find(good).unwrap_or(IdleStrategy::Poll);
        self.stay = if best == self.best { STAY[1].min(self.stay * 4) } else { STAY[0] };
        (self.best, self.strategy, self.left) = (best, best, self.stay);
    }
}

/// The calling thread's scheduling policy, which is SCHED_BATCH for a while: no other process's, and only if it was the default one.
pub(super) struct BatchPolicy {
    set: bool,
    possible: bool,
}

impl BatchPolicy {
    pub(super) fn new() -> BatchPolicy {
        BatchPolicy { set: false, possible: true }
    }

    fn set(&mut self, set: bool) {
        if !self.possible || set == self.set {
            return;
        }
        let [default, batch] = [libc::SCHED_OTHER, libc::SCHED_BATCH];
        let (from, to) = if set { (default, batch) } else { (batch, default) };
        // Unless somebody else has set another one since.
        self.possible = policy() == from.into() && set_policy(to);
        self.set = set;
    }
}

impl Drop for BatchPolicy {
    fn drop(&mut self) {
        self.set(false);
    }
}

/// Sets the calling thread's scheduling policy, if that is allowed.
fn set_policy(policy: libc::c_int) -> bool {
    // Of all the parameters, the policies used here have this one only, which is 0.
    let priority: libc::c_int = 0;
    // SAFETY: the number is there for the call, which reads it.
    unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const priority) == 0 }
}

/// The calling thread's scheduling policy, with its flags.
fn policy() -> libc::c_long {
    // SAFETY: nothing of ours is touched. Not libc's function, which is none with musl.
    unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) }
}

/// Decides how long the reader of a full pipe is left alone.
pub(super) struct Naps {
    capacity: usize,
    last: Instant,
    /// Since when the reader alone has held up the bytes, and how many it has taken.
    held: Option<Instant>,
    taken: usize,
}

impl Naps {
    pub(super) fn new(capacity: usize) -> Naps {
        Naps { capacity, last: Instant::now(), held: None, taken: 0 }
    }

    /// Takes note of a move; `held` asks whether the reader holds up more. Says how long a nap to take.
    fn after(&mut self, moved: usize, now: Instant, held: impl FnOnce() -> bool) -> Option<Duration> {
        let took = now - std::mem::replace(&mut self.last, now);
        // To ask is to look at both pipes while others use them.
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

    /// Until a third of the pipe is empty, if `taken` bytes were read in this time.
    fn nap(&self, taken: usize, time: Duration) -> Duration {
        time.mul_f64(self.capacity as f64 / 3.0 / taken.max(1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The share of naps in the time of 1000 moves to a pipe of 1 MiB, and the most bytes that were taken from it in one, where a
    /// reader takes 64 KiB at a time, at each move `speed` bytes a second.
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
            nap = naps.after(taken as usize, now, || true);
        }
        (napped.div_duration_f64(now - begin), most)
    }

    #[test]
    fn a_slow_reader_is_left_alone_as_long_as_it_has_enough() {
        for speed in [50e6, 200e6, 800e6] {
            let (share, most) = naps(|_| speed);
            assert!(share > 0.7 && most < 400e3, "{share} {most}");
        }
    }

    #[test]
    fn a_fast_reader_finds_the_pipe_filled_at_once() {
        assert_eq!(naps(|_| 3e9).0, 0.0);
        // Also if it has rested.
        assert_eq!(naps(|at| if at == 500 { 65536.0 } else { 3e9 }).0, 0.0);
        // One that was slow waits for what remains of a nap.
        let (share, _) = naps(|at| if at < 10 { 50e6 } else { 3e9 });
        assert!(share > 0.0 && share < 0.5, "{share}");
    }

    #[test]
    fn nobody_is_left_alone_where_there_is_no_more_to_pass_on() {
        let mut naps = Naps::new(1 << 20);
        let begin = Instant::now();
        // In every second move there is.
        for at in 0..1000 {
            assert_eq!(naps.after(4096, begin + NAPS[1] * at, || at % 2 == 0), None);
        }
    }

    /// The share of moves, each a fixed time after the one before, which, are followed by a pause, and what share of the time the
    /// pauses take. A move brings `moved` bytes, or `gathered` after a pause.
    fn pauses(moves: u32, apart: Duration, moved: usize, gathered: usize) -> (u32, f64) {
        let mut pace = Pace::new(false, Some(1 << 20));
        let (begin, pause) = (pace.last, PAUSE * 2);
        let (mut now, mut paused, mut count) = (begin, false, 0);
        for _ in 0..moves {
            now += if paused { apart + pause } else { apart };
            paused = pace.after(if paused { gathered } else { moved }, now) == IdleStrategy::Pause;
            count += u32::from(paused);
        }
        (count, (pause * count).as_secs_f64() / (now - begin).as_secs_f64())
    }

    /// The share of 100,000 moves of 8,000 bytes after which the process asks at once, where they then take so long, and so
    /// long after it has looked.
    fn asked_at_once(room: bool, asked: Duration, looked: Duration) -> f64 {
        let mut pace = Pace::new(false, room.then_some(1 << 20));
        let (mut now, mut strategy, mut count) = (pace.last, IdleStrategy::Poll, 0);
        for _ in 0..100_000 {
            now += match strategy {
                IdleStrategy::Pause => PAUSE * 2,
                IdleStrategy::Sleep => asked,
                IdleStrategy::Poll | IdleStrategy::Batch => looked,
            };
            strategy = pace.after(8000, now);
            count += u32::from(strategy == IdleStrategy::Sleep);
        }
        f64::from(count) / 100_000.0
    }

    #[test]
    fn what_is_fastest_goes_on() {
        let [short, long] = [1, 2].map(Duration::from_micros);
        for room in [false, true] {
            let [faster, slower, equal] =
                [(short, long), (long, short), (short, short)].map(|(a, b)| asked_at_once(room, a, b));
            assert!(faster > 0.95 && slower < 0.05 && equal > 0.95, "{faster} {slower} {equal}");
        }
    }

    #[test]
    fn the_scheduling_policy_is_set_for_a_while() {
        thread::spawn(|| {
            let before = policy();
            let mut batch_policy = BatchPolicy::new();
            batch_policy.set(true);
            assert!(!batch_policy.possible || policy() == libc::SCHED_BATCH.into());
            batch_policy.set(false);
            assert_eq!(policy(), before);
            batch_policy.set(true);
            drop(batch_policy);
            assert_eq!(policy(), before);
            let mut batch_policy = BatchPolicy::new();
            batch_policy.set(true);
            set_policy(libc::SCHED_IDLE);
            batch_policy.set(false);
            assert_eq!(policy(), libc::SCHED_IDLE.into(), "what somebody else has set stays");
            batch_policy.set(true);
            drop(batch_policy);
            assert_eq!(policy(), libc::SCHED_IDLE.into());
        })
        .join()
        .unwrap();
    }

    /// The share of a second on one CPU in which the writer is let go on, where moves then bring `bytes` in `time`,
    /// and else 100 bytes in 20 microseconds.
    fn deferred(moved: usize, took: Duration) -> f64 {
        let mut pace = Pace::new(true, Some(1 << 20));
        let (begin, mut now, mut share) = (pace.last, pace.last, Duration::ZERO);
        while now - begin < Duration::from_secs(1) {
            let deferring = pace.strategy == IdleStrategy::Batch;
            let (moved, took) = if deferring { (moved, took) } else { (100, Duration::from_micros(20)) };
            now += took;
            share += if deferring { took } else { Duration::ZERO };
            pace.after(moved, now);
        }
        share.as_secs_f64()
    }

    #[test]
    fn on_one_cpu_a_writer_goes_on_until_the_pipe_is_full() {
        // Nothing else is tried, also where that takes long.
        assert!(deferred(1 << 20, Duration::from_micros(400)) >= 1.0);
        assert!(deferred(1 << 20, Duration::from_millis(20)) >= 1.0);
    }

    #[test]
    fn on_one_cpu_who_waits_for_an_answer_while_others_compute_is_answered_at_once() {
        assert!(deferred(100, Duration::from_millis(4)) < 0.1);
    }

    #[test]
    fn a_fast_writer_of_little_is_left_alone() {
        let (_, share) = pauses(100_000, PAUSE / 10, 80, 4000);
        assert!(share > 0.9, "{share}");
    }

    #[test]
    fn what_comes_now_and_then_is_not_waited_for() {
        assert_eq!(pauses(1000, PAUSE * 2, 80, 4000).0, 0);
    }

    #[test]
    fn more_is_not_looked_for_after_what_comes_alone() {
        for one_cpu in [false, true] {
            let mut pace = Pace::new(one_cpu, Some(1 << 20));
            let mut now = pace.last;
            for took in [ALONE * 5, PAUSE * 10].into_iter().cycle().take(1000) {
                now += took;
                assert_eq!(pace.after(100, now) == IdleStrategy::Sleep, took > ALONE, "{one_cpu} {took:?}");
            }
        }
    }

    #[test]
    fn large_moves_are_not_waited_for() {
        assert_eq!(pauses(1000, PAUSE / 10, MANY, MANY).0, 0);
    }

    #[test]
    fn a_writer_that_is_slower_is_left_alone_for_longer() {
        let mut pace = Pace::new(false, Some(1 << 20));
        let (begin, mut now, mut paused) = (pace.last, pace.last, Duration::ZERO);
        let mut strategy = IdleStrategy::Poll;
        for _ in 0..10_000 {
            let writes = if strategy == IdleStrategy::Pause { 3 } else { 1 };
            let took = Duration::from_micros(90) * writes;
            paused += if strategy == IdleStrategy::Pause { took } else { Duration::ZERO };
            now += took;
            strategy = pace.after(MANY * writes as usize, now);
        }
        assert!(paused.div_duration_f64(now - begin) > 0.9);
    }

    #[test]
    fn a_writer_that_pauses_make_slower_is_hardly_ever_left_alone() {
        let (held_up, _) = pauses(100_000, PAUSE / 10, 8000, 16_000);
        assert!((1..100).contains(&held_up), "{held_up}");
    }

    #[test]
    fn a_request_that_waits_for_its_answer_is_hardly_ever_held_up() {
        let (held_up, _) = pauses(100_000, PAUSE / 10, 80, 80);
        assert!((1..100).contains(&held_up), "{held_up}");
    }
}
