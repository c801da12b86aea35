//! Samples what running threads execute, without stopping them, and names the kind of work: comparing text by locale,
//! compressing, interpreting and so on. The samples are those of perf_event_open(2) with the software clock, so no hardware
//! counters are needed. Processes and files are only read.
#![forbid(unsafe_code)]

mod calls;
mod image;
mod kernel;
mod kind;
mod maps;
mod profile;
mod sampling;
mod stack;
mod time_limit;
mod unoptimised;

pub use kind::{WorkKind, WorkRule};
pub use profile::{FunctionShare, MIN_SAMPLES, Profile, WorkShare};
pub use sampling::{Profiler, Unavailable, unavailable};
pub use time_limit::TimeLimit;

#[cfg(test)]
mod tests;
