//! What a transform decides: about a line, and about the rest of the run.

/// What happens to the bytes that were appended for a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The appended bytes become a line, with the terminator of the input line.
    Keep,
    /// The input line yields no output line: the bytes appended for it are removed.
    Drop,
    /// Like `Keep`, but the run stops after this line: see [`Flow::Stop`].
    KeepAndStop,
    /// Like `Drop`, but the run stops after this line: see [`Flow::Stop`].
    DropAndStop,
}

/// Whether the run continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Continue with the next batch.
    Continue,
    /// Stop: the output is written, and the rest of the input is ignored. Some of that rest may have been read already,
    /// and is lost to the next reader of the descriptor.
    Stop,
}
