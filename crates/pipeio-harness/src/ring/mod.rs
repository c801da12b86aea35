//! A ring in shared memory for one sender and one receiver. Its bytes never enter the kernel.
//!
//! The ring is a memfd without a name: only holders of its descriptor have access, and nothing is left when the last
//! holder is gone. The ring carries a stream of bytes, so the blocks of the two ends need not match. The ends make
//! system calls only to sleep, and to wake an end that sleeps.
//!
//! An end that stops, even by an error or a panic, records that in the ring. The receiver then gets the bytes that were
//! sent and the end of the stream; the sender gets `BrokenPipe`. An end that is killed can't record that, and the
//! kernel doesn't report it either: the process that started both ends must end the other one.

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

/// The default size of a ring in bytes. It is larger than a core's own cache and smaller than the shared cache, so that
/// lines are in the shared cache when the other core reads them. Measured with 1 MiB of L2 per core, 32 MiB of L3 and
/// blocks of 64 KiB, with every byte written and checked in place: 8 GiB/s through a ring of 512 KiB, 12 through 1 MiB,
/// 47 through 2 MiB, 53 through 4 MiB, 63 (60 to 73) through 8 MiB, 58 through 16 MiB and 16 through 64 MiB.
pub const DEFAULT_BYTES: usize = 8 << 20;

/// How an end accesses the ring's memory. The two ends may use different ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RingAccess {
    /// The end has a separate buffer, and copies the bytes once between the buffer and the ring. Like read(2) and
    /// write(2), but without the system call.
    Copy,
    /// Blocks are created or read within the ring. `align` does not apply, and `pages` is only advice, which the sender
    /// gives.
    InPlace,
}

/// Creates a ring of at least `bytes` bytes for blocks of `slot` bytes. It has room for a whole number of blocks, at
/// least two, so that both ends can work at the same time. All its memory is allocated now.
///
/// # Errors
/// If there is no memory or no descriptor for the ring. `InvalidInput` for blocks of 0 bytes.
pub fn create(bytes: usize, slot: usize) -> io::Result<OwnedFd> {
    Map::create(bytes, slot)
}

/// The capacity of the ring `fd` in bytes.
///
/// # Errors
/// When `fd` is not a ring.
pub fn capacity(fd: impl AsFd) -> io::Result<usize> {
    Ok(Map::open(fd)?.capacity())
}

/// Creates the sender of the ring `fd`. A ring can have only one sender during its lifetime.
///
/// With [`RingAccess::InPlace`], prepared content is written once to the whole ring and then only published. So the
/// ring must hold a whole number of such blocks. It does if the block size is the `slot` given to [`create`]. Fresh
/// blocks may have any length up to the ring's. After a shorter block, the next block may extend beyond the ring's end.
/// Such a block is created in separate memory and copied.
///
/// [`Wait::Poll`](crate::wait::Wait::Poll) spins for a short time, then acts as
/// [`Wait::Block`](crate::wait::Wait::Block). `calls` counts futex(2).
///
/// # Errors
/// If `fd` is not a ring, if it already has or had a sender, or if the ring is too small for a block in place.
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

/// Creates the receiver of the ring `fd`. A ring can have only one receiver during its lifetime. With
/// [`RingAccess::InPlace`], each receive frees the room of the bytes that the previous receive returned. Waits and
/// counts calls like [`sender`].
///
/// # Errors
/// If `fd` is not a ring, or if it already has or had a receiver.
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
