//! Zero copy: sends memory by handing its pages to a pipe. The sender can't write to the memory afterwards.
//!
//! vmsplice(2) makes a pipe refer to a program's pages instead of copying them. Nothing reports when the last reader is
//! done with the pages. A reader may also pass them on to another pipe, a file or a socket. A program that refills the
//! memory may therefore change bytes that it has already sent. This module prevents that: sending consumes a [`Gift`],
//! and [`Gifts`] replaces the pages of its memory before reusing the memory. A reader keeps the old pages.
//!
//! ```
//! use std::io::Read;
//! let mut pipe = pipeio::Pipe::with_capacity(1 << 20)?;
//! let mut gifts = pipeio::Gifts::new();
//! let mut gift = gifts.gift(128 << 10)?;
//! gift.fill(b'x');
//! gift.send(&pipe.writer)?;
//! drop(pipe.writer);
//! let mut bytes = Vec::new();
//! pipe.reader.read_to_end(&mut bytes)?;
//! assert_eq!(bytes, [b'x'; 128 << 10]);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! A gift can't be used after it was sent. This doesn't compile:
//!
//! ```compile_fail,E0382
//! # let pipe = pipeio::Pipe::new()?;
//! let mut gift = pipeio::Gifts::new().gift(4096)?;
//! gift.send(&pipe.writer)?;
//! gift.fill(b'y');
//! # Ok::<(), std::io::Error>(())
//! ```

use std::ops::{Deref, DerefMut};
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::Arc;
use std::{error, fmt, io, slice};

use rustix::io::Errno;
use rustix::pipe::{IoSliceRaw, SpliceFlags, vmsplice};

use crate::memory::{Pages, Region, page_size};
use crate::pipe::Access;

/// Size in bytes of the region that gifts are allocated from. Once the region is used up, its pages are dropped. The
/// region is small enough that a dropped huge page is still in the cache when the kernel hands it out again.
const REGION: usize = 8 << 20;

/// Gifts below this many bytes are copied. Each page given away occupies one of the pipe's slots, and replacing the
/// page costs a page fault.
pub(crate) const WORTH_GIVING: usize = 32 << 10;

/// The number of bytes that [`GiftWriter`] collects for one gift.
const GATHERED: usize = 256 << 10;

/// Allocates gifts, and reuses their memory with new pages. Create one `Gifts` and keep it for many gifts.
#[derive(Debug, Default)]
pub struct Gifts {
    region: Option<Arc<Region>>,
    /// The start of the region; `None` before the first gift.
    start: Option<NonNull<u8>>,
    /// The offset of the next gift in the region, in bytes.
    next: usize,
}

// SAFETY: the pointer points to the region, which moves to the other thread together with the pointer. It is used only
// for parts of the region that belong to no gift.
unsafe impl Send for Gifts {}

impl Gifts {
    /// Allocates no memory before the first gift.
    pub fn new() -> Gifts {
        Gifts::default()
    }

    /// Allocates `len` bytes of zeroed memory, starting on a page boundary. The gift may be kept, filled by another
    /// thread, sent or dropped.
    ///
    /// # Errors
    /// When the memory can't be allocated.
    pub fn gift(&mut self, len: usize) -> io::Result<Gift> {
        let too_long = || io::Error::from(io::ErrorKind::OutOfMemory);
        let end = self.next.checked_add(len).ok_or_else(too_long)?;
        let (region, start) = match (&mut self.region, self.start) {
            (Some(region), Some(start)) if end <= region.len() => (region.clone(), start),
            _ => self.renew_region(len)?,
        };
        // SAFETY: the region has at least `len` bytes from `self.next` on.
        let start = unsafe { start.add(self.next) };
        self.next = (self.next + len).next_multiple_of(page_size());
        Ok(Gift { start, len, _region: region })
    }

    /// Drops the pages of the region if no gift in it is left and it has `len` bytes. Otherwise allocates another
    /// region.
    fn renew_region(&mut self, len: usize) -> io::Result<(Arc<Region>, NonNull<u8>)> {
        self.next = 0;
        if let (Some(region), Some(start)) = (&mut self.region, self.start) {
            // Pages of locked memory can't be dropped.
            let dropped = Arc::get_mut(region).is_some_and(|region| region.drop_pages().is_ok());
            if dropped && len <= region.len() {
                return Ok((region.clone(), start));
            }
        }
        self.region = None;
        let mut region = Region::new(len.max(REGION), Pages::Huge)?;
        let start = NonNull::from(region.bytes_mut()).cast();
        self.start = Some(start);
        Ok((self.region.insert(Arc::new(region)).clone(), start))
    }
}

/// Bytes to fill and send once.
pub struct Gift {
    start: NonNull<u8>,
    len: usize,
    /// The region that contains the gift. The region is freed or reused only once no gift in it is left.
    _region: Arc<Region>,
}

// SAFETY: only the gift accesses its bytes, like a `Box<[u8]>`.
unsafe impl Send for Gift {}
// SAFETY: a shared reference allows reading only: writing and sending need exclusive access.
unsafe impl Sync for Gift {}

/// How the bytes of a gift were sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sent {
    /// The pipe took the pages.
    GivenAway,
    /// write(2) copied the bytes, because there were fewer than 32 KiB, `to` isn't a pipe, or the kernel refused to
    /// take pages.
    Copied,
}

/// A gift that was not sent, or was sent only in part.
#[derive(Debug)]
pub struct Unsent {
    /// The unsent part, which can be sent later.
    pub gift: Gift,
    /// Why the rest was not sent: `WouldBlock` if a non-blocking descriptor has no room, `BrokenPipe` if the reader has
    /// closed the pipe.
    pub error: io::Error,
}

