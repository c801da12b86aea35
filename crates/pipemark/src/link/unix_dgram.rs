//! A UNIX datagram socket pair. It does not know when its peer is gone, so the end of the stream is an empty datagram.

use std::io;
use std::path::Path;

use pipeio::recv::Receiver;
use pipeio::send::Sender;
use rustix::net::SocketType;

use super::{Handle, Handles, Link, socketpair, unix_seqpacket};
use crate::model::Ends;

pub struct UnixDgram;

impl Link for UnixDgram {
    fn connect(&self, params: &Ends, _: &Path) -> io::Result<Handles> {
        let (source, sink) = socketpair::pair(SocketType::DGRAM)?;
        let buffers = socketpair::set_buffers(&source, &sink, params.buffer)?;
        let limit = pipeio_harness::message::limit(&source)? as u64;
        Ok(Handles { message_limit: Some(limit), buffers: Some(buffers), ..Handles::new(source, sink) })
    }

    fn sender(&self, end: Handle, params: &Ends) -> io::Result<Box<dyn Sender + Send>> {
        unix_seqpacket::message_sender(end, params)
    }

    fn receiver(&self, end: Handle, params: &Ends) -> io::Result<Box<dyn Receiver + Send>> {
        unix_seqpacket::message_receiver(end, params)
    }
}
