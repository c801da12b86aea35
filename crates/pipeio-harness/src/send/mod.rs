//! Every method of writing to a pipe, behind one trait.
//!
//! [`SendCall::Write`] and [`SendCall::IoUring`] copy bytes; the other calls move references to pages. A page given to
//! a pipe may still be in flight long after it left that pipe, because a reader may pass it on with splice(2) or
//! tee(2). So no sender here writes to memory that it has given away. See [`crate::buffer::GiftMemory`].

mod file;
mod io_uring;
mod tee;
mod vmsplice;

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::pipe::SpliceFlags;

use crate::buffer::{Buffer, BytesMut, Pages, check_block};
use crate::recv::reads_only;
use crate::wait::{Direction, Wait};

/// How bytes are passed to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendCall {
    /// write(2).
    Write,
    /// vmsplice(2).
    Vmsplice,
    /// vmsplice(2) with SPLICE_F_GIFT: a promise not to change the pages, which current kernels ignore.
    VmspliceGift,
    /// sendfile(2) from a memfd.
    Sendfile,
    /// splice(2) from a memfd. If the link is a socket, through a private pipe.
    Splice,
    /// tee(2) from a pipe that stays full.
    Tee,
    /// io_uring, one write from a registered buffer at a time.
    IoUring,
}

/// Whether a sender's content changes from block to block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockContent {
    /// The same prepared bytes over and over.
    Prepared,
    /// Bytes newly written for each block.
    Fresh,
}

/// A sender's options.
#[derive(Debug, Clone, Copy)]
pub struct SendOptions {
    /// Bytes per [`Sender::send`], at least 1.
    pub block: usize,
    /// Offset of the buffer from the start of a page, in bytes.
    pub align: usize,
    /// The kind of pages that the buffer is made of.
    pub pages: Pages,
    /// What to do when the pipe is full.
    pub wait: Wait,
    /// Whether the bytes change from block to block.
    pub content: BlockContent,
}

impl SendOptions {
    /// A buffer for one block, with these options.
    ///
    /// # Errors
    /// When the memory can't be allocated.
    pub fn buffer(&self) -> io::Result<Buffer> {
        Buffer::new(self.block, self.align, self.pages)
    }
}

/// The result of one send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moved {
    /// Bytes that were moved.
    pub bytes: usize,
    /// System calls made, including refused attempts and calls that only waited.
    pub calls: u32,
}

/// Writes blocks to a pipe or another link.
pub trait Sender {
    /// Sets the content that is sent repeatedly. Calls `fill` for each piece of the first [`period`] bytes, in order,
    /// with the piece's position and memory. Call this before the first [`Sender::send`].
    ///
    /// # Errors
    /// If the memory can't be allocated, or the sender sends fresh content. A sender that gives pages away also returns
    /// an error if it is prepared twice or after the first send, because that would change bytes in flight.
    fn prepare(&mut self, fill: &mut dyn FnMut(u64, &mut [u8])) -> io::Result<()>;

    /// Returns memory for the `len` bytes that the next [`Sender::send`] sends. `len` is at most the block size. No
    /// byte of the memory is in flight. Its content is unspecified: write all of it.
    ///
    /// # Errors
    /// `Unsupported` for a sender of prepared content, as in this default implementation.
    fn fresh(&mut self, _len: usize) -> io::Result<BytesMut<'_>> {
        Err(only_prepared())
    }

    /// Sends `len` bytes, at most the block size, from the memory that [`Sender::fresh`] returned last or from the next
    /// part of the prepared content. Returns when the link has accepted all `len` bytes.
    ///
    /// # Errors
    /// `BrokenPipe` if the reader is gone; otherwise the kernel's error.
    fn send(&mut self, len: usize) -> io::Result<Moved>;

    /// Sends `blocks` times `len` bytes of the prepared content. This loop is compiled with the sender's
    /// [`send`](Sender::send), so less code runs between two blocks than in a caller's loop over a trait object: pipemark
    /// reached 1.38 times the throughput with blocks of 64 bytes on one CPU.
    ///
    /// # Errors
    /// As [`Sender::send`].
    fn send_blocks(&mut self, len: usize, blocks: u32) -> io::Result<Moved> {
        let mut moved = Moved::default();
        for _ in 0..blocks {
            let sent = self.send(len)?;
            moved.bytes += sent.bytes;
            moved.calls += sent.calls;
        }
        Ok(moved)
    }

    /// Marks the end of the stream. On links where closing the descriptor ends the stream, does nothing. On other
    /// links, sends an end mark.
    ///
    /// # Errors
    /// The kernel's error.
    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// A sentence for the report about how the bytes were moved; `None` if there is nothing to report yet.
    fn note(&self) -> Option<String> {
        None
    }
}

