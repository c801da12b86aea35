//! A UNIX socket pair that keeps messages apart, in order, and knows its end.

use std::io;
use std::path::Path;

use pipeio::recv::Receiver;
use pipeio::send::Sender;
use rustix::net::SocketType;

use super::{Handle, Handles, Link, options, socketpair};
use crate::model::Ends;

pub struct UnixSeqpacket;

impl Link for UnixSeqpacket {
    fn connect(&self, params: &Ends, _: &Path) -> io::Result<Handles> {
        let (source, sink) = socketpair::pair(SocketType::SEQPACKET)?;
        let buffers = socketpair::set_buffers(&source, &sink, params.buffer)?;
        let limit = pipeio_harness::message::limit(&source)? as u64;
        Ok(Handles { message_limit: Some(limit), buffers: Some(buffers), ..Handles::new(source, sink) })
    }

    fn sender(&self, end: Handle, params: &Ends) -> io::Result<Box<dyn Sender + Send>> {
        message_sender(end, params)
    }

    fn receiver(&self, end: Handle, params: &Ends) -> io::Result<Box<dyn Receiver + Send>> {
        message_receiver(end, params)
    }
}

/// The limit follows from the socket's own buffer, which both ends can ask for.
pub fn message_sender(end: Handle, params: &Ends) -> io::Result<Box<dyn Sender + Send>> {
    let socket = end.fd()?;
    let limit = pipeio_harness::message::limit(&socket)?;
    pipeio_harness::message::sender(socket, &options::send(params), limit)
}

/// A message is at most a block, because the sender splits larger ones and sends smaller ones as they are.
pub fn message_receiver(end: Handle, params: &Ends) -> io::Result<Box<dyn Receiver + Send>> {
    pipeio_harness::message::receiver(end.fd()?, &options::recv(params), params.block.as_usize())
}
