//! Senders and receivers that work directly on the ring's memory.

use std::io;
use std::ops::Deref;
use std::ptr::NonNull;

use crate::buffer::{Bytes, BytesMut};
use crate::recv::{Received, Receiver};
use crate::send::{BlockContent, Moved, SendOptions, Sender, only_fresh, only_prepared, prepared_already};

use super::map::Map;
use crate::handover::{Sink, Source};
use crate::shared::CacheLine;

/// The memory in which blocks are created and read.
///
/// # Safety
/// The bytes from `start` on, as many as the handover's capacity, are readable and writable while `self` lives, even if
/// `self` is moved. This process creates no references to them.
pub(crate) unsafe trait Memory: Deref<Target = [CacheLine]> {
    fn start(&self) -> NonNull<u8>;
}

// SAFETY: `Map::start` guarantees these bytes. The copying ends access them too, but through pointers only.
unsafe impl Memory for Map {
    fn start(&self) -> NonNull<u8> {
        Map::start(self)
    }
}

/// Returns an error unless blocks can be created in place in a ring of `capacity` bytes.
pub(crate) fn fits(capacity: usize, options: &SendOptions) -> io::Result<()> {
    let block = options.block;
    if block > capacity {
        let message = format!("a block of {block} bytes does not fit a ring of {capacity}; make the ring larger");
        return Err(crate::invalid(message));
    }
    if options.content == BlockContent::Prepared && !capacity.is_multiple_of(block) {
        let message = format!(
            "prepared blocks of {block} bytes do not fit a ring of {capacity} a whole number of times; make the ring for \
             blocks of this size"
        );
        return Err(crate::invalid(message));
    }
    Ok(())
}

pub(crate) struct InPlaceSender<M: Memory> {
    source: Source<M>,
    content: BlockContent,
    block: usize,
    prepared: bool,
    /// Separate memory for a fresh block that would extend beyond the end of the ring.
    aside: Vec<u8>,
    /// Whether the last fresh block is in `aside`.
    is_aside: bool,
    /// System calls made while waiting for the memory of the next block.
    calls: u32,
}

impl<M: Memory> InPlaceSender<M> {
    /// A sender for blocks that [`fits`] has accepted.
    pub(crate) fn new(source: Source<M>, options: &SendOptions) -> Self {
        let (content, block) = (options.content, options.block);
        InPlaceSender { source, content, block, prepared: false, aside: Vec::new(), is_aside: false, calls: 0 }
    }

    /// The source's end of the handover.
    pub(crate) fn source(&mut self) -> &mut Source<M> {
        &mut self.source
    }

    /// The `len` bytes of the ring from `offset` on.
    fn piece(&mut self, offset: usize, len: usize) -> BytesMut<'_> {
        let capacity = self.source.capacity();
        assert!(offset <= capacity && len <= capacity - offset);
        // SAFETY: the offset is within the memory, as asserted.
        let start = unsafe { self.source.lines.start().add(offset) };
        // SAFETY: the bytes are within the memory, as asserted, and no code in this process makes references to them.
        // The peer may write to them in spite of the protocol, so they aren't a slice.
        unsafe { BytesMut::shared(start, len) }
    }
}

impl<M: Memory> Sender for InPlaceSender<M> {
    fn prepare(&mut self, fill: &mut dyn FnMut(u64, &mut [u8])) -> io::Result<()> {
        if self.content == BlockContent::Fresh {
            return Err(only_fresh());
        }
        if std::mem::replace(&mut self.prepared, true) {
            return Err(prepared_already());
        }
        let mut block = vec![0; self.block];
        fill(0, &mut block);
        for offset in (0..self.source.capacity()).step_by(self.block) {
            self.piece(offset, block.len()).copy_from(&block);
        }
        Ok(())
    }

    fn fresh(&mut self, len: usize) -> io::Result<BytesMut<'_>> {
        if self.content == BlockContent::Prepared {
            return Err(only_prepared());
        }
        assert!(len <= self.block, "a block of {len} bytes is larger than the sender's blocks of {}", self.block);
        self.source.room(len, &mut self.calls)?;
        let offset = self.source.offset();
        self.is_aside = len > self.source.capacity() - offset;
        if self.is_aside {
            self.aside.resize(self.block, 0);
            return Ok((&mut self.aside[..len]).into());
        }
        Ok(self.piece(offset, len))
    }

    fn send(&mut self, len: usize) -> io::Result<Moved> {
        assert!(len <= self.block, "a block of {len} bytes is larger than the sender's blocks of {}", self.block);
        // From now on prepared content may be in flight, and must not change.
        self.prepared = true;
        let mut calls = std::mem::take(&mut self.calls);
        self.source.room(len, &mut calls)?;
        if std::mem::take(&mut self.is_aside) {
            let aside = std::mem::take(&mut self.aside);
            let offset = self.source.offset();
            let (head, rest) = aside[..len].split_at(len.min(self.source.capacity() - offset));
            self.piece(offset, head.len()).copy_from(head);
            self.piece(0, rest.len()).copy_from(rest);
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
    /// The number of bytes that were returned last and not yet released.
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
        assert!(offset <= self.sink.capacity() && bytes <= self.sink.capacity() - offset);
        // SAFETY: the offset is within the memory, as asserted.
        let start = unsafe { self.sink.lines.start().add(offset) };
        // SAFETY: the bytes are within the memory, as asserted. The memory is mapped while `self` lives, and no code in
        // this process makes references to it. A sender may write to it in spite of the protocol, so the bytes aren't a
        // slice.
        let data = unsafe { Bytes::shared(start, bytes) };
        Ok(Received { bytes, calls, data: Some(data) })
    }
}
