//! A UNIX datagram socket pair. It does not know when its peer is gone, so the end of the stream is an empty datagram.

use rustix::net::SocketType;

use crate::link::unix_seqpacket::MessageSocket;

pub struct UnixDgram;

impl MessageSocket for UnixDgram {
    const KIND: SocketType = SocketType::DGRAM;
}
