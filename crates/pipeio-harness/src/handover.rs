//! How one source hands positions in a ring over to one sink through lines of shared memory, and how each waits for the
//! other. What lies at the positions is not its business: a ring in shared memory ([`crate::ring`]) and one in private
//! memory that the sink reads from outside ([`crate::vm`]) are handed over alike.
//!
//! A position counts bytes since the start. Each end keeps its own, publishes it, and never reads it back; it believes
//! the other's only within what the ring can hold, so that a hostile or damaged peer cannot lead it out of bounds.

use std::io;
use std::ops::Deref;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::fence;

use crate::wait::Wait;
use rustix::io::Errno;
use rustix::thread::futex;

use crate::shared::CacheLine;

/// Lines that a handover takes. Positions and states lie two lines apart, because processors fetch lines in pairs.
pub(crate) const LINES: usize = 8;

/// Written by the source at every send: how far it is (word 0).
const HEAD: usize = 0;
/// Written by the sink at every release: how far it is (word 0).
const TAIL: usize = 2;
/// Written when something happens to the source, else in both ends' caches: see `impl Line`.
const SOURCE: usize = 4;
/// The same for the sink.
const SINK: usize = 6;

/// How often a polling end looks before it sleeps: some 10 to 30 µs, about what sleeping and waking cost. That is at most
/// twice as long as the better of both would have taken.
const LOOKS: u32 = 500;

/// What an end tells the other about itself: in the gate, whether it sleeps; and in the first word, whether it is there.
impl CacheLine {
    const TAKEN: u64 = 1;
    const GONE: u64 = 2;

    /// Takes the place of this end.
    fn take(&self, name: &str) -> io::Result<()> {
        if self.words[0].compare_exchange(0, Self::TAKEN, SeqCst, SeqCst).is_err() {
            let message = format!("this ring has, or had, a {name} already; make a new ring");
            return Err(io::Error::new(io::ErrorKind::AddrInUse, message));
        }
        Ok(())
    }

    /// Says that this end will do nothing more.
    fn leave(&self) {
        self.words[0].store(Self::GONE, Release);
    }

    #[inline]
    fn gone(&self) -> bool {
        self.words[0].load(Acquire) == Self::GONE
    }

    /// Wakes this end if it sleeps, after something that it may be waiting for was stored.
    #[inline]
    fn wake(&self, calls: &mut u32) {
        // Either we see that the other sleeps, or it sees what we stored before it falls asleep: both ends store, fence,
        // and then look.
        fence(SeqCst);
        if self.gate.load(Relaxed) != 0 && self.gate.swap(0, Relaxed) != 0 {
            *calls += 1;
            // It can only fail for a bad address or operation, and these are neither.
            let _ = futex::wake(&self.gate, futex::Flags::empty(), 1);
        }
    }

