//! One source passes positions in a ring to one sink through cache lines of shared memory, and each waits for the
//! other. The ring's bytes may be in shared memory ([`crate::ring`]), or in private memory of the source, which the
//! sink's process reads with a system call ([`crate::vm`]).
//!
//! A position counts bytes since the start. Each end keeps its own position, publishes it, and never reads it back. It
//! accepts the other end's position only within the limits of the ring, so that a hostile or faulty peer can't cause an
//! access out of bounds.

use std::io;
use std::ops::Deref;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::fence;

use crate::wait::Wait;
use rustix::io::Errno;
use rustix::thread::futex;

use crate::shared::CacheLine;

/// The number of lines that a handover needs. Positions and states are two lines apart, because processors fetch lines
/// in pairs.
pub(crate) const LINES: usize = 8;

/// The line whose word 0 is the source's position, written at every send.
const HEAD: usize = 0;
/// The line whose word 0 is the sink's position, written at every release.
const TAIL: usize = 2;
/// The line of the source's state (see `impl CacheLine`). It is written only when the state changes, so between changes
/// both ends have the line in their caches.
const SOURCE: usize = 4;
/// The line of the sink's state.
const SINK: usize = 6;

/// The number of checks that a polling end makes before it sleeps. These checks take 10 to 30 µs, about the cost of
/// sleeping and waking. So a wait costs at most about twice the cheaper of polling and sleeping.
const MAX_SPINS: u32 = 500;

/// An end's state, as the other end sees it. The gate tells whether the end sleeps, and the first word whether it is
/// present.
impl CacheLine {
    const TAKEN: u64 = 1;
    const GONE: u64 = 2;

    /// Claims the role of this end. That is possible only once per ring.
    fn take(&self, name: &str) -> io::Result<()> {
        if self.words[0].compare_exchange(0, Self::TAKEN, SeqCst, SeqCst).is_err() {
            let message = format!("this ring already has or had a {name}; create a new ring");
            return Err(io::Error::new(io::ErrorKind::AddrInUse, message));
        }
        Ok(())
    }

    /// Records that this end will do nothing more.
    fn leave(&self) {
        self.words[0].store(Self::GONE, Release);
    }

    #[inline]
    fn peer_left(&self) -> bool {
        self.words[0].load(Acquire) == Self::GONE
    }

    /// Wakes this end if it sleeps. Called after a store that this end may wait for.
    #[inline]
    fn wake(&self, calls: &mut u32) {
        // Both ends store, fence and then load. So either we see that the other end sleeps, or it sees our store before
        // it falls asleep.
        fence(SeqCst);
        if self.gate.load(Relaxed) != 0 && self.gate.swap(0, Relaxed) != 0 {
            *calls += 1;
            // The call fails only for a bad address or operation, and both are valid here.
            let _ = futex::wake(&self.gate, futex::Flags::empty(), 1);
        }
    }

    /// Waits until `ready` returns a value. Only the end itself may call it.
    #[inline]
    fn wait<T>(&self, wait: Wait, calls: &mut u32, mut ready: impl FnMut() -> io::Result<Option<T>>) -> io::Result<T> {
        let mut spins = 0;
        loop {
            if let Some(value) = ready()? {
                return Ok(value);
            }
            let must_sleep = match wait {
                Wait::Block | Wait::Shared => true,
                Wait::Poll => spins >= MAX_SPINS,
                Wait::Spin => false,
            };
            if !must_sleep {
                spins += 1;
                std::hint::spin_loop();
                continue;
            }
            self.gate.store(1, Relaxed);
            fence(SeqCst);
            let value = ready();
            if let Ok(None) = value {
                *calls += 1;
                match futex::wait(&self.gate, futex::Flags::empty(), 1, None) {
                    Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            self.gate.store(0, Relaxed);
            if let Some(value) = value? {
                return Ok(value);
            }
        }
    }
}

fn position_error(which: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("the {which}'s position is outside of the ring: the ring is damaged, or the {which} is hostile"),
    )
}

/// The end that publishes bytes.
pub(crate) struct Source<L: Deref<Target = [CacheLine]>> {
    pub(crate) lines: L,
    capacity: u64,
    head: u64,
    /// The sink's position when it was last read, in bytes. It is read again only if there seems to be no room.
    tail: u64,
    wait: Wait,
}

impl<L: Deref<Target = [CacheLine]>> Source<L> {
    /// Claims the role of the source in a ring of `capacity` bytes.
    pub(crate) fn new(lines: L, capacity: usize, wait: Wait) -> io::Result<Self> {
        assert!(lines.len() >= LINES && capacity > 0);
        lines[SOURCE].take("sender")?;
        Ok(Source { lines, capacity: capacity as u64, head: 0, tail: 0, wait })
    }

    /// The size of the ring in bytes.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity as usize
    }

    /// The next byte's offset in the ring.
    pub(crate) fn offset(&self) -> usize {
        (self.head % self.capacity) as usize
    }

