//! Runs the trials of a plan in turns and hands back what was measured.
//!
//! Everything here touches the machine: processes, placement, the start barrier, clocks and supervision.

mod channel;
mod child;
mod control;
mod counters;
mod end;
mod entrant;
mod error;
mod feed;
mod filter;
mod interrupt;
mod keeper;
mod pair;
mod pipeline;
mod process;
mod proof;
mod schedule;
mod stage;
mod supervisor;

pub use channel::END_VERB;
pub use child::{STAGE_VERB, become_foreign};
pub use end::main as end;
pub use error::RunError;
pub use interrupt::Interrupt;
pub use pipeline::{Pipeline, PipelineRun};
pub use schedule::measure;
pub use supervisor::{SUPERVISOR_VERB, main as supervisor};
