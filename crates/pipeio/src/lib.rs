//! Fast and correct ways to move bytes through Unix pipes, on Linux.
//!
//! For programs that write to pipes, read from pipes or copy between pipes at the kernel's full speed. Bytes that were
//! sent don't change before they are read.
//!
//! * [`copy`], [`Relay`]: copy bytes between two descriptors of any type.
//! * [`Gifts`], [`Gift`]: send memory without copying it. The sender can't change the memory afterwards.
//! * [`lines`]: apply a function to each line of text at the speed of the pipe (feature `lines`, on by default).
//! * [`Pipe`]: a pipe, its capacity and its fill level.
//! * [`memory`]: buffers on base pages or huge pages.
//! * [`wait`]: wait until a descriptor is ready.
//!
//! All functions accept blocking and non-blocking descriptors. With poll, epoll or an async runtime, wait until the
//! descriptor is ready and then repeat the call: see `examples/tokio.rs`.
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
