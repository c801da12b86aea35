//! Ends with a buffer of their own: one copy into the ring, one out of it.

use std::ptr;

use crate::buffer::Buffer;
use crate::recv::{self, Receiver};
use crate::send::{self, Sender};

use super::map::Map;
use crate::handover::{Sink, Source};

/// Copies `bytes` to `offset` in the ring, and on from its start where they run over the end.
fn put(map: &Map, offset: usize, bytes: &[u8]) {
    assert!(offset < map.capacity() && bytes.len() <= map.capacity());
    let (head, rest) = bytes.split_at(bytes.len().min(map.capacity() - offset));
    // SAFETY: offset + head.len() is within the capacity. No reference to this memory exists in this process; the peer, by
    // the protocol, does not look at it, and if it does nevertheless, it sees bytes that are all valid.
    unsafe { ptr::copy_nonoverlapping(head.as_ptr(), map.start().as_ptr().wrapping_add(offset), head.len()) };
    // SAFETY: `rest` is no longer than the capacity, from offset 0 on. No reference to this memory exists in this process, and
    // whatever the peer sees of it is valid bytes.
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
    // SAFETY: `rest` is no longer than the capacity, from offset 0 on. No reference to this memory exists in this process, and
    // whatever the peer makes of it is valid bytes.
    unsafe { ptr::copy_nonoverlapping(map.start().as_ptr(), rest.as_mut_ptr(), rest.len()) };
}

/// A sender with a buffer of its own.
pub(super) fn sender(mut source: Source<Map>, buffer: Buffer) -> Box<dyn Sender + Send> {
    send::buffered(buffer, move |bytes, calls| {
        let piece = &bytes[..bytes.len().min(source.room(1, calls)?)];
        put(&source.lines, source.offset(), piece);
        source.publish(piece.len(), calls);
        Ok(piece.len())
    })
}

/// A receiver with a buffer of its own.
pub(super) fn receiver(mut sink: Sink<Map>, buffer: Buffer) -> Box<dyn Receiver + Send> {
    recv::buffered(buffer, move |buffer, calls| {
        let bytes = sink.filled(calls)?.min(buffer.len());
        if bytes > 0 {
            get(&sink.lines, sink.offset(), &mut buffer[..bytes]);
            sink.release(bytes, calls);
        }
        Ok(bytes)
    })
}
