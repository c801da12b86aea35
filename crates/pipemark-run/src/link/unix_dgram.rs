//! A UNIX datagram socket pair. A receiver can't detect that the peer is gone, so an empty datagram ends the stream.

use rustix::net::SocketType;

use crate::link::unix_seqpacket::MessageSocket;

pub struct UnixDgram;

impl MessageSocket for UnixDgram {
    const KIND: SocketType = SocketType::DGRAM;
}
