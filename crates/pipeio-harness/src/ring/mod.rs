//! A ring in shared memory for one sender and one receiver: bytes that never enter the kernel.
//!
//! The ring is a memfd without a name, so nobody gets in who was not given the descriptor, and nothing is left when the
//! last holder is gone. It carries a stream of bytes: blocks of either end need not match. A system call is made only to
//! sleep and to wake who sleeps.
//!
//! An end that returns from its work, by an error or a panic too, leaves word: the receiver gets what was sent and then
//! the end of the stream, the sender `BrokenPipe`. An end that is killed leaves none, because the kernel tells nobody
//! about shared memory; whoever started both has to end the other.

mod copy;
mod in_place;
mod map;

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use crate::buffer::check_block;
use crate::recv::{self, Receiver};
use crate::send::{self, Sender};

use crate::handover::{Sink, Source};

pub(crate) use in_place::{InPlaceSender, Memory, fits};
use map::Map;

/// How large a ring to make: larger than a core's own cache, so that lines have left it for the shared one before the
/// other core asks for them, and smaller than the shared one. With 1 MiB of L2 per core and 32 MiB of L3, blocks of 64 KiB
/// of which every byte was written and checked in place moved at 8 GiB/s through 512 KiB, 12 through 1 MiB, 47 through
/// 2 MiB, 53 through 4 MiB, 63 (60 to 73) through 8 MiB, 58 through 16 MiB and 16 through 64 MiB.
pub const DEFAULT_BYTES: usize = 8 << 20;

/// Whether an end works on the ring's memory itself. The ends need not agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RingAccess {
    /// The end has a buffer of its own, and one copy is made between it and the ring: as with read(2) and write(2),
    /// without the system call.
    Copy,
    /// Blocks are made and read where they lie in the ring. `align` and `pages` do not apply.
    InPlace,
}

/// Makes a ring of at least `bytes` bytes for blocks of `slot` bytes: a whole number of them, and at least two, so that
/// both ends can work at once. All of its memory is taken now.
///
/// # Errors
/// When the memory or the descriptor cannot be had; `InvalidInput` for blocks of 0 bytes.
pub fn create(bytes: usize, slot: usize) -> io::Result<OwnedFd> {
    Map::create(bytes, slot)
}

/// How many bytes the ring `fd` holds.
///
/// # Errors
/// When `fd` is not a ring.
pub fn capacity(fd: impl AsFd) -> io::Result<usize> {
    Ok(Map::open(fd)?.capacity())
}

/// The sender of the ring `fd`. It can be taken once.
///
/// In place, prepared content is written once to all of the ring and from then on only published; the blocks must fit the
/// ring a whole number of times, as those that it was made for do. Fresh blocks may be of any length up to the ring's;
/// one that would run over the end of the ring, which takes a shorter one before it, is written aside and copied.
///
/// [`Wait::Poll`](crate::wait::Wait::Poll) is a short spin before [`Wait::Block`](crate::wait::Wait::Block). `calls`
/// counts futex(2).
///
/// # Errors
/// When `fd` is not a ring, has a sender already, or is too small for the block in place.
pub fn sender(fd: OwnedFd, options: &send::SendOptions, access: RingAccess) -> io::Result<Box<dyn Sender + Send>> {
    let map = Map::open(&fd)?;
    let capacity = map.capacity();
    check_block(options.block)?;
    Ok(match access {
        RingAccess::Copy => copy::sender(Source::new(map, capacity, options.wait)?, options.buffer()?),
        RingAccess::InPlace => {
            fits(capacity, options)?;
            map.advise(options.pages);
            Box::new(InPlaceSender::new(Source::new(map, capacity, options.wait)?, options))
        }
    })
}

/// The receiver of the ring `fd`. It can be taken once. In place, what a receive hands out goes back to the sender at the
/// next one. How it waits and counts: as [`sender`] does.
///
/// # Errors
/// When `fd` is not a ring, or has a receiver already.
pub fn receiver(fd: OwnedFd, options: &recv::RecvOptions, access: RingAccess) -> io::Result<Box<dyn Receiver + Send>> {
    let map = Map::open(&fd)?;
    let capacity = map.capacity();
    check_block(options.block)?;
    let sink = Sink::new(map, capacity, options.wait)?;
    Ok(match access {
        RingAccess::Copy => copy::receiver(sink, options.buffer()?),
        RingAccess::InPlace => Box::new(in_place::InPlaceReceiver::new(sink, options.block)),
    })
}
