//! What the four programs have in common, so that they differ only in structure: the transform of a line, batches of
//! lines, and the options.
#![forbid(unsafe_code)]

pub mod batches;
pub mod header;
pub mod options;
