//! Runs the trials of a plan in turns and hands back what was measured.
//!
//! Everything here touches the machine: processes, placement, the start barrier, clocks and supervision.

mod channel;
mod control;
mod counters;
mod end;
mod entrant;
mod feed;
mod filter;
mod keeper;
mod pair;
mod pieces;
mod pipeline;
mod process;
mod progress;
mod proof;
mod schedule;
mod stage;
mod supervisor;
mod timed;

use crate::child::{self, error, interrupt};

pub use channel::END_VERB;
pub use end::main as end;
pub use keeper::remove as remove_left;
pub use pipeline::{Pipeline, PipelineRun};
pub use progress::Progress;
pub use schedule::measure;
pub use supervisor::{SUPERVISOR_VERB, main as supervisor};
