//! Lets other threads observe a running relay and limit its rate.

use std::io;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::FileType;
use rustix::io::{Errno, ioctl_fionread};

use super::limits::{BUFFER, RAISED};
use super::line_count::LineCounter;

/// A handle of a running relay: it reports the bytes moved and limits the rate. All clones refer to the same relay.
///
/// ```
/// use pipeio::relay::{Relay, RelayHandle};
/// # let (reader, source) = std::io::pipe()?;
/// # let (sink, writer) = std::io::pipe()?;
/// # drop(source);
/// let handle = RelayHandle::new();
/// handle.set_limit(std::num::NonZeroU64::new(20 << 20));
/// let watched = handle.clone();
/// let watcher = std::thread::spawn(move || println!("{} bytes until now", watched.written()));
/// Relay::new().run_with(&reader, &writer, &handle)?;
/// # watcher.join().unwrap();
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct RelayHandle(Arc<RelayState>);

#[derive(Debug, Default)]
struct RelayState {
    read: AtomicU64,
    written: AtomicU64,
    /// Bytes per second; 0 for no limit.
    limit: AtomicU64,
    /// Whether the relay was stopped.
    stopped: AtomicBool,
    /// Whether the bytes are counted only at the end.
    only_stops: bool,
    /// The number of threads that are in a call which may move bytes.
    moving: AtomicU32,
    /// `None` if lines aren't counted.
    lines: Option<LineCounter>,
}

/// Counts a thread as moving bytes until it is dropped.
pub(super) struct Moving<'a>(&'a AtomicU32);

impl Drop for Moving<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// How long a relay that ends early waits for the calls in progress.
const STOP_TIME: Duration = Duration::from_millis(100);

impl RelayHandle {
    /// Creates a handle for one relay.
    pub fn new() -> RelayHandle {
        RelayHandle::default()
    }

    /// Creates a handle that can only stop a relay without a [buffer](super::Relay::buffer). Bytes are counted once the
    /// relay has ended, so the relay is as fast as without a handle. The relay ignores a limit.
    pub fn only_stops() -> RelayHandle {
        RelayHandle(Arc::new(RelayState { only_stops: true, ..RelayState::default() }))
    }

    /// Creates a handle that also counts lines: the bytes `separator` among those written. Every byte is then copied by
    /// read and write.
    pub fn counting_lines(separator: u8) -> RelayHandle {
        RelayHandle(Arc::new(RelayState { lines: Some(LineCounter::new(separator)), ..RelayState::default() }))
    }

    /// Lines within the first `bytes` bytes written; `None` if the handle doesn't [count
    /// lines](Self::counting_lines). Exact if no more bytes were written, otherwise at most the lines of 8 KiB too few.
    pub fn lines_within(&self, bytes: u64) -> Option<u64> {
        self.0.lines.as_ref().map(|lines| lines.lines_within(bytes))
    }

    /// Bytes read from the input. Without a [buffer](super::Relay::buffer) this equals [`written`](Self::written) until
    /// the relay ends.
    pub fn read(&self) -> u64 {
        self.0.read.load(Ordering::Acquire).max(self.written())
    }

    /// Bytes written to the output.
    pub fn written(&self) -> u64 {
        self.0.written.load(Ordering::Acquire)
    }

    /// Bytes read and not yet written. Without a buffer this is 0 until the relay ends. If the relay then has failed or
    /// was stopped, it is the rest of the piece that was read last.
    pub fn buffered(&self) -> u64 {
        // Loads `written` first: bytes written between the two loads were read before, so they don't reduce the
        // difference. Without a buffer, `read` stays 0 until the relay ends.
        let written = self.written();
        self.0.read.load(Ordering::Acquire).saturating_sub(written)
    }

    /// The limit in bytes per second; `None` if there is none.
    pub fn limit(&self) -> Option<NonZeroU64> {
        NonZeroU64::new(self.0.limit.load(Ordering::Relaxed))
    }

    /// Limits the relay to `limit` bytes per second; `None` removes the limit. Takes effect within a tenth of a second.
    /// Has no effect on a relay that was started without a limit.
    pub fn set_limit(&self, limit: Option<NonZeroU64>) {
        self.0.limit.store(limit.map_or(0, NonZeroU64::get), Ordering::Relaxed);
    }

    /// Stops the relay for good, for example before the process ends. With a [buffer](super::Relay::buffer), waits for
    /// the calls in progress, for at most a tenth of a second, and returns the number of [bytes read and not yet
    /// written](Self::buffered). From then on the number stays the same, unless a call that had to wait for its peer
    /// continues. Without a buffer, returns 0 at once; [`buffered`](Self::buffered) is correct once the relay has ended.
    ///
    /// [`Relay::run_with`](super::Relay::run_with) returns an error (ECANCELED) when its call in progress ends. A signal
    /// whose handler was set without SA_RESTART ends a call that waits.
    pub fn stop(&self) -> u64 {
        self.0.stopped.store(true, Ordering::SeqCst);
        self.wait_for_moves();
        self.buffered()
    }