impl Gift {
    /// Drops all but the first `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Gives the pages to the pipe `to`. If `to` doesn't accept pages or the gift is smaller than 32 KiB, copies the
    /// bytes with write(2) instead.
    ///
    /// Waits for room if `to` is blocking. If `to` is non-blocking and full, returns the rest in [`Unsent`]: wait until
    /// `to` is ready, then send the rest.
    ///
    /// # Errors
    /// [`Unsent`] contains the kernel's error and the bytes that were not sent.
    pub fn send(mut self, to: impl AsFd) -> Result<Sent, Unsent> {
        let to = to.as_fd();
        let access = match Access::of(to) {
            Ok(access) => access,
            Err(error) => return Err(Unsent { gift: self, error }),
        };
        let flags = if access.nonblocking { SpliceFlags::NONBLOCK } else { SpliceFlags::empty() };
        let mut gives = self.len >= WORTH_GIVING && !access.reads_only;
        let mut sent = Sent::Copied;
        while self.len > 0 {
            let moved = if gives {
                let bytes = [IoSliceRaw::from_slice(&self)];
                // SAFETY: the bytes are readable, and vmsplice only reads them, because the descriptor is not
                // read-only. Nobody writes to the bytes that the pipe takes: from then on the gift begins after these
                // bytes, and their pages are dropped before the memory is handed out again.
                unsafe { vmsplice(to, &bytes, flags) }
            } else {
                rustix::io::write(to, &self)
            };
            match moved {
                Ok(0) => return Err(Unsent { gift: self, error: io::ErrorKind::WriteZero.into() }),
                Ok(moved) => {
                    if gives {
                        sent = Sent::GivenAway;
                    }
                    self.skip(moved);
                }
                Err(Errno::INTR) => {}
                // `to` isn't a pipe, or a system-call filter refuses vmsplice. If the descriptor itself is invalid,
                // write(2) reports that.
                Err(Errno::BADF | Errno::INVAL | Errno::PERM | Errno::NOSYS) if gives => gives = false,
                Err(error) => return Err(Unsent { gift: self, error: error.into() }),
            }
        }
        Ok(sent)
    }

    fn skip(&mut self, bytes: usize) {
        assert!(bytes <= self.len);
        // SAFETY: the new start is within the gift or at its end, as asserted.
        self.start = unsafe { self.start.add(bytes) };
        self.len -= bytes;
    }
}

impl Deref for Gift {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the bytes are initialised and within the region, which lives as long as the gift. No one else writes
        // to them.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for Gift {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: the bytes are initialised and within the region, which lives as long as the gift. No one else
        // accesses them, and the borrow is exclusive. No pipe refers to them, because the gift begins after the bytes
        // that were sent.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl fmt::Debug for Gift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gift").field("len", &self.len).finish_non_exhaustive()
    }
}

impl fmt::Display for Unsent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes were not sent: {}", self.gift.len, self.error)
    }
}

impl error::Error for Unsent {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        Some(&self.error)
    }
}

impl From<Unsent> for io::Error {
    fn from(unsent: Unsent) -> io::Error {
        unsent.error
    }
}

/// Collects written bytes and sends them to a pipe as gifts. Like [`std::io::BufWriter`], but without copying the bytes
/// into the pipe.
///
/// Sends 256 KiB at a time. Dropping a `GiftWriter` sends the remaining bytes and ignores errors. To get the errors,
/// call `flush` first.
///
/// ```
/// use std::io::{Read, Write};
/// let (mut reader, writer) = std::io::pipe()?;
/// let mut output = pipeio::gift::GiftWriter::new(writer);
/// writeln!(output, "{} bytes", 7)?;
/// output.flush()?;
/// drop(output);
/// let mut text = String::new();
/// reader.read_to_string(&mut text)?;
/// assert_eq!(text, "7 bytes\n");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct GiftWriter<W: AsFd> {
    to: W,
    gifts: Gifts,
    gift: Option<Gift>,
    filled: usize,
}

impl<W: AsFd> GiftWriter<W> {
    /// Creates a writer that sends to `to`.
    pub fn new(to: W) -> GiftWriter<W> {
        GiftWriter { to, gifts: Gifts::new(), gift: None, filled: 0 }
    }

    /// The descriptor that receives the gifts. If it is non-blocking, poll it for readiness.
    pub fn get_ref(&self) -> &W {
        &self.to
    }
}

impl<W: AsFd> io::Write for GiftWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.gift.as_ref().is_some_and(|gift| gift.len == self.filled) {
            self.flush()?;
        }
        let gift = match &mut self.gift {
            Some(gift) => gift,
            None => {
                self.filled = 0;
                self.gift.insert(self.gifts.gift(GATHERED)?)
            }
        };
        let taken = bytes.len().min(gift.len - self.filled);
        gift[self.filled..][..taken].copy_from_slice(&bytes[..taken]);
        self.filled += taken;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        let Some(mut gift) = self.gift.take() else { return Ok(()) };
        gift.truncate(self.filled);
        match gift.send(&self.to) {
            Ok(_) => Ok(()),
            Err(unsent) => {
                // The pipe is full: the unsent rest becomes a complete gift, so that nothing is added before it is
                // sent.
                self.filled = unsent.gift.len;
                self.gift = Some(unsent.gift);
                Err(unsent.error)
            }
        }
    }
}

impl<W: AsFd> Drop for GiftWriter<W> {
    fn drop(&mut self) {
        let _ = io::Write::flush(self);
    }
}