    /// Waits until `ready` has something. Only the end itself may call it.
    #[inline]
    fn wait<T>(&self, wait: Wait, calls: &mut u32, mut ready: impl FnMut() -> io::Result<Option<T>>) -> io::Result<T> {
        let mut looks = 0;
        loop {
            if let Some(value) = ready()? {
                return Ok(value);
            }
            let tired = match wait {
                Wait::Block | Wait::Shared => true,
                Wait::Poll => looks >= LOOKS,
                Wait::Spin => false,
            };
            if !tired {
                looks += 1;
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

fn lying(which: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("the {which}'s position is not within the ring: it is damaged, or the {which} is hostile"),
    )
}

/// The end that publishes.
pub(crate) struct Source<L: Deref<Target = [CacheLine]>> {
    pub(crate) lines: L,
    capacity: u64,
    head: u64,
    /// The sink's position when last read: read again only when there seems to be no room.
    tail: u64,
    wait: Wait,
}

impl<L: Deref<Target = [CacheLine]>> Source<L> {
    /// Takes the source's place in a ring of `capacity` bytes.
    pub(crate) fn new(lines: L, capacity: usize, wait: Wait) -> io::Result<Self> {
        assert!(lines.len() >= LINES && capacity > 0);
        lines[SOURCE].take("sender")?;
        Ok(Source { lines, capacity: capacity as u64, head: 0, tail: 0, wait })
    }

    /// Bytes in the ring.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity as usize
    }

    /// Where the next byte goes.
    pub(crate) fn offset(&self) -> usize {
        (self.head % self.capacity) as usize
    }

    /// Waits until there is room for `want` bytes (at most the capacity), and returns how much there is.
    ///
    /// # Errors
    /// `BrokenPipe` when the sink is gone, `InvalidData` when it lies.
    #[inline]
    pub(crate) fn room(&mut self, want: usize, calls: &mut u32) -> io::Result<usize> {
        let (head, capacity, want) = (self.head, self.capacity, want as u64);
        let room = |tail: u64| (capacity - (head - tail)) as usize;
        let (state, sink, position) = (&self.lines[SOURCE], &self.lines[SINK], &self.lines[TAIL].words[0]);
        if sink.gone() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        if capacity - (head - self.tail) >= want {
            return Ok(room(self.tail));
        }
        self.tail = state.wait(self.wait, calls, || {
            if sink.gone() {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            let tail = position.load(Acquire);
            match head.checked_sub(tail) {
                Some(filled) if filled <= capacity => Ok((capacity - filled >= want).then_some(tail)),
                _ => Err(lying("receiver")),
            }
        })?;
        Ok(room(self.tail))
    }

    /// Hands over the next `bytes`, which were written and for which there is room.
    #[inline]
    pub(crate) fn publish(&mut self, bytes: usize, calls: &mut u32) {
        self.head += bytes as u64;
        self.lines[HEAD].words[0].store(self.head, Release);
        self.lines[SINK].wake(calls);
    }

    /// Says that nothing more will come.
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

/// The end that takes over.
pub(crate) struct Sink<L: Deref<Target = [CacheLine]>> {
    pub(crate) lines: L,
    capacity: u64,
    /// The source's position when last read: read again only when all before it was taken.
    head: u64,
    tail: u64,
    wait: Wait,
}

impl<L: Deref<Target = [CacheLine]>> Sink<L> {
    /// Takes the sink's place in a ring of `capacity` bytes.
    pub(crate) fn new(lines: L, capacity: usize, wait: Wait) -> io::Result<Self> {
        assert!(lines.len() >= LINES && capacity > 0);
        lines[SINK].take("receiver")?;
        Ok(Sink { lines, capacity: capacity as u64, head: 0, tail: 0, wait })
    }

    /// Bytes in the ring.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity as usize
    }

    /// Corrects the capacity, when something is there already.
    ///
    /// # Errors
    /// `InvalidData` when more is there than that.
    pub(crate) fn learn(&mut self, capacity: usize) -> io::Result<()> {
        self.capacity = capacity as u64;
        if self.head - self.tail > self.capacity { Err(lying("sender")) } else { Ok(()) }
    }

    /// Where the next byte is.
    pub(crate) fn offset(&self) -> usize {
        (self.tail % self.capacity) as usize
    }

    /// Waits until there is something, and returns how many bytes; 0 when the source has ended and all was taken.
    ///
    /// # Errors
    /// `InvalidData` when the source lies.
    #[inline]
    pub(crate) fn filled(&mut self, calls: &mut u32) -> io::Result<usize> {
        let (tail, capacity) = (self.tail, self.capacity);
        let (state, source, position) = (&self.lines[SINK], &self.lines[SOURCE], &self.lines[HEAD].words[0]);
        if self.head == tail {
            self.head = state.wait(self.wait, calls, || {
                // In this order: what was published before the end is seen with it.
                let ended = source.gone();
                let head = position.load(Acquire);
                match head.checked_sub(tail) {
                    Some(0) => Ok(ended.then_some(head)),
                    Some(filled) if filled <= capacity => Ok(Some(head)),
                    _ => Err(lying("sender")),
                }
            })?;
        }
        Ok((self.head - tail) as usize)
    }

    /// Gives the room of the next `bytes` back, which were there and are no longer used.
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
