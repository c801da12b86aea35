//! tee(2) from a pipe that stays full: sends the same pages repeatedly, and copies only references to the pages.
//!
//! A pipe's capacity counts slots. A slot filled by write or vmsplice has one page, but a slot may have any run of
//! adjacent pages. Socket buffers have runs of 32 KiB, and splice(2) moves these runs into a pipe as they are. If the
//! store, the full pipe, has such runs, a pipe of the default 16 slots accepts 512 KiB at a time. On a machine with two
//! cores this moved 8 times as much per wake-up as slots of one page.

use std::io;
use std::mem::replace;
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{SpliceFlags, splice, tee};

use super::{Moved, SendOptions, Sender, prepared_already};
use crate::buffer::page_size;
use crate::wait::{Direction, Wait};
use pipeio::pipe::{Pipe, set_capacity};

/// Bytes of adjacent pages in a buffer of a UNIX socket: order 3, with pages of 4 KiB.
const RUN: usize = 32 << 10;

/// The store's capacity in bytes: the default limit for an unprivileged user's pipe.
const STORE: usize = 1 << 20;

/// The period of the content in bytes. Every tee starts at the head of the store, and the link may accept only a part
/// of a block, so the stream is in order only if all pages have the same content.
pub(super) fn period(block: usize) -> usize {
    block.min(page_size())
}

pub(super) struct TeeSender {
    pipe: OwnedFd,
    store: Pipe,
    period: usize,
    prepared: bool,
    wait: Wait,
}

impl TeeSender {
    pub(super) fn new(pipe: OwnedFd, options: &SendOptions) -> io::Result<Self> {
        if options.block > page_size() && !options.block.is_multiple_of(page_size()) {
            return Err(crate::invalid(format!(
                "tee sends whole pages; use a block size that is a multiple of {}",
                page_size()
            )));
        }
        let store = Pipe::new()?;
        // If the user's pipes exceed the page limit, the store stays small, which works but is slower.
        let _ = set_capacity(&store.writer, STORE);
        Ok(TeeSender { pipe, store, period: period(options.block), prepared: false, wait: options.wait })
    }

    /// Fills the store with copies of `page` in runs of pages, through a socket pair.
    fn fill_with_runs(&self, page: &[u8]) -> io::Result<()> {
        let (near, far) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
        let run = page.repeat(RUN / page.len());
        loop {
            if rustix::net::send(&near, &run, rustix::net::SendFlags::empty())? != run.len() {
                break;
            }
            let mut left = run.len();
            while left > 0 {
                match splice(&far, None, &self.store.writer, None, left, SpliceFlags::NONBLOCK) {
                    Ok(taken) if taken % page_size() == 0 && taken > 0 => left -= taken,
                    // An incomplete page would shift all later bytes.
                    Ok(_) => return Err(io::ErrorKind::InvalidData.into()),
                    Err(rustix::io::Errno::AGAIN) => return Ok(()),
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }

    /// Fills the store with copies of `page`, one in each slot.
    fn fill_with_pages(&self, page: &[u8]) -> io::Result<()> {
        let slots = pipeio::pipe::capacity(&self.store.writer)? / page_size();
        for _ in 0..slots {
            rustix::io::write(&self.store.writer, page)?;
        }
        Ok(())
    }
}

impl Sender for TeeSender {
    fn prepare(&mut self, fill: &mut dyn FnMut(u64, &mut [u8])) -> io::Result<()> {
        if replace(&mut self.prepared, true) {
            return Err(prepared_already());
        }
        let mut page = vec![0; self.period];
        fill(0, &mut page);
        // A block shorter than a page occupies the start of the first page. The rest of the page isn't sent.
        page.resize(page_size(), 0);
        if self.fill_with_runs(&page).is_err() {
            // The pages in the store may be out of order, so start with an empty store.
            self.store = Pipe::new()?;
            let _ = set_capacity(&self.store.writer, STORE);
            self.fill_with_pages(&page)?;
        }
        Ok(())
    }

    fn send(&mut self, len: usize) -> io::Result<Moved> {
        let mut moved = Moved::default();
        while moved.bytes < len {
            let rest = len - moved.bytes;
            let sent = self.wait.retry(self.pipe.as_fd(), Direction::Out, &mut moved.calls, || {
                tee(&self.store.reader, &self.pipe, rest, self.wait.splice_flags())
            })?;
            if sent == 0 {
                return Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "the pipe to tee from is empty; was it prepared?",
                ));
            }
            moved.bytes += sent;
        }
        Ok(moved)
    }
}
