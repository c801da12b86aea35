//! What can end a run of lines before its input does.

use std::{error, io};

/// What a transform's own failure travels in.
pub type Failure = Box<dyn error::Error + Send + Sync>;

/// Why a run of lines failed. Everything before the failure has reached the output, unless the output is what failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The input could not be read.
    #[error("the input can't be read: {0}")]
    Read(#[source] io::Error),
    /// The output could not be written: a full disk, say. A reader which went away is no error, see
    /// [`Ended`](super::Ended).
    #[error("the output can't be written: {0}")]
    Write(#[source] io::Error),
    /// No memory for a line or its output.
    #[error("no memory for a batch of lines: {0}")]
    Memory(#[source] io::Error),
    /// A line is longer than the engine was told to accept.
    #[error("the line at byte {offset} of the input is longer than the limit of {limit} bytes")]
    LineTooLong {
        /// Where in the input the line starts, in bytes since the run began.
        offset: u64,
        /// The longest line accepted, in bytes without its terminator.
        limit: usize,
    },
    /// The transform failed.
    #[error("the line at byte {offset} of the input can't be transformed: {source}")]
    Transform {
        /// Where in the input the line starts which it failed on, in bytes since the run began.
        offset: u64,
        /// What the transform said.
        source: Failure,
    },
}
