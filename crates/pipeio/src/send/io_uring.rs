//! io_uring with a registered buffer, one write at a time: the kernel copies each block.
//!
//! One write at a time, because a short write ends a chain of linked ones, and unlinked writes may complete out of order.
//! It is the kernel's same pipe_write underneath: chains of 16 measured no faster than write(2) on one 2-core machine.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use io_uring::{opcode, types};

use super::{Moved, Options, Sender};
use crate::memory::Buffer;
use crate::uring::Ring;

pub(super) struct UringSender {
    // Before the buffer: the ring has to be gone when the memory it has registered goes.
    ring: Ring,
    pipe: OwnedFd,
    buffer: Buffer,
}

impl UringSender {
    pub(super) fn new(pipe: OwnedFd, options: &Options) -> io::Result<Self> {
        let mut buffer = Buffer::new(options.block, options.align, options.pages)?;
        let ring = Ring::new(options.wait)?;
        // SAFETY: the ring is a field before the buffer, so it is dropped first.
        unsafe { ring.register(buffer.bytes_mut())? };
        Ok(UringSender { ring, pipe, buffer })
    }
}

impl Sender for UringSender {
    fn prepare(&mut self, fill: &mut dyn FnMut(u64, &mut [u8])) -> io::Result<()> {
        fill(0, self.buffer.bytes_mut());
        Ok(())
    }

    fn fresh(&mut self, len: usize) -> io::Result<&mut [u8]> {
        Ok(&mut self.buffer.bytes_mut()[..len])
    }

    fn send(&mut self, len: usize) -> io::Result<Moved> {
        let mut moved = Moved::default();
        while moved.bytes < len {
            let rest = &self.buffer.bytes()[moved.bytes..len];
            let size = u32::try_from(rest.len()).unwrap_or(i32::MAX as u32);
            // The offset -1 is the descriptor's own position; a pipe has no other.
            let write =
                opcode::WriteFixed::new(types::Fd(self.pipe.as_raw_fd()), rest.as_ptr(), size, 0).offset(u64::MAX);
            // SAFETY: the memory is registered, lives in `self`, and is not touched until `run` returns.
            moved.bytes += unsafe { self.ring.run(&write.build(), &mut moved.calls)? };
        }
        Ok(moved)
    }
}
