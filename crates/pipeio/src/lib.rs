//! Fast and correct ways to move bytes through Unix pipes.
//!
//! * [`pipe`]: a pipe with its capacity and fill level.
//! * [`send`]: every way to put bytes into a pipe, behind one trait ([`send::Sender`]).
//! * [`recv`]: every way to take them out ([`recv::Receiver`]).
//! * [`ring`]: the same two ends over shared memory, without the kernel.
//! * [`vm`]: over the sender's memory, read from outside.
//! * [`zerocopy`]: into a TCP socket by reference.
//! * [`message`], [`mq`]: over sockets and queues that carry messages of a limited size.
//! * [`relay`]: one descriptor's bytes passed to another, as fast as the system can.
//! * [`pattern`]: content that proves itself.
//! * [`wait`]: what to do when a pipe is full or empty.
//! * [`memory`]: buffers on base or huge pages, and memory that can safely be given away.
//! * [`shared`]: counters and gates that several processes share.
//! * [`lines`]: lines of text through a transform, at the speed of the pipe.
//! * [`usage`]: what this process has used.
//! * [`reap`]: children that have ended, with what each had used.
//! * [`probe`]: which of all this the kernel permits here, found by trying.
//!
//! Linux only. All of the workspace's `unsafe` is in this crate.

mod handover;
pub mod lines;
pub mod memory;
pub mod message;
pub mod mq;
pub mod pattern;
pub mod pipe;
pub mod probe;
pub mod reap;
pub mod recv;
pub mod relay;
pub mod ring;
pub mod send;
pub mod shared;
mod uring;
pub mod usage;
pub mod vm;
pub mod wait;
pub mod zerocopy;
