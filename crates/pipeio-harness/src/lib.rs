//! The parts of the benchmark `pipemark` that send, receive and measure, beyond the library [`pipeio`]. Linux only.
//! [`send`] and [`recv`] have every method of writing to a pipe and of reading from it. [`ring`], [`vm`], [`message`],
//! [`mq`] and [`zerocopy`] do the same for links that are not pipes. [`pattern`] is self-verifying content.
//!
//! **No API promise:** this crate is published only because `pipemark` depends on it, and may change in any release. To
//! move bytes in your own program, use [`pipeio`].

pub mod buffer;
pub mod copies;
mod handover;
pub mod message;
pub mod mq;
pub mod pattern;
pub mod probe;
pub mod recv;
pub mod ring;
pub mod send;
pub mod shared;
mod uring;
pub mod vm;
pub mod wait;
mod words;
pub mod zerocopy;

use std::io;

use rustix::io::Errno;

/// An `InvalidInput` error.
fn invalid(message: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

/// Converts the return value of a C function: a negative value becomes the error in errno.
fn result_of<T: PartialOrd + Default>(returned: T) -> io::Result<T> {
    if returned < T::default() { Err(io::Error::last_os_error()) } else { Ok(returned) }
}

/// Like `result_of`, with a rustix error.
fn errno_of<T: PartialOrd + Default>(returned: T) -> rustix::io::Result<T> {
    result_of(returned).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

/// Checks that each misuse listed in SAFETY.md fails to compile or panics.
#[cfg(doctest)]
#[doc = include_str!("../SAFETY.md")]
struct Safety;
