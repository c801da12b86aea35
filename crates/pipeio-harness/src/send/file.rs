//! sendfile(2) and splice(2) from a memfd: the kernel takes references to the file's pages.

use std::io;
use std::mem::replace;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create, sendfile};
use rustix::pipe::splice;

use super::{Moved, SendOptions, Sender, prepared_already};
use crate::wait::{Direction, Wait};

/// The minimum length of the file in bytes. The file is sent repeatedly, and stays in the second-level cache of current
/// processors.
const MIN_FILE_BYTES: usize = 1 << 20;

/// The file's length in bytes: a whole number of blocks, so that no block crosses its end.
pub(super) fn period(block: usize) -> usize {
    MIN_FILE_BYTES.next_multiple_of(block)
}

pub(super) enum FileCall {
    Sendfile,
    Splice,
}

pub(super) struct FileSender {
    pipe: OwnedFd,
    file: OwnedFd,
    call: FileCall,
    period: u64,
    position: u64,
    prepared: bool,
    wait: Wait,
}

impl FileSender {
    pub(super) fn new(pipe: OwnedFd, options: &SendOptions, call: FileCall) -> io::Result<Self> {
        let file = memfd_create("pipemark", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        let period = period(options.block) as u64;
        Ok(FileSender { pipe, file, call, period, position: 0, prepared: false, wait: options.wait })
    }
}

impl Sender for FileSender {
    fn prepare(&mut self, fill: &mut dyn FnMut(u64, &mut [u8])) -> io::Result<()> {
        if replace(&mut self.prepared, true) {
            return Err(prepared_already());
        }
        let mut piece = vec![0; 64 << 10];
        let mut position = 0;
        while position < self.period {
            let len = piece.len().min(usize::try_from(self.period - position).unwrap_or(usize::MAX));
            fill(position, &mut piece[..len]);
            let mut written = 0;
            while written < len {
                written += rustix::io::pwrite(&self.file, &piece[written..len], position + written as u64)?;
            }
            position += len as u64;
        }
        // The file's pages will be in flight. The seals prevent changes through any descriptor.
        fcntl_add_seals(&self.file, SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        Ok(())
    }

    fn send(&mut self, len: usize) -> io::Result<Moved> {
        let mut moved = Moved::default();
        while moved.bytes < len {
            let rest = len - moved.bytes;
            let mut position = self.position;
            let sent = self.wait.retry(self.pipe.as_fd(), Direction::Out, &mut moved.calls, || match self.call {
                FileCall::Sendfile => sendfile(&self.pipe, &self.file, Some(&mut position), rest),
                FileCall::Splice => {
                    splice(&self.file, Some(&mut position), &self.pipe, None, rest, self.wait.splice_flags())
                }
            })?;
            if sent == 0 {
                return Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "the file to send ended early; was it prepared?",
                ));
            }
            moved.bytes += sent;
            self.position = (self.position + sent as u64) % self.period;
        }
        Ok(moved)
    }
}
