//! The parts of the benchmark `pipemark` that send, receive and measure, beyond the library [`pipeio`]. Linux only.
//!
//! **No API promise:** this crate is published only because `pipemark` depends on it, and may change in any release. To
//! move bytes in your own program, use [`pipeio`].
//!
//! * [`send`]: every method of writing to a pipe, behind one trait ([`send::Sender`]).
//! * [`recv`]: every method of reading from a pipe, behind one trait ([`recv::Receiver`]).
//! * [`wait`]: whether to sleep, poll or spin while a pipe is full or empty.
//! * [`buffer`]: buffers for blocks, and memory given away block by block.
//!
//! Links that are not pipes, with the same two traits:
//!
//! * [`ring`]: shared memory, without the kernel. Bytes are copied, or written and read in place.
//! * [`vm`]: reads the sender's memory directly (process_vm_readv).
//! * [`message`], [`mq`]: sockets and queues that carry messages of a limited size.
//! * [`zerocopy`]: a TCP socket that sends references to pages.
//!
//! Building blocks of an experiment:
//!
//! * [`pattern`]: self-verifying content.
//! * [`shared`]: counters and barriers shared by several processes.
//! * [`signals`]: signals as events.
//! * [`mod@start`]: a replacement for the start-up code of Rust's standard library.
//! * [`usage`]: resources used by this process or by a child that has ended.
//! * [`reap`]: reaps children and returns the resources that each child used.
//! * [`allocator`]: an allocator that prints a message and exits when memory runs out.
//! * [`probe`]: tests which system calls the kernel permits here.
//! * [`file_cache`]: counts and drops the cached pages of a file.
//! * [`copies`]: whether a call copies bytes into a pipe.

pub mod allocator;
pub mod buffer;
pub mod copies;
pub mod file_cache;
mod handover;
pub mod message;
pub mod mq;
pub mod pattern;
pub mod probe;
pub mod reap;
pub mod recv;
pub mod ring;
pub mod send;
pub mod shared;
pub mod signals;
pub mod start;
mod uring;
pub mod usage;
pub mod vm;
pub mod wait;
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
