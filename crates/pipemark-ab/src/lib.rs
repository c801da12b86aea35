//! Times commands and compares them: the verb `ab`. [`pipeline`] runs one and counts what it writes, [`ab`] interleaves
//! two and compares them, [`sheet`] shows the result.
#![forbid(unsafe_code)]

pub mod ab;
pub mod pipeline;
pub mod sheet;
mod stages;
pub mod turns;
