//! Fast and correct ways to move bytes through Unix pipes, on Linux. Bytes that were sent don't change before they are
//! read. [`copy`] and [`Relay`] copy bytes between two descriptors of any type, [`Gifts`] send memory without copying it,
//! [`lines`] applies a function to each line of text (feature `lines`, on by default), and a [`Pipe`] has a capacity and
//! a fill level.
//!
//! All functions accept blocking and non-blocking descriptors. With poll, epoll or an async runtime, wait until the
//! descriptor is ready and then repeat the call: see `examples/tokio.rs`.

#![deny(missing_docs)]

#[cfg(not(target_os = "linux"))]
compile_error!("pipeio needs Linux (splice, vmsplice and pipe capacities); on other systems use std::io::copy");

pub mod gift;
#[cfg(feature = "lines")]
pub mod lines;
pub mod memory;
pub mod pipe;
pub mod relay;
pub mod wait;

pub use gift::{Gift, Gifts};
pub use pipe::Pipe;
pub use relay::{Relay, copy};

/// Runs the examples of README.md as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// Checks that the misuses listed in SAFETY.md don't compile.
#[cfg(all(doctest, feature = "lines"))]
#[doc = include_str!("../SAFETY.md")]
struct Safety;
