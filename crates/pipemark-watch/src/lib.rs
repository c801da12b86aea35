//! Observes a running pipeline from outside. A [`Watcher`] samples its processes many times a second, and
//! [`Watcher::evidence`] is what it has seen, from which `pipemark-causes` concludes what limits the pipeline: see
//! `examples/verdict.rs`. Its observers, such as `scan`, `states`, `counters` and `waits`, read processes with
//! `pipemark-proc`. [`sheet`] lays out a report, `screen` draws it live, [`verbs`] implements why, watch and tune.
#![forbid(unsafe_code)]

mod budget;
mod capacities;
mod columns;
mod counters;
mod evidence;
mod live;
mod moment;
pub mod observation;
mod openmetrics;
mod pipeline;
mod profiling;
mod program_details;
mod reaped;
mod scan;
mod screen;
mod search;
pub mod sheet;
mod states;
mod subject;
mod tuning;
mod typed;
pub mod verbs;
mod waits;
mod watcher;

pub use pipemark_causes::{PipelineReport, Timeline};
pub use pipemark_proc::thread::ProcFile;
pub use subject::{SamplingOptions, Subject};
pub use verbs::signal_relay::{WITNESS_VERB, witness};
pub use watcher::Watcher;
