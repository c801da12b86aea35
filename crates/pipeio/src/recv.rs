//! Every way to take bytes out of a pipe, behind one trait.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use io_uring::{opcode, types};
use rustix::fs::{Mode, OFlags};
use rustix::pipe::{IoSliceRaw, SpliceFlags, splice, vmsplice};

use crate::memory::{Buffer, Pages};
use crate::uring::Ring;
use crate::wait::{Direction, Wait};

/// How bytes are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// read(2): the kernel copies.
    Read,
    /// splice(2) to /dev/null: references to pages are dropped, nothing is copied, nothing is seen.
    Splice,
    /// vmsplice(2) to user memory: the kernel copies, as read(2) does.
    Vmsplice,
    /// io_uring, one read into a registered buffer at a time: the kernel copies.
    IoUring,
}

/// How a receiver is set up.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// The most bytes one [`Receiver::recv`] takes, at least 1.
    pub block: usize,
    /// Offset of the buffer from the start of a page, in bytes.
    pub align: usize,
    /// What the buffer is made of.
    pub pages: Pages,
    /// What to do when the pipe is empty.
    pub wait: Wait,
}

/// What one receive took.
#[derive(Debug, Clone, Copy)]
pub struct Received<'a> {
    /// How many bytes; 0 is the end of the stream.
    pub bytes: usize,
    /// System calls that this took, refused attempts and calls that only waited included.
    pub calls: u32,
    /// The bytes, if they are in this process's memory now.
    pub data: Option<&'a [u8]>,
}

/// Takes bytes out of a pipe.
pub trait Receiver {
    /// Takes at least one byte and at most a block, as soon as there is one; 0 bytes are the end of the stream.
    ///
    /// # Errors
    /// Whatever the kernel says.
    fn recv(&mut self) -> io::Result<Received<'_>>;
}

/// A receiver for the read end `pipe`.
///
/// # Errors
/// When the method cannot be used here (`Unsupported`, `PermissionDenied`), for a block of 0 bytes (`InvalidInput`), or
/// when its memory cannot be had.
pub fn open(method: Method, pipe: OwnedFd, options: &Options) -> io::Result<Box<dyn Receiver + Send>> {
    if options.block == 0 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a block has at least one byte"));
    }
    // io_uring arms its own poll, and fails with EAGAIN on a non-blocking descriptor.
    let flags = if method == Method::IoUring { Wait::Block } else { options.wait };
    flags.configure(&pipe)?;
    let buffer = || Buffer::new(options.block, options.align, options.pages);
    Ok(match method {
        Method::Read => Box::new(ReadReceiver { pipe, buffer: buffer()?, wait: options.wait }),
        Method::Vmsplice => Box::new(VmspliceReceiver { pipe, buffer: buffer()?, wait: options.wait }),
        Method::Splice => {
            let null = rustix::fs::open("/dev/null", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
            Box::new(SpliceReceiver { pipe, null, block: options.block, wait: options.wait })
        }
        Method::IoUring => {
            let mut buffer = buffer()?;
            let ring = Ring::new(options.wait)?;
            // SAFETY: the ring is a field before the buffer, so it is dropped first.
            unsafe { ring.register(buffer.bytes_mut())? };
            Box::new(UringReceiver { ring, pipe, buffer })
        }
    })
}

struct ReadReceiver {
    pipe: OwnedFd,
    buffer: Buffer,
    wait: Wait,
}

impl Receiver for ReadReceiver {
    fn recv(&mut self) -> io::Result<Received<'_>> {
        let mut calls = 0;
        let buffer = self.buffer.bytes_mut();
        let bytes = self
            .wait
            .retry(self.pipe.as_fd(), Direction::In, &mut calls, || rustix::io::read(&self.pipe, &mut *buffer))?;
        Ok(Received { bytes, calls, data: Some(&self.buffer.bytes()[..bytes]) })
    }
}

struct VmspliceReceiver {
    pipe: OwnedFd,
    buffer: Buffer,
    wait: Wait,
}

/// Copies from the read end `pipe` into `buffer`.
fn take(pipe: BorrowedFd<'_>, buffer: &mut [u8], flags: SpliceFlags) -> rustix::io::Result<usize> {
    let slice = IoSliceRaw::from_slice_mut(buffer);
    // SAFETY: the memory is borrowed exclusively, so it may be written, and no page of it is kept by the pipe.
    unsafe { vmsplice(pipe, &[slice], flags) }
}

impl Receiver for VmspliceReceiver {
    fn recv(&mut self) -> io::Result<Received<'_>> {
        let mut calls = 0;
        let buffer = self.buffer.bytes_mut();
        let flags = if self.wait.sleeps() { SpliceFlags::empty() } else { SpliceFlags::NONBLOCK };
        let bytes =
            self.wait.retry(self.pipe.as_fd(), Direction::In, &mut calls, || take(self.pipe.as_fd(), buffer, flags))?;
        Ok(Received { bytes, calls, data: Some(&self.buffer.bytes()[..bytes]) })
    }
}

struct SpliceReceiver {
    pipe: OwnedFd,
    null: OwnedFd,
    block: usize,
    wait: Wait,
}

impl Receiver for SpliceReceiver {
    fn recv(&mut self) -> io::Result<Received<'_>> {
        let mut calls = 0;
        let flags = if self.wait.sleeps() { SpliceFlags::empty() } else { SpliceFlags::NONBLOCK };
        let bytes = self.wait.retry(self.pipe.as_fd(), Direction::In, &mut calls, || {
            splice(&self.pipe, None, &self.null, None, self.block, flags)
        })?;
        Ok(Received { bytes, calls, data: None })
    }
}

struct UringReceiver {
    // Before the buffer: the ring has to be gone when the memory it has registered goes.
    ring: Ring,
    pipe: OwnedFd,
    buffer: Buffer,
}

impl Receiver for UringReceiver {
    fn recv(&mut self) -> io::Result<Received<'_>> {
        let mut calls = 0;
        let buffer = self.buffer.bytes_mut();
        let size = u32::try_from(buffer.len()).unwrap_or(i32::MAX as u32);
        // The offset -1 is the descriptor's own position; a pipe has no other.
        let read =
            opcode::ReadFixed::new(types::Fd(self.pipe.as_raw_fd()), buffer.as_mut_ptr(), size, 0).offset(u64::MAX);
        // SAFETY: the memory is registered, lives in `self`, and is not touched until `run` returns.
        let bytes = unsafe { self.ring.run(&read.build(), &mut calls)? };
        Ok(Received { bytes, calls, data: Some(&self.buffer.bytes()[..bytes]) })
    }
}
