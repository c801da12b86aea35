//! The library's tests on real descriptors, in one program.

mod api;
mod gift;
#[cfg(feature = "lines")]
mod lines;
mod relay;
