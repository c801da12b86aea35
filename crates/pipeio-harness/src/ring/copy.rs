//! Senders and receivers with a separate buffer: one copy into the ring, one copy out of it.

use std::ptr;

use crate::buffer::Buffer;
use crate::recv::{self, Receiver};
use crate::send::{self, Sender};

use super::map::Map;
use crate::handover::{Sink, Source};

/// Copies `bytes` to the ring from `offset` on. Bytes that don't fit before the ring's end go to its start.
fn put(map: &Map, offset: usize, bytes: &[u8]) {
    assert!(offset < map.capacity() && bytes.len() <= map.capacity());
    let (head, rest) = bytes.split_at(bytes.len().min(map.capacity() - offset));
    // SAFETY: offset + head.len() is within the capacity. No reference to this memory exists in this process. According
    // to the protocol the peer doesn't read it meanwhile. If it does nevertheless, all bytes that it may see are valid.
    unsafe { ptr::copy_nonoverlapping(head.as_ptr(), map.start().as_ptr().wrapping_add(offset), head.len()) };
    // SAFETY: `rest` is no longer than the capacity, from offset 0 on. No reference to this memory exists in this
    // process, and all the bytes that the peer may see are valid.
    unsafe { ptr::copy_nonoverlapping(rest.as_ptr(), map.start().as_ptr(), rest.len()) };
}

/// Copies bytes from the ring, from `offset` on and then from its start, to fill `bytes`.
fn get(map: &Map, offset: usize, bytes: &mut [u8]) {
    assert!(offset < map.capacity() && bytes.len() <= map.capacity());
    let here = bytes.len().min(map.capacity() - offset);
    let (head, rest) = bytes.split_at_mut(here);
    // SAFETY: offset + head.len() is within the capacity. No reference to this memory exists in this process. According
    // to the protocol the peer doesn't write to it meanwhile. If it does nevertheless, we get other bytes, which are
    // all valid.
    unsafe { ptr::copy_nonoverlapping(map.start().as_ptr().wrapping_add(offset), head.as_mut_ptr(), head.len()) };
    // SAFETY: `rest` is no longer than the capacity, from offset 0 on. No reference to this memory exists in this
    // process, and any bytes that the peer may write there are valid.
    unsafe { ptr::copy_nonoverlapping(map.start().as_ptr(), rest.as_mut_ptr(), rest.len()) };
}

/// A sender that copies from `buffer`.
pub(super) fn sender(mut source: Source<Map>, buffer: Buffer) -> Box<dyn Sender + Send> {
    send::buffered(buffer, move |bytes, calls| {
        let piece = &bytes[..bytes.len().min(source.room(1, calls)?)];
        put(&source.lines, source.offset(), piece);
        source.publish(piece.len(), calls);
        Ok(piece.len())
    })
}

/// A receiver that copies to `buffer`.
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
