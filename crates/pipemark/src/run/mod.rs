//! Runs the trials of a plan in turns and hands back what was measured.
//!
//! Everything here touches the machine: processes, placement, the start barrier, clocks and supervision.

mod control;
mod counters;
mod end;
mod entrant;
mod feed;
mod filter;
mod interrupt;
mod job;
mod keeper;
mod limits;
mod pair;
mod pipeline;
mod process;
mod proof;
mod refusal;
mod schedule;
mod stage;
mod supervisor;

pub use end::main as end;
pub use interrupt::Interrupt;
pub use job::END_VERB;
pub use pipeline::{Failure, Pipeline, PipelineError, Ran};
pub use schedule::measure;
pub use stage::{STAGE_VERB, become_stage};
pub use supervisor::{SUPERVISOR_VERB, main as supervisor};
