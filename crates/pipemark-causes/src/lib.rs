//! Concludes what limits a pipeline, from what was seen of it. Pure: no clock, no processes, no files. Data flow:
//! [`evidence`] holds the observations as plain data, [`trace`] stores them in a file, `figures` computes shares and
//! rates from them, [`verdict`] finds the bottleneck, and [`report`] holds the result. `programs` and `remedies` have
//! facts about known programs, as data.
#![forbid(unsafe_code)]

mod advice;
mod burst;
mod calls;
mod cpu_shortage;
pub mod deadlock;
pub mod evidence;
mod figures;
mod held;
pub mod interval;
mod outside;
mod peer;
mod phases;
pub mod programs;
mod redact;
mod remedies;
pub mod report;
mod small_pipe;
mod starts;
mod stopped;
pub mod timeline;
pub mod trace;
pub mod typed;
pub mod verdict;

pub use evidence::{MachineLimits, PeerFigures, PipeEvidence, PipelineEvidence, StageEvidence};
pub use figures::PipelineFigures;
pub use interval::Interval;
pub use report::{
    Certainty, Phase, PipeFigures, PipelineReport, PipelineVerdict, Remedy, StageFigures, StageMoment, VerdictKind,
};
pub use timeline::Timeline;