    /// Waits until there is room for `want` bytes (at most the capacity), and returns the number of bytes for which
    /// there is room.
    ///
    /// # Errors
    /// `BrokenPipe` if the sink is gone, `InvalidData` if its position isn't within the ring.
    #[inline]
    pub(crate) fn room(&mut self, want: usize, calls: &mut u32) -> io::Result<usize> {
        let (head, capacity, want) = (self.head, self.capacity, want as u64);
        let room = |tail: u64| (capacity - (head - tail)) as usize;
        let (state, sink, position) = (&self.lines[SOURCE], &self.lines[SINK], &self.lines[TAIL].words[0]);
        if sink.peer_left() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        if capacity - (head - self.tail) >= want {
            return Ok(room(self.tail));
        }
        self.tail = state.wait(self.wait, calls, || {
            if sink.peer_left() {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            let tail = position.load(Acquire);
            match head.checked_sub(tail) {
                Some(filled) if filled <= capacity => Ok((capacity - filled >= want).then_some(tail)),
                _ => Err(position_error("receiver")),
            }
        })?;
        Ok(room(self.tail))
    }

    /// Passes the next `bytes` bytes to the sink. They must already be in the ring.
    #[inline]
    pub(crate) fn publish(&mut self, bytes: usize, calls: &mut u32) {
        self.head += bytes as u64;
        self.lines[HEAD].words[0].store(self.head, Release);
        self.lines[SINK].wake(calls);
    }

    /// Records the end of the stream. Returns the number of system calls made.
    pub(crate) fn end(&mut self) -> u32 {
        let mut calls = 0;
        self.lines[SOURCE].leave();
        self.lines[SINK].wake(&mut calls);
        calls
    }
}

impl<L: Deref<Target = [CacheLine]>> Drop for Source<L> {
    fn drop(&mut self) {
        self.end();
    }
}

/// The end that receives bytes.
pub(crate) struct Sink<L: Deref<Target = [CacheLine]>> {
    pub(crate) lines: L,
    capacity: u64,
    /// The source's position when it was last read, in bytes. It is read again only after all bytes before this
    /// position were taken.
    head: u64,
    tail: u64,
    wait: Wait,
}

impl<L: Deref<Target = [CacheLine]>> Sink<L> {
    /// Claims the role of the sink in a ring of `capacity` bytes.
    pub(crate) fn new(lines: L, capacity: usize, wait: Wait) -> io::Result<Self> {
        assert!(lines.len() >= LINES && capacity > 0);
        lines[SINK].take("receiver")?;
        Ok(Sink { lines, capacity: capacity as u64, head: 0, tail: 0, wait })
    }

    /// The size of the ring in bytes.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity as usize
    }

    /// Sets the capacity, even after bytes have been published.
    ///
    /// # Errors
    /// `InvalidData` if more bytes than the capacity have been published.
    pub(crate) fn set_capacity(&mut self, capacity: usize) -> io::Result<()> {
        self.capacity = capacity as u64;
        if self.head - self.tail > self.capacity { Err(position_error("sender")) } else { Ok(()) }
    }

    /// The next byte's offset in the ring.
    pub(crate) fn offset(&self) -> usize {
        (self.tail % self.capacity) as usize
    }

    /// Waits until there are bytes, and returns their number; 0 once the source has ended and all bytes were taken.
    ///
    /// # Errors
    /// `InvalidData` if the source's position isn't within the ring.
    #[inline]
    pub(crate) fn filled(&mut self, calls: &mut u32) -> io::Result<usize> {
        let (tail, capacity) = (self.tail, self.capacity);
        let (state, source, position) = (&self.lines[SINK], &self.lines[SOURCE], &self.lines[HEAD].words[0]);
        if self.head == tail {
            self.head = state.wait(self.wait, calls, || {
                // First check whether the peer has left, then load its position. An end that sees that the peer has
                // left also sees everything that the peer published.
                let ended = source.peer_left();
                let head = position.load(Acquire);
                match head.checked_sub(tail) {
                    Some(0) => Ok(ended.then_some(head)),
                    Some(filled) if filled <= capacity => Ok(Some(head)),
                    _ => Err(position_error("sender")),
                }
            })?;
        }
        Ok((self.head - tail) as usize)
    }

    /// Frees the next `bytes` bytes of the ring for the source. The sink must not use them any more.
    #[inline]
    pub(crate) fn release(&mut self, bytes: usize, calls: &mut u32) {
        self.tail += bytes as u64;
        self.lines[TAIL].words[0].store(self.tail, Release);
        self.lines[SOURCE].wake(calls);
    }
}

impl<L: Deref<Target = [CacheLine]>> Drop for Sink<L> {
    fn drop(&mut self) {
        self.lines[SINK].leave();
        self.lines[SOURCE].wake(&mut 0);
    }
}
