//! Ends that work on the memory of the ring itself.

use std::io;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::slice;

use pipeio::recv::{Received, Receiver};
use pipeio::send::{Content, Moved, Options, Sender, only_fresh, only_prepared};

use super::map::Map;
use crate::handover::{Sink, Source};
use crate::shared::Line;

/// The memory that a ring's blocks are made in.
///
/// # Safety
/// From `start`, as many bytes as the handover's capacity are readable and writable while `self` lives, wherever it is
/// moved, and this process makes no other reference to them.
pub(crate) unsafe trait Memory: Deref<Target = [Line]> {
    fn start(&self) -> NonNull<u8>;
}

// SAFETY: this is what `Map::start` says; the copying ends do not use this trait.
unsafe impl Memory for Map {
    fn start(&self) -> NonNull<u8> {
        Map::start(self)
    }
}

/// Whether blocks can be made in place in a ring of `capacity` bytes.
pub(crate) fn fits(capacity: usize, options: &Options) -> io::Result<()> {
    let block = options.block;
    if block > capacity {
        let message = format!("a block of {block} bytes does not fit a ring of {capacity}; make the ring larger");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    if options.content == Content::Prepared && !capacity.is_multiple_of(block) {
        let message = format!(
            "prepared blocks of {block} bytes do not fit a ring of {capacity} a whole number of times; make the ring for \
             blocks of this size"
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    Ok(())
}

pub(crate) struct InPlaceSender<M: Memory> {
    source: Source<M>,
    content: Content,
    block: usize,
    /// Where a fresh block goes that would run over the end of the ring.
    aside: Vec<u8>,
    /// Whether the last fresh block is there.
    is_aside: bool,
    /// Calls that waiting for the memory of the next block took.
    calls: u32,
}

impl<M: Memory> InPlaceSender<M> {
    /// A sender for blocks that [`fits`] has let through.
    pub(crate) fn new(source: Source<M>, options: &Options) -> Self {
        let (content, block) = (options.content, options.block);
        InPlaceSender { source, content, block, aside: Vec::new(), is_aside: false, calls: 0 }
    }

    /// The handover.
    pub(crate) fn source(&mut self) -> &mut Source<M> {
        &mut self.source
    }

    /// `len` bytes of the ring from `offset` on.
    fn piece(&mut self, offset: usize, len: usize) -> &mut [u8] {
        assert!(offset + len <= self.source.capacity());
        // SAFETY: within the memory, as asserted, and the borrow of `self` is exclusive. The receiver, by the protocol,
        // neither reads nor writes what is not published; if it does nevertheless, bytes change that are all valid.
        unsafe { slice::from_raw_parts_mut(self.source.lines.start().as_ptr().wrapping_add(offset), len) }
    }
}

impl<M: Memory> Sender for InPlaceSender<M> {
    fn prepare(&mut self, fill: &mut dyn FnMut(u64, &mut [u8])) -> io::Result<()> {
        if self.content == Content::Fresh {
            return Err(only_fresh());
        }
        let (block, capacity) = (self.block, self.source.capacity());
        fill(0, self.piece(0, block));
        let start = self.source.lines.start();
        for offset in (block..capacity).step_by(block) {
            // SAFETY: the block before and this one are in the memory, do not overlap, and nobody holds a reference.
            unsafe { ptr::copy_nonoverlapping(start.as_ptr(), start.as_ptr().wrapping_add(offset), block) };
        }
        Ok(())
    }

    fn fresh(&mut self, len: usize) -> io::Result<&mut [u8]> {
        if self.content == Content::Prepared {
            return Err(only_prepared());
        }
        assert!(len <= self.block, "a block of {len} bytes from a sender of blocks of {}", self.block);
        self.source.room(len, &mut self.calls)?;
        let offset = self.source.offset();
        self.is_aside = len > self.source.capacity() - offset;
        if self.is_aside {
            self.aside.resize(self.block, 0);
            return Ok(&mut self.aside[..len]);
        }
        Ok(self.piece(offset, len))
    }

    fn send(&mut self, len: usize) -> io::Result<Moved> {
        assert!(len <= self.block, "a block of {len} bytes from a sender of blocks of {}", self.block);
        let mut calls = std::mem::take(&mut self.calls);
        self.source.room(len, &mut calls)?;
        if std::mem::take(&mut self.is_aside) {
            let aside = std::mem::take(&mut self.aside);
            let offset = self.source.offset();
            let (head, rest) = aside[..len].split_at(len.min(self.source.capacity() - offset));
            self.piece(offset, head.len()).copy_from_slice(head);
            self.piece(0, rest.len()).copy_from_slice(rest);
            self.aside = aside;
        }
        self.source.publish(len, &mut calls);
        Ok(Moved { bytes: len, calls })
    }

    fn finish(&mut self) -> io::Result<()> {
        self.source.end();
        Ok(())
    }
}

pub(super) struct InPlaceReceiver {
    sink: Sink<Map>,
    block: usize,
    /// What was handed out last and is not released yet.
    lent: usize,
}

impl InPlaceReceiver {
    pub(super) fn new(sink: Sink<Map>, block: usize) -> Self {
        InPlaceReceiver { sink, block, lent: 0 }
    }
}

impl Receiver for InPlaceReceiver {
    fn recv(&mut self) -> io::Result<Received<'_>> {
        let mut calls = 0;
        if self.lent > 0 {
            self.sink.release(std::mem::take(&mut self.lent), &mut calls);
        }
        let filled = self.sink.filled(&mut calls)?;
        let offset = self.sink.offset();
        let bytes = filled.min(self.block).min(self.sink.capacity() - offset);
        self.lent = bytes;
        // SAFETY: offset + bytes is within the capacity, so it is mapped while `self` lives. The sender, by the protocol,
        // does not write to what is not released, and the borrow of `self` keeps us from releasing it. A sender that does
        // so nevertheless changes bytes that are all valid; whoever has to fear that receives by copy.
        let data = unsafe { slice::from_raw_parts(self.sink.lines.start().as_ptr().wrapping_add(offset), bytes) };
        Ok(Received { bytes, calls, data: Some(data) })
    }
}
