//! The five kinds of job.

use crate::named;

/// What a job is, without its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum JobKind {
    /// A stream one way, between two ends of ours.
    Stream,
    /// A block there and a block back, over and over.
    RoundTrip,
    /// A stream through other programs.
    Chain,
    /// A program of some language that streams by itself.
    Entrant,
    /// Lines of text through a filter.
    Lines,
}

named!(JobKind: Stream RoundTrip Chain Entrant Lines);
