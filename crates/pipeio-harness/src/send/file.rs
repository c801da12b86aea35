//! sendfile(2) and splice(2) from a memfd: the kernel takes references to the file's pages.

use std::io;
use std::mem::replace;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{FileType, MemfdFlags, SealFlags, fcntl_add_seals, fstat, memfd_create, sendfile};
use rustix::io::retry_on_intr;
use rustix::pipe::{SpliceFlags, splice};

use super::{Moved, SendOptions, Sender, prepared_already};
use crate::wait::{Direction, Wait};
use pipeio::pipe::Pipe;

/// The minimum length of the file in bytes. The file is sent repeatedly, and fits in the second-level cache of current
/// processors.
const MIN_FILE_BYTES: usize = 1 << 20;

/// The file's length in bytes: a whole number of blocks, so that no block crosses the end of the file.
pub(super) fn period(block: usize) -> usize {
    MIN_FILE_BYTES.next_multiple_of(block)
}

pub(super) enum FileCall {
    Sendfile,
    Splice,
}

pub(super) struct FileSender {
    /// A pipe or a socket.
    link: OwnedFd,
    /// For splice(2) to a socket: a pipe between the file and the socket, because one end of splice(2) must be a pipe.
    /// The pipe is empty after each send.
    between: Option<Pipe>,
    file: OwnedFd,
    call: FileCall,
    period: u64,
    position: u64,
    prepared: bool,
    wait: Wait,
}

impl FileSender {
    pub(super) fn new(link: OwnedFd, options: &SendOptions, call: FileCall) -> io::Result<Self> {
        let is_pipe = FileType::from_raw_mode(fstat(&link)?.st_mode) == FileType::Fifo;
        let between = match call {
            FileCall::Splice if !is_pipe => Some(Pipe::with_capacity(options.block)?),
            _ => None,
        };
        let file = memfd_create("pipemark", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        let period = period(options.block) as u64;
        Ok(FileSender { link, between, file, call, period, position: 0, prepared: false, wait: options.wait })
    }

    /// Moves at most `len` bytes of the file into the pipe, and then all of these bytes to the socket.
    fn splice_through(&self, between: &Pipe, len: usize, calls: &mut u32) -> io::Result<usize> {
        let taken = retry_on_intr(|| {
            *calls += 1;
            let mut position = self.position;
            splice(&self.file, Some(&mut position), &between.writer, None, len, SpliceFlags::NONBLOCK)
        })?;
        let mut left = taken;
        while left > 0 {
            let sent = self.wait.retry(self.link.as_fd(), Direction::Out, calls, || {
                splice(&between.reader, None, &self.link, None, left, self.wait.splice_flags())
            })?;
            if sent == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            left -= sent;
        }
        Ok(taken)
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
        // From now on the file's pages may be in flight. The seals prevent changes through any descriptor.
        fcntl_add_seals(&self.file, SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        Ok(())
    }

    fn send(&mut self, len: usize) -> io::Result<Moved> {
        let mut moved = Moved::default();
        while moved.bytes < len {
            let rest = len - moved.bytes;
            let mut position = self.position;
            let sent = match &self.between {
                Some(between) => self.splice_through(between, rest, &mut moved.calls)?,
                None => self.wait.retry(self.link.as_fd(), Direction::Out, &mut moved.calls, || match self.call {
                    FileCall::Sendfile => sendfile(&self.link, &self.file, Some(&mut position), rest),
                    FileCall::Splice => {
                        splice(&self.file, Some(&mut position), &self.link, None, rest, self.wait.splice_flags())
                    }
                })?,
            };
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
