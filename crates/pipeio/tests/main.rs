//! The library's tests on real descriptors, in one program.

mod every_way;
mod lines;
mod relay;
