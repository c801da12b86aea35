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

use super::{BUFFER, RAISED};

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
pub struct RelayHandle(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    read: AtomicU64,
    written: AtomicU64,
    /// Bytes per second; 0 for no limit.
    limit: AtomicU64,
    /// Whether the relay was stopped.
    stopped: AtomicBool,
    /// The number of threads that are in a call which may move bytes.
    moving: AtomicU32,
}

/// Counts a thread as moving bytes until it is dropped.
pub(super) struct Moving<'a>(&'a AtomicU32);

impl Drop for Moving<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// How long [`RelayHandle::stop`] waits for the calls in progress.
const STOP_TIME: Duration = Duration::from_millis(100);

impl RelayHandle {
    /// Creates a handle for one relay.
    pub fn new() -> RelayHandle {
        RelayHandle::default()
    }

    /// Bytes read from the input. Without a [buffer](super::Relay::buffer) this equals [`written`](Self::written).
    pub fn read(&self) -> u64 {
        self.0.read.load(Ordering::Acquire).max(self.written())
    }

    /// Bytes written to the output.
    pub fn written(&self) -> u64 {
        self.0.written.load(Ordering::Acquire)
    }

    /// Bytes read and not yet written.
    pub fn buffered(&self) -> u64 {
        // Loads `written` first: bytes written between the two loads were read before, so the difference is never
        // negative.
        let written = self.written();
        self.read() - written
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

    /// Stops the relay for good, for example before the process ends. Waits for the calls in progress, for at most a
    /// tenth of a second, and returns the number of [bytes read and not yet written](Self::buffered). From then on the
    /// number stays the same, unless a call that had to wait for its peer continues.
    ///
    /// [`Relay::run_with`](super::Relay::run_with) returns an error (ECANCELED) when its call in progress ends.
    pub fn stop(&self) -> u64 {
        self.0.stopped.store(true, Ordering::SeqCst);
        let begin = Instant::now();
        while self.0.moving.load(Ordering::SeqCst) > 0 && begin.elapsed() < STOP_TIME {
            thread::sleep(Duration::from_millis(1));
        }
        self.buffered()
    }

    /// Whether [`stop`](Self::stop) was called.
    pub fn is_stopped(&self) -> bool {
        self.0.stopped.load(Ordering::SeqCst)
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
/// Exact for pipes. For TCP, the number of bytes that the peer's system hasn't acknowledged (SIOCOUTQ). For Unix
/// sockets, the memory in which the kernel holds the bytes, which is a few percent larger than the number of bytes.
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

/// Limits a relay to its handle's rate, with a token bucket. One token is one byte, and the bucket holds at most as
/// many tokens as the output's pipe holds bytes.
pub(super) struct Throttle {
    handle: RelayHandle,
    tokens: f64,
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
    pub(super) fn wait(&mut self) -> usize {
        loop {
            let Some(rate) = self.handle.limit() else {
                (self.tokens, self.last) = (0.0, Instant::now());
                return BUFFER;
            };
            let left = self.after(rate, Instant::now());
            if left.is_zero() {
                let piece = (rate.get() / PIECES_A_SECOND).clamp(1, BUFFER as u64) as usize;
                return piece.min(self.most as usize);
            }
            thread::sleep(left.min(MAX_SLEEP));
        }
    }

    /// Adds the tokens earned until `now`. Returns how long to wait from then on; zero if bytes may pass now.
    fn after(&mut self, rate: NonZeroU64, now: Instant) -> Duration {
        let rate = rate.get() as f64;
        let passed = now.saturating_duration_since(std::mem::replace(&mut self.last, now));
        let last_rate = std::mem::replace(&mut self.rate, rate);
        if rate < last_rate && self.tokens < 0.0 {
            // The missing tokens are for bytes that passed at the higher rate, so the time to wait stays the same.
            self.tokens *= rate / last_rate;
        }
        self.tokens = self.most.min(self.tokens + rate * passed.as_secs_f64());
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

    /// Simulates `seconds` at `rate`, with an input that has no bytes for `stall` seconds and always has bytes after
    /// that. Returns the number of bytes that pass, and the most bytes by which they were ahead of the rate.
    fn pass(rate: u64, seconds: f64, stall: f64) -> (f64, f64) {
        let handle = RelayHandle::new();
        handle.set_limit(NonZeroU64::new(rate));
        let mut throttle = Throttle::new(&handle, Some(65536));
        let begin = throttle.last;
        let mut now = begin + Duration::from_secs_f64(stall);
        let (mut sum, mut ahead) = (0.0, 0.0_f64);
        while (now - begin).as_secs_f64() < seconds {
            let left = throttle.after(NonZeroU64::new(rate).unwrap(), now);
            if left.is_zero() {
                let piece = (rate / PIECES_A_SECOND).clamp(1, 65536) as usize;
                throttle.passed(piece);
                sum += piece as f64;
                ahead = ahead.max(sum - rate as f64 * ((now - begin).as_secs_f64() - stall));
            } else {
                // The system sleeps a little longer than requested.
                now += left.min(MAX_SLEEP) + Duration::from_micros(60);
            }
        }
        (sum, ahead)
    }

    #[test]
    fn the_rate_is_kept() {
        for rate in [100, 9_999, 1 << 20, 20 << 20, 300 << 20] {
            let (sum, ahead) = pass(rate, 10.0, 0.0);
            let share = sum / (rate as f64 * 10.0);
            assert!((0.98..=1.02).contains(&share), "{rate}: {share}");
            assert!(ahead <= 65536.0 * 2.0, "{rate}: {ahead}");
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
        let (sum, ahead) = pass(1 << 20, 10.0, 5.0);
        assert!(ahead <= 65536.0 + f64::from(1 << 20) / PIECES_A_SECOND as f64 + 1.0, "{ahead}");
        assert!((sum / (5.0 * f64::from(1 << 20)) - 1.0).abs() < 0.02, "{sum}");
    }
}
