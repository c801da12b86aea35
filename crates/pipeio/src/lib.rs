//! Fast and correct ways to move bytes through Unix pipes.

pub mod lines;
