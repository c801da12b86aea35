//! The verbs: `why` reports what limits a pipeline, `watch` shows a pipeline live, and `tune` tries larger pipes.

pub mod sampling;
mod search_term;
pub mod signal_relay;
pub mod target;
pub mod tune;
pub mod watch;
pub mod why;
