//! Passes on the content of a pipe. Large pieces are spliced; small pieces are read and written. How to wait for a fast
//! writer of small pieces is decided by measurement.
//!
//! A process that writes pieces of 8 KiB or single lines wakes this process at every write, if this process sleeps
//! between the writes. The wake-ups can cost both processes more time than moving the bytes. A pause that lets the pipe
//! fill is then faster. In other cases sleeping between the writes is faster: on two CPUs, a writer and a reader that
//! alternate reuse the same two pages, whereas a pipe that fills needs new pages. Only a measurement shows which is
//! faster.
//!
//! On one CPU, this process may preempt the writer at once when a write wakes it. With the scheduling policy
//! SCHED_BATCH, this process waits until the writer has filled the pipe or used up its time slice.
//!
//! /dev/null doesn't read the bytes it is given. So pages are spliced to /dev/null however few bytes they hold, and no
//! byte moves from one CPU's cache to another's.
//!
//! When the output's pipe is full, each read from it wakes this process, and the wake-ups cost the reader time. On a
//! virtual machine, they took a tenth of the time of `gzip -1` on another CPU. So this process naps until about a third
//! of the output's pipe is empty.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionread};
use rustix::param::page_size;
use rustix::pipe::{SpliceFlags, splice};

use super::limits::{BLOCK, BUFFER, ISOLATED, LARGE_PIECE};
use super::methods::{Kind, Method};
use super::run::{RelayRun, Stop, check_stopped, private_pipe};
use crate::memory::{Pages, Region};
use crate::wait::{MAX_POLLS, poll_for_input};

/// A pipe with a smaller capacity is full before a pause is over.
const MIN_CAPACITY_TO_PAUSE: usize = 256 << 10;

/// The length of a pause. The system adds about 50 µs.
const PAUSE: Duration = Duration::from_micros(50);

/// The length of a pause if large pieces arrive. `gzip -d` writes 32 KiB every 90 µs, and waking this process for each
/// piece costs it 4 % of its time.
const LONG_PAUSE: Duration = Duration::from_micros(200);
/// The longest interval between large pieces at which input counts as steady.
const MAX_STEADY_INTERVAL: Duration = Duration::from_millis(1);

/// The number of pieces in quick succession after which a pause is made.
const IN_A_ROW: u32 = 4;

/// The length of a window, in which the speed of one strategy is measured, unless `MOVES` ends it first.
const WINDOW: Duration = Duration::from_millis(1);
/// The number of moves after which a window ends: for a strategy without pauses, and for one with pauses.
const MOVES: [u32; 2] = [64, 6];
/// The length of a window on one CPU, where pipes fill and empty alternately: long enough for many alternations.
const ONE_CPU_WINDOW: Duration = Duration::from_millis(8);

/// On one CPU, a window whose last move took longer than this is discarded.
const IDLE: Duration = Duration::from_millis(100);

/// The fastest strategy is used for at least and at most this many windows. Then each other strategy is measured again
/// for one window.
const WINDOWS_TO_STAY: [u32; 2] = [64, 1024];

/// A strategy is preferred to one that takes less CPU time if it is this many times as fast.
const GAIN: f64 = 1.05;
/// `GAIN` for large pieces. It is higher, because the speed of a writer of large pieces varies.
const GAIN_OF_LARGE_PIECES: f64 = 1.25;

