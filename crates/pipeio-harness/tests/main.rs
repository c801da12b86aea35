//! The ways and links of this crate, end to end.

mod every_way;
mod links;
mod reap;
