//! Finds the bottleneck of a running pipeline, from outside. A [`Watcher`] samples its processes many times a second, a
//! [`Timeline`] stores the counts, and a [`PipelineReport`] holds the figures and the verdict: see
//! `examples/verdict.rs`. Data flow: `scan` and `sampler` read processes with `pipemark-proc` and count, `figures`
//! turns counts into figures, and `verdict` finds the bottleneck. [`sheet`] lays out a report, `screen` draws it live,
//! [`verbs`] implements why, watch and tune.
#![forbid(unsafe_code)]

mod advice;
mod burst;
mod calls;
mod columns;
mod counters;
mod cpu_shortage;
mod deadlock;
mod figures;
mod held;
mod interval;
mod live;
mod outside;
mod peer;
mod phases;
mod programs;
mod remedies;
mod report;
mod sampler;
mod scan;
mod screen;
pub mod sheet;
mod small_pipe;
mod starts;
mod stopped;
mod tuning;
mod typed;
pub mod verbs;
mod verdict;
mod waits;

pub use figures::PipelineFigures;
pub use phases::Timeline;
pub use pipemark_proc::thread::ProcFile;
pub use report::{
    Certainty, PeerFigures, Phase, PipeFigures, PipelineReport, PipelineVerdict, Remedy, StageFigures, StageMoment,
    VerdictKind,
};
pub use sampler::{SamplingOptions, Subject, Watcher};
pub use verbs::signal_relay::{WITNESS_VERB, witness};
pub use verdict::verdict;
