//! io_uring with a registered buffer, one write at a time: the kernel copies each block.
//!
//! Writes are made one at a time, because a short write ends a chain of linked writes, and unlinked writes may complete
//! out of order. The kernel uses the same function, pipe_write, as for write(2). On a machine with two cores, chains of
//! 16 writes were no faster than write(2).

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use io_uring::{opcode, types};

use super::{SendOptions, Sender, buffered};
use crate::uring::Ring;

pub(super) fn sender(pipe: OwnedFd, options: &SendOptions) -> io::Result<Box<dyn Sender + Send>> {
    let mut buffer = options.buffer()?;
    // SAFETY: the closure owns the ring, and a buffered sender drops the closure before the buffer.
    let mut ring = unsafe { Ring::new(options.wait, buffer.bytes_mut()) }?;
    Ok(buffered(buffer, move |bytes, calls| {
        let size = u32::try_from(bytes.len()).unwrap_or(i32::MAX as u32);
        // The offset -1 means the descriptor's own position; a pipe has no other.
        let write = opcode::WriteFixed::new(types::Fd(pipe.as_raw_fd()), bytes.as_ptr(), size, 0).offset(u64::MAX);
        // SAFETY: the memory is the registered buffer's, and is borrowed until `run` returns.
        unsafe { ring.run(&write.build(), calls) }
    }))
}
