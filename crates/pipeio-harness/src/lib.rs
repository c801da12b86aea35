//! What the benchmark `pipemark` needs besides the library [`pipeio`]. Linux only.
//!
//! **No API promise:** this crate is published so that `pipemark` can be, and changes with it in any release. For moving
//! bytes in a program of your own, use [`pipeio`].
//!
//! * [`send`]: every way to put bytes into a pipe, behind one trait ([`send::Sender`]).
//! * [`recv`]: every way to take them out ([`recv::Receiver`]).
//! * [`wait`]: what an end does when a pipe is full or empty.
//! * [`buffer`]: buffers of blocks, and memory that is given away block by block.
//!
//! Links that are not pipes, with the same two traits:
//!
//! * [`ring`]: shared memory, without the kernel; copied, or produced and read in place.
//! * [`vm`]: the sender's memory, read from outside.
//! * [`message`], [`mq`]: sockets and queues that carry messages of a limited size.
//! * [`zerocopy`]: a TCP socket that takes references to pages.
//!
//! What an experiment is made of:
//!
//! * [`pattern`]: self-verifying content.
//! * [`shared`]: counters and gates that several processes share.
//! * [`signals`]: signals as events.
//! * [`mod@start`]: the start of a program, and what it was given.
//! * [`usage`]: what this process, or a child that ended, has used.
//! * [`reap`]: children that have ended, with what each had used.
//! * [`allocator`]: an allocator that ends the program with a sentence when there is no more.
//! * [`probe`]: what the kernel permits here, found by trying.
//! * [`file_cache`]: a file's pages in memory, dropped and counted.

pub mod allocator;
pub mod buffer;
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

/// The error of arguments that make no sense.
fn invalid(message: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

/// What a C function returned, unless that is a negative number: then the error that errno holds.
fn result_of<T: PartialOrd + Default>(returned: T) -> io::Result<T> {
    if returned < T::default() { Err(io::Error::last_os_error()) } else { Ok(returned) }
}

/// The same, as rustix would have it.
fn errno_of<T: PartialOrd + Default>(returned: T) -> rustix::io::Result<T> {
    result_of(returned).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

/// The misuses that the page on safety names are tried.
#[cfg(doctest)]
#[doc = include_str!("../SAFETY.md")]
struct Safety;
