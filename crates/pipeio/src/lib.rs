//! Fast and correct ways to move bytes through Unix pipes, on Linux.
//!
//! For programs that fill, empty or sit between pipes and want to be as fast as the kernel lets them, without ever
//! changing a byte that a reader has not seen yet.
//!
//! * [`copy`], [`Relay`]: one descriptor's bytes passed to another, whatever the two are.
//! * [`Gifts`], [`Gift`]: zero-copy sending of memory that can't be changed afterwards.
//! * [`lines`]: lines of text through a function, at the speed of the pipe (feature `lines`, on unless turned off).
//! * [`Pipe`]: a pipe with its capacity and fill level.
//! * [`memory`], [`wait`]: buffers on base or huge pages; waiting for a descriptor.
//!
//! All take descriptors that are blocking or not. Those who wait with poll, epoll or an async runtime wait for readiness of
//! the descriptor and call again: see `examples/tokio.rs`.
//!
//! ```
//! use std::io::{Read, Write};
//!
//! # fn main() -> std::io::Result<()> {
//! let (reader, mut source) = std::io::pipe()?;
//! let (mut sink, writer) = std::io::pipe()?;
//! source.write_all(b"from one pipe into the other")?;
//! drop(source);
//!
//! let report = pipeio::copy(&reader, &writer)?;
//! println!("{} bytes by {}", report.bytes, report.method);
//! # drop(writer);
//! # let mut text = String::new();
//! # sink.read_to_string(&mut text)?;
//! # assert_eq!(text, "from one pipe into the other");
//! # Ok(())
//! # }
//! ```

#![deny(missing_docs)]

#[cfg(not(target_os = "linux"))]
compile_error!(
    "pipeio is for Linux: it uses splice(2), vmsplice(2) and capacities of pipes; elsewhere use std::io::copy"
);

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

/// The examples of the front page are tested too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// So are the misuses that the page on safety says don't compile.
#[cfg(all(doctest, feature = "lines"))]
#[doc = include_str!("../SAFETY.md")]
struct Safety;
