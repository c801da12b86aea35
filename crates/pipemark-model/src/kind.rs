//! The five kinds of job.

use crate::named;

/// The kind of a job, without its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum JobKind {
    /// A one-way stream between pipemark's own ends.
    Stream,
    /// Repeated round trips of one block.
    RoundTrip,
    /// A stream through other programs.
    Chain,
    /// A program in another language that is source and sink itself.
    Entrant,
    /// Lines of text through a filter.
    Lines,
}

named!(JobKind: Stream RoundTrip Chain Entrant Lines);
