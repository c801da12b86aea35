//! Fast and correct ways to move bytes through Unix pipes.
//!
//! * [`pipe`]: a pipe with its capacity and fill level.
//! * [`send`]: every way to put bytes into a pipe, behind one trait ([`send::Sender`]).
//! * [`recv`]: every way to take them out ([`recv::Receiver`]).
//! * [`pattern`]: content that proves itself.
//! * [`wait`]: what to do when a pipe is full or empty.
//! * [`memory`]: buffers on base or huge pages, and memory that can safely be given away.
//! * [`shared`]: counters and gates that several processes share.
//! * [`usage`]: what this process has used.
//! * [`reap`]: children that have ended, with what each had used.
//! * [`probe`]: which of all this the kernel permits here, found by trying.
//!
//! Linux only. All of the workspace's `unsafe` is in this crate.

pub mod memory;
pub mod pattern;
pub mod pipe;
pub mod probe;
pub mod reap;
pub mod recv;
pub mod send;
pub mod shared;
mod uring;
pub mod usage;
pub mod wait;
