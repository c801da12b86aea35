//! Ends with a buffer of their own: one copy into the ring, one out of it.

use std::io;
use std::ptr;

use crate::buffer::{Buffer, BytesMut};
use crate::recv::{Receiver, buffered};
use crate::send::{Moved, Sender};

use super::map::Map;
use crate::handover::{Sink, Source};

pub(super) struct CopySender {
    source: Source<Map>,
    buffer: Buffer,
}

impl CopySender {
    pub(super) fn new(source: Source<Map>, buffer: Buffer) -> Self {
        CopySender { source, buffer }
    }
}

/// Copies `bytes` to `offset` in the ring, and on from its start where they run over the end.
fn put(map: &Map, offset: usize, bytes: &[u8]) {
    assert!(offset < map.capacity() && bytes.len() <= map.capacity());
    let (head, rest) = bytes.split_at(bytes.len().min(map.capacity() - offset));
    // SAFETY: offset + head.len() is within the capacity. No reference to this memory exists in this process; the peer, by
    // the protocol, does not look at it, and if it does nevertheless, it sees bytes that are all valid.
    unsafe { ptr::copy_nonoverlapping(head.as_ptr(), map.start().as_ptr().wrapping_add(offset), head.len()) };
    // SAFETY: as above, from offset 0.
    unsafe { ptr::copy_nonoverlapping(rest.as_ptr(), map.start().as_ptr(), rest.len()) };
}

/// Copies from `offset` in the ring, and on from its start, into `bytes`.
fn get(map: &Map, offset: usize, bytes: &mut [u8]) {
    assert!(offset < map.capacity() && bytes.len() <= map.capacity());
    let here = bytes.len().min(map.capacity() - offset);
    let (head, rest) = bytes.split_at_mut(here);
    // SAFETY: offset + head.len() is within the capacity. No reference to this memory exists in this process; the peer, by
    // the protocol, does not write to it, and if it does nevertheless, we get other bytes, all of them valid.
    unsafe { ptr::copy_nonoverlapping(map.start().as_ptr().wrapping_add(offset), head.as_mut_ptr(), head.len()) };
    // SAFETY: as above, from offset 0.
    unsafe { ptr::copy_nonoverlapping(map.start().as_ptr(), rest.as_mut_ptr(), rest.len()) };
}

impl Sender for CopySender {
    fn prepare(&mut self, fill: &mut dyn FnMut(u64, &mut [u8])) -> io::Result<()> {
        fill(0, self.buffer.bytes_mut());
        Ok(())
    }

    fn fresh(&mut self, len: usize) -> io::Result<BytesMut<'_>> {
        Ok((&mut self.buffer.bytes_mut()[..len]).into())
    }

    fn send(&mut self, len: usize) -> io::Result<Moved> {
        let mut moved = Moved::default();
        while moved.bytes < len {
            let room = self.source.room(1, &mut moved.calls)?;
            let rest = &self.buffer.bytes()[moved.bytes..len];
            let piece = &rest[..rest.len().min(room)];
            put(&self.source.lines, self.source.offset(), piece);
            self.source.publish(piece.len(), &mut moved.calls);
            moved.bytes += piece.len();
        }
        Ok(moved)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.source.end();
        Ok(())
    }
}

/// A receiver with a buffer of its own.
pub(super) fn receiver(mut sink: Sink<Map>, buffer: Buffer) -> Box<dyn Receiver + Send> {
    buffered(buffer, move |buffer, calls| {
        let bytes = sink.filled(calls)?.min(buffer.len());
        if bytes > 0 {
            get(&sink.lines, sink.offset(), &mut buffer[..bytes]);
            sink.release(bytes, calls);
        }
        Ok(bytes)
    })
}