    /// Waits until no thread is in a call that may move bytes, for at most [`STOP_TIME`].
    pub(super) fn wait_for_moves(&self) {
        let begin = Instant::now();
        while self.0.moving.load(Ordering::SeqCst) > 0 && begin.elapsed() < STOP_TIME {
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Whether [`stop`](Self::stop) was called.
    pub fn is_stopped(&self) -> bool {
        self.0.stopped.load(Ordering::SeqCst)
    }

    /// The flag that [`stop`](Self::stop) sets. A signal handler may set it too.
    pub fn stop_flag(&self) -> &AtomicBool {
        &self.0.stopped
    }

    pub(super) fn line_counter(&self) -> Option<&LineCounter> {
        self.0.lines.as_ref()
    }

    pub(super) fn is_counted(&self) -> bool {
        !self.0.only_stops
    }

    /// Counts the calling thread as moving bytes, unless the relay was stopped.
    pub(super) fn begin_move(&self) -> io::Result<Moving<'_>> {
        self.0.moving.fetch_add(1, Ordering::SeqCst);
        let moving = Moving(&self.0.moving);
        if self.is_stopped() { Err(Errno::CANCELED.into()) } else { Ok(moving) }
    }

    pub(super) fn set_read(&self, bytes: u64) {
        self.0.read.store(bytes, Ordering::Release);
    }

    pub(super) fn set_written(&self, bytes: u64) {
        self.0.written.store(bytes, Ordering::Release);
    }
}

/// Bytes that were written to a pipe or socket and not yet read from it; `None` if the kernel doesn't report them.
///
/// Exact for pipes. For TCP, the number of bytes that the peer's system hasn't acknowledged (SIOCOUTQ), so bytes that
/// wait in the peer's system count as read. For Unix sockets, the memory in which the kernel holds the bytes: a few
/// percent more than the bytes of large writes, and at least 768 bytes for each small write. 0 once the peer has closed
/// a Unix socket.
///
/// ```
/// use std::io::Write;
/// let (reader, mut writer) = std::io::pipe()?;
/// writer.write_all(b"abc")?;
/// assert_eq!(pipeio::relay::unread(&writer), Some(3));
/// # drop(reader);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn unread(output: impl AsFd) -> Option<u64> {
    let output = output.as_fd();
    match FileType::from_raw_mode(rustix::fs::fstat(output).ok()?.st_mode) {
        FileType::Fifo => ioctl_fionread(output).ok(),
        FileType::Socket => {
            let mut bytes: libc::c_int = 0;
            // SAFETY: SIOCOUTQ has the same number as TIOCOUTQ. It writes one int through the pointer, which points to
            // an int.
            let outcome = unsafe { libc::ioctl(output.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
            (outcome == 0).then(|| bytes.unsigned_abs().into())
        }
        _ => None,
    }
}

/// The longest sleep. A changed limit takes effect after this time at the latest.
const MAX_SLEEP: Duration = Duration::from_millis(100);

/// The throttle divides the bytes of a second into this many pieces. A piece has at least one byte.
const PIECES_A_SECOND: u64 = 50;

/// A sleep takes about 55 µs longer than requested. Where the bucket doesn't hold the tokens of this time, a shorter wait
/// polls the clock instead.
const MIN_SLEEP: Duration = Duration::from_micros(100);

/// Limits a relay to its handle's rate, with a token bucket. One token is one byte. Bytes may pass while tokens aren't
/// negative. Including the last piece, at most as many bytes pass at once as the output's pipe holds.
pub(super) struct Throttle {
    handle: RelayHandle,
    tokens: f64,
    /// The most bytes that pass at once.
    most: f64,
    last: Instant,
    /// The rate at the last call of `after`, in bytes per second.
    rate: f64,
}

impl Throttle {
    /// `capacity` is the capacity of the output's pipe in bytes; `None` if the output is no pipe.
    pub(super) fn new(handle: &RelayHandle, capacity: Option<usize>) -> Throttle {
        let most = capacity.unwrap_or(RAISED) as f64;
        Throttle { handle: handle.clone(), tokens: 0.0, most, last: Instant::now(), rate: 0.0 }
    }

    /// Waits until bytes may pass, and returns how many bytes may pass.
    /// Returns at once if the relay was stopped.
    pub(super) fn wait(&mut self) -> usize {
        loop {
            if self.handle.is_stopped() {
                return 1;
            }
            let Some(rate) = self.handle.limit() else {
                (self.tokens, self.last) = (0.0, Instant::now());
                return BUFFER;
            };
            let left = self.after(rate, Instant::now());
            if left.is_zero() {
                return self.piece(rate);
            }
            match self.may_sleep(rate, left) {
                true => thread::sleep(left.min(MAX_SLEEP)),
                false => thread::yield_now(),
            }
        }
    }

    /// The number of bytes after which the tokens are checked again.
    fn piece(&self, rate: NonZeroU64) -> usize {
        (rate.get() / PIECES_A_SECOND).clamp(1, BUFFER.min(self.most as usize / 2) as u64) as usize
    }

    /// Whether a sleep for `left` keeps the rate. Otherwise tokens would be lost, because the bucket fills before the
    /// sleep ends.
    fn may_sleep(&self, rate: NonZeroU64, left: Duration) -> bool {
        left >= MIN_SLEEP || rate.get() as f64 * MIN_SLEEP.as_secs_f64() <= self.most / 2.0
    }

    /// Adds the tokens earned until `now`. Returns how long to wait from then on; zero if bytes may pass now.
    fn after(&mut self, rate: NonZeroU64, now: Instant) -> Duration {
        // A piece passes even with 0 tokens.
        let most = self.most - self.piece(rate) as f64;
        let rate = rate.get() as f64;
        let passed = now.saturating_duration_since(std::mem::replace(&mut self.last, now));
        let last_rate = std::mem::replace(&mut self.rate, rate);
        if rate < last_rate && self.tokens < 0.0 {
            // The missing tokens are for bytes that passed at the higher rate, so the time to wait stays the same.
            self.tokens *= rate / last_rate;
        }
        self.tokens = most.min(self.tokens + rate * passed.as_secs_f64());
        // At least 1 ns while a fraction of a token is missing, because zero means that bytes may pass.
        Duration::try_from_secs_f64((-self.tokens).max(0.0) / rate)
            .map_or(MAX_SLEEP, |left| if left.is_zero() && self.tokens < 0.0 { Duration::from_nanos(1) } else { left })
    }

    /// Removes the tokens of bytes that have passed.
    pub(super) fn passed(&mut self, bytes: usize) {
        self.tokens -= bytes as f64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates `seconds` at `rate` with a pipe of this capacity, and with an input that has no bytes for `stall`
    /// seconds and always has bytes after that. Returns the number of bytes that pass, and the most bytes by which they
    /// were ahead of the rate.
    fn pass(capacity: usize, rate: u64, seconds: f64, stall: f64) -> (f64, f64) {
        let limit = NonZeroU64::new(rate).unwrap();
        let mut throttle = Throttle::new(&RelayHandle::new(), Some(capacity));
        let begin = throttle.last;
        let mut now = begin + Duration::from_secs_f64(stall);
        let (mut sum, mut ahead) = (0.0, 0.0_f64);
        while (now - begin).as_secs_f64() < seconds {
            let left = throttle.after(limit, now);
            if left.is_zero() {
                let piece = throttle.piece(limit);
                throttle.passed(piece);
                sum += piece as f64;
                ahead = ahead.max(sum - rate as f64 * ((now - begin).as_secs_f64() - stall));
            } else if throttle.may_sleep(limit, left) {
                // The system sleeps a little longer than requested.
                now += left.min(MAX_SLEEP) + Duration::from_micros(60);
            } else {
                now += Duration::from_micros(1);
            }
        }
        (sum, ahead)
    }

    #[test]
    fn the_rate_is_kept() {
        for capacity in [4096, 65536] {
            for rate in [100, 9_999, 1 << 20, 20 << 20, 100 << 20, 300 << 20, 1 << 30] {
                let seconds = if rate <= 1 << 20 { 10.0 } else { 0.2 };
                let (sum, ahead) = pass(capacity, rate, seconds, 0.0);
                let share = sum / (rate as f64 * seconds);
                assert!((0.98..=1.02).contains(&share), "{capacity} {rate}: {share}");
                assert!(ahead <= capacity as f64 + 1.0, "{capacity} {rate}: {ahead}");
            }
        }
    }

    #[test]
    fn a_lower_limit_causes_no_stall() {
        let mut throttle = Throttle::new(&RelayHandle::new(), Some(1 << 20));
        let (now, [high, low]) = (throttle.last, [100 << 20, 1000].map(|rate| NonZeroU64::new(rate).unwrap()));
        assert_eq!(throttle.after(high, now), Duration::ZERO);
        throttle.passed(BUFFER);
        let left = throttle.after(low, now);
        assert!(left > Duration::ZERO && left < Duration::from_millis(20), "{left:?}");
        // A higher limit takes effect at once.
        throttle.passed(20);
        let left = throttle.after(high, now);
        assert!(left < Duration::from_micros(1), "{left:?}");
    }

    #[test]
    fn after_a_stall_at_most_one_pipe_of_bytes_is_sent_at_once() {
        for rate in [1 << 20, 100 << 20] {
            let (sum, ahead) = pass(65536, rate, 10.0, 5.0);
            assert!(ahead <= 65536.0 + 1.0, "{rate}: {ahead}");
            assert!((sum / (5.0 * rate as f64) - 1.0).abs() < 0.02, "{rate}: {sum}");
        }
    }
}
