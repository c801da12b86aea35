//! TCP over the loopback device. Anyone on the machine can connect to the port that is open for a moment, so a
//! connection counts only if it is our own: the address it comes from has to be the one our socket has.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::path::Path;

use pipeio::recv::Receiver;
use pipeio::send::Sender;

use super::{Ends, Handle, Link, options, socketpair, stream};
use crate::model::{Params, SendMethod};

pub struct Tcp;

/// Foreign connections that are sent away before the attempt is given up: someone is flooding the port.
const MOST_STRANGERS: u32 = 1000;

impl Link for Tcp {
    fn connect(&self, params: &Params, _: &Path) -> io::Result<Ends> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let (source, sink) = join(&listener)?;
        // A block is sent when it is complete, not when the last one was acknowledged.
        source.set_nodelay(true)?;
        sink.set_nodelay(true)?;
        socketpair::sized(source.into(), sink.into(), params)
    }

    fn sender(&self, end: Handle, params: &Params) -> io::Result<Box<dyn Sender + Send>> {
        match params.send {
            SendMethod::Zerocopy => pipeio::zerocopy::sender(end.fd()?, &options::send(params)),
            _ => stream::sender(end, params),
        }
    }

    fn receiver(&self, end: Handle, params: &Params) -> io::Result<Box<dyn Receiver + Send>> {
        stream::receiver(end, params)
    }
}

/// Connects to our own listener and accepts until it is us.
fn join(listener: &TcpListener) -> io::Result<(TcpStream, TcpStream)> {
    let source = TcpStream::connect(listener.local_addr()?)?;
    let ours = source.local_addr()?;
    for _ in 0..MOST_STRANGERS {
        let (sink, peer) = listener.accept()?;
        if peer == ours && is_loopback(&sink.local_addr()?) {
            return Ok((source, sink));
        }
        // Dropping it refuses the stranger; our own connection is still in the queue.
    }
    Err(io::Error::other(format!("{MOST_STRANGERS} foreign connections came to the port in a moment; try again")))
}

fn is_loopback(address: &SocketAddr) -> bool {
    matches!(address, SocketAddr::V4(address) if *address.ip() == Ipv4Addr::LOCALHOST && *address != SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn a_stranger_is_sent_away_and_we_go_on() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let mut strangers: Vec<TcpStream> = (0..5).map(|_| TcpStream::connect(address).unwrap()).collect();
        strangers[0].write_all(b"injected").unwrap();
        let (mut source, mut sink) = join(&listener).unwrap();
        source.write_all(b"ours").unwrap();
        drop(source);
        let mut arrived = Vec::new();
        sink.read_to_end(&mut arrived).unwrap();
        assert_eq!(arrived, b"ours");
        // The one that spoke was reset or closed, never answered.
        assert!(matches!(strangers[0].read(&mut [0; 8]), Ok(0) | Err(_)));
    }
}