impl RelayRun<'_> {
    /// Passes on the content of a pipe: by `method` where that is faster, otherwise by read and write. Returns the last
    /// method used.
    pub(super) fn pass_pipe(&mut self, method: Method) -> Result<Method, Stop> {
        let between = if method == Method::SpliceThroughPipe { Some(private_pipe()?) } else { None };
        let mut buffer = Region::new(BUFFER, Pages::Base)?;
        let pauses = self.capacities.iter().flatten().all(|&room| room >= MIN_CAPACITY_TO_PAUSE);
        let mut tuner = IdleTuner::new(self.one_cpu, self.capacities[0].filter(|_| pauses));
        let mut batch_policy = self.one_cpu.then(BatchPolicy::new);
        let discards = self.kinds[1] == Kind::Null;
        let (mut many, mut packets, mut used) = (false, !discards, Method::ReadWrite);
        let (mut polls, mut strategy) = (0, IdleStrategy::Sleep);
        loop {
            if let Some(batch_policy) = &mut batch_policy {
                batch_policy.set(strategy == IdleStrategy::Batch);
            }
            let moved = if (many || discards) && !packets {
                used = method;
                match &between {
                    Some(between) => self.pass_through(between, polls)?,
                    None => match self.try_splice(self.output, polls)? {
                        Some(moved) => {
                            self.count(moved);
                            moved
                        }
                        None => {
                            let most = self.most;
                            self.move_once(|input, output| splice(input, None, output, None, most, BLOCK))?
                        }
                    },
                }
            } else {
                let got = self.copy_once(&mut buffer).map_err(Stop::Failed)?;
                // A packet has at most a page, so a read of more than a page shows that there are no packets. A packet
                // that is spliced into another pipe remains a packet. A reader with a smaller buffer would then lose
                // the rest of the packet.
                packets &= got <= page_size();
                got
            };
            if moved == 0 {
                return Ok(used);
            }
            polls = 0;
            many |= moved >= LARGE_PIECE;
            if many && self.nap(moved, self.input) {
                continue;
            }
            many = moved >= LARGE_PIECE;
            strategy = tuner.record_move(moved, Instant::now());
            match strategy {
                IdleStrategy::Pause if moved >= LARGE_PIECE => pause(self.input, LONG_PAUSE),
                IdleStrategy::Pause => {
                    poll_for_input(self.input);
                    pause(self.input, PAUSE);
                    many = true;
                }
                IdleStrategy::Poll if (many || discards) && !packets => polls = MAX_POLLS,
                IdleStrategy::Poll => poll_for_input(self.input),
                IdleStrategy::Sleep | IdleStrategy::Batch => {}
            }
        }
    }

    /// Tries up to `times` times to move bytes from the input, a pipe, to `to` without sleeping. Doesn't use poll(2),
    /// because a pipe that was polled once wakes its reader at every later write, even if it already holds bytes.
    pub(super) fn try_splice(&mut self, to: BorrowedFd<'_>, times: u32) -> io::Result<Option<usize>> {
        for _ in 0..times {
            check_stopped(self.stopped)?;
            self.calls += 1;
            match splice(self.input, None, to, None, self.most, SpliceFlags::NONBLOCK) {
                Err(Errno::AGAIN | Errno::INTR) => thread::yield_now(),
                moved => return Ok(Some(moved?)),
            }
        }
        Ok(None)
    }

    /// Naps if the output's pipe is full and `input` has more bytes, so that the output's reader isn't interrupted.
    /// `moved` bytes were just passed to the output's pipe. Returns whether it napped.
    pub(super) fn nap(&mut self, moved: usize, input: BorrowedFd<'_>) -> bool {
        // The input is not polled: see `poll_for_input`.
        self.nap_if(moved, || ioctl_fionread(input).is_ok_and(|bytes| bytes > 0))
    }

    /// Like `nap`, for a caller that knows that more bytes follow.
    pub(super) fn nap_before_more(&mut self, moved: usize) -> bool {
        self.nap_if(moved, || true)
    }

    fn nap_if(&mut self, moved: usize, more: impl FnOnce() -> bool) -> bool {
        let Some(naps) = &mut self.naps else { return false };
        let output = self.output;
        let nap = naps.record_move(moved, Instant::now(), || {
            let mut full = [PollFd::from_borrowed_fd(output, PollFlags::OUT)];
            poll(&mut full, Some(&Timespec::default())) == Ok(0) && more()
        });
        if let Some(nap) = nap {
            // The nap ends early if the reader is gone. A read doesn't end the nap, because pipes have no WRBAND event.
            // The call to poll(2) shows `pipemark why` which descriptor this process waits for.
            if let Ok(nap) = Timespec::try_from(nap) {
                let _ = poll(&mut [PollFd::from_borrowed_fd(output, PollFlags::WRBAND)], Some(&nap));
            }
        }
        nap.is_some()
    }
}

