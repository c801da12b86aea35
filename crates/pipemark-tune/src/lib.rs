//! Experiments that make a pipeline faster: the verb `tune`. Start at [`verb`]: `typed` splits the pipeline, `purity`
//! decides whether it may run again, `engine` runs variants of it in a `lab` and makes a [`result`], and `sheet` shows
//! it. `rewrites` makes the variants that keep the output.
#![forbid(unsafe_code)]

mod engine;
mod lab;
mod order;
mod parts;
mod purity;
mod recording;
pub mod result;
mod rewrites;
pub mod sheet;
mod typed;
pub mod verb;

pub use parts::{PART_VERB, main as part};
