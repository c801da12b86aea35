//! A UNIX socket pair that keeps messages apart, in order, and knows its end.

use std::io;
use std::path::Path;

use pipeio::recv::Receiver;
use pipeio::send::Sender;
use rustix::net::SocketType;

use super::{Ends, Handle, Link, options, socketpair};
use crate::model::Params;

pub struct UnixSeqpacket;

impl Link for UnixSeqpacket {
    fn connect(&self, params: &Params, _: &Path) -> io::Result<Ends> {
        let (source, sink) = socketpair::pair(SocketType::SEQPACKET)?;
        let ends = socketpair::sized(source, sink, params)?;
        Ok(Ends { message_limit: Some(socketpair::message_limit(&ends)), ..ends })
    }

    fn sender(&self, end: Handle, params: &Params) -> io::Result<Box<dyn Sender + Send>> {
        message_sender(end, params)
    }

    fn receiver(&self, end: Handle, params: &Params) -> io::Result<Box<dyn Receiver + Send>> {
        message_receiver(end, params)
    }
}

/// The limit follows from the socket's own buffer, which both ends can ask for.
pub fn message_sender(end: Handle, params: &Params) -> io::Result<Box<dyn Sender + Send>> {
    let socket = end.fd()?;
    let limit = limit(rustix::net::sockopt::socket_send_buffer_size(&socket)?);
    pipeio::message::sender(socket, &options::send(params), limit)
}

/// A message is at most a block, because the sender splits larger ones and sends smaller ones as they are.
pub fn message_receiver(end: Handle, params: &Params) -> io::Result<Box<dyn Receiver + Send>> {
    pipeio::message::receiver(end.fd()?, &options::recv(params), params.block.as_usize())
}

fn limit(send_buffer: usize) -> usize {
    send_buffer.saturating_sub(32).max(1)
}