/// Sleeps while the pipe fills. poll(2) ignores an inverted (negative) descriptor, so this process doesn't join the
/// pipe's wait queue. Joining the queue would slow every write: by a tenth if the writer writes single lines. `pipemark
/// why` still sees which pipe this process waits for.
fn pause(pipe: BorrowedFd<'_>, time: Duration) {
    let mut none = libc::pollfd { fd: !pipe.as_raw_fd(), events: libc::POLLRDBAND, revents: 0 };
    let time = libc::timespec { tv_sec: 0, tv_nsec: time.subsec_nanos().cast_signed().into() };
    // SAFETY: both pointers are valid during the call, and the call writes only through the first.
    unsafe { libc::ppoll(&mut none, 1, &time, ptr::null()) };
}

/// What to do before reading more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IdleStrategy {
    /// Sleep for a fixed time, to let the pipe fill.
    Pause,
    /// Read at once, and sleep in the call if the pipe is empty. The pipe's lock makes reader and writer alternate.
    Sleep,
    /// Poll for a while before sleeping.
    Poll,
    /// Sleep in the call with the policy SCHED_BATCH, so that the writer continues after it has woken this process.
    Batch,
}

/// The strategies on several CPUs. Those that take the least CPU time are first.
const STRATEGIES: &[IdleStrategy] = &[IdleStrategy::Pause, IdleStrategy::Sleep, IdleStrategy::Poll];
/// The strategies on one CPU, in the same order.
const STRATEGIES_ON_ONE_CPU: &[IdleStrategy] = &[IdleStrategy::Batch, IdleStrategy::Poll];

/// Chooses the strategy for a fast writer of small pieces: measures each strategy for one window, and keeps the fastest
/// for a while.
pub(super) struct IdleTuner {
    /// The strategies to choose from. Strategies with pauses are omitted if the pipes are too small.
    strategies: &'static [IdleStrategy],
    one_cpu: bool,
    /// Half of the input pipe's capacity, in bytes.
    half: usize,
    last: Instant,
    paused: bool,
    in_a_row: u32,
    /// When the window began.
    begin: Instant,
    /// The number of bytes moved in the window.
    bytes: usize,
    /// The number of moves in the window.
    moves: u32,
    /// The strategy of this window.
    strategy: IdleStrategy,
    /// The fastest strategy so far.
    best: IdleStrategy,
    /// Measured speeds in bytes per second, by strategy.
    speeds: [f64; IdleStrategy::Batch as usize + 1],
    untried: &'static [IdleStrategy],
    /// Windows left before the other strategies are measured again.
    left: u32,
    /// The value from which `left` counts down.
    stay: u32,
}

impl IdleTuner {
    /// `capacity` is the input pipe's capacity in bytes; `None` excludes strategies with pauses.
    pub(super) fn new(one_cpu: bool, capacity: Option<usize>) -> IdleTuner {
        let now = Instant::now();
        let strategies = match (one_cpu, capacity) {
            (true, _) => STRATEGIES_ON_ONE_CPU,
            (false, Some(_)) => STRATEGIES,
            (false, None) => &STRATEGIES[1..],
        };
        IdleTuner {
            strategies,
            one_cpu,
            half: capacity.unwrap_or(LARGE_PIECE) / 2,
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
            stay: WINDOWS_TO_STAY[0],
        }
    }

    /// Waits with the fastest strategy, after `moved` bytes were read from `pipe`.
    pub(super) fn wait(&mut self, pipe: BorrowedFd<'_>, moved: usize, batch_policy: Option<&mut BatchPolicy>) {
        let strategy = self.record_move(moved, Instant::now());
        if let Some(batch_policy) = batch_policy {
            batch_policy.set(strategy == IdleStrategy::Batch);
        }
        match strategy {
            IdleStrategy::Pause if moved >= LARGE_PIECE => pause(pipe, LONG_PAUSE),
            IdleStrategy::Pause => {
                poll_for_input(pipe);
                pause(pipe, PAUSE);
            }
            IdleStrategy::Poll => poll_for_input(pipe),
            IdleStrategy::Sleep | IdleStrategy::Batch => {}
        }
    }

