//! Common code of links that are a stream of bytes through a descriptor.

use std::io;

use pipeio_harness::recv::{self, Receiver};
use pipeio_harness::send::{self, Sender};

use pipemark_model::{Ends, RecvMethod, SendMethod};

use crate::link::{BoxReceiver, BoxSender, Handle, Link, options};

pub fn sender(end: Handle, params: &Ends) -> io::Result<BoxSender> {
    let method = send_method(params.send).ok_or(io::ErrorKind::InvalidInput)?;
    send::open(method, end.fd()?, &options::send(params))
}

pub fn receiver(end: Handle, params: &Ends) -> io::Result<BoxReceiver> {
    let method = match params.recv {
        RecvMethod::Read => recv::ReceiveCall::Read,
        RecvMethod::Splice => recv::ReceiveCall::Splice,
        RecvMethod::Vmsplice => recv::ReceiveCall::Vmsplice,
        RecvMethod::IoUring => recv::ReceiveCall::IoUring,
        RecvMethod::InPlace => return Err(io::ErrorKind::InvalidInput.into()),
    };
    recv::open(method, end.fd()?, &options::recv(params))
}

/// Whether the ends of a link use [`write()`] and [`read`].
pub fn is_plain(link: &dyn Link, params: &Ends) -> bool {
    link.is_plain() && (params.send, params.recv) == (SendMethod::Write, RecvMethod::Read)
}

/// The sender of a plain link, as a concrete type.
pub fn write(end: Handle, params: &Ends) -> io::Result<impl Sender + Send + use<>> {
    send::write(end.fd()?, &options::send(params))
}

/// The receiver of a plain link, as a concrete type.
pub fn read(end: Handle, params: &Ends) -> io::Result<impl Receiver + Send + use<>> {
    recv::read(end.fd()?, &options::recv(params))
}

/// The library's name of a send method; `None` for methods of links that aren't streams.
fn send_method(method: SendMethod) -> Option<send::SendCall> {
    Some(match method {
        SendMethod::Write => send::SendCall::Write,
        SendMethod::Vmsplice => send::SendCall::Vmsplice,
        SendMethod::VmspliceGift => send::SendCall::VmspliceGift,
        SendMethod::Sendfile => send::SendCall::Sendfile,
        SendMethod::Splice => send::SendCall::Splice,
        SendMethod::Tee => send::SendCall::Tee,
        SendMethod::IoUring => send::SendCall::IoUring,
        SendMethod::InPlace | SendMethod::Zerocopy => return None,
    })
}

/// The period in bytes after which prepared content repeats: see [`send::period`].
pub fn period(params: &Ends) -> usize {
    let block = params.block.as_usize();
    send_method(params.send).map_or(block, |method| send::period(method, block))
}
