//! A UNIX socket pair that preserves message boundaries and order and reports the end of the stream. Also the common
//! code of message sockets.

use std::io;
use std::path::Path;

use pipeio_harness::message;
use rustix::net::SocketType;

use pipemark_model::Ends;

use crate::link::{BoxReceiver, BoxSender, Handle, Handles, Link, options, socketpair};

pub struct UnixSeqpacket;

impl MessageSocket for UnixSeqpacket {
    const KIND: SocketType = SocketType::SEQPACKET;
}

/// A socket pair that carries messages.
pub trait MessageSocket: Sync {
    /// The type of the socket.
    const KIND: SocketType;
}

impl<T: MessageSocket> Link for T {
    fn connect(&self, params: &Ends, _: &Path) -> io::Result<Handles> {
        let (source, sink) = socketpair::pair(T::KIND)?;
        let handles = socketpair::with_buffers((source.try_clone()?, sink), params)?;
        Ok(Handles { message_limit: Some(message::limit(&source)? as u64), ..handles })
    }

    /// The limit of a message follows from the socket's buffer, whose size both ends can query.
    fn sender(&self, end: Handle, params: &Ends) -> io::Result<BoxSender> {
        let socket = end.fd()?;
        let limit = message::limit(&socket)?;
        message::sender(socket, &options::send(params), limit)
    }

    /// A message is at most as large as a block. The sender splits blocks that exceed the message limit.
    fn receiver(&self, end: Handle, params: &Ends) -> io::Result<BoxReceiver> {
        message::receiver(end.fd()?, &options::recv(params), params.block.as_usize())
    }
}
