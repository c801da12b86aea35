//! The links of this crate end to end, in one program.

mod links;
mod reap;
