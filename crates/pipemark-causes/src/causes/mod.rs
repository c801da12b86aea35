//! One file for each cause, or group of causes that are assessed together. Each says what speaks for it, whatever else
//! may be true; `judge` compares.

use crate::cause::CauseFacts;
use crate::declaration::Declaration;
use crate::hypothesis::{Hypothesis, Scene};

pub mod burst;
pub mod calls;
pub mod cpu_shortage;
pub mod deadlock;
mod held;
pub mod idle;
mod incompressible;
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

/// The causes that one file declares as a whole. A new cause is such a file and a row here.
pub static DECLARED: [&Declaration; 3] = [&locks::QUEUE, &locks::OF_OTHERS, &incompressible::CAUSE];

/// The declaration that has these facts.
///
/// # Panics
/// When the declaration is missing in [`DECLARED`], so that the cause was never assessed.
pub fn declaration(facts: &CauseFacts) -> &'static Declaration {
    DECLARED.iter().find(|declaration| std::ptr::eq(&declaration.facts, facts)).expect("a cause of the table")
}

/// All other causes.
const CAUSES: [fn(&Scene) -> Vec<Hypothesis>; 13] = [
    deadlock::assess,
    stopped::assess,
    cpu_shortage::assess,
    outside::assess,
    held::assess,
    idle::assess,
    rate_limit::assess,
    calls::assess,
    starts::assess,
    small_pipe::assess,
    peer::assess,
    work::assess,
    kind_of_work::assess,
];

/// All hypotheses about a pipeline.
pub fn assess(scene: &Scene) -> Vec<Hypothesis> {
    let declared = DECLARED.iter().map(|declaration| declaration.assess);
    CAUSES.into_iter().chain(declared).flat_map(|assess| assess(scene)).collect()
}
