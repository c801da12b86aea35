//! Input from sockets that carry messages. Each message is read whole, and stays one message if the output is also a
//! socket that carries messages.

use std::io;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, ioctl_fionread};
use rustix::net::{RecvFlags, recv};

use super::methods::Kind;
use super::run::RelayRun;
use crate::wait::Direction;

/// The maximum size of a message made from a stream, in bytes: the common size of receivers' buffers.
const MAX_MESSAGE: usize = 64 << 10;

impl RelayRun<'_> {
    /// Passes messages on until the socket has no more.
    pub(super) fn pass_messages(&mut self) -> io::Result<()> {
        let input = self.input;
        let mut buffer = Vec::new();
        loop {
            self.wait_for_limit();
            let peek = RecvFlags::PEEK | RecvFlags::TRUNC;
            let next =
                self.call_once(input, Direction::In, || recv(input, &mut [0][..], peek).map(|(_, length)| length))?;
            if next > buffer.len() {
                buffer.resize(next, 0);
            }
            let whole = RecvFlags::TRUNC;
            let got =
                self.call_once(input, Direction::In, || recv(input, &mut buffer[..], whole).map(|(_, length)| length));
            let Some(message) = buffer.get(..got?) else {
                // Another process has read the message whose length was peeked.
                return Err(io::Error::other("a message was truncated: another process reads from the same socket"));
            };
            self.held = message.len() as u64;
            if message.is_empty() && self.messages_ended()? {
                return Ok(());
            }
            if self.kinds[1].has_messages() {
                self.write_message(message)?;
            } else {
                self.write_all(message)?;
            }
            self.count_against_limit(message.len());
        }
    }

    /// Whether an empty message marks the end of the input.
    fn messages_ended(&mut self) -> io::Result<bool> {
        if self.kinds[0] == Kind::Datagrams {
            return Ok(true);
        }
        self.calls += 2;
        let mut polled = [PollFd::from_borrowed_fd(self.input, PollFlags::RDHUP)];
        poll(&mut polled, Some(&Duration::ZERO.try_into().expect("zero is a valid timeout")))?;
        Ok(!polled[0].revents().is_empty() && ioctl_fionread(self.input)? == 0)
    }

    fn write_message(&mut self, message: &[u8]) -> io::Result<()> {
        let output = self.output;
        let taken = self.call_once(output, Direction::Out, || rustix::io::write(output, message))?;
        self.count_lines(&message[..taken]);
        self.count(taken);
        if taken < message.len() { Err(io::ErrorKind::WriteZero.into()) } else { Ok(()) }
    }

    /// Writes a part of a stream as messages, each as long as the socket accepts.
    pub(super) fn write_messages(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let mut longest = MAX_MESSAGE;
        while !bytes.is_empty() {
            let (message, rest) = bytes.split_at(bytes.len().min(longest));
            match self.write_message(message) {
                Ok(()) => bytes = rest,
                Err(error) if Errno::from_io_error(&error) == Some(Errno::MSGSIZE) && longest > 1 => longest /= 2,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
