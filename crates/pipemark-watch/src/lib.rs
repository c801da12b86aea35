//! Observes a running pipeline from outside. A [`Watcher`] samples its processes many times a second, and
//! [`Watcher::evidence`] is what it has seen, from which `pipemark-causes` concludes what limits the pipeline: see
//! `examples/verdict.rs`. `scan` and `sampler` read processes with `pipemark-proc` and count. [`sheet`] lays out a report,
//! `screen` draws it live, [`verbs`] implements why, watch and tune.
#![forbid(unsafe_code)]

mod budget;
mod columns;
mod counters;
mod evidence;
mod live;
mod sampler;
mod scan;
mod screen;
pub mod sheet;
mod tuning;
pub mod verbs;
mod waits;

pub use pipemark_causes::{PipelineReport, Timeline};
pub use pipemark_proc::thread::ProcFile;
pub use sampler::{SamplingOptions, Subject, Watcher};
pub use verbs::signal_relay::{WITNESS_VERB, witness};
