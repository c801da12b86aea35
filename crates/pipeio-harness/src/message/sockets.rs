//! A sender that splits blocks into messages, and a receiver that splits messages into blocks, over any channel of
//! messages.

use std::io;

use crate::buffer::{Buffer, BytesMut, Pages, check_block, page_size};
use crate::recv::{self, Received, Receiver};
use crate::send::{self, Moved, Sender};

/// A link that carries messages.
pub(crate) trait Channel {
    /// The number of bytes that the channel's system calls need before each message, at most 16.
    const LEAD: usize;

    /// Sends a message. `message` starts with `LEAD` bytes that are not sent and may be overwritten.
    fn put(&self, message: &mut [u8], calls: &mut u32) -> io::Result<()>;

    /// Receives a message into `buffer`, after its first `LEAD` bytes. Returns the message's length. If the message was
    /// truncated, that length exceeds the room in `buffer`.
    fn take(&self, buffer: &mut [u8], calls: &mut u32) -> io::Result<usize>;
}

/// A buffer of `len` bytes that start `align` bytes after a page boundary, with a page of room before them.
struct HeadroomBuffer(Buffer);

impl HeadroomBuffer {
    fn new(len: usize, align: usize, pages: Pages) -> io::Result<HeadroomBuffer> {
        let total = len.checked_add(page_size()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(HeadroomBuffer(Buffer::new(total, align, pages)?))
    }

    fn bytes(&self) -> &[u8] {
        &self.0.bytes()[page_size()..]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0.bytes_mut()[page_size()..]
    }

    /// The bytes `from..to`, with the `lead` bytes before them.
    fn with_lead(&mut self, lead: usize, from: usize, to: usize) -> &mut [u8] {
        &mut self.0.bytes_mut()[page_size() + from - lead..page_size() + to]
    }
}

fn check(block: usize, limit: usize) -> io::Result<()> {
    // An empty message marks the end, so a block can't be empty.
    check_block(block.min(limit))
}

pub(crate) struct MessageSender<C> {
    channel: C,
    buffer: HeadroomBuffer,
    limit: usize,
}

impl<C: Channel> MessageSender<C> {
    pub(crate) fn new(channel: C, options: &send::SendOptions, limit: usize) -> io::Result<Self> {
        check(options.block, limit)?;
        Ok(MessageSender { channel, buffer: HeadroomBuffer::new(options.block, options.align, options.pages)?, limit })
    }

    /// Sends the bytes `from..to` of the buffer as one message. The bytes before `from` don't change.
    fn message(&mut self, from: usize, to: usize, calls: &mut u32) -> io::Result<()> {
        let message = self.buffer.with_lead(C::LEAD, from, to);
        let mut before = [0; 16];
        before[..C::LEAD].copy_from_slice(&message[..C::LEAD]);
        let result = self.channel.put(message, calls);
        message[..C::LEAD].copy_from_slice(&before[..C::LEAD]);
        result
    }
}

impl<C: Channel> Sender for MessageSender<C> {
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
            let end = len.min(moved.bytes + self.limit);
            self.message(moved.bytes, end, &mut moved.calls)?;
            moved.bytes = end;
        }
        Ok(moved)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.message(0, 0, &mut 0)
    }
}

pub(crate) struct MessageReceiver<C> {
    channel: C,
    buffer: HeadroomBuffer,
    limit: usize,
    block: usize,
    /// The range of the buffer that holds the unreturned part of the last message.
    rest: std::ops::Range<usize>,
    ended: bool,
}

impl<C: Channel> MessageReceiver<C> {
    pub(crate) fn new(channel: C, options: &recv::RecvOptions, limit: usize) -> io::Result<Self> {
        check(options.block, limit)?;
        let buffer = HeadroomBuffer::new(limit, options.align, options.pages)?;
        Ok(MessageReceiver { channel, buffer, limit, block: options.block, rest: 0..0, ended: false })
    }
}

impl<C: Channel> Receiver for MessageReceiver<C> {
    fn recv(&mut self) -> io::Result<Received<'_>> {
        let mut calls = 0;
        if self.rest.is_empty() && !self.ended {
            let bytes = self.channel.take(self.buffer.with_lead(C::LEAD, 0, self.limit), &mut calls)?;
            if bytes > self.limit {
                let message = format!("a message of {bytes} bytes arrived, above the limit of {}", self.limit);
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
            self.rest = 0..bytes;
            self.ended = bytes == 0;
        }
        let bytes = self.rest.len().min(self.block);
        let start = self.rest.start;
        self.rest.start += bytes;
        Ok(Received { bytes, calls, data: Some(self.buffer.bytes()[start..start + bytes].into()) })
    }
}
