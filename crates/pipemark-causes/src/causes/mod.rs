//! One file for each cause, or group of causes that are assessed together. Each says what speaks for it, whatever else
//! may be true; `judge` compares.

use crate::hypothesis::{Hypothesis, Scene};

pub mod burst;
pub mod calls;
pub mod cpu_shortage;
pub mod deadlock;
mod held;
pub mod idle;
mod kind_of_work;
mod locks;
mod outside;
pub mod peer;
pub mod rate_limit;
pub mod small_pipe;
pub mod starts;
pub mod stopped;
pub mod work;

pub use held::{filling_option, held_bytes, holds, source_without_end, stages_that_keep_output};

/// All causes. A new cause is a file and a row here.
const CAUSES: [fn(&Scene) -> Vec<Hypothesis>; 14] = [
    deadlock::assess,
    stopped::assess,
    cpu_shortage::assess,
    outside::assess,
    held::assess,
    idle::assess,
    rate_limit::assess,
    locks::assess,
    calls::assess,
    starts::assess,
    small_pipe::assess,
    peer::assess,
    work::assess,
    kind_of_work::assess,
];

/// All hypotheses about a pipeline.
pub fn assess(scene: &Scene) -> Vec<Hypothesis> {
    CAUSES.iter().flat_map(|assess| assess(scene)).collect()
}
