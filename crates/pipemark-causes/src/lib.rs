//! Concludes what limits a pipeline, from what was seen of it. Pure: no clock, no processes, no files. Data flow:
//! [`evidence`] holds the observations as plain data, [`trace`] stores them in a file, `figures` computes shares and
//! rates from them. Each file of [`causes`] makes hypotheses from these, with gains from `model`; [`judge`] chooses one,
//! and [`verdict`] is its sentence with remedies. [`report`] holds the result. `programs` and `remedies` have facts about
//! known programs, as data.
#![forbid(unsafe_code)]

mod advice;
pub mod cause;
pub mod causes;
mod commands;
mod conclusion;
mod declaration;
pub mod environment;
pub mod evidence;
pub mod exact_text;
mod figures;
pub mod hypothesis;
pub mod interval;
pub mod judge;
mod model;
pub mod naming;
mod options;
mod phases;
mod pipe_figures;
pub mod programs;
pub mod proof;
mod recorded;
mod redact;
mod remedies;
mod remedy_fit;
mod remedy_row;
pub mod report;
pub mod scripts;
mod seen_stage;
mod sentences;
mod stage_figures;
pub mod timeline;
pub mod trace;
pub mod typed_remedies;
pub mod verdict;
pub mod wait_graph;

pub use evidence::{MachineLimits, PeerFigures, PipeEvidence, PipelineEvidence, StageEvidence};
pub use figures::PipelineFigures;
pub use interval::Interval;
pub use pipe_figures::PipeRecord;
pub use report::{Certainty, Phase, PipelineReport, PipelineVerdict, Remedy, VerdictKind};
pub use stage_figures::{SHOWN, ShownFigure, StageMoment, StageRecord, TableColumn};
pub use timeline::Timeline;
