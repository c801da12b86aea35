//! write(2): the kernel copies each block, so one buffer serves for all of them.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::{Moved, Options, Sender};
use crate::memory::Buffer;
use crate::wait::{Direction, Wait};

pub(super) struct WriteSender {
    pipe: OwnedFd,
    buffer: Buffer,
    wait: Wait,
}

impl WriteSender {
    pub(super) fn new(pipe: OwnedFd, options: &Options) -> io::Result<Self> {
        Ok(WriteSender { pipe, buffer: Buffer::new(options.block, options.align, options.pages)?, wait: options.wait })
    }
}

impl Sender for WriteSender {
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
            moved.bytes += self
                .wait
                .retry(self.pipe.as_fd(), Direction::Out, &mut moved.calls, || rustix::io::write(&self.pipe, rest))?;
        }
        Ok(moved)
    }
}
