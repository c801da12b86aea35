//! Conclusions from trials ([`findings`] and claims), and documents for people ([`sheet`]) and for programs
//! ([`export`]). Start with [`findings::findings`] and [`sheet::document`].
#![forbid(unsafe_code)]

mod cpu_groups;
pub mod export;
pub mod findings;
pub mod sheet;

#[cfg(test)]
mod tests;