    /// Records a move after which the input was empty, and returns what to do next.
    fn record_move(&mut self, moved: usize, now: Instant) -> IdleStrategy {
        let took = now - std::mem::replace(&mut self.last, now);
        let (large, paused) = (moved >= LARGE_PIECE, std::mem::take(&mut self.paused));
        let steady =
            if large { moved <= self.half && (PAUSE..=MAX_STEADY_INTERVAL).contains(&took) } else { took < PAUSE };
        self.bytes += moved;
        self.moves += 1;
        if self.one_cpu {
            if now - self.begin >= ONE_CPU_WINDOW {
                // If `Batch` brought half of the pipe's capacity per move, no strategy can be faster. A window with a
                // long gap measures nothing.
                let filled = self.strategy == IdleStrategy::Batch && self.bytes / self.moves as usize >= self.half;
                if filled || took > IDLE {
                    self.begin_window(now);
                } else {
                    self.end_window(now, false);
                }
            }
            return if took > ISOLATED { IdleStrategy::Sleep } else { self.strategy };
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
            return if took > ISOLATED { IdleStrategy::Sleep } else { IdleStrategy::Poll };
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
        self.choose(if large { GAIN_OF_LARGE_PIECES } else { GAIN });
    }

    fn choose(&mut self, gain: f64) {
        let fastest = self.speeds.iter().copied().fold(0.0, f64::max);
        let good = |strategy: &IdleStrategy| self.speeds[*strategy as usize] * gain >= fastest;
        let best = self.strategies.iter().copied().find(good).unwrap_or(IdleStrategy::Poll);
        self.stay = if best == self.best { WINDOWS_TO_STAY[1].min(self.stay * 4) } else { WINDOWS_TO_STAY[0] };
        (self.best, self.strategy, self.left) = (best, best, self.stay);
    }
}

/// Sets the calling thread's scheduling policy to SCHED_BATCH for a while if it was the default. Restores it when
/// dropped.
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
        // Does nothing if other code has changed the policy since.
        self.possible = policy() == from.into() && set_policy(to);
        self.set = set;
    }
}

impl Drop for BatchPolicy {
    fn drop(&mut self) {
        self.set(false);
    }
}

/// Sets the calling thread's scheduling policy. Returns whether that was allowed.
fn set_policy(policy: libc::c_int) -> bool {
    // `struct sched_param`: its only field for these policies is the priority, which is 0.
    let priority: libc::c_int = 0;
    // SAFETY: the pointer points to an int that lives during the call, and the call only reads it.
    unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const priority) == 0 }
}

