//! Passes lines from one descriptor to another through a transform, at the speed of the pipe.
//!
//! A filter that reads, processes and writes single lines spends most of its time on the overhead of each line. This
//! engine reads large batches, finds the ends of lines with vector instructions, passes the whole batch to a transform,
//! and writes the result with one call. [`Engine::run`] uses one thread. [`Engine::run_parallel`] uses several, and
//! keeps the output in the order of the input.
//!
//! - **Bytes are kept.** Lines need not be UTF-8; NUL, `\r`, empty lines and a last line without its terminator are
//!   kept.
//! - **Output is prompt.** Output is held back only while more whole lines can be read without waiting, and for at most
//!   64 reads.
//! - **Memory is bounded.** Memory grows only with the longest line, which [`Engine::max_line`] limits.
//! - **Messages stay whole.** Each message from a socket is read into a buffer that has room for the whole message.
//! - **Shortage is reported.** Lack of memory is an error, never a panic. If some threads can't be started, the run
//!   uses fewer.
//! - **Interrupted calls** are repeated. If a **non-blocking descriptor** isn't ready, the engine waits for it. A
//!   **reader that leaves** ends the run without an error.
//!
//! ```
//! use pipeio::lines::{Ended, Engine, Fate, per_line};
//! # use std::io::Write;
//!
//! # let (input, mut writer) = std::io::pipe()?;
//! # let (mut result, output) = std::io::pipe()?;
//! # writer.write_all(b"ok\nerror: disk\nerror: fan\n")?;
//! # drop(writer);
//! // In a program: `let (input, output) = (std::io::stdin(), std::io::stdout());`
//! let mut first_error = per_line(|line, output| {
//!     if !line.starts_with(b"error: ") {
//!         return Ok(Fate::Drop);
//!     }
//!     output.extend(&line[7..]);
//!     Ok(Fate::KeepAndStop)
//! });
//! let report = Engine::new().run(&input, &output, &mut first_error)?;
//! assert_eq!(report.ended, Ended::Stopped);
//! # drop(output);
//! # let mut text = String::new();
//! # std::io::Read::read_to_string(&mut result, &mut text)?;
//! # assert_eq!(text, "disk\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod batch;
mod chunks;
mod engine;
mod error;
mod fate;
mod fault;
mod output;
mod parallel;
mod reader;
mod region;
mod report;
mod simd;
mod threads;
mod transform;
pub mod transforms;
mod writer;

pub use batch::{Batch, Line, LineEnd, Lines};
pub use engine::Engine;
pub use error::{Error, Failure};
pub use fate::{Fate, Flow};
pub use output::{Mark, Output};
pub use report::{Ended, LinesReport};
pub use simd::Simd;
pub use transform::{PerLine, Transform, per_line};
pub use writer::OutputMethod;
