//! A UNIX stream socket pair; and what all sockets share: their buffers.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use pipeio::recv::Receiver;
use pipeio::send::Sender;
use rustix::net::sockopt;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::{Handle, Handles, Link, stream};
use crate::model::{ByteSize, Ends};

pub struct Socketpair;

impl Link for Socketpair {
    fn connect(&self, params: &Ends, _: &Path) -> io::Result<Handles> {
        let (source, sink) = pair(SocketType::STREAM)?;
        sized(source, sink, params)
    }

    fn sender(&self, end: Handle, params: &Ends) -> io::Result<Box<dyn Sender + Send>> {
        stream::sender(end, params)
    }

    fn receiver(&self, end: Handle, params: &Ends) -> io::Result<Box<dyn Receiver + Send>> {
        stream::receiver(end, params)
    }
}

/// A connected, unnamed pair of UNIX sockets.
pub fn pair(kind: SocketType) -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?)
}

/// Gives connected sockets the buffers asked for, and reads back what they got.
pub fn sized(source: OwnedFd, sink: OwnedFd, params: &Ends) -> io::Result<Handles> {
    let buffers = set_buffers(&source, &sink, params.buffer)?;
    Ok(Handles { buffers: Some(buffers), ..Handles::new(source, sink) })
}

/// The kernel caps what is asked for (net.core.wmem_max, rmem_max) and doubles it for its own bookkeeping.
pub fn set_buffers(source: impl AsFd, sink: impl AsFd, wanted: Option<ByteSize>) -> io::Result<(u64, u64)> {
    if let Some(size) = wanted {
        sockopt::set_socket_send_buffer_size(&source, size.as_usize())?;
        sockopt::set_socket_recv_buffer_size(&sink, size.as_usize())?;
    }
    Ok((sockopt::socket_send_buffer_size(&source)? as u64, sockopt::socket_recv_buffer_size(&sink)? as u64))
}
