//! Every way to put bytes into a pipe, behind one trait.
//!
//! Some senders copy ([`Method::Write`], [`Method::IoUring`]), the others move references to pages. A page that was given
//! to a pipe may be in flight long after it left that pipe, because a reader may splice or tee it onwards; so no sender
//! here ever writes to memory that it has given away. See [`crate::buffer::GiveAway`].

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

/// How bytes are handed to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// write(2).
    Write,
    /// vmsplice(2).
    Vmsplice,
    /// vmsplice(2) with SPLICE_F_GIFT: a promise not to change the pages, of which current kernels make no use.
    VmspliceGift,
    /// sendfile(2) from a memfd.
    Sendfile,
    /// splice(2) from a memfd.
    Splice,
    /// tee(2) from a pipe that stays full.
    Tee,
    /// io_uring, one write from a registered buffer at a time.
    IoUring,
}

/// Whether a sender's memory changes from block to block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// The same prepared bytes over and over.
    Prepared,
    /// Bytes newly written for each block.
    Fresh,
}

/// How a sender is set up.
#[derive(Debug, Clone, Copy)]
pub struct SendOptions {
    /// Bytes per [`Sender::send`], at least 1.
    pub block: usize,
    /// Offset of the memory from the start of a page, in bytes.
    pub align: usize,
    /// What the memory is made of.
    pub pages: Pages,
    /// What to do when the pipe is full.
    pub wait: Wait,
    /// Whether the bytes change from block to block.
    pub content: Content,
}

impl SendOptions {
    /// A buffer for one block.
    ///
    /// # Errors
    /// When the memory cannot be had.
    pub fn buffer(&self) -> io::Result<Buffer> {
        Buffer::new(self.block, self.align, self.pages)
    }
}

/// What one send or receive did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moved {
    /// Bytes that were moved.
    pub bytes: usize,
    /// System calls that this took, refused attempts and calls that only waited included.
    pub calls: u32,
}

/// Puts blocks into a pipe.
pub trait Sender {
    /// Sets the content that is sent over and over: `fill` is handed the memory of the first `period` bytes, piece by
    /// piece in order, each with its position. Call it before the first [`Sender::send`]; use [`period`] to know how many
    /// bytes a method wants.
    ///
    /// # Errors
    /// When the memory cannot be had, for a sender that was set up for fresh content, and the second time for one that
    /// gives pages away: what is in flight would change.
    fn prepare(&mut self, fill: &mut dyn FnMut(u64, &mut [u8])) -> io::Result<()>;

    /// Memory for the `len` bytes that the next [`Sender::send`] sends; `len` is at most the block size. It is never
    /// memory that may still be in flight, and its content is unspecified: write all of it.
    ///
    /// # Errors
    /// `Unsupported` for a sender that only sends prepared content, as one is that does not say otherwise.
    fn fresh(&mut self, _len: usize) -> io::Result<BytesMut<'_>> {
        Err(only_prepared())
    }

    /// Sends `len` bytes, at most the block size: what [`Sender::fresh`] handed out last, or the next of the prepared
    /// content. Returns when the link has taken all of them.
    ///
    /// # Errors
    /// `BrokenPipe` when the reader is gone, and whatever else the kernel says.
    fn send(&mut self, len: usize) -> io::Result<Moved>;

    /// Says that nothing more will come. Links whose end is seen when the descriptor closes need nothing; the others send
    /// a mark.
    ///
    /// # Errors
    /// Whatever the kernel says.
    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// What the reader of a result should know about how the bytes went, a sentence, as far as it is known by now.
    fn note(&self) -> Option<String> {
        None
    }
}

/// The period of what a method sends when the content is prepared for blocks of `block` bytes: byte `p` of the stream is
/// byte `p % period` of the content.
pub fn period(method: Method, block: usize) -> usize {
    match method {
        Method::Write | Method::Vmsplice | Method::VmspliceGift | Method::IoUring => block,
        Method::Sendfile | Method::Splice => file::period(block),
        Method::Tee => tee::period(block),
    }
}

/// A sender for the write end `pipe`.
///
/// # Errors
/// When the method cannot be used here (`Unsupported`, `PermissionDenied`) or with these options (`InvalidInput`), or
/// its memory cannot be had.
pub fn open(method: Method, pipe: impl Into<OwnedFd>, options: &SendOptions) -> io::Result<Box<dyn Sender + Send>> {
    let pipe = pipe.into();
    check_block(options.block)?;
    // io_uring arms its own poll, and fails with EAGAIN on a non-blocking descriptor.
    let flags = if method == Method::IoUring { Wait::Block } else { options.wait };
    flags.configure(&pipe)?;
    if matches!(method, Method::Vmsplice | Method::VmspliceGift) && reads_only(&pipe)? {
        // The kernel would write to our memory.
        return Err(crate::invalid("a sender needs a pipe's write end"));
    }
    Ok(match method {
        Method::Write => Box::new(write(pipe, options)?),
        Method::Vmsplice => Box::new(vmsplice::VmspliceSender::new(pipe, options, SpliceFlags::empty())?),
        Method::VmspliceGift => Box::new(vmsplice::VmspliceSender::new(pipe, options, SpliceFlags::GIFT)?),
        Method::Sendfile => Box::new(file::FileSender::new(pipe, options, file::FileCall::Sendfile)?),
        Method::Splice => Box::new(file::FileSender::new(pipe, options, file::FileCall::Splice)?),
        Method::Tee => Box::new(tee::TeeSender::new(pipe, options)?),
        Method::IoUring => io_uring::sender(pipe, options)?,
    })
}

/// What [`open`] gives for [`Method::Write`], by its type: its calls can be compiled into the loop that makes them. A call
/// that the compiler can't see through costs 15 ns or so where processes have been switched.
///
/// # Errors
/// For a block of 0 bytes (`InvalidInput`), or when the memory cannot be had.
pub fn write(pipe: OwnedFd, options: &SendOptions) -> io::Result<impl Sender + Send + use<>> {
    check_block(options.block)?;
    let wait = options.wait;
    wait.configure(&pipe)?;
    // The kernel copies each block, so one buffer serves for all of them.
    let put = move |bytes: &[u8], calls: &mut u32| {
        wait.retry(pipe.as_fd(), Direction::Out, calls, || rustix::io::write(&pipe, bytes))
    };
    Ok(BufferedSender { put, buffer: options.buffer()? })
}

/// A sender that uses one buffer for all blocks. `put` sends the first of the bytes it is given, says how many, and counts
/// its system calls; it is dropped before the buffer.
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
pub fn only_prepared() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "this sender was set up for prepared content")
}

/// The error of a second [`Sender::prepare`] for a sender whose first content may be in flight.
pub fn prepared_already() -> io::Error {
    crate::invalid("what was prepared may be in flight; open another sender for other content")
}

/// The error of [`Sender::prepare`] for a sender that was set up for fresh content.
pub fn only_fresh() -> io::Error {
    crate::invalid("this sender was set up for fresh content")
}
