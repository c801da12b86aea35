use crate::{recv, send};
use std::io;
use std::os::fd::OwnedFd;
type S = io::Result<Box<dyn send::Sender + Send>>;
type R = io::Result<Box<dyn recv::Receiver + Send>>;
fn no<T>() -> io::Result<T> {
    Err(io::ErrorKind::Unsupported.into())
}
pub fn posix_create(_: &str, _: usize, _: usize) -> io::Result<OwnedFd> {
    no()
}
pub fn posix_unlink(_: &str) -> io::Result<()> {
    no()
}
pub fn posix_limits() -> (usize, usize) {
    (8192, 10)
}
pub fn sysv_limits() -> (usize, usize) {
    (8192, 16384)
}
pub fn posix_sender(_: OwnedFd, _: &send::Options, _: usize) -> S {
    no()
}
pub fn posix_receiver(_: OwnedFd, _: &recv::Options, _: usize) -> R {
    no()
}
pub fn sysv_create(_: i32) -> io::Result<i32> {
    no()
}
pub fn sysv_find(_: i32) -> io::Result<i32> {
    no()
}
pub fn sysv_remove(_: i32) -> io::Result<()> {
    no()
}
pub fn sysv_sender(_: i32, _: &send::Options) -> S {
    no()
}
pub fn sysv_receiver(_: i32, _: &recv::Options) -> R {
    no()
}
