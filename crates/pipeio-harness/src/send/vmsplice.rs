//! vmsplice(2): the kernel takes references to the pages of the block.
//!
//! Prepared content is never changed, so it may be sent again at any time. Fresh content goes into memory that is
//! dropped, not overwritten, once it has been given away.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::pipe::{IoSliceRaw, SpliceFlags, vmsplice};

use super::{Content, Moved, SendOptions, Sender, only_fresh, only_prepared, prepared_already};
use crate::buffer::{Buffer, BytesMut, GiveAway};
use crate::wait::{Direction, Wait};

/// How much memory fresh content cycles through before it is dropped. Small enough that a dropped huge page comes back
/// from the kernel while it is still in the cache: on a machine with 1 MiB of L2 per core, 2 MiB and 8 MiB moved
/// 11 GiB/s, 64 MiB 7 GiB/s, 256 MiB 0.4 GiB/s.
const REGION: usize = 8 << 20;

enum Memory {
    /// And whether it is.
    Prepared(Buffer, bool),
    Fresh(GiveAway),
}

pub(super) struct VmspliceSender {
    pipe: OwnedFd,
    memory: Memory,
    flags: SpliceFlags,
    wait: Wait,
}

impl VmspliceSender {
    pub(super) fn new(pipe: OwnedFd, options: &SendOptions, flags: SpliceFlags) -> io::Result<Self> {
        let memory = match options.content {
            Content::Prepared => Memory::Prepared(options.buffer()?, false),
            Content::Fresh => Memory::Fresh(GiveAway::new(options.block, options.align, REGION, options.pages)?),
        };
        Ok(VmspliceSender { pipe, memory, flags: flags | options.wait.splice_flags(), wait: options.wait })
    }
}

/// Gives the pages of `bytes` to the pipe.
///
/// # Safety
/// The bytes must not be changed as long as any reader may hold the pages: until they are dropped or unmapped.
unsafe fn give(pipe: BorrowedFd<'_>, bytes: &[u8], flags: SpliceFlags) -> rustix::io::Result<usize> {
    let slice = IoSliceRaw::from_slice(bytes);
    // SAFETY: `pipe` is a write end, so the memory is only read; that it stays unchanged is the caller's promise.
    unsafe { vmsplice(pipe, &[slice], flags) }
}

impl Sender for VmspliceSender {
    fn prepare(&mut self, fill: &mut dyn FnMut(u64, &mut [u8])) -> io::Result<()> {
        match &mut self.memory {
            Memory::Prepared(_, true) => Err(prepared_already()),
            Memory::Prepared(buffer, prepared) => {
                *prepared = true;
                fill(0, buffer.bytes_mut());
                Ok(())
            }
            Memory::Fresh(_) => Err(only_fresh()),
        }
    }

    fn fresh(&mut self, len: usize) -> io::Result<BytesMut<'_>> {
        match &mut self.memory {
            Memory::Fresh(memory) => memory.next(len).map(BytesMut::from),
            Memory::Prepared(..) => Err(only_prepared()),
        }
    }

    fn send(&mut self, len: usize) -> io::Result<Moved> {
        let bytes = match &mut self.memory {
            // From now on it may not change.
            Memory::Prepared(buffer, prepared) => {
                *prepared = true;
                &buffer.bytes()[..len]
            }
            Memory::Fresh(memory) => memory.last(),
        };
        let mut moved = Moved::default();
        while moved.bytes < len {
            let rest = &bytes[moved.bytes..len];
            moved.bytes += self.wait.retry(self.pipe.as_fd(), Direction::Out, &mut moved.calls, || {
                // SAFETY: the pipe's end is for writing; prepared content is written once, before the first send; fresh content lies in memory that
                // GiveAway hands out only once between two drops.
                unsafe { give(self.pipe.as_fd(), rest, self.flags) }
            })?;
        }
        Ok(moved)
    }
}