/// The length in bytes of the prepared content, which is repeated in the stream, for this call and blocks of `block`
/// bytes. Byte `p` of the stream is byte `p % period` of the content.
pub fn period(call: SendCall, block: usize) -> usize {
    match call {
        SendCall::Write | SendCall::Vmsplice | SendCall::VmspliceGift | SendCall::IoUring => block,
        SendCall::Sendfile | SendCall::Splice => file::period(block),
        SendCall::Tee => tee::period(block),
    }
}

/// Creates a sender for the write end `pipe`.
///
/// # Errors
/// `Unsupported` or `PermissionDenied` if the call can't be used here. `InvalidInput` if it can't be used with these
/// options. Another error if the memory can't be allocated.
pub fn open(call: SendCall, pipe: impl Into<OwnedFd>, options: &SendOptions) -> io::Result<Box<dyn Sender + Send>> {
    let pipe = pipe.into();
    check_block(options.block)?;
    // io_uring polls the descriptor itself, and fails with EAGAIN on a non-blocking descriptor.
    let flags = if call == SendCall::IoUring { Wait::Block } else { options.wait };
    flags.configure(&pipe)?;
    if matches!(call, SendCall::Vmsplice | SendCall::VmspliceGift) && reads_only(&pipe)? {
        // On a read end, vmsplice(2) would write to our memory.
        return Err(crate::invalid("a sender needs a pipe's write end"));
    }
    Ok(match call {
        SendCall::Write => Box::new(write(pipe, options)?),
        SendCall::Vmsplice => Box::new(vmsplice::VmspliceSender::new(pipe, options, SpliceFlags::empty())?),
        SendCall::VmspliceGift => Box::new(vmsplice::VmspliceSender::new(pipe, options, SpliceFlags::GIFT)?),
        SendCall::Sendfile => Box::new(file::FileSender::new(pipe, options, file::FileCall::Sendfile)?),
        SendCall::Splice => Box::new(file::FileSender::new(pipe, options, file::FileCall::Splice)?),
        SendCall::Tee => Box::new(tee::TeeSender::new(pipe, options)?),
        SendCall::IoUring => io_uring::sender(pipe, options)?,
    })
}

/// [`open`] for [`SendCall::Write`], with a concrete type, so that calls to the sender can be inlined. A call that
/// isn't inlined costs about 15 ns after a process switch.
///
/// # Errors
/// For a block of 0 bytes (`InvalidInput`), or if the memory can't be allocated.
pub fn write(pipe: OwnedFd, options: &SendOptions) -> io::Result<impl Sender + Send + use<>> {
    check_block(options.block)?;
    let wait = options.wait;
    wait.configure(&pipe)?;
    // The kernel copies each block, so all blocks can use one buffer.
    let put = move |bytes: &[u8], calls: &mut u32| {
        wait.retry(pipe.as_fd(), Direction::Out, calls, || rustix::io::write(&pipe, bytes))
    };
    Ok(BufferedSender { put, buffer: options.buffer()? })
}

/// Creates a sender that uses one buffer for all blocks. `put` sends bytes from the start of a slice, returns their
/// number, and counts its system calls. The sender drops `put` before the buffer.
pub fn buffered(
    buffer: Buffer,
    put: impl FnMut(&[u8], &mut u32) -> io::Result<usize> + Send + 'static,
) -> Box<dyn Sender + Send> {
    Box::new(BufferedSender { put, buffer })
}

struct BufferedSender<F> {
    put: F,
    buffer: Buffer,
}

impl<F: FnMut(&[u8], &mut u32) -> io::Result<usize>> Sender for BufferedSender<F> {
    fn prepare(&mut self, fill: &mut dyn FnMut(u64, &mut [u8])) -> io::Result<()> {
        fill(0, self.buffer.bytes_mut());
        Ok(())
    }

    fn fresh(&mut self, len: usize) -> io::Result<BytesMut<'_>> {
        Ok((&mut self.buffer.bytes_mut()[..len]).into())
    }

    #[inline(always)]
    fn send(&mut self, len: usize) -> io::Result<Moved> {
        let mut moved = Moved::default();
        while moved.bytes < len {
            moved.bytes += (self.put)(&self.buffer.bytes()[moved.bytes..len], &mut moved.calls)?;
        }
        Ok(moved)
    }
}

/// The error of [`Sender::fresh`] for a sender of prepared content.
pub(crate) fn only_prepared() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "this sender was set up for prepared content")
}

/// The error of a second [`Sender::prepare`] when the first content may be in flight.
pub(crate) fn prepared_already() -> io::Error {
    crate::invalid("the prepared content may still be in flight; open another sender for other content")
}

/// The error of [`Sender::prepare`] for a sender of fresh content.
pub(crate) fn only_fresh() -> io::Error {
    crate::invalid("this sender was set up for fresh content")
}
