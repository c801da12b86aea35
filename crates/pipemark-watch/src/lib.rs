//! Finds what limits a running pipeline, from outside. A [`Watcher`] samples its processes many times a second, a
//! [`Timeline`] keeps what it counted, and a [`PipelineReport`] has the figures and the verdict: see `examples/verdict.rs`.
//! The way of the data: `process` reads /proc, `topology` makes stages of processes, `state` says what a thread waits for,
//! `sampler` counts, `figures` are what the counts come to, `verdict` is what follows. All but the reading is pure.
//! [`sheet`] shows a report, `screen` draws it live, [`verbs`] are why, watch and tune on the command line.
#![forbid(unsafe_code)]

mod advice;
mod burst;
mod calls;
mod connections;
mod counters;
mod deadlock;
mod figures;
mod held;
mod live;
mod peer;
mod phases;
mod process;
mod programs;
mod remedies;
mod report;
mod sampler;
mod scan;
mod screen;
pub mod sheet;
mod starts;
mod state;
mod thread;
mod topology;
mod tuning;
mod typed;
pub mod verbs;
mod verdict;
mod waits;

pub use figures::PipelineFigures;
pub use live::{LivePipeline, live, named, refusal};
pub use phases::Timeline;
pub use report::{
    Certainty, PeerFigures, Phase, PipeFigures, PipelineReport, PipelineVerdict, ProcFile, Remedy, StageFigures,
    StageMoment, VerdictKind,
};
pub use sampler::{SamplingOptions, Subject, Watcher};
pub use tuning::Tuning;
pub use verbs::signal_relay::{WITNESS_VERB, witness};
pub use verdict::verdict;
