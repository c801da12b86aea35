//! The errors that end a run of the engine before its input ends.

use std::{error, fmt, io};

/// The error of a transform.
pub type Failure = Box<dyn error::Error + Send + Sync>;

/// Why a run of the engine failed. The output of every line before the failure was written, unless the write itself
/// failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The input could not be read.
    Read(io::Error),
    /// The output could not be written, for example because the disk is full. A reader that leaves doesn't cause an
    /// error: see [`Ended`](super::Ended).
    Write(io::Error),
    /// There is no memory for a line or its output.
    Memory(io::Error),
    /// Input and output are the same file. The run would overwrite lines before reading them, or read its own output
    /// without end.
    SameFile,
    /// A range was requested for an input that is not a regular file.
    RangeOfNoFile,
    /// A line is longer than the engine's limit.
    LineTooLong {
        /// Where the line starts, in bytes from the descriptor's position at the start of the run; if a range is read,
        /// from the start of the file.
        offset: u64,
        /// The longest line accepted, in bytes without its terminator.
        limit: usize,
    },
    /// The transform failed.
    Transform {
        /// Where the failed line starts, in bytes, counted as in [`LineTooLong`](Error::LineTooLong).
        offset: u64,
        /// The transform's error.
        source: Failure,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => write!(f, "the input can't be read: {error}"),
            Self::Write(error) => write!(f, "the output can't be written: {error}"),
            Self::Memory(error) => write!(f, "no memory for a batch of lines: {error}"),
            Self::SameFile => {
                f.write_str("input and output are the same file, so the run might never end; write to another file")
            }
            Self::RangeOfNoFile => {
                f.write_str("a range of bytes can be read only from a file, not from a pipe or a socket")
            }
            Self::LineTooLong { offset, limit } => {
                write!(f, "the line at byte {offset} of the input is longer than the limit of {limit} bytes")
            }
            Self::Transform { offset, source } => {
                write!(f, "the line at byte {offset} of the input can't be transformed: {source}")
            }
        }
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Read(error) | Self::Write(error) | Self::Memory(error) => Some(error),
            Self::Transform { source, .. } => Some(source.as_ref()),
            Self::SameFile | Self::RangeOfNoFile | Self::LineTooLong { .. } => None,
        }
    }
}
