//! Fast and correct ways to move bytes through Unix pipes, on Linux.
//!
//! For programs that fill, empty or sit between pipes and want to be as fast as the kernel lets them, without ever
//! changing a byte that a reader has not seen yet.
//!
//! * [`pipe`]: a pipe with its capacity and fill level.
//! * [`send`]: every way to put bytes into a pipe, behind one trait ([`send::Sender`]).
//! * [`recv`]: every way to take them out ([`recv::Receiver`]).
//! * [`relay`]: one descriptor's bytes passed to another, as fast as the system can.
//! * [`lines`]: lines of text through a transform, at the speed of the pipe.
//! * [`wait`]: what to do when a pipe is full or empty.
//! * [`memory`]: buffers on base or huge pages, and memory that can safely be given away.
//!
//! It is not about asynchronous I/O, not about other systems than Linux, and measures nothing: what a benchmark of pipes
//! needs besides is in the crate `pipeio-harness`.

pub mod lines;
pub mod memory;
pub mod pipe;
pub mod recv;
pub mod relay;
pub mod send;
mod uring;
pub mod wait;
