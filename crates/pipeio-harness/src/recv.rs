//! Every way to take bytes out of a pipe, behind one trait.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use io_uring::{opcode, types};
use rustix::fs::{Mode, OFlags, fcntl_getfl};
use rustix::pipe::{IoSliceRaw, splice, vmsplice};

use crate::buffer::{Buffer, Bytes, Pages, check_block};
use crate::uring::Ring;
use crate::wait::{Direction, Wait};

/// How bytes are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiveCall {
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
pub struct RecvOptions {
    /// The most bytes one [`Receiver::recv`] takes, at least 1.
    pub block: usize,
    /// Offset of the buffer from the start of a page, in bytes.
    pub align: usize,
    /// What the buffer is made of.
    pub pages: Pages,
    /// What to do when the pipe is empty.
    pub wait: Wait,
}

impl RecvOptions {
    /// A buffer for one block.
    ///
    /// # Errors
    /// When the memory cannot be had.
    pub fn buffer(&self) -> io::Result<Buffer> {
        Buffer::new(self.block, self.align, self.pages)
    }
}

/// What one receive took.
#[derive(Debug, Clone, Copy)]
pub struct Received<'a> {
    /// How many bytes; 0 is the end of the stream.
    pub bytes: usize,
    /// System calls that this took, refused attempts and calls that only waited included.
    pub calls: u32,
    /// The bytes, if they are in this process's memory now.
    pub data: Option<Bytes<'a>>,
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
pub fn open(
    method: ReceiveCall,
    pipe: impl Into<OwnedFd>,
    options: &RecvOptions,
) -> io::Result<Box<dyn Receiver + Send>> {
    let pipe = pipe.into();
    check_block(options.block)?;
    // io_uring arms its own poll, and fails with EAGAIN on a non-blocking descriptor.
    let flags = if method == ReceiveCall::IoUring { Wait::Block } else { options.wait };
    flags.configure(&pipe)?;
    if method == ReceiveCall::Vmsplice && !reads_only(&pipe)? {
        return Err(crate::invalid("vmsplice takes bytes out of a pipe's read end only"));
    }
    let (wait, block) = (options.wait, options.block);
    // A pipe end that is non-blocking does not make splice and vmsplice so: the calls have a flag of their own.
    let flags = wait.splice_flags();
    Ok(match method {
        ReceiveCall::Read => Box::new(read(pipe, options)?),
        ReceiveCall::Vmsplice => buffered(options.buffer()?, move |buffer, calls| {
            wait.retry(pipe.as_fd(), Direction::In, calls, || {
                let slice = IoSliceRaw::from_slice_mut(buffer);
                // SAFETY: the memory is borrowed exclusively, so it may be written, and no page of it is kept by the pipe.
                unsafe { vmsplice(&pipe, &[slice], flags) }
            })
        }),
        ReceiveCall::Splice => {
            let null = rustix::fs::open("/dev/null", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
            Box::new(SpliceReceiver { pipe, null, block, wait })
        }
        ReceiveCall::IoUring => {
            let mut buffer = options.buffer()?;
            // SAFETY: a buffered receiver drops the ring, with what takes, before the buffer.
            let mut ring = unsafe { Ring::new(wait, buffer.bytes_mut()) }?;
            buffered(buffer, move |buffer, calls| {
                let size = u32::try_from(buffer.len()).unwrap_or(i32::MAX as u32);
                // The offset -1 is the descriptor's own position; a pipe has no other.
                let read = opcode::ReadFixed::new(types::Fd(pipe.as_raw_fd()), buffer.as_mut_ptr(), size, 0);
                // SAFETY: the memory is the registered buffer's, borrowed exclusively until `run` returns.
                unsafe { ring.run(&read.offset(u64::MAX).build(), calls) }
            })
        }
    })
}

/// What [`open`] gives for [`ReceiveCall::Read`], by its type; see [`crate::send::write`].
///
/// # Errors
/// For a block of 0 bytes (`InvalidInput`), or when the memory cannot be had.
pub fn read(pipe: OwnedFd, options: &RecvOptions) -> io::Result<impl Receiver + Send + use<>> {
    check_block(options.block)?;
    let wait = options.wait;
    wait.configure(&pipe)?;
    let take = move |buffer: &mut [u8], calls: &mut u32| {
        wait.retry(pipe.as_fd(), Direction::In, calls, || rustix::io::read(&pipe, &mut *buffer))
    };
    Ok(BufferedReceiver { take, buffer: options.buffer()? })
}

/// Whether `fd` was opened for reading only. Which way vmsplice(2) moves bytes depends on that: on a read end it writes to
/// the memory that it is given, on any other it reads it and keeps its pages.
pub(crate) fn reads_only(fd: impl AsFd) -> io::Result<bool> {
    Ok(fcntl_getfl(fd)? & OFlags::ACCMODE == OFlags::RDONLY)
}

/// A receiver that uses one buffer for all blocks. `take` fills the first of the bytes it is given, says how many, 0 at the
/// end, and counts its system calls; it is dropped before the buffer.
pub fn buffered(
    buffer: Buffer,
    take: impl FnMut(&mut [u8], &mut u32) -> io::Result<usize> + Send + 'static,
) -> Box<dyn Receiver + Send> {
    Box::new(BufferedReceiver { take, buffer })
}

struct BufferedReceiver<F> {
    take: F,
    buffer: Buffer,
}

impl<F: FnMut(&mut [u8], &mut u32) -> io::Result<usize>> Receiver for BufferedReceiver<F> {
    #[inline(always)]
    fn recv(&mut self) -> io::Result<Received<'_>> {
        let mut calls = 0;
        let bytes = (self.take)(self.buffer.bytes_mut(), &mut calls)?;
        Ok(Received { bytes, calls, data: Some(self.buffer.bytes()[..bytes].into()) })
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
        let bytes = self.wait.retry(self.pipe.as_fd(), Direction::In, &mut calls, || {
            splice(&self.pipe, None, &self.null, None, self.block, self.wait.splice_flags())
        })?;
        Ok(Received { bytes, calls, data: None })
    }
}
