use crate::{recv, send};
use std::io;
use std::os::fd::OwnedFd;
type S = io::Result<Box<dyn send::Sender + Send>>;
type R = io::Result<Box<dyn recv::Receiver + Send>>;
fn no<T>() -> io::Result<T> {
    Err(io::ErrorKind::Unsupported.into())
}
pub fn create() -> io::Result<OwnedFd> {
    no()
}
pub fn sender(_: OwnedFd, _: &send::Options) -> S {
    no()
}
pub fn receiver(_: OwnedFd, _: &recv::Options) -> R {
    no()
}
