//! Every method of reading from a pipe, behind one trait.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use io_uring::{opcode, types};
use rustix::fs::{Mode, OFlags, fcntl_getfl};
use rustix::pipe::{IoSliceRaw, splice, vmsplice};

use crate::buffer::{Buffer, Bytes, Pages, check_block};
use crate::uring::Ring;
use crate::wait::{Direction, Wait};

/// The system call that receives bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiveCall {
    /// read(2): the kernel copies.
    Read,
    /// splice(2) to /dev/null: the kernel drops references to pages. The bytes are neither copied nor read.
    Splice,
    /// vmsplice(2) to user memory: the kernel copies, as read(2) does.
    Vmsplice,
    /// io_uring, one read into a registered buffer at a time: the kernel copies.
    IoUring,
}

/// A receiver's options.
#[derive(Debug, Clone, Copy)]
pub struct RecvOptions {
    /// The maximum number of bytes that one [`Receiver::recv`] returns, at least 1.
    pub block: usize,
    /// Offset of the buffer from the start of a page, in bytes.
    pub align: usize,
    /// The buffer's kind of pages.
    pub pages: Pages,
    /// What to do when the pipe is empty.
    pub wait: Wait,
}

impl RecvOptions {
    /// Allocates a buffer for one block, with these options.
    ///
    /// # Errors
    /// When the memory can't be allocated.
    pub fn buffer(&self) -> io::Result<Buffer> {
        Buffer::new(self.block, self.align, self.pages)
    }
}

/// The result of one receive.
#[derive(Debug, Clone, Copy)]
pub struct Received<'a> {
    /// The number of bytes received; 0 at the end of the stream.
    pub bytes: usize,
    /// System calls made, including refused attempts and calls that only waited.
    pub calls: u32,
    /// The bytes received; `None` if they were never in this process's memory.
    pub data: Option<Bytes<'a>>,
}

/// Receives bytes from a pipe.
pub trait Receiver {
    /// Waits until there are bytes, and receives at most one block of them. Receives 0 bytes at the end of the stream.
    ///
    /// # Errors
    /// The kernel's error.
    fn recv(&mut self) -> io::Result<Received<'_>>;

    /// Receives blocks without returning their bytes: at most `blocks`, and none after `bytes` bytes have arrived. This
    /// loop is compiled with the receiver's [`recv`](Receiver::recv), for the reason given at
    /// [`send_blocks`](crate::send::Sender::send_blocks).
    ///
    /// # Errors
    /// As [`Receiver::recv`].
    fn recv_blocks(&mut self, blocks: u32, bytes: usize) -> io::Result<ReceivedBlocks> {
        let mut received = ReceivedBlocks::default();
        while !received.ended && received.blocks < blocks && received.bytes < bytes {
            let Received { bytes, calls, .. } = self.recv()?;
            received.bytes += bytes;
            received.calls += calls;
            received.blocks += u32::from(bytes > 0);
            received.ended = bytes == 0;
        }
        Ok(received)
    }
}

/// The result of [`Receiver::recv_blocks`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReceivedBlocks {
    /// The number of bytes received.
    pub bytes: usize,
    /// The number of receives that returned bytes.
    pub blocks: u32,
    /// System calls made, including refused attempts and calls that only waited.
    pub calls: u32,
    /// Whether the stream has ended.
    pub ended: bool,
}

/// Creates a receiver for the read end `pipe`.
///
/// # Errors
/// `Unsupported` or `PermissionDenied` if the method can't be used here. `InvalidInput` for a block of 0 bytes, or for
/// a descriptor that vmsplice can't read from. Another error if the memory can't be allocated.
pub fn open(
    method: ReceiveCall,
    pipe: impl Into<OwnedFd>,
    options: &RecvOptions,
) -> io::Result<Box<dyn Receiver + Send>> {
    let pipe = pipe.into();
    check_block(options.block)?;
    // io_uring polls the descriptor itself, and fails with EAGAIN on a non-blocking descriptor.
    let flags = if method == ReceiveCall::IoUring { Wait::Block } else { options.wait };
    flags.configure(&pipe)?;
    if method == ReceiveCall::Vmsplice && !reads_only(&pipe)? {
        return Err(crate::invalid("vmsplice receives only from the read end of a pipe"));
    }
    let (wait, block) = (options.wait, options.block);
    // vmsplice, and splice before Linux 5.1, ignore O_NONBLOCK on the pipe end. These calls have a flag of their own.
    let flags = wait.splice_flags();
    Ok(match method {
        ReceiveCall::Read => Box::new(read(pipe, options)?),
        ReceiveCall::Vmsplice => buffered(options.buffer()?, move |buffer, calls| {
            wait.retry(pipe.as_fd(), Direction::In, calls, || {
                let slice = IoSliceRaw::from_slice_mut(buffer);
                // SAFETY: the memory is borrowed exclusively, so it may be written. vmsplice(2) on a read end copies,
                // so the pipe keeps no reference to the memory.
                unsafe { vmsplice(&pipe, &[slice], flags) }
            })
        }),
        ReceiveCall::Splice => {
            let null = rustix::fs::open("/dev/null", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
            Box::new(SpliceReceiver { pipe, null, block, wait })
        }
        ReceiveCall::IoUring => {
            let mut buffer = options.buffer()?;
            // SAFETY: the closure owns the ring, and a buffered receiver drops the closure before the buffer.
            let mut ring = unsafe { Ring::new(wait, buffer.bytes_mut()) }?;
            buffered(buffer, move |buffer, calls| {
                let size = u32::try_from(buffer.len()).unwrap_or(i32::MAX as u32);
                // The offset -1 means the descriptor's own position; a pipe has no other.
                let read = opcode::ReadFixed::new(types::Fd(pipe.as_raw_fd()), buffer.as_mut_ptr(), size, 0);
                // SAFETY: the memory is the registered buffer's, and is borrowed exclusively until `run` returns.
                unsafe { ring.run(&read.offset(u64::MAX).build(), calls) }
            })
        }
    })
}

/// [`open`] for [`ReceiveCall::Read`], as a concrete type, for the reason given at [`crate::send::write`].
///
/// # Errors
/// For a block of 0 bytes (`InvalidInput`), or if the memory can't be allocated.
pub fn read(pipe: OwnedFd, options: &RecvOptions) -> io::Result<impl Receiver + Send + use<>> {
    check_block(options.block)?;
    let wait = options.wait;
    wait.configure(&pipe)?;
    let take = move |buffer: &mut [u8], calls: &mut u32| {
        wait.retry(pipe.as_fd(), Direction::In, calls, || rustix::io::read(&pipe, &mut *buffer))
    };
    Ok(BufferedReceiver { take, buffer: options.buffer()? })
}

/// Whether `fd` is open read-only. If so, vmsplice(2) writes to the memory passed to it. Otherwise vmsplice(2) reads
/// the memory and keeps references to its pages.
pub(crate) fn reads_only(fd: impl AsFd) -> io::Result<bool> {
    Ok(fcntl_getfl(fd)? & OFlags::ACCMODE == OFlags::RDONLY)
}

/// Creates a receiver that uses one buffer for all blocks. `take` receives bytes into the start of its slice, returns
/// their number (0 at the end), and counts its system calls. The receiver drops `take` before the buffer.
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
