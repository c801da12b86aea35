//! The verbs, one file each.

pub mod host;
pub mod list;
mod rows;
