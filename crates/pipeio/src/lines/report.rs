//! The result of a run.

use super::reader::Reader;
use super::writer::Writer;

/// How a run without an error ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The input ended.
    Input,
    /// The transform returned [`Flow::Stop`](super::Flow::Stop).
    Stopped,
    /// Nobody reads the output any more, as when `head` exits.
    ReadersGone,
}

/// The result of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinesReport {
    /// How the run ended.
    pub ended: Ended,
    /// The number of threads that worked. Smaller than requested if the system could not start more.
    pub threads: usize,
    /// Bytes of all lines read from the input. After an early end, this may include bytes that were not transformed.
    pub bytes_in: u64,
    /// Bytes written or given away to the output.
    pub bytes_out: u64,
    /// How many of the `bytes_out` bytes were given away without a copy.
    pub given_away: u64,
    /// System calls that read bytes from the input. Calls that found nothing to read aren't counted.
    pub reads: u64,
    /// Calls of write(2), writev(2) and vmsplice(2).
    pub writes: u64,
}

impl LinesReport {
    pub(super) fn of(ended: Ended, threads: usize, reader: &Reader<'_>, writer: &Writer<'_>) -> Self {
        Self {
            ended,
            threads,
            bytes_in: reader.taken(),
            bytes_out: writer.bytes,
            given_away: writer.given_away,
            reads: reader.reads,
            writes: writer.writes,
        }
    }
}
