//! The ways and links of this crate end to end, in one program.

mod every_way;
mod links;
mod reap;
