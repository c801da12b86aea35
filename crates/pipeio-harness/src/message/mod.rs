//! Links that carry messages of limited size. The sender splits a block into as many messages as it needs. An empty
//! message ends the stream. A message larger than the reader's block is returned in pieces, without loss.
//!
//! This module is for datagram and seqpacket sockets, [`crate::mq`] for message queues.

mod sockets;

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketType, sockopt};

pub(crate) use sockets::{Channel, MessageReceiver, MessageSender};

use crate::recv::{self, Receiver};
use crate::send::{self, Sender};
use crate::wait::{Direction, Wait};

/// Bytes of a UNIX socket's send buffer that the kernel reserves for each message (unix_dgram_sendmsg, since Linux
/// 2.6).
const OVERHEAD: usize = 32;

/// The maximum message size of the UNIX datagram or seqpacket socket `fd`, in bytes, given its send buffer.
///
/// # Errors
/// If `fd` is not a socket.
pub fn limit(fd: impl AsFd) -> io::Result<usize> {
    Ok(sockopt::socket_send_buffer_size(fd)?.saturating_sub(OVERHEAD))
}

/// Creates a sender for the connected datagram or seqpacket socket `fd`, with messages of at most `limit` bytes.
/// `finish` sends an empty message.
///
/// # Errors
/// If `fd` isn't such a socket, `limit` is 0, or the memory can't be allocated. Sending fails with `BrokenPipe` if the
/// receiver is gone.
pub fn sender(fd: OwnedFd, options: &send::SendOptions, limit: usize) -> io::Result<Box<dyn Sender + Send>> {
    Ok(Box::new(MessageSender::new(Socket::new(fd, options.wait)?, options, limit)?))
}

/// Creates a receiver for the connected datagram or seqpacket socket `fd`, with room for messages of `limit` bytes,
/// whatever the block size.
///
/// On a seqpacket socket, the stream also ends if the sender leaves without an empty message. On a datagram socket it
/// doesn't, because the kernel doesn't tell the receiver: the process that started both ends must then end the
/// receiver.
///
/// # Errors
/// If `fd` isn't such a socket, `limit` is 0, or the memory can't be allocated. Receiving fails with `InvalidData` for
/// a message larger than the limit.
pub fn receiver(fd: OwnedFd, options: &recv::RecvOptions, limit: usize) -> io::Result<Box<dyn Receiver + Send>> {
    Ok(Box::new(MessageReceiver::new(Socket::new(fd, options.wait)?, options, limit)?))
}

struct Socket {
    fd: OwnedFd,
    wait: Wait,
}

impl Socket {
    fn new(fd: OwnedFd, wait: Wait) -> io::Result<Socket> {
        if ![SocketType::DGRAM, SocketType::SEQPACKET].contains(&sockopt::socket_type(&fd)?) {
            return Err(crate::invalid("not a socket for messages; use a datagram or seqpacket socket"));
        }
        wait.configure(&fd)?;
        Ok(Socket { fd, wait })
    }
}

impl Channel for Socket {
    const LEAD: usize = 0;

    fn put(&self, message: &mut [u8], calls: &mut u32) -> io::Result<()> {
        let sent = self.wait.retry(self.fd.as_fd(), Direction::Out, calls, || {
            match rustix::net::send(&self.fd, message, SendFlags::NOSIGNAL) {
                // Maps a datagram socket's errors to the EPIPE that other sockets report.
                Err(Errno::CONNREFUSED | Errno::CONNRESET) => Err(Errno::PIPE),
                sent => sent,
            }
        });
        match sent {
            Err(error) if error.raw_os_error() == Some(libc::EMSGSIZE) => {
                let (len, limit) = (message.len(), limit(&self.fd)?);
                let text = format!(
                    "a message of {len} bytes is above this socket's limit of {limit}; lower the sender's limit"
                );
                Err(crate::invalid(text))
            }
            Err(error) => Err(error),
            Ok(_) => Ok(()),
        }
    }

    fn take(&self, buffer: &mut [u8], calls: &mut u32) -> io::Result<usize> {
        self.wait.retry(self.fd.as_fd(), Direction::In, calls, || {
            match rustix::net::recv(&self.fd, &mut *buffer, RecvFlags::TRUNC) {
                Ok((_, len)) => Ok(len),
                // The peer left before it had read everything that we sent to it. The kernel reports that once, before
                // it delivers the peer's messages. So try again.
                Err(Errno::CONNRESET) => Err(Errno::INTR),
                Err(error) => Err(error),
            }
        })
    }
}
