//! The verbs: `why` says what limits a pipeline, `watch` shows it live, `tune` tries larger pipes on it.

pub mod signals;
pub mod tune;
pub mod watch;
pub mod why;