/// The calling thread's scheduling policy, including its flags.
fn policy() -> libc::c_long {
    // SAFETY: the call accesses no memory of ours. The system call is made directly, because musl's function always
    // returns an error.
    unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of moves followed by a pause, and the share of the time that the pauses take. Moves are `apart` from
    /// each other and bring `moved` bytes, or `gathered` after a pause.
    fn pauses(moves: u32, apart: Duration, moved: usize, gathered: usize) -> (u32, f64) {
        let mut tuner = IdleTuner::new(false, Some(1 << 20));
        let (begin, pause) = (tuner.last, PAUSE * 2);
        let (mut now, mut paused, mut count) = (begin, false, 0);
        for _ in 0..moves {
            now += if paused { apart + pause } else { apart };
            paused = tuner.record_move(if paused { gathered } else { moved }, now) == IdleStrategy::Pause;
            count += u32::from(paused);
        }
        (count, (pause * count).as_secs_f64() / (now - begin).as_secs_f64())
    }

    /// Simulates 100,000 moves of 8,000 bytes. Returns the share of moves that were followed by `IdleStrategy::Sleep`.
    /// A move takes `slept` after that strategy and `polled` after polling.
    fn share_of_sleep(room: bool, slept: Duration, polled: Duration) -> f64 {
        let mut tuner = IdleTuner::new(false, room.then_some(1 << 20));
        let (mut now, mut strategy, mut count) = (tuner.last, IdleStrategy::Poll, 0);
        for _ in 0..100_000 {
            now += match strategy {
                IdleStrategy::Pause => PAUSE * 2,
                IdleStrategy::Sleep => slept,
                IdleStrategy::Poll | IdleStrategy::Batch => polled,
            };
            strategy = tuner.record_move(8000, now);
            count += u32::from(strategy == IdleStrategy::Sleep);
        }
        f64::from(count) / 100_000.0
    }

    #[test]
    fn the_fastest_strategy_is_kept() {
        let [short, long] = [1, 2].map(Duration::from_micros);
        for room in [false, true] {
            let [faster, slower, equal] =
                [(short, long), (long, short), (short, short)].map(|(a, b)| share_of_sleep(room, a, b));
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
            assert_eq!(policy(), libc::SCHED_IDLE.into(), "a policy that other code has set is kept");
            batch_policy.set(true);
            drop(batch_policy);
            assert_eq!(policy(), libc::SCHED_IDLE.into());
        })
        .join()
        .unwrap();
    }

    /// The share of a second on one CPU spent in `IdleStrategy::Batch`, where a move brings `moved` bytes in `took`; in
    /// the other strategy it brings 100 bytes in 20 µs.
    fn batch_share(moved: usize, took: Duration) -> f64 {
        let mut tuner = IdleTuner::new(true, Some(1 << 20));
        let (begin, mut now, mut share) = (tuner.last, tuner.last, Duration::ZERO);
        while now - begin < Duration::from_secs(1) {
            let deferring = tuner.strategy == IdleStrategy::Batch;
            let (moved, took) = if deferring { (moved, took) } else { (100, Duration::from_micros(20)) };
            now += took;
            share += if deferring { took } else { Duration::ZERO };
            tuner.record_move(moved, now);
        }
        share.as_secs_f64()
    }

    #[test]
    fn on_one_cpu_a_writer_continues_until_the_pipe_is_full() {
        // No other strategy is tried, even if the pipe takes long to fill.
        assert!(batch_share(1 << 20, Duration::from_micros(400)) >= 1.0);
        assert!(batch_share(1 << 20, Duration::from_millis(20)) >= 1.0);
    }

    #[test]
    fn on_one_cpu_a_request_is_answered_at_once_under_load() {
        assert!(batch_share(100, Duration::from_millis(4)) < 0.1);
    }

    #[test]
    fn a_fast_writer_of_small_pieces_gets_pauses() {
        let (_, share) = pauses(100_000, PAUSE / 10, 80, 4000);
        assert!(share > 0.9, "{share}");
    }

    #[test]
    fn sporadic_input_gets_no_pauses() {
        assert_eq!(pauses(1000, PAUSE * 2, 80, 4000).0, 0);
    }

    #[test]
    fn isolated_pieces_are_not_followed_by_polling() {
        for one_cpu in [false, true] {
            let mut tuner = IdleTuner::new(one_cpu, Some(1 << 20));
            let mut now = tuner.last;
            for took in [ISOLATED * 5, PAUSE * 10].into_iter().cycle().take(1000) {
                now += took;
                assert_eq!(tuner.record_move(100, now) == IdleStrategy::Sleep, took > ISOLATED, "{one_cpu} {took:?}");
            }
        }
    }

    #[test]
    fn large_moves_are_not_waited_for() {
        assert_eq!(pauses(1000, PAUSE / 10, LARGE_PIECE, LARGE_PIECE).0, 0);
    }

    #[test]
    fn a_slower_writer_gets_longer_pauses() {
        let mut tuner = IdleTuner::new(false, Some(1 << 20));
        let (begin, mut now, mut paused) = (tuner.last, tuner.last, Duration::ZERO);
        let mut strategy = IdleStrategy::Poll;
        for _ in 0..10_000 {
            let writes = if strategy == IdleStrategy::Pause { 3 } else { 1 };
            let took = Duration::from_micros(90) * writes;
            paused += if strategy == IdleStrategy::Pause { took } else { Duration::ZERO };
            now += took;
            strategy = tuner.record_move(LARGE_PIECE * writes as usize, now);
        }
        assert!(paused.div_duration_f64(now - begin) > 0.9);
    }

    #[test]
    fn a_writer_slowed_by_pauses_gets_few_pauses() {
        let (held_up, _) = pauses(100_000, PAUSE / 10, 8000, 16_000);
        assert!((1..100).contains(&held_up), "{held_up}");
    }

    #[test]
    fn a_request_awaiting_its_answer_is_rarely_delayed() {
        let (held_up, _) = pauses(100_000, PAUSE / 10, 80, 80);
        assert!((1..100).contains(&held_up), "{held_up}");
    }
}
