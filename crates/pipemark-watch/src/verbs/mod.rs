//! The verbs: `why` reports what limits a pipeline, `watch` shows it live, `tune` tries larger pipes on it.

pub mod signal_relay;
pub mod tune;
pub mod watch;
pub mod why;
